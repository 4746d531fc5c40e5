// Schedule load: how many starts fall on each minute of the day, and where there is room.

import { choice, h, show } from "../core/dom.js";
import { localZone, plural } from "../core/time.js";
import { palette, paint } from "./strip-draw.js";

const EVERY = 60_000;

export function createLoad(app) {
  const canvas = h("canvas", {
    class: "load-canvas",
    role: "img",
    "aria-label": "Starts by hour and minute",
  });
  const bars = h("canvas", {
    class: "load-bars",
    role: "img",
    "aria-label": "Starts by minute of the hour",
  });
  const words = h("div", { class: "load-words" });
  const tip = h("div", { class: "strip-tip", hidden: true });
  const chart = h("div", { class: "load-chart" }, canvas, bars);
  const node = h("div", { class: "tool split wide-left" }, chart, words, tip);
  let zone = localZone;
  const zones =
    localZone === "UTC"
      ? [["UTC", "UTC"]]
      : [
          [localZone, localZone],
          ["UTC", "UTC"],
        ];
  const tools = [
    choice("Time zone", zones, zone, (value) => {
      zone = value;
      load();
    }).node,
  ];
  let active = false;
  let timer = null;
  let answer = null;

  async function load() {
    clearTimeout(timer);
    if (!active) return;
    const tz = encodeURIComponent(zone);
    try {
      const [pressure, twins, hourly, daily] = await Promise.all([
        app.api.get(`/schedule/pressure?tz=${tz}`),
        app.api.get("/schedule/duplicates"),
        app.api.get(`/schedule/suggest?period=hourly&tz=${tz}`),
        app.api.get(`/schedule/suggest?period=daily&tz=${tz}`),
      ]);
      answer = pressure;
      draw();
      words.replaceChildren(...tell(pressure, twins, hourly, daily));
    } catch (error) {
      words.replaceChildren(h("p", { class: "is-failed", text: error.message }));
    }
    timer = setTimeout(load, EVERY);
  }

  function layout() {
    const width = chart.clientWidth;
    return { width, left: 28, cell: (width - 28) / 60, row: 12 };
  }

  function draw() {
    if (!answer || !active) return;
    const colours = palette(node);
    const { width, left, cell, row } = layout();
    const most = Math.max(1, ...answer.grid.flat());
    paint(canvas, width, 24 * row, (pen) => {
      pen.font = `10px ${getComputedStyle(document.body).fontFamily}`;
      pen.textBaseline = "middle";
      answer.grid.forEach((minutes, hour) => {
        pen.globalAlpha = 1;
        pen.fillStyle = colours.text;
        if (hour % 3 === 0) pen.fillText(String(hour).padStart(2, "0"), 2, hour * row + row / 2);
        minutes.forEach((value, minute) => {
          pen.globalAlpha = value ? 0.08 + 0.72 * (value / most) : 1;
          pen.fillStyle = value ? colours.accent : colours.grid;
          if (value) pen.fillRect(left + minute * cell, hour * row + 1, cell - 1, row - 2);
          else pen.fillRect(left + minute * cell, hour * row + row / 2, cell - 1, 0.75);
        });
      });
      pen.globalAlpha = 1;
    });
    const top = Math.max(1, ...answer.by_minute_fires);
    paint(bars, width, 64, (pen) => {
      pen.font = `10px ${getComputedStyle(document.body).fontFamily}`;
      pen.textAlign = "center";
      answer.by_minute_fires.forEach((value, minute) => {
        pen.fillStyle = colours.strong;
        pen.fillRect(
          left + minute * cell,
          48 - (value / top) * 44,
          cell - 1,
          Math.max(0.75, (value / top) * 44),
        );
        pen.fillStyle = colours.text;
        if (minute % 5 === 0)
          pen.fillText(`:${String(minute).padStart(2, "0")}`, left + (minute + 0.5) * cell, 60);
      });
    });
  }

  function tell(pressure, twins, hourly, daily) {
    const busiest = pressure.busiest_minute;
    const parts = [
      h("p", {
        text: `${plural(pressure.total_fires, "start")} of ${plural(pressure.jobs, "job")} in ${pressure.hours} hours.`,
      }),
    ];
    if (busiest)
      parts.push(
        h("p", {
          text: `Busiest: minute :${String(busiest.minute).padStart(2, "0")}, ${plural(busiest.fires, "start")} of ${plural(busiest.jobs, "job")}.`,
        }),
      );
    parts.push(
      h("p", {
        class: "soft",
        text: pressure.empty_minutes.length
          ? `${plural(pressure.empty_minutes.length, "minute")} of the hour ${pressure.empty_minutes.length === 1 ? "is" : "are"} free.`
          : "No minute of the hour is free.",
      }),
    );
    const slots = [
      ["Room for an hourly job", hourly],
      ["Room for a daily job", daily],
    ];
    for (const [title, suggestion] of slots) {
      parts.push(
        h("h3", { text: title }),
        h(
          "p",
          { class: "row" },
          ...[suggestion.expression, ...suggestion.alternatives.map((one) => one.expression)].map(
            (text, i) =>
              h("button", {
                type: "button",
                class: i ? "link mono" : "button mono",
                text,
                title: "Copy",
                on: { click: () => app.copy(text, "schedule") },
              }),
          ),
        ),
        h(
          "p",
          { class: "soft" },
          "or let the name choose: ",
          h("button", {
            type: "button",
            class: "link mono",
            text: suggestion.hash_hint,
            on: { click: () => app.copy(suggestion.hash_hint, "schedule") },
          }),
        ),
      );
    }
    if (twins.groups.length) {
      parts.push(
        h("h3", { text: "Same schedule" }),
        h(
          "ul",
          { class: "twins" },
          twins.groups.slice(0, 6).map((group) =>
            h(
              "li",
              {},
              h("code", { text: group.expression }),
              h("span", {
                class: "soft",
                text: ` ${plural(group.count, "job")}: ${group.jobs.slice(0, 4).join(", ")}${group.count > 4 ? ", …" : ""}`,
              }),
            ),
          ),
        ),
      );
    }
    return parts;
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const { left, cell, row } = layout();
    const minute = Math.floor((event.clientX - box.left - left) / cell);
    const hour = Math.floor((event.clientY - box.top) / row);
    const value = answer?.grid[hour]?.[minute];
    show(tip, value !== undefined);
    if (value === undefined) return;
    const named = answer.top_cells.find((one) => one.hour === hour && one.minute === minute);
    tip.replaceChildren(
      h("strong", { text: `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}` }),
      h("div", { class: "soft", text: plural(value, "start") }),
      ...(named ? [h("div", { class: "soft", text: named.jobs.join(", ") })] : []),
    );
    tip.style.setProperty("left", `${Math.min(event.clientX + 14, innerWidth - 320)}px`);
    tip.style.setProperty("top", `${event.clientY + 18}px`);
  });
  canvas.addEventListener("pointerleave", () => show(tip, false));
  new ResizeObserver(() => draw()).observe(chart);
  app.store.on(["prefs"], () => draw());
  return {
    node,
    tools,
    setActive(value) {
      active = value;
      if (value) load();
      else clearTimeout(timer);
    },
  };
}
