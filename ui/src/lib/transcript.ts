// The transcript of a session, as rows. The events may come from an older or a newer runner: unknown ones are shown
// as they are, and no field is trusted to have the right type.

import { stripAnsi } from "./ansi";
import { bytes, count, dollars, duration } from "./format";
import type { IndexedLine } from "./growing-log";
import { list, number, object, text, type Json } from "./json-fields";
import { outcomeLabel, spaced, stopLabel, type Tone } from "./labels";
import { evidenceRow } from "./transcript-evidence";

export interface TranscriptRow {
  /** Unique and stable: a later event with the same key replaces the earlier one. */
  key: string;
  /** Milliseconds since the session started; null if unknown. */
  t: number | null;
  glyph: string;
  kind: string;
  title: string;
  body: string;
  note: string;
  tone: Tone | "";
  isFailure: boolean;
  /** When it started, in milliseconds since 1970, if it is still running. */
  runningSinceMs?: number;
  /** The rows that this one stands for. */
  folded?: TranscriptRow[];
  tab?: "guard" | "prompt" | "diff";
}

const JSON_CHARS_MAX = 2000;
const shortJson = (value: unknown): string => {
  const json = JSON.stringify(value) ?? "";
  return json.length > JSON_CHARS_MAX ? `${json.slice(0, JSON_CHARS_MAX)} …` : json;
};

export type RowParts = Pick<TranscriptRow, "glyph" | "title"> & Partial<TranscriptRow>;

const EXPLORATION: ReadonlySet<string> = new Set(["read", "search"]);

/** Consecutive reads and searches become one row. */
export function foldRows(rows: TranscriptRow[]): TranscriptRow[] {
  const shown: TranscriptRow[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at] as TranscriptRow;
    let end = at;
    while (end < rows.length && EXPLORATION.has(rows[end]?.kind ?? "") && !rows[end]?.isFailure) end++;
    if (end - at < 2) {
      shown.push(row);
      at++;
      continue;
    }
    const folded = rows.slice(at, end);
    const files = new Set(folded.filter((one) => one.kind === "read").map((one) => one.title)).size;
    const searches = folded.length - folded.filter((one) => one.kind === "read").length;
    const parts = [
      files > 0 ? `${files} ${files === 1 ? "file" : "files"}` : "",
      searches > 0 ? `${searches} ${searches === 1 ? "search" : "searches"}` : "",
    ];
    const title = `Explored ${parts.filter(Boolean).join(", ")}`;
    shown.push({ ...newRow({ glyph: "○", title, kind: "explored" }, `f:${row.key}`, row.t), folded });
    at = end;
  }
  return shown;
}

interface ParsedEvent {
  event: Json;
  isAgentEvent: boolean;
  parts: RowParts | null;
}

/** Each line is parsed once: a transcript is made again after every event. */
const parsedEvents = new WeakMap<IndexedLine, ParsedEvent>();

function parseEvent(line: IndexedLine): ParsedEvent {
  const known = parsedEvents.get(line);
  if (known) return known;
  const event = object(parseJson(line.text));
  const isAgentEvent = event.event === "agent";
  const parsed = { event, isAgentEvent, parts: isAgentEvent ? agentRow(event) : runnerRow(event) };
  parsedEvents.set(line, parsed);
  return parsed;
}

/** Whether the runner could parse what the agent printed. */
export function hasAgentEvents(events: IndexedLine[]): boolean {
  return events.some((line) => parseEvent(line).isAgentEvent);
}

/** The row in place of the lines that are missing before this one; null if none is. */
function gapRow(line: IndexedLine, expected: number): TranscriptRow | null {
  const missing = line.index - expected;
  if (missing <= 0) return null;
  return newRow({ glyph: "…", title: `${count(missing)} lines omitted`, kind: "note" }, "gap", null);
}

/** The rows of an iteration: its events and, if the runner could not parse the agent's output, that output. */
export function transcriptRows(events: IndexedLine[], stream: IndexedLine[]): TranscriptRow[] {
  const rows: TranscriptRow[] = [];
  const indexByKey = new Map<string, number>();
  const start = number(events.map(parseEvent).find(({ event }) => event.event === "planned")?.event.t_ms);
  let expected = 0;
  for (const line of events) {
    const gap = gapRow(line, expected);
    if (gap) rows.push(gap);
    expected = line.index + 1;
    const { event, isAgentEvent, parts } = parseEvent(line);
    const time = number(event.t_ms);
    if (!parts) continue;
    const id = isAgentEvent ? text(event.id) : "";
    const key = id ? `a:${text(event.parent)}:${id}` : `e:${line.index}`;
    const row = newRow(parts, key, time !== null && start !== null ? time - start : null);
    if (isAgentEvent && event.state === "started" && time !== null) row.runningSinceMs = time;
    const existing = indexByKey.get(key);
    if (existing === undefined) {
      indexByKey.set(key, rows.length);
      rows.push(row);
    } else {
      rows[existing] = updatedRow(rows[existing], row);
    }
  }
  return hasAgentEvents(events) ? rows : mergeByTime(rows, outputRows(stream));
}

