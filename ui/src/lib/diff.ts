// The lines of a diff as the page shows them: unified, or side by side.

import { changedWords, markTokens, tokenize, type MarkedToken } from "./highlight";
import type { DiffLine } from "./types";

/** A line of one side. */
export interface SideLine {
  number: number | null;
  kind: DiffLine["kind"];
  tokens: MarkedToken[];
}

/** A row of a diff: one side alone, or both. */
export interface DiffRow {
  left: SideLine | null;
  right: SideLine | null;
  /** The header of a hunk, or a note by git. */
  note: string | null;
}

/** Both sides in rows; a unified diff shows the left before the right. Removed and added lines are paired in order. */
export function diffRows(lines: DiffLine[], path: string): DiffRow[] {
  const rows: DiffRow[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at] as DiffLine;
    if (line.kind === "removed" || line.kind === "added") {
      const removed = takeWhile(lines, at, "removed");
      const added = takeWhile(lines, at + removed.length, "added");
      rows.push(...changedRows(removed, added, path));
      at += removed.length + added.length;
      continue;
    }
    at++;
    if (line.kind === "head") continue;
    if (line.kind === "same") {
      const tokens = plainTokens(line.text, path);
      rows.push({
        left: { number: line.old, kind: "same", tokens },
        right: { number: line.new, kind: "same", tokens },
        note: null,
      });
    } else rows.push({ left: null, right: null, note: line.text });
  }
  return rows;
}

function takeWhile(lines: DiffLine[], from: number, kind: DiffLine["kind"]): DiffLine[] {
  let end = from;
  while (lines[end]?.kind === kind) end++;
  return lines.slice(from, end);
}

const plainTokens = (text: string, path: string): MarkedToken[] =>
  tokenize(text, path).map((token) => ({ ...token, isChanged: false }));

/** More pairs of lines than this are paired in order. */
const LINE_PAIRS_MAX = 2_500;

/** Which removed line became which added one: the pairs in order that have the most in common. Others stay alone. */
function pairedLines(removed: DiffLine[], added: DiffLine[]): [DiffLine | undefined, DiffLine | undefined][] {
  const [rows, columns] = [removed.length, added.length];
  if (rows * columns > LINE_PAIRS_MAX || rows === columns)
    return Array.from({ length: Math.max(rows, columns) }, (_, index) => [removed[index], added[index]]);
  const width = columns + 1;
  const best = new Float64Array((rows + 1) * width);
  const at = (row: number, column: number) => best[row * width + column] ?? 0;
  const score = (row: number, column: number) =>
    likeness(removed[row]?.text ?? "", added[column]?.text ?? "");
  for (let row = rows - 1; row >= 0; row--)
    for (let column = columns - 1; column >= 0; column--)
      best[row * width + column] = Math.max(
        at(row + 1, column + 1) + score(row, column),
        at(row + 1, column),
        at(row, column + 1),
      );
  const pairs: [DiffLine | undefined, DiffLine | undefined][] = [];
  for (let row = 0, column = 0; row < rows || column < columns;) {
    const isPair =
      row < rows &&
      column < columns &&
      score(row, column) > 0 &&
      at(row, column) === at(row + 1, column + 1) + score(row, column);
    if (isPair) pairs.push([removed[row++], added[column++]]);
    else if (row < rows && (column >= columns || at(row + 1, column) >= at(row, column + 1)))
      pairs.push([removed[row++], undefined]);
    else pairs.push([undefined, added[column++]]);
  }
  return pairs;
}

/** From 0 to 1: which share of the words two lines have in common; 0 below a third. */
function likeness(one: string, other: string): number {
  const words = (text: string) => text.match(/\w+/g) ?? [];
  const [left, right] = [words(one), words(other)];
  const pool = new Map<string, number>();
  for (const word of right) pool.set(word, (pool.get(word) ?? 0) + 1);
  let shared = 0;
  for (const word of left) {
    const count = pool.get(word) ?? 0;
    if (count > 0) {
      shared++;
      pool.set(word, count - 1);
    }
  }
  const share = shared / Math.max(1, left.length, right.length);
  return share < 1 / 3 ? 0 : share;
}

function changedRows(removed: DiffLine[], added: DiffLine[], path: string): DiffRow[] {
  const rows: DiffRow[] = [];
  for (const [before, after] of pairedLines(removed, added)) {
    const words = before && after ? changedWords(before.text, after.text) : null;
    const side = (line: DiffLine | undefined, parts: Parameters<typeof markTokens>[1] | undefined) =>
      line
        ? {
            number: line.kind === "removed" ? line.old : line.new,
            kind: line.kind,
            tokens: parts ? markTokens(tokenize(line.text, path), parts) : plainTokens(line.text, path),
          }
        : null;
    rows.push({ left: side(before, words?.before), right: side(after, words?.after), note: null });
  }
  return rows;
}

/** The rows of a unified diff: of each run of changes, what was removed comes first. */
export function unifiedRows(rows: DiffRow[]): DiffRow[] {
  const unified: DiffRow[] = [];
  let added: DiffRow[] = [];
  const flush = () => {
    unified.push(...added);
    added = [];
  };
  for (const row of rows) {
    if (row.note !== null || row.left?.kind === "same") {
      flush();
      unified.push(row);
      continue;
    }
    if (row.left) unified.push({ left: row.left, right: null, note: null });
    if (row.right) added.push({ left: null, right: row.right, note: null });
  }
  flush();
  return unified;
}
