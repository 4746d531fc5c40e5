// Deep links in the part after #: job/<name>[/<tab>], tv, timeline.

export function readRoute(hash = location.hash) {
  const [kind, name, tab] = hash
    .replace(/^#/, "")
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
  return { kind: kind ?? "", name: name ?? "", tab: tab ?? "" };
}

export function jobRoute(name, tab) {
  return `#job/${encodeURIComponent(name)}${tab && tab !== "log" ? `/${tab}` : ""}`;
}

// Change the address without a new entry in the history: opening ten jobs is not ten pages.
export function writeRoute(hash) {
  if (location.hash === hash) return;
  history.replaceState(null, "", hash || location.pathname + location.search);
}
