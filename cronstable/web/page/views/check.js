// Try a schedule before it goes into the configuration, and ask why a job did not run.

import { h } from "../core/dom.js";
import { absolute, localZone, parseInstant, until } from "../core/time.js";
import { finding } from "./tab-schedule.js";
import { createWhy } from "./why.js";

export function createCheck(app) {
  const expression = h("input", {
    type: "text",
    class: "mono",
    value: "*/15 9-17 * * mon-fri",
    "aria-label": "Schedule",
    spellcheck: "false",
    required: true,
  });
  const zones = h(
    "datalist",
    { id: "zones" },
    (Intl.supportedValuesOf?.("timeZone") ?? []).map((name) => h("option", { value: name })),
  );
  const zone = h("input", {
    type: "text",
    list: "zones",
    value: localZone,
    "aria-label": "Time zone",
    required: true,
  });
  const seed = h("input", {
    type: "text",
    placeholder: "Job name, for H",
    "aria-label": "Job name for hashed slots",
  });
  const answer = h("div", { class: "check-answer" });
  const form = h(
    "form",
    {
      class: "row",
      on: {
        submit: (event) => {
          event.preventDefault();
          ask();
        },
      },
    },
    expression,
    zone,
    zones,
    seed,
    h("button", { type: "submit", class: "button", text: "When?" }),
  );
  const why = createWhy(app, null);
  const node = h(
    "div",
    { class: "tool split" },
    h("div", {}, h("h3", { text: "When would this run?" }), form, answer),
    h("div", {}, h("h3", { text: "Why did it not run?" }), why.node),
  );

  async function ask() {
    const more = seed.value ? `&seed=${encodeURIComponent(seed.value)}` : "";
    try {
      const said = await app.api.get(
        `/schedule/preview?expr=${encodeURIComponent(expression.value)}&tz=${encodeURIComponent(zone.value)}&limit=12${more}`,
      );
      answer.replaceChildren(
        ...(said.valid ? good(said) : [h("p", { class: "is-failed", text: said.error })]),
      );
    } catch (error) {
      answer.replaceChildren(h("p", { class: "is-failed", text: error.message }));
    }
  }

  function good(said) {
    const now = app.now();
    const sharing = (app.store.state.jobs ?? []).filter((job) =>
      [job.raw.schedule, job.raw.schedule_resolved].includes(said.normalized ?? said.expression),
    );
    const first = sharing
      .map((job) => job.name)
      .slice(0, 8)
      .join(", ");
    return [
      h("p", { class: "reading", text: said.description }),
      said.resolved ? h("p", {}, "With H filled in: ", h("code", { text: said.resolved })) : null,
      said.never_fires ? h("p", { class: "is-failed", text: "It never runs: no date matches." }) : null,
      said.lint?.length ? h("ul", { class: "findings" }, said.lint.map(finding)) : null,
      h(
        "ol",
        { class: "fires" },
        (said.fires ?? [])
          .map(parseInstant)
          .map((at) =>
            h(
              "li",
              {},
              h("span", { text: absolute(at, said.timezone) }),
              h("span", { class: "soft", text: until(at, now) }),
            ),
          ),
      ),
      sharing.length
        ? h("p", {
            class: "soft",
            text: `Same schedule: ${first}${sharing.length > 8 ? ", …" : ""}`,
          })
        : null,
    ].filter(Boolean);
  }

  return {
    node,
    tools: [],
    setActive(value) {
      if (value) {
        why.fillJobs();
        if (!answer.childElementCount) ask();
      }
    },
  };
}
