// The cluster: this node's part in it and how it sees the others.

import { arrange, h, icon, setText } from "../core/dom.js";
import { absolute, ago, parseInstant } from "../core/time.js";
import { clusterTrouble } from "./alerts.js";
import { table } from "./plain-table.js";

// Each state of a peer has a form and a word of its own.
const PEER = {
  agreed: ["ok", "ok"],
  self: ["ok", "running"],
  syncing: ["queued", "queued"],
  drifted: ["skipped", "cancelled"],
  untrusted: ["failed", "failed"],
  conflict: ["failed", "failed"],
  unreachable: ["cancelled", "failed"],
  unknown: ["unknown", "unknown"],
};

export const clusterPanel = {
  id: "cluster",
  title: "Cluster",
  keys: ["cluster", "jobs"],
  inUse: (state) => Boolean(state.cluster?.enabled),
  make(app) {
    const summary = h("p", { class: "soft" });
    const node = h("div", { class: "peers" });
    return {
      node,
      tools: [summary],
      update({ cluster, jobs }) {
        setText(summary, summaryWords(cluster, jobs ?? []));
        const now = app.now();
        const parts = [];
        if (cluster.lease)
          parts.push(
            h(
              "dl",
              { class: "facts-list" },
              Object.entries(cluster.lease)
                .filter(([, value]) => value !== null)
                .map(([key, value]) =>
                  h("div", {}, h("dt", { text: key }), h("dd", { text: String(value) })),
                ),
            ),
          );
        if (cluster.peers.length) parts.push(peerTable(cluster, jobs ?? [], now));
        arrange(node, parts);
      },
    };
  },
};

function roleWords(cluster, jobs) {
  if (cluster.conflict || cluster.size_conflict || cluster.policy_conflict) return "standing down";
  if (!cluster.elect_leader) return "no election";
  if (!cluster.quorate) return "no quorum";
  if (cluster.distribution === "spread")
    return `owns ${jobs.filter((job) => job.raw.clusterOwner === cluster.node_name).length} jobs`;
  return cluster.is_leader ? "leader" : cluster.leader ? `follows ${cluster.leader}` : "no leader";
}

function summaryWords(cluster, jobs) {
  const parts = [cluster.node_name, roleWords(cluster, jobs), cluster.backend];
  if (cluster.backend === "gossip") {
    const others = cluster.peers.filter((peer) => peer.status !== "self");
    parts.push(
      `${others.filter((peer) => peer.status === "agreed").length} of ${others.length} others agree`,
      `quorum ${cluster.quorum} of ${cluster.cluster_size}`,
    );
  }
  const trouble = clusterTrouble(cluster);
  return [...parts, trouble].filter(Boolean).join(", ");
}

function peerTable(cluster, jobs, now) {
  const spread = cluster.distribution === "spread";
  const heads = [
    "State",
    "Address",
    "Node",
    spread ? "Owns" : null,
    "Job set",
    "Seen",
    "Last error",
  ].filter((text) => text !== null);
  return table(
    heads,
    cluster.peers.map((peer) => {
      const [shape, kind] = PEER[peer.status] ?? PEER.unknown;
      const seen = parseInstant(peer.last_seen);
      return h(
        "tr",
        {},
        h("td", {}, h("span", { class: `state is-${kind}` }, icon(shape), peer.status)),
        h("td", { text: peer.host }),
        h("td", { text: peer.node_name ?? "–" }),
        spread
          ? h("td", {
              text: String(jobs.filter((job) => job.raw.clusterOwner === peer.node_name).length),
            })
          : null,
        h("td", { class: "mono", text: (peer.job_set_id ?? "–").slice(0, 11), title: peer.job_set_id }),
        h("td", { text: seen === null ? "–" : ago(seen, now), title: seen && absolute(seen, null) }),
        h("td", { class: "wide soft", text: peer.last_error ?? "" }),
      );
    }),
  );
}
