// Made from crates/runner-ui/src/api.rs: `just generate` writes it anew.

/** Everything that the first screen needs. */
export interface Snapshot {
  /** This server. */
  server: ServerView;
  /** The run that is looked at; none where there is none. */
  run: RunHead | null;
  /** How it stands, in a word. */
  state: StateWord;
  /** The same in a sentence. */
  headline: string;
  /** Since when, in milliseconds since 1970. */
  since_ms: number | null;
  /** Why it does not go on, and what to type; none while it does. */
  stop: StopView | null;
  /** How far it is. */
  progress: Progress;
  /** The iteration under way. */
  current: Current | null;
  /** What was found wrong with the files themselves. */
  problems: string[];
}

/** The server. */
export interface ServerView {
  /** Its version. */
  version: string;
  /** Which page it was built with: a tab of another one offers to reload. */
  build: string;
  /** Its clock. */
  now_ms: number;
  /** How it learns of changes. */
  watching: Watching;
  /** The repository's folder, by its last name. */
  project: string;
}

/** How changes are noticed. */
export type Watching = "events" | "polling";

/** A run, by name. */
export interface RunHead {
  id: string;
  /** Its branch, as git calls it here. */
  branch: string;
  /** The commit the branch is at. */
  commit: string | null;
  /** The goal's heading. */
  goal: string;
  /** Whether it is the one in the work tree, and so may be live. */
  is_here: boolean;
}

/** How a run stands. */
export type StateWord = "empty" | "invalid" | "running" | "guarding" | "committing" | "waiting" | "complete" | "stuck" | "limit" | "failed" | "interrupted" | "died" | "idle";

/** Why a run does not go on. */
export interface StopView {
  /** What keeps it, in sentences. */
  why: string[];
  /** The iterations that show it, newest first. */
  iterations: number[];
  /** The most telling line of a log. */
  evidence: Evidence | null;
  /** What to type. */
  next: Advice[];
}

/** A line of a log. */
export interface Evidence {
  iter: number;
  /** `guard` or `agent`. */
  log: string;
  /** From 0. */
  line: number;
  text: string;
}

/** Something to do. */
export interface Advice {
  /** In words. */
  what: string;
  /** What to type; none where it takes an editor. */
  command: string | null;
}

/** How far a run is. */
export interface Progress {
  leaves_total: number;
  leaves_passed: number;
  iterations: number;
  iterations_max: number | null;
  started_ms: number | null;
  ended_ms: number | null;
  /** Time in sessions and guards, without what lies between iterations. */
  busy_ms: number;
  agent_ms: number;
  guard_ms: number;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_microdollars: number | null;
  tokens_max: number | null;
  cost_microdollars_max: number | null;
}

/** The iteration under way. */
export interface Current {
  iter: number;
  node: string | null;
  path: string;
  title: string;
  attempt: Nth | null;
  /** The name of the newest event. */
  phase: string;
  phase_since_ms: number | null;
  started_ms: number | null;
  timeout_ms: number | null;
}

/** Which try, of how many. */
export interface Nth {
  nth: number;
  of: number;
}

/** The iterations of a run. */
export interface Iterations {
  run: string | null;
  iterations: IterationRow[];
}

/** One iteration, as lists show it. */
export interface IterationRow {
  iter: number;
  node: string | null;
  path: string;
  /** What the session was for: `leaf`, `repair`, `replan`. */
  session: string | null;
  attempt: Nth | null;
  /** How it ended; none while it is under way. */
  outcome: string | null;
  status: string | null;
  guard: string | null;
  /** `code 1`, `signal 9`. */
  guard_exit: string | null;
  /** Whether it cost an attempt. */
  is_charged: boolean;
  summary: string;
  findings: string[];
  /** What should be seen, in words. */
  marks: string[];
  started_ms: number | null;
  ended_ms: number | null;
  agent_ms: number | null;
  guard_ms: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_microdollars: number | null;
  executor: string | null;
  model: string | null;
  commit: string | null;
  commit_before: string | null;
  /** Whether its folder is here; a clone has the commits alone. */
  has_logs: boolean;
}

/** One iteration whole. */
export interface IterationDetail {
  run: string;
  row: IterationRow;
  /** meta.json as it stands. */
  meta: unknown;
  /** output.json as it stands. */
  output: unknown;
  /** The files of its folder, with their sizes. */
  files: FileSize[];
  /** The iterations around it. */
  previous: number | null;
  next: number | null;
}

/** A file of an iteration's folder. */
export interface FileSize {
  name: string;
  bytes: number;
}

/** A tree in columns: one entry per node in each, in the order in which it is drawn. */
export interface SlimTree {
  run: string | null;
  /** Changes whenever the tree does. */
  revision: string;
  id: string[];
  title: string[];
  /** The place of the parent in the columns; -1 for the root. */
  parent: number[];
  depth: number[];
  /** 1 passes, 2 is a leaf, 4 has no attempts left. */
  flags: number[];
  attempts: number[];
  max_attempts: number[];
  /** Leaves at or below the node, and those that pass. */
  leaves: number[];
  passed: number[];
  /** The leaf that comes next. */
  selected: string | null;
}

