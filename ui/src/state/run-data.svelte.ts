import { ApiError, errorText, get, getParts, isTemporary, withRun } from "../lib/api";
import { isLiveState, outcomeLabel, stateLabel, UNTRUSTED, type Label } from "../lib/labels";
import { exportedRun } from "../lib/export-data";
import type { AuditProgress } from "../lib/export-audit";
import type {
  ChangeEvent,
  IterationRow,
  IterationList,
  NodeDetail,
  OverviewPart,
  PageSnapshot,
  RunFiles,
  TreeColumns,
  VerifyResult,
} from "../lib/types";
import type { Announcer } from "./announcer.svelte";
import type { Clock } from "./clock.svelte";
import type { Connection } from "./connection.svelte";
import type { RouterState } from "./router.svelte";

type Part = "snapshot" | "rows" | "tree";
type IterationChange = Extract<ChangeEvent, { event: "iteration_changed" }>;
type TrialChange = Extract<ChangeEvent, { event: "trial_changed" }>;

/** Files whose change affects the snapshot and the list of iterations. */
const SUMMARY_FILES = ["meta.json", "events.jsonl"];
/** How many of the newest iterations may still change. */
const LIVE_ITERATIONS = 2;
const RETRY_MS = 2000;
/** The states in which no session runs, so that a run is verified. */
const VERIFIED_STATES: ReadonlySet<string> = new Set(["complete", "stopped", "paused", "crashed"]);

/** The iterations up to this one are known and do not change any more. */
function settledUntil(rows: IterationRow[]): number {
  const firstOpen = rows.findIndex((row) => row.outcome === null);
  const known = firstOpen < 0 ? rows.length : firstOpen;
  return rows[Math.min(known, rows.length - LIVE_ITERATIONS) - 1]?.iter ?? 0;
}

/** What an exported page says that cannot verify itself. */
function notVerifiedHere(claimed: VerifyResult): VerifyResult {
  return {
    ...claimed,
    verdict: "unknown",
    summary: `not verified here: this file has no git objects, or this browser cannot run the audit. When it was exported: ${claimed.summary}`,
    findings: [],
    violations: 0,
  };
}

/** A run without a readable tree still has a history. */
function nullIfRefused(error: unknown): null {
  if (error instanceof ApiError) return null;
  throw error;
}

/**
 * The data of the displayed run, read from the server and refreshed after each change. Values are plain objects behind
 * few signals: a tree of 100,000 nodes must not become 100,000 signals.
 */
