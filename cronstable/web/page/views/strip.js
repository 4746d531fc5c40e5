// The slot book, drawn: one row per job, the past left of now and what is due right of it.

import { arrange, choice, h, icon, s, setAttr, setClass, setText, show } from "../core/dom.js";
import { absolute, localZone, took } from "../core/time.js";
import { outcomeWord, exitWords } from "../model/job.js";
import { comingFires } from "../model/coming.js";
import { marks } from "../model/slots.js";
import { axisTicks, drawAxis, drawRow, paint, palette } from "./strip-draw.js";

const MINUTE = 60_000;
const SPANS = [
  [60, "1 h"],
  [360, "6 h"],
  [720, "12 h"],
  [1440, "1 d"],
  [4320, "3 d"],
  [10080, "7 d"],
];
const AXIS_HEIGHT = 26;

export function createStrip(app) {
  const { store, slots, prefs } = app;
  const axis = h("canvas", { class: "strip-axis", "aria-hidden": "true" });
  const canvas = h("canvas", { class: "strip-canvas", "aria-hidden": "true" });
  const names = h("div", { class: "strip-names", role: "listbox", "aria-label": "Jobs on the slot strip" });
  const body = h("div", { class: "strip-body" }, canvas, names);
  const scroll = h("div", { class: "strip-scroll" }, body);
  const tip = h("div", { class: "strip-tip", hidden: true });
  const node = h("div", { class: "strip" }, axis, scroll, legend(), tip);
  const zoom = choice("Span of the strip", SPANS, span(), (minutes) => {
    app.setPref("span", minutes);
    draw();
  });
  const zone = choice(
    "Time zone of the axis",
    [
      ["local", zoneName(), localZone],
      ["UTC", "UTC"],
    ],
    prefs.clock,
    (value) => {
      app.setPref("clock", value);
      draw();
    },
  );
  const rows = [];
  const cache = new Map();
  let shown = [];
  let active = true;
  let colours = null;

  function span() {
    return prefs.span ?? (matchMedia("(max-width: 45rem)").matches ? 60 : 720);
  }

  function frame() {
    const now = app.now();
    const half = (span() / 2) * MINUTE;
    return { now, from: now - half, to: now + half };
  }

  function metrics() {
    const style = getComputedStyle(node);
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const row = parseFloat(style.getPropertyValue("--strip-row")) * rem;
    const label = parseFloat(style.getPropertyValue("--strip-label")) * rem;
    return {
      row,
      label,
      width: scroll.clientWidth,
      font: `${0.75 * rem}px ${getComputedStyle(document.body).fontFamily}`,
    };
  }

  let size = null;

  function measure() {
    size = metrics();
    colours = palette(node);
    cache.clear();
    draw();
  }

  function draw() {
    if (!active || !store.state.order || !node.isConnected) return;
    size ??= metrics();
    colours ??= palette(node);
    const jobs = store.state.order;
    const time = frame();
    body.style.setProperty("height", `${jobs.length * size.row}px`);
    const height = Math.min(scroll.clientHeight || size.row * 11, jobs.length * size.row);
    const first = Math.max(0, Math.floor(scroll.scrollTop / size.row));
    const last = Math.min(jobs.length, Math.ceil((scroll.scrollTop + height) / size.row) + 1);
    shown = jobs.slice(first, last);
    placeNames(first);
    const x = scale(time);
    paint(axis, size.width, AXIS_HEIGHT, (pen) => {
      const zoneNow = prefs.clock === "UTC" ? "UTC" : localZone;
      drawAxis(pen, axisTicks(time, size.width - size.label, zoneNow), {
        ...size,
        height: AXIS_HEIGHT,
        x,
        colours,
        now: time.now,
      });
    });
    paint(canvas, size.width, height, (pen) => {
      for (const tick of axisTicks(
        time,
        size.width - size.label,
        prefs.clock === "UTC" ? "UTC" : localZone,
      )) {
        pen.fillStyle = colours.grid;
        pen.fillRect(Math.round(x(tick.at)), 0, 1, height);
      }
      shown.forEach((job, i) => {
        const top = (first + i) * size.row - scroll.scrollTop;
        drawRow(pen, rowOf(job, time), {
          top,
          height: size.row,
          x,
          left: size.label,
          right: size.width - 8,
          colours,
          now: time.now,
        });
        slots.want(job.name, time.from, time.now);
      });
      pen.fillStyle = colours.accent;
      pen.fillRect(Math.round(x(time.now)) - 0.5, 0, 1.5, height);
    });
    setAttr(canvas, "data-rows", shown.length);
  }

  function scale({ from, to }) {
    const width = size.width - size.label - 8;
    return (at) => size.label + ((at - from) / (to - from)) * width;
  }

  function rowOf(job, { now, from, to }) {
    const found = slots.known(job.name);
    const key = `${found?.revision}|${job.raw.running}|${job.raw.schedule}|${job.nextAt}|${Math.floor(now / 20_000)}|${span()}`;
    const kept = cache.get(job.name);
    if (kept?.key === key) return kept;
    const past = marks(found, job, from, now, now);
    if (past.missing) slots.missedRun(job.name, now);
    const made = {
      key,
      past: past.marks,
      // Beyond an hour the seconds of a minute cannot be told apart.
      future: comingFires(job, now, to, { limit: 6000, coarse: span() > 60 }),
    };
    if (cache.size > 600) cache.clear();
    cache.set(job.name, made);
    return made;
  }

  function placeNames(first) {
    while (rows.length < shown.length) rows.push(nameRow());
    shown.forEach((job, i) => {
      const row = rows[i];
      row.job = job;
      row.node.style.setProperty("transform", `translateY(${(first + i) * size.row}px)`);
      setAttr(row.node, "aria-selected", String(job.name === store.state.selected));
      setText(row.label, job.name);
      setAttr(row.node, "aria-label", `${job.name}: ${job.label}`);
      setClass(row.mark, job.overdue && !job.failing ? "icon is-warn" : `icon is-${job.status}`);
      setAttr(row.mark.firstChild, "href", `#i-${job.status}`);
    });
    arrange(
      names,
      rows.slice(0, shown.length).map((row) => row.node),
    );
  }

  function nameRow() {
    const mark = icon("ok");
    const label = h("span", { class: "ellipsis job-name" });
    const row = { mark, label, job: null };
    row.node = h(
      "div",
      {
        class: "strip-row",
        role: "option",
        on: {
          click: () => app.openJob(row.job.name),
          pointermove: (event) => hover(event, row.job),
          pointerleave: () => show(tip, false),
        },
      },
      h("span", { class: "strip-name" }, mark, label),
    );
    return row;
  }

  function hover(event, job) {
    const left = event.clientX - scroll.getBoundingClientRect().left;
    if (left < size.label) return show(tip, false);
    const time = frame();
    const at = time.from + ((left - size.label) / (size.width - size.label - 8)) * (time.to - time.from);
    const mark = nearest(rowOf(job, time), at, ((time.to - time.from) / (size.width - size.label)) * 7);
    if (!mark) return show(tip, false);
    tip.replaceChildren(
      h("strong", { text: mark.title }),
      ...mark.lines.map((text) => h("div", { class: "soft", text })),
    );
    tip.style.setProperty("left", `${Math.min(event.clientX + 14, innerWidth - 320)}px`);
    tip.style.setProperty("top", `${event.clientY + 18}px`);
    show(tip, true);
  }

  function nearest(row, at, reach) {
    let best = null;
    let distance = reach;
    for (const mark of row.past) {
      const away = at < mark.at ? mark.at - at : at > mark.end ? at - mark.end : 0;
      if (away < distance) [best, distance] = [mark, away];
    }
    let due = null;
    for (const fire of row.future) {
      if (Math.abs(fire - at) < distance) [due, distance] = [fire, Math.abs(fire - at)];
    }
    const zoneOf = prefs.clock === "UTC" ? "UTC" : localZone;
    if (due !== null) return { title: "Due", lines: [absolute(due, zoneOf)] };
    return best && { title: markTitle(best), lines: markLines(best, zoneOf) };
  }

  // The row under the selection comes into view when the selection moves by key.
  function reveal(name) {
    const at = store.state.order?.findIndex((job) => job.name === name) ?? -1;
    if (at < 0 || !size) return;
    const top = at * size.row;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + size.row > scroll.scrollTop + scroll.clientHeight)
      scroll.scrollTop = top + size.row - scroll.clientHeight;
  }

  scroll.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(measure).observe(scroll);
  store.on(["order", "slots", "tick", "selected"], (state, changed) => {
    const quiet = changed.size === 1 && changed.has("tick");
    // A second moves nothing by a pixel at most zooms: draw then only every few seconds.
    if (!quiet || Math.floor(app.now() / 1000) % Math.max(1, Math.floor(span() / 60)) === 0) draw();
    if (changed.has("selected")) reveal(state.selected);
  });
  store.on(["prefs"], measure);
  return {
    node,
    tools: [zone.node, zoom.node],
    setActive(value) {
      active = value;
      if (value) measure();
    },
  };
}

