// What is due: fires of many jobs, worked out in slices so that no frame waits.

import { breathe } from "../core/dom.js";
import { fires } from "./cron.js";

const SLICE = 8;

// Fires of one job in (from, to]; only the daemon's next one where the page cannot work them out.
export function comingFires(job, from, to, options = {}) {
  if (!job.raw.enabled || job.raw.schedule === "@reboot" || job.raw.never_fires) return [];
  if (job.zone) {
    try {
      return fires(job.raw.schedule_resolved ?? job.raw.schedule, job.zone, from, to, options);
    } catch {
      // A form that this page does not know.
    }
  }
  return job.nextAt !== null && job.nextAt > from && job.nextAt <= to ? [job.nextAt] : [];
}

// The same for all jobs: a list of [job, instants], made with pauses; stopped() ends it early.
export async function allComing(jobs, from, to, options, stopped = () => false) {
  const found = [];
  let began = performance.now();
  for (const job of jobs) {
    found.push([job, comingFires(job, from, to, options)]);
    if (performance.now() - began < SLICE) continue;
    await breathe();
    if (stopped()) return null;
    began = performance.now();
  }
  return found;
}
