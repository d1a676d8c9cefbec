// Creates the state of the page and connects it to the address bar and to the server's event stream.

import { subscribe, type ConnectionState } from "../lib/event-stream";
import { exportedRun, unpackBytes } from "../lib/export-data";
import type { ChangeEvent, RunExport } from "../lib/types";
import { Announcer } from "./announcer.svelte";
import { Clock } from "./clock.svelte";
import { Connection } from "./connection.svelte";
import { Preferences } from "./preferences.svelte";
import { RouterState } from "./router.svelte";
import { RunData } from "./run-data.svelte";
import { Toaster } from "./toaster.svelte";

export const announcer = new Announcer();
export const clock = new Clock();
export const connection = new Connection();
export const preferences = new Preferences();
export const router = new RouterState();
export const toaster = new Toaster();
export const runData = new RunData(router, clock, connection, announcer);

/** Starts reading and listening; the returned function stops. */
export function start(): () => void {
  addEventListener("hashchange", onHashChange);
  const stopClock = clock.start();
  let unsubscribe: (() => void) | undefined;
  if (!exportedRun) {
    // The first screen comes first; the stream continues from there.
    const first = runData.firstRead();
    unsubscribe = subscribeToServer(first.then(() => runData.snapshot?.server.event_id ?? ""));
    // The other views are there before they are wanted, even if the server is gone by then.
    void first.then(() => whenIdle(() => void import("../views/lazy-views").catch(() => undefined)));
  } else {
    runData.refreshAll();
    void verifyExport(exportedRun);
  }
  return () => {
    removeEventListener("hashchange", onHashChange);
    stopClock();
    unsubscribe?.();
  };
}

const IDLE_MAX_MS = 5000;

/** Runs when the first screen is drawn and nothing else is to be done. */
function whenIdle(run: () => void): void {
  if (typeof requestIdleCallback === "undefined") setTimeout(run, IDLE_MAX_MS);
  else setTimeout(() => requestIdleCallback(run, { timeout: IDLE_MAX_MS }), 500);
}

/** Verifies an exported run from the objects inside the page. */
async function verifyExport(run: RunExport): Promise<void> {
  runData.setAuditProgress(null);
  const [module, objects] = [await unpackBytes("audit"), await unpackBytes("objects")];
  const { audit, trustOf } = await import("../views/lazy-views");
  let report = null;
  try {
    if (module && objects)
      report = await audit(module, objects, (progress) => runData.setAuditProgress(progress));
  } catch {
    // A browser without WebAssembly, or a module that was changed.
  }
  runData.setAudited(report && { trust: trustOf(report, run), tip: report.tip });
}

function onHashChange(): void {
  const [trial, run] = [router.trial, runData.runId];
  router.update();
  if (router.trial !== trial) runData.reset();
  else if (router.run !== undefined && router.run !== run) runData.refreshAll();
}

function subscribeToServer(since: Promise<string>): () => void {
  const listener = {
    change(change: ChangeEvent) {
      connection.contact();
      runData.apply(change);
    },
    connection(state: ConnectionState) {
      connection.set(state);
    },
    heartbeat(serverNowMs: number) {
      connection.set("live");
      clock.sync(serverNowMs);
    },
  };
  return subscribe(listener, since);
}
