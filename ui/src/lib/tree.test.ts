import { describe, expect, it } from "vitest";
import {
  initiallyCollapsed,
  NO_FILTER,
  pathTo,
  rowsAfterToggle,
  siblingPlaces,
  stuckBelow,
  subtreeEnds,
  visibleRows,
} from "./tree";
import type { TreeColumns } from "./types";

// root: a (b, c (d)), e
const tree: TreeColumns = {
  run: "x",
  revision: "",
  id: ["root", "a", "b", "c", "d", "e"],
  title: ["Root", "A", "Bee", "C", "Dee", "E"],
  parent: [-1, 0, 1, 1, 3, 0],
  depth: [0, 1, 2, 2, 3, 1],
  flags: [0, 0, 3, 0, 6, 2],
  state: ["open", "open", "passed", "open", "stuck", "open"],
  attempts: [0, 0, 1, 0, 3, 0],
  max_attempts: [3, 3, 3, 3, 3, 3],
  leaves: [3, 2, 1, 1, 1, 1],
  passed: [1, 1, 1, 0, 0, 0],
  selected: "d",
};
const ends = subtreeEnds(tree);
const ids = (rows: number[]) => rows.map((index) => tree.id[index]).join(" ");

describe("the task tree", () => {
  it("knows where a subtree ends", () => {
    expect([...ends]).toEqual([6, 5, 3, 5, 5, 6]);
  });

  it("knows each node's place among its siblings, and where tasks are stuck", () => {
    const { position, size } = siblingPlaces(tree);
    expect([[...position], [...size]]).toEqual([
      [1, 1, 1, 2, 1, 2],
      [1, 2, 2, 2, 1, 2],
    ]);
    expect([...stuckBelow(tree)]).toEqual([1, 1, 0, 1, 1, 0]);
  });

  it("has the same rows after a toggle as when computed from scratch", () => {
    let rows = visibleRows(tree, ends, new Set(), NO_FILTER);
    expect(ids(rows)).toBe("root a b c d e");
    for (const collapsed of [new Set(["a"]), new Set<string>(), new Set(["a", "c"]), new Set(["c"])]) {
      rows = rowsAfterToggle(tree, ends, collapsed, rows, 1);
      expect(ids(rows)).toBe(ids(visibleRows(tree, ends, collapsed, NO_FILTER)));
    }
  });

  it("shows matches with their ancestors", () => {
    const find = (filter: Partial<typeof NO_FILTER>) =>
      ids(visibleRows(tree, ends, new Set(["root"]), { ...NO_FILTER, ...filter }));
    expect(find({ text: "dEE" })).toBe("root a c d");
    expect(find({ onlyOpen: true })).toBe("root a c d e");
    expect(find({ onlyFailing: true })).toBe("root a c d");
    expect(find({ text: "zzz" })).toBe("");
  });

  it("has a path to each node", () => {
    expect(pathTo(tree, "d")).toEqual(["root", "a", "c", "d"]);
    expect(pathTo(tree, "none")).toEqual([]);
  });

  it("starts fully expanded only if it is small", () => {
    expect(initiallyCollapsed(tree).size).toBe(0);
    const many = Array.from({ length: 1000 }, (_, index) => `n${index}`);
    const wide = {
      ...tree,
      id: many,
      parent: many.map((_, index) => (index === 0 ? -1 : 0)),
      depth: many.map((_, index) => (index === 0 ? 0 : 1)),
      selected: "n7",
    };
    expect(initiallyCollapsed(wide).has("n0")).toBe(false);
    expect(initiallyCollapsed(wide).has("n7")).toBe(false);
    expect(initiallyCollapsed(wide).has("n8")).toBe(true);
  });
});
