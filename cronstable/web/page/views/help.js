// The keys, as a list.

import { h } from "../core/dom.js";

const KEYS = [
  ["/", "Filter the jobs"],
  ["j  k", "Next, previous job"],
  ["Enter", "Open the job"],
  ["l", "Open its log"],
  ["r", "Run it"],
  ["x", "Stop it (press twice)"],
  ["p", "Pause for an hour, or resume"],
  ["c", "Copy its command"],
  ["g", "Ask the daemon now"],
  ["i", "Timeline of latest runs"],
  ["m", "Live logs of several jobs"],
  ["w", "Wallboard"],
  ["a", "Acknowledge the alarm"],
  ["t", "Next set of colours"],
  ["T", "Light or dark"],
  ["Ctrl K", "Commands"],
  ["?", "This list"],
  ["Esc", "Close what is open"],
];

export function openHelp(overlays) {
  overlays.open({
    title: "Keys",
    kind: "medium",
    id: "help",
    content: h(
      "dl",
      { class: "keys" },
      KEYS.map(([keys, text]) =>
        h(
          "div",
          {},
          h(
            "dt",
            {},
            keys.split("  ").map((key) => h("kbd", { text: key })),
          ),
          h("dd", { text }),
        ),
      ),
    ),
  });
}
