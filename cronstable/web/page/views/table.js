// The job table: filter chips, sortable columns, rows that exist only while they can be seen.

import { arrange, h, setAttr, setText, show } from "../core/dom.js";
import { plural } from "../core/time.js";
import { FILTERS, countGroups } from "../model/job.js";
import { createRow } from "./row.js";

// Up to this many rows are all there; beyond, only those near the window.
const WHOLE = 200;
const MARGIN = 8;

const COLUMNS = [
  { id: "state", title: "State", sort: "state" },
  { id: "name", title: "Job", sort: "name" },
  { id: "schedule", title: "Schedule", sort: "schedule" },
  { id: "zone", title: "Zone", option: "Time zone" },
  { id: "last", title: "Last run", sort: "last" },
  { id: "took", title: "Took", sort: "took", right: true },
  { id: "rate", title: "Success", sort: "rate", right: true, option: "Success rate" },
  { id: "next", title: "Next", sort: "next" },
  { id: "next_clock", title: "Next at", sort: "next", option: "Next run, clock" },
  { id: "trend", title: "Last 20 runs" },
  { id: "policy", title: "Policy", option: "Cluster policy" },
  {
    id: "owner",
    title: "Owner",
    sort: "owner",
    option: "Owner",
    when: (state) => state.cluster?.distribution === "spread",
  },
  { id: "act", title: "" },
];

