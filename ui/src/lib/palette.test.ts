import { describe, expect, it } from "vitest";
import { paletteItems } from "./palette";
import type { FileHistory, IterationRow, TreeColumns } from "./types";

const row = (iter: number, outcome: string) =>
  ({
    iter,
    outcome,
    is_charged: outcome === "guard_failed",
    summary: "",
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
    expect(titles("#7")).toEqual(["#7 root/a", "#70 root/a"]);
  });

  it("finds tasks, files and outcomes", () => {
    expect(titles("paging")).toEqual(["Page through accounts", "src/paging.rs"]);
    expect(titles("f:src")).toEqual(["src/paging.rs"]);
    expect(titles("s:failed")).toEqual(["#7 root/a"]);
  });

  it("offers the views before anything is typed", () => {
    expect(titles("")).toEqual(["Overview", "Statistics", "Runs", "Newest iteration", "First failure"]);
  });
});
