// Labels of states, outcomes and tasks: a glyph, a text and a tone each, so that nothing depends on colour alone.

import { OUTCOMES, type IterationRow, type StateWord } from "./types";

export type Tone = "pass" | "run" | "retry" | "fail" | "open";

export interface Label {
  glyph: string;
  text: string;
  tone: Tone;
}

const label = (glyph: string, text: string, tone: Tone): Label => ({ glyph, text, tone });

/** A word of a newer server that this page does not know. */
const unknownLabel = (word: string) => label("◦", spaced(word), "open");

/** `guard_failed` as `guard failed`. */
export function spaced(word: string): string {
  return word.replaceAll("_", " ");
}

export const RUNNING = label("▸", "running", "run");
export const OPEN = label("◦", "open", "open");

const STATES: Record<StateWord, Label> = {
  empty: label("◦", "no run", "open"),
  invalid: label("✗", "invalid", "fail"),
  running: RUNNING,
  guarding: label("▸", "running guard", "run"),
  committing: label("▸", "committing", "run"),
  waiting: label("↻", "waiting", "retry"),
  paused: label("‖", "paused", "retry"),
  complete: label("✓", "complete", "pass"),
  stuck: label("✗", "stuck", "fail"),
  limit: label("⊘", "limit reached", "retry"),
  failed: label("✗", "failed", "fail"),
  interrupted: label("⊘", "interrupted", "retry"),
  died: label("✗", "crashed", "fail"),
  idle: label("◦", "idle", "open"),
};

const OUTCOME_LABELS: Record<(typeof OUTCOMES)[number], Label> = {
  passed: label("✓", "passed", "pass"),
  guard_failed: label("✗", "guard failed", "fail"),
  retry: label("↻", "retry", "retry"),
  decomposed: label("◇", "split", "run"),
  rule_violation: label("✗", "rule violated", "fail"),
  invalid_tree: label("✗", "invalid tree", "fail"),
  repaired: label("✓", "repaired", "pass"),
  repair_failed: label("✗", "repair failed", "fail"),
  repair_abandoned: label("✗", "repair abandoned", "fail"),
  replanned: label("◇", "replanned", "run"),
  replan_refused: label("✗", "replan rejected", "fail"),
  timed_out: label("⊘", "timed out", "retry"),
  idle_timeout: label("⊘", "no output", "retry"),
  guard_timed_out: label("⊘", "guard timed out", "retry"),
  interrupted: label("⊘", "interrupted", "retry"),
  rate_limited: label("↻", "rate limited", "retry"),
  overloaded: label("↻", "overloaded", "retry"),
  disconnected: label("↻", "disconnected", "retry"),
  usage_limit: label("↻", "usage limit", "retry"),
  agent_not_started: label("✗", "agent not started", "fail"),
  agent_crashed: label("✗", "agent crashed", "fail"),
  no_answer: label("✗", "no answer", "fail"),
  provider_refused: label("✗", "provider refused", "fail"),
  guard_not_started: label("✗", "guard not started", "fail"),
  not_logged_in: label("✗", "not logged in", "fail"),
  context_full: label("⊘", "context full", "retry"),
};

export function stateLabel(state: string): Label {
  return (STATES as Record<string, Label>)[state] ?? unknownLabel(state);
}

/** An iteration without an outcome is running. */
export function outcomeLabel(outcome: string | null | undefined): Label {
  if (!outcome) return RUNNING;
  return (OUTCOME_LABELS as Record<string, Label>)[outcome] ?? unknownLabel(outcome);
}

/** An iteration without an outcome is running only while a runner works on it. */
export function iterationLabel(row: IterationRow, isLive: boolean): Label {
  return row.outcome || isLive ? outcomeLabel(row.outcome) : label("⊘", "unfinished", "retry");
}

// The bits of `SlimTree.flags`.
export const PASSES = 1;
export const LEAF = 2;
export const EXHAUSTED = 4;

export interface NodeFacts {
  flags: number;
  attempts: number;
  isCurrent: boolean;
  isNext: boolean;
}

export function nodeLabel({ flags, attempts, isCurrent, isNext }: NodeFacts): Label {
  if (flags & PASSES) return label("✓", "passed", "pass");
  if (isCurrent) return RUNNING;
  if (flags & EXHAUSTED) return label("✗", "stuck", "fail");
  if (attempts > 0) return label("↻", "retry", "retry");
  if (isNext) return label("▹", "next", "run");
  return OPEN;
}

const LIVE_STATES: ReadonlySet<string> = new Set<StateWord>(["running", "guarding", "committing", "waiting"]);

/** Whether a runner works on the run now. */
export function isLiveState(state: string): boolean {
  return LIVE_STATES.has(state);
}
