// The tree as rows: opened and closed by splicing, never by making all of it anew.

import type { SlimTree } from "./types";
import { EXHAUSTED, PASSES } from "./labels";

export interface Filter {
  text: string;
  onlyOpen: boolean;
  onlyFailing: boolean;
}

export const NO_FILTER: Filter = { text: "", onlyOpen: false, onlyFailing: false };

/** Where each node's subtree ends in the columns: the place behind its last descendant. */
export function ends(tree: SlimTree): Int32Array {
  const found = new Int32Array(tree.id.length);
  for (let at = tree.id.length - 1; at >= 0; at--) {
    if ((found[at] ?? 0) <= at) found[at] = at + 1;
    const parent = tree.parent[at] ?? -1;
    if (parent >= 0) found[parent] = Math.max(found[parent] ?? 0, found[at] ?? 0);
  }
  return found;
}

/** Which nodes are closed at first: in a large tree, all inner nodes that pass, and those far down. */
export function closedAtFirst(tree: SlimTree): Set<string> {
  const closed = new Set<string>();
  if (tree.id.length <= 200) return closed;
  const open = new Set(pathTo(tree, tree.selected));
  for (let at = 0; at < tree.id.length; at++) {
    const id = tree.id[at] ?? "";
    if ((tree.depth[at] ?? 0) >= 1 && !open.has(id)) closed.add(id);
  }
  return closed;
}

/** The ids from the root to a node. */
export function pathTo(tree: SlimTree, id: string | null | undefined): string[] {
  const path: string[] = [];
  let at = id ? tree.id.indexOf(id) : -1;
  while (at >= 0) {
    path.unshift(tree.id[at] ?? "");
    at = tree.parent[at] ?? -1;
  }
  return path;
}

/** The places in the columns of the rows that are shown. */
export function visibleRows(
  tree: SlimTree,
  end: Int32Array,
  closed: ReadonlySet<string>,
  filter: Filter,
): number[] {
  const isFiltered = filter.text !== "" || filter.onlyOpen || filter.onlyFailing;
  return isFiltered ? filtered(tree, filter) : below(tree, end, closed, 0, tree.id.length);
}

/** The rows of some nodes and what is open below them. */
function below(
  tree: SlimTree,
  end: Int32Array,
  closed: ReadonlySet<string>,
  from: number,
  to: number,
): number[] {
  const rows: number[] = [];
  for (let at = from; at < to;) {
    rows.push(at);
    at = closed.has(tree.id[at] ?? "") ? (end[at] ?? at + 1) : at + 1;
  }
  return rows;
}

/** What matches, with the nodes on the way to it. */
function filtered(tree: SlimTree, filter: Filter): number[] {
  const wanted = filter.text.toLowerCase();
  const keep = new Uint8Array(tree.id.length);
  for (let at = 0; at < tree.id.length; at++) {
    const flags = tree.flags[at] ?? 0;
    if (filter.onlyOpen && flags & PASSES) continue;
    if (filter.onlyFailing && !(flags & EXHAUSTED) && ((tree.attempts[at] ?? 0) === 0 || flags & PASSES))
      continue;
    const holds = (text: string | undefined) => (text ?? "").toLowerCase().includes(wanted);
    if (wanted !== "" && !holds(tree.title[at]) && !holds(tree.id[at])) continue;
    for (let up = at; up >= 0 && !keep[up]; up = tree.parent[up] ?? -1) keep[up] = 1;
  }
  const rows: number[] = [];
  keep.forEach((is, at) => is && rows.push(at));
  return rows;
}

/** The rows after a node was closed or opened; `closed` says which already. */
export function toggled(
  tree: SlimTree,
  end: Int32Array,
  closed: ReadonlySet<string>,
  rows: number[],
  row: number,
): number[] {
  const at = rows[row];
  if (at === undefined) return rows;
  const behind = end[at] ?? at + 1;
  let last = row + 1;
  while (last < rows.length && (rows[last] ?? 0) < behind) last++;
  const shown = closed.has(tree.id[at] ?? "") ? [] : below(tree, end, closed, at + 1, behind);
  // Not `splice`: its arguments are limited, and a subtree may have 100,000 rows.
  return rows.slice(0, row + 1).concat(shown, rows.slice(last));
}

/** The same set with a member taken out, or put in if it was not there. */
export function flipped(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}
