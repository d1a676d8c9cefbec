import { describe, expect, it } from "vitest";
import { parseInline, parseMarkdown } from "./markdown";

describe("Markdown", () => {
  it("has blocks", () => {
    const text = "# Done\nOne\ntwo\n\n- a\n- `b`\n1. x\n```rust\nlet a = 1;\n\n```\nend";
    expect(parseMarkdown(text).map((block) => block.kind)).toEqual([
      "heading",
      "paragraph",
      "list",
      "list",
      "code",
      "paragraph",
    ]);
  });

  it("has inline parts, and links only to the web", () => {
    expect(parseInline("a `**b**` **c** [d](https://e.org)").map((part) => [part.kind, part.text])).toEqual([
      ["text", "a "],
      ["code", "**b**"],
      ["text", " "],
      ["strong", "c"],
      ["text", " "],
      ["link", "d"],
    ]);
    expect(parseInline("[f](javascript:alert)")).toEqual([{ kind: "text", text: "[f](javascript:alert)" }]);
  });

  it("shows everything else as it is", () => {
    expect(parseInline("2 * 3 * 4 <b>x</b> snake_case_name")).toEqual([
      { kind: "text", text: "2 * 3 * 4 <b>x</b> snake_case_name" },
    ]);
  });
});
