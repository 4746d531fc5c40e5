// A pane of output lines: bounded, drawn once per frame, searchable, following its end.

import { framed, h, icon, saveText, setAttr, setClass, setText, show } from "../core/dom.js";
import { clean } from "../core/text.js";
import { clockTime, plural } from "../core/time.js";
import { colourPieces, withoutColour } from "../core/ansi.js";

const KEEP = 5000;
const BLOCK = 100;
const LONGEST = 8000;
const MOST_MARKS = 2000;

export function createLogPane(app, { label, height = null } = {}) {
  const prefs = app.prefs.log;
  let lines = [];
  let waiting = [];
  let count = 0;
  let unseen = 0;
  let following = prefs.follow;
  let query = null;
  let blocks = [];
  let lastTop = 0;

  const search = h("input", {
    type: "search",
    class: "log-search",
    placeholder: "Search the log",
    "aria-label": "Search the log",
    spellcheck: "false",
    on: {
      input: () => look(),
      keydown: (event) => {
        if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
      },
    },
  });
  const regex = check("Regex", false, () => look());
  const only = check("Only matches", false, () => look());
  const hits = h("span", { class: "faint log-hits", role: "status" });
  const list = h("div", {
    class: "log-lines",
    tabindex: "0",
    role: "log",
    "aria-live": "off",
    "aria-label": label ?? "Output",
  });
  const state = h("span", { class: "soft log-state" });
  const resume = h("button", {
    type: "button",
    class: "button log-follow",
    text: "Follow",
    hidden: true,
    on: { click: () => follow(true) },
  });
  const options = h(
    "span",
    { class: "row log-options" },
    ...[
      ["follow", "Follow"],
      ["wrap", "Wrap"],
      ["times", "Times"],
      ["numbers", "Numbers"],
      ["colour", "Colour"],
    ].map(([key, text]) => check(text, prefs[key], (on) => option(key, on), key).node),
  );
  const node = h(
    "div",
    { class: "log-pane" },
    h(
      "div",
      { class: "log-bar" },
      h("label", { class: "search" }, icon("search"), search),
      regex.node,
      only.node,
      hits,
      h("span", { class: "grow" }),
      h("button", {
        type: "button",
        class: "link",
        text: "Save",
        title: "Save the lines to a file",
        on: { click: download },
      }),
      h("button", { type: "button", class: "link", text: "Clear", on: { click: () => clear() } }),
    ),
    list,
    h("div", { class: "log-foot" }, state, h("span", { class: "grow" }), resume, options),
  );
  if (height) list.style.setProperty("height", height);
  looks();

  function check(text, on, onChange, key = null) {
    const box = h("input", { type: "checkbox", checked: on, on: { change: () => onChange(box.checked) } });
    return { node: h("label", { class: "check soft", data: key ? { option: key } : {} }, box, text), box };
  }

  function option(key, on) {
    app.setPref("log", Object.assign(prefs, { [key]: on }));
    if (key === "follow") follow(on);
    looks();
    if (key === "colour") redraw();
  }

  function looks() {
    const names = ["wrap", "times", "numbers"].filter((key) => prefs[key]).map((key) => `with-${key}`);
    setClass(list, ["log-lines", ...names].join(" "));
  }

  const flush = framed(() => {
    if (!waiting.length) return;
    const fresh = waiting;
    waiting = [];
    if (fresh.length > KEEP) fresh.splice(0, fresh.length - KEEP);
    for (const line of fresh) append(line);
    lines.push(...fresh);
    trim();
    if (query) mark();
    if (following) toEnd();
    else {
      unseen += fresh.length;
      footer();
    }
  });

  function append(line) {
    let block = blocks[blocks.length - 1];
    if (!block || block.childElementCount >= BLOCK) {
      block = h("div", { class: "log-block" });
      blocks.push(block);
      list.append(block);
    }
    line.node = draw(line);
    line.block = block;
    if (query) line.node.hidden = only.box.checked && !matches(line);
    block.append(line.node);
  }

  function draw(line) {
    if (line.separator) return h("div", { class: "log-separator", text: line.text });
    const node = h("div", {
      class: `log-line ${streamClass(line.stream)}`,
      data: {
        n: String(line.number),
        t: line.at ? clockTime(line.at, null, true) : "",
      },
    });
    if (line.source)
      node.append(h("span", { class: `log-source source-${line.source.index}`, text: line.source.name }));
    if (line.stream.startsWith("verify")) node.append(h("span", { class: "tag", text: "verify" }));
    const text =
      line.text.length > LONGEST
        ? `${line.text.slice(0, LONGEST)} … (${line.text.length - LONGEST} more)`
        : line.text;
    for (const { text: part, classes, colour } of prefs.colour
      ? colourPieces(text)
      : [{ text: withoutColour(text), classes: "", colour: null }]) {
      if (!classes && !colour) node.append(clean(part));
      else
        node.append(
          h("span", { class: classes || null, text: part, style: colour ? { color: colour } : {} }),
        );
    }
    return node;
  }

  function trim() {
    let extra = lines.length - KEEP;
    if (extra <= 0) return;
    while (extra > 0 && blocks.length > 1) {
      const size = blocks[0].childElementCount;
      blocks.shift().remove();
      lines.splice(0, size);
      extra -= size;
    }
  }

  function redraw() {
    const all = lines;
    list.replaceChildren();
    blocks = [];
    for (const line of all) append(line);
    if (following) toEnd();
    if (query) mark();
  }

  function follow(on) {
    following = on;
    unseen = 0;
    if (on) toEnd();
    footer();
  }

  function toEnd() {
    list.scrollTop = list.scrollHeight;
    lastTop = list.scrollTop;
  }

  function footer() {
    show(resume, !following);
    setText(resume, unseen ? `Follow (${plural(unseen, "new line")})` : "Follow");
    setAttr(node, "data-following", String(following));
  }

  // Only a movement upwards by a person stops following; reaching the end starts it again.
  list.addEventListener(
    "scroll",
    () => {
      const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 6;
      if (atEnd && !following && prefs.follow) follow(true);
      else if (!atEnd && following && list.scrollTop < lastTop - 2) follow(false);
      lastTop = list.scrollTop;
    },
    { passive: true },
  );

  function matches(line) {
    if (line.separator) return true;
    return query.test(clean(withoutColour(line.text)));
  }

  function look() {
    query = null;
    let problem = "";
    if (search.value) {
      try {
        query = new RegExp(
          regex.box.checked ? search.value : search.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
          "i",
        );
      } catch {
        problem = "not a regex";
      }
    }
    for (const line of lines) line.node.hidden = Boolean(query) && only.box.checked && !matches(line);
    mark();
    if (problem) setText(hits, problem);
  }

  let found = [];
  let at = -1;

  // Marks lie over the text; the lines themselves stay as they are.
  function mark() {
    found = query ? lines.filter((line) => !line.separator && matches(line)) : [];
    at = -1;
    setText(hits, query ? plural(found.length, "match", "matches") : "");
    const registry = globalThis.CSS?.highlights;
    if (!registry) return;
    const ranges = [];
    for (const line of found.slice(-MOST_MARKS)) {
      const walker = document.createTreeWalker(line.node, NodeFilter.SHOW_TEXT);
      for (let part = walker.nextNode(); part; part = walker.nextNode()) {
        const hit = query.exec(part.data);
        if (!hit || !hit[0]) continue;
        const range = new Range();
        range.setStart(part, hit.index);
        range.setEnd(part, hit.index + hit[0].length);
        ranges.push(range);
      }
    }
    registry.set("log-match", new Highlight(...ranges));
  }

  function step(direction) {
    if (!found.length) return;
    at = (at + direction + found.length) % found.length;
    follow(false);
    for (const line of lines) line.node.classList.toggle("current", line === found[at]);
    found[at].node.scrollIntoView({ block: "center" });
    setText(hits, `${at + 1} of ${found.length}`);
  }

  function clear() {
    lines = [];
    waiting = [];
    blocks = [];
    list.replaceChildren();
    unseen = 0;
    footer();
    mark();
  }

  function download() {
    const text = [...lines, ...waiting]
      .map((line) =>
        line.separator
          ? `# ${line.text}`
          : [line.source?.name, withoutColour(line.text)].filter(Boolean).join(": "),
      )
      .join("\n");
    saveText(`${(label ?? "log").replace(/[^\w.-]+/g, "_")}.log`, `${text}\n`);
  }

  footer();
  return {
    node,
    clear,
    add(stream, text, { at: when = null, source = null, run = null } = {}) {
      count += 1;
      waiting.push({ stream, text, at: when, source, run, number: count });
      flush();
    },
    separator(text, run = null) {
      waiting.push({ separator: true, text, stream: "", run });
      flush();
    },
    // Take back the lines of a run, because the daemon is about to tell them again.
    drop(run) {
      waiting = waiting.filter((line) => line.run !== run);
      for (const line of lines) if (line.run === run) line.node.remove();
      lines = lines.filter((line) => line.run !== run);
      blocks = blocks.filter((block) => block.childElementCount || (block.remove(), false));
    },
    say(text) {
      setText(state, text);
    },
    focusSearch() {
      search.focus();
    },
    destroy() {
      globalThis.CSS?.highlights?.delete("log-match");
    },
  };
}

function streamClass(stream) {
  return stream.endsWith("stderr") ? "stderr" : "stdout";
}
