// One action for several jobs, one after another, with an answer for each and a way to stop.

import { h, setText } from "../core/dom.js";
import { absolute, plural } from "../core/time.js";
import { exitWords } from "../model/job.js";

export function openBulk(app, overlays, { what, names }) {
  const verb = what === "start" ? "Run" : "Stop";
  const abort = new AbortController();
  const cells = new Map();
  const rows = names.map((name) => {
    const cell = h("span", { class: "soft" });
    cells.set(name, cell);
    return h("li", {}, h("span", { class: "job-name", text: name }), h("span", { class: "grow" }), cell);
  });
  const state = h("span", { class: "soft", role: "status" });
  const go = h("button", {
    type: "button",
    class: "button primary",
    text: `${verb} ${plural(names.length, "job")}`,
    disabled: !names.length,
    on: { click: begin },
  });
  const halt = h("button", {
    type: "button",
    class: "button",
    text: "Abort",
    hidden: true,
    on: {
      click: () => {
        abort.abort();
        setText(state, "aborted");
        halt.hidden = true;
      },
    },
  });
  const copy = h("button", {
    type: "button",
    class: "button",
    text: "Copy a summary",
    on: { click: () => app.copy(summary(app), "summary") },
  });

  async function begin() {
    go.hidden = true;
    halt.hidden = false;
    let done = 0;
    await app.actions.each(
      names,
      what,
      (name, text) => {
        setText(cells.get(name), text);
        done += 1;
        setText(state, `${done} of ${names.length}`);
      },
      abort.signal,
    );
    halt.hidden = true;
  }

  overlays.open({
    title: `${verb} all failing`,
    kind: "medium",
    id: "bulk",
    onClose: () => abort.abort(),
    content: h(
      "div",
      { class: "overlay-body" },
      names.length
        ? h("ul", { class: "bulk-list" }, rows)
        : h("p", { class: "empty", text: "No job is failing." }),
      h("div", { class: "row overlay-bar" }, go, halt, state, h("span", { class: "grow" }), copy),
    ),
  });
}

// The failing jobs as Markdown, for a ticket or a chat.
export function summary(app) {
  const { state } = app.store;
  const failing = (state.jobs ?? []).filter((job) => job.failing);
  const cell = (text) => String(text).replace(/[\\|]/g, "\\$&").replace(/\s+/g, " ");
  const cluster = state.cluster?.enabled
    ? `, cluster of ${state.cluster.cluster_size}${state.cluster.quorate ? "" : " (no quorum)"}`
    : "";
  return [
    `**${failing.length} of ${state.jobs?.length ?? 0} jobs failing** at ${absolute(app.now(), "UTC")}`,
    `on ${state.node?.node_name ?? location.host}, cronstable ${state.version}${cluster}`,
    "",
    "| Job | Ended | Exit | Reason |",
    "|---|---|---|---|",
    ...failing.map(
      (job) =>
        `| ${cell(job.name)} | ${absolute(job.lastAt, "UTC")} | ${cell(exitWords(job.raw.last_run))} | ${cell(job.raw.last_run.fail_reason ?? "")} |`,
    ),
    "",
  ].join("\n");
}
