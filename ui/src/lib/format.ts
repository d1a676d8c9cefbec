// Formats numbers and times for people. Any value from the API may be missing.

/** `4:12`, `1:52:07`; tenths of a second below ten seconds, milliseconds below one second. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms > 0 && ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const total = Math.floor(ms / 1000);
  const [hours, minutes, seconds] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const padded = (part: number) => String(part).padStart(2, "0");
  return hours > 0 ? `${hours}:${padded(minutes)}:${padded(seconds)}` : `${minutes}:${padded(seconds)}`;
}

/** The time of day, with the date unless it is today. */
export function timestamp(ms: number | null | undefined, now: number): string {
  if (ms === null || ms === undefined) return "–";
  const date = new Date(ms);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const isToday = new Date(now).toDateString() === date.toDateString();
  return isToday ? time : `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** ISO 8601, for tooltips. */
export function isoTime(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? "" : new Date(ms).toISOString();
}

/** `$0.38`, with more digits for small amounts. */
export function dollars(micros: number | null | undefined): string {
  if (micros === null || micros === undefined) return "–";
  const amount = micros / 1_000_000;
  return `$${amount >= 1 || amount === 0 ? amount.toFixed(2) : amount.toPrecision(2)}`;
}

/** `182 k`, `1.4 M`. */
export function count(number: number | null | undefined): string {
  if (number === null || number === undefined) return "–";
  if (number < 10_000) return number.toLocaleString("en");
  return number < 1_000_000 ? `${Math.round(number / 1000)} k` : `${(number / 1_000_000).toFixed(1)} M`;
}

export function bytes(number: number): string {
  if (number < 1024) return `${number} B`;
  return number < 1 << 20 ? `${(number / 1024).toFixed(1)} kB` : `${(number / (1 << 20)).toFixed(1)} MB`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** Makes control and bidirectional formatting characters visible; newlines and tabs stay. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (c) => {
      const code = c.codePointAt(0) ?? 0;
      return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨${code.toString(16)}⟩`;
    },
  );
}
