import { describe, expect, it } from "vitest";
import { cells, outcomeOf, points, range, runOf, sides } from "./evaluation";
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
  it("shows the last attempt at each trial, and what is still to come", () => {
    const first = trial({ outcome: "error", cause: "provider", is_last: false });
    const second = trial({ attempt: 2, id: "r.codex.t01.a2" });
    const found = cells(
      grid(
        [first, second],
        [missing({ trial: 2, id: "r.codex.t02.a1", is_under_way: true }), missing({ trial: 3 })],
      ),
      "codex",
      "a",
    );
    expect(found.map((cell) => [cell.look.word, cell.id])).toEqual([
      ["success", "r.codex.t01.a2"],
      ["under way", "r.codex.t02.a1"],
      ["open", null],
    ]);
    expect(found[0]?.says).toBe("0:12 · $0.020");
    expect(cells(grid([first]), "claude", "a")).toEqual([]);
  });

  it("tells what is the agent's failure from what is not", () => {
    expect(outcomeOf(trial({ outcome: "fail", cause: "agent" })).tone).toBe("fail");
    expect(outcomeOf(trial({ outcome: "error", cause: "provider", is_scored: false })).tone).toBe("retry");
    expect(outcomeOf(trial({ outcome: "stuck", cause: "guard", expected: "stuck" })).tone).toBe("open");
  });

  it("prefers a trial that is made again to the one that was broken off", () => {
    const broken = trial({ outcome: "error", cause: "interrupted", is_scored: false });
    const again = missing({ id: "r.codex.t01.a2", is_under_way: true });
    expect(cells(grid([broken], [again]), "codex", "a")[0]?.look.word).toBe("under way");
    expect(cells(grid([broken], [missing({})]), "codex", "a")[0]?.look.word).toBe("error");
  });
});

describe("runs", () => {
  it("are told from a trial's name even if theirs hold dots", () => {
    const runs = [run("a", ["x"]), run("a.b", ["x"])];
    expect(runOf(runs, "a.b.x.t01.a1")?.run).toBe("a.b");
    expect(runOf(runs, "ab.x.t01.a1")).toBeUndefined();
  });

  it("with several agents stand on a side of a comparison one by one", () => {
    expect(sides([run("a", ["x", "y"]), run("b", ["x"])])).toEqual(["a@x", "a@y", "b"]);
  });
});

it("numbers keep their sign", () => {
  expect([points(0.125), points(-0.1), points(-0.0001)]).toEqual(["+12.5", "−10.0", "0.0"]);
  expect(range({ low: 0.234, high: 1 })).toBe("23–100 %");
});
