// Times as people read them: relative where they think relatively, absolute with a zone elsewhere.

const formats = new Map();

function format(zone, options) {
  const key = `${zone}|${JSON.stringify(options)}`;
  let made = formats.get(key);
  if (!made) {
    const settings = { hourCycle: "h23", ...options };
    try {
      made = new Intl.DateTimeFormat("en-GB", zone ? { ...settings, timeZone: zone } : settings);
    } catch {
      made = new Intl.DateTimeFormat("en-GB", { ...settings, timeZone: "UTC" });
    }
    formats.set(key, made);
  }
  return made;
}

// The zone of this browser, by name.
export const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function parseInstant(text) {
  if (!text) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

// 13:42 or 13:42:07
export function clockTime(at, zone, seconds = false) {
  return format(zone, {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds ? { second: "2-digit" } : {}),
  }).format(at);
}

// Sun 29 Nov
export function shortDate(at, zone) {
  return format(zone, { weekday: "short", day: "numeric", month: "short" }).format(at).replace(",", "");
}

// Sun, 29 Nov 2026, 13:42:07 UTC
export function absolute(at, zone) {
  if (at === null || at === undefined) return "";
  const text = format(zone, {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  }).format(at);
  return `${text} ${zoneLabel(zone)}`;
}

function zoneLabel(zone) {
  return zone || localZone;
}

const STEPS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
];

// "12 min": one unit, rounded down, at most two when the second one matters.
export function span(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of STEPS) {
    if (whole >= size * (unit === "min" ? 1 : 2) || (whole >= size && unit === "h")) {
      const count = Math.floor(whole / size);
      const rest = unit === "h" && count < 6 ? Math.floor((whole % size) / 60) : 0;
      return rest ? `${count} h ${rest} min` : `${count} ${unit}`;
    }
  }
  return `${whole} s`;
}

export function ago(at, now) {
  if (at === null) return "";
  const seconds = (now - at) / 1000;
  return seconds < 3 ? "just now" : `${span(seconds)} ago`;
}

// Time until an instant; within two minutes the seconds count.
export function until(at, now) {
  const seconds = (at - now) / 1000;
  if (seconds <= 0.5) return "now";
  return seconds < 120 ? `in ${Math.ceil(seconds)} s` : `in ${span(seconds)}`;
}

// How long something took; short ones keep their digits.
export function took(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 600) {
    const whole = Math.round(seconds);
    return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  }
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function bytes(count) {
  if (count === null || count === undefined) return "";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function percent(part) {
  if (part === null || part === undefined) return "";
  const value = part * 100;
  return value > 99 && value < 100 ? "> 99 %" : `${Math.round(value)} %`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-GB")} ${count === 1 ? one : many}`;
}
