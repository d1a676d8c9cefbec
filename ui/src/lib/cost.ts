// What a run cost, as the command line prints it.

import { dollars, plural } from "./format";
import type { RunProgress } from "./types";

/** What the reader must know about the amount: `estimated`, or how many sessions it lacks. Empty if it is exact. */
function costNote(progress: RunProgress): string {
  if (progress.cost_source === "estimated") return "estimated";
  if (progress.sessions_without_cost > 0 && progress.cost_microdollars !== null)
    return `${plural(progress.sessions_without_cost, "session")} unknown`;
  return "";
}

function withNote(amount: string, progress: RunProgress): string {
  const note = costNote(progress);
  return note ? `${amount} (${note})` : amount;
}

/** `$3.15 (estimated)`, or a dash. */
export function costText(progress: RunProgress): string {
  return withNote(dollars(progress.cost_microdollars), progress);
}

/** `$3.15 of $20.00 (estimated)`; without a budget, only the amount. */
export function costOfBudget(progress: RunProgress): string {
  const max = progress.cost_microdollars_max;
  const amount = dollars(progress.cost_microdollars);
  return withNote(max === null ? amount : `${amount} of ${dollars(max)}`, progress);
}
