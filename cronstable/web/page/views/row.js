// One row of the job table. It keeps its elements and touches only what changed.

import { h, iconButton, s, setAttr, setClass, setText, show } from "../core/dom.js";
import { absolute, ago, clockTime, percent, parseInstant, took, until } from "../core/time.js";
import { exitWords, successRate } from "../model/job.js";
import { scheduleWords } from "../model/words.js";
import { tagsOf } from "./tags.js";
import { trend } from "./trend.js";

export function createRow(app, columns) {
  const cells = columns.map((id) => CELLS[id](app));
  const node = h(
    "tr",
    {
      class: "job",
      tabindex: "-1",
      on: {
        click: (event) => {
          if (!event.target.closest("button, a, .job-note")) app.openJob(row.job.name);
        },
      },
    },
    columns.map((id, i) =>
      h("td", { class: `c-${id}${id === "took" || id === "rate" ? " right" : ""}` }, cells[i].nodes),
    ),
  );
  const row = {
    node,
    job: null,
    update(job, now) {
      row.job = job;
      setAttr(node, "data-job", job.name);
      setAttr(node, "data-status", job.status);
      setAttr(node, "aria-selected", String(app.store.state.selected === job.name));
      for (const cell of cells) {
        cell.update?.(job, now);
        cell.tick?.(job, now);
      }
    },
    tick(now) {
      for (const cell of cells) cell.tick?.(row.job, now);
    },
  };
  for (const cell of cells) cell.attach?.(row);
  return row;
}

const CELLS = {
  state() {
    const use = s("use", {});
    const mark = s("svg", { class: "icon", "aria-hidden": "true" }, use);
    const word = h("span", { class: "word" });
    const box = h("span", { class: "state" }, mark, word);
    return {
      nodes: [box],
      update(job) {
        setClass(box, `state is-${job.status}`);
        setClass(mark, job.status === "running" || job.status === "verifying" ? "icon spin" : "icon");
        setAttr(use, "href", `#i-${job.status}`);
        setText(word, job.label);
      },
    };
  },

  name(app) {
    const name = h("button", { type: "button", class: "job-name" });
    const tags = h("span", { class: "tags" });
    const command = h("div", { class: "second command" });
    let tagKey = "";
    return {
      nodes: [h("div", { class: "name-line" }, name, tags), command],
      attach(row) {
        name.addEventListener("click", () => app.openJob(row.job.name));
      },
      update(job) {
        setText(name, job.name);
        setAttr(name, "title", job.name);
        setText(command, job.raw.command.replace(/\s*\n\s*/g, " ; "));
        setAttr(command, "title", job.raw.command);
        const wanted = tagsOf(job);
        const key = JSON.stringify(wanted);
        if (key === tagKey) return;
        tagKey = key;
        tags.replaceChildren(
          ...wanted.map(([text, kind, title]) => h("span", { class: `tag ${kind}`, text, title })),
        );
      },
    };
  },

  schedule() {
    const words = h("div", { class: "ellipsis" });
    const text = h("div", { class: "second mono" });
    return {
      nodes: [words, text],
      update(job) {
        const plain = scheduleWords(job.raw.schedule_resolved ?? job.raw.schedule);
        const zone = job.zone === "UTC" ? "" : (job.zone ?? "host time");
        setText(words, plain ?? job.raw.schedule);
        setText(text, [plain ? job.raw.schedule : "", zone].filter(Boolean).join("  "));
        setAttr(words.parentNode, "title", `${job.raw.schedule}  (${job.zone ?? "the host's local time"})`);
      },
    };
  },

  zone() {
    const text = h("span");
    return {
      nodes: [text],
      update(job) {
        setText(text, job.zone ?? "host time");
      },
    };
  },

  last() {
    const age = h("div");
    const exit = h("div", { class: "second" });
    return {
      nodes: [age, exit],
      update(job) {
        const run = job.raw.last_run;
        setText(exit, exitWords(run));
        setClass(exit, job.failing ? "second is-failed" : "second");
        setAttr(
          age.parentNode,
          "title",
          run ? [absolute(job.lastAt, job.zone), run.fail_reason].filter(Boolean).join("\n") : "never ran",
        );
      },
      tick(job, now) {
        setText(age, job.lastAt === null ? "–" : ago(job.lastAt, now));
      },
    };
  },

  took(app) {
    const text = h("span");
    return {
      nodes: [text],
      tick(job) {
        if (job.raw.running) setText(text, app.runningFor(job));
        else setText(text, took(job.raw.last_run?.duration));
      },
    };
  },

  rate() {
    const text = h("span");
    return {
      nodes: [text],
      update(job) {
        setText(text, percent(successRate(job)) || "–");
      },
    };
  },

  next() {
    const when = h("div");
    const aside = h("div", { class: "second" });
    return {
      nodes: [when, aside],
      update(job) {
        setAttr(when.parentNode, "title", job.nextAt === null ? null : absolute(job.nextAt, job.zone));
      },
      tick(job, now) {
        setText(when, nextWords(job, now));
        const retry = parseInstant(job.raw.retry?.nextRetryAt);
        setText(
          aside,
          retry !== null
            ? `retry ${until(retry, now)}`
            : job.nextAt !== null
              ? clockTime(job.nextAt, job.zone)
              : "",
        );
      },
    };
  },

  next_clock() {
    const text = h("span");
    return {
      nodes: [text],
      update(job) {
        setText(text, job.nextAt === null ? "–" : clockTime(job.nextAt, null));
      },
    };
  },

  trend() {
    const picture = trend();
    return {
      nodes: [picture.node],
      update(job) {
        picture.update(job.raw.history, job.lastAt);
      },
    };
  },

  policy() {
    const text = h("span");
    return {
      nodes: [text],
      update(job) {
        setText(text, job.raw.clusterPolicy ?? "–");
      },
    };
  },

  owner(app) {
    const text = h("span");
    return {
      nodes: [text],
      update(job) {
        const everywhere = job.raw.clusterPolicy === "EveryNode";
        const owner = everywhere ? "all nodes" : (job.raw.clusterOwner ?? "no quorum");
        setText(text, owner);
        setClass(text, owner === app.store.state.cluster?.node_name ? "mine" : "");
      },
    };
  },

  act(app) {
    const buttons = actionButtons(app);
    const text = h("span", { class: "text" });
    const undo = h("button", { type: "button", class: "link", text: "undo" });
    const note = h("div", { class: "job-note", hidden: true }, text, undo);
    let current = null;
    undo.addEventListener("click", () => current?.undo?.());
    return {
      nodes: [h("div", { class: "acts" }, buttons.nodes), note],
      attach(row) {
        buttons.attach(() => row.job);
      },
      update(job) {
        buttons.update(job);
        current = app.actions.noteOf(job.name);
        show(note, Boolean(current));
        if (!current) return;
        setText(text, current.text);
        setClass(note, `job-note ${current.kind}`);
        show(undo, Boolean(current.undo));
      },
    };
  },
};

