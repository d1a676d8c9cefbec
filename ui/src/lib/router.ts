// Routes and their addresses. An address is everything after the `#`, so that an exported page works from a file.

import { homePrefix, isTrial, linkPrefix, type Scope, type Trial } from "./scope";
import type { LogLine, IterationRow } from "./types";

export const TABS = ["transcript", "diff", "guard", "prompt", "output", "errors", "meta"] as const;
export type Tab = (typeof TABS)[number];

/** The part of the overview that a narrow screen shows. */
export type OverviewPane = "now" | "tree" | "iterations";

export interface IterationRoute {
  view: "iteration";
  run: string;
  iter: number;
  tab: Tab;
  path?: string;
  /** What a diff shows besides the iteration itself: everything since the start of the run. */
  since?: "run";
  line?: string;
  q?: string;
}

/** The overview, with the filters of its tree and of its list of iterations. */
export interface OverviewRoute {
  view: "overview";
  run?: string;
  node?: string;
  /** The text that the tree is filtered by. */
  q?: string;
  /** `open` or `failing`: the tasks that the tree shows. */
  show?: string;
  /** The outcome that the list of iterations shows. */
  outcome?: string;
  /** What a narrow screen shows; without it, what happens now. */
  pane?: OverviewPane;
  /** What the middle shows while a session runs: its transcript, or all iterations. */
  middle?: "live" | "all";
  /** The iterations that the timeline shows: `3-9`. */
  zoom?: string;
}

export type Route =
  | OverviewRoute
  | { view: "file"; run: string; path: string; iter?: number }
  | { view: "versus"; run: string; iter: number; other: number }
  | IterationRoute
  | { view: "runs" }
  | { view: "stats"; run?: string }
  | { view: "results"; of?: string }
  | { view: "compare"; base?: string; new?: string }
  | { view: "unknown"; address: string };

