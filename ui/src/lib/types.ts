// Made from crates/runner-ui/src/api.rs: `just generate` writes it anew.

/** Everything that the first screen needs. */
export interface PageSnapshot {
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
  progress: RunProgress;
  /** The iteration under way. */
  current: CurrentIteration | null;
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
  watching: WatchMethod;
  /** The repository's folder, by its last name. */
  project: string;
  /** What it is about. */
  shows: ServerSubject;
}

/** How changes are noticed. */
export type WatchMethod = "events" | "polling";

/** What is looked at. */
export type ServerSubject = "repository" | "record" | "evaluation";

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
export type StateWord = "empty" | "invalid" | "running" | "guarding" | "committing" | "waiting" | "paused" | "complete" | "stuck" | "limit" | "failed" | "interrupted" | "died" | "idle";

/** Why a run does not go on. */
export interface StopView {
  /** What keeps it, in sentences. */
  why: string[];
  /** The iterations that show it, newest first. */
  iterations: number[];
  /** The most telling line of a log. */
  evidence: LogLine | null;
  /** What to type. */
  next: NextCommand[];
}

/** A line of a log. */
export interface LogLine {
  iter: number;
  /** `guard` or `agent`. */
  log: string;
  /** From 0. */
  line: number;
  text: string;
}

/** Something to do. */
export interface NextCommand {
  /** In words. */
  what: string;
  /** What to type; none where it takes an editor. */
  command: string | null;
}

