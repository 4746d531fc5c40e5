// Twenty runs as bars: height is duration, colour and a cap say how it ended.

import { s, setAttr } from "../core/dom.js";
import { outcomeStatus } from "../model/job.js";

const COUNT = 20;
const WIDTH = 5;
const HEIGHT = 24;

export function trend() {
  const paths = {};
  const node = s("svg", {
    class: "trend",
    viewBox: `0 0 ${COUNT * WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
  });
  for (const kind of ["ok", "failed", "cancelled", "other"])
    node.append((paths[kind] = s("path", { class: kind })));
  let shown = null;
  return {
    node,
    update(history, mark) {
      const key = `${history.length}|${mark}|${history[history.length - 1]?.duration}`;
      if (key === shown) return;
      shown = key;
      const list = history.slice(-COUNT);
      const longest = Math.max(...list.map((run) => run.duration ?? 0), 0.001);
      const parts = { ok: "", failed: "", cancelled: "", other: "" };
      list.forEach((run, i) => {
        const status = outcomeStatus(run.outcome);
        const kind = parts[status] === undefined ? "other" : status;
        const tall = Math.max(3, Math.round(((run.duration ?? 0) / longest) * (HEIGHT - 6)) + 2);
        const left = (COUNT - list.length + i) * WIDTH;
        parts[kind] += `M${left} ${HEIGHT}v${-tall}h${WIDTH - 2}v${tall}z`;
        // A failure has a cap above its bar, so that it shows without colour too.
        if (kind === "failed") parts[kind] += `M${left} ${HEIGHT - tall - 3}v-2h${WIDTH - 2}v2z`;
      });
      for (const kind of Object.keys(parts)) setAttr(paths[kind], "d", parts[kind] || null);
      const bad = list.filter((run) => run.outcome === "failure").length;
      setAttr(node, "aria-label", list.length ? `${list.length} runs, ${bad} failed` : "no runs");
    },
  };
}
