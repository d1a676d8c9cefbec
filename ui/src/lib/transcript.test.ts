import { describe, expect, it } from "vitest";
import { rows } from "./transcript";

const event = (value: object) => JSON.stringify(value);
const planned = event({
  t_ms: 1000,
  event: "planned",
  path: "root/a",
  attempt: { nth: 1, of: 3 },
  prompt_bytes: 10,
});

describe("a transcript", () => {
  it("of an agent that is not understood is what it printed, between what the runner did", () => {
    const found = rows(
      [planned, event({ t_ms: 9000, event: "agent_ended", exit: { kind: "finished", code: 0 } })],
      [
        event({ t: 5, raw: "one" }),
        event({ t: 20, raw: "\u001b[31mtwo\u001b[0m" }),
        event({ t: 5000, raw: { type: "x" } }),
      ],
    );
    expect(found.map((row) => row.title || row.body)).toEqual([
      "Session on root/a · attempt 1 of 3",
      "one\ntwo",
      '{"type":"x"}',
      "The agent is done",
    ]);
    expect(found.at(-1)?.t).toBe(8000);
  });

  it("of one that is understood is what it did, the newest word about a thing in its first place", () => {
    const agent = (t: number, value: object) => event({ t_ms: t, event: "agent", iter: 1, seq: 1, ...value });
    const found = rows(
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
    expect(found.map((row) => [row.glyph, row.title || row.body, row.note])).toEqual([
      ["▸", "Session on root/a · attempt 1 of 3", "prompt 10 B"],
      ["$", "cargo test", "exit 101 · 7.0 s"],
      ["•", "Fine <b>", ""],
      ["?", "somersault", ""],
    ]);
    expect(found[1]).toMatchObject({ t: 1000, isFailure: true });
  });

  it("bears whatever stands in the files", () => {
    const hostile = [
      "",
      "null",
      "[1]",
      "{",
      '{"event":7}',
      '{"event":"settled"}',
      '{"event":"judged","findings":3}',
      '{"event":"agent"}',
    ];
    expect(() => rows(hostile, hostile)).not.toThrow();
    expect(rows([event({ event: "brand_new", x: 1 })], [])[0]?.title).toBe("brand new");
    expect(rows([], [event({ t: 3, dropped: { lines: 7, bytes: 9 } })])[0]?.title).toBe(
      "7 lines were not kept",
    );
  });
});