function markTitle({ kind, run, slot }) {
  if (kind === "skipped" || kind === "missed") {
    const many = slot.count > 1 ? ` ${slot.count} times` : "";
    return `${kind === "skipped" ? "Skipped" : "Missed"}${many}: ${slot.reason ?? "no reason given"}`;
  }
  if (kind === "merged") return "Merged into a later slot";
  if (kind === "open") return "Due, not started yet";
  if (kind === "running") return "Running";
  if (kind === "ran") return "Ran";
  const exit = run && run.outcome !== "success" ? exitWords({ ...run, exit_code: run.exitCode }) : "";
  return [outcomeWord(run.outcome), exit].filter(Boolean).join(", ");
}

function markLines({ at, slot, run }, zone) {
  const lines = [];
  if (slot) lines.push(`${slot.count > 1 ? "From slot" : "Slot"} ${absolute(slot.at, zone)}`);
  else lines.push(`Started ${absolute(at, zone)}, not by the timetable`);
  if (slot?.count > 1) lines.push(`to ${absolute(slot.until, zone)}`);
  if (run?.duration !== null && run?.duration !== undefined) lines.push(`Took ${took(run.duration)}`);
  if (run?.reason) lines.push(run.reason);
  return lines;
}

function zoneName() {
  return localZone === "UTC" ? "Local" : localZone.split("/").pop().replace(/_/g, " ");
}

function legend() {
  const item = (text, ...shapes) =>
    h("span", {}, s("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, ...shapes), text);
  const box = (props) => s("rect", { x: 4, y: 3, width: 6, height: 8, rx: 1.5, ...props });
  return h(
    "div",
    { class: "legend" },
    item("ok", box({ fill: "var(--ok)" })),
    item("failed", box({ y: 0.5, height: 13, fill: "var(--bad)" })),
    item("cancelled", box({ y: 6, height: 5, fill: "var(--warn)" })),
    item("skipped", box({ fill: "none", stroke: "var(--off)", "stroke-width": 1.3 })),
    item(
      "missed",
      box({ fill: "none", stroke: "var(--warn)", "stroke-width": 1.3 }),
      s("path", { d: "M4.5 10.5 9.5 3.500", stroke: "var(--warn)", "stroke-width": 1.3 }),
    ),
    item("running", box({ fill: "var(--accent)" })),
    item("ran, result no longer kept", box({ fill: "var(--line-strong)" })),
    item(
      "to come",
      s("circle", { cx: 7, cy: 7, r: 2.4, fill: "none", stroke: "var(--future)", "stroke-width": 1.2 }),
    ),
  );
}
