// Parses the Markdown that agents write in summaries and messages: paragraphs, lists, headings, code, emphasis and links.
// It produces data, never markup, so text by agents cannot inject anything.

export interface InlinePart {
  kind: "text" | "code" | "strong" | "emphasis" | "link";
  text: string;
  /** Of a link; only http and https. */
  href?: string;
}

export type MarkdownBlock =
  | { kind: "paragraph"; parts: InlinePart[] }
  | { kind: "heading"; parts: InlinePart[] }
  | { kind: "code"; text: string; language: string }
  | { kind: "list"; isOrdered: boolean; items: InlinePart[][] };

const FENCE = /^\s*(```|~~~)\s*([\w+-]*)/;
const HEADING = /^#{1,6}\s+(.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d{1,4})[.)])\s+(.*)$/;

export function parseMarkdown(text: string): MarkdownBlock[] {
  const blocks: MarkdownBlock[] = [];
  let paragraph: string[] = [];
  const endParagraph = () => {
    if (paragraph.length > 0) blocks.push({ kind: "paragraph", parts: parseInline(paragraph.join("\n")) });
    paragraph = [];
  };
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? "";
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (fence) {
      endParagraph();
      const code: string[] = [];
      while (++index < lines.length && !(lines[index] ?? "").trimStart().startsWith(fence[1] ?? "```"))
        code.push(lines[index] ?? "");
      blocks.push({ kind: "code", text: code.join("\n"), language: fence[2] ?? "" });
    } else if (heading) {
      endParagraph();
      blocks.push({ kind: "heading", parts: parseInline(heading[1] ?? "") });
    } else if (item) {
      endParagraph();
      const isOrdered = item[1] !== undefined;
      const last = blocks.at(-1);
      const parts = parseInline(item[2] ?? "");
      if (last?.kind === "list" && last.isOrdered === isOrdered) last.items.push(parts);
      else blocks.push({ kind: "list", isOrdered, items: [parts] });
    } else if (line.trim() === "") {
      endParagraph();
    } else {
      paragraph.push(line);
    }
  }
  endParagraph();
  return blocks;
}

// Code first: nothing inside it has a meaning.
const INLINE =
  /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>)\]]+)/g;

export function parseInline(text: string): InlinePart[] {
  const parts: InlinePart[] = [];
  let offset = 0;
  const add = (part: InlinePart) => part.text !== "" && parts.push(part);
  for (const match of text.matchAll(INLINE)) {
    add({ kind: "text", text: text.slice(offset, match.index) });
    offset = match.index + match[0].length;
    const [whole, code, strong, underlined, emphasis, label, target, url] = match;
    if (code !== undefined) add({ kind: "code", text: code });
    else if (strong !== undefined || underlined !== undefined)
      add({ kind: "strong", text: strong ?? underlined ?? "" });
    else if (emphasis !== undefined) add({ kind: "emphasis", text: emphasis });
    else if (url !== undefined) add({ kind: "link", text: url, href: url });
    else if (/^https?:\/\//.test(target ?? "")) add({ kind: "link", text: label ?? "", href: target });
    else add({ kind: "text", text: whole });
  }
  add({ kind: "text", text: text.slice(offset) });
  return parts;
}
