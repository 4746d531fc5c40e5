// How the strip looks: axis, marks, colours. Pure drawing, no state.

import { clockTime, shortDate } from "../core/time.js";
import { offsetAt } from "../model/zones.js";

const STEPS = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((minutes) => minutes * 60_000);

// What is worse hides what is better where marks fall on one another.
const WEIGHT = {
  failed: 9,
  missed: 8,
  cancelled: 7,
  unknown: 6,
  running: 5,
  open: 4,
  skipped: 3,
  ok: 2,
  ran: 1,
  merged: 0,
};

export function palette(node) {
  const style = getComputedStyle(node);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ok: of("ok"),
    failed: of("bad"),
    cancelled: of("warn"),
    unknown: of("off"),
    skipped: of("off"),
    missed: of("warn"),
    merged: of("off"),
    open: of("accent"),
    running: of("accent"),
    ran: of("line-strong"),
    accent: of("accent"),
    future: of("future"),
    grid: of("line"),
    text: of("faint"),
    strong: of("soft"),
    surface: of("surface"),
  };
}

// Draw on a canvas at the resolution of the screen, sizing it when needed.
export function paint(canvas, width, height, draw) {
  const ratio = devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const t = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
    canvas.style.setProperty("width", `${width}px`);
    canvas.style.setProperty("height", `${height}px`);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  draw(pen);
}

// Times to label, at round local times, about one each 80 pixels.
export function axisTicks({ from, to }, width, zone) {
  const step = STEPS.find((size) => (size / (to - from)) * width >= 74) ?? STEPS[STEPS.length - 1];
  const offset = offsetAt(zone, from);
  const ticks = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) {
    const midnight = clockTime(at, zone) === "00:00";
    ticks.push({
      at,
      text: midnight || step >= 86400_000 ? shortDate(at, zone) : clockTime(at, zone),
      strong: midnight,
    });
  }
  return ticks;
}

export function drawAxis(pen, ticks, { x, width, height, colours, font, now, label }) {
  pen.font = font;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  const middle = x(now);
  for (const { at, text, strong } of ticks) {
    const where = x(at);
    if (Math.abs(where - middle) < 44 || where < label + 16 || where > width - 20) continue;
    pen.fillStyle = strong ? colours.strong : colours.text;
    pen.fillText(text, where, height / 2);
  }
  pen.fillStyle = colours.accent;
  pen.fillText("now", middle, height / 2);
}

export function drawRow(pen, { past, future }, { top, height, x, left, right, colours, now }) {
  const middle = top + height / 2;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, right - left, height);
  pen.clip();
  drawFuture(pen, future, { x, middle, colours, from: x(now) + 4 });
  for (const mark of thinned(past, x)) drawMark(pen, mark, { middle, height, colours });
  pen.restore();
}

// Marks closer than a few pixels become one, which looks like the worst of them.
function thinned(past, x) {
  const kept = [];
  for (const mark of past) {
    const from = x(mark.at);
    const to = Math.max(from + 2.5, x(mark.end));
    const before = kept[kept.length - 1];
    if (before && from < before.from + 3.5 && to - from < 8 && before.to - before.from < 8) {
      if (WEIGHT[mark.kind] > WEIGHT[before.kind]) before.kind = mark.kind;
      before.to = Math.max(before.to, Math.min(to, before.from + 2.5));
    } else kept.push({ from, to, kind: mark.kind });
  }
  return kept;
}

function drawMark(pen, { from, to, kind }, { middle, height, colours }) {
  const full = Math.round(height * 0.68);
  const usual = Math.round(height * 0.44);
  const colour = colours[kind] ?? colours.unknown;
  pen.fillStyle = colour;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.2;
  const width = to - from;
  if (kind === "failed") return bar(pen, from, middle - full / 2, width, full);
  if (kind === "cancelled") return bar(pen, from, middle, width, usual / 2);
  if (kind === "merged") return bar(pen, from, middle + usual / 2 - 2, width, 2);
  if (kind === "skipped" || kind === "missed" || kind === "open" || kind === "unknown") {
    const wide = Math.max(width, 5);
    outline(pen, from - (wide - width) / 2, middle - usual / 2, wide, usual);
    if (kind !== "missed") return;
    pen.beginPath();
    pen.moveTo(from + width / 2 - wide / 2, middle + usual / 2);
    pen.lineTo(from + width / 2 + wide / 2, middle - usual / 2);
    pen.stroke();
    return;
  }
  bar(pen, from, middle - usual / 2, width, usual);
}

function drawFuture(pen, future, { x, middle, colours, from }) {
  const tall = 5;
  pen.strokeStyle = colours.future;
  pen.fillStyle = colours.future;
  pen.lineWidth = 1;
  let last = -Infinity;
  let bandStart = null;
  for (const at of future) {
    const where = x(at);
    if (where < from) continue;
    if (where - last < 7) {
      bandStart ??= last;
      last = where;
      continue;
    }
    if (bandStart !== null) band(pen, bandStart, last, middle, tall);
    else if (last > 0) ring(pen, last, middle);
    bandStart = null;
    last = where;
  }
  if (bandStart !== null) band(pen, bandStart, last, middle, tall);
  else if (last > 0) ring(pen, last, middle);
}

// Fires too close to tell apart: one long outline.
function band(pen, from, to, middle, tall) {
  outline(pen, from - 2, middle - tall / 2, to - from + 4, tall);
}

function ring(pen, where, middle) {
  pen.beginPath();
  pen.arc(where, middle, 2.1, 0, 2 * Math.PI);
  pen.stroke();
}

function bar(pen, left, top, width, height) {
  pen.beginPath();
  pen.roundRect(left, top, width, height, Math.min(1.5, width / 2));
  pen.fill();
}

function outline(pen, left, top, width, height) {
  pen.beginPath();
  pen.roundRect(left + 0.5, top + 0.5, Math.max(1, width - 1), Math.max(1, height - 1), 1.5);
  pen.stroke();
}