export function createTable(root, app) {
  const { store, prefs } = app;
  const chips = new Map();
  const groups = h("div", { class: "groups", role: "group", "aria-label": "Show jobs by state" });
  const table = h("table", { class: "jobs-table", "aria-label": "Jobs" });
  const head = h("tr");
  const body = h("tbody");
  const above = spacer();
  const below = spacer();
  const foot = h("div", { class: "jobs-foot" });
  const empty = h("div", { class: "empty", hidden: true });
  const rows = new Map();
  let spare = [];
  let columns = [];
  let rowHeight = 0;

  for (const [group, title] of FILTERS) {
    const number = h("span", { class: "number" });
    const chip = h(
      "button",
      {
        type: "button",
        class: "group-chip",
        "aria-pressed": "false",
        data: { group },
        on: { click: () => app.setFilter({ group: store.state.filter.group === group ? "all" : group }) },
      },
      title,
      number,
    );
    chips.set(group, { chip, number });
    groups.append(chip);
  }
  const runFailing = h("button", {
    type: "button",
    class: "button",
    text: "Run all failing…",
    hidden: true,
    on: {
      click: () =>
        app.open("bulk", {
          what: "start",
          names: store.state.jobs.filter((job) => job.failing).map((job) => job.name),
        }),
    },
  });
  const choose = h("button", {
    type: "button",
    class: "button",
    text: "Columns",
    on: { click: () => app.open("columns", OPTIONAL) },
  });
  const worst = h("button", {
    type: "button",
    class: "link",
    text: "Worst first",
    hidden: true,
    on: { click: () => app.setFilter({ sort: "attention", reverse: false }) },
  });
  table.append(h("thead", {}, head), body);
  root.append(
    h(
      "div",
      { class: "panel-bar jobs-bar" },
      groups,
      h("span", { class: "grow" }),
      worst,
      runFailing,
      choose,
    ),
    table,
    empty,
    foot,
  );

  function pickColumns(state) {
    const wanted = COLUMNS.filter(
      (column) => (!column.option || prefs.columns[column.id]) && (!column.when || column.when(state)),
    );
    const key = wanted.map((column) => column.id).join();
    if (key === columns.map((column) => column.id).join()) return;
    columns = wanted;
    head.replaceChildren(...columns.map(headCell));
    for (const row of [...rows.values(), ...spare]) row.node.remove();
    rows.clear();
    spare = [];
    above.firstChild.colSpan = below.firstChild.colSpan = columns.length;
  }

  function headCell(column) {
    const props = {
      class: `c-${column.id}${column.right ? " right" : ""}`,
      scope: "col",
      data: { column: column.id },
    };
    if (!column.sort) return h("th", { ...props, text: column.title });
    return h(
      "th",
      props,
      h("button", { type: "button", text: column.title, on: { click: () => sortBy(column.sort) } }),
    );
  }

  function sortBy(sort) {
    const { filter } = store.state;
    if (filter.sort !== sort) app.setFilter({ sort, reverse: false });
    else if (!filter.reverse) app.setFilter({ reverse: true });
    else app.setFilter({ sort: "attention", reverse: false });
  }

  // Which stretch of the list is on the screen, with a margin.
  function stretch(total) {
    if (total <= WHOLE) return [0, total];
    rowHeight ||= measureRow();
    const top = body.getBoundingClientRect().top;
    const first = Math.floor(-top / rowHeight) - MARGIN;
    const count = Math.ceil(innerHeight / rowHeight) + 2 * MARGIN;
    const from = Math.max(0, Math.min(first, total - count));
    return [from, Math.min(total, from + count)];
  }

  function measureRow() {
    const first = body.querySelector("tr.job");
    if (first) return first.getBoundingClientRect().height;
    return (
      parseFloat(getComputedStyle(root).getPropertyValue("--row")) *
      parseFloat(getComputedStyle(document.documentElement).fontSize)
    );
  }

  function render() {
    const { order } = store.state;
    if (!order) return;
    pickColumns(store.state);
    const [from, to] = stretch(order.length);
    const seen = order.slice(from, to);
    const names = new Set(seen.map((job) => job.name));
    for (const [name, row] of rows) {
      if (names.has(name)) continue;
      rows.delete(name);
      row.node.remove();
      if (spare.length < 60) spare.push(row);
    }
    const now = app.now();
    const nodes = seen.map((job) => {
      let row = rows.get(job.name);
      if (!row) {
        row =
          spare.pop() ??
          createRow(
            app,
            columns.map((column) => column.id),
          );
        rows.set(job.name, row);
      }
      row.update(job, now);
      return row.node;
    });
    setHeight(above, from * rowHeight);
    setHeight(below, (order.length - to) * rowHeight);
    arrange(body, [above, ...nodes, below]);
    setAttr(table, "aria-rowcount", order.length);
    show(table, order.length > 0);
    show(empty, order.length === 0);
    if (!order.length)
      setText(empty, store.state.jobs?.length ? "No job matches the filter." : "No jobs are configured.");
    if (order.length && !app.usable) app.markUsable();
  }

  function tick() {
    const now = app.now();
    for (const row of rows.values()) row.tick(now);
  }

  function bar(state) {
    const { filter, jobs } = state;
    const counts = countGroups(jobs ?? []);
    for (const [group, { chip, number }] of chips) {
      setText(number, counts[group].toLocaleString("en-GB"));
      setAttr(chip, "aria-pressed", String(filter.group === group));
      show(chip, (jobs && group === "all") || counts[group] > 0 || filter.group === group);
    }
    show(runFailing, counts.failing > 1 && app.actions.may("control"));
    show(worst, filter.sort !== "attention");
    for (const cell of head.children) {
      const column = COLUMNS.find((one) => one.id === cell.dataset.column);
      setAttr(
        cell,
        "aria-sort",
        column.sort && column.sort === filter.sort ? (filter.reverse ? "descending" : "ascending") : null,
      );
    }
    const total = jobs?.length ?? 0;
    const listed = state.order?.length ?? 0;
    setText(
      foot,
      !jobs
        ? ""
        : listed === total
          ? plural(total, "job")
          : `${listed.toLocaleString("en-GB")} of ${plural(total, "job")}`,
    );
  }

  function reveal(name) {
    const at = store.state.order?.findIndex((job) => job.name === name) ?? -1;
    if (at < 0) return;
    rowHeight ||= measureRow();
    const sticky = head.getBoundingClientRect().height;
    const top = body.getBoundingClientRect().top + at * rowHeight;
    const over = top + rowHeight - innerHeight;
    // A step of one row scrolls by one row; a jump lands in the middle.
    if (top < sticky)
      scrollBy({ top: top < sticky - 2 * rowHeight ? top - innerHeight / 2 : top - sticky - 8 });
    else if (over > 0) scrollBy({ top: over > 2 * rowHeight ? over + innerHeight / 2 : over + 8 });
  }

  addEventListener(
    "scroll",
    () => {
      if ((store.state.order?.length ?? 0) > WHOLE) render();
    },
    { passive: true },
  );
  addEventListener("resize", () => {
    rowHeight = 0;
    render();
  });
  bar(store.state);
  store.on(["order", "notes", "whoami", "cluster"], (state) => {
    render();
    bar(state);
  });
  store.on(["selected"], (state) => {
    render();
    if (state.reveal) reveal(state.selected);
  });
  store.on(["prefs"], () => {
    rowHeight = 0;
    render();
    bar(store.state);
  });
  store.on(["tick"], tick);
}

const OPTIONAL = COLUMNS.filter((column) => column.option).map((column) => [column.id, column.option]);

function spacer() {
  return h("tr", { class: "gap", "aria-hidden": "true" }, h("td"));
}

function setHeight(row, pixels) {
  const text = `${Math.max(0, Math.round(pixels))}px`;
  if (row.firstChild.style.height !== text) row.firstChild.style.setProperty("height", text);
}
