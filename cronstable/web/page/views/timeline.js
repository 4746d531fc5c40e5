// The incident timeline: the latest finished run of every job, newest first, with what goes together.

import { arrange, h, icon, nameButton, setText } from "../core/dom.js";
import { absolute, ago, took } from "../core/time.js";
import { exitWords, outcomeStatus, outcomeWord } from "../model/job.js";
import { groupFailures, plainReason } from "../model/verdict.js";
import { summary } from "./bulk.js";

const MOST = 300;

export function openTimeline(app, overlays) {
  const { store } = app;
  const list = h("ol", { class: "timeline" });
  const only = h("input", { type: "checkbox", on: { change: render } });
  only.checked = store.state.jobs?.some((job) => job.failing) ?? false;
  const failing = () => store.state.jobs.filter((job) => job.failing).map((job) => job.name);
  const control = app.actions.may("control");
  const count = h("span", { class: "soft" });
  const bar = h(
    "div",
    { class: "row overlay-bar" },
    h("label", { class: "check" }, only, "Failing only"),
    count,
    h("span", { class: "grow" }),
    h("button", {
      type: "button",
      class: "button",
      text: "Live logs",
      on: { click: () => app.open("livelogs", failing()) },
    }),
    h("button", {
      type: "button",
      class: "button",
      text: "Copy a summary",
      on: { click: () => app.copy(summary(app), "summary") },
    }),
    control
      ? h("button", {
          type: "button",
          class: "button",
          text: "Run all failing…",
          on: { click: () => app.open("bulk", { what: "start", names: failing() }) },
        })
      : null,
    control
      ? h("button", {
          type: "button",
          class: "button",
          text: "Stop all failing…",
          on: { click: () => app.open("bulk", { what: "cancel", names: failing() }) },
        })
      : null,
  );

  function render() {
    const now = app.now();
    const jobs = (store.state.jobs ?? [])
      .filter((job) => job.lastAt !== null && (!only.checked || job.failing))
      .sort((a, b) => b.lastAt - a.lastAt);
    const sets = new Map();
    groupFailures((store.state.jobs ?? []).filter((job) => job.failing))
      .filter((group) => group.likelyOne)
      .forEach((group, i) =>
        group.jobs.forEach((job) =>
          sets.set(job.name, { letter: String.fromCharCode(65 + (i % 26)), size: group.jobs.length }),
        ),
      );
    setText(count, jobs.length > MOST ? `newest ${MOST} of ${jobs.length}` : `${jobs.length}`);
    arrange(
      list,
      jobs.length
        ? jobs.slice(0, MOST).map((job) => entry(job, now, sets.get(job.name)))
        : [h("li", { class: "empty", text: "Nothing to show." })],
    );
  }

  function entry(job, now, set) {
    const run = job.raw.last_run;
    const status = outcomeStatus(run.outcome);
    const reason = plainReason(run.fail_reason, run);
    return h(
      "li",
      { class: set ? "together" : "" },
      h("time", { class: "soft", text: ago(job.lastAt, now), title: absolute(job.lastAt, job.zone) }),
      h("span", { class: `state is-${status}` }, icon(status), outcomeWord(run.outcome)),
      nameButton(job.name, () => {
        overlays.close();
        app.openJob(job.name, "log");
      }),
      set
        ? h("span", {
            class: "tag bad",
            text: `${set.letter}: ${set.size} alike`,
            title: "These ended alike within minutes of each other: likely one cause",
          })
        : null,
      h("span", {
        class: "soft",
        text: [run.outcome === "success" ? "" : exitWords(run), reason, took(run.duration)]
          .filter(Boolean)
          .join(", "),
      }),
    );
  }

  const off = store.on(["jobs"], render);
  render();
  overlays.open({
    title: "Timeline",
    kind: "wide",
    id: "timeline",
    content: h("div", { class: "overlay-body" }, bar, list),
    onClose: off,
  });
}
