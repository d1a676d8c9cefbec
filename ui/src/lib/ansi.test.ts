import { describe, expect, it } from "vitest";
import { parseAnsi, PLAIN, stripAnsi } from "./ansi";

describe("terminal colours", () => {
  it("become classes of a fixed set and carry over to the next line", () => {
    const first = parseAnsi("\u001b[1;31mred");
    expect(first.spans).toEqual([{ text: "red", classes: "f-1 bold", color: null, background: null }]);
    expect(parseAnsi("still", first.style).spans[0]?.classes).toBe("f-1 bold");
    expect(parseAnsi("\u001b[0mplain", first.style).spans[0]?.classes).toBe("");
  });

  it("include 256 colours and RGB", () => {
    expect(parseAnsi("\u001b[38;5;196mx").spans[0]?.color).toBe("rgb(255 0 0)");
    expect(parseAnsi("\u001b[38;5;9mx").spans[0]?.classes).toBe("f-bright-1");
    expect(parseAnsi("\u001b[48;2;1;2;999mx").spans[0]?.background).toBe("rgb(1 2 255)");
    expect(parseAnsi("\u001b[38;5;244mx").spans[0]?.color).toBe("rgb(128 128 128)");
  });

  it("leave no titles, links, cursor moves, control characters or reversed text", () => {
    expect(
      stripAnsi("\u001b]0;title\u0007a\u001b]8;;http://x\u001b\\b\u001b[2Jc\u001b[10;5Hd\u0000\u0008e"),
    ).toBe("abcde");
    expect(stripAnsi("\u001b]52;c;unended")).toBe("");
    expect(stripAnsi("a\u202eb")).toBe("a⟨202e⟩b");
    expect(stripAnsi("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
    expect(stripAnsi("\u001b[31")).not.toContain("\u001b");
  });

  it("keep the last state of a progress line", () => {
    expect(stripAnsi("10 %\r50 %\r100 %")).toBe("100 %");
    expect(stripAnsi("windows\r")).toBe("windows");
  });

  it("swap foreground and background for inverse text", () => {
    expect(parseAnsi("\u001b[7mx").spans[0]?.classes).toBe("f-bg b-fg");
    expect(parseAnsi("\u001b[7;27mx", PLAIN).spans[0]?.classes).toBe("");
  });
});