export class RunData {
  snapshot = $state.raw<PageSnapshot | null>(null);
  rows = $state.raw<IterationRow[]>([]);
  tree = $state.raw<TreeColumns | null>(null);
  error = $state.raw<string | null>(null);
  /** Whether the tree was requested and answered, even if there is none. */
  hasReadTree = $state.raw(false);
  /** Whether the error may go away by itself: the page tries again. */
  isRetrying = $state.raw(false);
  /** Whether the parts of the first screen have arrived, or failed. What else a view needs is read after that. */
  hasReadFirst = $state.raw(exportedRun !== null);
  /** What came with the first screen, until a view takes it or anything changes. */
  #given: { task?: NodeDetail | undefined; files?: RunFiles | undefined } = {};
  isVerifying = $state.raw(false);
  /** In an exported page: how far the audit of the objects inside it is, its newest commit, and its result. */
  auditProgress = $state.raw<AuditProgress | null>(null);
  auditedTip = $state.raw<string | null>(null);
  #audited = $state.raw<VerifyResult | null>(null);
  #verified = $state.raw<{ key: string; result: VerifyResult } | null>(null);
  /** Changes whenever the results of an evaluation may have changed. */
  resultsRevision = $state.raw(0);
  #fileRevisions = $state.raw<Record<number, number>>({});
  #resyncs = $state.raw(0);
  #fileSizes = new Map<string, number>();
  #outdated = new Set<Part>();
  #isReading = false;
  #onFirstRead: (() => void) | undefined;
  #rowsOf: string | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly router: RouterState,
    private readonly clock: Clock,
    private readonly connection: Connection,
    private readonly announcer: Announcer,
  ) {}

  get runId(): string | undefined {
    return this.router.run ?? this.snapshot?.run?.id;
  }

  /** Whether a runner works on the run now. */
  get isLive(): boolean {
    return this.snapshot !== null && isLiveState(this.snapshot.state);
  }

  /** The result of verifying the run as it is now; null while it is not known, and while the run is live. */
  get trust(): VerifyResult | null {
    const { snapshot } = this;
    if (!snapshot || this.isLive) return null;
    // An exported page believes its own audit alone, whatever it says about itself.
    if (exportedRun) return this.#audited;
    const verified = this.#verified;
    return snapshot.trust ?? (verified !== null && verified.key === this.#verifyKey ? verified.result : null);
  }

  /** Begins or continues the audit of an exported page. */
  setAuditProgress(progress: AuditProgress | null): void {
    [this.isVerifying, this.auditProgress] = [true, progress];
  }

  /** Ends the audit of an exported page. Without a result, the page could not verify itself. */
  setAudited(audited: { trust: VerifyResult; tip: string } | null): void {
    if (!exportedRun) return;
    this.#audited = audited?.trust ?? notVerifiedHere(exportedRun.verify.result);
    this.auditedTip = audited?.tip ?? null;
    [this.isVerifying, this.auditProgress] = [false, null];
  }

  /** Whether an exported page contradicts its own objects. */
  get isForged(): boolean {
    return exportedRun !== null && this.isViolated && exportedRun.verify.result.verdict !== "violated";
  }

  get isViolated(): boolean {
    return this.trust?.verdict === "violated";
  }

  /** The state of the run. A run whose history violates a rule is untrusted, whatever its documents say. */
  get label(): Label | null {
    return this.snapshot && (this.isViolated ? UNTRUSTED : stateLabel(this.snapshot));
  }

  /** Identifies what a verification is about: a run at a commit. Undefined if there is nothing to verify. */
  get #verifyKey(): string | undefined {
    const { snapshot } = this;
    const run = snapshot?.run;
    if (!snapshot || !run?.commit || !VERIFIED_STATES.has(snapshot.state)) return undefined;
    return snapshot.progress.iterations > 0 ? `${run.id}@${run.commit}` : undefined;
  }

  /** Whether the server shows an evaluation as a whole, and not the run of a trial. */
  get showsResults(): boolean {
    return this.snapshot?.server.shows === "evaluation";
  }

  /** Whether there is a server that can make an export of the run. */
  get canShare(): boolean {
    return exportedRun === null && Boolean(this.snapshot?.run);
  }

  /** Whether there are evaluation results to go back to. */
  get hasResults(): boolean {
    return this.router.trial !== undefined || this.showsResults;
  }

  /** Changes whenever the files of an iteration may have changed; 0 before the first change. */
  revisionOf(iter: number): number {
    return (this.#fileRevisions[iter] ?? 0) + this.#resyncs;
  }

  /** The task that came with the first screen, once, if it is this one. */
  takeTask(id: string): NodeDetail | undefined {
    const { task } = this.#given;
    delete this.#given.task;
    return task?.id === id ? task : undefined;
  }

  /** The files that came with the first screen, once. */
  takeFiles(): RunFiles | undefined {
    const { files } = this.#given;
    delete this.#given.files;
    return files;
  }

  /** Reads everything; resolves when the first screen can be drawn, or its request failed. */
  firstRead(): Promise<void> {
    return new Promise((done) => {
      this.#onFirstRead = done;
      this.refreshAll();
    });
  }

  refreshAll(): void {
    this.#refresh("snapshot", "rows", "tree");
  }

  /** Drops the data of the previous scope and reads that of the current one. */
  reset(): void {
    [this.snapshot, this.rows, this.tree, this.#fileRevisions] = [null, [], null, {}];
    [this.hasReadTree, this.#rowsOf, this.#verified] = [false, undefined, null];
    [this.hasReadFirst, this.#given] = [false, {}];
    this.#fileSizes.clear();
    this.refreshAll();
  }

  apply(change: ChangeEvent): void {
    if (change.event !== "hello") this.#given = {};
    switch (change.event) {
      case "hello":
        this.connection.checkBuild(change.build);
        break;
      case "tree_changed":
        this.#refresh("tree", "snapshot");
        break;
      case "run_state_changed":
      case "run_changed":
      case "iteration_added":
        this.#refresh("snapshot", "rows");
        break;
      case "iteration_changed":
        this.#applyIteration(change);
        break;
      case "trial_changed":
        if (this.#isDisplayed(change)) this.apply(change.change);
        break;
      case "results_changed":
        this.resultsRevision++;
        break;
      case "resync":
        this.#rowsOf = undefined;
        this.refreshAll();
        this.#resyncs++;
        this.resultsRevision++;
        break;
    }
  }

  #isDisplayed(change: TrialChange): boolean {
    const trial = this.router.trial;
    if (change.case !== trial?.case) return false;
    return trial.id === "latest" ? change.is_latest : trial.id === change.id;
  }

  #applyIteration(change: IterationChange): void {
    if (change.run !== this.runId) return;
    let hasNewSummary = false;
    for (const file of change.files) {
      const key = `${change.iter}/${file.name}`;
      const isChanged = this.#fileSizes.get(key) !== file.bytes;
      this.#fileSizes.set(key, file.bytes);
      hasNewSummary ||= isChanged && SUMMARY_FILES.includes(file.name);
    }
    const revision = (this.#fileRevisions[change.iter] ?? 0) + 1;
    this.#fileRevisions = { ...this.#fileRevisions, [change.iter]: revision };
    if (hasNewSummary) this.#refresh("snapshot", "rows");
  }

  #refresh(...parts: Part[]): void {
    for (const part of parts) this.#outdated.add(part);
    if (this.#isReading) return;
    this.#isReading = true;
    // A microtask batches the changes of one turn. An animation frame would not do: a hidden tab has none.
    queueMicrotask(() => void this.#read());
  }

  /** Reads the first screen in one request. What its answer lacks is read after it. */
  async #readFirst(): Promise<void> {
    const { run, trial, scope, route } = this.router;
    const node = route.view === "overview" ? route.node : undefined;
    const path = withRun(`/api/overview${node ? `?node=${encodeURIComponent(node)}` : ""}`, run);
    const missing = new Set<Part>(["rows", "tree"]);
    this.#outdated.clear();
    await getParts<OverviewPart>(scope, path, (part) => {
      if (run !== this.router.run || trial !== this.router.trial) return;
      if (part.snapshot) this.#setSnapshot(part.snapshot);
      if (part.iterations) this.#setRows(part.iterations, 0);
      if (part.tree) [this.tree, this.hasReadTree] = [part.tree, true];
      if (part.task) this.#given.task = part.task;
      if (part.files) this.#given.files = part.files;
      if (part.iterations) missing.delete("rows");
      if (part.tree) missing.delete("tree");
      this.#clearError();
      this.#onFirstRead?.();
    });
    if (run !== this.router.run || trial !== this.router.trial) return;
    if (this.snapshot?.run) for (const part of missing) this.#outdated.add(part);
    this.hasReadFirst = true;
  }

  #clearError(): void {
    [this.error, this.isRetrying] = [null, false];
  }

  #fail(error: unknown): void {
    this.#outdated.clear();
    [this.error, this.isRetrying, this.hasReadFirst] = [errorText(error), isTemporary(error), true];
    if (!(error instanceof ApiError)) this.connection.set("lost");
    // The reconnected stream triggers a new request, too; the timer is for a repository that comes back.
    clearTimeout(this.#retry);
    if (isTemporary(error)) this.#retry = setTimeout(() => this.refreshAll(), RETRY_MS);
  }

  async #read(): Promise<void> {
    while (this.#outdated.size > 0) {
      if (!this.snapshot && !exportedRun) {
        const { trial } = this.router;
        await this.#readFirst().catch((error: unknown) => trial === this.router.trial && this.#fail(error));
        this.#onFirstRead?.();
        continue;
      }
      const parts: Part[] = [...this.#outdated];
      for (const part of parts) this.#outdated.delete(part);
      // An evaluation as a whole has neither iterations nor a tree.
      const wants = (part: Part) => parts.includes(part) && (part === "snapshot" || !this.showsResults);
      const { run, trial, scope } = this.router;
      // Only the newest rows can have changed since the last answer.
      const after = this.#rowsOf !== undefined && this.#rowsOf === this.runId ? settledUntil(this.rows) : 0;
      const rowsPath = withRun(after > 0 ? `/api/iterations?after=${after}` : "/api/iterations", run);
      try {
        const [snapshot, rows, tree] = await Promise.all([
          wants("snapshot") ? get<PageSnapshot>(scope, withRun("/api/snapshot", run)) : null,
          wants("rows") ? get<IterationList>(scope, rowsPath) : null,
          wants("tree")
            ? get<TreeColumns>(scope, withRun("/api/tree?slim=1", run)).catch(nullIfRefused)
            : null,
        ]);
        if (run !== this.router.run || trial !== this.router.trial) continue;
        if (rows) this.#setRows(rows, after);
        if (snapshot) this.#setSnapshot(snapshot);
        if (wants("tree")) [this.tree, this.hasReadTree] = [tree, true];
        this.#clearError();
      } catch (error) {
        if (trial !== this.router.trial) continue;
        this.#fail(error);
      }
      this.#onFirstRead?.();
    }
    this.#isReading = false;
    void this.#verify();
  }

  /** Verifies a run that is not live, once for each commit, without being asked. */
  async #verify(): Promise<void> {
    const key = this.#verifyKey;
    if (exportedRun || key === undefined || this.trust || this.isVerifying) return;
    this.isVerifying = true;
    const { run, scope } = this.router;
    try {
      const result = await get<VerifyResult>(scope, withRun("/api/verify", run));
      this.#verified = { key, result };
      // The server no longer advises to merge a run that violates a rule.
      if (result.verdict === "violated") this.#refresh("snapshot");
    } catch {
      // The next snapshot tries again.
    }
    this.isVerifying = false;
    if (this.#verifyKey !== key) void this.#verify();
  }

  #setSnapshot(snapshot: PageSnapshot): void {
    this.clock.sync(snapshot.server.now_ms);
    this.connection.checkBuild(snapshot.server.build);
    this.router.resolveLatest(snapshot.server.project);
    if (this.snapshot && this.snapshot.state !== snapshot.state)
      this.announcer.announce(`The run is ${stateLabel(snapshot).text}: ${snapshot.headline}`);
    this.snapshot = snapshot;
  }

  #setRows(list: IterationList, after: number): void {
    const kept = after > 0 ? this.rows.filter((row) => row.iter <= after) : [];
    const rows = kept.concat(list.iterations);
    const last = rows.at(-1);
    const before = this.rows.find((row) => row.iter === last?.iter);
    if (last?.outcome && before && !before.outcome)
      this.announcer.announce(`Iteration ${last.iter}: ${outcomeLabel(last.outcome).text}`);
    this.rows = rows;
    this.#rowsOf = list.run ?? undefined;
  }
}
