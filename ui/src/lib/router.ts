// Addresses behind the `#`: everything that can be looked at has one, and the same page works from a file.

export const TABS = ["transcript", "diff", "guard", "prompt", "output", "meta"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { view: "overview"; run?: string; node?: string }
  | { view: "iteration"; run: string; iter: number; tab: Tab; path?: string; line?: string; q?: string }
  | { view: "runs" }
  | { view: "stats"; run?: string }
  | { view: "unknown"; address: string };

const ID = /^[A-Za-z0-9._-]{1,128}$/;

/** What an address means. Nothing in it is trusted to be what it should be. */
export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const asked = new URLSearchParams(query);
  const unknown: Route = { view: "unknown", address: hash };
  if (parts.length === 0) return { view: "overview" };
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
      if (!route.run) return "#/";
      return `#/run/${route.run}${route.node ? `/node/${route.node}` : ""}`;
    case "runs":
      return "#/runs";
    case "stats":
      return route.run ? `#/run/${route.run}/stats` : "#/";
    case "unknown":
      return route.address;
    case "iteration": {
      const path = route.path ? `/${route.path.split("/").map(encodeURIComponent).join("/")}` : "";
      const tab = route.tab === "transcript" ? "" : `/${route.tab}`;
      const asked = new URLSearchParams();
      if (route.line) asked.set("l", route.line);
      if (route.q) asked.set("q", route.q);
      const query = asked.toString();
      return `#/run/${route.run}/i/${route.iter}${tab}${path}${query ? `?${query}` : ""}`;
    }
  }
}

/** Lines `120` or `120-134` of an address, counted from 1, as a range counted from 0. */
export function lineRange(text: string | undefined): [number, number] | null {
  const found = /^([0-9]{1,12})(?:-([0-9]{1,12}))?$/.exec(text ?? "");
  if (!found) return null;
  const first = Math.max(1, Number(found[1]));
  const last = Math.max(first, Number(found[2] ?? found[1]));
  return [first - 1, last - 1];
}
