import { describe, expect, it } from "vitest";
import { bytes, clock, count, dollars, plural, visible } from "./format";
import { bars, byNode } from "./stats";
import type { IterationRow } from "./types";
import { node, outcome } from "./labels";
import { action, KEYS } from "./keys";

describe("numbers", () => {
  it("read like a clock, like money, like sizes", () => {
    expect([null, 0, 43, 5200, 252_000, 6_727_000].map(clock)).toEqual([
      "–",
      "0.0 s",
      "43 ms",
      "5.2 s",
      "4:12",
      "1:52:07",
    ]);
    expect([null, 0, 380_000, 1_500, 6_410_000].map(dollars)).toEqual([
      "–",
      "$0.00",
      "$0.38",
      "$0.0015",
      "$6.41",
    ]);
    expect([null, 912, 182_000, 1_400_000].map(count)).toEqual(["–", "912", "182 k", "1.4 M"]);
    expect([12, 2048, 5 << 20].map(bytes)).toEqual(["12 B", "2.0 kB", "5.0 MB"]);
    expect([plural(1, "line"), plural(2000, "line")]).toEqual(["1 line", "2,000 lines"]);
  });

  it("what cannot be seen is made visible", () => {
    expect(visible("a\u0000b\u202ec\td\ne")).toBe("a␀b⟨202e⟩c\td\ne");
  });
});

describe("words", () => {
  it("of a newer runner are shown as they are", () => {
    expect(outcome("budget_spent")).toMatchObject({ word: "budget spent", tone: "open" });
    expect(outcome("guard_failed").tone).toBe("fail");
    expect(outcome(null).word).toBe("under way");
  });

  it("for nodes say more than a colour", () => {
    expect(
      [
        node(3, 1, false, false),
        node(2, 0, true, true),
        node(6, 3, false, true),
        node(2, 1, false, true),
        node(2, 0, false, true),
        node(2, 0, false, false),
      ].map((look) => look.word),
    ).toEqual(["passed", "running", "stuck", "retry", "next", "open"]);
  });
});

const row = (more: Partial<IterationRow>) =>
  ({
    node: "a",
    started_ms: 0,
    ended_ms: 1000,
    agent_ms: 600,
    guard_ms: 200,
    is_charged: false,
    outcome: "passed",
    cost_microdollars: null,
    iter: 1,
    ...more,
  }) as IterationRow;

describe("sums", () => {
  it("tell what was spent on what did not pass", () => {
    const found = byNode([
      row({ is_charged: true, outcome: "guard_failed", cost_microdollars: 5 }),
      row({ cost_microdollars: 7 }),
      row({ node: null }),
    ]);
    expect(found).toEqual([
      { node: "a", passed: true, iterations: 2, busyMs: 2000, wastedMs: 1000, cost: 12, wastedCost: 5 },
      {
        node: "(repair)",
        passed: true,
        iterations: 1,
        busyMs: 1000,
        wastedMs: 0,
        cost: null,
        wastedCost: null,
      },
    ]);
  });

  it("draw bars, with long idle times named", () => {
    const drawn = bars([row({}), row({ iter: 2, started_ms: 4_000_000, ended_ms: 4_004_000 })], 0);
    expect(drawn.map((bar) => [bar.iter, bar.height, bar.idleMs])).toEqual([
      [1, 0.5, 0],
      [2, 1, 3_999_000],
    ]);
    expect(drawn[0]?.agentShare).toBe(0.75);
  });
});

describe("keys", () => {
  it("are each bound once, and pairs win", () => {
    const all = KEYS.flatMap((key) => key.keys);
    expect(new Set(all).size).toBe(all.length);
    expect(action({ key: "s" }, "g")?.act).toBe("evidence");
    expect(action({ key: "s" }, "")).toBeNull();
    expect(action({ key: "t" }, "g")?.act).toBe("stats");
    expect(action({ key: "t" }, "")?.act).toBe("theme");
  });
});
