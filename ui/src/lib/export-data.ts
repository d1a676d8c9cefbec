// The data of an exported page. `runner export html` embeds a whole run as JSON; this module answers API requests from
// it as the server would.

import type {
  LogHit,
  LogHits,
  LogLine,
  LogPage,
  IterationExport,
  LogExport,
  RunExport,
  SearchResults,
} from "./types";

/** The run embedded in this page; null if a server answers. It is set before the page starts. */
export let exportedRun: RunExport | null = null;

/** Reads the embedded run, if there is one. */
export async function readEmbeddedRun(): Promise<void> {
  exportedRun = (await unpackJson("run")) as RunExport | null;
}

/** Reads an element of the exported page: compressed, in base 64. Null if there is no such element. */
async function unpack(id: string): Promise<Response | null> {
  const text = typeof document === "undefined" ? null : document.getElementById(id)?.textContent;
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const stream = new Blob([bytes]).stream();
  return new Response(isCompressed ? stream.pipeThrough(new DecompressionStream("gzip")) : stream);
}

async function unpackJson(id: string): Promise<unknown> {
  return (await unpack(id))?.json() ?? null;
}

/** The bytes of an element; null if there is no such element, or if they cannot be unpacked. */
export async function unpackBytes(id: string): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    const response = await unpack(id);
    return response && new Uint8Array(await response.arrayBuffer());
  } catch {
    return null;
  }
}

const ITERATIONS_KEPT = 8;
const iterations = new Map<number, Promise<IterationExport | null>>();

/** An iteration of the export. Only the last few stay unpacked. */
function iterationOf(run: RunExport, iter: number): Promise<IterationExport | null> {
  const inline = run.details[iter];
  if (inline) return Promise.resolve(inline);
  const known = iterations.get(iter) ?? (unpackJson(`iteration-${iter}`) as Promise<IterationExport | null>);
  iterations.delete(iter);
  iterations.set(iter, known);
  const oldest = iterations.keys().next().value;
  if (iterations.size > ITERATIONS_KEPT && oldest !== undefined) iterations.delete(oldest);
  return known;
}

const HITS_MAX = 1000;
const COLORS = /\u001b\[[0-9;]*m/g;

/** What the server would answer; undefined if the export does not include it. */
export async function answerFromExport(run: RunExport, path: string): Promise<unknown> {
  const url = new URL(path, "http://export");
  const segments = url.pathname.split("/").slice(2).map(decodeURIComponent);
  const [endpoint, first, second, ...rest] = segments;
  switch (endpoint) {
    case "snapshot":
      return run.snapshot;
    case "runs":
      return run.runs;
    case "verify":
      return run.verify.result;
    case "files":
      return run.files;
    case "search":
      return searchExport(run, url.searchParams.get("q") ?? "");
    case "tree":
      return first === undefined ? (run.tree ?? undefined) : run.nodes[first];
    case "iterations": {
      if (first === undefined) return run.iterations;
      const iteration = await iterationOf(run, Number(second));
      return iteration ? answerFromIteration(iteration, rest, url.searchParams) : undefined;
    }
  }
  return undefined;
}

function answerFromIteration(iteration: IterationExport, rest: string[], query: URLSearchParams): unknown {
  const [part, name, operation] = rest;
  if (part === undefined) return iteration.detail;
  if (part === "diff") {
    if (name === undefined) return iteration.diff ?? undefined;
    return iteration.patches[query.get("path") ?? ""];
  }
  const log = part === "log" && name !== undefined ? iteration.logs[name] : undefined;
  if (!log) return undefined;
  if (operation === "errors") return log.errors;
  if (operation === "groups") return log.groups;
  if (operation === "search") return searchLog(log, query.get("q") ?? "", query.has("case"));
  return logPage(log, Number(query.get("line") ?? 0), Number(query.get("count") ?? 2000));
}

const SEARCH_HITS_MAX = 50;
const SEARCH_HITS_PER_LOG = 5;
const SEARCH_MS_MAX = 2000;
/** The logs that a search covers, as on the server. The output of an agent with events is its transcript. */
const SEARCHED_LOGS = ["stream", "guard", "stderr", "agent"];

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** The first text in a JSON value that contains the wanted one, in lower case. */
function textWith(value: unknown, wanted: string): string | undefined {
  if (typeof value === "string") return value.toLowerCase().includes(wanted) ? value : undefined;
  const parts = typeof value === "object" && value !== null ? Object.values(value) : [];
  for (const part of parts) {
    const found = textWith(part, wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Tasks by their goal, and lines of logs, of the newest iterations first. The page finds the rest by itself. */
async function searchExport(run: RunExport, text: string): Promise<SearchResults> {
  const wanted = text.toLowerCase();
  const nodes = Object.values(run.nodes).filter((node) =>
    [node.id, node.title, node.goal, ...node.acceptance].some((part) => part.toLowerCase().includes(wanted)),
  );
  const logs: LogLine[] = [];
  let searched = 0;
  const started = performance.now();
  for (const { iter, has_logs } of run.iterations.iterations.toReversed()) {
    if (logs.length >= SEARCH_HITS_MAX || performance.now() - started > SEARCH_MS_MAX) break;
    if (!has_logs) continue;
    const iteration = await iterationOf(run, iter);
    searched++;
    for (const name of SEARCHED_LOGS) {
      const log = iteration?.logs[name];
      if (!log || (name === "agent" && iteration.logs.stream)) continue;
      const hits = searchLog(log, text, false).hits.slice(0, SEARCH_HITS_PER_LOG);
      for (const { line, text } of hits) {
        if (name !== "stream") logs.push({ iter, log: name, line, text });
        else logs.push({ iter, log: "transcript", line, text: textWith(parsed(text), wanted) ?? text });
      }
    }
  }
  return {
    nodes_total: nodes.length,
    nodes: nodes.slice(0, SEARCH_HITS_MAX).map(({ id, title, passes }) => ({ id, title, passes })),
    iterations_total: 0,
    iterations: [],
    files_total: 0,
    files: [],
    logs: logs.slice(0, SEARCH_HITS_MAX),
    logs_searched: searched,
  };
}

function logPage(log: LogExport, from: number, count: number): LogPage {
  const lines = log.lines.slice(from, from + count);
  return { total: log.lines.length, bytes: log.bytes, from, lines, cut: [], is_open: false };
}

function searchLog(log: LogExport, text: string, isCaseSensitive: boolean): LogHits {
  const fold = (value: string) => (isCaseSensitive ? value : value.toLowerCase());
  const wanted = fold(text);
  const hits: LogHit[] = [];
  let total = 0;
  log.lines.forEach((line, index) => {
    const plain = line.replaceAll(COLORS, "");
    if (!fold(plain).includes(wanted)) return;
    total++;
    if (hits.length < HITS_MAX) hits.push({ line: index, text: plain });
  });
  return { total, searched: log.lines.length, hits };
}
