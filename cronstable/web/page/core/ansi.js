// Lines of output with terminal colours, as pieces of text. Every other escape sequence is left out.

const SEQUENCE =
  /\u001b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;

// Split a line into [{text, classes, colour}]; colour is a CSS colour or null.
export function colourPieces(line) {
  if (!line.includes("\u001b")) return [{ text: line, classes: "", colour: null }];
  const pieces = [];
  let style = plain();
  let from = 0;
  for (const found of line.matchAll(SEQUENCE)) {
    if (found.index > from) pieces.push(piece(line.slice(from, found.index), style));
    if (found[2] === "m") style = applied(style, found[1]);
    from = found.index + found[0].length;
  }
  if (from < line.length) pieces.push(piece(line.slice(from), style));
  return pieces;
}

export function withoutColour(line) {
  return line.includes("\u001b") ? line.replace(SEQUENCE, "") : line;
}

function plain() {
  return { flags: new Set(), named: null, colour: null };
}

function piece(text, { flags, named, colour }) {
  const classes = [...flags].map((flag) => `sgr-${flag}`);
  if (named !== null) classes.push(`sgr-c${named}`);
  return { text, classes: classes.join(" "), colour };
}

const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "inverse", 9: "strike" };
const UNSET = { 22: ["bold", "dim"], 23: ["italic"], 24: ["under"], 27: ["inverse"], 29: ["strike"] };

function applied(style, text) {
  const codes = text.split(/[;:]/).map(Number);
  let { flags, named, colour } = { ...style, flags: new Set(style.flags) };
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) [flags, named, colour] = [new Set(), null, null];
    else if (FLAGS[code]) flags.add(FLAGS[code]);
    else if (UNSET[code]) for (const flag of UNSET[code]) flags.delete(flag);
    else if (code >= 30 && code <= 37) [named, colour] = [code - 30, null];
    else if (code >= 90 && code <= 97) [named, colour] = [code - 82, null];
    else if (code === 39) [named, colour] = [null, null];
    else if (code === 38 || code === 48) {
      const wide = codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
      if (code === 38 && wide === 2)
        [named, colour] = codes[i + 2] < 16 ? [codes[i + 2], null] : [null, cube(codes[i + 2])];
      if (code === 38 && wide === 4) [named, colour] = [null, rgb(codes.slice(i + 2, i + 5))];
      i += wide;
    }
  }
  return { flags, named, colour };
}

function cube(number) {
  if (!(number <= 255)) return null;
  if (number >= 232) return rgb(Array(3).fill(8 + (number - 232) * 10));
  const at = number - 16;
  return rgb(
    [Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((level) => (level ? 55 + level * 40 : 0)),
  );
}

function rgb(parts) {
  return parts.length === 3 && parts.every((part) => part >= 0 && part <= 255)
    ? `rgb(${parts.join(" ")})`
    : null;
}
