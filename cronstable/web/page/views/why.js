// Why did a job not run at a time? The daemon answers field by field.

import { h, icon } from "../core/dom.js";
import { absolute, parseInstant } from "../core/time.js";

// For one job, or with a choice of job when name is null.
export function createWhy(app, name) {
  const jobs = h("datalist", { id: "why-jobs" });
  const job =
    name === null
      ? h("input", {
          type: "text",
          list: "why-jobs",
          placeholder: "Job",
          "aria-label": "Job",
          required: true,
        })
      : null;
  const when = h("input", {
    type: "datetime-local",
    step: "60",
    "aria-label": "When it should have run",
    required: true,
  });
  const frame = h("span", { class: "faint" });
  const answer = h("div", { class: "why-answer" });
  const node = h(
    "form",
    {
      class: "why",
      on: {
        submit: (event) => {
          event.preventDefault();
          ask();
        },
      },
    },
    h(
      "div",
      { class: "row" },
      job,
      job ? jobs : null,
      when,
      h("button", { type: "submit", class: "button", text: "Why?" }),
      frame,
    ),
    answer,
  );

  const last = new Date(app.now() - (app.now() % 3600_000));
  when.value = new Date(last.getTime() - last.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  describeFrame();
  job?.addEventListener("change", describeFrame);

  function chosen() {
    return name ?? job.value;
  }

  function describeFrame() {
    const view = app.store.state.byName.get(chosen());
    frame.textContent = view
      ? `wall-clock time in ${view.zone ?? "the host's zone"}`
      : "wall-clock time of the job";
  }

  async function ask() {
    try {
      const said = await app.api.get(
        `/schedule/why?job=${encodeURIComponent(chosen())}&at=${encodeURIComponent(when.value)}`,
      );
      answer.replaceChildren(...result(said, await slotAt(said)));
    } catch (error) {
      answer.replaceChildren(h("p", { class: "is-failed", text: error.message }));
    }
  }

  // The timetable is half of the answer; the slot book knows what became of the slot.
  async function slotAt(said) {
    const at = parseInstant(said.at_in_zone);
    if (!said.matches || at === null || !app.slots.supported) return null;
    const span = [at - 1000, at + 60_000].map((time) => encodeURIComponent(new Date(time).toISOString()));
    const found = await app.api
      .get(`/slots?job=${encodeURIComponent(said.job)}&since=${span[0]}&until=${span[1]}&limit=10`)
      .catch(() => null);
    return found?.slots[0] ?? null;
  }

  function fillJobs() {
    jobs.replaceChildren(...(app.store.state.jobs ?? []).map((view) => h("option", { value: view.name })));
  }

  if (job) fillJobs();
  return { node, fillJobs };
}

function result(said, slot) {
  const zone = said.timezone === "local" ? null : said.timezone;
  const lead = said.matches
    ? slot
      ? slotSentence(slot)
      : "The timetable did select this time."
    : said.reboot
      ? "It runs once after a boot, not by the clock."
      : `The timetable did not select this time: ${said.failed.join(", ")} did not match.`;
  return [
    h("p", { class: "reading", text: lead }),
    said.enabled ? null : h("p", { text: "The job is disabled." }),
    said.checks?.length
      ? h(
          "table",
          { class: "plain" },
          h(
            "tbody",
            {},
            said.checks.map((check) =>
              h(
                "tr",
                {},
                h(
                  "td",
                  {},
                  h(
                    "span",
                    { class: `state ${check.matched ? "is-ok" : "is-failed"}` },
                    icon(check.matched ? "ok" : "failed"),
                    check.field,
                  ),
                ),
                h("td", { text: check.label }),
                h("td", { class: "wide soft", text: `allowed: ${check.allowed}` }),
              ),
            ),
          ),
        )
      : null,
    said.notes?.length
      ? h(
          "ul",
          { class: "findings" },
          said.notes.map((note) =>
            h("li", {}, h("span", { class: "tag", text: note.level }), h("span", { text: note.message })),
          ),
        )
      : null,
    h("p", {
      class: "soft",
      text: [
        said.previous_fire && `Before: ${absolute(parseInstant(said.previous_fire), zone)}.`,
        said.next_fire && `After: ${absolute(parseInstant(said.next_fire), zone)}.`,
      ]
        .filter(Boolean)
        .join(" "),
    }),
  ].filter(Boolean);
}

function slotSentence({ result, reason }) {
  if (result === "ran") return "It did run: the slot was taken.";
  if (result === "open") return "The slot is due and has not been decided yet.";
  if (result === "merged") return "The slot was merged into another one.";
  return `The slot was ${result}${reason ? `: ${reason}` : ""}.`;
}
