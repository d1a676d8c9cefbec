// The task tree as a flat list of rows. A toggle splices rows in or out instead of computing all of them again, which
// keeps a tree of 100,000 nodes fast.

import type { TreeColumns } from "./types";
import { EXHAUSTED, PASSES } from "./labels";

export interface TreeFilter {
  text: string;
  onlyOpen: boolean;
  onlyFailing: boolean;
}

export const NO_FILTER: TreeFilter = { text: "", onlyOpen: false, onlyFailing: false };

const EXPANDED_NODES_MAX = 200;

/** For each node, the index after its last descendant. */
export function subtreeEnds(tree: TreeColumns): Int32Array {
  const ends = new Int32Array(tree.id.length);
  for (let index = tree.id.length - 1; index >= 0; index--) {
    if ((ends[index] ?? 0) <= index) ends[index] = index + 1;
    const parent = tree.parent[index] ?? -1;
    if (parent >= 0) ends[parent] = Math.max(ends[parent] ?? 0, ends[index] ?? 0);
  }
  return ends;
}

/** For each node, its number among its siblings, from 1, and how many they are. */
export function siblingPlaces(tree: TreeColumns): { position: Int32Array; size: Int32Array } {
  const position = new Int32Array(tree.id.length);
  const size = new Int32Array(tree.id.length);
  const children = new Int32Array(tree.id.length + 1);
  tree.parent.forEach((parent, index) => {
    const place = (children[parent + 1] ?? 0) + 1;
    position[index] = children[parent + 1] = place;
  });
  tree.parent.forEach((parent, index) => (size[index] = children[parent + 1] ?? 1));
  return { position, size };
}

/** For each node, how many tasks at or below it are stuck. */
export function stuckBelow(tree: TreeColumns): Int32Array {
  const stuck = new Int32Array(tree.id.length);
  for (let index = tree.id.length - 1; index >= 0; index--) {
    if (tree.state[index] === "stuck") stuck[index] = (stuck[index] ?? 0) + 1;
    const parent = tree.parent[index] ?? -1;
    if (parent >= 0) stuck[parent] = (stuck[parent] ?? 0) + (stuck[index] ?? 0);
  }
  return stuck;
}

/** The nodes that start collapsed: in a large tree, all but the root and the path to the next task. */
export function initiallyCollapsed(tree: TreeColumns): Set<string> {
  const collapsed = new Set<string>();
  if (tree.id.length <= EXPANDED_NODES_MAX) return collapsed;
  const expanded = new Set(pathTo(tree, tree.selected));
  for (let index = 0; index < tree.id.length; index++) {
    const id = tree.id[index] ?? "";
    if ((tree.depth[index] ?? 0) >= 1 && !expanded.has(id)) collapsed.add(id);
  }
  return collapsed;
}

/** The ids from the root to a node; empty if the tree has no such node. */
export function pathTo(tree: TreeColumns, id: string | null | undefined): string[] {
  const path: string[] = [];
  let index = id ? tree.id.indexOf(id) : -1;
  while (index >= 0) {
    path.unshift(tree.id[index] ?? "");
    index = tree.parent[index] ?? -1;
  }
  return path;
}

/** The rows to show, as indices of nodes. */
export function visibleRows(
  tree: TreeColumns,
  ends: Int32Array,
  collapsed: ReadonlySet<string>,
  filter: TreeFilter,
): number[] {
  const isFiltered = filter.text !== "" || filter.onlyOpen || filter.onlyFailing;
  return isFiltered ? filteredRows(tree, filter) : expandedRows(tree, ends, collapsed, 0, tree.id.length);
}

/** The nodes from `from` to `to` that no collapsed node hides. */
function expandedRows(
  tree: TreeColumns,
  ends: Int32Array,
  collapsed: ReadonlySet<string>,
  from: number,
  to: number,
): number[] {
  const rows: number[] = [];
  for (let index = from; index < to;) {
    rows.push(index);
    index = collapsed.has(tree.id[index] ?? "") ? (ends[index] ?? index + 1) : index + 1;
  }
  return rows;
}

/** The nodes that match, with their ancestors. */
function filteredRows(tree: TreeColumns, filter: TreeFilter): number[] {
  const text = filter.text.toLowerCase();
  const matches = (value: string | undefined) => (value ?? "").toLowerCase().includes(text);
  const isShown = new Uint8Array(tree.id.length);
  for (let index = 0; index < tree.id.length; index++) {
    const flags = tree.flags[index] ?? 0;
    const hasFailed = flags & EXHAUSTED || ((tree.attempts[index] ?? 0) > 0 && !(flags & PASSES));
    if (filter.onlyOpen && flags & PASSES) continue;
    if (filter.onlyFailing && !hasFailed) continue;
    if (text !== "" && !matches(tree.title[index]) && !matches(tree.id[index])) continue;
    for (let up = index; up >= 0 && !isShown[up]; up = tree.parent[up] ?? -1) isShown[up] = 1;
  }
  const rows: number[] = [];
  isShown.forEach((shown, index) => shown && rows.push(index));
  return rows;
}

/** The rows after the node in `row` was collapsed or expanded; `collapsed` is the state after that. */
export function rowsAfterToggle(
  tree: TreeColumns,
  ends: Int32Array,
  collapsed: ReadonlySet<string>,
  rows: number[],
  row: number,
): number[] {
  const index = rows[row];
  if (index === undefined) return rows;
  const subtreeEnd = ends[index] ?? index + 1;
  let next = row + 1;
  while (next < rows.length && (rows[next] ?? 0) < subtreeEnd) next++;
  const inner = collapsed.has(tree.id[index] ?? "")
    ? []
    : expandedRows(tree, ends, collapsed, index + 1, subtreeEnd);
  // Not `splice`: the number of its arguments is limited, and a subtree may have 100,000 rows.
  return rows.slice(0, row + 1).concat(inner, rows.slice(next));
}

/** A copy of the set with the member added, or removed if it was there. */
export function withToggled(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const copy = new Set(set);
  if (!copy.delete(id)) copy.add(id);
  return copy;
}

/** Changes of tasks in the order of the tree, with their depth below the highest of them. Tasks that are gone come last. */
export function inTreeOrder<T extends { id: string }>(
  changes: T[],
  tree: TreeColumns | null,
): { change: T; depth: number }[] {
  const wanted = new Set(changes.map((change) => change.id));
  const places = new Map<string, number>();
  tree?.id.forEach((id, index) => wanted.has(id) && places.set(id, index));
  const placed = changes.map((change) => {
    const index = places.get(change.id);
    return { change, index: index ?? Infinity, depth: index === undefined ? 0 : (tree?.depth[index] ?? 0) };
  });
  const known = placed.filter(({ index }) => index !== Infinity).map(({ depth }) => depth);
  const top = Math.min(...known, Infinity);
  return placed
    .sort((a, b) => (a.index === b.index ? 0 : a.index - b.index))
    .map(({ change, index, depth }) => ({ change, depth: index === Infinity ? 0 : depth - top }));
}
