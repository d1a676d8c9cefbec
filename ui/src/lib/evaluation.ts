// An evaluation as people see it: what its server says, put into rows and cells. Nothing is computed here.

import { clock, dollars } from "./format";
import type { EvalGrid, EvalInterval, EvalMissing, EvalRun, EvalTrial } from "./types";
import type { Look } from "./labels";

/** A trial in the grid: how it ended, or that it has not. */
export interface Cell {
  trial: number;
  look: Look;
  /** Why, how long, what it cost. */
  says: string;
  /** The same, whole. */
  title: string;
  /** The attempt to look at; none where there is nothing to see yet. */
  id: string | null;
}

/** The trials of a case with an agent, in order. */
export function cells(grid: EvalGrid, agent: string, name: string): Cell[] {
  const isHere = (one: { agent: string; case: string }) => one.agent === agent && one.case === name;
  const found = new Map<number, Cell>();
  for (const trial of grid.trials.filter((one) => isHere(one) && one.is_last))
    found.set(trial.trial, ended(trial));
  for (const unit of grid.missing.filter(isHere))
    if (unit.is_under_way || !found.has(unit.trial)) found.set(unit.trial, open(unit));
  return [...found.values()].sort((a, b) => a.trial - b.trial);
}

/** How a trial ended. What says nothing about the agent is no failure of its. */
export function outcomeOf(trial: EvalTrial): Look {
  if (trial.outcome === "success") return { glyph: "✓", word: "success", tone: "pass" };
  if (trial.outcome === "skipped") return { glyph: "⊘", word: "skipped", tone: "open" };
  const isMeant = trial.expected === trial.outcome;
  const tone = isMeant ? "open" : trial.is_scored || !trial.is_last ? "fail" : "retry";
  return { glyph: tone === "retry" ? "⊘" : "✗", word: trial.outcome, tone };
}

export function cause(trial: EvalTrial): string {
  if (trial.cause === null) return "";
  const words = trial.cause.replaceAll("_", " ");
  return trial.expected === trial.outcome ? `${words}, as expected` : words;
}

/** How long it took and what it cost. */
export function spent(trial: EvalTrial): string {
  const cost = trial.cost_microdollars === null ? [] : [dollars(trial.cost_microdollars)];
  return [clock(trial.wall_secs * 1000), ...cost].join(" · ");
}

function ended(trial: EvalTrial): Cell {
  const look = outcomeOf(trial);
  const parts = [cause(trial), spent(trial)].filter(Boolean);
  const again = trial.attempt > 1 ? [`attempt ${trial.attempt}`] : [];
  const out = trial.is_scored ? [] : ["left out of the score"];
  const title = [`trial ${trial.trial}: ${look.word}`, ...parts, ...again, ...out].join(", ");
  return {
    trial: trial.trial,
    look,
    says: parts.join(" · "),
    title: trial.why ? `${title}: ${trial.why}` : title,
    id: trial.id,
  };
}

function open(unit: EvalMissing): Cell {
  const look: Look = unit.is_under_way
    ? { glyph: "▸", word: "under way", tone: "run" }
    : unit.id
      ? { glyph: "⊘", word: "broken off", tone: "retry" }
      : { glyph: "◦", word: "open", tone: "open" };
  const says = unit.is_under_way ? "look" : unit.id ? "no result" : "no result yet";
  return { trial: unit.trial, look, says, title: `trial ${unit.trial}: ${look.word}`, id: unit.id };
}

/** The run that a trial is of: its name begins the trial's, and may hold dots itself. */
export function runOf(runs: EvalRun[], id: string): EvalRun | undefined {
  const fits = runs.filter((run) => id.startsWith(`${run.run}.`));
  return fits.sort((a, b) => b.run.length - a.run.length)[0];
}

/** What can stand on a side of a comparison. */
export function sides(runs: EvalRun[]): string[] {
  return runs.flatMap((run) =>
    run.agents.length > 1 ? run.agents.map((agent) => `${run.run}@${agent}`) : [run.run],
  );
}

export function percent(rate: number | null): string {
  return rate === null ? "n/a" : `${Math.round(100 * rate)} %`;
}

/** `23–76`, in percent. */
export function range(interval: EvalInterval | null): string {
  if (interval === null) return "n/a";
  return `${Math.round(100 * interval.low)}–${Math.round(100 * interval.high)} %`;
}

/** A difference of rates in percentage points, with its sign. */
export function points(difference: number): string {
  const text = (100 * Math.abs(difference)).toFixed(1);
  return text === "0.0" ? text : `${difference < 0 ? "−" : "+"}${text}`;
}
