import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Scope } from "../lib/scope";
import type { PageSnapshot } from "../lib/types";
import { Announcer } from "./announcer.svelte";
import { Clock } from "./clock.svelte";
import { Connection } from "./connection.svelte";
import type { RouterState } from "./router.svelte";
import { RunData } from "./run-data.svelte";

const answers: Record<string, unknown> = {};
const requests: string[] = [];
const snapshot = (state: string, shows = "repository") =>
  ({
    server: { now_ms: 0, build: "1", project: "r.codex.t02.a1", shows },
    run: { id: "demo" },
    state,
    headline: "…",
  }) as PageSnapshot;

/** The first screen as the server sends it: one part on each line. */
function overview(prefix: string): Response {
  const snapshot = answers[`${prefix}/api/snapshot`] as PageSnapshot | null | undefined;
  if (snapshot === undefined) throw new TypeError("Failed to fetch");
  if (snapshot === null) return new Response("no", { status: 404 });
  const isRun = snapshot.server.shows === "repository";
  const parts = [
    { snapshot },
    ...(isRun ? [{ iterations: answers[`${prefix}/api/iterations`] }] : []),
    ...(isRun ? [{ tree: answers[`${prefix}/api/tree?slim=1`] }] : []),
    ...(isRun ? [{ task: { id: "root" } }] : []),
  ];
  return new Response(parts.map((part) => JSON.stringify(part)).join("\n"));
}

function setUp(scope: Scope = {}) {
  const router = {
    scope,
    route: { view: "overview" },
    run: undefined,
    get trial() {
      return this.scope.trial;
    },
    resolveLatest: vi.fn(),
  };
  const [connection, announcer] = [new Connection(), new Announcer()];
  const data = new RunData(router as unknown as RouterState, new Clock(), connection, announcer);
  const settle = () => vi.waitFor(() => expect(data.tree).not.toBeNull());
  return { data, router, connection, announcer, settle };
}

beforeEach(() => {
  requests.length = 0;
  for (const prefix of ["", "/trial/a/latest"]) {
    answers[`${prefix}/api/snapshot`] = snapshot("running");
    answers[`${prefix}/api/iterations`] = { iterations: [{ iter: 1, outcome: null }] };
    answers[`${prefix}/api/tree?slim=1`] = { id: ["root"] };
  }
  vi.stubGlobal("fetch", async (path: string) => {
    requests.push(path);
    if (path.endsWith("/api/overview")) return overview(path.slice(0, -"/api/overview".length));
    const answer = answers[path];
    if (answer === undefined) throw new TypeError("Failed to fetch");
    return answer === null ? new Response("no", { status: 404 }) : Response.json(answer);
  });
});

describe("run data", () => {
  it("reads the first screen in one request", async () => {
    const { data, settle } = setUp();
    await data.firstRead();
    await settle();
    expect(requests).toEqual(["/api/overview"]);
    expect([data.isLive, data.runId, data.rows.length]).toEqual([true, "demo", 1]);
  });

  it("reads neither iterations nor a tree of an evaluation as a whole", async () => {
    answers["/api/snapshot"] = snapshot("idle", "evaluation");
    const { data } = setUp();
    data.refreshAll();
    await vi.waitFor(() => expect(data.showsResults).toBe(true));
    await new Promise((done) => setTimeout(done));
    expect(requests).toEqual(["/api/overview"]);
  });

  it("reads what the first answer lacks", async () => {
    const { data } = setUp();
    answers["/api/tree?slim=1"] = null;
    data.refreshAll();
    await vi.waitFor(() => expect(data.hasReadTree).toBe(true));
    expect(requests).toEqual(["/api/overview", "/api/tree?slim=1"]);
    expect([data.tree, data.rows.length, data.hasReadFirst]).toEqual([null, 1, true]);
  });

  it("gives the task of the first answer once, and not after a change", async () => {
    const { data, settle } = setUp();
    data.refreshAll();
    await settle();
    await vi.waitFor(() => expect(data.hasReadFirst).toBe(true));
    expect(data.takeTask("root")?.id).toBe("root");
    expect(data.takeTask("root")).toBeUndefined();
    data.reset();
    await vi.waitFor(() => expect(data.hasReadFirst).toBe(true));
    data.apply({ event: "run_changed" });
    expect(data.takeTask("root")).toBeUndefined();
  });

  it("reads the lists again only if a summary file changes", async () => {
    const { data, settle } = setUp();
    data.refreshAll();
    await settle();
    requests.length = 0;
    const change = (name: string, bytes: number) =>
      data.apply({ event: "iteration_changed", run: "demo", iter: 1, files: [{ name, bytes }] });
    change("guard.log", 10);
    expect(data.revisionOf(1)).toBe(1);
    change("meta.json", 10);
    await vi.waitFor(() => expect(requests).toEqual(["/api/snapshot", "/api/iterations"]));
    change("meta.json", 10);
    expect(data.revisionOf(1)).toBe(3);
    await new Promise((done) => setTimeout(done));
    expect(requests.length).toBe(2);
  });

  it("of a trial ignores the changes of other trials", async () => {
    const { data, router, settle } = setUp({ trial: { case: "a", id: "latest" } });
    data.refreshAll();
    await settle();
    expect(router.resolveLatest).toHaveBeenCalledWith("r.codex.t02.a1");
    requests.length = 0;
    const change = (name: string, is_latest: boolean) =>
      data.apply({
        event: "trial_changed",
        case: name,
        id: "x",
        is_latest,
        change: { event: "run_changed" },
      });
    change("b", true);
    change("a", false);
    await new Promise((done) => setTimeout(done));
    expect(requests).toEqual([]);
    change("a", true);
    await vi.waitFor(() => expect(requests[0]).toBe("/trial/a/latest/api/snapshot"));
  });

  it("announces a new state and the outcome of the last iteration", async () => {
    const { data, announcer, settle } = setUp();
    data.refreshAll();
    await settle();
    answers["/api/iterations"] = { iterations: [{ iter: 1, outcome: "guard_failed" }] };
    data.apply({ event: "run_changed" });
    await vi.waitFor(() => expect(announcer.message).toBe("Iteration 1: guard failed"));
    answers["/api/snapshot"] = snapshot("complete");
    data.apply({ event: "run_changed" });
    await vi.waitFor(() => expect(announcer.message).toBe("The run is complete: …"));
  });

  it.each(["complete", "stopped", "paused", "crashed"])("verifies a %s run", async (state) => {
    const { data } = setUp();
    const run = { id: "demo", commit: "c1" };
    answers["/api/snapshot"] = { ...snapshot(state), run, trust: null, progress: { iterations: 2 } };
    answers["/api/verify"] = { verdict: "violated" };
    data.refreshAll();
    await vi.waitFor(() => expect(data.label?.text).toBe("untrusted"));
  });

  it("does not verify a live run", async () => {
    const { data, settle } = setUp();
    const run = { id: "demo", commit: "c1" };
    answers["/api/snapshot"] = { ...snapshot("running"), run, trust: null, progress: { iterations: 2 } };
    data.refreshAll();
    await settle();
    await new Promise((done) => setTimeout(done));
    expect(requests).not.toContain("/api/verify");
  });

  it("distinguishes an error of the server from a lost connection", async () => {
    const { data, connection } = setUp();
    answers["/api/snapshot"] = null;
    data.refreshAll();
    await vi.waitFor(() => expect(data.error).toBe("the server answered 404"));
    expect(connection.state).toBe("connecting");
    delete answers["/api/snapshot"];
    data.refreshAll();
    await vi.waitFor(() => expect(connection.state).toBe("lost"));
  });
});
