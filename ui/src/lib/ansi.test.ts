import { describe, expect, it } from "vitest";
import { parse, plain, PLAIN } from "./ansi";

describe("colours of terminals", () => {
  it("become classes of a closed set, and carry over to the next line", () => {
    const first = parse("\u001b[1;31mred");
    expect(first.pieces).toEqual([{ text: "red", cls: "f-1 bold", color: null, background: null }]);
    expect(parse("still", first.style).pieces[0]?.cls).toBe("f-1 bold");
    expect(parse("\u001b[0mplain", first.style).pieces[0]?.cls).toBe("");
  });

  it("know 256 colours and all others", () => {
    expect(parse("\u001b[38;5;196mx").pieces[0]?.color).toBe("rgb(255 0 0)");
    expect(parse("\u001b[38;5;9mx").pieces[0]?.cls).toBe("f-bright-1");
    expect(parse("\u001b[48;2;1;2;999mx").pieces[0]?.background).toBe("rgb(1 2 255)");
    expect(parse("\u001b[38;5;244mx").pieces[0]?.color).toBe("rgb(128 128 128)");
  });

  it("leave nothing that could act: titles, links, cursor moves, controls, turned text", () => {
    expect(
      plain("\u001b]0;title\u0007a\u001b]8;;http://x\u001b\\b\u001b[2Jc\u001b[10;5Hd\u0000\u0008e"),
    ).toBe("abcde");
    expect(plain("\u001b]52;c;unended")).toBe("");
    expect(plain("a\u202eb")).toBe("a⟨202e⟩b");
    expect(plain("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
    expect(plain("\u001b[31")).not.toContain("\u001b");
  });

  it("keep what a progress line ended with", () => {
    expect(plain("10 %\r50 %\r100 %")).toBe("100 %");
    expect(plain("windows\r")).toBe("windows");
  });

  it("turn around when told to", () => {
    expect(parse("\u001b[7mx").pieces[0]?.cls).toBe("f-bg b-fg");
    expect(parse("\u001b[7;27mx", PLAIN).pieces[0]?.cls).toBe("");
  });
});
