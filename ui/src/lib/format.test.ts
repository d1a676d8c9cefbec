import { describe, expect, it } from "vitest";
import {
  clockTime,
  count,
  dollars,
  duration,
  escapeControls,
  plainLine,
  plural,
  relativePath,
} from "./format";

it("shows Markdown as one plain line in lists", () => {
  expect(plainLine("**Done**, with `tests`:\n\n- one\n- two * 3")).toBe("Done, with tests: one two * 3");
});

describe("numbers and times", () => {
  it("are short", () => {
    expect([0, 40, 900, 4200, 9999, 10_000, 252_000, 6_727_000].map(duration)).toEqual([
      "0.0 s",
      "40 ms",
      "900 ms",
      "4.2 s",
      "10.0 s",
      "0:10",
      "4:12",
      "1:52:07",
    ]);
    expect(clockTime(1900)).toBe("0:01");
  });

  it("are a dash where they are unknown, never a zero", () => {
    expect([duration(null), dollars(undefined), count(null)]).toEqual(["–", "–", "–"]);
  });

  it("agree with the command line", () => {
    // The same amounts as in the tests of runner-core's `format` module.
    expect([0, 1, 5000, 10_000, 1_250_000, 25_000_000, 5_679_999].map(dollars)).toEqual([
      "$0.00",
      "$0.000001",
      "$0.005",
      "$0.01",
      "$1.25",
      "$25.00",
      "$5.67",
    ]);
    expect([0, 9999, 12_345, 999_999, 1_000_000, 4_567_890].map(count)).toEqual([
      "0",
      "9999",
      "12.3k",
      "999.9k",
      "1M",
      "4.56M",
    ]);
  });

  it("have a plural", () => {
    expect([plural(1, "line"), plural(1200, "line")]).toEqual(["1 line", "1,200 lines"]);
  });
});

describe("text by agents", () => {
  it("shows what would reorder or hide it", () => {
    expect(escapeControls("a\u202eexe.live\u0000\tb\n")).toBe("a⟨202e⟩exe.live␀\tb\n");
  });

  it("keeps the joiners of emoji and Persian", () => {
    const family = "👨\u200d👩\u200d👧 می\u200cخواهم";
    expect(escapeControls(family)).toBe(family);
  });

  it("has paths relative to the repository", () => {
    expect(relativePath("/tmp/x/roman/src/a.rs", "roman")).toBe("src/a.rs");
    expect(relativePath("/tmp/x/romans/a", "roman")).toBe("/tmp/x/romans/a");
    expect(relativePath("src/roman/a.rs", "roman")).toBe("src/roman/a.rs");
  });
});
