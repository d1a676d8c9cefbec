// Where the focus goes when a view appears.

/**
 * Focuses a list that scrolls, so that Page Down moves it. Only right after a change of the view, when the whole of the
 * content has the focus: nothing is taken from what the user focused.
 */
export function focusFromMain(element: HTMLElement | null | undefined): void {
  if (document.activeElement?.id === "main") element?.focus({ preventScroll: true });
}
