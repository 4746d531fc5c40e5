// What reaches a person who looks elsewhere: the tab title, desktop notices, an alarm with acknowledgement.

import { exitWords } from "../model/job.js";
import { until } from "../core/time.js";
import { verdict } from "../model/verdict.js";

const ALARM_EVERY = 30_000;
const LOUDER_AFTER = 5 * 60_000;

export function createAlerts(app) {
  const { store, prefs } = app;
  let known = null;
  let alarmSince = null;
  let lastBeep = 0;
  let audio = null;

  function title(state) {
    const now = app.now();
    const base = state.node?.node_name ? `${state.node.node_name} · cronstable` : "cronstable";
    if (state.conn.failures > 1) return `no signal · ${base}`;
    if (!state.jobs) return base;
    if (clusterTrouble(state.cluster)) return `cluster! · ${base}`;
    const facts = verdict(state.jobs, now);
    if (facts.failing.length) return `${facts.failing.length} failing · ${base}`;
    if (facts.overdue.length) return `${facts.overdue.length} overdue · ${base}`;
    if (facts.running.length) return `${facts.running.length} running · ${base}`;
    return facts.next ? `ok, next ${until(facts.next.nextAt, now)} · ${base}` : base;
  }

  function watch(state) {
    if (!state.jobs) return;
    const failing = new Map(state.jobs.filter((job) => job.failing).map((job) => [job.name, job]));
    if (known) {
      const fresh = [...failing.values()].filter((job) => known.get(job.name) !== job.lastAt);
      if (fresh.length) tell(fresh);
    }
    known = new Map([...failing].map(([name, job]) => [name, job.lastAt]));
    if (!failing.size) alarmSince = null;
  }

  function tell(jobs) {
    if (prefs.notify && globalThis.Notification?.permission === "granted" && document.hidden) {
      const text = jobs
        .slice(0, 4)
        .map((job) => `${job.name} (${exitWords(job.raw.last_run)})`)
        .join(", ");
      const notice = new Notification(jobs.length === 1 ? "A job failed" : `${jobs.length} jobs failed`, {
        body: text,
        tag: "cronstable-failing",
      });
      notice.onclick = () => {
        focus();
        app.openJob(jobs[0].name, "log");
      };
    }
    if (prefs.sound) {
      alarmSince ??= Date.now();
      beep();
    }
  }

  // Two short tones; higher and more often once nobody has acknowledged for a while.
  function beep() {
    lastBeep = Date.now();
    audio ??= new AudioContext();
    const late = alarmSince !== null && Date.now() - alarmSince > LOUDER_AFTER;
    for (const [i, pitch] of (late ? [880, 660, 880] : [660, 520]).entries()) {
      const tone = audio.createOscillator();
      const gain = audio.createGain();
      const at = audio.currentTime + i * 0.18;
      tone.frequency.value = pitch;
      gain.gain.setValueAtTime(late ? 0.3 : 0.12, at);
      gain.gain.exponentialRampToValueAtTime(0.001, at + 0.16);
      tone.connect(gain).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.17);
    }
  }

  store.on(["jobs"], watch);
  store.on(["jobs", "conn", "cluster", "node", "tick"], (state) => {
    const wanted = title(state);
    if (document.title !== wanted) document.title = wanted;
    if (alarmSince === null || !prefs.sound) return;
    const wait = Date.now() - alarmSince > LOUDER_AFTER ? ALARM_EVERY / 3 : ALARM_EVERY;
    if (Date.now() - lastBeep > wait) beep();
  });
  return {
    acknowledge() {
      if (alarmSince === null) return app.toast("No alarm is sounding");
      alarmSince = null;
      app.toast("Alarm acknowledged");
    },
  };
}

// The worst thing that the cluster view says, in words, or an empty text.
export function clusterTrouble(cluster) {
  if (!cluster?.enabled) return "";
  if (cluster.conflict_names?.length)
    return `Two nodes are called ${cluster.conflict_names.join(", ")}: Leader jobs stand down until one is renamed.`;
  if (cluster.size_conflict)
    return `The nodes disagree about the size of the cluster (${cluster.conflicting_sizes.join(", ")}): Leader jobs stand down.`;
  if (cluster.policy_conflict)
    return `The nodes disagree about the cluster policy (${cluster.conflicting_policies.join(", ")}): Leader jobs stand down.`;
  if (cluster.conflict) return "The cluster has a conflict: Leader jobs stand down.";
  if (cluster.quorate === false) {
    return cluster.backend === "gossip"
      ? `No quorum: fewer than ${cluster.quorum} of ${cluster.cluster_size} nodes agree, so Leader jobs do not run here.`
      : `The ${cluster.backend} lease store does not answer, so Leader jobs do not run here.`;
  }
  return "";
}
