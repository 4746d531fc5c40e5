// The durable store: what is in it, counted, and how it fares. Asked for only while it is open.

import { choice, h, nameButton, setAttr, setText } from "../core/dom.js";
import { absolute, plural, span } from "../core/time.js";
import { recordTable, table } from "./plain-table.js";
import { numbers } from "./tab-history.js";

const EVERY = 5000;
const SHOWN = 100;

// What each kind is called by people; others go by their own name.
const NAMES = {
  kv: "Keys",
  cursor: "Cursors",
  idem: "Claims",
  dagrun: "Workflow runs",
  artifacts: "Artifacts",
  runs: "Runs",
  logs: "Archived output",
  retries: "Retries",
  inflight: "In flight",
  paused: "Pauses",
  reboot: "Boot markers",
  catchup: "Catch-up",
  "catchup-dag": "Workflow catch-up",
  counters: "Counters",
  manifests: "Manifests",
  slots: "Slot requests",
  meta: "Version stamp",
};
const LOOKED_INTO = ["kv", "cursor", "idem"];

export const statePanel = {
  id: "state",
  title: "Durable state",
  keys: ["durable"],
  inUse: (state) => Boolean(state.durable?.enabled),
  make: (app) => createInspector(app),
};

// Ask whether there is a store: of another daemon, as somebody else, and each time that the poller
// asks who looks, since a reload may add or remove it. The one that is known is not counted for that.
export function probeState(app) {
  let asked = "";
  let by = null;
  const probe = async ({ whoami, instance, jobSet, durable }) => {
    if (!whoami || !jobSet) return;
    const about = JSON.stringify([instance, jobSet, whoami.label, whoami.scopes]);
    const known = about === asked && durable?.enabled;
    if (about === asked && whoami === by) return;
    asked = about;
    by = whoami;
    try {
      if (known) await app.api.get("/state/records?stream=meta&limit=1");
      else app.store.set("durable", await app.api.get("/state"));
    } catch (error) {
      if (known && error.status !== 404) return;
      if (!known) asked = "";
      app.store.set("durable", null);
    }
  };
  app.store.on(["whoami", "instance", "jobSet"], probe);
}

// Go to the panel and look inside.
export function showState() {
  const panel = document.getElementById("panel-state");
  panel.scrollIntoView();
  panel.querySelector('button[aria-expanded="false"]')?.click();
}

function createInspector(app) {
  const node = h("div", { class: "state-place", hidden: true });
  const summary = h("span", { class: "soft" });
  const toggle = h("button", {
    type: "button",
    class: "link",
    text: "Look inside",
    "aria-expanded": "false",
    on: { click: () => (open ? close() : look()) },
  });
  let open = false;
  let timer = null;
  let tab = "overview";
  let scope = null;
  let drawn = "";

  function look() {
    open = true;
    node.hidden = false;
    setText(toggle, "Close");
    setAttr(toggle, "aria-expanded", "true");
    draw(app.store.state.durable);
    load();
  }

  function close() {
    open = false;
    clearTimeout(timer);
    node.hidden = true;
    node.replaceChildren();
    drawn = "";
    scope = null;
    setText(toggle, "Look inside");
    setAttr(toggle, "aria-expanded", "false");
  }

  async function load() {
    clearTimeout(timer);
    try {
      if (!document.hidden) app.store.set("durable", await app.api.get("/state"));
    } catch (error) {
      if (open) node.replaceChildren(h("p", { class: "empty", text: error.message }));
      scope = null;
      drawn = "";
    }
    if (!app.store.state.durable?.enabled) close();
    if (open && app.prefs.interval) timer = setTimeout(load, EVERY);
  }

  function choose(next) {
    tab = next;
    scope = null;
    drawn = "";
    draw(app.store.state.durable);
  }

  async function drill(kind, name) {
    scope = name;
    drawn = "";
    const full = name === "" ? kind : `${kind}/${name}`;
    const documents = LOOKED_INTO.includes(kind);
    const query = encodeURIComponent(full);
    const place = h("div", {}, h("p", { class: "empty", text: "Loading…" }));
    node.querySelector(".state-body")?.replaceChildren(back(kind), place);
    try {
      const answer = await app.api.get(
        documents ? `/state/documents?ns=${query}` : `/state/records?stream=${query}&limit=${SHOWN}`,
      );
      const found = answer.documents ?? answer.records;
      place.replaceChildren(
        h("h3", { text: full }),
        found.length ? recordTable(found) : h("p", { class: "empty", text: "Nothing is there." }),
        answer.truncated ? h("p", { class: "soft", text: "There is more than is shown here." }) : "",
      );
    } catch (error) {
      place.replaceChildren(h("p", { class: "empty", text: error.message }));
    }
  }

  const back = (kind) =>
    h("button", {
      type: "button",
      class: "link",
      text: `Back to ${title(kind)}`,
      on: { click: () => choose(kind) },
    });

  function draw(state) {
    if (!open || scope !== null) return;
    const key = JSON.stringify([tab, state]);
    if (key === drawn) return;
    drawn = key;
    const kinds = [...Object.keys(state.documents), ...Object.keys(state.records)];
    if (tab !== "overview" && !kinds.includes(tab)) tab = "overview";
    const tabs = choice(
      "Parts of the store",
      [["overview", "Overview"], ...kinds.map((kind) => [kind, title(kind)])],
      tab,
      choose,
    );
    const had = document.activeElement?.closest?.(".state-place")
      ? document.activeElement.dataset.value
      : undefined;
    node.replaceChildren(
      facts(state),
      tabs.node,
      h("div", { class: "state-body" }, tab === "overview" ? overview(state, app) : scopes(state, tab)),
    );
    if (had !== undefined) tabs.node.querySelector(`[data-value="${CSS.escape(had)}"]`)?.focus();
  }

  function scopes(state, kind) {
    const group = state.documents[kind] ?? state.records[kind];
    const closed = kind === "logs" || (kind in state.documents && !LOOKED_INTO.includes(kind));
    const hidden = group.streams - group.scopes.length;
    const line = ({ scope: name, count }) =>
      h(
        "tr",
        {},
        h(
          "td",
          {},
          closed
            ? h("span", { class: "job-name", text: name || kind })
            : nameButton(name || kind, () => drill(kind, name)),
        ),
        h("td", { class: "right", text: count.toLocaleString("en-GB") }),
      );
    return [
      kind === "logs"
        ? h("p", { class: "soft", text: "What jobs printed is kept in the store and not shown here." })
        : null,
      table(["Scope", "Count"], group.scopes.map(line), [1]),
      hidden > 0 ? h("p", { class: "soft", text: `and ${plural(hidden, "other scope")}` }) : null,
    ].filter(Boolean);
  }

  return {
    node,
    tools: [summary, toggle],
    update({ durable }) {
      setText(summary, `${durable.view.backend}, ${durable.view.topology}`);
      draw(durable);
    },
  };
}

