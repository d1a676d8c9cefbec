// The actions that every view has: navigation, copying and the theme.

import type { ActionHandlers } from "../lib/keys";
import { evidenceRoute } from "../lib/router";
import { copyText } from "../lib/clipboard";
import { preferences, router, runData, toaster } from "./store";

/** What opens a dialog of the page. */
interface DialogActions {
  help: () => void;
  palette: () => void;
  share: () => void;
}

export function pageActions(dialogs: DialogActions): ActionHandlers {
  return {
    help: dialogs.help,
    palette: () => (runData.snapshot?.run ? dialogs.palette() : false),
    share: () => (runData.canShare ? dialogs.share() : false),
    theme: () => preferences.cycleTheme(),
    results: goToResults,
    overview: () => router.go({ view: "overview", run: runData.runId }),
    runs: () => router.go({ view: "runs" }),
    stats: () => router.go({ view: "stats", run: runData.runId }),
    current: () => void goToLastIteration(),
    previous: leaveForLastIteration,
    next: leaveForLastIteration,
    evidence: goToEvidence,
    "copy-link": () => copy(location.href, "Link copied"),
    "copy-command": () => copy(equivalentCommand(), `Copied: ${equivalentCommand()}`),
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

function copy(text: string, message: string): void {
  void copyText(text).then((isCopied) =>
    toaster.show(isCopied ? message : `Not copied; copy it by hand: ${text}`),
  );
}

/** The terminal command that shows the same as this view. */
function equivalentCommand(): string {
  const route = router.route;
  if (route.view === "overview" && route.node) return `runner show ${route.node}`;
  if (route.view !== "iteration") return "runner status";
  const commands: Partial<Record<typeof route.tab, string>> = {
    diff: `runner diff ${route.iter}`,
    guard: `runner log ${route.iter} --guard`,
    prompt: `runner log ${route.iter} --prompt`,
    meta: `runner show ${route.iter}`,
  };
  return commands[route.tab] ?? `runner log ${route.iter}`;
}
