// Violations of the runner's rules as sentences: what a commit did, instead of the rule's name.

import type { VerifyFinding } from "./types";

/** The violations of one rule in one commit. */
export interface FindingGroup {
  key: string;
  commit: string;
  iter: number | null;
  rule: string;
  /** `changed "Login" after it had passed`; the commit is its subject. */
  sentence: string;
  requirement: string;
  details: { found: string; expected: string }[];
}

/** The page says task where git's documents say node. */
const asTask = (text: string) => text.replace(/\bnode(s?)\b/g, "task$1");

/** What is found in one task begins with its path. */
const PATH = /^([A-Za-z0-9._/-]+): /;

export function findingGroups(
  findings: VerifyFinding[],
  titleOf: (node: string) => string | undefined,
): FindingGroup[] {
  const groups = new Map<string, VerifyFinding[]>();
  for (const finding of findings) {
    const key = `${finding.commit} ${finding.rule}`;
    groups.set(key, [...(groups.get(key) ?? []), finding]);
  }
  return [...groups].flatMap(([key, [first, ...rest]]) => {
    if (!first) return [];
    const all = [first, ...rest];
    return {
      key,
      commit: first.commit,
      iter: first.iter,
      rule: first.rule,
      sentence: sentenceOf(first.rule, all, titleOf),
      requirement: asTask(first.requirement),
      details: all.map(({ found, expected }) => ({ found: asTask(found), expected: asTask(expected) })),
    };
  });
}

function sentenceOf(
  rule: string,
  findings: VerifyFinding[],
  titleOf: (node: string) => string | undefined,
): string {
  const names = findings.flatMap(({ found }) => {
    const path = PATH.exec(found)?.[1];
    return path ? [`"${titleOf(path.split("/").at(-1) ?? path) ?? path}"`] : [];
  });
  const tasks = names.length > 0 ? listOf(names) : "a task";
  const found = findings[0]?.found ?? "";
  switch (rule) {
    case "passed_changed":
      return `changed ${tasks} after ${names.length > 1 ? "they" : "it"} had passed`;
    case "foreign_commit":
      return `is not a commit of the runner: "${found}"`;
    case "message":
      return "has another message than its state and results give";
    case "parents":
      return "does not follow the commit before it";
    case "numbering":
      return "leaves a gap in the numbers of the iterations";
    case "checks_green":
      return `passed ${tasks} although a check failed`;
    case "guard":
    case "guard_exit":
      return "records another result of the guard than its outcome allows";
    case "outcome":
      return "records an outcome that this iteration cannot have";
  }
  const requirement = asTask(findings[0]?.requirement ?? "");
  return requirement ? `violates a rule: ${requirement}` : `violates the rule ${rule} of a newer runner`;
}

/** `a`, `a and b`, `a, b and 3 more`. */
function listOf(names: string[]): string {
  const unique = [...new Set(names)];
  const shown = unique.length > 3 ? [...unique.slice(0, 2), `${unique.length - 2} more`] : unique;
  const last = shown.at(-1) ?? "";
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${last}` : last;
}
