// The small labels beside a job's name.

import { bytes, clockTime, parseInstant, span } from "../core/time.js";

// Short facts that matter now: [text, kind, title].
export function tagsOf(job) {
  const { raw } = job;
  const found = [];
  if (job.overdue) found.push(["overdue", "warn", raw.sla.breaches.map(breachWords).join("\n")]);
  if (raw.never_fires)
    found.push(["never fires", "warn", raw.schedule_findings.map((finding) => finding.message).join("\n")]);
  else {
    const warnings = (raw.schedule_findings ?? []).filter((finding) => finding.level === "warning");
    if (warnings.length)
      found.push(["check schedule", "warn", warnings.map((finding) => finding.message).join("\n")]);
  }
  if (raw.paused) {
    const until_ = parseInstant(raw.paused.until);
    found.push([
      `paused until ${clockTime(until_, null)}`,
      "",
      [raw.paused.note, raw.paused.by && `by ${raw.paused.by}`].filter(Boolean).join(", "),
    ]);
  }
  if (raw.retry)
    found.push([
      `retry ${raw.retry.attempt}${raw.retry.maxAttempts ? `/${raw.retry.maxAttempts}` : ""}`,
      "warn",
      "A retry is armed",
    ]);
  if (raw.pool) {
    const waiting = raw.pool.queued?.length ?? 0;
    found.push([
      waiting ? `${raw.pool.name}: ${waiting} waiting` : raw.pool.name,
      waiting ? "busy" : "",
      raw.pool.queueUnavailable ? "The queue cannot be read" : "Pool",
    ]);
  }
  if (raw.rebootPending) found.push(["boot run pending", "busy", "Runs once when the cluster allows it"]);
  const limits = raw.last_run?.limits;
  if (limits?.memory_exceeded || limits?.process_limit_hits)
    found.push(["limit hit", "warn", limits.reason ?? ""]);
  const use = raw.running_resources;
  if (use && raw.running)
    found.push([
      `${Math.round(use.cpu_percent)} % ${bytes(use.rss_bytes)}`,
      "busy",
      "CPU and memory in use now",
    ]);
  return found;
}

const CHECKS = { maxTimeSinceSuccess: "no success", lateAfter: "late", maxRuntime: "running" };

export function breachWords({ check, observed_seconds: seen, threshold_seconds: most }) {
  return `${CHECKS[check] ?? check} for ${span(seen)} (at most ${span(most)})`;
}
