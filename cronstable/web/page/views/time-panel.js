// The panel above the table: what happened and what is coming, in several drawings.

import { choice, h } from "../core/dom.js";
import { createStrip } from "./strip.js";

export function createTimePanel(root, app, others) {
  const strip = createStrip(app);
  const views = { slots: { title: "Slots", make: () => strip }, ...others };
  const made = { slots: strip };
  const tools = h("div", { class: "row" });
  const place = h("div", { class: "time-place" });
  const tabs = choice(
    "What to draw",
    Object.entries(views).map(([id, view]) => [id, view.title]),
    app.prefs.view,
    open,
  );
  root.append(h("div", { class: "panel-bar" }, tabs.node, h("span", { class: "grow" }), tools), place);

  function open(id) {
    const name = views[id] ? id : "slots";
    app.setPref("view", name);
    tabs.mark(name);
    for (const [other, view] of Object.entries(made)) if (other !== name) view.setActive(false);
    made[name] ??= views[name].make(app);
    tools.replaceChildren(...(made[name].tools ?? []));
    place.replaceChildren(made[name].node);
    made[name].setActive(true);
    return made[name];
  }

  open(app.prefs.view);
  return { open };
}
