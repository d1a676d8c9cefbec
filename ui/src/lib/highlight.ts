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

/** More pairs of words than this are not compared one by one. */
const WORD_PAIRS_MAX = 40_000;

/** The words of both versions of a line, and whether the other version has them, too. */
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
  const middle = commonWords(left.slice(start, left.length - end), right.slice(start, right.length - end));
  const parts = (all: string[], inMiddle: boolean[]) => {
    const merged: WordPart[] = [];
    all.forEach((text, index) => {
      const isChanged = index >= start && index < all.length - end && !inMiddle[index - start];
      const last = merged.at(-1);
      if (last && last.isChanged === isChanged) last.text += text;
      else merged.push({ text, isChanged });
    });
    return merged;
  };
  return { before: parts(left, middle.left), after: parts(right, middle.right) };
}

/** Which words belong to the longest common subsequence. Lines that have little in common count as replaced. */
function commonWords(left: string[], right: string[]): { left: boolean[]; right: boolean[] } {
  const common = { left: left.map(() => false), right: right.map(() => false) };
  if (left.length * right.length > WORD_PAIRS_MAX) return common;
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        left[i] === right[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const words = (all: string[]) => all.filter((word) => /\w/.test(word)).length;
  let shared = 0;
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) {
      common.left[i] = common.right[j] = true;
      if (/\w/.test(left[i] ?? "")) shared++;
      i++;
      j++;
    } else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  const isSimilar = shared * 4 >= Math.max(words(left), words(right));
  return isSimilar ? common : { left: left.map(() => false), right: right.map(() => false) };
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
