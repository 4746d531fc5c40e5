// A job as the page sees it: the daemon's answer plus what follows from it.

import { parseInstant } from "../core/time.js";

// State by the contract's order: the first that matches.
const LABELS = {
  disabled: "disabled",
  verifying: "verifying",
  running: "running",
  queued: "queued",
  paused: "paused",
  failed: "failed",
  cancelled: "cancelled",
  unknown: "unknown",
  skipped: "skipped",
  ok: "ok",
  pending: "not run yet",
};

const RANKS = {
  failed: 0,
  unknown: 2,
  cancelled: 3,
  verifying: 4,
  running: 5,
  queued: 6,
  skipped: 7,
  ok: 8,
  pending: 9,
  paused: 10,
  disabled: 11,
};

export const FILTERS = [
  ["all", "All"],
  ["failing", "Failing"],
  ["overdue", "Overdue"],
  ["running", "Running"],
  ["queued", "Queued"],
  ["paused", "Paused"],
  ["ok", "OK"],
  ["other", "Other"],
  ["disabled", "Disabled"],
];

// Build the view of each job from one answer of /jobs, received at an instant of the daemon's clock.
export function ingest(list, receivedAt, before) {
  return list.map((raw, index) => view(raw, index, receivedAt, before.get(raw.name)));
}

function view(raw, index, receivedAt, old) {
  const last = raw.last_run;
  const status = statusOf(raw);
  const lastAt = last ? parseInstant(last.finished_at) : null;
  const nextAt =
    raw.scheduled_in === null || raw.scheduled_in === undefined
      ? null
      : steady(receivedAt + raw.scheduled_in * 1000, old?.nextAt);
  const told = (raw.instances ?? []).map((each) => parseInstant(each.started_at)).filter((at) => at !== null);
  return {
    raw,
    index,
    name: raw.name,
    status,
    label: LABELS[status],
    failing: raw.enabled && last?.outcome === "failure",
    overdue: raw.sla?.state === "late",
    lastAt,
    startedAt: last ? parseInstant(last.started_at) : null,
    nextAt,
    // Told, seen, or running already when this page first looked: then it is a bound only.
    runningSince: raw.running ? (told.length ? Math.max(...told) : (old?.runningSince ?? receivedAt)) : null,
    sawStart: raw.running && (told.length > 0 || (old ? !old.raw.running || old.sawStart : false)),
    zone: raw.timezone ?? (raw.utc ? "UTC" : null),
    haystack:
      old && old.raw.command === raw.command ? old.haystack : `${raw.name}\n${raw.command}`.toLowerCase(),
  };
}

// The next fire is computed anew for each answer; a wobble of a few milliseconds is no change.
function steady(at, before) {
  const whole = Math.round(at / 1000) * 1000;
  const better = Math.abs(whole - at) < 300 ? whole : at;
  return before !== undefined && before !== null && Math.abs(before - better) < 400 ? before : better;
}

export function statusOf(raw) {
  if (!raw.enabled) return "disabled";
  if (raw.verification?.running) return "verifying";
  if (raw.running) return "running";
  if (raw.pool?.queued?.length) return "queued";
  if (raw.paused) return "paused";
  if (!raw.last_run) return "pending";
  return outcomeStatus(raw.last_run.outcome);
}

// An outcome that this page has never heard of is shown as unknown, never as a success.
export function outcomeStatus(outcome) {
  return (
    { success: "ok", failure: "failed", cancelled: "cancelled", replaced: "cancelled", skipped: "skipped" }[
      outcome
    ] ?? "unknown"
  );
}

export function outcomeWord(outcome) {
  return { success: "ok", failure: "failed" }[outcome] ?? String(outcome);
}

function inGroup(job, group) {
  switch (group) {
    case "all":
      return true;
    case "failing":
      return job.failing;
    case "overdue":
      return job.overdue;
    case "running":
      return job.raw.running;
    case "queued":
      return job.status === "queued";
    case "paused":
      return Boolean(job.raw.paused);
    case "ok":
      return job.status === "ok";
    case "disabled":
      return !job.raw.enabled;
    default:
      return ["pending", "unknown", "skipped", "cancelled"].includes(job.status);
  }
}

export function countGroups(jobs) {
  const counts = {};
  for (const [group] of FILTERS) counts[group] = 0;
  for (const job of jobs) for (const [group] of FILTERS) if (inGroup(job, group)) counts[group] += 1;
  return counts;
}

// What needs eyes comes first and the rest stays in the order of the configuration, so that a row
// moves when its state of health changes and not each time it runs.
function attention(job) {
  if (job.failing) return 0;
  if (job.overdue) return 1;
  return job.raw.never_fires || job.status === "unknown" ? 2 : 3;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const missingLast = (value) => (value === null || value === undefined ? Infinity : value);

const SORTS = {
  attention: (a, b) => attention(a) - attention(b),
  state: (a, b) => RANKS[a.status] - RANKS[b.status],
  name: (a, b) => collator.compare(a.name, b.name),
  schedule: (a, b) => collator.compare(a.raw.schedule, b.raw.schedule),
  last: (a, b) => (b.lastAt ?? -Infinity) - (a.lastAt ?? -Infinity) || 0,
  took: (a, b) => (b.raw.last_run?.duration ?? -1) - (a.raw.last_run?.duration ?? -1),
  next: (a, b) => missingLast(a.nextAt) - missingLast(b.nextAt) || 0,
  rate: (a, b) => missingLast(successRate(a)) - missingLast(successRate(b)) || 0,
  owner: (a, b) => collator.compare(a.raw.clusterOwner ?? "", b.raw.clusterOwner ?? ""),
};

export function select(jobs, { text, group, sort, reverse }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = jobs.filter(
    (job) => inGroup(job, group) && words.every((word) => job.haystack.includes(word)),
  );
  const compare = SORTS[sort] ?? SORTS.attention;
  const sign = reverse ? -1 : 1;
  return kept.sort((a, b) => sign * compare(a, b) || a.index - b.index);
}

// Of the runs on record that ended well or badly, the part that ended well.
export function successRate(job) {
  let good = 0;
  let bad = 0;
  for (const { outcome } of job.raw.history ?? []) {
    if (outcome === "success") good += 1;
    else if (outcome === "failure") bad += 1;
  }
  return good + bad ? good / (good + bad) : null;
}

// "sleep (pid 12), tee (pid 13)": processes that hold a run's output open.
export function processes(list) {
  return list.map((each) => `${each.command} (pid ${each.pid})`).join(", ");
}

// "exit 1", "timed out", "killed by signal 9": how a run ended, in short.
export function exitWords(run) {
  if (!run) return "";
  const code = run.exit_code;
  if (run.outcome === "skipped") return run.skip_reason ? `skipped: ${run.skip_reason}` : "skipped";
  if (run.outcome === "unknown") return "interrupted";
  if (code === -100) return "timed out";
  if (code === null || code === undefined) return run.outcome === "success" ? "" : outcomeWord(run.outcome);
  return code < 0 ? `signal ${-code}` : `exit ${code}`;
}
