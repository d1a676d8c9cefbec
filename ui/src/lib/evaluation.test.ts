import { describe, expect, it } from "vitest";
import { caseRows, comparisonSides, points, range, runOfTrial, trialCells, trialLabel } from "./evaluation";
import type { EvalGrid, EvalMissing, EvalRun, EvalTrial } from "./types";

const trial = (more: Partial<EvalTrial>): EvalTrial => ({
  case: "a",
  agent: "codex",
  trial: 1,
  attempt: 1,
  id: "r.codex.t01.a1",
  is_last: true,
  is_scored: true,
  outcome: "success",
  cause: null,
  why: null,
  expected: null,
  wall_secs: 12,
  iterations: 1,
  tokens: null,
  cost_microdollars: 20_000,
  started_at: "",
  checks: [],
  ...more,
});
const missing = (more: Partial<EvalMissing>): EvalMissing => ({
  case: "a",
  agent: "codex",
  trial: 1,
  slug: "codex.t01",
  id: null,
  is_under_way: false,
  ...more,
});
const grid = (trials: EvalTrial[], units: EvalMissing[] = []): EvalGrid => ({
  run: "r",
  k: 1,
  agents: [],
  cases: [],
  trials,
  missing: units,
  unreadable: [],
});
const run = (name: string, agents: string[]): EvalRun => ({
  run: name,
  created_at: "",
  runner: "",
  agents,
  cases: 1,
  units: 1,
  done: 1,
});

describe("the grid", () => {
  it("shows the last attempt of each trial, and trials without a result", () => {
    const first = trial({ outcome: "error", cause: "provider", is_last: false });
    const second = trial({ attempt: 2, id: "r.codex.t01.a2" });
    const row = trialCells(
      grid(
        [first, second],
        [missing({ trial: 2, id: "r.codex.t02.a1", is_under_way: true }), missing({ trial: 3 })],
      ),
      "codex",
      "a",
    );
    expect(row.map((cell) => [cell.label.text, cell.id])).toEqual([
      ["success", "r.codex.t01.a2"],
      ["running", "r.codex.t02.a1"],
      ["open", null],
    ]);
    expect(row[0]?.details).toBe("0:12 · $0.02");
    expect(trialCells(grid([first]), "claude", "a")).toEqual([]);
  });

  it("lists cases by name, with or without a score", () => {
    const rows = caseRows(
      grid([trial({})], [missing({ case: "b" }), missing({ case: "a", trial: 2 })]),
      "codex",
    );
    expect(rows.map((row) => [row.name, row.score, row.cells.length])).toEqual([
      ["a", undefined, 2],
      ["b", undefined, 1],
    ]);
  });

  it("distinguishes the agent's failures from other errors", () => {
    expect(trialLabel(trial({ outcome: "fail", cause: "agent" })).tone).toBe("fail");
    expect(trialLabel(trial({ outcome: "error", cause: "provider", is_scored: false })).tone).toBe("retry");
    expect(trialLabel(trial({ outcome: "stuck", cause: "guard", expected: "stuck" })).tone).toBe("open");
  });

  it("prefers a running retry to the aborted attempt", () => {
    const broken = trial({ outcome: "error", cause: "interrupted", is_scored: false });
    const again = missing({ id: "r.codex.t01.a2", is_under_way: true });
    expect(trialCells(grid([broken], [again]), "codex", "a")[0]?.label.text).toBe("running");
    expect(trialCells(grid([broken], [missing({})]), "codex", "a")[0]?.label.text).toBe("error");
  });
});

describe("runs", () => {
  it("are found by a trial's name even if their own contains dots", () => {
    const runs = [run("a", ["x"]), run("a.b", ["x"])];
    expect(runOfTrial(runs, "a.b.x.t01.a1")?.run).toBe("a.b");
    expect(runOfTrial(runs, "ab.x.t01.a1")).toBeUndefined();
  });

  it("with several agents are compared by agent", () => {
    expect(comparisonSides([run("a", ["x", "y"]), run("b", ["x"])])).toEqual(["a@x", "a@y", "b"]);
  });
});

it("differences have a sign", () => {
  expect([points(0.125), points(-0.1), points(-0.0001)]).toEqual(["+12.5", "−10.0", "0.0"]);
  expect(range({ low: 0.234, high: 1 })).toBe("23–100 %");
});
