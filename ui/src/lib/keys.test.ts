import { expect, it } from "vitest";
import { actionOf, SHORTCUTS } from "./keys";

it("every key is bound once, and sequences win over single keys", () => {
  const all = SHORTCUTS.flatMap((shortcut) => [...shortcut.keys]);
  expect(new Set(all).size).toBe(all.length);
  expect(actionOf("s", "g")).toBe("evidence");
  expect(actionOf("s", "")).toBe("share");
  expect(actionOf("q", "")).toBeUndefined();
  expect(actionOf("t", "g")).toBe("stats");
  expect(actionOf("t", "")).toBe("theme");
});
