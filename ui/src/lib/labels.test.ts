import { describe, expect, it } from "vitest";
import { nodeLabel, outcomeLabel, stateLabel } from "./labels";

describe("labels", () => {
  it("show words of a newer server as they are", () => {
    expect(outcomeLabel("budget_spent")).toMatchObject({ text: "budget spent", tone: "open" });
    expect(stateLabel("on_hold")).toMatchObject({ text: "on hold", tone: "open" });
  });

  it("of outcomes have a tone", () => {
    expect(outcomeLabel("guard_failed").tone).toBe("fail");
    expect(outcomeLabel(null).text).toBe("running");
  });

  it("of tasks differ in text, not only in colour", () => {
    const text = (flags: number, attempts: number, isCurrent: boolean, isNext: boolean) =>
      nodeLabel({ flags, attempts, isCurrent, isNext }).text;
    expect([
      text(3, 1, false, false),
      text(2, 0, true, true),
      text(6, 3, false, true),
      text(2, 1, false, true),
      text(2, 0, false, true),
      text(2, 0, false, false),
    ]).toEqual(["passed", "running", "stuck", "retry", "next", "open"]);
  });
});
