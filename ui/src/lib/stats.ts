// Time and cost of a run, summed from its iterations. Missing values stay missing; nothing is estimated.

import { iterationLabel, type Label } from "./labels";
import type { IterationRow } from "./types";

export function durationOf(row: IterationRow): number {
  if (row.started_ms !== null && row.ended_ms !== null) return Math.max(0, row.ended_ms - row.started_ms);
  return (row.agent_ms ?? 0) + (row.guard_ms ?? 0);
}

const sum = (rows: IterationRow[], value: (row: IterationRow) => number | null): number =>
  rows.reduce((total, row) => total + (value(row) ?? 0), 0);

export interface RunTotals {
  iterations: number;
  passed: number;
  activeMs: number;
  agentMs: number;
  guardMs: number;
  /** Time and cost of the iterations that used an attempt. */
  failedMs: number;
  failedCost: number;
  /** In millionths of a dollar; null if no iteration reports a cost. */
  cost: number | null;
  tokens: number;
}

export function totalsOf(rows: IterationRow[]): RunTotals {
  const failed = rows.filter((row) => row.is_charged);
  const hasCost = rows.some((row) => row.cost_microdollars !== null);
  return {
    iterations: rows.length,
    passed: rows.filter((row) => row.outcome === "passed").length,
    activeMs: sum(rows, durationOf),
    agentMs: sum(rows, (row) => row.agent_ms),
    guardMs: sum(rows, (row) => row.guard_ms),
    failedMs: sum(failed, durationOf),
    failedCost: sum(failed, (row) => row.cost_microdollars),
    cost: hasCost ? sum(rows, (row) => row.cost_microdollars) : null,
    tokens: sum(rows, (row) => (row.input_tokens ?? 0) + (row.output_tokens ?? 0)),
  };
}

export interface OutcomeTotals {
  label: Label;
  iterations: number;
  activeMs: number;
}

/** Totals by outcome, the most frequent first. */
export function totalsByOutcome(rows: IterationRow[], isLive: boolean): OutcomeTotals[] {
  const totals = new Map<string, OutcomeTotals>();
  for (const row of rows) {
    const label = iterationLabel(row, isLive);
    const total = totals.get(label.text) ?? { label, iterations: 0, activeMs: 0 };
    totals.set(label.text, total);
    total.iterations++;
    total.activeMs += durationOf(row);
  }
  return [...totals.values()].sort((a, b) => b.iterations - a.iterations);
}

export interface NodeTotals {
  node: string;
  passed: boolean;
  iterations: number;
  activeMs: number;
  /** Time and cost of the iterations that used an attempt. */
  failedMs: number;
  cost: number | null;
  failedCost: number | null;
}

/** Totals by node, the longest first. */
export function totalsByNode(rows: IterationRow[]): NodeTotals[] {
  const totals = new Map<string, NodeTotals>();
  for (const row of rows) {
    const node = row.node ?? "(repair)";
    const total = totals.get(node) ?? {
      node,
      passed: false,
      iterations: 0,
      activeMs: 0,
      failedMs: 0,
      cost: null,
      failedCost: null,
    };
    totals.set(node, total);
    const [duration, cost] = [durationOf(row), row.cost_microdollars];
    total.iterations++;
    total.passed ||= row.outcome === "passed";
    total.activeMs += duration;
    if (row.is_charged) total.failedMs += duration;
    if (cost === null) continue;
    total.cost = (total.cost ?? 0) + cost;
    if (row.is_charged) total.failedCost = (total.failedCost ?? 0) + cost;
  }
  return [...totals.values()].sort((a, b) => b.activeMs - a.activeMs);
}

/** `42 %` */
export function share(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((part / whole) * 100)} %` : "–";
}

export interface TimelineBar {
  iter: number;
  /** From 0 to 1. */
  height: number;
  agentShare: number;
  /** Idle time before the iteration; 0 if it is not worth showing. */
  idleMs: number;
}

const IDLE_MIN_MS = 60_000;

/** The bars of the timeline. Heights grow with the square root, so that short iterations stay visible. */
export function timelineBars(rows: IterationRow[], now: number): TimelineBar[] {
  const durations = rows.map(
    (row) => durationOf(row) || (row.outcome === null && row.started_ms ? now - row.started_ms : 0),
  );
  const longest = Math.max(1, ...durations);
  const median = [...durations].sort((a, b) => a - b)[Math.floor(durations.length / 2)] ?? 0;
  return rows.map((row, index) => {
    const previousEnd = rows[index - 1]?.ended_ms ?? null;
    const gap = previousEnd !== null && row.started_ms !== null ? row.started_ms - previousEnd : 0;
    const phases = (row.agent_ms ?? 0) + (row.guard_ms ?? 0);
    return {
      iter: row.iter,
      height: Math.sqrt((durations[index] ?? 0) / longest),
      agentShare: phases > 0 ? (row.agent_ms ?? 0) / phases : 1,
      idleMs: gap > Math.max(IDLE_MIN_MS, median * 2) ? gap : 0,
    };
  });
}
