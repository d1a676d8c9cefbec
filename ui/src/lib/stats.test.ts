import { describe, expect, it } from "vitest";
import {
  burnUp,
  durationOf,
  ganttSpans,
  remainingRange,
  timelineBars,
  totalsByNode,
  totalsByOutcome,
  totalsOf,
  treeMap,
} from "./stats";
import type { IterationRow } from "./types";

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

const failed = row({ is_charged: true, outcome: "guard_failed", cost_microdollars: 5 });

it("the duration without timestamps is that of the phases", () => {
  expect(durationOf(row({}))).toBe(1000);
  expect(durationOf(row({ ended_ms: null }))).toBe(800);
  expect(durationOf(row({ started_ms: 2000 }))).toBe(0);
});

describe("totals", () => {
  it("of a run count failed attempts separately", () => {
    expect(totalsOf([failed, row({ cost_microdollars: 7 }), row({})])).toEqual({
      iterations: 3,
      passed: 2,
      activeMs: 3000,
      agentMs: 1800,
      guardMs: 600,
      failedMs: 1000,
      failedCost: 5,
      cost: 12,
    });
  });

  it("have no cost if no iteration reports one", () => {
    expect(totalsOf([row({})]).cost).toBeNull();
    expect(totalsOf([]).cost).toBeNull();
  });

  it("by outcome list the most frequent first, and a running iteration as such", () => {
    const rows = [failed, row({}), row({}), row({ outcome: null })];
    const text = (isLive: boolean) =>
      totalsByOutcome(rows, isLive).map((one) => [one.label.text, one.iterations, one.activeMs]);
    expect(text(true)).toEqual([
      ["passed", 2, 2000],
      ["guard failed", 1, 1000],
      ["running", 1, 1000],
    ]);
    expect(text(false)[2]?.[0]).toBe("unfinished");
  });

  it("by node count failed attempts separately, the longest first", () => {
    expect(totalsByNode([row({ node: null }), failed, row({ cost_microdollars: 7 })])).toEqual([
      { node: "a", passed: true, iterations: 2, activeMs: 2000, failedMs: 1000, cost: 12, failedCost: 5 },
      {
        node: "(repair)",
        passed: true,
        iterations: 1,
        activeMs: 1000,
        failedMs: 0,
        cost: null,
        failedCost: null,
      },
    ]);
  });
});

describe("the timeline", () => {
  it("shows long idle times", () => {
    const rows = [row({}), row({ iter: 2, started_ms: 4_000_000, ended_ms: 4_004_000 })];
    const bars = timelineBars(rows, 0, false, 300);
    expect(bars.map((bar) => [bar.first, bar.height, bar.idleMs])).toEqual([
      [1, 0.5, 0],
      [2, 1, 3_999_000],
    ]);
    expect(bars[0]?.agentShare).toBe(0.75);
  });

  it("shows the whole run in a limited number of bars, and no failure is lost", () => {
    const rows = Array.from({ length: 1441 }, (_, index) =>
      row({ iter: index + 1, outcome: index === 700 ? "guard_failed" : "passed" }),
    );
    const bars = timelineBars(rows, 0, false, 300);
    expect(bars.length).toBeLessThanOrEqual(300);
    expect([bars[0]?.first, bars.at(-1)?.last]).toEqual([1, 1441]);
    expect(bars.filter((bar) => bar.label.tone === "fail").length).toBe(1);
  });
});

describe("charts", () => {
  it("burn up cost if it is known, and else time", () => {
    const rows = [row({ cost_microdollars: 5 }), row({ iter: 2, cost_microdollars: 7 })];
    const points = burnUp(rows, { cost_microdollars: 12, leaves_passed: 2 });
    expect([points.unit, points.points.at(-1)]).toEqual(["cost", { iter: 2, spent: 12, passed: 2 }]);
    expect(burnUp([row({})], { cost_microdollars: null, leaves_passed: 1 }).unit).toBe("time");
  });

  it("burn up ends at the numbers of the run, with what a fork brought", () => {
    const { points } = burnUp([row({ cost_microdollars: 7 })], { cost_microdollars: 12, leaves_passed: 3 });
    expect(points).toEqual([
      { iter: 0, spent: 5, passed: 2 },
      { iter: 1, spent: 12, passed: 3 },
    ]);
  });

  it("give a range for the rest only after a few passed tasks", () => {
    const totals = (count: number) =>
      totalsByNode(Array.from({ length: count }, (_, index) => row({ iter: index + 1, node: `n${index}` })));
    expect(remainingRange(totals(3), 2, "time")).toBeNull();
    expect(remainingRange(totals(4), 2, "time")).toEqual([2000, 2000]);
    expect(remainingRange(totals(4), 0, "time")).toBeNull();
  });

  it("fold idle gaps", () => {
    const gantt = ganttSpans([row({}), row({ iter: 2, started_ms: 4_000_000, ended_ms: 4_004_000 })], null);
    expect(gantt.gaps.length).toBe(1);
    expect(gantt.spans.every((span) => span.from >= 0 && span.to <= 1 && span.from <= span.to)).toBe(true);
  });

  it("map weights to areas", () => {
    const tiles = treeMap([6, 3, 2, 1], (weight) => weight);
    const area = (tile: { width: number; height: number }) => tile.width * tile.height;
    expect(tiles.map((tile) => Math.round(area(tile) * 12))).toEqual([6, 3, 2, 1]);
  });
});
