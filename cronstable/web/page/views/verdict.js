// One sentence that says whether everything is all right, and for failures what they share.

import { arrange, h, setText } from "../core/dom.js";
import { ago, absolute, plural, until } from "../core/time.js";
import { exitWords } from "../model/job.js";
import { verdict } from "../model/verdict.js";

const NAMED = 3;

export function createVerdict(root, app) {
  const { store } = app;
  const line = h("h1", { class: "verdict-line" });
  const aside = h("p", { class: "verdict-aside" });
  const detail = h("div", { class: "verdict-detail" });
  const actions = h("div", { class: "verdict-actions" });
  root.replaceChildren(line, aside, detail, actions);
  root.setAttribute("aria-live", "off");
  const tokenLink = link("Enter the token", () => app.open("token"));
  let shown = "";
  let spoken = "";

  function name(job) {
    return h("button", {
      type: "button",
      class: "name",
      text: job.name,
      on: { click: () => app.openJob(job.name, "log") },
    });
  }

  function sentence(facts, now) {
    const { failing, overdue, unknown, dead, total } = facts;
    if (!total) return ["No jobs are configured."];
    if (failing.length) {
      const head = [
        h("span", {
          class: "count-bad",
          text: failing.length === total ? `All ${total}` : String(failing.length),
        }),
        failing.length === total
          ? " jobs are failing"
          : ` of ${total.toLocaleString("en-GB")} ${failing.length === 1 ? "is" : "are"} failing`,
      ];
      if (failing.length > NAMED) return [...head, "."];
      const parts = failing.flatMap((job, i) => [
        h("span", { class: "rest", text: i ? ", " : ": " }),
        name(job),
        h("span", { class: "rest", text: ` (${brief(job, now)})` }),
      ]);
      return [...head, ...parts];
    }
    const odd = [
      overdue.length && [overdue, `${overdue.length === 1 ? "is" : "are"} overdue`],
      unknown.length && [unknown, `${unknown.length === 1 ? "was" : "were"} interrupted`],
      dead.length && [dead, "can never run"],
    ].filter(Boolean);
    if (!odd.length) return [allFine(facts)];
    const parts = odd.flatMap(([jobs, what], i) => [
      i ? "; " : " ",
      h("span", { class: "count-warn", text: String(jobs.length) }),
      ` ${what}: `,
      ...jobs.slice(0, NAMED).flatMap((job, k) => [k ? ", " : "", name(job)]),
      jobs.length > NAMED ? " and others" : "",
    ]);
    return ["Nothing is failing, but", ...parts, "."];
  }

  function render() {
    const { state } = store;
    const now = app.now();
    if (!state.jobs) {
      const { failures, denied } = state.conn;
      const text = denied
        ? "This daemon asks for a token."
        : failures > 1
          ? "The daemon does not answer."
          : "Asking the daemon…";
      setSentence([text], text);
      arrange(detail, []);
      arrange(actions, denied ? [tokenLink] : []);
      return;
    }
    const facts = verdict(state.jobs, now);
    const stale = state.conn.failures > 1 || state.conn.denied;
    const parts = stale
      ? [
          state.conn.denied ? "The daemon asks for a token." : "No answer from the daemon.",
          h("span", {
            class: "rest",
            text: ` What you see is from ${absolute(state.conn.at + app.api.skew, null)}.`,
          }),
        ]
      : sentence(facts, now);
    setText(aside, stale ? "" : tail(facts, now));
    const text = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    const key = `${text} ${app.actions.may("control")}`;
    if (key === shown) return;
    shown = key;
    setSentence(parts, text);
    arrange(detail, stale ? [] : groups(facts));
    arrange(actions, stale ? (state.conn.denied ? [tokenLink] : []) : shortcuts(facts));
    const gist = stale ? "stale" : facts.failing.map((job) => job.name).join();
    if (gist !== spoken) {
      spoken = gist;
      store.set("announcement", text);
    }
  }

  function setSentence(parts, text) {
    if (line.dataset.text === text) return;
    line.dataset.text = text;
    line.replaceChildren(...parts);
  }

  function groups(facts) {
    const told = facts.failing.length <= NAMED;
    const wanted = facts.groups.filter((group) => !told || group.reason || group.likelyOne);
    return wanted.slice(0, 4).map((group) =>
      h(
        "p",
        { class: "group" },
        h("strong", {
          text: group.jobs.length > 1 ? `${group.jobs.length} × ${group.exit}` : group.exit,
        }),
        " ",
        group.likelyOne
          ? h("span", { class: "tag bad", text: "likely one cause" })
          : group.jobs.length > 1
            ? h("span", { class: "tag", text: "independent" })
            : null,
        ` ${group.reason ? `${group.reason}: ` : ""}`,
        names(group.jobs),
      ),
    );
  }

  function names(jobs) {
    return h(
      "span",
      { class: "names" },
      jobs.slice(0, 6).flatMap((job, i) => [
        i ? ", " : "",
        h("button", {
          type: "button",
          text: job.name,
          on: { click: () => app.openJob(job.name, "log") },
        }),
      ]),
      jobs.length > 6 ? ` and ${jobs.length - 6} more` : "",
    );
  }

  function shortcuts(facts) {
    if (!facts.failing.length) return [];
    const control = app.actions.may("control");
    return [
      link("Timeline", () => app.open("timeline")),
      link("Live logs", () =>
        app.open(
          "livelogs",
          facts.failing.map((job) => job.name),
        ),
      ),
      link("Only these", () => app.setFilter({ group: "failing" })),
      control
        ? link(facts.failing.length > 1 ? "Run them again…" : "Run it again", () =>
            facts.failing.length > 1
              ? app.open("bulk", { what: "start", names: facts.failing.map((job) => job.name) })
              : app.actions.start(facts.failing[0].name),
          )
        : null,
    ].filter(Boolean);
  }

  store.on(["jobs", "tick", "conn", "whoami"], render);
  render();
}

function link(text, onClick) {
  return h("button", { type: "button", class: "link", text, on: { click: onClick } });
}

function brief(job, now) {
  const exit = exitWords(job.raw.last_run) || "failed";
  return [exit, ago(job.lastAt, now)].map((part) => part.replaceAll(" ", "\u00a0")).join(", ");
}

function allFine({ total, disabled, paused, pending, cancelled }) {
  const aside = [
    cancelled.length && `${cancelled.length} cancelled`,
    paused && `${paused} paused`,
    disabled && `${disabled} disabled`,
    pending && `${pending} not run yet`,
  ].filter(Boolean);
  const active = total - disabled;
  if (!active) return "All jobs are disabled.";
  const head = total === 1 ? "The one job is fine" : `All ${total.toLocaleString("en-GB")} jobs are fine`;
  return aside.length ? `${head} (${aside.join(", ")}).` : `${head}.`;
}

function tail(facts, now) {
  const words = [];
  if (facts.running.length) words.push(`${plural(facts.running.length, "is", "are")} running.`);
  if (facts.next) {
    const close = facts.next.nextAt - now < 60_000;
    words.push(`Next: ${facts.next.name} ${close ? "within a minute" : until(facts.next.nextAt, now)}.`);
  }
  return words.join(" ");
}
