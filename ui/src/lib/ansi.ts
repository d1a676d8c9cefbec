// Colours of terminals as pieces of text with a class from a closed set. Nothing here makes markup.

export interface Piece {
  text: string;
  /** Space-separated names from the style sheet. */
  cls: string;
  /** Colours that have no name there. */
  color: string | null;
  background: string | null;
}

interface Pen {
  fg: string;
  bg: string;
  color: string | null;
  background: string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

export type Style = Readonly<Pen>;

export const PLAIN: Style = {
  fg: "",
  bg: "",
  color: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
};

// An escape: a control sequence, an operating system command and its like up to their end, or two characters.
const ESCAPE =
  /\u001b\[([0-9;:?<=>!]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -~]?|\u009b([0-9;:?]*)([@-~])/g;

/** A line in pieces, and the style that the next line begins with. */
export function parse(line: string, from: Style = PLAIN): { pieces: Piece[]; style: Style } {
  const text = lastOverwrite(line);
  const pieces: Piece[] = [];
  const pen: Pen = { ...from };
  let place = 0;
  for (const found of text.matchAll(ESCAPE)) {
    add(pieces, text.slice(place, found.index), pen);
    place = found.index + found[0].length;
    if ((found[2] ?? found[4]) === "m") colour(pen, found[1] ?? found[3] ?? "");
  }
  add(pieces, text.slice(place), pen);
  return { pieces, style: pen };
}

/** The line without colours. */
export function plain(line: string): string {
  return parse(line)
    .pieces.map((piece) => piece.text)
    .join("");
}

/** What stays of a line that went back to its beginning: progress bars do that. */
function lastOverwrite(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  const back = text.lastIndexOf("\r");
  return back < 0 ? text : text.slice(back + 1);
}

function add(pieces: Piece[], raw: string, pen: Pen): void {
  const text = raw
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
    .replace(
      /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
      (c) => `⟨${(c.codePointAt(0) ?? 0).toString(16)}⟩`,
    );
  if (text === "") return;
  const [fg, bg] = pen.inverse ? [pen.bg || "bg", pen.fg || "fg"] : [pen.fg, pen.bg];
  const [color, background] = pen.inverse ? [pen.background, pen.color] : [pen.color, pen.background];
  const names = [
    fg && `f-${fg}`,
    bg && `b-${bg}`,
    pen.bold && "bold",
    pen.dim && "dim",
    pen.italic && "italic",
  ];
  if (pen.underline) names.push("underline");
  pieces.push({ text, cls: names.filter(Boolean).join(" "), color, background });
}

function colour(pen: Pen, parameters: string): void {
  const codes = parameters.split(/[;:]/).map((part) => (part === "" ? 0 : Number(part)));
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) Object.assign(pen, PLAIN);
    else if (code === 1) pen.bold = true;
    else if (code === 2) pen.dim = true;
    else if (code === 3) pen.italic = true;
    else if (code === 4) pen.underline = true;
    else if (code === 7) pen.inverse = true;
    else if (code === 22) pen.bold = pen.dim = false;
    else if (code === 23) pen.italic = false;
    else if (code === 24) pen.underline = false;
    else if (code === 27) pen.inverse = false;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97))
      front(pen, named(code % 10, code >= 90), null);
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107))
      back(pen, named(code % 10, code >= 100), null);
    else if (code === 39) front(pen, "", null);
    else if (code === 49) back(pen, "", null);
    else if (code === 38 || code === 48) {
      const [name, value, used] = extended(codes.slice(at + 1));
      at += used;
      if (used > 0) (code === 38 ? front : back)(pen, name, value);
    }
  }
}

function front(pen: Pen, name: string, value: string | null): void {
  pen.fg = name;
  pen.color = value;
}

function back(pen: Pen, name: string, value: string | null): void {
  pen.bg = name;
  pen.background = value;
}

const named = (digit: number, isBright: boolean) => `${isBright ? "bright-" : ""}${digit}`;

/** One of 256 colours, or any: its name or its value, and how many numbers it took. */
function extended(codes: number[]): [string, string | null, number] {
  const byte = (number: number | undefined) => Math.min(255, Math.max(0, number ?? 0));
  if (codes[0] === 2) return ["", `rgb(${byte(codes[1])} ${byte(codes[2])} ${byte(codes[3])})`, 4];
  if (codes[0] !== 5) return ["", null, 0];
  const index = byte(codes[1]);
  if (index < 16) return [named(index % 8, index >= 8), null, 2];
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return ["", `rgb(${grey} ${grey} ${grey})`, 2];
  }
  const level = (number: number) => (number === 0 ? 0 : 55 + number * 40);
  const cube = index - 16;
  return [
    "",
    `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`,
    2,
  ];
}
