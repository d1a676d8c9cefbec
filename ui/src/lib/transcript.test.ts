import { describe, expect, it } from "vitest";
import { foldRows, transcriptRows as indexedRows } from "./transcript";

const indexed = (texts: string[]) => texts.map((text, index) => ({ index, text }));
const transcriptRows = (events: string[], stream: string[]) => indexedRows(indexed(events), indexed(stream));

const event = (value: object) => JSON.stringify(value);
const planned = event({
  t_ms: 1000,
  event: "planned",
  path: "root/a",
  attempt: { nth: 1, of: 3 },
  prompt_bytes: 10,
});

describe("a transcript", () => {
  it("shows the raw output between the runner's events if the agent has none", () => {
    const rows = transcriptRows(
      [planned, event({ t_ms: 9000, event: "agent_ended", exit: { kind: "finished", code: 0 } })],
      [
        event({ t: 5, raw: "one" }),
        event({ t: 20, raw: "\u001b[31mtwo\u001b[0m" }),
        event({ t: 5000, raw: { type: "x" } }),
      ],
    );
    expect(rows.map((row) => row.title || row.body)).toEqual([
      "Session on root/a · attempt 1 of 3",
      "one\ntwo",
      '{"type":"x"}',
      "Agent finished",
    ]);
    expect(rows.at(-1)?.t).toBe(8000);
  });

  it("shows how long a wait is whose end is a moment", () => {
    const wait = { agent: "codex", outcome: "usage_limit", secs: 0, until_unix_secs: 72_001 };
    const waiting = event({ t_ms: 1000, event: "waiting", wait, ends_unix_ms: 72_001_000 });
    expect(transcriptRows([waiting], []).map((row) => row.title)).toEqual(["Waiting 20:00:00"]);
  });

  it("shows agent events, with later updates at the place of the first", () => {
    const agent = (t: number, value: object) => event({ t_ms: t, event: "agent", iter: 1, seq: 1, ...value });
    const rows = transcriptRows(
      [
        planned,
        agent(2000, {
          kind: "command",
          id: "c1",
          command: "cargo test",
          state: "started",
          exit: null,
          output: "",
        }),
        agent(3000, { kind: "message", text: "Fine <b>" }),
        agent(9000, {
          kind: "command",
          id: "c1",
          command: "cargo test",
          state: "failed",
          exit: 101,
          output: "boom",
        }),
        agent(9100, { kind: "somersault", height: 3 }),
        agent(9200, { kind: "finished" }),
      ],
      [event({ t: 1, raw: "not shown" })],
    );
    expect(rows.map((row) => [row.glyph, row.title || row.body, row.note])).toEqual([
      ["▸", "Session on root/a · attempt 1 of 3", "10 B"],
      ["$", "cargo test", "exit 101 · 7.0 s"],
      ["•", "Fine <b>", ""],
      ["?", "somersault", ""],
    ]);
    expect(rows[1]).toMatchObject({ t: 1000, isFailure: true });
  });

  it("survives any file content", () => {
    const hostile = [
      "",
      "null",
      "[1]",
      "{",
      '{"event":7}',
      '{"event":"decided"}',
      '{"event":"checked","findings":3}',
      '{"event":"agent"}',
    ];
    expect(() => transcriptRows(hostile, hostile)).not.toThrow();
    expect(transcriptRows([event({ event: "brand_new", x: 1 })], [])[0]?.title).toBe("brand new");
    expect(transcriptRows([], [event({ t: 3, dropped: { lines: 7, bytes: 9 } })])[0]?.title).toBe(
      "7 lines dropped",
    );
  });
});

describe("a long transcript", () => {
  it("states how many lines are omitted, with keys that do not change", () => {
    const lines = [
      { index: 0, text: planned },
      { index: 7, text: event({ event: "recovered" }) },
    ];
    const rows = indexedRows(lines, []);
    expect(rows.map((row) => row.title)).toEqual([
      "Session on root/a · attempt 1 of 3",
      "6 lines omitted",
      "Recovered after a crash",
    ]);
    expect(rows[2]?.key).toBe("e:7");
    const output = indexedRows([], [{ index: 4, text: event({ t: 5, raw: "late" }) }]);
    expect(output.map((row) => row.title || row.body)).toEqual(["4 lines omitted", "late"]);
  });
});

describe("reads and searches", () => {
  it("in a row fold into one", () => {
    const agent = (kind: string, more: object) =>
      JSON.stringify({ t_ms: 1, event: "agent", kind, state: "done", ...more });
    const events = [
      agent("read", { path: "a.rs" }),
      agent("read", { path: "b.rs" }),
      agent("search", { query: "x" }),
      agent("command", { command: "ls", exit: 0 }),
      agent("read", { path: "c.rs" }),
    ];
    const rows = foldRows(transcriptRows(events, []));
    expect(rows.map((row) => row.title)).toEqual(["Explored 2 files, 1 search", "ls", "c.rs"]);
    expect(rows[0]?.folded?.length).toBe(3);
  });

  it("shows baseline, checks, review and final check as sentences", () => {
    const line = (name: string, more: object) => event({ t_ms: 2000, event: name, iter: 1, ...more });
    const round = { nth: 1, of: 2 };
    const rows = transcriptRows(
      [
        line("baseline_started", { command: ["just", "ci"] }),
        line("baseline_ended", { guard: "fail", exit: "1", command: ["just", "ci"] }),
        planned,
        line("check_ended", { check: "four", phase: "red", exit: "1", red: "failed" }),
        line("check_ended", { check: "five", phase: "red", exit: "0", red: "green" }),
        line("check_ended", { check: "four", phase: "green", exit: "0", red: null }),
        line("check_ended", { check: "four", phase: "green", exit: "timed-out", red: null }),
        line("heldout_ended", { node: "a", check: "load", red: "failed", result: null }),
        line("heldout_ended", { node: "a", check: "load", red: null, result: "fail" }),
        line("review_started", { agent: "claude", round }),
        line("review_ended", { result: "refused", reasons: ["no test", "too long"] }),
        line("final_check_ended", { guard: "pass", exit: "0", command: ["just", "ci"] }),
      ],
      [],
    );
    expect(rows.map((row) => [row.title, row.body || row.note, row.isFailure])).toEqual([
      ["just ci", "guard before the first session", false],
      ["Guard fails before the first session: exit 1", "", true],
      ["Session on root/a · attempt 1 of 3", "10 B", false],
      ["Check four before the work: failed", "", false],
      ["Check five before the work: green", "", false],
      ["Check four passed", "", false],
      ["Check four failed: timed out", "", true],
      ["Held-out check load of a before the work: failed", "", false],
      ["Held-out check load of a failed", "", true],
      ["Review by claude", "round 1 of 2", false],
      ["Review: refused", "no test\ntoo long", true],
      ["Final check passed", "", false],
    ]);
  });
});
