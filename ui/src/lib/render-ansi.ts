// A line of a log in its colours: text and nothing else. Elements and their texts are used again, because a list that
// scrolls shows many lines, and only what differs is touched.

import { parse } from "./ansi";

/** An action that shows a line in an element; one that is not here yet as an ellipsis. */
export function paint(place: HTMLElement, line: string | undefined) {
  draw(place, line);
  return { update: (next: string | undefined) => draw(place, next) };
}

function draw(place: HTMLElement, line: string | undefined): void {
  const pieces = parse(line ?? "…").pieces;
  pieces.forEach(({ text, cls, color, background }, at) => {
    const span = (place.children[at] ?? place.appendChild(fresh())) as HTMLElement;
    const shown = span.firstChild as Text;
    if (shown.data !== text) shown.data = text;
    if (span.className !== cls) span.className = cls;
    if (color !== null || background !== null || span.style.length > 0) {
      span.style.color = color ?? "";
      span.style.background = background ?? "";
    }
  });
  while (place.children.length > pieces.length) place.lastElementChild?.remove();
}

function fresh(): HTMLElement {
  const span = document.createElement("span");
  span.append(document.createTextNode(""));
  return span;
}
