// Offsets of time zones, from what the browser knows, as stretches of constant offset.

const HOUR = 3600_000;
const formatters = new Map();
const stretches = new Map();

function formatter(zone) {
  let made = formatters.get(zone);
  if (!made) {
    made = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
      era: "short",
    });
    formatters.set(zone, made);
  }
  return made;
}

// Milliseconds that the wall clock of the zone is ahead of UTC at an instant.
export function offsetAt(zone, at) {
  if (zone === "UTC") return 0;
  const part = {};
  for (const { type, value } of formatter(zone).formatToParts(at)) part[type] = value;
  const label = Date.UTC(+part.year, +part.month - 1, +part.day, +part.hour, +part.minute, +part.second);
  return label - Math.floor(at / 1000) * 1000;
}

// The stretches [{start, end, offset}] of constant offset that cover from..to, with margin.
export function offsets(zone, from, to) {
  if (zone === "UTC") return [{ start: -Infinity, end: Infinity, offset: 0 }];
  const first = Math.floor((from - 30 * HOUR) / (6 * HOUR)) * 6 * HOUR;
  const last = Math.ceil((to + 30 * HOUR) / (6 * HOUR)) * 6 * HOUR;
  const key = `${zone}|${first}|${last}`;
  const known = stretches.get(key);
  if (known) return known;
  if (stretches.size > 200) stretches.clear();
  const found = [{ start: -Infinity, end: Infinity, offset: offsetAt(zone, first) }];
  for (let at = first; at < last; at += 6 * HOUR) {
    const next = offsetAt(zone, at + 6 * HOUR);
    const current = found[found.length - 1];
    if (next === current.offset) continue;
    const turn = transition(zone, at, at + 6 * HOUR, current.offset);
    current.end = turn;
    found.push({ start: turn, end: Infinity, offset: next });
  }
  stretches.set(key, found);
  return found;
}

// The first second in (low, high] at which the zone no longer has this offset.
function transition(zone, low, high, offset) {
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000;
    if (offsetAt(zone, middle) === offset) low = middle;
    else high = middle;
  }
  return high;
}

// The instants that a wall-clock label (written as if it were UTC) means: one, or two where clocks
// go back; a label that is skipped where they go forward moves later by the gap.
export function instantsOf(label, pieces) {
  const found = [];
  for (const { start, end, offset } of pieces) {
    const at = label - offset;
    if (at >= start && at < end) found.push(at);
  }
  if (found.length) return found;
  for (let i = 1; i < pieces.length; i += 1) {
    const at = label - pieces[i - 1].offset;
    if (at >= pieces[i].start && label - pieces[i].offset < pieces[i].start) return [at];
  }
  return found;
}
