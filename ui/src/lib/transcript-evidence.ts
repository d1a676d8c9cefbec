// Rows for what the runner runs itself: baseline, checks, review and final check.

import { exitText } from "./acceptance";
import { list, object, text, type Json } from "./json-fields";
import { spaced } from "./labels";
import type { RowParts } from "./transcript";

/** The row of an event about evidence; null for any other event. */
export function evidenceRow(name: string, event: Json): RowParts | null {
  switch (name) {
    case "baseline_started":
      return commandRow(event, "guard before the first session");
    case "baseline_ended":
      return guardRow(event, "Guard passes before the first session", "Guard fails before the first session");
    case "final_check_started":
      return commandRow(event, "final check");
    case "final_check_ended":
      return guardRow(event, "Final check passed", "Final check failed");
    case "check_started":
      return commandRow(event, `check ${text(event.check)}, ${phaseText(event)}`);
    case "check_ended":
      return checkRow(event);
    case "heldout_ended":
      return heldoutRow(event);
    case "review_started": {
      const round = object(event.round);
      const nth = `round ${String(round.nth)} of ${String(round.of)}`;
      return { glyph: "▸", kind: "end", title: `Review by ${text(event.agent)}`, note: nth, tone: "run" };
    }
    case "review_ended": {
      const result = text(event.result);
      const isFine = result === "accepted";
      return {
        glyph: isFine ? "✓" : "✗",
        kind: "end",
        title: `Review: ${spaced(result)}`,
        body: list(event.reasons).map(text).join("\n"),
        tone: isFine ? "pass" : "fail",
        isFailure: !isFine,
      };
    }
    case "paused":
      return { glyph: "⏸", kind: "end", title: "Paused", tone: "retry" };
    case "resumed":
      return { glyph: "▸", kind: "end", title: "Resumed" };
    default:
      return null;
  }
}

const phaseText = (event: Json): string =>
  text(event.phase) === "red" ? "before the work" : "after the work";

function commandRow(event: Json, note: string): RowParts {
  return { glyph: "$", kind: "end", title: list(event.command).map(text).join(" "), note };
}

function guardRow(event: Json, passed: string, failed: string): RowParts {
  const isFine = text(event.guard) === "pass";
  return {
    glyph: isFine ? "✓" : "✗",
    kind: "end",
    title: isFine ? passed : `${failed}: exit ${text(event.exit)}`,
    tone: isFine ? "pass" : "fail",
    isFailure: !isFine,
  };
}

/** Before the work a check is meant to fail: that is no failure of the iteration. */
function heldoutRow(event: Json): RowParts {
  const check = `Held-out check ${text(event.check)} of ${text(event.node)}`;
  if (event.result === null) {
    return { glyph: "·", kind: "end", title: `${check} before the work: ${text(event.red)}`, tone: "" };
  }
  const isFine = text(event.result) === "pass";
  return {
    glyph: isFine ? "✓" : "✗",
    kind: "end",
    title: `${check} ${isFine ? "passed" : "failed"}`,
    tone: isFine ? "pass" : "fail",
    isFailure: !isFine,
  };
}

function checkRow(event: Json): RowParts {
  const [name, exit] = [text(event.check), text(event.exit)];
  if (text(event.phase) === "red") {
    const red = text(event.red);
    const isProof = red === "failed" || red === "absent";
    return {
      glyph: isProof ? "·" : "!",
      kind: "end",
      title: `Check ${name} before the work: ${red}`,
      tone: isProof ? "" : "retry",
    };
  }
  const isFine = exit === "0";
  return {
    glyph: isFine ? "✓" : "✗",
    kind: "end",
    title: isFine ? `Check ${name} passed` : `Check ${name} failed: ${exitText(exit)}`,
    tone: isFine ? "pass" : "fail",
    isFailure: !isFine,
  };
}
