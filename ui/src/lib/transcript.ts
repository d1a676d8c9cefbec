// What a session said and did, as rows. Events come from this runner, an older or a newer one: what is not known is
// shown as it stands, and nothing is assumed to be of the type it should be.

import { plain } from "./ansi";
import { bytes, clock, count, dollars } from "./format";
import { outcome, type Tone } from "./labels";

export interface Row {
  /** Unique and stable: a later event about the same thing takes the place of the earlier one. */
  key: string;
  /** Milliseconds since the session began; null where nobody said. */
  t: number | null;
  glyph: string;
  kind: string;
  title: string;
  /** Longer text under it. */
  body: string;
  note: string;
  tone: Tone | "";
  isFailure: boolean;
  tab?: "guard" | "prompt" | "diff";
}

type Json = Record<string, unknown>;

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;
const object = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const words = (value: string): string => value.replaceAll("_", " ");
const short = (value: unknown): string => {
  const written = JSON.stringify(value) ?? "";
  return written.length > 2000 ? `${written.slice(0, 2000)} …` : written;
};

type Part = Pick<Row, "glyph" | "title"> & Partial<Row>;

/** The rows of an iteration from its events and, where the agent is not understood, its output. */
export function rows(events: string[], stream: string[]): Row[] {
  const found: Row[] = [];
  const places = new Map<string, number>();
  const parsed = events.map(parse);
  const start = number(parsed.map(object).find((event) => event.event === "planned")?.t_ms);
  let understood = 0;
  parsed.forEach((value, index) => {
    const event = object(value);
    const isAgents = event.event === "agent";
    if (isAgents) understood++;
    const at = number(event.t_ms);
    const part = isAgents ? agentRow(event) : runnerRow(event);
    if (!part) return;
    const id = isAgents ? text(event.id) : "";
    const key = id ? `a:${text(event.parent)}:${id}` : `e:${index}`;
    const row = complete(part, key, at !== null && start !== null ? at - start : null);
    const place = places.get(key);
    if (place === undefined) {
      places.set(key, found.length);
      found.push(row);
    } else {
      const earlier = found[place];
      const took =
        row.t !== null && earlier?.t != null && row.t - earlier.t >= 1000 ? clock(row.t - earlier.t) : "";
      found[place] = { ...row, t: earlier?.t ?? row.t, note: [row.note, took].filter(Boolean).join(" · ") };
    }
  });
  if (understood > 0) return found;
  return merged(found, outputRows(stream));
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return { event: "unreadable", raw: line };
  }
}

function complete(part: Part, key: string, t: number | null): Row {
  return { kind: "runner", body: "", note: "", tone: "", isFailure: false, ...part, key, t };
}

/** Puts what was printed between the events, by time. */
function merged(events: Row[], output: Row[]): Row[] {
  const all: Row[] = [];
  let next = 0;
  for (const row of output) {
    while (next < events.length && (events[next]?.t ?? 0) <= (row.t ?? 0) && events[next]?.kind !== "end") {
      all.push(events[next++] as Row);
    }
    all.push(row);
  }
  return all.concat(events.slice(next));
}

/** Lines that came together are one row. */
function outputRows(stream: string[]): Row[] {
  const found: Row[] = [];
  let last: { row: Row; t: number; lines: number } | null = null;
  stream.forEach((line, index) => {
    const record = object(parse(line));
    const t = number(record.t) ?? last?.t ?? 0;
    const dropped = object(record.dropped);
    if (record.dropped !== undefined) {
      found.push(
        complete(
          { glyph: "…", title: `${count(number(dropped.lines))} lines were not kept`, kind: "note" },
          `o:${index}`,
          t,
        ),
      );
      last = null;
      return;
    }
    const raw = record.raw ?? record;
    const shown = typeof raw === "string" ? plain(raw) : short(raw);
    if (last && t - last.t < 1000 && last.lines < 200) {
      last.row.body += `\n${shown}`;
      last.t = t;
      last.lines++;
      return;
    }
    const row = complete({ glyph: "│", title: "", kind: "output", body: shown }, `o:${index}`, t);
    found.push(row);
    last = { row, t, lines: 1 };
  });
  return found;
}

