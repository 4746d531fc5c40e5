// The history tab: totals, one bar per run, the runs as a table, trends by window.

import { segment } from "../core/api.js";
import { h, icon } from "../core/dom.js";
import { absolute, ago, bytes, parseInstant, percent, plural, took } from "../core/time.js";
import { exitWords, outcomeStatus, outcomeWord, processes } from "../model/job.js";
import { plainReason } from "../model/verdict.js";
import { runBars } from "./charts.js";

const WINDOWS = [
  ["1h", "1 hour"],
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["all", "All on record"],
];

export function historyTab(app, name) {
  const node = h("div", { class: "tab-body" }, h("p", { class: "empty", text: "Loading…" }));
  let shownFor;
  let busy = false;
  let gone = false;

  async function load(job) {
    if (busy || shownFor === job?.lastAt) return;
    busy = true;
    const mark = job?.lastAt;
    try {
      const [history, trends] = await Promise.all([
        app.api.get(`/jobs/${segment(name)}/runs?limit=50`),
        app.api.get(`/jobs/${segment(name)}/trends`),
      ]);
      shownFor = mark;
      if (!gone) draw(history, trends, job);
    } catch (error) {
      if (!gone) node.replaceChildren(h("p", { class: "empty", text: error.message }));
    }
    busy = false;
  }

  function draw({ runs, stats }, trends, job) {
    if (!runs.length) {
      const known = trends.windows?.all?.total ? trendTable(trends) : null;
      const text = known ? "No run is remembered here." : "This job has not run yet.";
      node.replaceChildren(h("p", { class: "empty", text }), known ?? "");
      return;
    }
    const now = app.now();
    const newestFirst = runs.slice().reverse();
    node.replaceChildren(
      numbers([
        ["Runs", String(stats.total)],
        ["Success", percent(stats.success_rate) || "–"],
        ["OK", String(stats.success)],
        ["Failed", String(stats.failure)],
        ["Average", took(stats.avg_duration) || "–"],
        ["Shortest", took(stats.min_duration) || "–"],
        ["Longest", took(stats.max_duration) || "–"],
      ]),
      runBars(runs, {
        status: (run) => outcomeStatus(run.outcome),
        title: (run) => runTitle(run, job),
        onPick: (run) =>
          node.querySelector(`[data-run="${runs.indexOf(run)}"]`)?.scrollIntoView({ block: "center" }),
      }),
      h(
        "table",
        { class: "plain" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Outcome", "Finished", "Took", "Reason"].map((text) => h("th", { text, scope: "col" })),
          ),
        ),
        h(
          "tbody",
          {},
          newestFirst.map((run, i) => runRow(run, runs.length - 1 - i, job, now)),
        ),
      ),
      trendTable(trends) ?? "",
    );
  }

  return {
    node,
    update(job) {
      load(job);
    },
    destroy() {
      gone = true;
    },
  };
}

export function numbers(pairs) {
  return h(
    "dl",
    { class: "numbers" },
    pairs.map(([label, value]) => h("div", {}, h("dt", { text: label }), h("dd", { text: value }))),
  );
}

function runTitle(run, job) {
  const at = parseInstant(run.finished_at);
  return [outcomeWord(run.outcome), exitWords(run), took(run.duration), absolute(at, job?.zone)]
    .filter(Boolean)
    .join(", ");
}

function runRow(run, index, job, now) {
  const at = parseInstant(run.finished_at);
  const status = outcomeStatus(run.outcome);
  const reason = plainReason(run.fail_reason, run) || run.skip_reason || "";
  const check = run.verification;
  return h(
    "tr",
    { data: { run: String(index) } },
    h(
      "td",
      {},
      h(
        "span",
        { class: `state is-${status}` },
        icon(status),
        h("span", {
          class: "word",
          text: [outcomeWord(run.outcome), run.outcome === "success" ? "" : exitWords(run)]
            .filter((text, i, all) => text && all.indexOf(text) === i)
            .join(", "),
        }),
      ),
    ),
    h("td", { title: absolute(at, job?.zone) }, ago(at, now)),
    h("td", { class: "right" }, took(run.duration) || "–"),
    h(
      "td",
      { class: "wide" },
      reason,
      run.resources
        ? h("div", {
            class: "second",
            text: `${took(run.resources.cpu_total_seconds)} CPU, ${bytes(run.resources.max_rss_bytes)} peak`,
          })
        : null,
      run.overlong_lines
        ? h("div", {
            class: "second",
            text: `${plural(run.overlong_lines, "over-long line")} left out`,
          })
        : null,
      run.leftovers?.length
        ? h("div", { class: "second", text: `output held by ${processes(run.leftovers)}` })
        : null,
      check
        ? h("div", {
            class: "second",
            text: [`verification ${outcomeWord(check.outcome)}`, check.fail_reason, took(check.duration)]
              .filter(Boolean)
              .join(", "),
          })
        : null,
      check?.stderr || check?.stdout
        ? h("pre", {
            class: "second verify-text",
            text: [check.stdout, check.stderr].filter(Boolean).join("\n"),
          })
        : null,
    ),
  );
}

function trendTable({ windows, source }) {
  const kept = WINDOWS.filter(([id]) => windows?.[id]);
  if (!kept.length) return null;
  return h(
    "div",
    {},
    h("h3", {
      class: "tab-title",
      text: source === "durable" ? "Trend, from the ledger" : "Trend, since this daemon started",
    }),
    h(
      "table",
      { class: "plain" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Window", "Runs", "Success", "Average", "Longest"].map((text, i) =>
            h("th", { text, scope: "col", class: i ? "right" : "" }),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        kept.map(([id, label]) => {
          const stats = windows[id];
          return h(
            "tr",
            {},
            h("td", { text: label }),
            ...[
              stats.total,
              percent(stats.success_rate) || "–",
              took(stats.avg_duration) || "–",
              took(stats.max_duration) || "–",
            ].map((text) => h("td", { class: "right", text })),
          );
        }),
      ),
    ),
  );
}