/** The later row at the earlier one's time, with how long it took. */
function updatedRow(earlier: TranscriptRow | undefined, row: TranscriptRow): TranscriptRow {
  const took = row.t !== null && earlier?.t != null ? row.t - earlier.t : 0;
  const note = [row.note, took >= 1000 ? duration(took) : ""].filter(Boolean).join(" · ");
  return { ...row, t: earlier?.t ?? row.t, note };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return { event: "unreadable", raw: line };
  }
}

function newRow(parts: RowParts, key: string, t: number | null): TranscriptRow {
  return { kind: "runner", body: "", note: "", tone: "", isFailure: false, ...parts, key, t };
}

function mergeByTime(events: TranscriptRow[], output: TranscriptRow[]): TranscriptRow[] {
  const rows: TranscriptRow[] = [];
  let next = 0;
  for (const row of output) {
    while (next < events.length && (events[next]?.t ?? 0) <= (row.t ?? 0) && events[next]?.kind !== "end") {
      rows.push(events[next++] as TranscriptRow);
    }
    rows.push(row);
  }
  return rows.concat(events.slice(next));
}

const GROUP_GAP_MS = 1000;
const GROUP_LINES_MAX = 200;

/** The agent's raw output. Lines printed shortly after each other form one row. */
function outputRows(stream: IndexedLine[]): TranscriptRow[] {
  const rows: TranscriptRow[] = [];
  let last: { row: TranscriptRow; t: number; lines: number } | null = null;
  let expected = 0;
  for (const line of stream) {
    const { index } = line;
    const record = object(parseJson(line.text));
    const t: number = number(record.t) ?? last?.t ?? 0;
    const gap = gapRow(line, expected);
    expected = index + 1;
    if (gap) {
      rows.push({ ...gap, key: "output-gap", t });
      last = null;
    }
    const dropped = object(record.dropped);
    if (record.dropped !== undefined) {
      const title = `${count(number(dropped.lines))} lines dropped`;
      rows.push(newRow({ glyph: "…", title, kind: "note" }, `o:${index}`, t));
      last = null;
      continue;
    }
    const raw = record.raw ?? record;
    const shown = typeof raw === "string" ? stripAnsi(raw) : shortJson(raw);
    if (last && t - last.t < GROUP_GAP_MS && last.lines < GROUP_LINES_MAX) {
      last.row.body += `\n${shown}`;
      last.t = t;
      last.lines++;
      continue;
    }
    const row = newRow({ glyph: "│", title: "", kind: "output", body: shown }, `o:${index}`, t);
    rows.push(row);
    last = { row, t, lines: 1 };
  }
  return rows;
}

/** The row of an event of the runner. */
function runnerRow(event: Json): RowParts | null {
  const name = text(event.event);
  const exit = object(event.exit);
  switch (name) {
    case "planned": {
      const attempt = object(event.attempt);
      const nth =
        number(attempt.nth) === null ? "" : ` · attempt ${number(attempt.nth)} of ${number(attempt.of)}`;
      return {
        glyph: "▸",
        title: `Session on ${text(event.path) || "the tree"}${nth}`,
        note: bytes(number(event.prompt_bytes) ?? 0),
        tone: "run",
        tab: "prompt",
      };
    }
    case "recovered":
      return { glyph: "↻", title: "Recovered after a crash", tone: "retry" };
    case "agent_ended": {
      const kind = text(exit.kind) || "ended";
      const code = number(exit.code);
      const isFine = kind === "finished" && code === 0;
      const usage = object(event.usage);
      const cost = number(usage.cost_microdollars);
      const tokens = number(usage.input_tokens);
      const used = [tokens === null ? "" : `${count(tokens)} tokens in`, cost === null ? "" : dollars(cost)];
      return {
        glyph: isFine ? "✓" : "✗",
        kind: "end",
        title: isFine ? "Agent finished" : `Agent failed: ${spaced(kind)}${code === null ? "" : ` ${code}`}`,
        body: text(exit.why),
        note: used.filter(Boolean).join(" · "),
        tone: isFine ? "" : "fail",
        isFailure: !isFine,
      };
    }
    case "checked": {
      const result = text(event.result);
      const findings = list(event.findings).map(text).join("\n");
      const isFine = result === "accepted";
      const answer = event.status ? `Agent reported: ${text(event.status)}` : "No valid answer";
      const title = isFine ? answer : `${answer}: ${spaced(result)}`;
      return {
        glyph: isFine ? "·" : "✗",
        kind: "end",
        title,
        body: findings,
        tone: isFine ? "" : "fail",
        isFailure: !isFine,
      };
    }
    case "guard_started":
      return {
        glyph: "$",
        kind: "end",
        title: list(event.command).map(text).join(" "),
        note: "guard",
        tab: "guard",
      };
    case "guard_ended": {
      const code = number(exit.code);
      const isFine = code === 0;
      const end =
        text(event.end) === "ended"
          ? `exit ${code ?? `signal ${number(exit.signal)}`}`
          : spaced(text(event.end));
      const title = isFine ? "Guard passed" : `Guard failed: ${end}`;
      return {
        glyph: isFine ? "✓" : "✗",
        kind: "end",
        title,
        tone: isFine ? "pass" : "fail",
        isFailure: !isFine,
        tab: "guard",
      };
    }
    case "decided": {
      const { glyph, text: word, tone } = outcomeLabel(text(event.outcome));
      const notes = list(event.annotations).map((note) => spaced(text(object(note).annotation)));
      const note = text(event.charge) === "charged" ? "used an attempt" : "used no attempt";
      return { glyph, kind: "end", title: `Outcome: ${word}`, body: notes.join("\n"), note, tone };
    }
    case "committed":
      return { glyph: "●", kind: "end", title: `Committed ${text(event.commit).slice(0, 8)}`, tab: "diff" };
    case "waiting": {
      const [start, end] = [number(event.t_ms), number(event.ends_unix_ms)];
      const left = start !== null && end !== null ? Math.max(0, end - start) : null;
      return { glyph: "↻", kind: "end", title: `Waiting ${duration(left)}`, tone: "retry" };
    }
    case "stopped":
      return {
        glyph: "⊘",
        kind: "end",
        title: `Run stopped: ${stopLabel(text(object(event.stop).reason)).text}`,
      };
    default:
      return (
        evidenceRow(name, event) ?? {
          glyph: "?",
          kind: "unknown",
          title: spaced(name || "unknown event"),
          body: shortJson(event),
        }
      );
  }
}

