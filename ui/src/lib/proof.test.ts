import { expect, test } from "vitest";
import { checkCommits } from "./proof";
import type { CommitExport, IterationRow } from "./types";

// The ids are those that `git hash-object -t commit` prints.
const first: CommitExport = {
  id: "5add72957a4bc347e59565be1846f916789fbd62",
  object: `tree ${"a".repeat(40)}\nauthor A\n\nchore(loop): start run x\n`,
  is_exact: true,
};
const second: CommitExport = {
  id: "172f46eaf9f13663369451db3ff4030454437274",
  object:
    `tree ${"b".repeat(40)}\nparent ${first.id}\nauthor A\n\n` +
    "chore(loop): run x iter 0001 node a status=done guard=pass\n\ndid it ✓\n\nRunner-Outcome: passed\n",
  is_exact: true,
};
const rows = [{ iter: 1, commit: second.id, outcome: "passed" } as IterationRow];

test("commits that are as git stores them are confirmed", async () => {
  const result = await checkCommits([second, first], rows);
  expect(result).toEqual({ checked: 2, redacted: 0, tip: second.id, findings: [] });
});

test("a changed commit, a gap and a changed outcome are found", async () => {
  const changed = { ...second, object: second.object.replace("did it", "did more") };
  expect((await checkCommits([changed, first], rows)).findings).toHaveLength(1);
  expect((await checkCommits([second, { ...first, id: "c".repeat(40) }], rows)).findings).toHaveLength(2);
  const forged = [{ ...(rows[0] as IterationRow), outcome: "guard_failed" }];
  const found = (await checkCommits([second, first], forged)).findings;
  expect(found.map((finding) => [finding.expected, finding.found])).toEqual([["passed", "guard_failed"]]);
});

test("a commit with a redacted key is counted, not accused", async () => {
  const redacted = { ...second, object: second.object.replace("did it", "[redacted]"), is_exact: false };
  expect(await checkCommits([redacted, first], rows)).toMatchObject({
    checked: 1,
    redacted: 1,
    findings: [],
  });
});
