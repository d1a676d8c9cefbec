import { expect, test } from "vitest";
import { trustOf, type AuditReport } from "./export-audit";
import type { IterationRow, RunExport } from "./types";

const [first, tip] = ["a".repeat(40), "b".repeat(40)];
const report: AuditReport = {
  run: "demo",
  tip,
  verdict: "verified",
  commits: 3,
  findings: [],
  unchecked: [],
  passed: ["x"],
  complete: false,
  iterations: [
    { run: "demo", iter: 1, commit: first, node: "x", outcome: "guard_failed" },
    { run: "demo", iter: 2, commit: tip, node: "x", outcome: "passed" },
  ],
};

function exported(change: (run: RunExport) => void = () => undefined): RunExport {
  const rows = [
    { iter: 1, commit: first, node: "x", outcome: "guard_failed" },
    { iter: 2, commit: tip, node: "x", outcome: "passed" },
  ];
  const run = {
    snapshot: { run: { id: "demo", commit: tip } },
    iterations: { run: "demo", iterations: rows },
    tree: { id: ["root", "x", "y"], flags: [0, 3, 2] },
  } as unknown as RunExport;
  change(run);
  return run;
}

test("a page that shows what its commits record is as good as its audit", () => {
  expect(trustOf(report, exported())).toMatchObject({ verdict: "verified", violations: 0, commits: 3 });
  const cut = { ...report, verdict: "partial" as const, unchecked: ["everything before"] };
  expect(trustOf(cut, exported()).verdict).toBe("partial");
});

test("another outcome, task, commit, list or pass contradicts the commits", () => {
  const row = (change: Partial<IterationRow>) => (run: RunExport) =>
    Object.assign(run.iterations.iterations[0] ?? {}, change);
  const changes: ((run: RunExport) => void)[] = [
    row({ outcome: "passed" }),
    row({ node: "y" }),
    row({ commit: tip }),
    (run) => run.iterations.iterations.pop(),
    (run) => run.iterations.iterations.push({ ...run.iterations.iterations[0], iter: 3 } as IterationRow),
    (run) => run.tree?.flags.splice(2, 1, 3),
    (run) => Object.assign(run.snapshot.run ?? {}, { commit: first }),
    (run) => Object.assign(run.snapshot.run ?? {}, { id: "other" }),
  ];
  for (const change of changes) {
    const trust = trustOf(report, exported(change));
    expect(trust.verdict, String(change)).toBe("violated");
    expect(trust.summary).toMatch(/^this file was changed after the export/);
  }
});

test("the findings of the audit are those of the page", () => {
  const finding = {
    rule: "passes",
    requirement: "r",
    commit: first,
    iter: 1,
    expected: "false",
    found: "true",
  };
  const trust = trustOf({ ...report, verdict: "violated", findings: [finding] }, exported());
  expect(trust.summary).toBe("verification failed: 1 violation, the first in aaaaaaa");
  expect(trust.findings).toEqual([finding]);
});
