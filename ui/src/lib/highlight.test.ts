import { describe, expect, it } from "vitest";
import { changedWords, markTokens, tokenize } from "./highlight";

const kinds = (line: string, path: string) =>
  tokenize(line, path)
    .filter((token) => token.kind !== "plain")
    .map((token) => `${token.kind}:${token.text}`);

describe("source code", () => {
  it("has comments, strings, numbers and keywords", () => {
    expect(kinds('let x = "a // b"; // done 3', "a.rs")).toEqual([
      "keyword:let",
      'string:"a // b"',
      "comment:// done 3",
    ]);
    expect(kinds("def f(x): return 10  # ten", "a.py")).toEqual([
      "keyword:def",
      "keyword:return",
      "number:10",
      "comment:# ten",
    ]);
    expect(kinds("impl<'a> Foo {", "a.rs")).toEqual(["keyword:impl", "type:Foo"]);
  });

  it("marks each changed word, also between words that stayed", () => {
    const { before, after } = changedWords("take(a, 1, old, c)", "take(b, 1, new, c)");
    const changed = (parts: typeof before) => parts.filter((part) => part.isChanged).map((part) => part.text);
    expect(changed(before)).toEqual(["a", "old"]);
    expect(changed(after)).toEqual(["b", "new"]);
    expect(changedWords("alpha beta gamma", "one two three").after).toEqual([
      { text: "one two three", isChanged: true },
    ]);
  });

  it("loses no character", () => {
    for (const line of ["", "  a\t'b", "`${x}` /* c */ d", '日本語 "x', "#![x]"])
      expect(
        tokenize(line, "a.ts")
          .map((token) => token.text)
          .join(""),
      ).toBe(line);
  });

  it("marks the words that changed", () => {
    const { before, after } = changedWords("let a = f(1);", "let a = g(1);");
    expect(before).toEqual([
      { text: "let a = ", isChanged: false },
      { text: "f", isChanged: true },
      { text: "(1);", isChanged: false },
    ]);
    const marked = markTokens(tokenize("let a = g(1);", "a.rs"), after);
    expect(marked.map((token) => token.text).join("")).toBe("let a = g(1);");
    expect(marked.filter((token) => token.isChanged).map((token) => token.text)).toEqual(["g"]);
  });
});
