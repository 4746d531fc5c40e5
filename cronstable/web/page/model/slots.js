// The slot book and the run history of the jobs, as far as the page has asked for them.
// New slots come for all jobs at once, step by step; older ones and runs only for the rows in view.
// In a large fleet only jobs that have been in view are kept at all.

import { ApiError, segment } from "../core/api.js";
import { parseInstant } from "../core/time.js";

const PAGE = 2000;
const OVERLAP = 90_000;
const KEEP_RUNS = 200;
const KEEP_SLOTS = 6000;
const KEEP_IN_ALL = 80_000;
const SMALL_FLEET = 200;
const BACK = 12 * 3600_000;

export function createSlotBook(api, onChange) {
  const books = new Map();
  let supported = null;
  let newest = null;
  let coveredFrom = Infinity;
  let unaccounted = 0;
  let small = true;
  let total = 0;
  const open = new Map();
  const wanted = [];
  let fetching = 0;

  function book(name) {
    let found = books.get(name);
    if (!found) {
      found = {
        slots: new Map(),
        runs: new Map(),
        slotsFrom: Infinity,
        askedRuns: false,
        askedAt: 0,
        wantedAt: 0,
        revision: 0,
      };
      books.set(name, found);
    }
    return found;
  }

  function take(list) {
    for (const entry of list) {
      const at = parseInstant(entry.slot);
      if (at === null || !(small || books.has(entry.job))) continue;
      const found = book(entry.job);
      const old = found.slots.get(at);
      const startedAt = parseInstant(entry.started_at);
      if (entry.result === "open") open.set(`${at} ${entry.job}`, at);
      else open.delete(`${at} ${entry.job}`);
      if (old && old.result === entry.result && old.startedAt === startedAt && old.reason === entry.reason)
        continue;
      if (!old) total += 1;
      // A long gap comes as one entry: so many slots up to an instant.
      const until = parseInstant(entry.until) ?? at;
      found.slots.set(at, {
        at,
        until,
        count: entry.count ?? 1,
        result: entry.result,
        reason: entry.reason,
        startedAt,
      });
      found.revision += 1;
      if (found.slots.size > KEEP_SLOTS) total -= prune(found.slots);
    }
    if (total > KEEP_IN_ALL) forget();
  }

  // Drop the books that were in view longest ago.
  function forget() {
    const order = [...books].sort((a, b) => a[1].wantedAt - b[1].wantedAt);
    for (const [name, found] of order) {
      if (total <= KEEP_IN_ALL * 0.8) return;
      books.delete(name);
      total -= found.slots.size;
    }
  }

  function prune(map) {
    const order = [...map.keys()].sort((a, b) => a - b);
    const oldest = order.slice(0, Math.ceil(order.length / 10));
    for (const key of oldest) map.delete(key);
    return oldest.length;
  }

  // Ask for what is new since the last time.
  async function refresh(now) {
    if (supported === false) return;
    const since =
      newest === null
        ? now - (small ? BACK : OVERLAP)
        : Math.max(Math.min(newest - OVERLAP, ...open.values()), now - BACK);
    let answer;
    try {
      answer = await api.get(
        `/slots?since=${encodeURIComponent(new Date(since).toISOString())}&limit=${PAGE}`,
      );
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) supported = false;
      else throw error;
      return;
    }
    supported = true;
    unaccounted = answer.unaccounted ?? 0;
    take(answer.slots);
    const oldest =
      answer.slots.length >= PAGE ? parseInstant(answer.slots[answer.slots.length - 1].slot) : since;
    if (newest === null || oldest > newest) {
      // The first page, or a full one that left a hole: only what is newer than it counts as covered.
      coveredFrom = oldest;
      for (const found of books.values()) found.slotsFrom = Infinity;
    }
    if (answer.slots.length) newest = Math.max(newest ?? 0, parseInstant(answer.slots[0].slot));
    else newest ??= now;
    if (answer.slots.length) onChange();
  }

  // The finished run that /jobs shows is the newest; keep it so that history grows without asking.
  function noteJobs(jobs) {
    if (small && jobs.length > SMALL_FLEET) restart();
    small = jobs.length <= SMALL_FLEET;
    for (const job of jobs) {
      const run = job.raw.last_run;
      if (run && job.lastAt !== null && books.has(job.name)) noteRun(book(job.name), run);
    }
  }

  function noteRun(found, run) {
    const finishedAt = parseInstant(run.finished_at);
    const startedAt = parseInstant(run.started_at);
    const key = startedAt ?? finishedAt;
    const old = found.runs.get(key);
    if (old && old.finishedAt === finishedAt) return;
    found.runs.set(key, {
      startedAt,
      finishedAt,
      outcome: run.outcome,
      duration: run.duration,
      exitCode: run.exit_code,
      reason: run.fail_reason ?? run.skip_reason ?? null,
    });
    found.revision += 1;
    if (found.runs.size > KEEP_RUNS) prune(found.runs);
  }

  // Rows in view need their runs once, and their older slots when the general page did not reach back.
  function want(name, from, now) {
    const found = book(name);
    const floor = Math.max(from, now - 8 * 86400_000);
    found.wantedAt = now;
    const needsSlots =
      supported !== false &&
      Math.min(found.slotsFrom, small ? coveredFrom : Infinity) > floor + 1000 &&
      now - found.askedAt > 10_000;
    const needsRuns = !found.askedRuns && (!found.askedAt || now - found.askedAt > 10_000);
    if ((!needsSlots && !needsRuns) || wanted.some((entry) => entry.name === name)) return;
    wanted.push({ name, floor, needsSlots, needsRuns, now });
    pump();
  }

  // Runs that the slot book knows and the history does not: ask once more, not too often.
  function missedRun(name, now) {
    const found = book(name);
    if (found.askedRuns && now - found.askedAt > 30_000) found.askedRuns = false;
  }

  async function pump() {
    while (fetching < 2 && wanted.length) {
      const entry = wanted.pop();
      fetching += 1;
      load(entry)
        .catch(() => {})
        .finally(() => {
          fetching -= 1;
          onChange();
          pump();
        });
    }
    if (wanted.length > 60) wanted.splice(0, wanted.length - 60);
  }

  async function load({ name, floor, needsSlots, needsRuns, now }) {
    const found = book(name);
    found.askedAt = now;
    if (needsRuns) {
      const answer = await api.get(`/jobs/${segment(name)}/runs?limit=50`);
      found.askedRuns = true;
      for (const run of answer.runs) noteRun(found, run);
    }
    if (needsSlots && supported !== false) {
      const since = encodeURIComponent(new Date(floor).toISOString());
      const answer = await api.get(
        `/slots?job=${encodeURIComponent(name)}&since=${since}&limit=${KEEP_SLOTS}`,
      );
      take(answer.slots);
      found.slotsFrom = floor;
    }
  }

  // After a restart of the daemon the book begins anew; what the history knows stays.
  function restart() {
    supported = null;
    newest = null;
    coveredFrom = Infinity;
    open.clear();
    for (const found of books.values())
      Object.assign(found, { slotsFrom: Infinity, askedRuns: false, askedAt: 0 });
  }

  return {
    refresh,
    restart,
    want,
    missedRun,
    noteJobs,
    get unaccounted() {
      return unaccounted;
    },
    get hasOpen() {
      return open.size > 0;
    },
    get supported() {
      return supported !== false;
    },
    known: (name) => books.get(name),
  };
}

