import { describe, expect, it } from "vitest";
import { closedAtFirst, ends, NO_FILTER, pathTo, toggled, visibleRows } from "./tree";
import type { SlimTree } from "./types";

// root: a (b, c (d)), e
const tree: SlimTree = {
  run: "x",
  revision: "",
  id: ["root", "a", "b", "c", "d", "e"],
  title: ["Root", "A", "Bee", "C", "Dee", "E"],
  parent: [-1, 0, 1, 1, 3, 0],
  depth: [0, 1, 2, 2, 3, 1],
  flags: [0, 0, 3, 0, 6, 2],
  attempts: [0, 0, 1, 0, 3, 0],
  max_attempts: [3, 3, 3, 3, 3, 3],
  leaves: [3, 2, 1, 1, 1, 1],
  passed: [1, 1, 1, 0, 0, 0],
  selected: "d",
};
const end = ends(tree);
const shown = (rows: number[]) => rows.map((at) => tree.id[at]).join(" ");

describe("the tree", () => {
  it("knows where a subtree ends", () => {
    expect([...end]).toEqual([6, 5, 3, 5, 5, 6]);
  });

  it("is opened and closed as if it were made anew", () => {
    let rows = visibleRows(tree, end, new Set(), NO_FILTER);
    expect(shown(rows)).toBe("root a b c d e");
    for (const closed of [new Set(["a"]), new Set<string>(), new Set(["a", "c"]), new Set(["c"])]) {
      rows = toggled(tree, end, closed, rows, 1);
      const anew = visibleRows(tree, end, closed, NO_FILTER);
      if (!closed.has("c") || closed.has("a")) expect(shown(rows)).toBe(shown(anew));
    }
  });

  it("shows what matches with the way to it", () => {
    const find = (filter: Partial<typeof NO_FILTER>) =>
      shown(visibleRows(tree, end, new Set(["root"]), { ...NO_FILTER, ...filter }));
    expect(find({ text: "dEE" })).toBe("root a c d");
    expect(find({ onlyOpen: true })).toBe("root a c d e");
    expect(find({ onlyFailing: true })).toBe("root a c d");
    expect(find({ text: "zzz" })).toBe("");
  });

  it("names the way to a node", () => {
    expect(pathTo(tree, "d")).toEqual(["root", "a", "c", "d"]);
    expect(pathTo(tree, "none")).toEqual([]);
  });

  it("is open as a whole only when it is small", () => {
    expect(closedAtFirst(tree).size).toBe(0);
    const many = Array.from({ length: 1000 }, (_, at) => `n${at}`);
    const wide = {
      ...tree,
      id: many,
      parent: many.map((_, at) => (at === 0 ? -1 : 0)),
      depth: many.map((_, at) => (at === 0 ? 0 : 1)),
      selected: "n7",
    };
    expect(closedAtFirst(wide).has("n0")).toBe(false);
    expect(closedAtFirst(wide).has("n7")).toBe(false);
    expect(closedAtFirst(wide).has("n8")).toBe(true);
  });
});
