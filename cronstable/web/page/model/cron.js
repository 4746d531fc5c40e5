// The schedule dialect, as far as the page needs it: parse an expression and list its fires.
// The daemon has the last word; docs/schedules.md specifies the dialect.

import { instantsOf, offsets } from "./zones.js";

const DAY = 86400_000;
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const NICKNAMES = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};
const FIELDS = {
  second: { low: 0, high: 59 },
  minute: { low: 0, high: 59 },
  hour: { low: 0, high: 23 },
  dom: { low: 1, high: 31 },
  month: { low: 1, high: 12, names: MONTHS, base: 1 },
  dow: { low: 0, high: 7, top: 6, names: WEEKDAYS, base: 0 },
  year: { low: 1970, high: 2099 },
};

export class CronError extends Error {}

const parsed = new Map();

// Parse an expression; throws CronError. The result is shared, so leave it as it is.
export function parseCron(text) {
  let plan = parsed.get(text);
  if (!plan) {
    if (parsed.size > 5000) parsed.clear();
    plan = parse(text);
    parsed.set(text, plan);
  }
  return plan;
}

function parse(text) {
  const trimmed = text.trim();
  const expression = trimmed[0] === "@" ? NICKNAMES[trimmed.toLowerCase()] : trimmed;
  if (!expression) throw new CronError(`unknown nickname ${trimmed}`);
  const columns = expression.split(/\s+/);
  if (columns.length < 5 || columns.length > 7) throw new CronError("5, 6 or 7 fields are needed");
  const named = columns.length === 7 ? columns : ["0", ...columns];
  const plan = {};
  ["second", "minute", "hour", "dom", "month", "dow", "year"].forEach((field, i) => {
    plan[field] = parseField(field, named[i] ?? "*");
  });
  return plan;
}

function parseField(field, text) {
  const shape = FIELDS[field];
  const values = new Set();
  const special = [];
  if (text === "?" && (field === "dom" || field === "dow")) return parseField(field, "*");
  for (const item of text.split(",")) {
    const rule = field === "dom" ? monthDayRule(item) : field === "dow" ? weekdayRule(item) : null;
    if (rule) special.push(rule);
    else for (const value of plainItem(field, shape, item)) values.add(field === "dow" ? value % 7 : value);
  }
  const width = (shape.top ?? shape.high) - shape.low + 1;
  return { list: [...values].sort((a, b) => a - b), has: values, special, any: values.size >= width };
}

function plainItem(field, shape, item) {
  const parts = /^([^/]+)(?:\/(\d+))?$/.exec(item);
  if (!parts) throw new CronError(`${field}: ${item}`);
  const step = parts[2] === undefined ? null : Number(parts[2]);
  const top = shape.top ?? shape.high;
  let low;
  let high;
  if (parts[1] === "*") [low, high] = [shape.low, top];
  else {
    const ends = parts[1].split("-");
    if (ends.length > 2) throw new CronError(`${field}: ${item}`);
    low = number(field, shape, ends[0]);
    high = ends.length === 2 ? number(field, shape, ends[1]) : step === null ? low : top;
    if (ends.length === 2 && field === "dow" && high === 0) high = 7;
    if (low > high && ends.length === 2) throw new CronError(`${field}: ${item} goes backwards`);
  }
  if (step !== null && (step < 1 || step > shape.high || low + step > shape.high)) {
    throw new CronError(`${field}: step ${step} is too wide`);
  }
  const found = [];
  for (let value = low; value <= high; value += step ?? 1) found.push(value);
  return found;
}

function number(field, shape, text) {
  const named = shape.names ? shape.names.indexOf(text.toLowerCase()) : -1;
  const value = named >= 0 ? named + shape.base : /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(value >= shape.low && value <= shape.high)) throw new CronError(`${field}: ${text}`);
  return value;
}

// L, L-3, 15W, LW. A rule tells the day of a month that it means, or 0.
function monthDayRule(item) {
  const text = item.toUpperCase();
  let found = /^L(?:-(\d+))?$/.exec(text);
  if (found) {
    const back = found[1] === undefined ? 0 : Number(found[1]);
    if (found[1] !== undefined && (back < 1 || back > 30)) throw new CronError(`dom: ${item}`);
    return { text, day: (last) => Math.max(0, last - back) };
  }
  if (text === "LW") return { text, day: (last, firstWeekday) => nearest(last, last, firstWeekday) };
  found = /^(\d+)W$/.exec(text);
  if (!found) return null;
  const wanted = Number(found[1]);
  if (wanted < 1 || wanted > 31) throw new CronError(`dom: ${item}`);
  return { text, day: (last, firstWeekday) => (wanted > last ? 0 : nearest(wanted, last, firstWeekday)) };
}

