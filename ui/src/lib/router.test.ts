import { describe, expect, it } from "vitest";
import { address, lineRange, lookWithin, parse, trialOf, type Route } from "./router";

describe("addresses", () => {
  it("say where one is, and back", () => {
    const routes: Route[] = [
      { view: "overview" },
      { view: "overview", run: "a.b" },
      { view: "overview", run: "x", node: "n-1" },
      { view: "runs" },
      { view: "stats", run: "x" },
      { view: "iteration", run: "x", iter: 57, tab: "guard", line: "120-134", q: "a b&c" },
      { view: "iteration", run: "x", iter: 1, tab: "diff", path: "a dir/ü?#.rs" },
    ];
    for (const route of routes) expect(parse(address(route))).toMatchObject(route);
  });

  it("of a trial's run are those of any run, in a place of their own", () => {
    const trial = { case: "mends-a-ledger", id: "r.codex.t01.a1" };
    lookWithin(trial);
    const routes: Route[] = [{ view: "overview" }, { view: "iteration", run: "x", iter: 2, tab: "guard" }];
    for (const route of routes) {
      expect(trialOf(address(route))).toEqual(trial);
      expect(parse(address(route))).toMatchObject(route);
    }
    for (const route of [
      { view: "results", of: "monday" },
      { view: "compare", base: "a@x:y", new: "b" },
    ] as Route[]) {
      expect(trialOf(address(route))).toBeUndefined();
      expect(parse(address(route))).toMatchObject(route);
    }
    lookWithin(undefined);
    for (const bad of [
      "#/trial/..",
      "#/trial/a/..",
      "#/trial/a/%2e%2e/run/x",
      "#/trial/a/b c",
      "#/trial/_a/b",
    ])
      expect(trialOf(bad), bad).toBeUndefined();
  });

  it("that lead nowhere are said to", () => {
    for (const bad of [
      "#/run",
      "#/run/a b",
      "#/run/x/i/0",
      "#/run/x/i/-1",
      "#/run/x/i/1/nothing",
      "#/else",
      "#/run/%zz",
    ]) {
      expect(parse(bad).view, bad).toBe("unknown");
    }
  });

  it("name lines from 1", () => {
    expect(lineRange("3")).toEqual([2, 2]);
    expect(lineRange("3-9")).toEqual([2, 8]);
    expect(lineRange("9-3")).toEqual([8, 8]);
    for (const bad of [undefined, "", "x", "1-", "-1", "1e9"]) expect(lineRange(bad)).toBeNull();
  });
});
