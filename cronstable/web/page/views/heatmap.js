// The activity heat map: jobs by stretches of time; colour is the worst outcome, strength the number of runs.

import { choice, h, setText, show } from "../core/dom.js";
import { absolute, clockTime, parseInstant, plural, shortDate } from "../core/time.js";
import { outcomeStatus } from "../model/job.js";
import { palette, paint } from "./strip-draw.js";

const SPANS = [
  ["6h", "6 h", 6, 72],
  ["24h", "24 h", 24, 96],
  ["7d", "7 d", 168, 84],
];
const ROWS = 200;
const ROW = 20;
const LABEL = 208;
const WORST = ["ok", "skipped", "unknown", "cancelled", "failed"];

export function createHeatmap(app) {
  const { store } = app;
  const canvas = h("canvas", {
    class: "heat-canvas",
    role: "img",
    "aria-label": "Activity by job and time",
  });
  const names = h("div", { class: "heat-names" });
  const scroll = h("div", { class: "heat-scroll" }, h("div", { class: "heat-body" }, names, canvas));
  const axis = h("div", { class: "heat-axis faint" });
  const said = h("p", { class: "legend", text: "" });
  const tip = h("div", { class: "strip-tip", hidden: true });
  const node = h("div", {}, axis, scroll, said, tip);
  let span = SPANS[1];
  const tools = [
    choice(
      "Span of the heat map",
      SPANS.map(([id, text]) => [id, text]),
      span[0],
      (id) => {
        span = SPANS.find((one) => one[0] === id);
        draw();
      },
    ).node,
  ];
  let active = false;
  let activity = null;
  let timer = null;
  let cells = [];
  let rows = [];

  async function load() {
    clearTimeout(timer);
    if (!active) return;
    const many = (store.state.jobs?.length ?? 0) > ROWS;
    try {
      const text = await app.api.getIfChanged(
        many ? `/activity?limit=50&jobs=${ROWS}&sort=name` : "/activity?limit=50",
      );
      if (text !== null) activity = JSON.parse(text).jobs;
      draw();
    } catch (error) {
      setText(said, error.message);
    }
    timer = setTimeout(load, 10_000);
  }

  function draw() {
    if (!active || !activity || !store.state.order) return;
    const now = app.now();
    const [, , hours, buckets] = span;
    const from = now - hours * 3600_000;
    const step = (now - from) / buckets;
    rows = store.state.order.filter((job) => job.name in activity).slice(0, ROWS);
    cells = rows.map((job) => bucketed(activity[job.name], from, step, buckets));
    names.replaceChildren(
      ...rows.map((job) =>
        h("button", {
          type: "button",
          class: "ellipsis job-name",
          text: job.name,
          on: { click: () => app.openJob(job.name, "history") },
        }),
      ),
    );
    const width = scroll.clientWidth - LABEL - 12;
    const most = Math.max(1, ...cells.flat().map((cell) => cell?.count ?? 0));
    const colours = palette(node);
    paint(canvas, width, rows.length * ROW, (pen) => {
      cells.forEach((row, y) =>
        row.forEach((cell, x) => {
          const left = (x / buckets) * width;
          const wide = width / buckets - 1;
          pen.globalAlpha = !cell
            ? 1
            : cell.worst === "ok"
              ? 0.35 + 0.65 * Math.sqrt(cell.count / most)
              : 0.9;
          pen.fillStyle = cell ? colours[cell.worst] : colours.grid;
          if (cell) pen.fillRect(left, y * ROW + 2, wide, ROW - 4);
          else pen.fillRect(left, y * ROW + ROW / 2, wide, 1);
          if (cell?.worst === "failed") {
            // A failure shows by form too: a notch of the surface in its middle.
            pen.globalAlpha = 1;
            pen.fillStyle = colours.surface;
            pen.fillRect(left + wide / 2 - 1, y * ROW + ROW / 2 - 1, 2, 2);
          }
        }),
      );
      pen.globalAlpha = 1;
    });
    axis.replaceChildren(
      ...[0, 0.25, 0.5, 0.75, 1].map((part) => {
        const at = from + part * (now - from);
        return h("span", { text: part === 1 ? "now" : hours > 24 ? shortDate(at) : clockTime(at) });
      }),
    );
    const left = store.state.order.length - rows.length;
    setText(
      said,
      `${plural(rows.length, "job")}${left > 0 ? `; ${left} more are not drawn (first ${ROWS} by name)` : ""}. Up to 50 runs of each are kept.`,
    );
  }

  function bucketed(runs, from, step, buckets) {
    const row = Array(buckets).fill(null);
    for (const run of runs) {
      const at = parseInstant(run.finished_at);
      const x = Math.floor((at - from) / step);
      if (x < 0 || x >= buckets) continue;
      const status = outcomeStatus(run.outcome);
      const cell = (row[x] ??= { count: 0, worst: "ok", failed: 0 });
      cell.count += 1;
      if (status === "failed") cell.failed += 1;
      if (WORST.indexOf(status) > WORST.indexOf(cell.worst)) cell.worst = status;
    }
    return row;
  }

  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * span[3]);
    const y = Math.floor((event.clientY - box.top) / ROW);
    return { job: rows[y], cell: cells[y]?.[x], x };
  }

  canvas.addEventListener("pointermove", (event) => {
    const { job, cell, x } = cellAt(event);
    show(tip, Boolean(job && cell));
    if (!job || !cell) return;
    const step = (span[2] * 3600_000) / span[3];
    const start = app.now() - span[2] * 3600_000 + x * step;
    tip.replaceChildren(
      h("strong", { text: job.name }),
      h("div", {
        class: "soft",
        text: `${plural(cell.count, "run")}${cell.failed ? `, ${cell.failed} failed` : ""}`,
      }),
      h("div", { class: "soft", text: `from ${absolute(start, null)}` }),
    );
    tip.style.setProperty("left", `${Math.min(event.clientX + 14, innerWidth - 320)}px`);
    tip.style.setProperty("top", `${event.clientY + 18}px`);
  });
  canvas.addEventListener("pointerleave", () => show(tip, false));
  canvas.addEventListener("click", (event) => {
    const { job } = cellAt(event);
    if (job) app.openJob(job.name, "history");
  });
  new ResizeObserver(() => draw()).observe(scroll);
  store.on(["prefs", "filter", "order"], (state, changed) => {
    if (active && (!rows.length || changed.has("prefs") || changed.has("filter"))) draw();
  });
  return {
    node,
    tools,
    setActive(value) {
      active = value;
      show(tip, false);
      if (value) load();
      else clearTimeout(timer);
    },
  };
}
