import { describe, expect, it } from "vitest";
import { address, lineRange, parse, type Route } from "./router";

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