const STATE_NOTES: Record<string, string> = { started: "running", failed: "failed" };

/** The row of an event of the agent. */
function agentRow(event: Json): RowParts | null {
  const kind = text(event.kind);
  const state = text(event.state);
  const note = STATE_NOTES[state] ?? "";
  const isFailure = state === "failed";
  const tone: Tone | "" = isFailure ? "fail" : state === "started" ? "run" : "";
  const parts = (glyph: string, title: string, more: Partial<TranscriptRow> = {}): RowParts => ({
    glyph,
    title,
    kind,
    note,
    tone,
    isFailure,
    ...more,
  });
  switch (kind) {
    case "session":
      return parts("▸", "Agent started", {
        note: [text(event.model), text(event.version)].filter(Boolean).join(" · "),
      });
    case "message":
      return parts("•", "", { body: text(event.text) });
    case "reasoning":
      return parts("∴", "", { body: text(event.text) });
    case "command": {
      const exit = number(event.exit);
      const hasFailed = exit !== null && exit !== 0;
      // Failing commands are part of the work: they get a softer tone than a failed session.
      return parts("$", text(event.command), {
        body: plainLines(text(event.output)),
        note: exit === null ? note : `exit ${exit}`,
        tone: hasFailed ? "retry" : tone,
        isFailure: hasFailed,
      });
    }
    case "edit": {
      const files = list(event.files).map(object);
      const title = files.map((file) => text(file.path)).join(", ") || "files";
      return parts("✎", title, {
        note: note || files.map((file) => text(file.change)).join(", "),
        tab: "diff",
      });
    }
    case "read":
      return parts("○", text(event.path));
    case "search":
      return parts("⌕", text(event.query));
    case "web":
      return parts("⌕", text(event.query), { note: note || "web" });
    case "tool":
      if (text(event.name) === "StructuredOutput") return answerRow(text(event.input), parts);
      return parts("⚙", text(event.name), {
        body: [text(event.input), plainLines(text(event.output))].filter(Boolean).join("\n"),
      });
    case "plan": {
      const items = list(event.items).map(object);
      const done = items.filter((item) => item.state === "done").length;
      const glyphs: Record<string, string> = { done: "✓", active: "▸" };
      const lines = items.map((item) => `${glyphs[text(item.state)] ?? "◦"} ${text(item.text)}`);
      return parts("☰", `Plan: ${done} of ${items.length} done`, { body: lines.join("\n") });
    }
    case "retry":
      return parts("↻", text(event.text) || "Agent is retrying", { tone: "retry" });
    case "warning":
      return parts("!", text(event.text), { tone: "retry" });
    case "failed":
      return parts("✗", text(event.message) || "Session failed", { tone: "fail", isFailure: true });
    case "finished":
    case "usage":
      return null;
    default:
      return parts("?", spaced(kind || "unknown event"), { body: shortJson(event.raw ?? event) });
  }
}

/** The agent's answer, which some agents send as a call of a tool. */
function answerRow(
  input: string,
  parts: (glyph: string, title: string, more?: Partial<TranscriptRow>) => RowParts,
): RowParts {
  const answer = object(parseJson(input));
  const summary = text(answer.summary);
  return parts("•", `Answer: ${text(answer.status) || "sent"}`, { body: summary, kind: "message" });
}

function plainLines(value: string): string {
  return value.split("\n").map(stripAnsi).join("\n").trimEnd();
}