// One list of marks for the strip, oldest first, each with start, end and kind, out of slots and runs.
// kind: ok failed cancelled unknown skipped missed merged open running
export function marks(found, job, from, to, now) {
  if (!found) return { marks: [], missing: false };
  const list = [];
  const used = new Set();
  let missing = false;
  const live = liveStarts(found, job);
  for (const slot of found.slots.values()) {
    const reach = slot.startedAt ?? slot.at;
    if (reach > to || Math.max(reach, slot.at) < from - 7 * 86400_000) continue;
    if (slot.result !== "ran") {
      if (slot.until >= from && slot.at <= to)
        list.push({ at: slot.at, end: slot.until, kind: slot.result, slot });
      continue;
    }
    const key = slot.startedAt ?? slot.at;
    const run = runNear(found.runs, key);
    if (run) used.add(run);
    const runs = !run && live.has(key);
    const end = run ? run.finishedAt : runs ? now : key;
    if (!run && !runs && key > now - 600_000) missing = true;
    if (end < from) continue;
    list.push({ at: key, end, kind: run ? kindOf(run.outcome) : runs ? "running" : "ran", slot, run });
  }
  for (const run of found.runs.values()) {
    if (used.has(run) || run.outcome === "skipped") continue;
    const at = run.startedAt ?? run.finishedAt;
    if (at > to || run.finishedAt < from) continue;
    list.push({ at, end: run.finishedAt, kind: kindOf(run.outcome), run, slot: null });
  }
  if (job.raw.running && !list.some((mark) => mark.kind === "running") && job.runningSince) {
    list.push({ at: job.runningSince, end: now, kind: "running", slot: null, run: null });
  }
  list.sort((a, b) => a.at - b.at);
  return { marks: list, missing };
}

// Of the starts that no finished run belongs to, as many of the newest as there are processes.
function liveStarts(found, job) {
  if (!job.raw.running) return new Set();
  const starts = [];
  for (const slot of found.slots.values()) {
    if (slot.startedAt !== null && slot.startedAt > (job.startedAt ?? 0)) starts.push(slot.startedAt);
  }
  return new Set(starts.sort((a, b) => b - a).slice(0, Math.max(1, job.raw.pids.length)));
}

function runNear(runs, at) {
  const exact = runs.get(at);
  if (exact) return exact;
  for (const [key, run] of runs) if (Math.abs(key - at) < 1000 && run.startedAt !== null) return run;
  return null;
}

function kindOf(outcome) {
  return (
    { success: "ok", failure: "failed", cancelled: "cancelled", replaced: "cancelled" }[outcome] ??
    "unknown"
  );
}

// When the instance that runs now has started: {at, exact}; not exact is the time since this page has seen it.
export function runningStart(found, job) {
  const [newest] = found && !job.raw.instances ? liveStarts(found, job) : [];
  return { at: newest ?? job.runningSince, exact: newest !== undefined || job.sawStart };
}
