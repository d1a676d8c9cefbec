// States and outcomes as people see them: a glyph, a word and a tone each, so that colour alone says nothing.

import { OUTCOMES, type IterationRow, type StateWord } from "./types";

export type Tone = "pass" | "run" | "retry" | "fail" | "open";

export interface Look {
  glyph: string;
  word: string;
  tone: Tone;
}

const look = (glyph: string, word: string, tone: Tone): Look => ({ glyph, word, tone });

export const STATES: Record<StateWord, Look> = {
  empty: look("◦", "no run", "open"),
  invalid: look("✗", "invalid", "fail"),
  running: look("▸", "running", "run"),
  guarding: look("▸", "guarding", "run"),
  committing: look("▸", "committing", "run"),
  waiting: look("↻", "waiting", "retry"),
  paused: look("‖", "paused", "retry"),
  complete: look("✓", "complete", "pass"),
  stuck: look("✗", "stuck", "fail"),
  limit: look("⊘", "limit reached", "retry"),
  failed: look("✗", "failed", "fail"),
  interrupted: look("⊘", "interrupted", "retry"),
  died: look("✗", "died", "fail"),
  idle: look("◦", "idle", "open"),
};

const KNOWN: Record<(typeof OUTCOMES)[number], Look> = {
  passed: look("✓", "passed", "pass"),
  guard_failed: look("✗", "guard failed", "fail"),
  retry: look("↻", "retry", "retry"),
  decomposed: look("◇", "split", "run"),
  rule_broken: look("✗", "rule broken", "fail"),
  invalid_tree: look("✗", "invalid tree", "fail"),
  repaired: look("✓", "repaired", "pass"),
  repair_failed: look("✗", "repair failed", "fail"),
  repair_given_up: look("✗", "repair given up", "fail"),
  replanned: look("◇", "replanned", "run"),
  replan_refused: look("✗", "replan refused", "fail"),
  timed_out: look("⊘", "timed out", "retry"),
  idle: look("⊘", "silent too long", "retry"),
  guard_timed_out: look("⊘", "guard timed out", "retry"),
  interrupted: look("⊘", "interrupted", "retry"),
  rate_limited: look("↻", "rate limited", "retry"),
  overloaded: look("↻", "overloaded", "retry"),
  disconnected: look("↻", "disconnected", "retry"),
  usage_limit: look("↻", "usage limit", "retry"),
  agent_not_started: look("✗", "agent not started", "fail"),
  agent_crashed: look("✗", "agent crashed", "fail"),
  no_answer: look("✗", "no answer", "fail"),
  provider_refused: look("✗", "provider refused", "fail"),
  guard_not_started: look("✗", "guard not started", "fail"),
  not_logged_in: look("✗", "not logged in", "fail"),
  context_full: look("⊘", "context full", "retry"),
};

/** An outcome; one that a newer runner knows and this page does not is shown by its own word. */
export function outcome(word: string | null | undefined): Look {
  if (!word) return look("▸", "under way", "run");
  return (KNOWN as Record<string, Look>)[word] ?? look("◦", word.replaceAll("_", " "), "open");
}

/** An iteration. One without an outcome is under way only as long as a runner is at work on it. */
export function ofRow(row: IterationRow, isLive: boolean): Look {
  return row.outcome || isLive ? outcome(row.outcome) : look("⊘", "unfinished", "retry");
}

export const PASSES = 1;
export const LEAF = 2;
export const EXHAUSTED = 4;

/** A node of the tree. */
export function node(flags: number, attempts: number, isCurrent: boolean, isNext: boolean): Look {
  if (flags & PASSES) return look("✓", "passed", "pass");
  if (isCurrent) return look("▸", "running", "run");
  if (flags & EXHAUSTED) return look("✗", "stuck", "fail");
  if (attempts > 0) return look("↻", "retry", "retry");
  if (isNext) return look("▹", "next", "run");
  return look("◦", "open", "open");
}

export const LIVE: ReadonlySet<StateWord> = new Set(["running", "guarding", "committing", "waiting"]);
