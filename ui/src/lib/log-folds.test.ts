import { expect, test } from "vitest";
import { lineSeconds, LogFolds } from "./log-folds";

const group = (first: number, last: number) => ({ first, last, title: "", seconds: null });

test("folded groups show their first lines alone", () => {
  const folds = new LogFolds(
    20,
    [group(2, 5), group(3, 4), group(8, 9), group(12, 19)],
    ({ first }) => first !== 8,
  );
  const lines = Array.from({ length: folds.rows }, (_, row) => folds.lineAt(row));
  expect(lines).toEqual([0, 1, 2, 6, 7, 8, 9, 10, 11, 12]);
  expect(lines.map((line) => folds.rowOf(line))).toEqual(lines.map((_, row) => row));
  // A hidden line is at the heading of its group.
  expect([3, 4, 5, 15, 19].map((line) => folds.rowOf(line))).toEqual([2, 2, 2, 9, 9]);
});

test("nothing is hidden without folded groups, and a group beyond the end hides nothing", () => {
  for (const folds of [
    new LogFolds(3, [group(0, 2)], () => false),
    new LogFolds(3, [group(1, 5)], () => true),
  ]) {
    expect(folds.rows).toBe(3);
    expect([0, 1, 2].map((row) => folds.lineAt(row))).toEqual([0, 1, 2]);
  }
});

test("times at the beginning of a line are read", () => {
  expect(lineSeconds("[12:00:01] x")).toBe(43_201);
  expect(lineSeconds("\u001b[2m1970-01-02T00:00:00.5Z x")).toBe(86_400.5);
  expect(lineSeconds("at 12:00:01")).toBeNull();
  expect(lineSeconds("")).toBeNull();
});