function nearest(day, last, firstWeekday) {
  const weekday = (firstWeekday + day - 1) % 7;
  if (weekday === 6) return day > 1 ? day - 1 : day + 2;
  if (weekday === 0) return day < last ? day + 1 : day - 2;
  return day;
}

// L5, L1-3, fri#2. A rule tells whether a day of the month with a weekday matches.
function weekdayRule(item) {
  let found = /^L([0-7])(?:-([0-7]))?$/i.exec(item);
  if (found) {
    const low = Number(found[1]);
    const high = found[2] === undefined ? low : Number(found[2]);
    const days = new Set();
    for (let value = low; value <= high; value += 1) days.add(value % 7);
    return { text: item, matches: (day, weekday, last) => days.has(weekday) && day + 7 > last };
  }
  found = /^(\w+)#(\d+)$/.exec(item);
  if (!found) return null;
  const weekday = number("dow", FIELDS.dow, found[1]) % 7;
  const nth = Number(found[2]);
  if (nth < 1 || nth > 5) throw new CronError(`dow: ${item}`);
  return { text: item, matches: (day, on) => on === weekday && Math.ceil(day / 7) === nth };
}

// Whether a calendar day (a label at midnight, as if UTC) matches the date fields.
function dayMatches(plan, label) {
  const date = new Date(label);
  const month = date.getUTCMonth() + 1;
  if (!plan.month.has.has(month) || !plan.year.has.has(date.getUTCFullYear())) return false;
  const day = date.getUTCDate();
  const weekday = date.getUTCDay();
  const last =
    plan.dom.special.length || plan.dow.special.length
      ? new Date(Date.UTC(date.getUTCFullYear(), month, 0)).getUTCDate()
      : 31;
  const first = (weekday - ((day - 1) % 7) + 7) % 7;
  return (
    (plan.dom.has.has(day) || plan.dom.special.some((rule) => rule.day(last, first) === day)) &&
    (plan.dow.has.has(weekday) || plan.dow.special.some((rule) => rule.matches(day, weekday, last)))
  );
}

// Instants in (from, to] at which the schedule fires in the zone, ascending, at most limit.
// With coarse, a minute that fires counts once however many of its seconds match.
export function fires(text, zone, from, to, { limit = 20000, coarse = false } = {}) {
  const plan = parseCron(text);
  const pieces = offsets(zone, from, to);
  const seconds = coarse ? plan.second.list.slice(0, 1) : plan.second.list;
  const found = [];
  const firstDay = Math.floor((from + offsetNear(pieces, from)) / DAY) - 1;
  const lastDay = Math.floor((to + offsetNear(pieces, to)) / DAY) + 1;
  for (let day = firstDay; day <= lastDay; day += 1) {
    if (!dayMatches(plan, day * DAY)) continue;
    for (const hour of plan.hour.list) {
      const label = day * DAY + hour * 3600_000;
      const plain = pieces.length === 1;
      if (plain && (label - pieces[0].offset > to || label - pieces[0].offset + 3600_000 <= from)) continue;
      for (const minute of plan.minute.list) {
        for (const second of seconds) {
          const at = label + minute * 60_000 + second * 1000;
          if (plain) found.push(at - pieces[0].offset);
          else {
            const instants = instantsOf(at, pieces);
            // A repeated hour counts twice only for schedules that run in every hour.
            found.push(...(plan.hour.any ? instants : instants.slice(0, 1)));
          }
        }
      }
    }
    if (pieces.length === 1 && found.length > limit * 2 && found[found.length - 1] > from) break;
  }
  if (pieces.length > 1) found.sort((a, b) => a - b);
  const kept = [];
  for (const at of found) {
    if (at > from && at <= to && at !== kept[kept.length - 1]) kept.push(at);
    if (kept.length >= limit) break;
  }
  return kept;
}

function offsetNear(pieces, at) {
  return (pieces.find(({ start, end }) => at >= start && at < end) ?? pieces[0]).offset;
}
