// The drawer: what one job is doing, beside the list. The list keeps its place and its keys.

import { choice, h, icon, iconButton, setAttr, setClass, setText, show } from "../core/dom.js";
import { factsOf, fillFacts } from "./facts.js";
import { historyTab } from "./tab-history.js";
import { logTab } from "./tab-log.js";
import { resourcesTab } from "./tab-resources.js";
import { scheduleTab } from "./tab-schedule.js";
import { tagsOf } from "./tags.js";

const TABS = [
  ["log", "Log"],
  ["history", "History"],
  ["schedule", "Schedule"],
  ["resources", "Resources"],
];
const MAKERS = { log: logTab, history: historyTab, schedule: scheduleTab, resources: resourcesTab };
const PAUSES = [
  [900, "15 min"],
  [3600, "1 h"],
  [14400, "4 h"],
  [86400, "1 day"],
  [604800, "7 days"],
];

export function createDrawer(app, root) {
  const { store, actions } = app;
  const use = icon("ok");
  const title = h("h2", { class: "drawer-title", tabindex: "-1" });
  const tags = h("span", { class: "tags row" });
  const command = h("code", { class: "drawer-command" });
  const facts = h("dl", { class: "facts-list" });
  const note = h("p", { class: "drawer-note", role: "status", hidden: true });
  const run = h(
    "button",
    { type: "button", class: "button primary", on: { click: () => actions.start(name) } },
    icon("run"),
    "Run",
  );
  const stopText = h("span", { text: "Stop" });
  const stop = h(
    "button",
    { type: "button", class: "button danger", on: { click: () => actions.cancel(name) } },
    icon("stop"),
    stopText,
  );
  const pauseText = h("span");
  const pause = h(
    "button",
    { type: "button", class: "button", on: { click: pressPause } },
    icon("pause"),
    pauseText,
  );
  const pauseForm = pauseBox();
  const tabs = choice("About this job", TABS, "log", (tab) => openTab(tab));
  const place = h("div", { class: "drawer-place" });
  const node = h(
    "aside",
    { class: "drawer", "aria-label": "Job", hidden: true },
    h(
      "div",
      { class: "drawer-head" },
      h(
        "div",
        { class: "drawer-top" },
        use,
        title,
        tags,
        h("span", { class: "grow" }),
        iconButton("close", "Close (Esc)", () => app.closeJob()),
      ),
      h(
        "div",
        { class: "row drawer-line" },
        command,
        iconButton("copy", "Copy the command (c)", () =>
          app.copy(store.state.byName.get(name)?.raw.command, "command"),
        ),
      ),
      facts,
      h("div", { class: "row drawer-acts" }, run, stop, pause, note),
      pauseForm.node,
    ),
    h("div", { class: "panel-bar drawer-tabs" }, tabs.node),
    place,
  );
  root.append(node);

  let name = null;
  let tab = "log";
  let content = null;

  function open(job, wanted) {
    const fresh = job !== name;
    name = job;
    show(node, true);
    pauseForm.close();
    if (fresh || (wanted && wanted !== tab) || !content) openTab(wanted ?? tab);
    render();
  }

  function openTab(wanted) {
    tab = MAKERS[wanted] ? wanted : "log";
    tabs.mark(tab);
    content?.destroy?.();
    content = MAKERS[tab](app, name);
    place.replaceChildren(content.node);
    content.update?.(store.state.byName.get(name), app.now());
    app.noteOpen(name, tab);
  }

  function close() {
    show(node, false);
    content?.destroy?.();
    content = null;
    name = null;
    place.replaceChildren();
  }

  function render() {
    if (!name) return;
    const job = store.state.byName.get(name);
    setText(title, name);
    setAttr(node, "data-job", name);
    if (!job) {
      setText(note, "The daemon no longer has this job.");
      show(note, true);
      return;
    }
    const now = app.now();
    setClass(use, job.raw.running ? `icon is-${job.status} spin` : `icon is-${job.status}`);
    setAttr(use.firstChild, "href", `#i-${job.status}`);
    setText(command, job.raw.command);
    const wanted = [[job.label, ""], ...tagsOf(job)];
    const key = JSON.stringify(wanted);
    if (tags.dataset.key !== key) {
      tags.dataset.key = key;
      tags.replaceChildren(
        ...wanted.map(([text, kind, hint]) => h("span", { class: `tag ${kind}`, text, title: hint })),
      );
    }
    fillFacts(facts, factsOf(job, app, now));
    const control = actions.may("control");
    show(run, control);
    run.disabled = !job.raw.enabled;
    show(stop, control && job.raw.running);
    setText(stopText, actions.isArmed(name) ? "Press again to stop" : "Stop");
    show(pause, control);
    setText(pauseText, job.raw.paused ? "Resume" : "Pause…");
    const said = actions.noteOf(name);
    show(note, Boolean(said));
    if (said) {
      setText(note, said.text);
      setClass(note, `drawer-note ${said.kind}`);
    }
    content?.update?.(job, now);
  }

  function pressPause() {
    const job = store.state.byName.get(name);
    if (job?.raw.paused) actions.resume(name);
    else pauseForm.toggle();
  }

  function pauseBox() {
    let seconds = 3600;
    const reason = h("input", {
      type: "text",
      placeholder: "Why (optional)",
      maxlength: "500",
      "aria-label": "Why it is paused",
    });
    const length = choice("How long", PAUSES, seconds, (value) => {
      seconds = value;
    });
    const form = h(
      "form",
      {
        class: "row pause-form",
        hidden: true,
        on: {
          submit: (event) => {
            event.preventDefault();
            actions.pause(name, seconds, reason.value);
            form.hidden = true;
          },
        },
      },
      length.node,
      reason,
      h("button", { type: "submit", class: "button", text: "Pause" }),
    );
    return {
      node: form,
      toggle() {
        form.hidden = !form.hidden;
        if (!form.hidden) reason.focus();
      },
      close() {
        form.hidden = true;
      },
    };
  }

  store.on(["jobs", "tick", "notes", "whoami", "slots"], render);
  return {
    open,
    close,
    focus: () => title.focus(),
    get name() {
      return name;
    },
    get tab() {
      return tab;
    },
    openTab,
  };
}
