import { describe, expect, it } from "vitest";
import { nodeLabel, outcomeLabel, stateLabel } from "./labels";

describe("labels", () => {
  it("show words of a newer server as they are", () => {
    expect(outcomeLabel("budget_spent")).toMatchObject({ text: "budget spent", tone: "open" });
    expect(stateLabel({ state: "on_hold" })).toMatchObject({ text: "on hold", tone: "open" });
    expect(stateLabel({ state: "stopped", stop: { reason: "rained_out" } }).text).toBe("stopped: rained out");
  });

  it("of stopped runs name the reason and have its tone", () => {
    expect(stateLabel({ state: "stopped", stop: { reason: "stuck" } })).toEqual({
      text: "stopped: stuck",
      glyph: "✗",
      tone: "fail",
    });
    expect(stateLabel({ state: "stopped", stop: null }).text).toBe("stopped");
    expect(stateLabel({ state: "complete", stop: { reason: "complete" } }).text).toBe("complete");
  });

  it("of outcomes have a tone", () => {
    expect(outcomeLabel("guard_failed").tone).toBe("fail");
    expect(outcomeLabel(null).text).toBe("running");
  });

  it("of the current task say that it is running", () => {
    expect(nodeLabel("next", true).text).toBe("running");
    expect(nodeLabel("passed", true).text).toBe("passed");
    expect(nodeLabel("next", false).text).toBe("next");
  });
});
