// The one place that fetches on a schedule: what the page shows at all times, at the chosen interval.

import { ApiError } from "./api.js";
import { breathe } from "./dom.js";
import { ingest } from "../model/job.js";

const HIDDEN = 30_000;
const LONGEST_BACKOFF = 30_000;
const WHOAMI_EVERY = 60_000;
const QUIET_EVERY = 10_000;
const SLOTS_EVERY = 3000;
const SLOTS_AT_LEAST = 15_000;

export function createPoller(api, store, slots, prefs) {
  const { state } = store;
  let timer = null;
  let busy = false;
  let again = false;
  let stopped = false;
  let askedWhoami = 0;
  let askedQuiet = 0;
  let askedSlots = 0;
  let stirred = true;
  let identified = "";

  const now = () => Date.now() + api.skew;

  async function whoami() {
    askedWhoami = Date.now();
    try {
      store.set("whoami", await api.get("/whoami"));
    } catch (error) {
      // A daemon that does not know the question lets everybody do everything it serves.
      if (error instanceof ApiError && error.status === 404)
        store.set("whoami", { scopes: ["view", "control", "approve"], allScopes: true });
      else throw error;
    }
  }

  async function identify() {
    const instance = state.instance;
    if (identified === instance && state.version) return;
    const version = await api.getText("/version");
    identified = instance;
    store.set("version", version.trim());
  }

  async function jobs() {
    const text = await api.getIfChanged("/jobs");
    const receivedAt = now();
    if (text === null) return false;
    // Each step in a task of its own, so that no frame waits for all of them.
    await breathe();
    const list = JSON.parse(text);
    await breathe();
    const views = ingest(list, receivedAt, state.byName);
    state.byName = new Map(views.map((job) => [job.name, job]));
    store.set("jobs", views);
    slots.noteJobs(views);
    return true;
  }

  // Slots open and close when jobs do something; asking each second for nothing helps nobody.
  async function slotBook(changed) {
    const age = Date.now() - askedSlots;
    stirred ||= changed;
    if (age < SLOTS_EVERY || !(stirred || slots.hasOpen || age > SLOTS_AT_LEAST)) return;
    askedSlots = Date.now();
    stirred = false;
    await slots.refresh(now());
  }

  // Facts beside the jobs: a daemon that cannot tell one of them is still a daemon that answers.
  async function aside(path, key, pick = (answer) => answer) {
    try {
      store.set(key, pick(await api.get(path)));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 401) throw error;
      store.set(key, null);
    }
  }

  // What changes seldom or is not in use here is asked less often.
  async function quiet() {
    const due = Date.now() - askedQuiet >= QUIET_EVERY;
    if (due) askedQuiet = Date.now();
    await Promise.all([
      due || state.cluster?.enabled ? aside("/cluster", "cluster") : null,
      due || state.pools?.length ? aside("/pools", "pools") : null,
      due ? aside("/job-set-id", "jobSet", (answer) => answer.job_set_id) : null,
    ]);
  }

  async function round() {
    if (!state.whoami || Date.now() - askedWhoami > WHOAMI_EVERY || state.conn.failures) await whoami();
    const changed = await jobs();
    await Promise.all([aside("/node", "node"), slotBook(changed), quiet(), identify()]);
  }

  async function run() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    clearTimeout(timer);
    try {
      await round();
      store.set("conn", { ok: true, at: Date.now(), failures: 0, reason: "" });
    } catch (error) {
      const denied = error instanceof ApiError && error.status === 401;
      store.set("conn", {
        ...state.conn,
        ok: false,
        failures: state.conn.failures + 1,
        denied,
        reason: error instanceof ApiError ? error.message : "no answer",
      });
    }
    busy = false;
    if (again) {
      again = false;
      run();
    } else plan();
  }

  function plan() {
    clearTimeout(timer);
    const failures = state.conn.failures;
    if (stopped || state.conn.denied) return;
    if (!prefs.interval && !failures) return;
    const base = document.hidden ? HIDDEN : (prefs.interval || 5) * 1000;
    const wait = failures
      ? Math.min(LONGEST_BACKOFF, Math.max(base, 1000 * 2 ** Math.min(failures - 1, 5)))
      : base;
    timer = setTimeout(run, wait);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) plan();
    else if (prefs.interval) run();
  });

  return {
    now,
    refresh: run,
    replan: plan,
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
    // A new token, or none: whoever we are now, ask everything anew.
    reset() {
      store.set("whoami", null);
      store.set("conn", { ...state.conn, failures: 0, denied: false });
      run();
    },
  };
}
