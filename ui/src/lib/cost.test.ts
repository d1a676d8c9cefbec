import { describe, expect, it } from "vitest";
import { costOfBudget, costText } from "./cost";
import type { RunProgress } from "./types";

const progress = (more: Partial<RunProgress>) =>
  ({
    cost_microdollars: 7_678_999,
    cost_microdollars_max: null,
    cost_source: "reported",
    sessions_without_cost: 0,
    ...more,
  }) as RunProgress;

describe("the cost of a run", () => {
  it("is rounded down, like that of the command line", () => {
    expect(costText(progress({}))).toBe("$7.67");
    expect(costOfBudget(progress({ cost_microdollars_max: 20_000_000 }))).toBe("$7.67 of $20.00");
  });

  it("states that it is estimated or incomplete, and is a dash if it is unknown", () => {
    expect(costText(progress({ cost_source: "estimated" }))).toBe("$7.67 (estimated)");
    expect(costText(progress({ sessions_without_cost: 2 }))).toBe("$7.67 (2 sessions unknown)");
    const unknown = { cost_microdollars: null, sessions_without_cost: 4, cost_microdollars_max: 1_000_000 };
    expect(costOfBudget(progress(unknown))).toBe("– of $1.00");
  });
});
