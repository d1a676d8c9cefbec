// Splits a line of source code into tokens. It knows what most languages share (comments, strings, numbers, keywords), needs
// no grammar per language, and works on one line at a time, which is all that a diff has.

export type TokenKind = "plain" | "comment" | "string" | "number" | "keyword" | "type";

export interface CodeToken {
  kind: TokenKind;
  text: string;
}

const KEYWORDS = new Set(
  (
    "abstract and as assert async await begin bool boolean break case catch char class const continue crate def default " +
    "defer del delete do double elif else elsif end enum except export extends extern false final finally float fn for " +
    "foreach from func function global go goto if impl implements import in include int interface is lambda let long loop " +
    "match mod module move mut namespace new nil none None not null or override package pass private protected pub public " +
    "raise readonly ref require return self Self short static str string struct super switch template then this throw " +
    "throws trait true True False try type typedef typeof undefined union unless unsafe unsigned use using val var virtual " +
    "void volatile when where while with yield"
  ).split(" "),
);

const HASH_COMMENTS =
  /\.(py|rb|sh|bash|zsh|toml|yaml|yml|mk|pl|r|just|nix|cfg|ini|conf)$|(^|\/)(justfile|makefile|dockerfile)$/i;
const PLAIN_FILES = /\.(md|txt|log|lock|csv|svg)$/i;

const STRING = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`?/;
const WORD = /[A-Za-z_$][\w$]*/;
const NUMBER = /\b\d[\w.]*/;

const patterns = (comment: string) =>
  new RegExp(`(${comment})|(${STRING.source})|(${NUMBER.source})|(${WORD.source})`, "g");
const SLASH_TOKENS = patterns("\\/\\/.*$|\\/\\*.*?(?:\\*\\/|$)|^\\s*\\*\\s.*$|<!--.*?(?:-->|$)");
const HASH_TOKENS = patterns("#.*$");

const LINE_CHARS_MAX = 2000;

/** The tokens of a line; one plain token if the file is not source code, or the line is very long. */
export function tokenize(line: string, path: string): CodeToken[] {
  if (line.length > LINE_CHARS_MAX || PLAIN_FILES.test(path)) return [{ kind: "plain", text: line }];
  const tokens: CodeToken[] = [];
  let offset = 0;
  for (const match of line.matchAll(HASH_COMMENTS.test(path) ? HASH_TOKENS : SLASH_TOKENS)) {
    const kind = kindOf(match);
    if (kind === "plain") continue;
    if (match.index > offset) tokens.push({ kind: "plain", text: line.slice(offset, match.index) });
    tokens.push({ kind, text: match[0] });
    offset = match.index + match[0].length;
  }
  if (offset < line.length) tokens.push({ kind: "plain", text: line.slice(offset) });
  return tokens;
}

function kindOf([text, comment, string, number]: RegExpExecArray | RegExpMatchArray): TokenKind {
  if (comment !== undefined) return "comment";
  if (string !== undefined) return "string";
  if (number !== undefined) return "number";
  if (KEYWORDS.has(text)) return "keyword";
  return /^[A-Z]\w*[a-z]/.test(text) ? "type" : "plain";
}

/** A part of a changed line: whether the other line has it too. */
export interface WordPart {
  text: string;
  isChanged: boolean;
}

/** What differs between two versions of a line: everything between their common start and their common end. */
export function changedWords(before: string, after: string): { before: WordPart[]; after: WordPart[] } {
  const [left, right] = [words(before), words(after)];
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let end = 0;
  while (
    end < left.length - start &&
    end < right.length - start &&
    left[left.length - 1 - end] === right[right.length - 1 - end]
  )
    end++;
  const parts = (all: string[]) =>
    [
      { text: all.slice(0, start).join(""), isChanged: false },
      { text: all.slice(start, all.length - end).join(""), isChanged: true },
      { text: all.slice(all.length - end).join(""), isChanged: false },
    ].filter((part) => part.text !== "");
  return { before: parts(left), after: parts(right) };
}

function words(line: string): string[] {
  return line.match(/\w+|\s+|[^\w\s]/g) ?? [];
}

/** The tokens of a line, split where the changed part starts and ends. */
export interface MarkedToken extends CodeToken {
  isChanged: boolean;
}

export function markTokens(tokens: CodeToken[], parts: WordPart[]): MarkedToken[] {
  const marked: MarkedToken[] = [];
  let [part, used] = [0, 0];
  for (const token of tokens) {
    let text = token.text;
    while (text !== "") {
      const current = parts[part];
      const room = current ? current.text.length - used : text.length;
      const piece = text.slice(0, room);
      marked.push({ kind: token.kind, text: piece, isChanged: current?.isChanged ?? false });
      text = text.slice(piece.length);
      used += piece.length;
      if (current && used >= current.text.length) [part, used] = [part + 1, 0];
      if (piece === "") break;
    }
  }
  return marked;
}
