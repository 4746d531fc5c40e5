// Pools: how many slots are taken, who waits and why.

import { arrange, h, nameButton } from "../core/dom.js";
import { segment } from "../core/api.js";
import { ago, plural } from "../core/time.js";

export const poolsPanel = {
  id: "pools",
  title: "Pools",
  keys: ["pools", "whoami"],
  inUse: (state) => Boolean(state.pools?.length),
  make(app) {
    const node = h("div");
    let key = "";
    return {
      node,
      update(state) {
        const wanted = JSON.stringify([state.pools, app.actions.may("control")]);
        if (wanted === key) return;
        key = wanted;
        arrange(
          node,
          state.pools.map((pool) => poolBox(pool, app)),
        );
      },
    };
  },
};

function poolBox(pool, app) {
  const draining = pool.slots !== pool.configuredSlots;
  const cells = Array.from({ length: Math.min(pool.slots, 40) }, (unused, i) =>
    h("span", { class: i < pool.used ? "used" : "" }),
  );
  const now = app.now();
  const line = (entry) =>
    h(
      "tr",
      {},
      h("td", { text: entry.state === "queued" ? `${entry.position ?? ""}` : "" }),
      h(
        "td",
        {},
        nameButton(entry.job, () => app.openJob(entry.job)),
      ),
      h("td", { text: entry.state === "queued" ? "waiting" : entry.state }),
      h("td", { class: "soft", text: `since ${ago(entry.queuedAt * 1000, now)}` }),
      h("td", {
        class: "wide soft",
        text: entry.waitingReason ?? entry.reason ?? plural(entry.slots, "slot"),
      }),
      h(
        "td",
        {},
        entry.state === "queued" && app.actions.may("control")
          ? h("button", {
              type: "button",
              class: "link",
              text: "Leave the queue",
              on: { click: () => leave(app, pool.name, entry) },
            })
          : null,
      ),
    );
  return h(
    "div",
    { class: "pool" },
    h(
      "div",
      { class: "row" },
      h("strong", { text: pool.name }),
      h("span", { class: "pool-cells" }, cells),
      h("span", {
        class: "soft",
        text: `${pool.used} of ${plural(pool.slots, "slot")} in use, ${pool.queued} waiting`,
      }),
      draining ? h("span", { class: "tag warn", text: `draining to ${pool.configuredSlots}` }) : null,
    ),
    pool.entries.length
      ? h("table", { class: "plain" }, h("tbody", {}, pool.entries.slice(0, 30).map(line)))
      : null,
  );
}

async function leave(app, pool, entry) {
  const { status, answer } = await app.api
    .post(`/pools/${segment(pool)}/queue/${segment(entry.id)}/cancel`)
    .catch(() => ({ status: 0, answer: {} }));
  app.toast(
    status === 200 ? `${entry.job} has left the queue` : (answer.error ?? "No answer from the daemon"),
  );
  app.poller.refresh();
}
