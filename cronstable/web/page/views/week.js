// The week: seven days from today in the time of this browser; busy jobs stand apart.

import { h, nameButton } from "../core/dom.js";
import { clockTime, plural } from "../core/time.js";
import { allComing } from "../model/coming.js";
import { scheduleWords } from "../model/words.js";

const BUSY = 8;
const MOST = 40;

export function createWeek(app) {
  const grid = h("div", { class: "week" });
  const busy = h("div", { class: "week-busy" });
  const link = h("a", { class: "link", text: "Calendar (.ics)", href: "#" });
  const node = h("div", { class: "tool" }, grid, busy);
  let active = false;
  let key = "";

  async function draw() {
    const { jobs } = app.store.state;
    if (!jobs) return;
    const now = app.now();
    const days = weekDays(now);
    const wanted = `${days[0]}|${jobs.map((job) => `${job.name}${job.raw.schedule}${job.raw.enabled}`).join()}`;
    if (wanted === key) return;
    key = wanted;
    const found = await allComing(
      jobs,
      days[0] - 1,
      days[7] - 1,
      { limit: BUSY * 7 + 1, coarse: true },
      () => !active,
    );
    if (!found) {
      key = "";
      return;
    }
    const rare = found.filter(([, instants]) => instants.length && instants.length <= BUSY * 7);
    const often = found.filter(([, instants]) => instants.length > BUSY * 7).map(([job]) => job);
    grid.replaceChildren(...days.slice(0, 7).map((start, i) => dayColumn(start, days[i + 1], rare, now)));
    busy.replaceChildren(...busyLines(often));
  }

  function dayColumn(start, end, rare, now) {
    const times = new Map();
    for (const [job, instants] of rare) {
      for (const at of instants) {
        if (at < start || at >= end) continue;
        if (!times.has(at)) times.set(at, []);
        times.get(at).push(job);
      }
    }
    const moments = [...times.keys()].sort((a, b) => a - b);
    const date = new Date(start);
    const today = now >= start && now < end;
    return h(
      "section",
      { class: today ? "day today" : "day" },
      h(
        "h3",
        {},
        date.toLocaleDateString("en-GB", { weekday: "short" }),
        h("span", { class: "soft", text: ` ${date.getDate()}` }),
      ),
      h(
        "ol",
        {},
        moments.slice(0, MOST).map((at) => moment(at, times.get(at), at < now)),
      ),
      moments.length > MOST
        ? h("p", { class: "faint", text: `and ${moments.length - MOST} more times` })
        : null,
      moments.length ? null : h("p", { class: "faint", text: "nothing" }),
    );
  }

  function moment(at, jobs, past) {
    const names = (list) =>
      list.flatMap((job, i) => [
        i ? h("br") : "",
        nameButton(job.name, () => app.openJob(job.name, "schedule")),
      ]);
    const more =
      jobs.length > 2
        ? h("button", {
            type: "button",
            class: "link",
            text: `and ${jobs.length - 1} more`,
            on: { click: () => place.replaceChildren(...names(jobs.slice(0, 200))) },
          })
        : null;
    const place = h(
      "span",
      { class: "ellipsis" },
      ...(more ? [...names(jobs.slice(0, 1)), h("br"), more] : names(jobs)),
    );
    return h("li", { class: past ? "past" : "" }, h("time", { text: clockTime(at) }), place);
  }

  function busyLines(often) {
    if (!often.length) return [];
    const groups = new Map();
    for (const job of often) {
      const words = scheduleWords(job.raw.schedule_resolved ?? job.raw.schedule) ?? job.raw.schedule;
      if (!groups.has(words)) groups.set(words, []);
      groups.get(words).push(job);
    }
    return [
      h("h3", { text: "All day long" }),
      ...[...groups]
        .sort((a, b) => b[1].length - a[1].length)
        .slice(0, 12)
        .map(([words, jobs]) =>
          h(
            "p",
            {},
            h("span", { class: "soft", text: `${words}: ` }),
            ...jobs.slice(0, 5).flatMap((job, i) => [
              i ? ", " : "",
              nameButton(job.name, () => app.openJob(job.name, "schedule")),
            ]),
            jobs.length > 5
              ? h("span", { class: "faint", text: ` and ${plural(jobs.length - 5, "more", "more")}` })
              : null,
          ),
        ),
    ];
  }

  app.store.on(["jobs"], () => {
    if (active) draw();
  });
  return {
    node,
    tools: [link],
    setActive(value) {
      active = value;
      if (!value) return;
      link.href = app.api.calendarLink("/calendar.ics?days=7");
      draw();
    },
  };
}

// Eight midnights of this browser's zone; days are 23 or 25 hours long where clocks change.
function weekDays(now) {
  const first = new Date(now);
  first.setHours(0, 0, 0, 0);
  return Array.from({ length: 8 }, (unused, i) =>
    new Date(first.getFullYear(), first.getMonth(), first.getDate() + i).getTime(),
  );
}
