// Labels of states, outcomes and tasks: a glyph, a text and a tone each, so that nothing depends on colour alone. The
// tables are generated from the runner's, so the page and the terminal show the same.

import {
  NODE_LABELS,
  OUTCOME_LABELS,
  STATE_LABELS,
  STOP_LABELS,
  type IterationRow,
  type Label,
  type NodeState,
  type VerifyVerdict,
} from "./types";

export type { Label, Tone } from "./types";

/** A word of a newer server that this page does not know. */
const unknownLabel = (word: string): Label => ({ text: spaced(word), glyph: "◦", tone: "open" });

/** The history of the run violates a rule. */
export const UNTRUSTED: Label = { text: "untrusted", glyph: "✗", tone: "fail" };

const TRUST_TEXTS: Record<VerifyVerdict, string> = {
  verified: "verified",
  violated: "untrusted",
  partial: "partly verified",
  unknown: "not verified",
};

/** What verifying a run gave, in words; without a result, it is not verified. */
export function trustText(verdict: VerifyVerdict | null | undefined): string {
  return TRUST_TEXTS[verdict ?? "unknown"];
}

const UNFINISHED: Label = { text: "unfinished", glyph: "⊘", tone: "retry" };

/** `guard_failed` as `guard failed`. */
export function spaced(word: string): string {
  return word.replaceAll("_", " ");
}

export const RUNNING = NODE_LABELS.running;
export const OPEN = NODE_LABELS.open;

/** The state of a run and, if it stopped, the reason. */
export interface RunState {
  state: string;
  stop?: { reason: string } | null;
}

/** A stopped run has the glyph and tone of its reason. */
export function stateLabel({ state, stop }: RunState): Label {
  const label = (STATE_LABELS as Record<string, Label>)[state] ?? unknownLabel(state);
  if (state !== "stopped" || !stop) return label;
  const reason = stopLabel(stop.reason);
  return { ...reason, text: `${label.text}: ${reason.text}` };
}

export function stopLabel(reason: string): Label {
  return (STOP_LABELS as Record<string, Label>)[reason] ?? unknownLabel(reason);
}

/** An iteration without an outcome is running. */
export function outcomeLabel(outcome: string | null | undefined): Label {
  if (!outcome) return RUNNING;
  return OUTCOME_LABELS[outcome] ?? unknownLabel(outcome);
}

/** An iteration without an outcome is running only while a runner works on it. */
export function iterationLabel(row: IterationRow, isLive: boolean): Label {
  return row.outcome || isLive ? outcomeLabel(row.outcome) : UNFINISHED;
}

// The bits of `TreeColumns.flags`.
export const PASSES = 1;
export const LEAF = 2;
export const EXHAUSTED = 4;

/** The server does not know which task a session works on; the page does. */
export function nodeLabel(state: NodeState | undefined, isCurrent: boolean): Label {
  if (isCurrent && state !== "passed") return RUNNING;
  return NODE_LABELS[state ?? "open"];
}

const LIVE_STATES: ReadonlySet<string> = new Set(["running", "waiting"]);

/** Whether a runner works on the run, or waits to. */
export function isLiveState(state: string): boolean {
  return LIVE_STATES.has(state);
}
