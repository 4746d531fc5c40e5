// Tables without anything to press: rows of text, and records of any shape.

import { h } from "../core/dom.js";

// heads; rows of cells or made rows; the numbers of columns whose cells stand to the right.
export function table(heads, rows, right = []) {
  const side = (i) => (right.includes(i) ? "right" : "");
  const made = (row) =>
    row instanceof Node
      ? row
      : h(
          "tr",
          {},
          row.map((text, i) => h("td", { text: String(text), class: side(i) })),
        );
  return h(
    "table",
    { class: "plain" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((text, i) => h("th", { text, scope: "col", class: side(i) })),
      ),
    ),
    h("tbody", {}, rows.map(made)),
  );
}

// Records of any kind: one column for each member that any of them has.
export function recordTable(records) {
  const heads = [...new Set(records.flatMap(Object.keys))];
  return h(
    "div",
    { class: "state-records" },
    table(
      heads,
      records.map((record) =>
        h(
          "tr",
          {},
          heads.map((head) => h("td", { class: "mono", text: cell(head, record[head]) })),
        ),
      ),
    ),
  );
}

const INSTANTS = ["at", "updatedAt", "claimedAt", "expiresAt"];

function cell(head, value) {
  if (value === undefined || value === null) return "";
  // A claim may be meant to last longer than there are dates.
  const at = INSTANTS.includes(head) && typeof value === "number" ? new Date(value * 1000) : NaN;
  if (!Number.isNaN(Number(at))) return at.toISOString();
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
