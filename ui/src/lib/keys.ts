// The keys of the page: one table that binds them and that the help shows.

export interface Key {
  keys: string[];
  shown: string;
  says: string;
  act: string;
}

export const KEYS: Key[] = [
  { keys: ["?"], shown: "?", says: "this help", act: "help" },
  { keys: ["g o"], shown: "g o", says: "overview", act: "overview" },
  { keys: ["g c"], shown: "g c", says: "current iteration, or the last", act: "current" },
  { keys: ["g s"], shown: "g s", says: "what stopped the run: the failing line", act: "evidence" },
  { keys: ["g r"], shown: "g r", says: "runs", act: "runs" },
  { keys: ["g e"], shown: "g e", says: "results, on an evaluation", act: "results" },
  { keys: ["g t"], shown: "g t", says: "time and cost", act: "stats" },
  { keys: ["["], shown: "[", says: "previous iteration", act: "previous" },
  { keys: ["]"], shown: "]", says: "next iteration", act: "next" },
  {
    keys: ["1", "2", "3", "4", "5", "6"],
    shown: "1 – 6",
    says: "transcript, diff, guard, prompt, output, meta",
    act: "tab",
  },
  { keys: ["/"], shown: "/", says: "search or filter here", act: "search" },
  { keys: ["n"], shown: "n", says: "next hit", act: "hit" },
  { keys: ["N"], shown: "N", says: "previous hit", act: "hit-back" },
  { keys: ["e"], shown: "e", says: "next failure", act: "error" },
  { keys: ["E"], shown: "E", says: "previous failure", act: "error-back" },
  { keys: ["f"], shown: "f", says: "follow the end, or stop following", act: "follow" },
  { keys: ["y"], shown: "y", says: "copy the address of this view", act: "copy-link" },
  { keys: ["Y"], shown: "Y", says: "copy a command that shows the same", act: "copy-command" },
  { keys: ["t"], shown: "t", says: "light, dark, or as the system has it", act: "theme" },
];

/** Keys that lists have when they are focused. */
export const LIST_KEYS: [string, string][] = [
  ["j  k  ↑  ↓", "move"],
  ["h  l  ←  →", "close or open a node"],
  ["Home  End", "first, last"],
  ["Enter", "open"],
  ["Esc", "back up"],
];

/** What a key press means, given the one before it; null if nothing. */
export function action(
  event: Pick<KeyboardEvent, "key">,
  before: string,
): { act: string; key: string } | null {
  const key = event.key;
  const pair = `${before} ${key}`;
  const found =
    KEYS.find((known) => known.keys.includes(pair)) ?? KEYS.find((known) => known.keys.includes(key));
  return found ? { act: found.act, key } : null;
}

/** Whether a press belongs to someone who types, or to the browser. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  const isField =
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  return isField || event.ctrlKey || event.metaKey || event.altKey;
}
