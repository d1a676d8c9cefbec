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

function changedRows(removed: DiffLine[], added: DiffLine[], path: string): DiffRow[] {
  const rows: DiffRow[] = [];
  for (let index = 0; index < Math.max(removed.length, added.length); index++) {
    const [before, after] = [removed[index], added[index]];
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
