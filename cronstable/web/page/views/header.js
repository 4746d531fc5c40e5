// The top line: what this is, which node and job set, the time, whether the page is live.

import { h, icon, iconButton, setAttr, setClass, setText, show } from "../core/dom.js";
import { absolute, clockTime, span } from "../core/time.js";

const INTERVALS = [
  [1, "1 s"],
  [2, "2 s"],
  [3, "3 s"],
  [5, "5 s"],
  [10, "10 s"],
  [0, "paused"],
];

export function createHeader(root, app) {
  const { store, prefs } = app;
  const node = h("button", { type: "button", class: "node", on: { click: () => app.open("node") } });
  const jobSet = h("button", {
    type: "button",
    class: "id",
    on: { click: () => app.copy(store.state.jobSet, "job-set id") },
  });
  const version = h("span", { class: "version" });
  const cpu = meter("cpu");
  const memory = meter("mem");
  const load = h(
    "button",
    {
      type: "button",
      class: "meter",
      "aria-label": "Load of this node",
      hidden: true,
      on: { click: () => app.open("node") },
    },
    cpu.node,
    memory.node,
  );
  const clock = h("time", { class: "clock" });
  const badge = h("button", {
    type: "button",
    class: "badge",
    text: "view only",
    hidden: true,
    title: "Enter a token to do more",
    on: { click: () => app.open("token") },
  });
  const interval = h(
    "select",
    {
      "aria-label": "How often the page asks",
      on: {
        change: () => {
          app.setPref("interval", Number(interval.value));
          app.poller.refresh();
        },
      },
    },
    INTERVALS.map(([value, text]) => h("option", { value, text, selected: value === prefs.interval })),
  );
  const age = h("span");
  const live = h("span", { class: "live" }, h("span", { class: "live-dot" }), age, interval);
  const filter = h("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": "Filter jobs by name or command",
    autocomplete: "off",
    spellcheck: "false",
    on: { input: () => app.setFilter({ text: filter.value }) },
  });
  const search = h("label", { class: "search" }, icon("search"), filter, h("kbd", { text: "/" }));
  root.append(
    h("div", { class: "facts" }, node, jobSet, version),
    h("span", { class: "grow" }),
    badge,
    load,
    clock,
    live,
    search,
    iconButton("more", "Commands (Ctrl K)", () => app.open("palette")),
  );

  function identity(state) {
    setText(node, state.node?.node_name ?? "");
    const id = state.jobSet ?? "";
    setText(jobSet, id.length > 12 ? `${id.slice(0, 11)}…` : id);
    setAttr(jobSet, "title", id && `Job set ${id}: copy`);
    setText(version, state.version ?? "");
    const use = state.node?.resources;
    show(load, Boolean(use));
    if (use) {
      cpu.set(use.cpu_percent);
      memory.set(use.mem_percent);
    }
  }

  function tick() {
    const now = app.now();
    setText(clock, `${clockTime(now, "UTC", true)} UTC`);
    setAttr(clock, "title", absolute(now, null));
    const { ok, at, failures, denied } = store.state.conn;
    const old = at ? (Date.now() - at) / 1000 : null;
    const limit = Math.max(6, (prefs.interval || 0) * 3);
    const lost = failures > 1 || denied;
    const state = denied
      ? "lost"
      : lost
        ? "lost"
        : !prefs.interval
          ? "paused"
          : ok && old > limit
            ? "late"
            : "live";
    setAttr(live, "data-state", state);
    const word = denied
      ? "needs a token"
      : lost
        ? `no answer${at ? ` for ${span(old)}` : ""}`
        : state === "paused"
          ? at
            ? `as of ${clockTime(at)},`
            : ""
          : state === "late"
            ? `${span(old)} old`
            : "live";
    setText(age, word);
    setAttr(live, "title", at ? `Last good answer ${absolute(at, null)}` : null);
  }

  store.on(["node", "jobSet", "version"], identity);
  store.on(["tick", "conn", "prefs"], () => {
    tick();
    interval.value = String(prefs.interval);
  });
  store.on(["whoami"], (state) => show(badge, Boolean(state.whoami && !app.actions.may("control"))));
  store.on(["filter"], (state) => {
    if (filter.value !== state.filter.text) filter.value = state.filter.text;
  });
  tick();
  return {
    focusFilter: () => {
      filter.focus();
      filter.select();
    },
    filter,
  };
}

function meter(label) {
  const bar = h("span");
  const box = h("span", { class: "meter-bar" }, bar);
  const number = h("span");
  return {
    node: h("span", {}, label, box, number),
    set(value) {
      setText(number, `${Math.round(value)} %`);
      box.style.setProperty("--part", String(Math.min(1, value / 100)));
      setClass(box, value >= 90 ? "meter-bar high" : "meter-bar");
    },
  };
}
