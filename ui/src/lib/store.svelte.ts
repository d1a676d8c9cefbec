// What the page knows, read from the server and kept fresh by its stream. Plain values behind few signals: a tree of
// 100,000 nodes must not become 100,000 of them.

import { askWithin, forRun, get, Refused } from "./api";
import { kept } from "./export-data";
import { listen, type Link } from "./event-stream";
import { address, lookWithin, parse, trialOf, type Route, type Trial } from "./router";
import type { Change, IterationRow, Iterations, SlimTree, Snapshot } from "./types";
import { LIVE } from "./labels";

type What = "snapshot" | "rows" | "tree";
type Theme = "system" | "light" | "dark";

class Store {
  route = $state.raw<Route>(parse(location.hash));
  /** The trial whose run is looked at, on an evaluation. */
  trial = $state.raw<Trial | undefined>(trialOf(location.hash));
  snapshot = $state.raw<Snapshot | null>(null);
  rows = $state.raw<IterationRow[]>([]);
  tree = $state.raw<SlimTree | null>(null);
  fault = $state.raw<string | null>(null);
  link = $state.raw<Link>("connecting");
  /** When the server was last heard of, by this browser's clock. */
  heardMs = $state.raw(Date.now());
  /** This browser's clock, once a second while the page is seen. */
  nowMs = $state.raw(Date.now());
  /** How the server's clock differs from this one. */
  offsetMs = 0;
  /** Counts the changes of each iteration's files. */
  #grown = $state.raw<Record<number, number>>({});
  #resyncs = $state.raw(0);
  /** What is looked at, by name: nothing that was drawn of another stays. */
  scope = $state.raw("");
  /** Another number whenever the results of an evaluation may have changed. */
  results = $state.raw(0);
  /** The newest sentence for those who listen instead of looking. */
  spoken = $state.raw("");
  theme = $state.raw<Theme>((localStorage.getItem("theme") as Theme | null) ?? "system");
  keys = $state.raw(localStorage.getItem("keys") !== "off");
  isStale = $state.raw(false);
  #build = "";
  #sizes = new Map<string, number>();
  #dirty = new Set<What>();
  #isReading = false;

  get run(): string | undefined {
    return "run" in this.route ? this.route.run : undefined;
  }

  /** The run that is looked at, by name, once it is known. */
  get runId(): string | undefined {
    return this.run ?? this.snapshot?.run?.id;
  }

  /** Whether the results of an evaluation are served, or the run of one of its trials. */
  get isEvaluation(): boolean {
    return this.trial !== undefined || this.snapshot?.server.shows === "evaluation";
  }

  get isLive(): boolean {
    return this.snapshot !== null && LIVE.has(this.snapshot.state);
  }

  /** Another number whenever the files of an iteration may have changed; 0 if they have not. */
  grown(iter: number): number {
    return (this.#grown[iter] ?? 0) + this.#resyncs;
  }

  /** The server's clock. */
  get serverMs(): number {
    return this.nowMs + this.offsetMs;
  }

  constructor() {
    // Before anything is drawn: parts ask as soon as they are.
    this.#enter(this.trial);
  }

  start(): () => void {
    const onHash = () => this.#moved();
    addEventListener("hashchange", onHash);
    const tick = setInterval(() => document.hidden || (this.nowMs = Date.now()), 1000);
    const stop = kept
      ? () => undefined
      : listen({
          change: (change) => this.#change(change),
          link: (link) => {
            this.link = link;
            if (link === "live") this.heardMs = Date.now();
          },
          heartbeat: (now) => {
            this.heardMs = Date.now();
            this.offsetMs = now - this.heardMs;
            this.link = "live";
          },
        });
    this.#want("snapshot", "rows", "tree");
    return () => {
      removeEventListener("hashchange", onHash);
      clearInterval(tick);
      stop();
    };
  }

  /** Everything that is asked for and linked to is from now on of this trial, or of none. */
  #enter(trial: Trial | undefined): void {
    lookWithin(trial);
    askWithin(trial);
    this.trial = trial;
    this.scope = trial ? `${trial.case}/${trial.id}` : "";
  }

  #moved(): void {
    const before = this.runId;
    const trial = trialOf(location.hash);
    const isOther = trial?.case !== this.trial?.case || trial?.id !== this.trial?.id;
    this.route = parse(location.hash);
    if (isOther) {
      this.#enter(trial);
      [this.snapshot, this.rows, this.tree, this.#grown] = [null, [], null, {}];
      this.#sizes.clear();
      this.#want("snapshot", "rows", "tree");
      return;
    }
    if (this.run !== undefined && this.run !== before) this.#want("snapshot", "rows", "tree");
  }

  go(route: Route): void {
    location.hash = address(route);
  }

  /** Changes the address without a step in the history. */
  replace(route: Route): void {
    history.replaceState(null, "", address(route));
    this.route = route;
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    localStorage.setItem("theme", theme);
  }

