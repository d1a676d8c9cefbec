// Keyboard navigation in a grid of links.

import { hasModifier } from "./keys";

const COLUMN_STEPS: Record<string, number> = { ArrowLeft: -1, h: -1, ArrowRight: 1, l: 1 };
const ROW_STEPS: Record<string, number> = { ArrowUp: -1, k: -1, ArrowDown: 1, j: 1 };

/** Moves the focus from link to link: sideways in a row, up and down between rows. */
export function moveFocus(
  event: KeyboardEvent,
  grid: Element,
  rowSelector: string,
  linkSelector: string,
): void {
  const columnStep = COLUMN_STEPS[event.key];
  const rowStep = ROW_STEPS[event.key];
  if ((columnStep === undefined && rowStep === undefined) || hasModifier(event)) return;
  const link = event.target instanceof Element ? event.target.closest<HTMLElement>(linkSelector) : null;
  if (!link) return;
  const rows = [...grid.querySelectorAll(rowSelector)]
    .map((row) => [...row.querySelectorAll<HTMLElement>(linkSelector)])
    .filter((links) => links.length > 0);
  const row = rows.findIndex((links) => links.includes(link));
  const column = rows[row]?.indexOf(link) ?? 0;
  const target = rows[row + (rowStep ?? 0)];
  const next = target?.[columnStep === undefined ? Math.min(column, target.length - 1) : column + columnStep];
  if (!next) return;
  next.focus();
  event.preventDefault();
}
