// The actions that every view has: navigation, copying and the theme.

import type { ActionHandlers } from "../lib/keys";
import { evidenceRoute } from "../lib/router";
import { preferences, router, runData } from "./store";

export function pageActions(showHelp: () => void): ActionHandlers {
  return {
    help: showHelp,
    theme: () => preferences.cycleTheme(),
    results: goToResults,
    overview: () => router.go({ view: "overview", run: runData.runId }),
    runs: () => router.go({ view: "runs" }),
    stats: () => router.go({ view: "stats", run: runData.runId }),
    current: () => void goToLastIteration(),
    previous: leaveForLastIteration,
    next: leaveForLastIteration,
    evidence: goToEvidence,
    "copy-link": () => copy(location.href),
    "copy-command": () => copy(equivalentCommand()),
  };
}

/** Escape leads to the overview, and from the overview of a trial to the results. */
export function goBack(): boolean {
  if (router.route.view !== "overview") router.go({ view: "overview", run: router.run });
  else if (router.trial) router.go({ view: "results" });
  else return false;
  return true;
}

function goToLastIteration(): boolean {
  const [run, last] = [runData.runId, runData.rows.at(-1)];
  if (!run || !last) return false;
  router.go({ view: "iteration", run, iter: last.iter, tab: "transcript" });
  return true;
}

/** Outside of the iteration view, both keys start at the last iteration. */
function leaveForLastIteration(): boolean {
  return router.route.view !== "iteration" && goToLastIteration();
}

function goToResults(): boolean {
  if (runData.hasResults) router.go({ view: "results" });
  return runData.hasResults;
}

function goToEvidence(): void {
  const [run, evidence] = [runData.runId, runData.snapshot?.evidence?.line];
  if (run && evidence) router.go(evidenceRoute(run, evidence));
}

function copy(text: string): void {
  void navigator.clipboard?.writeText(text);
}

/** The terminal command that shows the same as this view. */
function equivalentCommand(): string {
  const route = router.route;
  if (route.view !== "iteration") return "runner status";
  const commit = runData.rows.find((row) => row.iter === route.iter)?.commit;
  const folder = `.runner/iterations/${route.run}/${String(route.iter).padStart(4, "0")}`;
  if (route.tab === "guard") return `less -R ${folder}/guard.log`;
  if (route.tab === "prompt") return `less ${folder}/prompt.md`;
  return commit ? `git show ${commit.slice(0, 12)}` : `ls ${folder}`;
}
