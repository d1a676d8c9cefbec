// Time and cost of a run, summed from its iterations. Missing values stay missing; nothing is estimated.

import { iterationLabel, type Label } from "./labels";
import type { IterationRow, RunProgress } from "./types";

/** How long an iteration took; null if that is not on record, as in a clone, or it is not over. */
export function durationOf(row: IterationRow): number | null {
  if (row.started_ms !== null && row.ended_ms !== null) return Math.max(0, row.ended_ms - row.started_ms);
  return row.agent_ms === null && row.guard_ms === null ? null : (row.agent_ms ?? 0) + (row.guard_ms ?? 0);
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
    total.activeMs += durationOf(row) ?? 0;
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
    const [duration, cost] = [durationOf(row) ?? 0, row.cost_microdollars];
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

/** A point of the burn-up: after an iteration, what was spent and how many tasks had passed. */
export interface BurnUpPoint {
  iter: number;
  /** Millionths of a dollar, or milliseconds if no cost is known. */
  spent: number;
  passed: number;
}

type RunAmounts = Pick<RunProgress, "cost_microdollars" | "leaves_passed">;

/**
 * What was spent and passed after each iteration. It ends at the run's own numbers: what they have more than the
 * iterations, a fork brought with it.
 */
export function burnUp(
  rows: IterationRow[],
  progress: RunAmounts | undefined,
): { points: BurnUpPoint[]; unit: "cost" | "time" } {
  const unit = (progress?.cost_microdollars ?? 0) > 0 ? "cost" : "time";
  const totals = totalsOf(rows);
  const before = unit === "cost" ? (progress?.cost_microdollars ?? 0) - (totals.cost ?? 0) : 0;
  let spent = Math.max(0, before);
  let passed = Math.max(0, (progress?.leaves_passed ?? 0) - totals.passed);
  const points = [{ iter: 0, spent, passed }];
  for (const row of rows) {
    spent += (unit === "cost" ? row.cost_microdollars : durationOf(row)) ?? 0;
    if (row.outcome === "passed") passed++;
    points.push({ iter: row.iter, spent, passed });
  }
  return { points, unit };
}

/** How much the rest may cost: from the cheapest to the dearest quarter of the passed tasks. Null with too few of them. */
export function remainingRange(
  totals: NodeTotals[],
  tasksLeft: number,
  unit: "cost" | "time",
): [number, number] | null {
  const spent = totals
    .filter((total) => total.passed)
    .map((total) => (unit === "cost" ? (total.cost ?? 0) : total.activeMs))
    .sort((a, b) => a - b);
  if (spent.length < 4 || tasksLeft <= 0) return null;
  const quantile = (share: number) => spent[Math.floor((spent.length - 1) * share)] ?? 0;
  return [quantile(0.25) * tasksLeft, quantile(0.75) * tasksLeft];
}

/** A bar of the timeline: one iteration, or several in a row. */
export interface TimelineBar {
  /** The first and the last iteration. */
  first: number;
  last: number;
  /** From 0 to 1. */
  height: number;
  agentShare: number;
  label: Label;
  /** Idle time before it; 0 if it is not worth showing. */
  idleMs: number;
}

const IDLE_MIN_MS = 60_000;
const WORST_FIRST = ["fail", "run", "retry", "pass", "open"];

/** At most `barsMax` bars for all rows. Heights grow with the square root, so that short iterations stay visible. */
export function timelineBars(
  rows: IterationRow[],
  now: number,
  isLive: boolean,
  barsMax: number,
): TimelineBar[] {
  const perBar = Math.max(1, Math.ceil(rows.length / barsMax));
  const durations = rows.map(
    (row) => durationOf(row) ?? (row.outcome === null && row.started_ms && now ? now - row.started_ms : 0),
  );
  const median = [...durations].sort((a, b) => a - b)[Math.floor(durations.length / 2)] ?? 0;
  const groups: { bar: TimelineBar; ms: number }[] = [];
  for (let from = 0; from < rows.length; from += perBar) {
    const group = rows.slice(from, from + perBar);
    const ms = durations.slice(from, from + perBar).reduce((total, one) => total + one, 0) / group.length;
    groups.push({ bar: barOf(rows, group, from, median, isLive), ms });
  }
  const longest = groups.reduce((most, group) => Math.max(most, group.ms), 1);
  return groups.map(({ bar, ms }) => ({ ...bar, height: Math.sqrt(ms / longest) }));
}

function barOf(
  rows: IterationRow[],
  group: IterationRow[],
  from: number,
  median: number,
  isLive: boolean,
): TimelineBar {
  const previousEnd = rows[from - 1]?.ended_ms ?? null;
  const start = group[0]?.started_ms ?? null;
  const gap = previousEnd !== null && start !== null ? start - previousEnd : 0;
  const labels = group.map((row, index) => iterationLabel(row, isLive && from + index === rows.length - 1));
  const rank = (label: Label) => WORST_FIRST.indexOf(label.tone);
  const [agent, guard] = [sum(group, (row) => row.agent_ms), sum(group, (row) => row.guard_ms)];
  return {
    first: group[0]?.iter ?? 0,
    last: group.at(-1)?.iter ?? 0,
    height: 0,
    agentShare: agent + guard > 0 ? agent / (agent + guard) : 1,
    label: labels.reduce((worst, label) => (rank(label) < rank(worst) ? label : worst)),
    idleMs: gap > Math.max(IDLE_MIN_MS, median * 2) ? gap : 0,
  };
}

/** A rectangle of a tree map, in shares of its width and height. */
export interface MapTile<T> {
  item: T;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Tiles whose areas are in proportion to the weights, as square as possible without reordering. */
export function treeMap<T>(items: T[], weightOf: (item: T) => number): MapTile<T>[] {
  const weighted = items.map((item) => ({ item, weight: weightOf(item) })).filter(({ weight }) => weight > 0);
  return layOut(weighted, { x: 0, y: 0, width: 1, height: 1 });
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Halves the weights and the longer side of the area, again and again. */
function layOut<T>(items: { item: T; weight: number }[], area: Area): MapTile<T>[] {
  const [first] = items;
  if (!first) return [];
  if (items.length === 1) return [{ item: first.item, ...area }];
  const total = items.reduce((all, { weight }) => all + weight, 0);
  let [at, half] = [1, first.weight];
  while (at < items.length - 1 && half + (items[at]?.weight ?? 0) / 2 < total / 2)
    half += items[at++]?.weight ?? 0;
  const share = half / total;
  const { x, y, width, height } = area;
  const [left, right]: [Area, Area] =
    width >= height / 2
      ? [
          { x, y, width: width * share, height },
          { x: x + width * share, y, width: width * (1 - share), height },
        ]
      : [
          { x, y, width, height: height * share },
          { x, y: y + height * share, width, height: height * (1 - share) },
        ];
  return layOut(items.slice(0, at), left).concat(layOut(items.slice(at), right));
}

/** A stretch of work, in shares of the chart's width. */
export interface GanttSpan {
  lane: "agent" | "guard";
  from: number;
  to: number;
  isFailed: boolean;
}

export interface GanttData {
  spans: GanttSpan[];
  /** Idle gaps that were folded. */
  gaps: { at: number; ms: number }[];
  fromMs: number | null;
  toMs: number | null;
}

/** When the agent and the guard worked. Gaps longer than a twentieth of the working time are folded. */
export function ganttSpans(rows: IterationRow[], now: number | null): GanttData {
  const timed = rows.filter((row) => row.started_ms !== null);
  const endOf = (row: IterationRow) => row.ended_ms ?? now ?? row.started_ms ?? 0;
  const total = timed.reduce((sum, row) => sum + Math.max(0, endOf(row) - (row.started_ms ?? 0)), 0);
  const gapMax = Math.max(1000, total / 20);
  const spans: GanttSpan[] = [];
  const gaps: GanttData["gaps"] = [];
  let [position, previousEnd] = [0, timed[0]?.started_ms ?? 0];
  for (const row of timed) {
    const [start, end] = [row.started_ms ?? 0, endOf(row)];
    const gap = Math.max(0, start - previousEnd);
    if (gap > gapMax) gaps.push({ at: position + gapMax / 2, ms: gap });
    position += Math.min(gap, gapMax);
    const agentEnd = position + (row.agent_ms ?? (row.guard_ms === null ? end - start : 0));
    const guardEnd = position + Math.max(0, end - start);
    spans.push({ lane: "agent", from: position, to: agentEnd, isFailed: row.is_charged });
    if (row.guard_ms !== null)
      spans.push({ lane: "guard", from: agentEnd, to: agentEnd + row.guard_ms, isFailed: row.is_charged });
    position = Math.max(guardEnd, agentEnd + (row.guard_ms ?? 0));
    previousEnd = end;
  }
  const scale = position > 0 ? 1 / position : 0;
  return {
    spans: spans.map((span) => ({ ...span, from: span.from * scale, to: span.to * scale })),
    gaps: gaps.map((gap) => ({ ...gap, at: gap.at * scale })),
    fromMs: timed[0]?.started_ms ?? null,
    toMs: timed.length > 0 ? previousEnd : null,
  };
}