const title = (kind) => NAMES[kind] ?? kind;

const total = (groups, what) => Object.values(groups).reduce((sum, group) => sum + group[what], 0);

function facts({ view, records, documents, quarantine, enumerable, stats }) {
  const dropped = Object.values(stats.writes?.dropped ?? {}).reduce((sum, count) => sum + count, 0);
  const rows = [
    ["Path", view.path],
    ["Namespace", view.namespace],
    ["Records", `${total(records, "count").toLocaleString("en-GB")} in ${plural(total(records, "streams"), "stream")}`],
    ["Documents", total(documents, "count").toLocaleString("en-GB")],
    ["Set aside", String(quarantine)],
  ];
  if (dropped) rows.push(["Writes lost", String(dropped)]);
  return h(
    "div",
    {},
    numbers(rows),
    enumerable
      ? null
      : h("p", { class: "drawer-note bad", role: "alert", text: "The store cannot be read in full now." }),
  );
}

function overview({ documents, records, leases, stats, node }, app) {
  const now = app.now();
  const ends = (at) => (at * 1000 <= now ? "over" : `in ${span(at - now / 1000)}`);
  const parts = [];
  const kinds = Object.entries({ ...documents, ...records });
  if (kinds.length)
    parts.push(
      h("h3", { text: "What is there" }),
      table(
        ["Kind", "Count", "Scopes"],
        kinds.map(([kind, { count, streams }]) => [
          title(kind),
          count.toLocaleString("en-GB"),
          streams.toLocaleString("en-GB"),
        ]),
        [1, 2],
      ),
    );
  if (node.retries.length)
    parts.push(
      h("h3", { text: "Retries that wait here" }),
      table(
        ["Job", "Attempt", "Next"],
        node.retries
          .slice(0, SHOWN)
          .map((retry) => [retry.job, retry.attempt, absolute(Date.parse(retry.nextRetryAt))]),
        [1],
      ),
    );
  if (node.slots.length)
    parts.push(
      h("h3", { text: "Cluster slots held here" }),
      table(
        ["Job", "Runs", "Fence", "Ends"],
        node.slots.map((slot) => [slot.slot, slot.refs, slot.fence, ends(slot.expiresAt)]),
        [1, 2],
      ),
    );
  if (leases.length)
    parts.push(
      h("h3", { text: "Leases" }),
      table(
        ["Name", "Holder", "Fence", "Ends"],
        leases.map((lease) => [
          lease.name,
          lease.holder,
          lease.fence,
          lease.expired ? "over" : ends(lease.expiresAt),
        ]),
        [2],
      ),
    );
  parts.push(
    h("h3", { text: "Operations since the start" }),
    table(
      ["Operation", "Count", "Errors", "Seconds"],
      Object.entries(stats.ops).map(([name, op]) => [
        name,
        op.count.toLocaleString("en-GB"),
        op.errors,
        op.seconds.toFixed(3),
      ]),
      [1, 2, 3],
    ),
  );
  return parts;
}
