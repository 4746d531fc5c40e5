// Puts the page together: store, poller, views, keys.

import { createActions } from "./core/actions.js";
import { createApi } from "./core/api.js";
import { copyText, h, setText, show } from "./core/dom.js";
import { createStore } from "./core/store.js";
import { createPoller } from "./core/poll.js";
import { applyPrefs, loadPrefs, savePrefs } from "./core/prefs.js";
import { jobRoute, readRoute, writeRoute } from "./core/route.js";
import { span } from "./core/time.js";
import { select } from "./model/job.js";
import { createSlotBook, runningStart } from "./model/slots.js";
import { clusterTrouble, createAlerts } from "./views/alerts.js";
import { openBulk } from "./views/bulk.js";
import { createCheck } from "./views/check.js";
import { clusterPanel } from "./views/cluster.js";
import { createDrawer } from "./views/drawer.js";
import { createHeader } from "./views/header.js";
import { createHeatmap } from "./views/heatmap.js";
import { openHelp } from "./views/help.js";
import { createKeys } from "./views/keys.js";
import { openLiveLogs } from "./views/livelogs.js";
import { createLoad } from "./views/load.js";
import { openNode } from "./views/node.js";
import { createOverlays } from "./views/overlay.js";
import { openPalette } from "./views/palette.js";
import { createPanels } from "./views/panels.js";
import { poolsPanel } from "./views/pools.js";
import { openColumns, openSettings } from "./views/settings.js";
import { probeState, showState, statePanel } from "./views/state.js";
import { createTable } from "./views/table.js";
import { createTimePanel } from "./views/time-panel.js";
import { openTimeline } from "./views/timeline.js";
import { openToken } from "./views/token.js";
import { createUpcoming } from "./views/upcoming.js";
import { createVerdict } from "./views/verdict.js";
import { openWallboard } from "./views/wallboard.js";
import { createWeek } from "./views/week.js";

const COLOURS = ["standard", "distinct", "contrast"];
const OPENERS = {
  token: openToken,
  palette: openPalette,
  settings: openSettings,
  timeline: openTimeline,
  livelogs: openLiveLogs,
  bulk: openBulk,
  node: openNode,
  wallboard: openWallboard,
  columns: openColumns,
  help: (app, overlays) => openHelp(overlays),
};

const byId = (id) => document.getElementById(id);

function start() {
  const prefs = loadPrefs();
  applyPrefs(prefs);
  const store = createStore({
    jobs: null,
    byName: new Map(),
    order: null,
    selected: null,
    reveal: false,
    instance: "",
    filter: { text: "", group: "all", sort: "attention", reverse: false },
    conn: { ok: false, at: 0, failures: 0, denied: false, reason: "" },
    whoami: null,
    node: null,
    cluster: null,
    pools: null,
    durable: null,
    version: "",
    jobSet: "",
    announcement: "",
  });
  const api = createApi(
    () => {
      if (overlays.id !== "token") app.open("token", { asked: true });
    },
    (instance) => {
      if (store.state.instance && store.state.instance !== instance) slots.restart();
      store.set("instance", instance);
    },
  );
  const slots = createSlotBook(api, () => store.touch("slots"));
  const poller = createPoller(api, store, slots, prefs);
  const overlays = createOverlays(byId("overlays"));
  const app = { store, api, slots, poller, prefs, overlays, now: poller.now, usable: false };
  app.actions = createActions(api, store, poller);
  Object.assign(app, behaviour(app));

  store.on(["jobs", "filter"], (state) => {
    if (state.jobs) store.set("order", select(state.jobs, state.filter));
  });
  const header = createHeader(byId("header"), app);
  app.focusFilter = header.focusFilter;
  createVerdict(byId("verdict"), app);
  createTable(byId("jobs"), app);
  const time = createTimePanel(byId("time"), app, {
    upcoming: { title: "Upcoming", make: createUpcoming },
    heatmap: { title: "Heat map", make: createHeatmap },
    week: { title: "Week", make: createWeek },
    load: { title: "Load", make: createLoad },
    check: { title: "Check", make: createCheck },
  });
  app.openView = (id) => {
    time.open(id);
    scrollTo({ top: 0 });
  };
  createPanels(byId("panels"), app, [clusterPanel, poolsPanel, statePanel]);
  probeState(app);
  app.drawer = createDrawer(app, byId("overlays"));
  app.alerts = createAlerts(app);
  createKeys(app);
  alertBar(app);
  store.on(["announcement"], (state) => setText(byId("announce"), state.announcement));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    applyPrefs(prefs);
    store.touch("prefs");
  });
  addEventListener("hashchange", () => follow(app));
  setInterval(() => store.touch("tick"), 1000);
  const off = store.on(["jobs"], () => {
    off();
    follow(app);
  });
  poller.refresh();
}

