// Is everything all right? The facts behind the sentence at the top of the page.

import { exitWords } from "./job.js";
import { parseInstant } from "../core/time.js";

// Failures that started within this time of each other and ended alike probably share a cause.
const TOGETHER = 10 * 60_000;

export function verdict(jobs, now) {
  const enabled = jobs.filter((job) => job.raw.enabled);
  const failing = enabled.filter((job) => job.failing).sort((a, b) => (b.lastAt ?? 0) - (a.lastAt ?? 0));
  const overdue = enabled.filter((job) => job.overdue && !job.failing);
  const unknown = enabled.filter((job) => job.status === "unknown");
  const cancelled = enabled.filter((job) => job.status === "cancelled");
  const dead = enabled.filter((job) => job.raw.never_fires);
  return {
    total: jobs.length,
    disabled: jobs.length - enabled.length,
    failing,
    groups: groupFailures(failing),
    overdue,
    unknown,
    cancelled,
    dead,
    paused: enabled.filter((job) => job.raw.paused).length,
    pending: enabled.filter((job) => job.status === "pending").length,
    running: enabled.filter((job) => job.raw.running),
    next: nextFire(enabled, now),
    fine: !failing.length && !overdue.length && !unknown.length && !dead.length,
  };
}

function nextFire(jobs, now) {
  let best = null;
  for (const job of jobs) {
    if (job.nextAt === null) continue;
    const until = parseInstant(job.raw.paused?.until);
    if (until !== null && job.nextAt < until) continue;
    if (job.nextAt > now - 2000 && (best === null || job.nextAt < best.nextAt)) best = job;
  }
  return best;
}

// Failures by how they ended; each group says whether its members are likely to share a cause.
export function groupFailures(failing) {
  const groups = new Map();
  for (const job of failing) {
    const run = job.raw.last_run;
    const reason = plainReason(run.fail_reason, run);
    const key = `${run.exit_code}|${reason}`;
    if (!groups.has(key)) groups.set(key, { exit: exitWords(run), reason, jobs: [] });
    groups.get(key).jobs.push(job);
  }
  const found = [...groups.values()].sort((a, b) => b.jobs.length - a.jobs.length);
  for (const group of found) {
    const times = group.jobs.map((job) => job.lastAt ?? 0);
    group.since = Math.min(...times);
    group.likelyOne = group.jobs.length > 1 && Math.max(...times) - group.since <= TOGETHER;
  }
  return found;
}

// The reason of a failure where it says more than the exit code.
export function plainReason(reason, run) {
  if (!reason) return "";
  return /^command exited with code -?\d+$/.test(reason) || exitWords(run) === reason ? "" : reason;
}
