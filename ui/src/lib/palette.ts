// What the palette finds without asking the server: views, iterations, tasks and files.

import { plainLine, plural } from "./format";
import { outcomeLabel } from "./labels";
import { iterationTab, type Route } from "./router";
import type { FileHistory, IterationRow, NodeName, SearchResults, TreeColumns } from "./types";

export interface PaletteItem {
  key: string;
  kind: string;
  title: string;
  detail: string;
  route?: Route;
  go?: () => void;
}

interface PaletteSource {
  text: string;
  run: string;
  rows: IterationRow[];
  tree: TreeColumns | null;
  files: FileHistory[];
}

const ITEMS_MAX = 12;
/** After how many matches a search of the logs ends. */
export const LOG_HITS_MAX = 50;

export function paletteItems(source: PaletteSource): PaletteItem[] {
  const text = source.text.trim();
  const lower = text.toLowerCase();
  const number = /^#?(\d{1,9})$/.exec(text);
  if (number) return iterationsByNumber(source, number[1] ?? "");
  if (lower.startsWith("f:")) return files(source, lower.slice(2).trim());
  if (lower.startsWith("s:")) return iterationsByOutcome(source, lower.slice(2).trim());
  if (lower === "") return views(source, lower);
  return [
    ...views(source, lower),
    ...tasks(source, lower),
    ...files(source, lower),
    ...iterationsByText(source, lower),
  ];
}

function views({ run, rows }: PaletteSource, text: string): PaletteItem[] {
  const last = rows.at(-1);
  const failure = rows.find((row) => row.is_charged);
  const all: [string, Route | undefined][] = [
    ["Overview", { view: "overview", run }],
    ["Statistics", { view: "stats", run }],
    ["Runs", { view: "runs" }],
    ["Newest iteration", last && iterationRoute(run, last)],
    ["First failure", failure && iterationRoute(run, failure)],
  ];
  return all.flatMap(([title, route]) =>
    route && title.toLowerCase().includes(text)
      ? [{ key: `v:${title}`, kind: "view", title, detail: "", route }]
      : [],
  );
}

const iterationRoute = (run: string, row: IterationRow): Route => ({
  view: "iteration",
  run,
  iter: row.iter,
  tab: iterationTab(row),
});

const iterationItem = (run: string, row: IterationRow): PaletteItem => ({
  key: `i:${row.iter}`,
  kind: "iteration",
  title: `#${row.iter} ${plainLine(row.summary) || row.path || row.node || "repair"}`,
  detail: outcomeLabel(row.outcome).text,
  route: iterationRoute(run, row),
});

function iterationsByNumber({ run, rows }: PaletteSource, digits: string): PaletteItem[] {
  const exact = rows.filter((row) => row.iter === Number(digits));
  const starting = rows.filter((row) => row.iter !== Number(digits) && String(row.iter).startsWith(digits));
  return [...exact, ...starting].slice(0, ITEMS_MAX).map((row) => iterationItem(run, row));
}

function iterationsByOutcome({ run, rows }: PaletteSource, text: string): PaletteItem[] {
  const matches = (row: IterationRow) =>
    (text === "failed" && row.is_charged) || outcomeLabel(row.outcome).text.includes(text);
  return rows
    .filter(matches)
    .toReversed()
    .slice(0, ITEMS_MAX)
    .map((row) => iterationItem(run, row));
}

/** The newest iterations whose task, summary or findings contain the text. */
function iterationsByText({ run, rows }: PaletteSource, text: string): PaletteItem[] {
  const contains = (value: string | null) => value !== null && value.toLowerCase().includes(text);
  return rows
    .filter((row) => contains(row.path) || contains(row.summary) || row.findings.some(contains))
    .toReversed()
    .slice(0, ITEMS_MAX)
    .map((row) => iterationItem(run, row));
}

/** Tasks that the server found by their goal, without those that are listed already. */
export function foundTasks(run: string, nodes: NodeName[], listed: PaletteItem[]): PaletteItem[] {
  const known = new Set(listed.map((item) => item.key));
  return nodes
    .map((node) => ({
      key: `t:${node.id}`,
      kind: "task",
      title: node.title || node.id,
      detail: node.passes ? "passed" : "",
      route: { view: "overview" as const, run, node: node.id },
    }))
    .filter((item) => !known.has(item.key))
    .slice(0, ITEMS_MAX);
}

/** What a search of the logs did not cover; empty if it covered everything. */
export function searchLimit(found: SearchResults, rows: IterationRow[]): string {
  const withLogs = rows.filter((row) => row.has_logs).length;
  if (found.logs_searched >= withLogs) return "";
  const reason = found.logs.length >= LOG_HITS_MAX ? `${found.logs.length} matches` : "2 seconds";
  return `Stopped after ${reason}: searched the logs of the newest ${found.logs_searched} of ${withLogs} iterations.`;
}

function tasks({ run, tree }: PaletteSource, text: string): PaletteItem[] {
  if (!tree) return [];
  const items: PaletteItem[] = [];
  for (let index = 0; index < tree.id.length && items.length < ITEMS_MAX; index++) {
    const [id, title] = [tree.id[index] ?? "", tree.title[index] ?? ""];
    if (!id.toLowerCase().includes(text) && !title.toLowerCase().includes(text)) continue;
    items.push({
      key: `t:${id}`,
      kind: "task",
      title: title || id,
      detail: tree.state[index] ?? "",
      route: { view: "overview", run, node: id },
    });
  }
  return items;
}

function files({ run, files }: PaletteSource, text: string): PaletteItem[] {
  return files
    .filter((file) => file.path.toLowerCase().includes(text))
    .slice(0, ITEMS_MAX)
    .map((file) => ({
      key: `f:${file.path}`,
      kind: "file",
      title: file.path,
      detail: plural(file.touches.length, "iteration"),
      route: { view: "file", run, path: file.path },
    }));
}
