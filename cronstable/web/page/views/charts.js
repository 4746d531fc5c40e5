// Small line charts and bars as SVG, with a scale that is written down.

import { h, s } from "../core/dom.js";
import { clockTime } from "../core/time.js";

const WIDTH = 600;
const HEIGHT = 96;

// points: [[ms, value]...] ascending; a pause longer than gap is drawn as a gap.
export function lineChart(points, { top, format, label, gap }) {
  const highest = top ?? niceTop(Math.max(...points.map((point) => point[1]), 0));
  const from = points[0]?.[0] ?? 0;
  const to = points[points.length - 1]?.[0] ?? 1;
  const x = (at) => (to > from ? ((at - from) / (to - from)) * WIDTH : WIDTH / 2);
  const y = (value) => HEIGHT - (Math.min(value, highest) / (highest || 1)) * (HEIGHT - 4) - 2;
  let path = "";
  let before = null;
  for (const [at, value] of points) {
    path +=
      before === null || (gap && at - before > gap)
        ? `M${x(at).toFixed(1)} ${y(value).toFixed(1)}`
        : `L${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    before = at;
  }
  const latest = points[points.length - 1];
  return h(
    "figure",
    { class: "chart" },
    h(
      "figcaption",
      { class: "row" },
      h("span", { text: label }),
      h("span", { class: "grow" }),
      latest ? h("strong", { text: format(latest[1]) }) : null,
    ),
    points.length > 1
      ? s(
          "svg",
          {
            viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
            preserveAspectRatio: "none",
            role: "img",
            "aria-label": `${label}: now ${format(latest[1])}, scale to ${format(highest)}`,
          },
          s("path", {
            class: "grid",
            d: `M0 ${HEIGHT / 2}H${WIDTH}M0 1H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`,
          }),
          s("path", { class: "line", d: path }),
        )
      : h("p", { class: "empty", text: "Not enough samples yet." }),
    points.length > 1
      ? h(
          "div",
          { class: "row faint chart-scale" },
          clockTime(from, null, true),
          h("span", { class: "grow" }),
          `0 to ${format(highest)}`,
          h("span", { class: "grow" }),
          clockTime(to, null, true),
        )
      : null,
  );
}

// One bar for each run: height is duration, form and colour say how it ended.
export function runBars(runs, { status, title, onPick }) {
  const longest = Math.max(...runs.map((run) => run.duration ?? 0), 0.001);
  return h(
    "div",
    { class: "run-bars" },
    runs.map((run) =>
      h(
        "button",
        {
          type: "button",
          class: `run-bar is-${status(run)}`,
          title: title(run),
          "aria-label": title(run),
          style: { "--tall": String(Math.max(0.06, (run.duration ?? 0) / longest)) },
          on: { click: () => onPick?.(run) },
        },
        h("span"),
      ),
    ),
  );
}

function niceTop(value) {
  if (value <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * size).find((step) => step >= value) ?? value;
}
