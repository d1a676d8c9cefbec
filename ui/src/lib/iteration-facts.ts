// What is on record about an iteration, as names and texts.

import { count, dollars, duration, share, timestamp } from "./format";
import type { IterationRow } from "./types";

const ROOM_TEXTS: Record<string, string> = {
  "in-place": "in the work tree",
  "bubblewrap ignored=room": "in a room",
  "bubblewrap ignored=worktree": "in a room, with the work tree's ignored files",
  "bubblewrap ignored=none": "in a fresh room",
};

function guardText(row: IterationRow): string {
  if (row.guard_ms === null && row.guard_exit === null) return row.outcome === null ? "–" : "not run";
  return [row.guard_exit, row.guard_ms === null ? "" : duration(row.guard_ms)].filter(Boolean).join(", ");
}

export function iterationFacts(row: IterationRow, nowMs: number): [name: string, value: string][] {
  const cached =
    row.cached_tokens === null || row.input_tokens === null
      ? ""
      : ` (${share(row.cached_tokens, row.input_tokens)} cached)`;
  const estimated = row.cost_source === "estimated" && row.cost_microdollars !== null ? " (estimated)" : "";
  return [
    ["agent", [row.executor, row.model].filter(Boolean).join(" ") || "–"],
    ["agent time", duration(row.agent_ms)],
    ["guard", guardText(row)],
    ["guard ran", row.room === null ? "–" : (ROOM_TEXTS[row.room] ?? row.room)],
    ["review", row.review ?? "–"],
    ["tokens in", count(row.input_tokens) + cached],
    ["tokens out", count(row.output_tokens)],
    ["cost", dollars(row.cost_microdollars) + estimated],
    ["attempt", row.outcome === null ? "–" : row.is_charged ? "used 1 attempt" : "used no attempt"],
    ["commit", row.commit?.slice(0, 12) ?? "–"],
    ["started", timestamp(row.started_ms, nowMs)],
    ["ended", timestamp(row.ended_ms, nowMs)],
  ];
}
