// The run as one strip of cells: one for each task, in the order of the tree. A strip has a limited width, so the cells of a
// large tree stand for several tasks each.

import { LEAF } from "./labels";
import type { NodeState, TreeColumns } from "./types";

export interface StripCell {
  /** The worst state of its tasks; a cell is passed only if all of them are. */
  state: NodeState;
  /** The first task of that state. */
  id: string;
  title: string;
  tasks: number;
}

const WORST_FIRST: NodeState[] = ["stuck", "running", "retried", "next", "open", "passed"];

/** At most `cellsMax` cells. `current` is the task that a session works on. */
export function stripCells(
  tree: TreeColumns,
  current: string | null | undefined,
  cellsMax: number,
): StripCell[] {
  const leaves: number[] = [];
  for (let index = 0; index < tree.id.length; index++)
    if ((tree.flags[index] ?? 0) & LEAF) leaves.push(index);
  const perCell = Math.max(1, Math.ceil(leaves.length / cellsMax));
  const cells: StripCell[] = [];
  for (let from = 0; from < leaves.length; from += perCell)
    cells.push(cellOf(tree, leaves.slice(from, from + perCell), current));
  return cells;
}

function cellOf(tree: TreeColumns, leaves: number[], current: string | null | undefined): StripCell {
  let [worst, at] = [WORST_FIRST.length, leaves[0] ?? 0];
  for (const index of leaves) {
    const state = tree.state[index] ?? "open";
    const shown = tree.id[index] === current && state !== "passed" ? "running" : state;
    const rank = WORST_FIRST.indexOf(shown);
    if (rank < worst) [worst, at] = [rank, index];
  }
  const id = tree.id[at] ?? "";
  return { state: WORST_FIRST[worst] ?? "open", id, title: tree.title[at] || id, tasks: leaves.length };
}
