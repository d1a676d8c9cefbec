// Verifies an exported run from the git objects inside the page: the audit of `runner verify`, compiled to WebAssembly. What
// the page shows is then compared with what the audit derived.

import { plural } from "./format";
import type { IterationRow, RunExport, TreeColumns, VerifyFinding, VerifyResult } from "./types";

/** How far the audit is: objects that were hashed, then commits that were checked. */
export interface AuditProgress {
  done: number;
  total: number;
}

/** What the audit derived from the objects. */
export interface AuditReport {
  run: string;
  tip: string;
  verdict: "verified" | "violated" | "partial";
  commits: number;
  findings: VerifyFinding[];
  unchecked: string[];
  /** The leaves that passed. */
  passed: string[];
  complete: boolean;
  iterations: AuditedIteration[];
}

export interface AuditedIteration {
  run: string;
  iter: number;
  commit: string;
  node: string | null;
  outcome: string | null;
}

/** The functions of the module; see crates/audit-bundle/src/browser_interface.rs. */
interface AuditModule {
  memory: WebAssembly.Memory;
  input(bytes: number): number;
  open(): number;
  step(): number;
  done(): number;
  total(): number;
  output(): number;
  output_bytes(): number;
}

/** How long the page is not drawn. */
const SLICE_MS = 20;
const FINDINGS_MAX = 50;
const IS_PASSED = 1;
const IS_LEAF = 2;

/** Audits a bundle of objects. Resolves to null if it is none. */
export async function audit(
  module: Uint8Array<ArrayBuffer>,
  objects: Uint8Array,
  onProgress: (progress: AuditProgress) => void = () => undefined,
): Promise<AuditReport | null> {
  const { instance } = await WebAssembly.instantiate(module);
  const exports = instance.exports as unknown as AuditModule;
  const address = exports.input(objects.length);
  new Uint8Array(exports.memory.buffer, address, objects.length).set(objects);
  if (exports.open() === 0) return null;
  let sliceEnd = performance.now() + SLICE_MS;
  while (exports.step() !== 0) {
    if (performance.now() < sliceEnd) continue;
    onProgress({ done: exports.done(), total: exports.total() });
    await new Promise((resume) => setTimeout(resume));
    sliceEnd = performance.now() + SLICE_MS;
  }
  const bytes = new Uint8Array(exports.memory.buffer, exports.output(), exports.output_bytes());
  return JSON.parse(new TextDecoder().decode(bytes)) as AuditReport;
}

/** What the page says about trust: the result of the audit, and where the page shows something else. */
export function trustOf(report: AuditReport, run: RunExport): VerifyResult {
  const contradictions = contradictionsOf(report, run);
  const findings = [...contradictions, ...report.findings];
  const { commits, unchecked } = report;
  const iterations = report.iterations.length;
  const extent = `${plural(iterations, "iteration")}, ${plural(commits, "commit")}`;
  const verdict = findings.length > 0 ? "violated" : report.verdict;
  const first = report.findings[0]?.commit.slice(0, 7);
  const summaries = {
    verified: `verified: ${extent}, no violations`,
    partial: `partly verified: ${extent}, no violations, but not everything could be checked`,
    violated:
      contradictions.length > 0
        ? `this file was changed after the export: ${plural(contradictions.length, "contradiction")}`
        : `verification failed: ${plural(findings.length, "violation")}${first ? `, the first in ${first}` : ""}`,
  };
  return {
    verdict,
    summary: summaries[verdict],
    findings: findings.slice(0, FINDINGS_MAX),
    violations: findings.length,
    commits,
    iterations,
    unchecked,
    command: `runner verify ${report.run}`,
  };
}

/** Where the page shows something else than its commits record. */
function contradictionsOf(report: AuditReport, run: RunExport): VerifyFinding[] {
  const findings: VerifyFinding[] = [];
  const compare = (requirement: string, expected: string, found: string, row?: { iter: number }) => {
    if (expected === found) return;
    const commit = report.iterations.find((one) => one.iter === row?.iter)?.commit ?? report.tip;
    const iter = row?.iter ?? null;
    findings.push({ rule: "exported_file", requirement, commit, iter, expected, found });
  };
  compare("the page shows the run of its commits", report.run, run.snapshot.run?.id ?? "none");
  compare("the page shows the newest of its commits", report.tip, run.snapshot.run?.commit ?? "none");
  const rows = new Map(run.iterations.iterations.map((row) => [row.iter, row]));
  for (const audited of report.iterations) {
    if (audited.run !== report.run) continue;
    const row = rows.get(audited.iter);
    compare("the page lists every iteration", textOf(audited), row ? textOf(row) : "none", audited);
    rows.delete(audited.iter);
  }
  // Where commits are missing, the page may know more iterations than they show.
  if (report.verdict === "verified")
    for (const row of rows.values())
      if (row.commit !== null) compare("each listed iteration has a commit", "none", textOf(row), row);
  if (run.tree && report.verdict === "verified")
    compare(
      "the page shows the tasks that passed",
      report.passed.join(" "),
      passedLeaves(run.tree).join(" "),
    );
  return findings;
}

function textOf(row: Pick<IterationRow, "commit" | "node" | "outcome">): string {
  return `${row.commit?.slice(0, 12) ?? "no commit"} ${row.node ?? "no task"} ${row.outcome ?? "no outcome"}`;
}

function passedLeaves(tree: TreeColumns): string[] {
  return tree.id.filter((_, at) => ((tree.flags[at] ?? 0) & (IS_PASSED | IS_LEAF)) === (IS_PASSED | IS_LEAF));
}
