// The wallboard: the whole screen as tiles, worst first; what does not fit is counted, never a failure.

import { arrange, h, icon, setAttr, setClass, setText } from "../core/dom.js";
import { ago, clockTime, until } from "../core/time.js";
import { exitWords } from "../model/job.js";

const TILE = { width: 250, height: 116 };

export function openWallboard(app, overlays) {
  const { store, prefs } = app;
  const bad = h("span");
  const rest = h("span", { class: "soft" });
  const tally = h("p", { class: "wall-tally" }, bad, "   ", rest);
  const clock = h("time", { class: "wall-clock" });
  const grid = h("div", { class: "wall-grid" });
  const signal = h("div", { class: "wall-signal", text: "NO SIGNAL", hidden: true });
  const tiles = new Map();

  function render() {
    const now = app.now();
    const { jobs, conn } = store.state;
    const limit = Math.max(15, (prefs.interval || 5) * 3) * 1000;
    signal.hidden = Boolean(conn.at && Date.now() - conn.at < limit);
    setText(clock, `${clockTime(now, "UTC", true)} UTC`);
    if (!jobs) return;
    const failing = jobs.filter((job) => job.failing);
    const sorted = jobs
      .filter((job) => job.raw.enabled)
      .sort(
        (a, b) =>
          weight(a) - weight(b) || (a.nextAt ?? Infinity) - (b.nextAt ?? Infinity) || a.index - b.index,
      );
    const room = Math.max(
      1,
      Math.floor(grid.clientWidth / TILE.width) * Math.max(1, Math.floor(grid.clientHeight / TILE.height)),
    );
    const count = Math.max(Math.min(sorted.length, room), failing.length);
    const hidden = sorted.length - count;
    setText(bad, failing.length ? `${failing.length} failing` : "none failing");
    setClass(bad, failing.length ? "is-failed" : "");
    setText(
      rest,
      [
        `${jobs.filter((job) => job.raw.running).length} running`,
        `${jobs.length} jobs`,
        hidden ? `${hidden} not shown` : "",
      ]
        .filter(Boolean)
        .join("   "),
    );
    const shown = sorted.slice(0, count);
    const names = new Set(shown.map((job) => job.name));
    for (const name of tiles.keys()) if (!names.has(name)) tiles.delete(name);
    grid.style.setProperty("--tile", count > room ? `${TILE.width * 0.7}px` : `${TILE.width}px`);
    arrange(
      grid,
      shown.map((job) => {
        const tile = tiles.get(job.name) ?? makeTile();
        tiles.set(job.name, tile);
        fill(tile, job, now, app);
        return tile.node;
      }),
    );
  }

  const off = store.on(["jobs", "tick", "conn"], render);
  overlays.open({
    title: "Wallboard",
    kind: "wall",
    bare: true,
    id: "wallboard",
    content: h(
      "div",
      { class: "wall" },
      h("div", { class: "wall-head" }, tally, h("span", { class: "grow" }), clock),
      grid,
      signal,
    ),
    onClose: () => {
      off();
      app.leaveRoute("#tv");
      if (document.fullscreenElement) document.exitFullscreen();
    },
  });
  document.documentElement.requestFullscreen?.().catch(() => {});
  render();
}

function weight(job) {
  return job.failing
    ? 0
    : job.overdue
      ? 1
      : job.status === "unknown"
        ? 2
        : job.raw.running
          ? 3
          : job.raw.paused
            ? 5
            : 4;
}

function makeTile() {
  const mark = icon("ok");
  const name = h("div", { class: "wall-name" });
  const text = h("div", { class: "wall-text" });
  return {
    mark,
    name,
    text,
    node: h("div", { class: "wall-tile" }, h("div", { class: "row" }, mark, name), text),
  };
}

function fill(tile, job, now, app) {
  const kind = job.failing ? "failed" : job.status;
  setClass(tile.node, `wall-tile tile-${job.overdue && !job.failing ? "warn" : kind}`);
  setClass(tile.mark, `icon is-${kind}`);
  setAttr(tile.mark.firstChild, "href", `#i-${kind}`);
  setText(tile.name, job.name);
  setText(
    tile.text,
    job.failing
      ? `${exitWords(job.raw.last_run)}, ${ago(job.lastAt, now)}`
      : job.raw.running
        ? `running for ${app.runningFor(job)}`
        : job.overdue
          ? "overdue"
          : job.raw.paused
            ? "paused"
            : job.nextAt !== null
              ? until(job.nextAt, now)
              : job.label,
  );
}
