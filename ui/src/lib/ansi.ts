// Parses the ANSI colours of a log line into spans of text with CSS classes from a fixed set. It produces no markup.

export interface AnsiSpan {
  text: string;
  /** Space-separated CSS classes. */
  classes: string;
  /** Colours outside the 16 named ones, as CSS values. */
  color: string | null;
  background: string | null;
}

interface MutableStyle {
  fg: string;
  bg: string;
  color: string | null;
  background: string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
}

export type AnsiStyle = Readonly<MutableStyle>;

export const PLAIN: AnsiStyle = {
  fg: "",
  bg: "",
  color: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

// An escape sequence: CSI; OSC, DCS and the like up to their terminator; or two characters.
const ESCAPE =
  /\u001b\[([0-9;:?<=>!]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -~]?|\u009b([0-9;:?]*)([@-~])/g;

/** Parses a line; the returned style is the one that the next line starts with. */
export function parseAnsi(line: string, from: AnsiStyle = PLAIN): { spans: AnsiSpan[]; style: AnsiStyle } {
  const text = lastOverwrite(line);
  const spans: AnsiSpan[] = [];
  const style: MutableStyle = { ...from };
  let offset = 0;
  for (const escape of text.matchAll(ESCAPE)) {
    addSpan(spans, text.slice(offset, escape.index), style);
    offset = escape.index + escape[0].length;
    if ((escape[2] ?? escape[4]) === "m") applyCodes(style, escape[1] ?? escape[3] ?? "");
  }
  addSpan(spans, text.slice(offset), style);
  return { spans, style };
}

export function stripAnsi(line: string): string {
  return parseAnsi(line)
    .spans.map((span) => span.text)
    .join("");
}

/** What a terminal shows of a line with carriage returns, such as a progress bar. */
function lastOverwrite(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  return text.slice(text.lastIndexOf("\r") + 1);
}

function addSpan(spans: AnsiSpan[], raw: string, style: MutableStyle): void {
  const text = raw
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
    .replace(
      /[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
      (c) => `⟨${(c.codePointAt(0) ?? 0).toString(16)}⟩`,
    );
  if (text === "") return;
  const [fg, bg] = style.inverse ? [style.bg || "bg", style.fg || "fg"] : [style.fg, style.bg];
  const [color, background] = style.inverse
    ? [style.background, style.color]
    : [style.color, style.background];
  const classes = [
    fg && `f-${fg}`,
    bg && `b-${bg}`,
    style.bold && "bold",
    style.dim && "dim",
    style.italic && "italic",
  ];
  if (style.underline) classes.push("underline");
  if (style.strike) classes.push("strike");
  if (color !== null) classes.push("custom");
  spans.push({ text, classes: classes.filter(Boolean).join(" "), color, background });
}

function applyCodes(style: MutableStyle, parameters: string): void {
  const codes = parameters.split(/[;:]/).map((part) => (part === "" ? 0 : Number(part)));
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] ?? 0;
    if (code === 0) Object.assign(style, PLAIN);
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 9) style.strike = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code === 29) style.strike = false;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97))
      setForeground(style, colorName(code % 10, code >= 90), null);
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107))
      setBackground(style, colorName(code % 10, code >= 100), null);
    else if (code === 39) setForeground(style, "", null);
    else if (code === 49) setBackground(style, "", null);
    else if (code === 38 || code === 48) {
      const [name, value, used] = extendedColor(codes.slice(index + 1));
      index += used;
      if (used > 0) (code === 38 ? setForeground : setBackground)(style, name, value);
    }
  }
}

function setForeground(style: MutableStyle, name: string, value: string | null): void {
  style.fg = name;
  style.color = value;
}

function setBackground(style: MutableStyle, name: string, value: string | null): void {
  style.bg = name;
  style.background = value;
}

const colorName = (digit: number, isBright: boolean) => `${isBright ? "bright-" : ""}${digit}`;

/** Parses a 256-colour or RGB code: its name or CSS value, and how many numbers it takes. */
function extendedColor(codes: number[]): [string, string | null, number] {
  const byte = (number: number | undefined) => Math.min(255, Math.max(0, number ?? 0));
  if (codes[0] === 2) return ["", `rgb(${byte(codes[1])} ${byte(codes[2])} ${byte(codes[3])})`, 4];
  if (codes[0] !== 5) return ["", null, 0];
  const index = byte(codes[1]);
  if (index < 16) return [colorName(index % 8, index >= 8), null, 2];
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
