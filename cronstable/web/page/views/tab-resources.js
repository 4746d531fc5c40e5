// The resources tab: CPU and memory of a live instance or of a recorded run.

import { segment } from "../core/api.js";
import { choice, h } from "../core/dom.js";
import { absolute, bytes, clockTime, parseInstant, took } from "../core/time.js";
import { lineChart } from "./charts.js";
import { numbers } from "./tab-history.js";

const EVERY = [
  [1, "1 s"],
  [2, "2 s"],
  [5, "5 s"],
  [10, "10 s"],
];

export function resourcesTab(app, name) {
  const place = h("div");
  const pick = h("select", {
    "aria-label": "Which run",
    on: {
      change: () => {
        chosen = pick.value;
        draw();
      },
    },
  });
  const rate = choice("How often to ask", EVERY, 2, (value) => {
    every = value;
    plan(0);
  });
  const bar = h("div", { class: "row" }, pick, h("span", { class: "grow" }), rate.node);
  const node = h("div", { class: "tab-body" }, bar, place);
  let chosen = null;
  let every = 2;
  let answer = null;
  let timer = null;
  let gone = false;

  async function load() {
    try {
      answer = await app.api.get(`/jobs/${segment(name)}/resources?limit=20`);
      if (!gone) draw();
    } catch (error) {
      if (!gone) place.replaceChildren(h("p", { class: "empty", text: error.message }));
    }
    if (!gone) plan(answer?.live.length ? every : 10);
  }

  function plan(seconds) {
    clearTimeout(timer);
    timer = setTimeout(() => (document.hidden ? plan(seconds || 1) : load()), seconds * 1000);
  }

  function draw() {
    const options = [
      ...answer.live.map((one) => ({
        id: `pid ${one.pid}`,
        label: `Running now, pid ${one.pid}`,
        live: true,
        started: one.started_at,
        series: one.series,
        current: one.current,
      })),
      ...answer.runs
        .slice()
        .reverse()
        .map((run) => ({
          id: String(run.started_at),
          label: `Run of ${absolute(parseInstant(run.started_at), null)}`,
          run,
          series: run.resources?.series ?? [],
        })),
    ];
    bar.hidden = !options.length;
    if (!options.length) {
      place.replaceChildren(
        h("p", {
          class: "empty",
          text: answer.monitored
            ? "No run has been measured yet."
            : "This job is not measured. monitorResources: true in its configuration turns it on.",
        }),
      );
      return;
    }
    const current = options.find((option) => option.id === chosen) ?? options[0];
    const key = options.map((option) => option.id).join();
    if (pick.dataset.key !== key) {
      pick.dataset.key = key;
      pick.replaceChildren(
        ...options.map((option) => h("option", { value: option.id, text: option.label })),
      );
    }
    pick.value = current.id;
    const points = current.series.map(([at, cpu, memory]) => [at * 1000, cpu, memory]);
    const gap = Math.max(5, (answer.interval ?? 1) * 4) * 1000;
    place.replaceChildren(
      totals(current),
      lineChart(
        points.map((point) => [point[0], point[1]]),
        { label: "CPU", format: (value) => `${Math.round(value)} %`, gap },
      ),
      lineChart(
        points.map((point) => [point[0], point[2]]),
        { label: "Memory", format: bytes, gap },
      ),
      trends(answer.runs) ?? "",
    );
  }

  function totals({ live, current, run, started }) {
    if (live)
      return numbers([
        ["Since", clockTime(parseInstant(started), null, true)],
        ["CPU now", current ? `${Math.round(current.cpu_percent)} %` : "–"],
        ["CPU used", current ? took(current.cpu_seconds) : "–"],
        ["Memory", current ? bytes(current.rss_bytes) : "–"],
      ]);
    const used = run.resources ?? {};
    return numbers([
      ["Took", took(run.duration)],
      ["CPU used", took(used.cpu_total_seconds) || "–"],
      ["Peak memory", bytes(used.max_rss_bytes) || "–"],
      ["Samples", String(used.samples ?? 0)],
      ...(run.limits?.memory_bytes ? [["Memory cap", bytes(run.limits.memory_bytes)]] : []),
      ...(run.limits?.cpu ? [["CPU cap", String(run.limits.cpu)]] : []),
    ]);
  }

  function trends(runs) {
    const measured = runs.filter((run) => run.resources && run.started_at);
    if (measured.length < 2) return null;
    const points = (value) =>
      measured.map((run) => [parseInstant(run.started_at), value(run.resources) ?? 0]);
    return h(
      "div",
      {},
      h("h3", { class: "tab-title", text: "From run to run" }),
      lineChart(
        points((used) => used.cpu_total_seconds),
        { label: "CPU used", format: took },
      ),
      lineChart(
        points((used) => used.max_rss_bytes),
        { label: "Peak memory", format: bytes },
      ),
    );
  }

  load();
  return {
    node,
    destroy() {
      gone = true;
      clearTimeout(timer);
    },
  };
}
