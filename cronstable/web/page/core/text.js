// Text of the daemon and of jobs, made safe to look at: nothing that steers a terminal or turns the
// writing direction of what follows.

const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]/g;

// Put a replacement mark where a control character stands; tabs and line feeds stay.
export function clean(value) {
  return String(value).replace(UNSEEN, "\ufffd");
}

// Whether all letters of the needle occur in the text in order, and how well: higher is better, 0 is no.
export function fuzzy(needle, text) {
  if (!needle) return 1;
  const where = text.toLowerCase();
  const exact = where.indexOf(needle);
  if (exact >= 0) return 1000 - exact + (exact === 0 ? 500 : 0) - where.length * 0.01;
  let at = 0;
  let score = 100;
  for (const letter of needle) {
    if (letter === " ") continue;
    const found = where.indexOf(letter, at);
    if (found < 0) return 0;
    const startsWord = found === 0 || /[^a-z0-9]/.test(where[found - 1]);
    score -= startsWord ? 0 : Math.min(10, found - at);
    at = found + 1;
  }
  return Math.max(1, score);
}
