import { describe, expect, it } from "vitest";
import { address, lineRange, parseRoute, parseTrial, type Route } from "./router";
import { apiPrefix, ROOT_SCOPE, scopeOf } from "./scope";

describe("addresses", () => {
  it("round-trip", () => {
    const routes: Route[] = [
      { view: "overview" },
      { view: "overview", run: "a.b" },
      { view: "overview", run: "x", node: "n-1" },
      { view: "overview", run: "x", q: "a b", show: "open", outcome: "failed" },
      { view: "file", run: "x", path: "src/a b/ü.rs" },
      { view: "versus", run: "x", iter: 7, other: 5 },
      { view: "runs" },
      { view: "stats", run: "x" },
      { view: "iteration", run: "x", iter: 57, tab: "guard", line: "120-134", q: "a b&c" },
      { view: "iteration", run: "x", iter: 1, tab: "diff", path: "a dir/ü?#.rs" },
      { view: "iteration", run: "x", iter: 4, tab: "diff", path: "a", since: "run" },
    ];
    for (const route of routes) expect(parseRoute(address(ROOT_SCOPE, route))).toMatchObject(route);
  });

  it("of a trial's run carry the trial as a prefix", () => {
    const trial = { case: "fixes-a-ledger", id: "r.codex.t01.a1" };
    const scope = scopeOf(trial);
    const routes: Route[] = [{ view: "overview" }, { view: "iteration", run: "x", iter: 2, tab: "guard" }];
    for (const route of routes) {
      expect(parseTrial(address(scope, route))).toEqual(trial);
      expect(parseRoute(address(scope, route))).toMatchObject(route);
    }
    for (const route of [
      { view: "results", of: "monday" },
      { view: "compare", base: "a@x:y", new: "b" },
    ] as Route[]) {
      expect(parseTrial(address(scope, route))).toBeUndefined();
      expect(parseRoute(address(scope, route))).toMatchObject(route);
    }
  });

  it("below `latest` name the trial that it means now", () => {
    const resolved = { case: "a", id: "r.codex.t02.a1" };
    const scope = { trial: { case: "a", id: "latest" }, resolved };
    expect(address(scope, { view: "overview" })).toBe("#/trial/a/latest/");
    expect(parseTrial(address(scope, { view: "runs" }))).toEqual(resolved);
    expect(apiPrefix(scope)).toBe("/trial/a/latest");
  });

  it("with an invalid trial name no trial", () => {
    for (const bad of [
      "#/trial/..",
      "#/trial/a/..",
      "#/trial/a/%2e%2e/run/x",
      "#/trial/a/b c",
      "#/trial/_a/b",
    ])
      expect(parseTrial(bad), bad).toBeUndefined();
  });

  it("that match no view are unknown", () => {
    for (const bad of [
      "#/run",
      "#/run/a b",
      "#/run/x/i/0",
      "#/run/x/i/-1",
      "#/run/x/i/1/nothing",
      "#/else",
      "#/run/%zz",
    ]) {
      expect(parseRoute(bad).view, bad).toBe("unknown");
    }
  });

  it("count lines from 1", () => {
    expect(lineRange("3")).toEqual([2, 2]);
    expect(lineRange("3-9")).toEqual([2, 8]);
    expect(lineRange("9-3")).toEqual([8, 8]);
    for (const bad of [undefined, "", "x", "1-", "-1", "1e9"]) expect(lineRange(bad)).toBeNull();
  });
});
