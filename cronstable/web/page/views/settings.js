// What a person may choose; everything here stays in this browser.

import { choice, h } from "../core/dom.js";

export function openSettings(app, overlays) {
  const { prefs } = app;
  const line = (title, node, hint) =>
    h(
      "div",
      { class: "setting" },
      h("span", { text: title }),
      node,
      hint ? h("span", { class: "faint", text: hint }) : null,
    );
  const pick = (key, title, options, hint) =>
    line(title, choice(title, options, prefs[key], (value) => app.setPref(key, value)).node, hint);
  const check = (key, title, text, onOn) => {
    const box = h("input", {
      type: "checkbox",
      checked: prefs[key],
      on: {
        change: async () => {
          if (box.checked && onOn && !(await onOn())) box.checked = false;
          app.setPref(key, box.checked);
        },
      },
    });
    return line(title, h("label", { class: "check" }, box, text));
  };
  overlays.open({
    title: "Settings",
    kind: "medium",
    id: "settings",
    content: h(
      "div",
      { class: "settings" },
      pick("theme", "Theme", [
        ["auto", "As the system"],
        ["light", "Light"],
        ["dark", "Dark"],
      ]),
      pick(
        "colours",
        "Colours",
        [
          ["standard", "Standard"],
          ["distinct", "Blue and orange"],
          ["contrast", "High contrast"],
        ],
        "Forms differ too, whatever the colours",
      ),
      pick("density", "Rows", [
        ["compact", "Compact"],
        ["regular", "Regular"],
        ["roomy", "Roomy"],
      ]),
      pick("scale", "Size", [
        [100, "100 %"],
        [110, "110 %"],
        [120, "120 %"],
        [140, "140 %"],
      ]),
      pick("motion", "Motion", [
        ["auto", "As the system"],
        ["reduced", "Reduced"],
      ]),
      pick("interval", "Ask the daemon every", [
        [1, "1 s"],
        [2, "2 s"],
        [3, "3 s"],
        [5, "5 s"],
        [10, "10 s"],
        [0, "never"],
      ]),
      check(
        "notify",
        "When a job fails",
        "Notify me on the desktop",
        async () => "Notification" in globalThis && (await Notification.requestPermission()) === "granted",
      ),
      check("sound", "", "Sound an alarm until it is acknowledged (a)"),
      h(
        "div",
        { class: "row" },
        h("button", {
          type: "button",
          class: "button",
          text: app.api.hasToken ? "Change the token…" : "Enter a token…",
          on: { click: () => app.open("token") },
        }),
      ),
    ),
  });
}

export function openColumns(app, overlays, options) {
  const boxes = options.map(([id, title]) => {
    const box = h("input", {
      type: "checkbox",
      checked: app.prefs.columns[id],
      on: { change: () => app.setPref("columns", { ...app.prefs.columns, [id]: box.checked }) },
    });
    return h("label", { class: "check" }, box, title);
  });
  overlays.open({
    title: "Columns",
    kind: "small",
    id: "columns",
    content: h("div", { class: "settings" }, boxes),
  });
}
