import { ApiError, errorText, get, withRun } from "../lib/api";
import { isLiveState, outcomeLabel, stateLabel } from "../lib/labels";
import type { ChangeEvent, IterationRow, IterationList, TreeColumns, PageSnapshot } from "../lib/types";
import type { Announcer } from "./announcer.svelte";
import type { Clock } from "./clock.svelte";
import type { Connection } from "./connection.svelte";
import type { RouterState } from "./router.svelte";

type Part = "snapshot" | "rows" | "tree";
type IterationChange = Extract<ChangeEvent, { event: "iteration_changed" }>;
type TrialChange = Extract<ChangeEvent, { event: "trial_changed" }>;

/** Files whose change affects the snapshot and the list of iterations. */
const SUMMARY_FILES = ["meta.json", "events.jsonl"];

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
  /** Changes whenever the results of an evaluation may have changed. */
  resultsRevision = $state.raw(0);
  #fileRevisions = $state.raw<Record<number, number>>({});
  #resyncs = $state.raw(0);
  #fileSizes = new Map<string, number>();
  #outdated = new Set<Part>();
  #isReading = false;

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

  /** Whether the server shows an evaluation as a whole, and not the run of a trial. */
  get showsResults(): boolean {
    return this.snapshot?.server.shows === "evaluation";
  }

  /** Whether there are evaluation results to go back to. */
  get hasResults(): boolean {
    return this.router.trial !== undefined || this.showsResults;
  }

  /** Changes whenever the files of an iteration may have changed; 0 before the first change. */
  revisionOf(iter: number): number {
    return (this.#fileRevisions[iter] ?? 0) + this.#resyncs;
  }

  refreshAll(): void {
    this.#refresh("snapshot", "rows", "tree");
  }

  /** Drops the data of the previous scope and reads that of the current one. */
  reset(): void {
    [this.snapshot, this.rows, this.tree, this.#fileRevisions] = [null, [], null, {}];
    this.#fileSizes.clear();
    this.refreshAll();
  }

  apply(change: ChangeEvent): void {
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

  async #read(): Promise<void> {
    while (this.#outdated.size > 0) {
      // The first screen needs only the snapshot; the rest follows.
      const parts: Part[] = this.snapshot ? [...this.#outdated] : ["snapshot"];
      for (const part of parts) this.#outdated.delete(part);
      // An evaluation as a whole has neither iterations nor a tree.
      const wants = (part: Part) => parts.includes(part) && (part === "snapshot" || !this.showsResults);
      const { run, trial, scope } = this.router;
      try {
        const [snapshot, rows, tree] = await Promise.all([
          wants("snapshot") ? get<PageSnapshot>(scope, withRun("/api/snapshot", run)) : null,
          wants("rows") ? get<IterationList>(scope, withRun("/api/iterations", run)) : null,
          wants("tree")
            ? get<TreeColumns>(scope, withRun("/api/tree?slim=1", run)).catch(nullIfRefused)
            : null,
        ]);
        if (run !== this.router.run || trial !== this.router.trial) continue;
        if (rows) this.#setRows(rows.iterations);
        if (snapshot) this.#setSnapshot(snapshot);
        if (wants("tree")) this.tree = tree;
        this.error = null;
      } catch (error) {
        if (trial !== this.router.trial) continue;
        // No immediate retry: the next change, or the reconnected stream, triggers a new request.
        this.#outdated.clear();
        this.error = errorText(error);
        if (!(error instanceof ApiError)) this.connection.state = "lost";
      }
    }
    this.#isReading = false;
  }

  #setSnapshot(snapshot: PageSnapshot): void {
    this.clock.sync(snapshot.server.now_ms);
    this.connection.checkBuild(snapshot.server.build);
    this.router.resolveLatest(snapshot.server.project);
    if (this.snapshot && this.snapshot.state !== snapshot.state)
      this.announcer.announce(`The run is ${stateLabel(snapshot).text}: ${snapshot.headline}`);
    this.snapshot = snapshot;
  }

  #setRows(rows: IterationRow[]): void {
    const last = rows.at(-1);
    const before = this.rows.find((row) => row.iter === last?.iter);
    if (last?.outcome && before && !before.outcome)
      this.announcer.announce(`Iteration ${last.iter}: ${outcomeLabel(last.outcome).text}`);
    this.rows = rows;
  }
}
