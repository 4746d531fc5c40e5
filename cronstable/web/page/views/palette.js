// The command palette: everything the page can do, found by a few letters.

import { h, setAttr } from "../core/dom.js";
import { fuzzy } from "../core/text.js";

const MOST = 40;

export function openPalette(app, overlays) {
  const input = h("input", {
    type: "text",
    class: "palette-input",
    placeholder: "Job or command",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-label": "Job or command",
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = h("ul", { class: "palette-list", id: "palette-list", role: "listbox" });
  const content = h("div", {}, input, list);
  const entries = [...app.commands(), ...jobCommands(app)];
  let shown = [];
  let at = 0;

  function find() {
    const needle = input.value.trim().toLowerCase();
    shown = entries
      .map((entry) => [fuzzy(needle, entry.text) + (needle ? 0 : (entry.rank ?? 0)), entry])
      .filter(([score]) => score > 0)
      .sort((a, b) => b[0] - a[0])
      .slice(0, MOST)
      .map(([, entry]) => entry);
    at = 0;
    list.replaceChildren(
      ...shown.map((entry, i) =>
        h(
          "li",
          {
            role: "option",
            id: `palette-${i}`,
            "aria-selected": String(i === 0),
            on: { click: () => choose(entry), pointermove: () => move(i - at) },
          },
          h("span", { class: "ellipsis", text: entry.text }),
          h("span", { class: "grow" }),
          entry.hint ? h("span", { class: "faint", text: entry.hint }) : null,
          entry.key ? h("kbd", { text: entry.key }) : null,
        ),
      ),
    );
    if (!shown.length) list.replaceChildren(h("li", { class: "soft", text: "Nothing like that." }));
    setAttr(input, "aria-activedescendant", shown.length ? "palette-0" : null);
  }

  function move(by) {
    if (!shown.length || !by) return;
    setAttr(list.children[at], "aria-selected", "false");
    at = (at + by + shown.length) % shown.length;
    setAttr(list.children[at], "aria-selected", "true");
    setAttr(input, "aria-activedescendant", `palette-${at}`);
    list.children[at].scrollIntoView({ block: "nearest" });
  }

  function choose(entry) {
    dialog.close();
    entry.run();
  }

  input.addEventListener("input", find);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || (event.ctrlKey && event.key === "n")) move(1);
    else if (event.key === "ArrowUp" || (event.ctrlKey && event.key === "p")) move(-1);
    else if (event.key === "Enter" && shown[at]) choose(shown[at]);
    else return;
    event.preventDefault();
  });
  const dialog = overlays.open({ title: "Commands", kind: "palette", content, bare: true, id: "palette" });
  find();
  input.focus();
}

function jobCommands(app) {
  const control = app.actions.may("control");
  return (app.store.state.jobs ?? []).flatMap((job) =>
    [
      {
        text: job.name,
        hint: job.label,
        rank: job.failing ? 2 : 0,
        run: () => app.openJob(job.name, "log"),
      },
      ...(control
        ? [
            {
              text: `Run ${job.name}`,
              run: () => {
                app.openJob(job.name);
                app.actions.start(job.name);
              },
            },
            job.raw.running
              ? {
                  text: `Stop ${job.name}`,
                  run: () => {
                    app.openJob(job.name);
                    app.actions.cancel(job.name);
                  },
                }
              : null,
            {
              text: `${job.raw.paused ? "Resume" : "Pause"} ${job.name}`,
              run: () => {
                app.openJob(job.name);
                app.actions.togglePause(job);
              },
            },
          ]
        : []),
      { text: `History of ${job.name}`, run: () => app.openJob(job.name, "history") },
    ].filter(Boolean),
  );
}
