// Addresses behind the `#`: everything that can be looked at has one, and the same page works from a file.

export const TABS = ["transcript", "diff", "guard", "prompt", "output", "meta"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { view: "overview"; run?: string; node?: string }
  | { view: "iteration"; run: string; iter: number; tab: Tab; path?: string; line?: string; q?: string }
  | { view: "runs" }
  | { view: "stats"; run?: string }
  | { view: "results"; of?: string }
  | { view: "compare"; base?: string; new?: string }
  | { view: "unknown"; address: string };

/** A trial of an evaluation, whose run is looked at. */
export interface Trial {
  case: string;
  id: string;
}

const ID = /^[A-Za-z0-9._-]{1,128}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;

/** The trial that an address is about, and the rest of the address. */
function split(hash: string): { trial?: Trial; parts: string[]; asked: URLSearchParams } {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const asked = new URLSearchParams(query);
  const [first, name = "", id = ""] = parts;
  if (first !== "trial" || !NAME.test(name) || !NAME.test(id)) return { parts, asked };
  return { trial: { case: name, id }, parts: parts.slice(3), asked };
}

/** The trial that an address is about. */
export function trialOf(hash: string): Trial | undefined {
  return split(hash).trial;
}

/** Where the addresses of what is looked at begin: a trial's run is a run like any other, in a place of its own. */
let within = "#";
let home = "#";

/** Whoever follows the newest trial and opens something of it stays with that one, whichever is the newest by then. */
export function lookWithin(trial: Trial | undefined, now = trial): void {
  home = trial ? trialAddress(trial) : "#";
  within = now ? trialAddress(now) : "#";
}

/** The address of a trial. */
export function trialAddress(trial: Trial): string {
  return `#/trial/${trial.case}/${trial.id}`;
}

/** What an address means. Nothing in it is trusted to be what it should be. */
export function parse(hash: string): Route {
  const { trial, parts, asked } = split(hash);
  const unknown: Route = { view: "unknown", address: hash };
  if (parts.length === 0) return { view: "overview" };
  if (!trial && parts[0] === "results" && parts.length <= 2) return { view: "results", of: parts[1] };
  if (!trial && parts[0] === "compare" && parts.length === 1)
    return { view: "compare", base: asked.get("base") ?? undefined, new: asked.get("new") ?? undefined };
  if (parts[0] === "runs" && parts.length === 1) return { view: "runs" };
  if (parts[0] !== "run" || !parts[1] || !ID.test(parts[1])) return unknown;
  const run = parts[1];
  if (parts.length === 2) return { view: "overview", run };
  if (parts[2] === "stats" && parts.length === 3) return { view: "stats", run };
  if (parts[2] === "node" && parts[3] && ID.test(parts[3])) return { view: "overview", run, node: parts[3] };
  if (parts[2] !== "i" || !parts[3] || !/^[0-9]{1,9}$/.test(parts[3])) return unknown;
  const iter = Number(parts[3]);
  const tab = (parts[4] ?? "transcript") as Tab;
  if (iter < 1 || !TABS.includes(tab)) return unknown;
  return {
    view: "iteration",
    run,
    iter,
    tab,
    path: tab === "diff" && parts.length > 5 ? parts.slice(5).join("/") : undefined,
    line: asked.get("l") ?? undefined,
    q: asked.get("q") ?? undefined,
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of something. */
export function address(route: Route): string {
  switch (route.view) {
    case "overview":
      if (!route.run) return `${home}/`;
      return `${within}/run/${route.run}${route.node ? `/node/${route.node}` : ""}`;
    case "runs":
      return `${within}/runs`;
    case "stats":
      return route.run ? `${within}/run/${route.run}/stats` : `${within}/`;
    case "results":
      return route.of ? `#/results/${encodeURIComponent(route.of)}` : "#/";
    case "compare":
      return `#/compare${asked({ base: route.base, new: route.new })}`;
    case "unknown":
      return route.address;
    case "iteration": {
      const path = route.path ? `/${route.path.split("/").map(encodeURIComponent).join("/")}` : "";
      const tab = route.tab === "transcript" ? "" : `/${route.tab}`;
      return `${within}/run/${route.run}/i/${route.iter}${tab}${path}${asked({ l: route.line, q: route.q })}`;
    }
  }
}

function asked(values: Record<string, string | undefined>): string {
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) if (value) asked.set(key, value);
  const query = asked.toString();
  return query ? `?${query}` : "";
}

/** Lines `120` or `120-134` of an address, counted from 1, as a range counted from 0. */
export function lineRange(text: string | undefined): [number, number] | null {
  const found = /^([0-9]{1,12})(?:-([0-9]{1,12}))?$/.exec(text ?? "");
  if (!found) return null;
  const first = Math.max(1, Number(found[1]));
  const last = Math.max(first, Number(found[2] ?? found[1]));
  return [first - 1, last - 1];
}
