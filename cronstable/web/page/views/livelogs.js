// The logs of up to four jobs in one pane, each line with the coloured name of its job.

import { h } from "../core/dom.js";
import { followLog } from "./log-follow.js";
import { createLogPane } from "./log-pane.js";

const MOST = 4;

export function openLiveLogs(app, overlays, wanted = []) {
  const pane = createLogPane(app, { label: "live logs" });
  const followed = new Map();
  const chips = h("div", { class: "row" });
  const options = h(
    "datalist",
    { id: "live-jobs" },
    (app.store.state.jobs ?? []).map((job) => h("option", { value: job.name })),
  );
  const input = h("input", {
    type: "text",
    list: "live-jobs",
    placeholder: "Add a job",
    "aria-label": "Add a job",
    on: {
      change: () => {
        if (app.store.state.byName.has(input.value)) add(input.value);
        input.value = "";
      },
    },
  });
  const preset = (text, test) =>
    h("button", {
      type: "button",
      class: "link",
      text,
      on: {
        click: () => {
          for (const name of [...followed.keys()]) remove(name);
          pane.clear();
          app.store.state.jobs
            .filter(test)
            .slice(0, MOST)
            .forEach((job) => add(job.name));
        },
      },
    });

  function add(name) {
    if (followed.has(name) || followed.size >= MOST) return;
    const used = new Set([...followed.values()].map((entry) => entry.index));
    const index = [0, 1, 2, 3].find((number) => !used.has(number));
    const state = h("span", { class: "faint" });
    const chip = h(
      "span",
      { class: `live-chip source-${index}` },
      h("span", { class: "job-name", text: name }),
      state,
      h("button", {
        type: "button",
        class: "link",
        "aria-label": `Leave out ${name}`,
        text: "×",
        on: { click: () => remove(name) },
      }),
    );
    const stop = followLog(
      app,
      name,
      {
        ...pane,
        say: (text) => {
          state.textContent = text;
        },
        separator: (text, run) => pane.separator(`${name}: ${text}`, run),
      },
      { source: { name, index } },
    );
    followed.set(name, { index, stop, chip });
    chips.append(chip);
  }

  function remove(name) {
    followed.get(name)?.stop();
    followed.get(name)?.chip.remove();
    followed.delete(name);
  }

  overlays.open({
    title: "Live logs",
    kind: "full",
    id: "livelogs",
    onClose: () => {
      for (const name of [...followed.keys()]) remove(name);
      pane.destroy();
    },
    content: h(
      "div",
      { class: "overlay-body stretch" },
      h(
        "div",
        { class: "row overlay-bar" },
        chips,
        input,
        options,
        h("span", { class: "grow" }),
        preset("Failing", (job) => job.failing),
        preset("Running", (job) => job.raw.running),
      ),
      pane.node,
    ),
  });
  const first = wanted.length
    ? wanted
    : (app.store.state.jobs ?? []).filter((job) => job.raw.running).map((job) => job.name);
  first.slice(0, MOST).forEach(add);
}
