import { describe, expect, it } from "vitest";
import { foundTasks, paletteItems, searchLimit } from "./palette";
import type { FileHistory, IterationRow, SearchResults, TreeColumns } from "./types";

const row = (iter: number, outcome: string) =>
  ({
    iter,
    outcome,
    is_charged: outcome === "guard_failed",
    summary: outcome === "passed" ? "Sliding window" : "",
    findings: outcome === "guard_failed" ? ["left 2, right 1"] : [],
    has_logs: true,
    path: "root/a",
    guard: null,
  }) as IterationRow;
const source = {
  run: "x",
  rows: [row(1, "decomposed"), row(7, "guard_failed"), row(70, "passed")],
  tree: {
    id: ["root", "paging"],
    title: ["Ledger", "Page through accounts"],
    state: ["open", "next"],
  } as unknown as TreeColumns,
  files: [{ path: "src/paging.rs", touches: [{ iter: 7, added: 1, removed: 0 }] }] as FileHistory[],
};
const titles = (text: string) => paletteItems({ ...source, text }).map((item) => item.title);

describe("the palette", () => {
  it("finds an iteration by its number, the exact one first", () => {
    expect(titles("#7")).toEqual(["#7 root/a", "#70 Sliding window"]);
  });

  it("finds tasks, files and outcomes", () => {
    expect(titles("paging")).toEqual(["Page through accounts", "src/paging.rs"]);
    expect(titles("f:src")).toEqual(["src/paging.rs"]);
    expect(titles("s:failed")).toEqual(["#7 root/a"]);
  });

  it("finds iterations by their summary and findings", () => {
    expect(titles("sliding")).toEqual(["#70 Sliding window"]);
    expect(titles("right 1")).toEqual(["#7 root/a"]);
  });

  it("adds tasks that only the server found", () => {
    const listed = paletteItems({ ...source, text: "paging" });
    const nodes = [
      { id: "paging", title: "Page through accounts", passes: false },
      { id: "root", title: "Ledger", passes: true },
    ];
    expect(foundTasks("x", nodes, listed).map((item) => item.title)).toEqual(["Ledger"]);
  });

  it("states where a search of the logs ended", () => {
    const found = (logs: number, logs_searched: number) =>
      ({ logs: Array.from({ length: logs }), logs_searched }) as SearchResults;
    expect(searchLimit(found(3, 3), source.rows)).toBe("");
    expect(searchLimit(found(50, 1), source.rows)).toMatch(/^Stopped after 50 matches.* newest 1 of 3/);
    expect(searchLimit(found(3, 2), source.rows)).toMatch(/^Stopped after 2 seconds/);
  });

  it("offers the views before anything is typed", () => {
    expect(titles("")).toEqual(["Overview", "Statistics", "Runs", "Newest iteration", "First failure"]);
  });
});
