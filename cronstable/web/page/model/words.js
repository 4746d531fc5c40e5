// A schedule in a few plain words, short enough for a table cell. null: better shown as written.

import { CronError, parseCron } from "./cron.js";

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const cache = new Map();

export function scheduleWords(text) {
  if (text === "@reboot") return "at boot";
  if (!cache.has(text)) {
    if (cache.size > 5000) cache.clear();
    cache.set(text, describe(text));
  }
  return cache.get(text);
}

function describe(text) {
  let plan;
  try {
    plan = parseCron(text);
  } catch (error) {
    if (error instanceof CronError) return null;
    throw error;
  }
  const time = timeWords(plan);
  const day = dayWords(plan);
  if (time === null || day === null) return null;
  const year = plan.year.any ? "" : plan.year.list.length === 1 ? ` in ${plan.year.list[0]}` : null;
  if (year === null) return null;
  if (time.clock) return `${day || "daily"} ${time.text}${year}`;
  return day ? `${time.text}, ${day}${year}` : `${time.text}${year}`;
}

// {text, clock}: clock says that the text is one or a few times of day.
function timeWords({ second, minute, hour }) {
  if (second.list.length > 1) {
    if (!minute.any || !hour.any) return null;
    const step = evenStep(second.list, 60);
    return step === 1 ? { text: "every second" } : step ? { text: `every ${step} s` } : null;
  }
  const tail = second.list[0] ? `:${two(second.list[0])}` : "";
  if (minute.any && !tail) return withHours(hour, "every minute");
  if (minute.list.length > 1 && !tail) {
    const step = evenStep(minute.list, 60);
    if (step) return withHours(hour, `every ${step} min`);
  }
  if (hour.any && minute.list.length <= 3) {
    return { text: `hourly at ${minute.list.map((value) => `:${two(value)}${tail}`).join(", ")}` };
  }
  const step = hour.list.length > 2 ? evenStep(hour.list, 24) : 0;
  if (step && minute.list.length === 1) {
    const start =
      hour.list[0] || minute.list[0] ? ` from ${two(hour.list[0])}:${two(minute.list[0])}${tail}` : "";
    return { text: `every ${step} h${start}` };
  }
  if (hour.list.length * minute.list.length > 3) return null;
  const times = hour.list.flatMap((at) => minute.list.map((value) => `${two(at)}:${two(value)}${tail}`));
  return { text: times.join(", "), clock: true };
}

function withHours(hour, text) {
  if (hour.any) return { text };
  const run = runs(hour.list);
  if (run.length !== 1) return null;
  const [low, high] = run[0];
  return { text: `${text} ${two(low)}:00–${two(high)}:59` };
}

function dayWords({ dom, month, dow }) {
  const months = month.any ? "" : monthWords(month.list);
  if (months === null) return null;
  if (dom.special.length || dow.special.length) return specialWords(dom, dow, months);
  if (!dom.any && !dow.any) return null;
  if (!dom.any) {
    if (dom.list.length > 4) return null;
    if (months && dom.list.length === 1 && month.list.length === 1) return `${dom.list[0]} ${months}`;
    const days = dom.list.map(ordinal).join(", ");
    return months ? `${days} of ${months}` : `${days} of the month`;
  }
  const days = dow.any ? "" : weekdayWords(dow.list);
  if (days === null) return null;
  return [days, months && `in ${months}`].filter(Boolean).join(" ");
}

function specialWords(dom, dow, months) {
  const where = months ? ` of ${months}` : " of the month";
  if (dom.special.length === 1 && !dom.list.length && dow.any && !dow.special.length) {
    const rule = dom.special[0].text;
    if (rule === "L") return `last day${where}`;
    if (rule === "LW") return `last workday${where}`;
    return null;
  }
  if (dow.special.length === 1 && !dow.list.length && dom.any && !dom.special.length) {
    const last = /^L([0-7])$/i.exec(dow.special[0].text);
    if (last) return `last ${DAYS[Number(last[1]) % 7]}${where}`;
    const nth = /^(\w+)#([1-5])$/.exec(dow.special[0].text);
    if (nth) {
      const day =
        DAYS.find((name) => name.toLowerCase() === nth[1].toLowerCase()) ?? DAYS[Number(nth[1]) % 7];
      return `${ordinal(Number(nth[2]))} ${day}${where}`;
    }
  }
  return null;
}

function weekdayWords(list) {
  const key = list.join("");
  if (key === "12345") return "Mon–Fri";
  if (key === "06") return "Sat, Sun";
  return list.length > 4 ? null : list.map((day) => DAYS[day]).join(", ");
}

function monthWords(list) {
  const found = runs(list);
  if (found.length > 3) return null;
  return found
    .map(([low, high]) => (low === high ? MONTHS[low - 1] : `${MONTHS[low - 1]}–${MONTHS[high - 1]}`))
    .join(", ");
}

// The step of a list that repeats evenly around a whole, or 0.
function evenStep(list, whole) {
  const step = list.length > 1 ? list[1] - list[0] : whole;
  if (whole % step || list.length !== whole / step) return 0;
  return list.every((value, i) => value === list[0] + i * step) ? step : 0;
}

function runs(list) {
  const found = [];
  for (const value of list) {
    const open = found[found.length - 1];
    if (open && open[1] === value - 1) open[1] = value;
    else found.push([value, value]);
  }
  return found;
}

function ordinal(value) {
  const end = value % 100 > 10 && value % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${end}`;
}

function two(value) {
  return String(value).padStart(2, "0");
}
