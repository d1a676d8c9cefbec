import { describe, expect, it } from "vitest";
import { checkResultText, coverageText } from "./acceptance";

describe("coverage", () => {
  it("names what is not proven, and nothing that is zero", () => {
    const coverage = { points: 20, proven: 17, pending: 0, unproven: 0, prose: 3 };
    expect(coverageText(coverage)).toBe("17 of 20 points proven, 3 in prose");
    expect(coverageText({ ...coverage, proven: 15, pending: 1, unproven: 1 })).toBe(
      "15 of 20 points proven, 1 pending, 1 unproven, 3 in prose",
    );
  });
});

describe("a check in an iteration", () => {
  const check = { name: "x", red: "failed", exit: "0", is_green: true } as const;

  it("says how it ended before and after the work", () => {
    expect(checkResultText(check)).toBe("failed before, exit 0 after");
    expect(checkResultText({ ...check, exit: "timed-out", is_green: false })).toBe(
      "failed before, timed out after",
    );
    expect(checkResultText({ ...check, red: "green", exit: null, is_green: false })).toBe(
      "green before, not run after",
    );
  });
});
