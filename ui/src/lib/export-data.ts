// A page that was opened from a file has its run in it: what it would ask a server for, it finds there.

import type { Hit, LogHits, LogPage, WholeIteration, WholeLog, WholeRun } from "./types";

/** The run in this page, if there is one. */
export const kept: WholeRun | null = find();

function find(): WholeRun | null {
  const place = typeof document === "undefined" ? null : document.getElementById("run");
  return place?.textContent ? (JSON.parse(place.textContent) as WholeRun) : null;
}

const HITS_MAX = 1000;
const COLOURS = /\u001b\[[0-9;]*m/g;

/** What a server would answer; nothing where the run does not hold it. */
export function answerFrom(run: WholeRun, address: string): unknown {
  const url = new URL(address, "http://export-data");
  const parts = url.pathname.split("/").slice(2).map(decodeURIComponent);
  const [what, first, second, ...rest] = parts;
  switch (what) {
    case "snapshot":
      return run.snapshot;
    case "runs":
      return run.runs;
    case "verify":
      return run.verdict;
    case "tree":
      return first === undefined ? (run.tree ?? undefined) : run.nodes[first];
    case "iterations": {
      if (first === undefined) return run.iterations;
      const iteration = run.details[Number(second)];
      return iteration && ofIteration(iteration, rest, url.searchParams);
    }
  }
  return undefined;
}

function ofIteration(iteration: WholeIteration, rest: string[], asked: URLSearchParams): unknown {
  const [what, name, how] = rest;
  if (what === undefined) return iteration.detail;
  if (what === "diff") {
    if (name === undefined) return iteration.diff ?? undefined;
    return iteration.patches[asked.get("path") ?? ""];
  }
  const log = what === "log" && name !== undefined ? iteration.logs[name] : undefined;
  if (!log) return undefined;
  if (how === "errors") return log.errors;
  if (how === "search") return search(log, asked.get("q") ?? "", asked.has("case"));
  return page(log, Number(asked.get("line") ?? 0), Number(asked.get("count") ?? 2000));
}

function page(log: WholeLog, from: number, count: number): LogPage {
  const lines = log.lines.slice(from, from + count);
  return { total: log.lines.length, bytes: log.bytes, from, lines, cut: [], is_open: false };
}

function search(log: WholeLog, text: string, byCase: boolean): LogHits {
  const plain = (line: string) => {
    const bare = line.replaceAll(COLOURS, "");
    return byCase ? bare : bare.toLowerCase();
  };
  const wanted = byCase ? text : text.toLowerCase();
  const hits: Hit[] = [];
  let total = 0;
  log.lines.forEach((line, at) => {
    if (!plain(line).includes(wanted)) return;
    total++;
    if (hits.length < HITS_MAX) hits.push({ line: at, text: line.replaceAll(COLOURS, "") });
  });
  return { total, searched: log.lines.length, hits };
}
