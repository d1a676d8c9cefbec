import { expect, it } from "vitest";
import { stripCells } from "./strip";
import type { TreeColumns } from "./types";

const tree = (states: string[]) =>
  ({
    id: ["root", ...states.map((_, index) => `n${index}`)],
    title: ["Root", ...states.map((_, index) => `Task ${index}`)],
    flags: [0, ...states.map(() => 2)],
    state: ["open", ...states],
  }) as unknown as TreeColumns;

it("a strip has one cell for each task", () => {
  const cells = stripCells(tree(["passed", "next", "open"]), "n1", 100);
  expect(cells.map((cell) => [cell.state, cell.id])).toEqual([
    ["passed", "n0"],
    ["running", "n1"],
    ["open", "n2"],
  ]);
});

it("a cell of several tasks shows the worst of them", () => {
  const states = Array.from({ length: 1000 }, (_, index) => (index === 503 ? "stuck" : "passed"));
  const cells = stripCells(tree(states), null, 100);
  expect([cells.length, cells[0]?.tasks]).toEqual([100, 10]);
  expect(cells.filter((cell) => cell.state === "stuck").map((cell) => cell.id)).toEqual(["n503"]);
});
