// The panels under the table. Each knows whether it is in use and is not there otherwise.

import { h, show } from "../core/dom.js";

// panels: [{id, title, keys, inUse(state), make(app) -> {node, tools?, update(state)}}]
export function createPanels(root, app, panels) {
  for (const panel of panels) {
    const tools = h("div", { class: "row" });
    const place = h("div");
    const section = h(
      "section",
      { class: "panel", id: `panel-${panel.id}`, "aria-label": panel.title, hidden: true },
      h("div", { class: "panel-bar" }, h("h2", { text: panel.title }), tools),
      place,
    );
    root.append(section);
    let made = null;
    const update = (state) => {
      const used = panel.inUse(state);
      show(section, used);
      if (!used) return;
      if (!made) {
        made = panel.make(app);
        place.append(made.node);
        tools.append(...(made.tools ?? []));
      }
      made.update(state);
    };
    app.store.on(panel.keys, update);
    update(app.store.state);
  }
}
