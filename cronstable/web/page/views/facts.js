// What is worth knowing about a job, as a list of names and values at the head of its drawer.

import { h, setAttr, setText } from "../core/dom.js";
import { absolute, ago, clockTime, parseInstant, plural, until } from "../core/time.js";
import { exitWords, processes } from "../model/job.js";
import { scheduleWords } from "../model/words.js";
import { breachWords } from "./tags.js";

export function fillFacts(list, facts) {
  const key = facts.map((fact) => fact[0]).join("|");
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...facts.map(([label]) => h("div", {}, h("dt", { text: label }), h("dd"))));
  }
  facts.forEach(([, text, hint], i) => {
    const cell = list.children[i].lastChild;
    setText(cell, text);
    setAttr(cell, "title", hint ?? null);
  });
}

export function factsOf(job, app, now) {
  const { raw } = job;
  const words = scheduleWords(raw.schedule_resolved ?? raw.schedule);
  const zone = job.zone ?? "the host's time";
  const facts = [
    ["Schedule", [words, words ? `(${raw.schedule})` : raw.schedule, zone].filter(Boolean).join("  ")],
  ];
  if (raw.running) {
    facts.push([
      "Running",
      [`for ${app.runningFor(job)}`, raw.pids.length ? `pid ${raw.pids.join(", ")}` : ""]
        .filter(Boolean)
        .join(", "),
    ]);
  }
  const holders = (raw.instances ?? []).flatMap((each) => each.output_held_by);
  if (holders.length)
    facts.push(["Output held by", processes(holders)]);
  const run = raw.last_run;
  facts.push([
    "Last run",
    run ? [ago(job.lastAt, now), exitWords(run)].filter(Boolean).join(", ") : "never",
    run && absolute(job.lastAt, job.zone),
  ]);
  if (run?.fail_reason) facts.push(["Reason", run.fail_reason]);
  facts.push([
    "Next run",
    raw.never_fires
      ? "never: no date matches"
      : job.nextAt === null
        ? raw.running
          ? "after this run"
          : "none planned"
        : `${until(job.nextAt, now)}, at ${clockTime(job.nextAt, job.zone)}`,
    job.nextAt && absolute(job.nextAt, job.zone),
  ]);
  if (raw.retry) {
    const at = parseInstant(raw.retry.nextRetryAt);
    facts.push([
      "Retry",
      [
        `attempt ${raw.retry.attempt}${raw.retry.maxAttempts ? ` of ${raw.retry.maxAttempts}` : ""}`,
        at && until(at, now),
      ]
        .filter(Boolean)
        .join(", "),
    ]);
  }
  if (raw.paused)
    facts.push([
      "Paused",
      [
        `until ${absolute(parseInstant(raw.paused.until), null)}`,
        raw.paused.by && `by ${raw.paused.by}`,
        raw.paused.note,
      ]
        .filter(Boolean)
        .join(", "),
    ]);
  if (raw.sla?.breaches?.length) facts.push(["Overdue", raw.sla.breaches.map(breachWords).join("; ")]);
  if (raw.pool)
    facts.push([
      "Pool",
      [
        raw.pool.name,
        plural(raw.pool.slots, "slot"),
        raw.pool.queued?.length
          ? `${raw.pool.queued.length} waiting: ${raw.pool.queued[0].waitingReason ?? ""}`
          : "",
      ]
        .filter(Boolean)
        .join(", "),
    ]);
  if (raw.clusterPolicy)
    facts.push([
      "Runs on",
      raw.clusterPolicy === "EveryNode"
        ? "every node"
        : `${raw.clusterPolicy}${"clusterOwner" in raw ? `, ${raw.clusterOwner ?? "no quorum"}` : ""}`,
    ]);
  if (raw.slot)
    facts.push([
      "Cluster slot",
      raw.slot.held
        ? "held by this node"
        : raw.slot.holder
          ? `held by ${raw.slot.holder.split("#")[0]}`
          : "free",
    ]);
  if (raw.limits)
    facts.push([
      "Limits",
      [
        raw.limits.cpu && `${raw.limits.cpu} CPU`,
        raw.limits.memory_bytes && `${Math.round(raw.limits.memory_bytes / 1048576)} MB`,
        raw.limits.processes && plural(raw.limits.processes, "process", "processes"),
      ]
        .filter(Boolean)
        .join(", "),
    ]);
  if (raw.priority) facts.push(["Priority", raw.priority]);
  return facts;
}
