// Keeps a pane fed from the log of one job: replay, live lines, the next run, lost connections.

import { ApiError, segment } from "../core/api.js";
import { clockTime, parseInstant } from "../core/time.js";

// Lines that come this close after each other from the start are the replay: when they were written is not known.
const REPLAY_GAP = 250;

// Follow until the returned function is called.
export function followLog(app, name, pane, { source = null, separators = true } = {}) {
  const stop = new AbortController();
  let runs = 0;
  let ended = null;
  let failures = 0;

  async function once() {
    const run = `${name} ${(runs += 1)}`;
    const outcome = { run, end: null, lines: 0 };
    let before = Date.now();
    let live = false;
    pane.say("connecting…");
    await app.api
      .stream(
        `/jobs/${segment(name)}/logs`,
        (type, data) => {
          const said = JSON.parse(data);
          if (type === "end") outcome.end = said;
          if (type !== "line") return;
          const now = Date.now();
          live ||= now - before > REPLAY_GAP;
          before = now;
          if (!outcome.lines) arrived(run);
          outcome.lines += 1;
          pane.add(said.stream, said.line, { at: live ? app.now() : null, source, run });
        },
        stop.signal,
        () => pane.say("live"),
      )
      .catch((error) => {
        if (error instanceof ApiError || stop.signal.aborted) throw error;
      });
    return outcome;
  }

  // The first line of a replay: what an interrupted stream had told of this run goes first.
  let broken = null;
  function arrived() {
    failures = 0;
    if (broken) pane.drop(broken);
    broken = null;
  }

  async function loop() {
    while (!stop.signal.aborted) {
      const { run, end, lines } = await once();
      if (!end) {
        if (lines) broken = run;
        failures += 1;
        pane.say("connection lost, trying again");
        await pause(Math.min(15_000, 500 * 2 ** failures));
        continue;
      }
      if (end.started_at && end.started_at === ended && lines) pane.drop(run);
      finished(end, lines);
      await nextRun();
      if (separators) pane.separator(`next run, ${clockTime(app.now(), null, true)}`, null);
    }
  }

  function finished(end, lines) {
    const before = ended;
    ended = end.started_at ?? null;
    const at = parseInstant(ended);
    if (end.reason === "no-output" || !ended)
      pane.say(app.store.state.byName.get(name)?.raw.running ? "no output yet" : "has not run yet");
    else if (!lines && before !== ended)
      pane.say(`the run of ${clockTime(at, null, true)} left no output here`);
    else pane.say(`end of the run of ${clockTime(at, null, true)}`);
  }

  // Wait until /jobs, asked after the end, knows a run that is not the one which ended.
  function nextRun() {
    const since = Date.now();
    return new Promise((resolve) => {
      const off = app.store.on(["jobs", "tick"], (state) => {
        if (stop.signal.aborted) return done();
        const job = state.byName.get(name);
        if (!job || !state.conn.ok || state.conn.at < since + 100) return;
        const last = job.raw.last_run?.started_at ?? null;
        if (
          job.raw.running ||
          (last !== ended && last !== null && ended !== null) ||
          (ended === null && last !== null)
        )
          done();
      });
      const done = () => {
        off();
        resolve();
      };
      stop.signal.addEventListener("abort", done, { once: true });
    });
  }

  function pause(time) {
    return new Promise((resolve) => {
      setTimeout(resolve, time);
      stop.signal.addEventListener("abort", resolve, { once: true });
    });
  }

  loop().catch((error) => {
    if (stop.signal.aborted) return;
    pane.say(
      error instanceof ApiError && error.status === 404
        ? "the daemon no longer has this job"
        : error.message,
    );
  });
  return () => stop.abort();
}