/** How far a run is. */
export interface RunProgress {
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
export interface CurrentIteration {
  iter: number;
  node: string | null;
  path: string;
  title: string;
  attempt: AttemptOrdinal | null;
  /** The name of the newest event. */
  phase: string;
  phase_since_ms: number | null;
  started_ms: number | null;
  timeout_ms: number | null;
}

/** Which try, of how many. */
export interface AttemptOrdinal {
  nth: number;
  of: number;
}

/** The iterations of a run. */
export interface IterationList {
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
  attempt: AttemptOrdinal | null;
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
export interface TreeColumns {
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
  lesson: NodeHistoryView | null;
}

/** A node, by name. */
export interface NodeName {
  id: string;
  title: string;
  passes: boolean;
}

/** What a session left for the next one. */
export interface NodeHistoryView {
  iter: number;
  outcome: string;
  summary: string;
  notes: string[];
  guard_output: string | null;
}

/** The runs of a repository. */
export interface RunList {
  runs: RunRow[];
}

/** One run. */
export interface RunRow {
  head: RunHead;
  state: StateWord;
  headline: string;
  progress: RunProgress;
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
  hits: LogHit[];
}

/** A line that was found. */
export interface LogHit {
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
export interface SearchResults {
  nodes_total: number;
  nodes: NodeName[];
  iterations_total: number;
  iterations: IterationRow[];
}

/** Whether the history proves itself. */
export interface VerifyResult {
  /** `held`, `broken`, or `unknown` where this build cannot say. */
  verdict: string;
  says: string;
  details: string[];
  /** What to type to see it oneself. */
  command: string | null;
}

/** What went wrong with a request. */
export interface ErrorResponse {
  error: ErrorBody;
}

/** Its parts. */
export interface ErrorBody {
  /** A stable word. */
  code: string;
  /** What could not be done, and why. */
  message: string;
  /** What to try. */
  hint: string | null;
  problems: string[];
}

/** Something that changed, as `/events` tells it. The name of the event is the variant's. */
export type ChangeEvent = { event: "hello"; build: string } | { event: "tree_changed"; revision: string } | { event: "run_state_changed" } | { event: "iteration_added"; run: string; iter: number } | { event: "iteration_changed"; run: string; iter: number; files: FileSize[] } | { event: "run_changed" } | { event: "trial_changed"; case: string; id: string; is_latest: boolean; change: ChangeEvent } | { event: "results_changed" } | { event: "resync" };

/** A whole run. */
export interface RunExport {
  /** The format: `runner.export/1`. */
  schema: string;
  /** What is not in here, in sentences. */
  left_out: string[];
  snapshot: PageSnapshot;
  runs: RunList;
  iterations: IterationList;
  /** None where there is none that can be read. */
  tree: TreeColumns | null;
  /** By the node's id. */
  nodes: Record<string, NodeDetail>;
  verdict: VerifyResult;
  /** By the iteration's number. */
  details: Record<string, IterationExport>;
}

/** A whole iteration. */
export interface IterationExport {
  detail: IterationDetail;
  /** None where git does not tell. */
  diff: DiffView | null;
  /** By the file's path. */
  patches: Record<string, DiffPatch>;
  /** By the log's name in addresses. */
  logs: Record<string, LogExport>;
}

/** A whole log, or the lines of it that were kept. */
export interface LogExport {
  /** How many bytes the file has. */
  bytes: number;
  /** Where lines are left out, one says so. */
  lines: string[];
  /** The lines that tell of a fault. */
  errors: LogHits;
}

/** The results of an evaluation. */
export interface EvalView {
  /** The folder of results. */
  results: string;
  /** The runs, the newest first. */
  runs: EvalRun[];
  /** The one that is looked at; none where there is none. */
  grid: EvalGrid | null;
}

/** A run of the evaluation. */
export interface EvalRun {
  run: string;
  created_at: string;
  /** The version of the runner under test. */
  runner: string;
  agents: string[];
  cases: number;
  /** How many trials were planned. */
  units: number;
  /** How many of them have a result. */
  done: number;
}

/** The cases and trials of a run. */
export interface EvalGrid {
  run: string;
  /** For the chances with k trials. */
  k: number;
  /** By agent, over all cases. */
  agents: EvalScore[];
  /** By agent and case. */
  cases: EvalScore[];
  /** Every attempt. */
  trials: EvalTrial[];
  /** Planned trials that have no result. */
  missing: EvalMissing[];
  /** Results that cannot be read, in words. */
  unreadable: string[];
}

/** What trials say about an agent. */
export interface EvalScore {
  agent: string;
  /** None for the agent as a whole. */
  case: string | null;
  /** How many cases have a score. */
  cases: number;
  /** How many trials say something about the agent. */
  n: number;
  successes: number;
  /** How many say nothing about it. */
  left_out: number;
  rate: number | null;
  /** Where the rate probably is, with 95 %. */
  interval: EvalInterval | null;
  pass_at_k: number | null;
  pass_all_k: number | null;
  secs_per_success: number | null;
  usd_per_success: number | null;
}

/** From where to where. */
export interface EvalInterval {
  low: number;
  high: number;
}

/** An attempt at a trial. */
export interface EvalTrial {
  case: string;
  agent: string;
  trial: number;
  attempt: number;
  /** The name of its folder. */
  id: string;
  /** Whether it is the last attempt, which counts. */
  is_last: boolean;
  /** Whether it says something about the agent. */
  is_scored: boolean;
  /** `success`, `fail`, `stuck`, `error`, `skipped`. */
  outcome: string;
  cause: string | null;
  why: string | null;
  /** How a case about the runner itself must end. */
  expected: string | null;
  wall_secs: number;
  iterations: number;
  tokens: number | null;
  cost_microdollars: number | null;
  started_at: string;
  checks: EvalCheck[];
}

/** A check of a case. */
export interface EvalCheck {
  name: string;
  /** Whether it was kept from the agent. */
  hidden: boolean;
  passed: boolean;
  why: string | null;
  /** The last lines of its command, where it does not pass. */
  output: string | null;
}

/** A trial that has no result. */
export interface EvalMissing {
  case: string;
  agent: string;
  trial: number;
  /** The part of its results' names that is its own. */
  slug: string;
  /** The newest attempt at it that has a workspace. */
  id: string | null;
  /** Whether a process of this machine is at work on it. */
  is_under_way: boolean;
}

/** Two results side by side, paired by case. */
export interface EvalComparison {
  base: string;
  new: string;
  /** How many cases have a score on both sides. */
  n: number;
  difference: EvalDifference;
  /** What the difference means, in a sentence. */
  words: string;
  paired: EvalPairs;
  /** What cannot be compared, in words. */
  notes: string[];
}

/** How much higher the new rate is. */
export interface EvalDifference {
  mean: number;
  interval: EvalInterval;
  /** In how many cases the new results are better, alike, worse. */
  wins: number;
  ties: number;
  losses: number;
  /** How likely chance alone would do that. */
  p_value: number;
  exact: boolean;
}

/** The cases that both sides have a score of. */
export interface EvalPairs {
  cases: EvalPair[];
}

/** A case on both sides. */
export interface EvalPair {
  case: string;
  base: EvalCounts;
  new: EvalCounts;
  difference: number;
}

/** Scored trials, counted. */
export interface EvalCounts {
  successes: number;
  n: number;
}

/** How an iteration can end, as far as this version knows. */
export const OUTCOMES = [
  "passed",
  "guard_failed",
  "retry",
  "decomposed",
  "rule_violation",
  "invalid_tree",
  "repaired",
  "repair_failed",
  "repair_abandoned",
  "replanned",
  "replan_refused",
  "timed_out",
  "idle_timeout",
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