/** One node. */
export interface NodeDetail {
  run: string | null;
  id: string;
  title: string;
  goal: string;
  acceptance: string[];
  passes: boolean;
  is_leaf: boolean;
  is_next: boolean;
  attempts: number;
  max_attempts: number;
  leaves_total: number;
  leaves_passed: number;
  /** From the root to the node itself. */
  path: NodeName[];
  children: NodeName[];
  /** The iterations on it, oldest first. */
  iterations: number[];
  /** What the next session on it is told. */
  lesson: LessonView | null;
}

/** A node, by name. */
export interface NodeName {
  id: string;
  title: string;
  passes: boolean;
}

/** What a session left for the next one. */
export interface LessonView {
  iter: number;
  outcome: string;
  summary: string;
  notes: string[];
  guard_output: string | null;
}

/** The runs of a repository. */
export interface Runs {
  runs: RunRow[];
}

/** One run. */
export interface RunRow {
  head: RunHead;
  state: StateWord;
  headline: string;
  progress: Progress;
  /** When its branch moved last. */
  moved_ms: number | null;
}

/** A piece of a log. */
export interface LogPage {
  /** How many lines there are now. */
  total: number;
  /** How many bytes. */
  bytes: number;
  /** The first line given here, from 0. */
  from: number;
  lines: string[];
  /** The places in `lines` of those that were too long to be given whole. */
  cut: number[];
  /** Whether the last line may still grow. */
  is_open: boolean;
}

/** What a search found. */
export interface LogHits {
  /** How many lines match: all of them, however many are listed. */
  total: number;
  /** How many lines were searched. */
  searched: number;
  hits: Hit[];
}

/** A line that was found. */
export interface Hit {
  /** From 0. */
  line: number;
  text: string;
}

/** What changed in an iteration. */
export interface DiffView {
  from: string;
  to: string;
  files: DiffFile[];
  tree: TreeChange[];
}

/** One changed file. */
export interface DiffFile {
  path: string;
  old_path: string | null;
  /** None for what is not text. */
  added: number | null;
  removed: number | null;
  /** Whether the runner keeps it: shown after the work itself. */
  is_runners: boolean;
}

/** A node that is not as it was. */
export interface TreeChange {
  id: string;
  title: string;
  /** In words: `added`, `passed`, `attempts 1 → 2`. */
  what: string;
}

/** The patch of one file. */
export interface DiffPatch {
  path: string;
  lines: DiffLine[];
  /** Whether there is more than is given. */
  is_cut: boolean;
}

/** A line of a patch. */
export interface DiffLine {
  kind: DiffKind;
  /** Its number before and after. */
  old: number | null;
  new: number | null;
  text: string;
}

/** What a line of a patch is. */
export type DiffKind = "same" | "added" | "removed" | "head" | "hunk" | "note";

/** Nodes and iterations that hold some words. */
export interface Found {
  nodes_total: number;
  nodes: NodeName[];
  iterations_total: number;
  iterations: IterationRow[];
}

/** Whether the history proves itself. */
export interface Verdict {
  /** `held`, `broken`, or `unknown` where this build cannot say. */
  verdict: string;
  says: string;
  details: string[];
  /** What to type to see it oneself. */
  command: string | null;
}

/** What went wrong with a request. */
export interface Fault {
  error: FaultBody;
}

/** Its parts. */
export interface FaultBody {
  /** A stable word. */
  code: string;
  /** What could not be done, and why. */
  message: string;
  /** What to try. */
  hint: string | null;
  problems: string[];
}

/** Something that changed, as `/events` tells it. The name of the event is the variant's. */
export type Change = { event: "hello"; build: string } | { event: "tree_changed"; revision: string } | { event: "run_state_changed" } | { event: "iteration_added"; run: string; iter: number } | { event: "iteration_changed"; run: string; iter: number; files: FileSize[] } | { event: "run_changed" } | { event: "resync" };

/** A whole run. */
export interface WholeRun {
  /** The format: `runner.export/1`. */
  schema: string;
  /** What is not in here, in sentences. */
  left_out: string[];
  snapshot: Snapshot;
  runs: Runs;
  iterations: Iterations;
  /** None where there is none that can be read. */
  tree: SlimTree | null;
  /** By the node's id. */
  nodes: Record<string, NodeDetail>;
  verdict: Verdict;
  /** By the iteration's number. */
  details: Record<string, WholeIteration>;
}

/** A whole iteration. */
export interface WholeIteration {
  detail: IterationDetail;
  /** None where git does not tell. */
  diff: DiffView | null;
  /** By the file's path. */
  patches: Record<string, DiffPatch>;
  /** By the log's name in addresses. */
  logs: Record<string, WholeLog>;
}

/** A whole log, or the lines of it that were kept. */
export interface WholeLog {
  /** How many bytes the file has. */
  bytes: number;
  /** Where lines are left out, one says so. */
  lines: string[];
  /** The lines that tell of a fault. */
  errors: LogHits;
}

/** How an iteration can end, as far as this version knows. */
export const OUTCOMES = [
  "passed",
  "guard_failed",
  "retry",
  "decomposed",
  "rule_broken",
  "invalid_tree",
  "repaired",
  "repair_failed",
  "repair_given_up",
  "replanned",
  "replan_refused",
  "timed_out",
  "idle",
  "guard_timed_out",
  "interrupted",
  "rate_limited",
  "overloaded",
  "disconnected",
  "usage_limit",
  "agent_not_started",
  "agent_crashed",
  "no_answer",
  "provider_refused",
  "guard_not_started",
  "not_logged_in",
  "context_full",
] as const;
