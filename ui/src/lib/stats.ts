// Where time and money went. Every number is a sum of what the rows say; what they do not say is not guessed.

import type { IterationRow } from "./types";

export interface LeafCost {
  node: string;
  passed: boolean;
  iterations: number;
  busyMs: number;
  wastedMs: number;
  cost: number | null;
  wastedCost: number | null;
}

export function took(row: IterationRow): number {
  if (row.started_ms !== null && row.ended_ms !== null) return Math.max(0, row.ended_ms - row.started_ms);
  return (row.agent_ms ?? 0) + (row.guard_ms ?? 0);
}

/** What each node took; what its charged iterations took is wasted. */
export function byNode(rows: IterationRow[]): LeafCost[] {
  const found = new Map<string, LeafCost>();
  for (const row of rows) {
    const node = row.node ?? "(repair)";
    const sum = found.get(node) ?? {
      node,
      passed: false,
      iterations: 0,
      busyMs: 0,
      wastedMs: 0,
      cost: null,
      wastedCost: null,
    };
    found.set(node, sum);
    sum.iterations++;
    sum.passed ||= row.outcome === "passed";
    sum.busyMs += took(row);
    if (row.cost_microdollars !== null) sum.cost = (sum.cost ?? 0) + row.cost_microdollars;
    if (row.is_charged) {
      sum.wastedMs += took(row);
      if (row.cost_microdollars !== null) sum.wastedCost = (sum.wastedCost ?? 0) + row.cost_microdollars;
    }
  }
  return [...found.values()];
}

export interface Bar {
  iter: number;
  /** 0 to 1. */
  height: number;
  agentShare: number;
  /** Idle time before it, where that is worth saying. */
  idleMs: number;
}

/** Bars of a timeline: heights by the square root, so that a short one beside a long one is still there. */
export function bars(rows: IterationRow[], now: number): Bar[] {
  const times = rows.map(
    (row) => took(row) || (row.outcome === null && row.started_ms ? now - row.started_ms : 0),
  );
  const most = Math.max(1, ...times);
  const usual = [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
  return rows.map((row, at) => {
    const before = rows[at - 1]?.ended_ms ?? null;
    const gap = before !== null && row.started_ms !== null ? row.started_ms - before : 0;
    const phases = (row.agent_ms ?? 0) + (row.guard_ms ?? 0);
    return {
      iter: row.iter,
      height: Math.sqrt((times[at] ?? 0) / most),
      agentShare: phases > 0 ? (row.agent_ms ?? 0) / phases : 1,
      idleMs: gap > Math.max(60_000, usual * 2) ? gap : 0,
    };
  });
}
