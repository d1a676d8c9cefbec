import { describe, expect, it } from "vitest";
import { bytes, count, dollars, duration, escapeControls, plural } from "./format";

describe("formats", () => {
  it("durations, amounts, counts and sizes", () => {
    expect([null, 0, 43, 5200, 252_000, 6_727_000].map(duration)).toEqual([
      "–",
      "0.0 s",
      "43 ms",
      "5.2 s",
      "4:12",
      "1:52:07",
    ]);
    expect([null, 0, 380_000, 1_500, 6_410_000].map(dollars)).toEqual([
      "–",
      "$0.00",
      "$0.38",
      "$0.0015",
      "$6.41",
    ]);
    expect([null, 912, 182_000, 1_400_000].map(count)).toEqual(["–", "912", "182 k", "1.4 M"]);
    expect([12, 2048, 5 << 20].map(bytes)).toEqual(["12 B", "2.0 kB", "5.0 MB"]);
    expect([plural(1, "line"), plural(2000, "line")]).toEqual(["1 line", "2,000 lines"]);
  });

  it("invisible characters visibly", () => {
    expect(escapeControls("a\u0000b\u202ec\td\ne")).toBe("a␀b⟨202e⟩c\td\ne");
  });
});
