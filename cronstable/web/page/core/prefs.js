// What a person chose, kept in this browser. Nothing secret belongs here.

const KEY = "cronstable.prefs";

const DEFAULTS = {
  interval: 1,
  theme: "auto",
  colours: "standard",
  density: "regular",
  scale: 100,
  motion: "auto",
  clock: "local",
  span: null,
  view: "slots",
  columns: { owner: true, next_clock: false, rate: false, zone: false, policy: false },
  notify: false,
  sound: false,
  log: { follow: true, wrap: false, times: false, numbers: false, colour: true },
};

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return kept && typeof kept === "object" ? kept : {};
  } catch {
    return {};
  }
}

export function loadPrefs() {
  const kept = read();
  return {
    ...DEFAULTS,
    ...kept,
    columns: { ...DEFAULTS.columns, ...kept.columns },
    log: { ...DEFAULTS.log, ...kept.log },
  };
}

export function savePrefs(prefs) {
  try {
    localStorage.setItem(KEY, JSON.stringify(prefs));
  } catch {
    // A browser that keeps nothing still shows the page.
  }
}

// Put what concerns looks on the root element, where the style sheets read it.
export function applyPrefs(prefs) {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = prefs.theme === "auto" ? (dark ? "dark" : "light") : prefs.theme;
  root.dataset.colours = prefs.colours;
  root.dataset.density = prefs.density;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  root.dataset.motion =
    prefs.motion === "reduced" || (prefs.motion === "auto" && still) ? "reduced" : "full";
  root.style.setProperty("font-size", `${prefs.scale}%`);
}