/** What the runner itself announces. */
function runnerRow(event: Json): Part | null {
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
        note: `prompt ${bytes(number(event.prompt_bytes) ?? 0)}`,
        tone: "run",
        tab: "prompt",
      };
    }
    case "resumed":
      return { glyph: "↻", title: "Taken up again after a crash", tone: "retry" };
    case "agent_ended": {
      const kind = text(exit.kind) || "ended";
      const code = number(exit.code);
      const isFine = kind === "finished" && code === 0;
      const usage = object(event.usage);
      const cost = number(usage.cost_microdollars);
      const tokens = number(usage.input_tokens);
      const spent = [tokens === null ? "" : `${count(tokens)} tokens in`, cost === null ? "" : dollars(cost)];
      return {
        glyph: isFine ? "✓" : "✗",
        kind: "end",
        title: isFine
          ? "The agent is done"
          : `The agent ended: ${words(kind)}${code === null ? "" : ` ${code}`}`,
        body: text(exit.why),
        note: spent.filter(Boolean).join(" · "),
        tone: isFine ? "" : "fail",
        isFailure: !isFine,
      };
    }
    case "judged": {
      const judgement = text(event.judgement);
      const findings = list(event.findings).map(text).join("\n");
      const isFine = judgement === "lawful";
      const said = event.status ? `The agent says ${text(event.status)}` : "No answer that counts";
      const title = isFine ? said : `${said}: ${words(judgement)}`;
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
          : words(text(event.end));
      const title = isFine ? "The guard passes" : `The guard fails: ${end}`;
      return {
        glyph: isFine ? "✓" : "✗",
        kind: "end",
        title,
        tone: isFine ? "pass" : "fail",
        isFailure: !isFine,
        tab: "guard",
      };
    }
    case "settled": {
      const look = outcome(text(event.outcome));
      const marks = list(event.marks).map((mark) => words(text(object(mark).mark)));
      const charge = text(event.charge) === "charged" ? "costs an attempt" : "costs no attempt";
      return {
        glyph: look.glyph,
        kind: "end",
        title: `Outcome: ${look.word}`,
        body: marks.join("\n"),
        note: charge,
        tone: look.tone,
      };
    }
    case "committed":
      return { glyph: "●", kind: "end", title: `Committed ${text(event.commit).slice(0, 8)}`, tab: "diff" };
    case "waiting":
      return {
        glyph: "↻",
        kind: "end",
        title: `Waiting ${clock((number(object(event.wait).secs) ?? 0) * 1000)}`,
        tone: "retry",
      };
    case "stopped":
      return { glyph: "⊘", kind: "end", title: `The run stops: ${words(text(object(event.stop).reason))}` };
    default:
      return { glyph: "?", kind: "unknown", title: words(name || "an event"), body: short(event) };
  }
}

const STATE_NOTE: Record<string, string> = { started: "running", failed: "failed" };

/** What an agent that the runner understands says and does. */
function agentRow(event: Json): Part | null {
  const kind = text(event.kind);
  const state = text(event.state);
  const note = STATE_NOTE[state] ?? "";
  const isFailure = state === "failed";
  const tone: Tone | "" = isFailure ? "fail" : state === "started" ? "run" : "";
  const part = (glyph: string, title: string, more: Partial<Row> = {}): Part => ({
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
      return part("▸", "The agent begins", {
        note: [text(event.model), text(event.version)].filter(Boolean).join(" · "),
      });
    case "message":
      return part("•", "", { body: text(event.text) });
    case "reasoning":
      return part("∴", "", { body: text(event.text) });
    case "command": {
      const exit = number(event.exit);
      const isRed = exit !== null && exit !== 0;
      // A test that fails is work, not a fault of the session: it is shown, and not counted as one.
      return part("$", text(event.command), {
        body: plainLines(text(event.output)),
        note: exit === null ? note : `exit ${exit}`,
        tone: isRed ? "retry" : tone,
        isFailure: isRed,
      });
    }
    case "edit": {
      const files = list(event.files).map(object);
      const title = files.map((file) => text(file.path)).join(", ") || "files";
      return part("✎", title, {
        note: note || files.map((file) => text(file.change)).join(", "),
        tab: "diff",
      });
    }
    case "read":
      return part("○", text(event.path));
    case "search":
      return part("⌕", text(event.query));
    case "web":
      return part("⌕", text(event.query), { note: note || "web" });
    case "tool":
      return part("⚙", text(event.name), {
        body: [text(event.input), plainLines(text(event.output))].filter(Boolean).join("\n"),
      });
    case "plan": {
      const items = list(event.items).map(object);
      const done = items.filter((item) => item.state === "done").length;
      const mark: Record<string, string> = { done: "✓", active: "▸" };
      const lines = items.map((item) => `${mark[text(item.state)] ?? "◦"} ${text(item.text)}`);
      return part("☰", `Plan: ${done} of ${items.length} done`, { body: lines.join("\n") });
    }
    case "retry":
      return part("↻", text(event.text) || "The agent tries again", { tone: "retry" });
    case "warning":
      return part("!", text(event.text), { tone: "retry" });
    case "failed":
      return part("✗", text(event.message) || "The session failed", { tone: "fail", isFailure: true });
    case "finished":
    case "usage":
      return null;
    default:
      return part("?", words(kind || "something"), { body: short(event.raw ?? event) });
  }
}

function plainLines(value: string): string {
  return value.split("\n").map(plain).join("\n").trimEnd();
}
