// Formats numbers and times for people, as the command line does. Any value from the API may be missing; a missing value is
// a dash, never a zero.

export const UNKNOWN = "–";

/** `4:12`, `1:52:07`; tenths of a second below ten seconds, milliseconds below one second. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return UNKNOWN;
  if (ms > 0 && ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  return clockTime(ms);
}

/** `0:05`, `4:12`, `1:52:07`: a clock that runs. */
export function clockTime(ms: number): string {
  const total = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const padded = (part: number) => String(part).padStart(2, "0");
  return hours > 0 ? `${hours}:${padded(minutes)}:${padded(seconds)}` : `${minutes}:${padded(seconds)}`;
}

/** The time of day, with the date unless it is today. */
export function timestamp(ms: number | null | undefined, now: number): string {
  if (ms === null || ms === undefined) return UNKNOWN;
  const date = new Date(ms);
  const padded = (part: number) => String(part).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(padded).join(":");
  const isToday = new Date(now).toDateString() === date.toDateString();
  return isToday ? time : `${date.toLocaleDateString("en", { day: "numeric", month: "short" })} ${time}`;
}

/** ISO 8601, for tooltips. */
export function isoTime(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? "" : new Date(ms).toISOString();
}

/** `$1.25`, rounded down to the cent; an amount below a cent keeps its digits. */
export function dollars(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return UNKNOWN;
  if (micros > 0 && micros < 10_000) return `$${(micros / 1_000_000).toFixed(6).replace(/0+$/, "")}`;
  return `$${(Math.floor(micros / 10_000) / 100).toFixed(2)}`;
}

/** `950`, `12.3k`, `4.56M`, rounded down. */
export function count(number: number | null | undefined): string {
  if (number === null || number === undefined) return UNKNOWN;
  if (number < 10_000) return String(number);
  const shortened = (value: number, digits: number) =>
    (Math.floor(value * 10 ** digits) / 10 ** digits).toFixed(digits).replace(/\.?0+$/, "");
  return number < 1_000_000 ? `${shortened(number / 1000, 1)}k` : `${shortened(number / 1_000_000, 2)}M`;
}

export function bytes(number: number): string {
  if (number < 1024) return `${number} B`;
  return number < 1 << 20 ? `${(number / 1024).toFixed(1)} kB` : `${(number / (1 << 20)).toFixed(1)} MB`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** `complete` as `Complete`. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `42 %` */
export function share(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((part / whole) * 100)} %` : UNKNOWN;
}

// Not U+200C and U+200D: Persian and joined emoji need them, and they reorder nothing.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Makes control and bidirectional formatting characters visible; newlines and tabs stay. */
export function escapeControls(text: string): string {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨${code.toString(16)}⟩`;
  });
}

/** A text in Markdown as one plain line, for lists. */
export function plainLine(markdown: string): string {
  const plain = markdown
    .replace(/\*\*|__|`/g, "")
    .replace(/^\s*(?:[-*+]|#+|\d+\.)\s+/gm, "")
    .replace(/\s+/g, " ");
  return escapeControls(plain.trim());
}

/** Makes absolute paths below the repository's folder in a text relative to it. */
export function relativePaths(text: string, project: string | undefined): string {
  return project ? text.replace(/(?:\/[\w.@+-]+)+/g, (path) => relativePath(path, project)) : text;
}

/** Makes an absolute path below the repository's folder relative to it. `project` is the name of that folder. */
export function relativePath(path: string, project: string | undefined): string {
  const at = path.startsWith("/") && project ? path.indexOf(`/${project}/`) : -1;
  return at < 0 ? path : path.slice(at + (project?.length ?? 0) + 2);
}
