// Dialogs over the page: one at a time, closed by Esc, the cross or a press outside.

import { h, iconButton } from "../core/dom.js";

export function createOverlays(root) {
  let current = null;

  function close() {
    current?.node.close();
  }

  // Show content in a dialog; returns {close}. kind: a class that sets its size.
  function open({ title, kind = "", content, tools = [], onClose, bare = false, id = "" }) {
    close();
    const node = h(
      "dialog",
      { class: `overlay ${kind}`.trim(), "aria-label": title },
      bare
        ? null
        : h(
            "div",
            { class: "overlay-head" },
            h("h2", { text: title, tabindex: "-1", autofocus: true }),
            h("span", { class: "grow" }),
            tools,
            iconButton("close", "Close (Esc)", () => node.close()),
          ),
      content,
    );
    const entry = { node, id };
    node.addEventListener("close", () => {
      node.remove();
      if (current === entry) current = null;
      onClose?.();
    });
    node.addEventListener("pointerdown", (event) => {
      if (event.target === node) node.close();
    });
    root.append(node);
    current = entry;
    node.showModal();
    return { close: () => node.close() };
  }

  return {
    open,
    close,
    get id() {
      return current?.id ?? "";
    },
    get isOpen() {
      return current !== null;
    },
  };
}
