import { LEAF } from "../lib/labels";
import {
  initiallyCollapsed,
  pathTo,
  rowsAfterToggle,
  subtreeEnds,
  visibleRows,
  withToggled,
  type TreeFilter,
} from "../lib/tree";
import type { TreeColumns } from "../lib/types";

/** The visible rows of a tree, and which nodes are collapsed. */
export class TreeRows {
  /** Indices of nodes. */
  rows = $state.raw<number[]>([]);
  collapsed = $state.raw<ReadonlySet<string>>(new Set());
  #tree: TreeColumns | null = null;
  #ends: Int32Array = new Int32Array();
  #filter: TreeFilter | null = null;

  /** Nodes keep their state when the tree changes, unless it is the tree of another run. */
  update(tree: TreeColumns | null, filter: TreeFilter): void {
    const isOtherRun = tree?.run !== this.#tree?.run;
    if (tree && tree !== this.#tree) this.#ends = subtreeEnds(tree);
    if (tree && (isOtherRun || !this.#tree)) this.collapsed = initiallyCollapsed(tree);
    if (tree) this.#tree = tree;
    this.#filter = filter;
    this.rows = tree ? visibleRows(tree, this.#ends, this.collapsed, filter) : [];
  }

  /** Expands the ancestors of a node; returns the node's row, or -1. */
  reveal(id: string): number {
    const [tree, filter] = [this.#tree, this.#filter];
    if (!tree || !filter) return -1;
    const ancestors = pathTo(tree, id).slice(0, -1);
    if (ancestors.some((ancestor) => this.collapsed.has(ancestor))) {
      this.collapsed = new Set([...this.collapsed].filter((other) => !ancestors.includes(other)));
      this.rows = visibleRows(tree, this.#ends, this.collapsed, filter);
    }
    return this.rowOf(id);
  }

  toggle(row: number): void {
    const id = this.idOf(row);
    if (!this.#tree || id === undefined) return;
    this.collapsed = withToggled(this.collapsed, id);
    this.rows = rowsAfterToggle(this.#tree, this.#ends, this.collapsed, this.rows, row);
  }

  idOf(row: number): string | undefined {
    return this.#tree?.id[this.rows[row] ?? -1];
  }

  rowOf(id: string | undefined): number {
    return id === undefined ? -1 : this.rows.findIndex((index) => this.#tree?.id[index] === id);
  }

  /** The row of the parent, or -1. */
  parentOf(row: number): number {
    return this.rows.indexOf(this.#tree?.parent[this.rows[row] ?? -1] ?? -1);
  }

  isLeaf(row: number): boolean {
    return ((this.#tree?.flags[this.rows[row] ?? -1] ?? 0) & LEAF) !== 0;
  }

  isExpanded(row: number): boolean {
    return !this.isLeaf(row) && !this.collapsed.has(this.idOf(row) ?? "");
  }
}
