// Keyboard shortcuts. Components register handlers for the actions they offer; a key press runs the first handler that
// accepts it, in the order of registration, so a view comes before the panes inside it.

import { createContext, onDestroy } from "svelte";
import { actionOf, isTyping, type Action, type ActionHandlers } from "../lib/keys";
import { preferences } from "./store";

const SEQUENCE_MS = 1000;

export class Shortcuts {
  #registered: ActionHandlers[] = [];
  #previousKey = "";

  register(handlers: ActionHandlers): () => void {
    this.#registered.push(handlers);
    return () => {
      this.#registered = this.#registered.filter((other) => other !== handlers);
    };
  }

  /** Handles a key press; `onescape` handles Escape outside of input fields. */
  press(event: KeyboardEvent, onescape: () => boolean): void {
    if (event.key === "Escape" && event.target instanceof HTMLInputElement) event.target.blur();
    if (isTyping(event) || !preferences.hasShortcuts || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && onescape()) return;
    const action = actionOf(event.key, this.#previousKey);
    this.#previousKey = event.key;
    setTimeout(() => (this.#previousKey = ""), SEQUENCE_MS);
    if (action && this.run(action, event.key)) event.preventDefault();
  }

  /** Runs the first handler that accepts the action. */
  run(action: Action, key = ""): boolean {
    return this.#registered.some((handlers) => {
      const handler = handlers[action];
      return handler !== undefined && handler(key) !== false;
    });
  }
}

const [getShortcuts, setShortcuts] = createContext<Shortcuts>();
export { getShortcuts, setShortcuts };

/** Registers handlers for as long as the component lives. */
export function onActions(handlers: ActionHandlers): void {
  onDestroy(getShortcuts().register(handlers));
}
