// A Svelte action that renders a log line with its terminal colours. It reuses spans and changes only what differs,
// because a scrolling log renders many lines per frame.

import { parseAnsi } from "./ansi";

/** Renders the line into the element; an ellipsis until the line is loaded. */
export function renderAnsi(element: HTMLElement, line: string | undefined) {
  render(element, line);
  return { update: (next: string | undefined) => render(element, next) };
}

function render(element: HTMLElement, line: string | undefined): void {
  const spans = parseAnsi(line ?? "…").spans;
  spans.forEach(({ text, classes, color, background }, index) => {
    const span = (element.children[index] ?? element.appendChild(newSpan())) as HTMLElement;
    const node = span.firstChild as Text;
    if (node.data !== text) node.data = text;
    if (span.className !== classes) span.className = classes;
    if (color !== null || background !== null || span.style.length > 0) {
      if (color === null) span.style.removeProperty("--ansi-color");
      else span.style.setProperty("--ansi-color", color);
      // A background of its own would need a matching colour of the text; a soft mix stays readable in both themes.
      span.style.background = background ? `color-mix(in oklab, ${background} 25%, transparent)` : "";
    }
  });
  while (element.children.length > spans.length) element.lastElementChild?.remove();
}

function newSpan(): HTMLElement {
  const span = document.createElement("span");
  span.append(document.createTextNode(""));
  return span;
}
