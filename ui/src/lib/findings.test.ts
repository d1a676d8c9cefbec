import { describe, expect, it } from "vitest";
import { findingGroups } from "./findings";
import type { VerifyFinding } from "./types";

const finding = (rule: string, found: string, commit = "3185e9a"): VerifyFinding => ({
  rule,
  commit,
  iter: null,
  requirement: rule === "new_rule" ? "" : "a node that passed never changes again",
  expected: "an edit of the node that the rules allow",
  found,
});
const titleOf = (node: string) => ({ open: "Open and close accounts", login: "Login" })[node];

describe("findings", () => {
  it("are one sentence for each rule of a commit, with the titles of the tasks", () => {
    const groups = findingGroups(
      [
        finding("passed_changed", "root/open: has passed and cannot be changed"),
        finding("foreign_commit", "sneaky"),
        finding("passed_changed", "root/login: has passed, and this node cannot be changed"),
        finding("passed_changed", "root/x: has passed", "other"),
      ],
      titleOf,
    );
    expect(groups.map(({ commit, sentence }) => `${commit} ${sentence}`)).toEqual([
      '3185e9a changed "Open and close accounts" and "Login" after they had passed',
      '3185e9a is not a commit of the runner: "sneaky"',
      'other changed "root/x" after it had passed',
    ]);
    expect(groups[0]?.details.length).toBe(2);
  });

  it("say task, never node, and know no rule of a newer runner", () => {
    const [known, unknown] = findingGroups([finding("selection", "x"), finding("new_rule", "y")], titleOf);
    expect(known?.sentence).toBe("violates a rule: a task that passed never changes again");
    expect(known?.details[0]?.expected).toBe("an edit of the task that the rules allow");
    expect(unknown?.sentence).toBe("violates the rule new_rule of a newer runner");
  });
});
