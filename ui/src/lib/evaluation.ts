// The rows and cells of an evaluation's results. The server computes every number; this only arranges and formats.

import { dollars, duration } from "./format";
import { OPEN, RUNNING, spaced, type Label, type Tone } from "./labels";
import type { EvalGrid, EvalInterval, EvalMissing, EvalRun, EvalScore, EvalTrial } from "./types";

/** One trial in the grid. */
export interface TrialCell {
  trial: number;
  label: Label;
  /** Cause, time and cost. */
  details: string;
  title: string;
  /** The attempt to link to; null if it has no workspace yet. */
  id: string | null;
}

/** One case in the grid; it has no score before its first result. */
export interface CaseRow {
  name: string;
  score: EvalScore | undefined;
  cells: TrialCell[];
}

/** The cases of an agent, by name. */
export function caseRows(grid: EvalGrid, agent: string): CaseRow[] {
  const isAgents = (one: { agent: string }) => one.agent === agent;
  const scores = grid.cases.filter(isAgents);
  const names = new Set([
    ...scores.map((score) => score.case ?? ""),
    ...grid.missing.filter(isAgents).map((unit) => unit.case),
  ]);
  return [...names].sort().map((name) => ({
    name,
    score: scores.find((score) => score.case === name),
    cells: trialCells(grid, agent, name),
  }));
}

/** The trials of a case with an agent, in order. */
export function trialCells(grid: EvalGrid, agent: string, name: string): TrialCell[] {
  const isWanted = (one: { agent: string; case: string }) => one.agent === agent && one.case === name;
  const cells = new Map<number, TrialCell>();
  for (const trial of grid.trials.filter((one) => isWanted(one) && one.is_last))
    cells.set(trial.trial, finishedCell(trial));
  for (const unit of grid.missing.filter(isWanted))
    if (unit.is_under_way || !cells.has(unit.trial)) cells.set(unit.trial, unfinishedCell(unit));
  return [...cells.values()].sort((a, b) => a.trial - b.trial);
}

/** A case with an agent: how many trials succeeded, and the trial that explains it. */
export interface MatrixCell {
  agent: string;
  text: string;
  tone: Tone;
  trial: string | null;
}

/** Every case with every agent. */
export function matrixCells(grid: EvalGrid, agents: string[]): { name: string; cells: MatrixCell[] }[] {
  const names = [...new Set(agents.flatMap((agent) => caseRows(grid, agent).map((row) => row.name)))].sort();
  return names.map((name) => ({
    name,
    cells: agents.map((agent) => {
      const score = grid.cases.find((one) => one.agent === agent && one.case === name);
      const trial = explainingTrial(grid, agent, name);
      if (!score || score.n === 0) return { agent, text: "–", tone: "open", trial };
      const tone = score.successes === score.n ? "pass" : score.successes === 0 ? "fail" : "retry";
      const glyph = { pass: "✓", fail: "✗", retry: "~" }[tone];
      return { agent, text: `${glyph} ${score.successes}/${score.n}`, tone, trial };
    }),
  }));
}

/** The first trial without success, or else the first. */
export function explainingTrial(grid: EvalGrid, agent: string | null, name: string): string | null {
  const trials = grid.trials.filter(
    (one) => one.is_last && one.case === name && (agent === null || one.agent === agent),
  );
  return (trials.find((one) => one.outcome !== "success") ?? trials[0])?.id ?? null;
}

/** An unscored trial is not a failure of the agent. */
export function trialLabel(trial: EvalTrial): Label {
  if (trial.outcome === "success") return { glyph: "✓", text: "success", tone: "pass" };
  if (trial.outcome === "skipped") return { glyph: "⊘", text: "skipped", tone: "open" };
  const isExpected = trial.expected === trial.outcome;
  const tone = isExpected ? "open" : trial.is_scored || !trial.is_last ? "fail" : "retry";
  return { glyph: tone === "retry" ? "⊘" : "✗", text: trial.outcome, tone };
}

export function causeText(trial: EvalTrial): string {
  if (trial.cause === null) return "";
  const cause = spaced(trial.cause);
  return trial.expected === trial.outcome ? `${cause}, as expected` : cause;
}

export function timeAndCost(trial: EvalTrial): string {
  const cost = trial.cost_microdollars === null ? [] : [dollars(trial.cost_microdollars)];
  return [duration(trial.wall_secs * 1000), ...cost].join(" · ");
}

function finishedCell(trial: EvalTrial): TrialCell {
  const label = trialLabel(trial);
  const details = [causeText(trial), timeAndCost(trial)].filter(Boolean);
  const attempt = trial.attempt > 1 ? [`attempt ${trial.attempt}`] : [];
  const score = trial.is_scored ? [] : ["not scored"];
  const title = [`trial ${trial.trial}: ${label.text}`, ...details, ...attempt, ...score].join(", ");
  return {
    trial: trial.trial,
    label,
    details: details.join(" · "),
    title: trial.why ? `${title}: ${trial.why}` : title,
    id: trial.id,
  };
}

function unfinishedCell(unit: EvalMissing): TrialCell {
  const [label, details]: [Label, string] = unit.is_under_way
    ? [RUNNING, "watch"]
    : unit.id
      ? [{ glyph: "⊘", text: "aborted", tone: "retry" }, "no result"]
      : [OPEN, "no result yet"];
  return { trial: unit.trial, label, details, title: `trial ${unit.trial}: ${label.text}`, id: unit.id };
}

/** The run of a trial. Its name is a prefix of the trial's, and may contain dots itself. */
export function runOfTrial(runs: EvalRun[], id: string): EvalRun | undefined {
  const candidates = runs.filter((run) => id.startsWith(`${run.run}.`));
  return candidates.sort((a, b) => b.run.length - a.run.length)[0];
}

/** What can be compared: runs or, in a run with several agents, its agents. */
export function comparisonSides(runs: EvalRun[]): string[] {
  return runs.flatMap((run) =>
    run.agents.length > 1 ? run.agents.map((agent) => `${run.run}@${agent}`) : [run.run],
  );
}

export function percent(rate: number | null): string {
  return rate === null ? "n/a" : `${Math.round(100 * rate)} %`;
}

/** `23–76 %` */
export function range(interval: EvalInterval | null): string {
  if (interval === null) return "n/a";
  return `${Math.round(100 * interval.low)}–${Math.round(100 * interval.high)} %`;
}

/** A difference of rates in percentage points, with a sign. */
export function points(difference: number): string {
  const text = (100 * Math.abs(difference)).toFixed(1);
  return text === "0.0" ? text : `${difference < 0 ? "−" : "+"}${text}`;
}
