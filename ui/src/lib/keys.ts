// The keyboard shortcuts: one table that the page binds and the help dialog shows.

interface Shortcut {
  /** Keys, or sequences of two keys such as `g o`. */
  keys: readonly string[];
  shown: string;
  text: string;
  action: string;
}

export const SHORTCUTS = [
  { keys: ["?"], shown: "?", text: "this help", action: "help" },
  { keys: ["."], shown: ". or Ctrl K", text: "search and commands", action: "palette" },
  { keys: ["g o"], shown: "g o", text: "overview", action: "overview" },
  { keys: ["g c"], shown: "g c", text: "current or last iteration", action: "current" },
  { keys: ["g s"], shown: "g s", text: "the log line that shows why the run stopped", action: "evidence" },
  { keys: ["g r"], shown: "g r", text: "runs", action: "runs" },
  { keys: ["g e"], shown: "g e", text: "evaluation results", action: "results" },
  { keys: ["g t"], shown: "g t", text: "time and cost", action: "stats" },
  { keys: ["["], shown: "[", text: "previous iteration", action: "previous" },
  { keys: ["]"], shown: "]", text: "next iteration", action: "next" },
  {
    keys: ["1", "2", "3", "4", "5", "6", "7"],
    shown: "1 – 7",
    text: "transcript, diff, guard, prompt, output, errors, meta",
    action: "tab",
  },
  { keys: ["/"], shown: "/", text: "search or filter", action: "search" },
  { keys: ["n"], shown: "n", text: "next match", action: "next-match" },
  { keys: ["N"], shown: "N", text: "previous match", action: "previous-match" },
  { keys: ["e"], shown: "e", text: "next failure", action: "next-failure" },
  { keys: ["E"], shown: "E", text: "previous failure", action: "previous-failure" },
  { keys: ["f"], shown: "f", text: "follow new output, or stop following", action: "follow" },
  { keys: ["j", "k"], shown: "j k", text: "move in the tree", action: "move" },
  { keys: ["s"], shown: "s", text: "share this run", action: "share" },
  { keys: ["y"], shown: "y", text: "copy a link to this view", action: "copy-link" },
  { keys: ["Y"], shown: "Y", text: "copy the equivalent command", action: "copy-command" },
  { keys: ["t"], shown: "t", text: "theme: light, dark or system", action: "theme" },
] as const satisfies readonly Shortcut[];

export type Action = (typeof SHORTCUTS)[number]["action"];

/** Handles an action; returning false passes it on to the next component. */
export type ActionHandler = (key: string) => unknown;
export type ActionHandlers = Partial<Record<Action, ActionHandler>>;

/** Keys of a focused list. */
export const LIST_KEYS: [string, string][] = [
  ["j  k  ↑  ↓", "move"],
  ["h  l  ←  →", "collapse or expand a task"],
  ["Home  End", "first, last"],
  ["Enter", "open"],
  ["Esc", "go back"],
];

/** The action of a key, given the key pressed just before it. */
export function actionOf(key: string, previousKey: string): Action | undefined {
  const bound = (keys: string) =>
    SHORTCUTS.find((shortcut) => (shortcut.keys as readonly string[]).includes(keys))?.action;
  return bound(`${previousKey} ${key}`) ?? bound(key);
}

/** Whether a key press is text input or belongs to the browser. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  const isField =
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  return isField || hasModifier(event);
}

export function hasModifier(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}
