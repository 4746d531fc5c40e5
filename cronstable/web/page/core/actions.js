// What a person can make the daemon do, and the answer in words where it was asked.

import { segment } from "./api.js";
import { clockTime, parseInstant, span } from "./time.js";

const SHOW_FOR = 8000;
const CONFIRM_WITHIN = 4000;
const STAGGER = 300;

export function createActions(api, store, poller) {
  const { state } = store;
  const notes = new Map();
  const armed = new Map();

  const may = (scope) => Boolean(state.whoami?.allScopes || state.whoami?.scopes?.includes(scope));

  function note(name, text, kind, undo = null) {
    const entry = { text, kind, undo };
    notes.set(name, entry);
    store.set("announcement", `${name}: ${text}`);
    store.touch("notes");
    setTimeout(() => {
      if (notes.get(name) !== entry) return;
      notes.delete(name);
      store.touch("notes");
    }, SHOW_FOR);
  }

  async function ask(name, path, body, onSuccess) {
    note(name, "…", "wait");
    try {
      const { status, answer } = await api.post(path, body);
      if (status === 200 || status === 202) onSuccess(status, answer);
      else note(name, refusal(status, answer), "bad");
      return status;
    } catch {
      note(name, "no answer from the daemon", "bad");
      return 0;
    } finally {
      poller.refresh();
    }
  }

  function refusal(status, answer) {
    if (status === 404) return "gone: the daemon no longer has this job";
    if (status === 401) return "a token is needed";
    const said = typeof answer.error === "string" ? answer.error : `status ${status}`;
    return status === 403 ? `not allowed: ${said}` : `refused: ${said}`;
  }

  async function start(name) {
    return ask(name, `/jobs/${segment(name)}/start`, null, (status, answer) => {
      note(name, status === 202 ? `queued in pool ${answer.pool}` : "started", "good");
      if (status === 202) place(name, answer);
    });
  }

  // Say which place in the queue it has got.
  async function place(name, { pool, queueId }) {
    const pools = await api.get("/pools").catch(() => []);
    const entry = pools.find((one) => one.name === pool)?.entries.find((one) => one.id === queueId);
    if (entry?.state === "running") note(name, "started", "good");
    else if (entry?.position) note(name, `queued, number ${entry.position} in pool ${pool}`, "good");
  }

  // Stopping takes a second press within a few seconds.
  function cancel(name) {
    if (!armed.has(name)) {
      armed.set(
        name,
        setTimeout(() => {
          armed.delete(name);
          store.touch("notes");
        }, CONFIRM_WITHIN),
      );
      note(name, "press again to stop", "wait");
      return;
    }
    clearTimeout(armed.get(name));
    armed.delete(name);
    ask(name, `/jobs/${segment(name)}/cancel`, null, (status, answer) => {
      note(name, answer.instances > 1 ? `${answer.instances} instances told to stop` : "stopped", "good");
    });
  }

  function pause(name, seconds = 3600, reason = "") {
    ask(
      name,
      `/jobs/${segment(name)}/pause`,
      { durationSeconds: seconds, note: reason, by: "dashboard" },
      (status, answer) => {
        const until = parseInstant(answer.paused?.until);
        note(name, `paused until ${until === null ? span(seconds) : clockTime(until)}`, "good", () =>
          resume(name),
        );
      },
    );
  }

  function resume(name) {
    ask(name, `/jobs/${segment(name)}/resume`, { by: "dashboard" }, () => note(name, "resumed", "good"));
  }

  // One after another, a little apart; report(name, status) after each; abort through the signal.
  async function each(names, what, report, signal) {
    for (const name of names) {
      if (signal.aborted) return;
      const { status, answer } = await api
        .post(`/jobs/${segment(name)}/${what}`)
        .catch(() => ({ status: 0, answer: {} }));
      report(
        name,
        status === 200
          ? what === "start"
            ? "started"
            : "stopped"
          : status === 202
            ? "queued"
            : status === 0
              ? "no answer"
              : refusal(status, answer),
      );
      await new Promise((resolve) => setTimeout(resolve, STAGGER));
    }
    poller.refresh();
  }

  return {
    may,
    start,
    cancel,
    pause,
    resume,
    each,
    noteOf: (name) => notes.get(name),
    isArmed: (name) => armed.has(name),
    toggleRun(job) {
      if (job.raw.running) cancel(job.name);
      else start(job.name);
    },
    togglePause(job) {
      if (job.raw.paused) resume(job.name);
      else pause(job.name);
    },
  };
}
