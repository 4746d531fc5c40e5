// What comes next: eight fires with a countdown, and the next ten minutes as a strip.

import { h, nameButton, s, setAttr, setText } from "../core/dom.js";
import { absolute, plural, until } from "../core/time.js";
import { allComing } from "../model/coming.js";

const TEN_MINUTES = 600_000;
const BINS = 60;
const SHOWN = 8;

export function createUpcoming(app) {
  const list = h("ol", { class: "upcoming" });
  const bars = s("svg", {
    class: "next-bars",
    viewBox: `0 0 ${BINS * 10} 60`,
    preserveAspectRatio: "none",
    role: "img",
  });
  const caption = h("p", { class: "soft" });
  const node = h(
    "div",
    { class: "tool split" },
    h("div", {}, list),
    h(
      "div",
      {},
      h("h3", { text: "The next ten minutes" }),
      bars,
      h(
        "div",
        { class: "row faint chart-scale" },
        "now",
        h("span", { class: "grow" }),
        "in 5 min",
        h("span", { class: "grow" }),
        "in 10 min",
      ),
      caption,
    ),
  );
  let active = false;
  let counted = 0;

  function draw() {
    const now = app.now();
    const next = (app.store.state.jobs ?? [])
      .filter((job) => job.nextAt !== null && job.nextAt > now - 1000)
      .sort((a, b) => a.nextAt - b.nextAt)
      .slice(0, SHOWN);
    list.replaceChildren(
      ...next.map((job) =>
        h(
          "li",
          {},
          h("span", { class: "when", text: until(job.nextAt, now), title: absolute(job.nextAt, job.zone) }),
          nameButton(job.name, () => app.openJob(job.name, "schedule")),
          h("span", { class: "soft", text: job.raw.paused ? "paused: will be skipped" : "" }),
        ),
      ),
    );
    if (!next.length) list.replaceChildren(h("li", { class: "empty", text: "Nothing is planned." }));
    if (app.store.state.jobs && now - counted > 10_000) count(now);
  }

  async function count(now) {
    counted = now;
    const found = await allComing(
      app.store.state.jobs ?? [],
      now,
      now + TEN_MINUTES,
      { limit: 700 },
      () => !active,
    );
    if (!found) return;
    const bins = Array(BINS).fill(0);
    let total = 0;
    for (const [, instants] of found) {
      for (const at of instants) {
        bins[Math.min(BINS - 1, Math.floor((at - now) / 10_000))] += 1;
        total += 1;
      }
    }
    const most = Math.max(...bins);
    bars.replaceChildren(
      ...bins
        .map((value, i) =>
          value
            ? s("rect", {
                x: i * 10 + 1,
                width: 8,
                y: 60 - (value / most) * 58,
                height: (value / most) * 58,
                rx: 1,
              })
            : null,
        )
        .filter(Boolean),
    );
    const text = `${plural(total, "start")} in ten minutes, at most ${most} within ten seconds`;
    setText(caption, text);
    setAttr(bars, "aria-label", text);
  }

  app.store.on(["tick", "jobs"], () => {
    if (active) draw();
  });
  return {
    node,
    setActive(value) {
      active = value;
      counted = 0;
      if (value) draw();
    },
  };
}