const NUMBER = /^[0-9]{1,9}$/;
const ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Splits an address into the trial it names, the other path segments and the query. */
function split(hash: string): { trial?: Trial; segments: string[]; query: URLSearchParams } {
  const [path = "", text = ""] = hash.replace(/^#/, "").split("?", 2);
  const segments = path.split("/").filter(Boolean).map(decode);
  const query = new URLSearchParams(text);
  const [first, name = "", id = ""] = segments;
  const trial = { case: name, id };
  return first === "trial" && isTrial(trial)
    ? { trial, segments: segments.slice(3), query }
    : { segments, query };
}

export function parseTrial(hash: string): Trial | undefined {
  return split(hash).trial;
}

/** Parses an address. Anything may be typed into the address bar, so every segment is validated. */
export function parseRoute(hash: string): Route {
  const { trial, segments, query } = split(hash);
  const [first, run, section, id, tab = "transcript", ...path] = segments;
  const unknown: Route = { view: "unknown", address: hash };
  const filters = overviewFilters(query);
  if (first === undefined) return { view: "overview", ...filters };
  if (!trial && first === "results" && segments.length <= 2) return { view: "results", of: run };
  if (!trial && first === "compare" && segments.length === 1)
    return { view: "compare", base: query.get("base") ?? undefined, new: query.get("new") ?? undefined };
  if (first === "runs" && segments.length === 1) return { view: "runs" };
  if (first !== "run" || !run || !ID.test(run)) return unknown;
  if (section === undefined) return { view: "overview", run, ...filters };
  if (section === "stats" && segments.length === 3) return { view: "stats", run };
  if (section === "node" && id && ID.test(id)) return { view: "overview", run, node: id, ...filters };
  if (section === "file" && id) {
    const chosen = query.get("i") ?? "";
    const iter = NUMBER.test(chosen) ? Number(chosen) : undefined;
    return { view: "file", run, path: segments.slice(3).join("/"), ...(iter ? { iter } : {}) };
  }
  if (section !== "i" || !id || !NUMBER.test(id)) return unknown;
  const iter = Number(id);
  const [other = ""] = path;
  if (iter >= 1 && tab === "versus" && NUMBER.test(other))
    return { view: "versus", run, iter, other: Number(other) };
  if (iter < 1 || !isTab(tab)) return unknown;
  return {
    view: "iteration",
    run,
    iter,
    tab,
    path: tab === "diff" && path.length > 0 ? path.join("/") : undefined,
    since: tab === "diff" && query.get("since") === "run" ? "run" : undefined,
    line: query.get("l") ?? undefined,
    q: query.get("q") ?? undefined,
  };
}

function overviewFilters(query: URLSearchParams): Omit<OverviewRoute, "view"> {
  const get = (name: string) => query.get(name) ?? undefined;
  const [pane, middle, zoom] = [get("pane"), get("middle"), get("zoom")];
  return {
    q: get("q"),
    show: get("show"),
    outcome: get("outcome"),
    ...(pane === "tree" || pane === "iterations" ? { pane } : {}),
    ...(middle === "live" || middle === "all" ? { middle } : {}),
    ...(lineRange(zoom) ? { zoom } : {}),
  };
}

function isTab(name: string): name is Tab {
  return (TABS as readonly string[]).includes(name);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function address(scope: Scope, route: Route): string {
  const prefix = linkPrefix(scope);
  switch (route.view) {
    case "overview":
      return (
        overviewPath(scope, route) +
        queryString({
          q: route.q,
          show: route.show,
          outcome: route.outcome,
          pane: route.pane === "now" ? undefined : route.pane,
          middle: route.middle,
          zoom: route.zoom,
        })
      );
    case "file":
      return (
        `${prefix}/run/${route.run}/file/${route.path.split("/").map(encodeURIComponent).join("/")}` +
        queryString({ i: route.iter?.toString() })
      );
    case "versus":
      return `${prefix}/run/${route.run}/i/${route.iter}/versus/${route.other}`;
    case "runs":
      return `${prefix}/runs`;
    case "stats":
      return route.run ? `${prefix}/run/${route.run}/stats` : `${prefix}/`;
    case "results":
      return route.of ? `#/results/${encodeURIComponent(route.of)}` : "#/";
    case "compare":
      return `#/compare${queryString({ base: route.base, new: route.new })}`;
    case "unknown":
      return route.address;
    case "iteration": {
      const path = route.path ? `/${route.path.split("/").map(encodeURIComponent).join("/")}` : "";
      const tab = route.tab === "transcript" ? "" : `/${route.tab}`;
      return `${prefix}/run/${route.run}/i/${route.iter}${tab}${path}${queryString({ since: route.since, l: route.line, q: route.q })}`;
    }
  }
}

function overviewPath(scope: Scope, { run, node }: OverviewRoute): string {
  if (!run) return `${homePrefix(scope)}/`;
  return `${linkPrefix(scope)}/run/${run}${node ? `/node/${node}` : ""}`;
}

function queryString(values: Record<string, string | undefined>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value) query.set(key, value);
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** Parses lines `120` or `120-134`, counted from 1, into a range counted from 0. */
export function lineRange(text: string | undefined): [number, number] | null {
  const match = /^([0-9]{1,12})(?:-([0-9]{1,12}))?$/.exec(text ?? "");
  if (!match) return null;
  const first = Math.max(1, Number(match[1]));
  const last = Math.max(first, Number(match[2] ?? match[1]));
  return [first - 1, last - 1];
}

/** The tab to open first: the guard's log if the guard failed. */
export function iterationTab(row: Pick<IterationRow, "guard">): Tab {
  return row.guard === "fail" ? "guard" : "transcript";
}

/** The log line that shows why a run stopped. */
export function evidenceRoute(run: string, evidence: LogLine, text?: string): IterationRoute {
  if (evidence.log === "transcript")
    return { view: "iteration", run, iter: evidence.iter, tab: "transcript", q: text };
  const tabs: Record<string, Tab> = { guard: "guard", stderr: "errors" };
  const tab = tabs[evidence.log] ?? "output";
  return { view: "iteration", run, iter: evidence.iter, tab, line: String(evidence.line + 1) };
}
