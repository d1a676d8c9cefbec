// How acceptance criteria are decided, in words.

import type { CheckResultView, CheckStateName, Coverage, Label, PointState } from "./types";

/** `17 of 20 points proven, 3 in prose`, as `runner status` prints it. */
export function coverageText(coverage: Coverage): string {
  const rest = [
    [coverage.pending, "pending"],
    [coverage.unproven, "unproven"],
    [coverage.prose, "in prose"],
  ] as const;
  const parts = rest.filter(([amount]) => amount > 0).map(([amount, what]) => `${amount} ${what}`);
  return [`${coverage.proven} of ${coverage.points} points proven`, ...parts].join(", ");
}

export const POINT_LABELS: Record<PointState, Label> = {
  proven: { text: "proven", glyph: "✓", tone: "pass" },
  pending: { text: "pending", glyph: "◦", tone: "open" },
  unproven: { text: "unproven", glyph: "!", tone: "retry" },
  prose: { text: "in prose: no check decides it", glyph: "–", tone: "open" },
};

export const CHECK_LABELS: Record<CheckStateName, Label> = {
  held_back: { text: "held back", glyph: "◦", tone: "open" },
  red: { text: "red", glyph: "✗", tone: "fail" },
  vacuous: { text: "vacuous", glyph: "!", tone: "retry" },
  green: { text: "green", glyph: "✓", tone: "pass" },
};

/** What a check showed in an iteration: `failed before, exit 0 after`. */
export function checkResultText(check: CheckResultView): string {
  const after = check.exit === null ? "not run after" : `${exitText(check.exit)} after`;
  return `${check.red} before, ${after}`;
}

/** `exit 1`, `timed out`. */
export function exitText(exit: string): string {
  return /^-?\d+$/.test(exit) ? `exit ${exit}` : exit.replaceAll("-", " ");
}
