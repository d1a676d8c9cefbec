import { expect, it } from "vitest";
import { diffRows, unifiedRows } from "./diff";
import type { DiffLine } from "./types";

const lines: DiffLine[] = [
  { kind: "head", old: null, new: null, text: "diff --git a/a.rs b/a.rs" },
  { kind: "hunk", old: null, new: null, text: "@@ -1,3 +1,4 @@" },
  { kind: "same", old: 1, new: 1, text: "fn a() {" },
  { kind: "removed", old: 2, new: null, text: "    f(1)" },
  { kind: "added", old: null, new: 2, text: "    f(2)" },
  { kind: "added", old: null, new: 3, text: "    g()" },
  { kind: "same", old: 3, new: 4, text: "}" },
];

it("pairs removed and added lines, and marks what changed in them", () => {
  const rows = diffRows(lines, "a.rs");
  expect(rows.map((row) => [row.left?.number ?? null, row.right?.number ?? null])).toEqual([
    [null, null],
    [1, 1],
    [2, 2],
    [null, 3],
    [3, 4],
  ]);
  const marked = rows[2]?.right?.tokens.filter((token) => token.isChanged).map((token) => token.text);
  expect(marked).toEqual(["2"]);
});

it("pairs the lines that have the most in common", () => {
  const line = (kind: DiffLine["kind"], text: string): DiffLine => ({ kind, old: 1, new: 1, text });
  const rows = diffRows(
    [
      line("removed", "return Err(status(429));"),
      line("added", "let wait = from_secs(60);"),
      line("added", "return Err(status(429).header(wait));"),
    ],
    "a.rs",
  );
  expect(rows.map((row) => [row.left !== null, row.right !== null])).toEqual([
    [false, true],
    [true, true],
  ]);
  const marked = rows[1]?.right?.tokens.filter((token) => token.isChanged).map((token) => token.text);
  expect(marked?.join("")).toBe(".header(wait)");
});

it("shows removed lines before added ones in a unified diff", () => {
  const rows = unifiedRows(diffRows(lines, "a.rs"));
  expect(
    rows.map((row) => (row.note ? "@" : row.left && row.right ? " " : row.left ? "-" : "+")).join(""),
  ).toBe("@ -++ ");
});