  setKeys(on: boolean): void {
    this.keys = on;
    localStorage.setItem("keys", on ? "on" : "off");
  }

  #change(change: Change): void {
    this.heardMs = Date.now();
    switch (change.event) {
      case "hello":
        if (this.#build && change.build !== this.#build) this.isStale = true;
        this.#build ||= change.build;
        break;
      case "tree_changed":
        this.#want("tree", "snapshot");
        break;
      case "run_state_changed":
      case "run_changed":
        this.#want("snapshot", "rows");
        break;
      case "iteration_added":
        this.#want("snapshot", "rows");
        break;
      case "iteration_changed":
        this.#grew(change);
        break;
      case "trial_changed":
        if (this.#isShown(change)) this.#change(change.change);
        break;
      case "results_changed":
        this.results++;
        break;
      case "resync":
        this.#want("snapshot", "rows", "tree");
        this.#resyncs++;
        this.results++;
        break;
    }
  }

  #isShown(change: Extract<Change, { event: "trial_changed" }>): boolean {
    if (change.case !== this.trial?.case) return false;
    return this.trial.id === "latest" ? change.is_latest : this.trial.id === change.id;
  }

  /** Files of an iteration grew. Only what tells of its course is a reason to read the lists again. */
  #grew(change: Extract<Change, { event: "iteration_changed" }>): void {
    if (change.run !== this.runId) return;
    let tells = false;
    for (const file of change.files) {
      const key = `${change.iter}/${file.name}`;
      const isNew = this.#sizes.get(key) !== file.bytes;
      this.#sizes.set(key, file.bytes);
      if (isNew && (file.name === "meta.json" || file.name === "events.jsonl")) tells = true;
    }
    this.#bump(change.iter);
    if (tells) this.#want("snapshot", "rows");
  }

  #bump(iter: number): void {
    this.#grown = { ...this.#grown, [iter]: (this.#grown[iter] ?? 0) + 1 };
  }

  #want(...what: What[]): void {
    for (const one of what) this.#dirty.add(one);
    if (this.#isReading) return;
    this.#isReading = true;
    // Together with what else comes in this turn. Not on the next frame: a hidden tab has none.
    queueMicrotask(() => void this.#read());
  }

  async #read(): Promise<void> {
    while (this.#dirty.size > 0) {
      // The first screen needs the snapshot alone; the rest follows.
      const wanted: What[] = this.snapshot ? [...this.#dirty] : ["snapshot"];
      for (const one of wanted) this.#dirty.delete(one);
      // An evaluation as a whole has neither iterations nor a tree.
      const isWhole = this.snapshot?.server.shows === "evaluation";
      const wants = (one: What) => wanted.includes(one) && (one === "snapshot" || !isWhole);
      const [run, trial] = [this.run, this.trial];
      try {
        const [snapshot, rows, tree] = await Promise.all([
          wants("snapshot") ? get<Snapshot>(forRun("/api/snapshot", run)) : null,
          wants("rows") ? get<Iterations>(forRun("/api/iterations", run)) : null,
          wants("tree") ? get<SlimTree>(forRun("/api/tree?slim=1", run)).catch(noTree) : null,
        ]);
        if (run !== this.run || trial !== this.trial) continue;
        if (rows) this.#rowsCame(rows.iterations);
        if (snapshot) this.#snapshotCame(snapshot);
        if (wants("tree")) this.tree = tree;
        this.fault = null;
      } catch (error) {
        if (trial !== this.trial) continue;
        // Not again at once: the next change, or the stream that is back, asks anew.
        this.#dirty.clear();
        this.fault = error instanceof Error ? error.message : String(error);
        if (!(error instanceof Refused)) this.link = "lost";
      }
    }
    this.#isReading = false;
  }

  #snapshotCame(snapshot: Snapshot): void {
    this.offsetMs = snapshot.server.now_ms - Date.now();
    this.nowMs = Date.now();
    this.#build ||= snapshot.server.build;
    if (this.trial?.id === "latest") {
      const now = { ...this.trial, id: snapshot.server.project };
      lookWithin(this.trial, now);
      this.scope = `${now.case}/${now.id}`;
    }
    if (this.snapshot && this.snapshot.state !== snapshot.state)
      this.spoken = `The run is ${snapshot.state}: ${snapshot.headline}`;
    this.snapshot = snapshot;
  }

  #rowsCame(rows: IterationRow[]): void {
    const last = rows.at(-1);
    const before = this.rows.find((row) => row.iter === last?.iter);
    if (last?.outcome && before && !before.outcome) {
      this.spoken = `Iteration ${last.iter}: ${last.outcome.replaceAll("_", " ")}`;
    }
    this.rows = rows;
  }
}

/** A run without a readable tree still has its history. */
function noTree(error: unknown): null {
  if (error instanceof Refused) return null;
  throw error;
}

export const store = new Store();
