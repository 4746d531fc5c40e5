// The schedule tab: what the timetable says, the next runs, and why it did not run at some time.

import { segment } from "../core/api.js";
import { h, setText } from "../core/dom.js";
import { absolute, parseInstant, until } from "../core/time.js";
import { createWhy } from "./why.js";

export function scheduleTab(app, name) {
  const job = app.store.state.byName.get(name);
  const node = h("div", { class: "tab-body" });
  const reading = h("p", { class: "reading", text: "…" });
  const list = h("ol", { class: "fires" });
  const why = createWhy(app, name);
  let fires = [];
  let key = "";
  let gone = false;

  node.append(
    reading,
    ...[facts(job), findings(job)].filter(Boolean),
    h("h3", { class: "tab-title", text: "Next runs" }),
    list,
    h(
      "p",
      { class: "row" },
      h("a", {
        class: "link",
        href: app.api.calendarLink(`/jobs/${segment(name)}/calendar.ics`),
        text: "Calendar of this job (.ics)",
      }),
      app.api.hasToken ? h("span", { class: "faint", text: "The link holds your token." }) : null,
    ),
    h("h3", { class: "tab-title", text: "Why did it not run?" }),
    why.node,
  );

  async function load(view) {
    const { raw } = view;
    if (!raw.enabled) {
      setText(reading, "Disabled in the configuration: it never runs by itself.");
      return;
    }
    try {
      if (view.zone) {
        const answer = await app.api.get(
          `/schedule/preview?expr=${encodeURIComponent(raw.schedule)}&tz=${encodeURIComponent(view.zone)}&seed=${encodeURIComponent(name)}&limit=8`,
        );
        fires = (answer.fires ?? []).map(parseInstant);
        setText(reading, answer.description ?? answer.error ?? raw.schedule);
      } else {
        const answer = await app.api.get(
          `/schedule/why?job=${encodeURIComponent(name)}&at=${encodeURIComponent(new Date(app.now()).toISOString())}`,
        );
        fires = [parseInstant(answer.next_fire)].filter((at) => at !== null);
        setText(reading, answer.description);
      }
    } catch (error) {
      setText(reading, error.message);
    }
    if (!gone) draw(view);
  }

  function draw(view) {
    const now = app.now();
    const coming = fires.filter((at) => at > now);
    const rows = coming.map((at) =>
      h(
        "li",
        {},
        h("span", { text: absolute(at, view.zone) }),
        h("span", { class: "soft", text: until(at, now) }),
      ),
    );
    list.replaceChildren(
      ...(rows.length
        ? rows
        : [
            h("li", {
              class: "soft",
              text: view.raw.never_fires
                ? "None: no date matches this schedule."
                : view.raw.schedule === "@reboot"
                  ? "Once after the host has booted."
                  : "None planned.",
            }),
          ]),
    );
  }

  return {
    node,
    update(view) {
      if (!view) return;
      const wanted = `${view.raw.schedule}|${view.raw.enabled}|${fires.length && fires[0] < app.now()}`;
      if (wanted === key) return draw(view);
      key = wanted;
      load(view);
    },
    destroy() {
      gone = true;
    },
  };
}

function facts(job) {
  if (!job) return null;
  const { raw } = job;
  const rows = [
    ["As written", raw.schedule],
    ["Time zone", job.zone ?? "the host's local time"],
  ];
  if (raw.schedule_resolved) rows.push(["With H filled in", raw.schedule_resolved]);
  rows.push(["Command", raw.command]);
  return h(
    "dl",
    { class: "facts-list wide" },
    rows.map(([label, text]) => h("div", {}, h("dt", { text: label }), h("dd", { class: "mono", text }))),
  );
}

function findings(job) {
  const list = job?.raw.schedule_findings ?? [];
  return list.length ? h("ul", { class: "findings" }, list.map(finding)) : null;
}

export function finding({ level, message }) {
  return h(
    "li",
    {},
    h("span", { class: level === "warning" ? "tag warn" : "tag", text: level }),
    h("span", { text: message }),
  );
}