// Run or stop, pause or resume, log: the same on a row and in the drawer.
function actionButtons(app) {
  let job = () => null;
  const run = iconButton("run", "Run now (r)", () => app.actions.start(job().name));
  const stop = iconButton("stop", "Stop (x)", () => app.actions.cancel(job().name));
  const pause = iconButton("pause", "Pause for an hour (p)", () => app.actions.togglePause(job()));
  const log = iconButton("log", "Log (l)", () => app.openJob(job().name, "log"));
  const pauseUse = pause.querySelector("use");
  return {
    nodes: [run, stop, pause, log],
    attach(getter) {
      job = getter;
    },
    update(view) {
      const control = app.actions.may("control");
      show(run, control && !view.raw.running);
      show(stop, control && view.raw.running);
      show(pause, control);
      const armed = app.actions.isArmed(view.name);
      setClass(stop, armed ? "icon-button armed" : "icon-button");
      setAttr(stop, "aria-label", armed ? "Press again to stop" : "Stop (x)");
      setAttr(pauseUse, "href", view.raw.paused ? "#i-resume" : "#i-pause");
      setAttr(pause, "aria-label", view.raw.paused ? "Resume (p)" : "Pause for an hour (p)");
      setAttr(pause, "title", view.raw.paused ? "Resume (p)" : "Pause for an hour (p)");
      run.disabled = !view.raw.enabled;
      setAttr(run, "title", view.raw.enabled ? "Run now (r)" : "Disabled in the configuration");
    },
  };
}

function nextWords(job, now) {
  if (!job.raw.enabled) return "–";
  if (job.raw.never_fires) return "never";
  if (job.raw.schedule === "@reboot") return job.raw.rebootPending ? "soon" : "at boot";
  if (job.nextAt === null) return job.raw.running ? "after this" : "–";
  return until(job.nextAt, now);
}
