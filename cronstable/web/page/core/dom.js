// Small helpers that make and change elements. Text goes in as text nodes, never as markup.

import { clean } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

// Make an element. props: class, text, on (events by name), data, style (custom properties and
// single declarations), the rest are attributes; null, undefined and false leave one out.
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

// The same for SVG.
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "text") node.textContent = clean(value);
    else if (name === "on") for (const [type, fn] of Object.entries(value)) node.addEventListener(type, fn);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "style")
      for (const [key, to] of Object.entries(value)) node.style.setProperty(key, to);
    else node.setAttribute(name, value === true ? "" : clean(value));
  }
  const kept = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  node.append(...kept.map((child) => (child instanceof Node ? child : clean(child))));
  return node;
}

// An icon from the symbols in index.html; decoration only, so hidden from assistive software.
export function icon(name, extra = "") {
  return s(
    "svg",
    { class: `icon ${extra}`.trim(), "aria-hidden": "true" },
    s("use", { href: `#i-${name}` }),
  );
}

// A button that reads as the name of a job.
export function nameButton(name, onClick) {
  return h("button", { type: "button", class: "job-name", text: name, on: { click: onClick } });
}

// A button with an icon and a label that is read aloud and shown on hover.
export function iconButton(name, label, onClick, props = {}) {
  return h(
    "button",
    {
      type: "button",
      class: "icon-button",
      "aria-label": label,
      title: label,
      on: { click: onClick },
      ...props,
    },
    icon(name),
  );
}

export function setText(node, value) {
  const text = clean(value);
  if (node.textContent !== text) node.textContent = text;
}

export function setAttr(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else {
    const text = value === true ? "" : clean(value);
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
}

export function setClass(node, name) {
  if (node.getAttribute("class") !== name) node.setAttribute("class", name);
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

// Make the children of parent exactly these nodes, moving as few of them as possible.
export function arrange(parent, nodes) {
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// A row of buttons of which one is chosen. options: [value, label, title?]
export function choice(label, options, current, onChoose) {
  const buttons = options.map(([value, text, title]) =>
    h("button", {
      type: "button",
      class: "choice",
      text,
      title,
      "aria-pressed": String(value === current),
      data: { value: String(value) },
      on: {
        click: () => {
          mark(value);
          onChoose(value);
        },
      },
    }),
  );
  const node = h("div", { class: "choices", role: "group", "aria-label": label }, buttons);
  const mark = (value) => {
    for (const button of buttons)
      setAttr(button, "aria-pressed", String(button.dataset.value === String(value)));
  };
  return { node, mark };
}

// Hand a text to the person as a file.
export function saveText(name, text, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Put a text on the clipboard; says whether that worked. Plain HTTP has only the old way.
export async function copyText(text) {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  const field = h("textarea", { class: "unseen", "aria-hidden": "true" });
  field.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

// Run fn once per frame at most, or soon when the page is hidden and draws no frames.
export function framed(fn) {
  let waiting = false;
  const run = () => {
    waiting = false;
    fn();
  };
  return () => {
    if (waiting) return;
    waiting = true;
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}

// Let the browser draw and handle input before going on.
export function breathe() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve();
    channel.port2.postMessage(null);
  });
}