// What views ask of the page as a whole.
function behaviour(app) {
  const { store, prefs, overlays } = app;
  return {
    markUsable() {
      app.usable = true;
      performance.mark("usable");
    },
    setPref(key, value) {
      prefs[key] = value;
      savePrefs(prefs);
      applyPrefs(prefs);
      store.touch("prefs");
      if (key === "interval") app.poller.replan();
    },
    nextColours() {
      const next = COLOURS[(COLOURS.indexOf(prefs.colours) + 1) % COLOURS.length];
      app.setPref("colours", next);
      app.toast(`Colours: ${next}`);
    },
    toggleTheme() {
      app.setPref("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    },
    setFilter(change) {
      store.set("filter", { ...store.state.filter, ...change });
    },
    select(name) {
      store.state.reveal = true;
      store.set("selected", name);
      if (app.drawer.name) app.drawer.open(name);
    },
    openJob(name, tab) {
      overlays.close();
      store.state.reveal = false;
      store.set("selected", name);
      const was = app.drawer.name;
      app.drawer.open(name, tab);
      if (!was) app.drawer.focus();
    },
    closeJob() {
      const name = app.drawer.name;
      app.drawer.close();
      writeRoute("");
      document
        .querySelector(`tr.job[data-job="${CSS.escape(name)}"] .job-name`)
        ?.focus({ preventScroll: true });
    },
    noteOpen(name, tab) {
      writeRoute(jobRoute(name, tab));
    },
    leaveRoute(hash) {
      if (location.hash === hash) writeRoute("");
    },
    // "5 min", or "> 5 min" where only a bound is known.
    runningFor(job) {
      const { at, exact } = runningStart(app.slots.known(job.name), job);
      return `${exact ? "" : "> "}${span((app.now() - at) / 1000)}`;
    },
    open(what, options) {
      if (what === "wallboard") writeRoute("#tv");
      OPENERS[what](app, overlays, options);
    },
    async copy(text, what) {
      if (!text) return;
      app.toast((await copyText(text)) ? `Copied the ${what}` : "This browser did not allow copying");
    },
    toast(text) {
      document.querySelector(".toast")?.remove();
      const node = h("div", { class: "toast", role: "status", text });
      (document.querySelector("dialog[open]") ?? document.body).append(node);
      setTimeout(() => node.remove(), 2500);
    },
    commands: () => globalCommands(app),
  };
}

function globalCommands(app) {
  const { prefs } = app;
  const view = (id, text) => ({ text, run: () => app.openView(id) });
  return [
    { text: "Timeline of latest runs", key: "i", run: () => app.open("timeline") },
    { text: "Live logs of several jobs", key: "m", run: () => app.open("livelogs") },
    { text: "Wallboard", key: "w", run: () => app.open("wallboard") },
    view("slots", "Slot strip"),
    view("upcoming", "Upcoming runs"),
    view("heatmap", "Activity heat map"),
    view("week", "Week calendar"),
    view("load", "Schedule load"),
    view("check", "Check a schedule; why did a job not run?"),
    { text: "Show failing jobs only", run: () => app.setFilter({ group: "failing" }) },
    { text: "Show all jobs", run: () => app.setFilter({ group: "all", text: "" }) },
    ...(app.store.state.durable?.enabled ? [{ text: "Durable state", run: showState }] : []),
    { text: "Load of this node", run: () => app.open("node") },
    { text: "Ask the daemon now", key: "g", run: () => app.poller.refresh() },
    {
      text: prefs.interval ? "Stop asking the daemon" : "Ask the daemon every second",
      run: () => app.setPref("interval", prefs.interval ? 0 : 1),
    },
    { text: "Light or dark", key: "T", run: () => app.toggleTheme() },
    { text: "Next set of colours", key: "t", run: () => app.nextColours() },
    { text: "Settings", run: () => app.open("settings") },
    {
      text: app.api.hasToken ? "Change or forget the token" : "Enter a token",
      run: () => app.open("token"),
    },
    { text: "Copy the job-set id", run: () => app.copy(app.store.state.jobSet, "job-set id") },
    { text: "Copy the version", run: () => app.copy(app.store.state.version, "version") },
    ...badge(app),
    { text: "Keys", key: "?", run: () => app.open("help") },
  ].map((entry, i) => ({ rank: 1 - i * 0.01, ...entry }));
}

function badge(app) {
  const badges = app.store.state.whoami?.badges;
  if (!badges) return [];
  const text = `![jobs](${new URL("/badge.svg", location.href).href})`;
  return [
    {
      text: badges.public
        ? "Copy a badge as Markdown"
        : "Copy a badge as Markdown (needs web.badges.public to show)",
      run: () => app.copy(text, "badge"),
    },
  ];
}

function alertBar(app) {
  const bar = h("div", { class: "alert", role: "alert", hidden: true });
  byId("header").after(bar);
  app.store.on(["cluster"], (state) => {
    const text = clusterTrouble(state.cluster);
    setText(bar, text);
    show(bar, Boolean(text));
  });
}

// Do what the address asks for.
function follow(app) {
  const { kind, name, tab } = readRoute();
  if (kind === "job" && app.store.state.byName.has(name)) {
    app.openJob(name, tab || "log");
    app.select(name);
  } else if (kind === "tv") app.open("wallboard");
  else if (kind === "timeline") app.open("timeline");
}

start();
