// Checks the commits inside an exported page: that each has the id of its content, that they form one chain, and that the
// listed iterations are those of the commits. An edited file has other ids.

import type { CommitExport, IterationRow, VerifyFinding } from "./types";

/** What the commits in the file show. */
export interface ProofResult {
  /** How many commits have the id of their content. */
  checked: number;
  /** How many could not be checked, because a key was redacted in them. */
  redacted: number;
  /** The newest commit. */
  tip: string;
  findings: VerifyFinding[];
}

/** A commit object: its parents and its message. */
interface ParsedCommit {
  parents: string[];
  message: string;
}

const ITERATION = /^chore\(loop\): run \S+ iter 0*(\d+) /;

export async function checkCommits(commits: CommitExport[], rows: IterationRow[]): Promise<ProofResult> {
  const findings: VerifyFinding[] = [];
  const fault = (commit: string, requirement: string, expected: string, found: string, iter: number | null) =>
    findings.push({ rule: "exported_file", requirement, commit, iter, expected, found });
  let [checked, redacted] = [0, 0];
  const known = new Map<number, { commit: string; message: string }>();
  for (const [index, commit] of commits.entries()) {
    const { parents, message } = parseCommit(commit.object);
    const iter = Number(ITERATION.exec(message)?.[1] ?? 0);
    if (iter > 0) known.set(iter, { commit: commit.id, message });
    if (!commit.is_exact) redacted++;
    else {
      const id = await objectId(commit);
      if (id === commit.id) checked++;
      else fault(commit.id, "a commit in the file has the id of its content", commit.id, id, iter || null);
    }
    const older = commits[index + 1];
    if (older && !parents.includes(older.id))
      fault(
        commit.id,
        "the commits in the file form one chain",
        older.id,
        parents[0] ?? "no parent",
        iter || null,
      );
  }
  for (const row of rows) {
    const of = known.get(row.iter);
    if (row.commit === null || !of) continue;
    const outcome = /^Runner-Outcome: (.*)$/m.exec(of.message)?.[1] ?? null;
    if (of.commit !== row.commit)
      fault(row.commit, "each iteration names its commit", of.commit, row.commit, row.iter);
    if (outcome !== null && outcome !== row.outcome)
      fault(of.commit, "each iteration has its commit's outcome", outcome, row.outcome ?? "none", row.iter);
  }
  return { checked, redacted, tip: commits[0]?.id ?? "", findings };
}

/** The id that git gives to a commit: the hash of its kind, its size and its bytes. */
async function objectId(commit: CommitExport): Promise<string> {
  const bytes = new TextEncoder().encode(commit.object);
  const head = new TextEncoder().encode(`commit ${bytes.length}\0`);
  const all = new Uint8Array(head.length + bytes.length);
  all.set(head);
  all.set(bytes, head.length);
  const hash = await crypto.subtle.digest(commit.id.length === 64 ? "SHA-256" : "SHA-1", all);
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function parseCommit(object: string): ParsedCommit {
  const end = object.indexOf("\n\n");
  const head = end < 0 ? object : object.slice(0, end);
  const parents = head
    .split("\n")
    .filter((line) => line.startsWith("parent "))
    .map((line) => line.slice("parent ".length));
  return { parents, message: end < 0 ? "" : object.slice(end + 2) };
}
