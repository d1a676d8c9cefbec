/**
 * Escape in a search field empties it, and what it filters with it; in an empty field it leaves the field. A browser empties
 * the field by itself without telling anyone.
 */
export function clearOnEscape(event: KeyboardEvent): void {
  const field = event.currentTarget;
  if (event.key !== "Escape" || !(field instanceof HTMLInputElement)) return;
  event.preventDefault();
  event.stopPropagation();
  if (field.value === "") return field.blur();
  field.value = "";
  field.dispatchEvent(new Event("input", { bubbles: true }));
}
