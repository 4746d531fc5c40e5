// The load of this node over time, gaps shown as gaps.

import { h } from "../core/dom.js";
import { bytes } from "../core/time.js";
import { lineChart } from "./charts.js";
import { numbers } from "./tab-history.js";

export function openNode(app, overlays) {
  const place = h("div", { class: "overlay-body" }, h("p", { class: "empty", text: "Loading…" }));
  let timer = null;

  async function load() {
    try {
      const [history, node] = await Promise.all([app.api.get("/node/history"), app.api.get("/node")]);
      place.replaceChildren(...draw(history, node));
      if (history.enabled) timer = setTimeout(load, Math.max(2, history.interval) * 1000);
    } catch (error) {
      place.replaceChildren(h("p", { class: "empty", text: error.message }));
    }
  }

  function draw({ enabled, interval, points }, { node_name: name, resources, limits }) {
    const facts = [["Node", name]];
    if (resources) {
      facts.push(
        ["CPUs", String(resources.cpu_count)],
        ["Memory", `${bytes(resources.mem_used_bytes)} of ${bytes(resources.mem_total_bytes)}`],
      );
      if (resources.proc_rss_bytes) facts.push(["This daemon", bytes(resources.proc_rss_bytes)]);
    }
    const parts = [numbers(facts)];
    if (enabled) {
      const gap = Math.max(3, interval * 2.5) * 1000;
      const percent = (value) => `${Math.round(value)} %`;
      parts.push(
        lineChart(
          points.map(([at, cpu]) => [at * 1000, cpu]),
          { top: 100, label: "CPU", format: percent, gap },
        ),
        lineChart(
          points.map(([at, , memory]) => [at * 1000, memory]),
          { top: 100, label: "Memory", format: percent, gap },
        ),
      );
    } else
      parts.push(
        h("p", { class: "soft", text: "The daemon keeps no history of its load (web.nodeHistory)." }),
      );
    if (limits && !limits.available && limits.reason)
      parts.push(h("p", { class: "soft", text: `Resource limits are not available: ${limits.reason}` }));
    return parts;
  }

  overlays.open({
    title: "This node",
    kind: "medium",
    content: place,
    id: "node",
    onClose: () => clearTimeout(timer),
  });
  load();
}
