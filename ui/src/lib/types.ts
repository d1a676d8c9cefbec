// Generated from crates/runner-ui/src/api.rs and crates/runner-core/src/labels.rs by `just generate`.

/** Everything that the first screen needs. */
export interface PageSnapshot {
  server: ServerView;
  /** The run that is shown; null where there is none. */
  run: RunHead | null;
  state: LifecycleState;
  /** What the iteration does; only while the run is running. */
  phase: RunPhase | null;
  /** Why the run stopped; none while it has not, and for a run that never looped. */
  stop: StopReason | null;
  /** Since when, in milliseconds since 1970. */
  since_ms: number | null;
  /** When a wait ends, in milliseconds since 1970. */
  until_ms: number | null;
  /** The state in a few words. */
  headline: string;
  /** The path of the task that is worked on, or that comes next. */
  task: string | null;
  /** What a reader should know besides. */
  details: string[];
  next: NextCommand[];
  /** What shows why the run stopped; null while it has not. */
  evidence: StopEvidence | null;
  /** The result of verifying the run at its newest commit; null while that is not known. */
  trust: VerifyResult | null;
  /** What agents asked, oldest first. */
  questions: QuestionView[];
  progress: RunProgress;
  /** How much of the tasks' acceptance is proven; null where no task has acceptance criteria. */
  coverage: Coverage | null;
  /** The iteration in progress. */
  current: CurrentIteration | null;
  /** Problems of the run's files. */
  problems: string[];
}

/** The server and what it shows. */
export interface ServerView {
  version: string;
  /** The build of the page: a tab with another one offers to reload. */
  build: string;
  /** The server's clock, in milliseconds since 1970. */
  now_ms: number;
  watching: WatchMethod;
  /** The newest event of `/events` before this was read: `/events?since=` continues from there. Empty in an export. */
  event_id: string;
  /** The name of the repository's folder. */
  project: string;
  shows: ServerSubject;
}

/** How the server notices changes. */
export type WatchMethod = "events" | "polling";

/** What a server shows. */
export type ServerSubject = "repository" | "record" | "evaluation";

/** A run and its branch. */
export interface RunHead {
  id: string;
  /** As git names it here: `runner/x`, or `origin/runner/x` in a clone. */
  branch: string;
  /** The commit that the branch points to. */
  commit: string | null;
  /** The heading of GOAL.md. */
  goal: string;
  /** Whether it is checked out here, so that a runner may be working on it. */
  is_here: boolean;
}

/** The state of a run. `no_run` and `invalid` say that there is no run to have a state, or none that can be read. */
export type LifecycleState = "no_run" | "invalid" | "running" | "waiting" | "paused" | "stopped" | "complete" | "crashed";

/** What a running iteration does. */
export type RunPhase = "agent" | "guard" | "commit";

/** Why a loop stopped. */
export type StopReason = { reason: "complete" } | { reason: "stuck"; node: string } | { reason: "not_reproducible"; exit: string } | { reason: "regressed"; node: string; check: string; broken_by: number | null } | { reason: "max_iterations"; max: number } | { reason: "loop_iterations"; max: number } | { reason: "loop_budget"; limit: BudgetLimit; spent: number | null; max: number } | { reason: "loop_until"; until: string } | { reason: "budget"; limit: BudgetLimit; node: string | null; spent: number; max: number } | { reason: "stalled"; iterations: number } | { reason: "time_limit"; outcome: "passed" | "unconfirmed" | "checks_failed" | "guard_failed" | "review_refused" | "retry" | "decomposed" | "rule_violation" | "invalid_tree" | "repaired" | "repair_failed" | "repair_abandoned" | "replanned" | "replan_refused" | "split_refused" | "plan_rejected" | "timed_out" | "idle_timeout" | "guard_timed_out" | "over_budget" | "interrupted" | "rate_limited" | "overloaded" | "disconnected" | "usage_limit" | "agent_not_started" | "agent_crashed" | "no_answer" | "provider_refused" | "guard_not_started" | "review_failed" | "not_logged_in" | "context_full" | "planned" | "plan_questions" } | { reason: "failures"; outcome: "passed" | "unconfirmed" | "checks_failed" | "guard_failed" | "review_refused" | "retry" | "decomposed" | "rule_violation" | "invalid_tree" | "repaired" | "repair_failed" | "repair_abandoned" | "replanned" | "replan_refused" | "split_refused" | "plan_rejected" | "timed_out" | "idle_timeout" | "guard_timed_out" | "over_budget" | "interrupted" | "rate_limited" | "overloaded" | "disconnected" | "usage_limit" | "agent_not_started" | "agent_crashed" | "no_answer" | "provider_refused" | "guard_not_started" | "review_failed" | "not_logged_in" | "context_full" | "planned" | "plan_questions"; in_row: number } | { reason: "needs_user"; outcome: "passed" | "unconfirmed" | "checks_failed" | "guard_failed" | "review_refused" | "retry" | "decomposed" | "rule_violation" | "invalid_tree" | "repaired" | "repair_failed" | "repair_abandoned" | "replanned" | "replan_refused" | "split_refused" | "plan_rejected" | "timed_out" | "idle_timeout" | "guard_timed_out" | "over_budget" | "interrupted" | "rate_limited" | "overloaded" | "disconnected" | "usage_limit" | "agent_not_started" | "agent_crashed" | "no_answer" | "provider_refused" | "guard_not_started" | "review_failed" | "not_logged_in" | "context_full" | "planned" | "plan_questions" } | { reason: "vacuous_checks"; node: string; checks: string[] } | { reason: "not_approved" } | { reason: "interrupted"; by: Interruption } | { reason: "user_stop" };

/** The limits that a budget can set. */
export type BudgetLimit = "run_tokens" | "run_usd" | "leaf_tokens" | "leaf_usd";

/** What interrupted a session. */
export type Interruption = "int" | "term" | "hup" | "crash";

/** A command to type, and what it is for. */
export interface NextCommand {
  command: string;
  /** What it does, in the imperative. */
  what: string;
}

/** What shows best why a run stopped. */
export interface StopEvidence {
  /** The iterations on the last task, newest first. */
  iterations: number[];
  line: LogLine | null;
  failure: FailureExcerpt | null;
  /** The newest attempts at the last task, newest first. */
  attempts: AttemptEvidence[];
}

/** A line of a log. */
export interface LogLine {
  iter: number;
  /** `guard`, `stderr` or `agent`. */
  log: string;
  /** From 0. */
  line: number;
  text: string;
}

/** The lines of a log that show what failed: an assertion, a panic, an error of a compiler. */
export interface FailureExcerpt {
  /** The number of the first line, from 0. */
  line: number;
  lines: string[];
  /** `src/limit.rs:88:9`, if the lines name a place in a file. */
  location: string | null;
}

/** One attempt at a task. */
export interface AttemptEvidence {
  iter: number;
  /** The line with the failure. */
  failure: string | null;
  /** Whether the newest attempt failed with the same line. */
  is_same: boolean;
  /** How many files outside `.runner/` it changed; null if git does not have its commits. */
  files: number | null;
  added: number | null;
  removed: number | null;
}

/** The result of verifying a run. */
export interface VerifyResult {
  verdict: VerifyVerdict;
  /** The verdict as a sentence. */
  summary: string;
  /** The violated rules, in the order of the commits. */
  findings: VerifyFinding[];
  /** How many rules were violated, listed in `findings` or not. */
  violations: number;
  commits: number;
  iterations: number;
  /** What could not be checked here. */
  unchecked: string[];
  /** What to type to verify the run yourself. */
  command: string | null;
}

/** Whether git alone proves that every rule held. */
export type VerifyVerdict = "verified" | "violated" | "partial" | "unknown";

export interface VerifyFinding {
  rule: string;
  /** What the rule requires. */
  requirement: string;
  commit: string;
  iter: number | null;
  expected: string;
  found: string;
}

/** A question of an agent, as `runner questions` lists it. */
export interface QuestionView {
  /** The number that `runner answer` takes. */
  number: number;
  text: string;
  /** The answers, oldest first. */
  answers: string[];
}

/** How far a run is, and what it used. Tokens and cost are those of run_state.json, as `runner status` shows them. What is not known is null. */
export interface RunProgress {
  leaves_total: number;
  leaves_passed: number;
  iterations: number;
  iterations_max: number | null;
  started_ms: number | null;
  ended_ms: number | null;
  /** Time in iterations, without the time between them. */
  busy_ms: number | null;
  failed_attempts: number;
  tokens: number | null;
  tokens_max: number | null;
  cost_microdollars: number | null;
  cost_microdollars_max: number | null;
  /** The least certain source of the cost. */
  cost_source: "unknown" | "reported" | "estimated";
  /** How many sessions have an unknown cost. */
  sessions_without_cost: number;
}

/** Acceptance criteria, by how they are decided. */
export interface Coverage {
  points: number;
  /** Decided by a check that failed before the work and succeeded after it. */
  proven: number;
  /** Decided by a check of a task that has not passed yet. */
  pending: number;
  /** Decided by checks that did not fail for a reason that counts before the work. */
  unproven: number;
  /** Decided by no check, but by an agent. */
  prose: number;
}

/** The iteration in progress. */
export interface CurrentIteration {
  iter: number;
  node: string | null;
  path: string;
  title: string;
  attempt: AttemptOrdinal | null;
  started_ms: number | null;
  timeout_ms: number | null;
}

/** Attempt `nth` of `of`. */
export interface AttemptOrdinal {
  nth: number;
  of: number;
}

/** A part of the first screen. `/api/overview` sends one on each line, each with one of these. */
export interface OverviewPart {
  /** Always the first part. */
  snapshot: PageSnapshot | null;
  iterations: IterationList | null;
  tree: TreeColumns | null;
  /** The task that the page shows first. */
  task: NodeDetail | null;
  /** Only if they are known without asking git. */
  files: RunFiles | null;
}

export interface IterationList {
  run: string | null;
  iterations: IterationRow[];
}

/** One iteration, as lists show it. What is not known is null. */
export interface IterationRow {
  iter: number;
  node: string | null;
  path: string;
  /** What the session was for: `leaf`, `repair`, `replan`. */
  session: string | null;
  attempt: AttemptOrdinal | null;
  /** Null while the iteration is in progress. */
  outcome: string | null;
  status: string | null;
  guard: string | null;
  /** `exit 1`, `signal 9`; null if the guard gave no result. */
  guard_exit: string | null;
  /** The review in one line: `refused 1/2 by claude: no test`. */
  review: string | null;
  /** Where the guard ran: `in-place`, or `bubblewrap` with its ignored files; null if it did not run to its end. */
  room: string | null;
  /** The checks that ran. */
  checks: CheckResultView[];
  /** Whether it used an attempt. */
  is_charged: boolean;
  summary: string;
  findings: string[];
  /** As sentences. */
  annotations: string[];
  started_ms: number | null;
  ended_ms: number | null;
  agent_ms: number | null;
  guard_ms: number | null;
  input_tokens: number | null;
  /** The part of the input tokens that a cache answered. */
  cached_tokens: number | null;
  output_tokens: number | null;
  cost_microdollars: number | null;
  /** Who computed the cost of a session. */
  cost_source: "unknown" | "reported" | "estimated";
  executor: string | null;
  model: string | null;
  commit: string | null;
  commit_before: string | null;
  /** Whether its log folder exists here; a clone only has the commits. */
  has_logs: boolean;
}

/** A check in one iteration. */
export interface CheckResultView {
  name: string;
  /** How it ended before the work. */
  red: "green" | "failed" | "absent" | "broken";
  /** How it ended after the session, `0` for success; null if it did not run then. */
  exit: string | null;
  is_green: boolean;
}

/** A tree in columns: one entry per node in each, in the order in which it is drawn. */
export interface TreeColumns {
  run: string | null;
  /** Changes whenever the tree does. */
  revision: string;
  id: string[];
  title: string[];
  /** The index of the parent; -1 for the root. */
  parent: number[];
  depth: number[];
  /** 1: passes, 2: is a leaf, 4: has no attempts left. */
  flags: number[];
  /** The state to show; a node that a session works on is `running` instead, unless it passed. */
  state: NodeState[];
  attempts: number[];
  max_attempts: number[];
  /** The leaves at or below the node. */
  leaves: number[];
  /** Those of them that pass. */
  passed: number[];
  selected: string | null;
}

/** The state of a node as people see it. */
export type NodeState = "passed" | "stuck" | "next" | "retried" | "open" | "running";

/** One node with its history. */
export interface NodeDetail {
  run: string | null;
  id: string;
  title: string;
  goal: string;
  acceptance: string[];
  /** How each acceptance criterion of a leaf is decided. */
  points: PointState[];
  checks: TaskCheckView[];
  passes: boolean;
  is_leaf: boolean;
  state: NodeState;
  attempts: number;
  max_attempts: number;
  leaves_total: number;
  leaves_passed: number;
  /** From the root to the node itself. */
  path: NodeName[];
  children: NodeName[];
  /** The iterations on it, oldest first. */
  iterations: number[];
  /** The newest iteration on it that did not pass. */
  last_failure: number | null;
  /** What the next session on it reads about the last one that answered. */
  history: NodeHistoryView | null;
}

/** How one acceptance criterion is decided. */
export type PointState = "proven" | "pending" | "unproven" | "prose";

/** A check of a task. */
export interface TaskCheckView {
  name: string;
  /** As one types it. */
  command: string;
  /** The acceptance criteria that it decides, from 1; empty if it decides all of them. */
  covers: number[];
  /** How it ended before the work; null if it has not run. */
  red: "green" | "failed" | "absent" | "broken" | null;
  state: CheckStateName;
}

/** What became of a check. */
export type CheckStateName = "held_back" | "red" | "vacuous" | "green";

export interface NodeName {
  id: string;
  title: string;
  passes: boolean;
}

/** What a session left for the next one on the same node. */
export interface NodeHistoryView {
  iter: number;
  outcome: string;
  summary: string;
  notes: string[];
  guard_output: string | null;
}

/** The files that the iterations of a run changed, without those below `.runner/`. */
export interface RunFiles {
  run: string | null;
  /** By path. */
  files: FileHistory[];
  /** What the run changed from its first to its last commit; none where git does not have them. */
  net: NetChange | null;
  /** How many iterations are not included, because neither their patch nor their commits exist here. */
  unknown: number;
}

export interface FileHistory {
  path: string;
  /** Oldest first. */
  touches: FileTouch[];
}

/** The change of one file in one iteration. */
export interface FileTouch {
  iter: number;
  /** Null for a binary file. */
  added: number | null;
  removed: number | null;
}

/** The difference between two commits, without files below `.runner/`. */
export interface NetChange {
  files: number;
  added: number;
  removed: number;
}

/** One iteration with its files. */
export interface IterationDetail {
  run: string;
  row: IterationRow;
  /** meta.json, unchanged. */
  meta: unknown;
  /** output.json, unchanged. */
  output: unknown;
  files: FileSize[];
  /** Whether the policy of `[logs]` removed logs of it. */
  logs_removed: boolean;
  /** The iteration before it. */
  previous: number | null;
  /** The iteration after it. */
  next: number | null;
}

/** A file of an iteration's log folder. */
export interface FileSize {
  name: string;
  bytes: number;
}

export interface RunList {
  runs: RunRow[];
}

/** One run of a repository. */
export interface RunRow {
  head: RunHead;
  state: LifecycleState;
  stop: StopReason | null;
  headline: string;
  /** What verifying the run at its newest commit gave; null while that is not known. */
  trust: VerifyVerdict | null;
  progress: RunProgress;
  /** The time of the branch's last commit. */
  moved_ms: number | null;
}

/** Some lines of a log. */
export interface LogPage {
  /** The lines of the whole log. */
  total: number;
  /** The bytes of the whole log. */
  bytes: number;
  /** The number of the first line in `lines`, from 0. */
  from: number;
  lines: string[];
  /** The indexes in `lines` of truncated lines. */
  cut: number[];
  /** Whether the last line has no line end yet. */
  is_open: boolean;
}

/** The parts of a log that can be folded. */
export interface LogGroups {
  /** By their first lines; a group inside another one comes after it. */
  groups: LogGroup[];
  /** Whether lines begin with the time of the day. */
  has_times: boolean;
}

export interface LogGroup {
  /** The line with its heading, from 0. */
  first: number;
  last: number;
  title: string;
  /** How long it took, if the log has that. */
  seconds: number | null;
}

/** The lines of a log that match. */
export interface LogHits {
  /** How many lines match, listed in `hits` or not. */
  total: number;
  /** How many lines were searched. */
  searched: number;
  hits: LogHit[];
}

export interface LogHit {
  /** From 0. */
  line: number;
  text: string;
}

/** What changed in an iteration. */
export interface DiffView {
  from: string;
  /** Null while the changes are in the work tree only. */
  to: string | null;
  files: DiffFile[];
  tree: TreeChange[];
}

export interface DiffFile {
  path: string;
  old_path: string | null;
  /** Null for a binary file. */
  added: number | null;
  removed: number | null;
  /** Whether it is below `.runner/`; such files are shown last. */
  is_runner_file: boolean;
}

/** A node that an iteration changed. */
export interface TreeChange {
  id: string;
  title: string;
  /** `added`, `passed`, `attempts 1 → 2`. */
  what: string;
}

/** The patch of one file. */
export interface DiffPatch {
  path: string;
  lines: DiffLine[];
  /** Whether `lines` is not the whole patch. */
  is_cut: boolean;
}

export interface DiffLine {
  kind: DiffKind;
  /** Its number before the change. */
  old: number | null;
  /** Its number after the change. */
  new: number | null;
  text: string;
}

export type DiffKind = "same" | "added" | "removed" | "head" | "hunk" | "note";

/** Nodes, iterations, files and lines of logs that contain the text. */
export interface SearchResults {
  nodes_total: number;
  nodes: NodeName[];
  iterations_total: number;
  iterations: IterationRow[];
  files_total: number;
  files: FileHistory[];
  /** Lines of logs, of the newest iterations first; only with `logs=1`. */
  logs: LogLine[];
  /** How many iterations' logs were searched: a search ends after some time. */
  logs_searched: number;
}

export interface ErrorResponse {
  error: ErrorBody;
}

export interface ErrorBody {
  code: string;
  /** What failed, and why. */
  message: string;
  hint: string | null;
  problems: string[];
}

/** A change, as `/events` sends it; the variant is the name of the event. */
export type ChangeEvent = { event: "hello"; build: string } | { event: "tree_changed"; revision: string } | { event: "run_state_changed" } | { event: "iteration_added"; run: string; iter: number } | { event: "iteration_changed"; run: string; iter: number; files: FileSize[] } | { event: "run_changed" } | { event: "trial_changed"; case: string; id: string; is_latest: boolean; change: ChangeEvent } | { event: "results_changed" } | { event: "resync" };

export interface RunExport {
  /** `runner.export/1`. */
  schema: string;
  /** What was omitted, as sentences. */
  omitted: string[];
  snapshot: PageSnapshot;
  runs: RunList;
  iterations: IterationList;
  /** Null where the tree is missing or invalid. */
  tree: TreeColumns | null;
  /** By node id. */
  nodes: Record<string, NodeDetail>;
  files: RunFiles;
  verify: VerifyExport;
  /** By iteration number; empty in an exported page, which has each iteration in an element of its own. */
  details: Record<string, IterationExport>;
}

/** The result of the verification, with the git objects that it is about. */
export interface VerifyExport {
  result: VerifyResult;
  /** What the audit reads of the run's commits, folders and documents, compressed and in base 64: the page audits them again. Null in an exported page, which has them in an element of its own, and where there is no repository. */
  objects: string | null;
}

export interface IterationExport {
  detail: IterationDetail;
  /** Null where the commits are missing. */
  diff: DiffView | null;
  /** By the path of the file. */
  patches: Record<string, DiffPatch>;
  /** By the name of the log in addresses. */
  logs: Record<string, LogExport>;
}

/** A log without the lines that were omitted. */
export interface LogExport {
  /** The size of the whole file. */
  bytes: number;
  /** One line in place of the omitted ones has their number. */
  lines: string[];
  /** The lines that report an error. */
  errors: LogHits;
  groups: LogGroups;
}

export interface EvalView {
  /** The folder of results. */
  results: string;
  /** Newest first. */
  runs: EvalRun[];
  /** The run that is shown; null where there is none. */
  grid: EvalGrid | null;
}

export interface EvalRun {
  run: string;
  created_at: string;
  /** The version of the runner under test. */
  runner: string;
  agents: string[];
  cases: number;
  /** How many trials are planned. */
  units: number;
  /** How many of them have a result. */
  done: number;
}

/** The cases and trials of a run. */
export interface EvalGrid {
  run: string;
  /** The k of pass@k. */
  k: number;
  /** Per agent, over all cases. */
  agents: EvalScore[];
  /** Per agent and case. */
  cases: EvalScore[];
  /** Every attempt at every trial. */
  trials: EvalTrial[];
  /** Planned trials without a result. */
  missing: EvalMissing[];
  /** Why results could not be read. */
  unreadable: string[];
}

/** The score of an agent, on one case or over all. */
export interface EvalScore {
  agent: string;
  /** Null for the score over all cases. */
  case: string | null;
  /** How many cases have a score. */
  cases: number;
  /** How many trials are scored. */
  n: number;
  successes: number;
  /** How many trials are not scored. */
  left_out: number;
  rate: number | null;
  /** The 95 % confidence interval of the rate. */
  interval: EvalInterval | null;
  pass_at_k: number | null;
  pass_all_k: number | null;
  secs_per_success: number | null;
  usd_per_success: number | null;
}

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
  /** The name of its folder, and its id. */
  id: string;
  /** Whether it is the last attempt, which counts. */
  is_last: boolean;
  /** Whether it counts for the agent's score. */
  is_scored: boolean;
  /** `success`, `fail`, `stuck`, `error`, `skipped`. */
  outcome: string;
  cause: string | null;
  why: string | null;
  /** The expected end of a case about the runner itself. */
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
  /** Whether the agent could not see it. */
  hidden: boolean;
  passed: boolean;
  why: string | null;
  /** The last lines that a failed check printed. */
  output: string | null;
}

/** A planned trial without a result. */
export interface EvalMissing {
  case: string;
  agent: string;
  trial: number;
  /** Its part of the names of its results. */
  slug: string;
  /** Its newest attempt with a workspace. */
  id: string | null;
  /** Whether a process of this machine works on it. */
  is_under_way: boolean;
}

/** A comparison of two results, paired by case. */
export interface EvalComparison {
  base: string;
  new: string;
  /** How many cases are scored on both sides. */
  n: number;
  difference: EvalDifference;
  direction: EvalDirection;
  /** What the difference means, as a sentence. */
  words: string;
  paired: EvalPairs;
  /** Why some of it cannot be compared. */
  notes: string[];
}

/** The new rate minus the base rate. */
export interface EvalDifference {
  mean: number;
  interval: EvalInterval;
  /** Whether the interval is about these cases, or about the population that they come from. */
  scope: string;
  /** In how many cases the new results are better. */
  wins: number;
  ties: number;
  losses: number;
  /** The probability of such a difference by chance. */
  p_value: number;
  /** The probability of such a drop by chance. */
  p_drop: number;
  exact: boolean;
}

/** What a difference shows. */
export type EvalDirection = "better" | "worse" | "none";

/** The cases that are scored on both sides. */
export interface EvalPairs {
  cases: EvalPair[];
}

export interface EvalPair {
  case: string;
  base: EvalCounts;
  new: EvalCounts;
  difference: number;
}

/** The scored trials of one case. */
export interface EvalCounts {
  successes: number;
  n: number;
}

export type Tone = "pass" | "run" | "retry" | "fail" | "open";

export interface Label {
  text: string;
  glyph: string;
  tone: Tone;
}

export const STATE_LABELS: Record<LifecycleState, Label> = {
  no_run: { text: "no run", glyph: "◦", tone: "open" },
  invalid: { text: "invalid", glyph: "✗", tone: "fail" },
  running: { text: "running", glyph: "▸", tone: "run" },
  waiting: { text: "waiting", glyph: "↻", tone: "retry" },
  paused: { text: "paused", glyph: "⊘", tone: "retry" },
  stopped: { text: "stopped", glyph: "⊘", tone: "retry" },
  complete: { text: "complete", glyph: "✓", tone: "pass" },
  crashed: { text: "crashed", glyph: "✗", tone: "fail" },
};

export const STOP_LABELS: Record<StopReason["reason"], Label> = {
  complete: { text: "complete", glyph: "✓", tone: "pass" },
  stuck: { text: "stuck", glyph: "✗", tone: "fail" },
  not_reproducible: { text: "final check failed", glyph: "✗", tone: "fail" },
  regressed: { text: "checks fail again", glyph: "✗", tone: "fail" },
  max_iterations: { text: "max_iterations reached", glyph: "✗", tone: "fail" },
  loop_iterations: { text: "--max-iterations reached", glyph: "⊘", tone: "retry" },
  loop_budget: { text: "limit of this loop reached", glyph: "⊘", tone: "retry" },
  loop_until: { text: "--until reached", glyph: "⊘", tone: "retry" },
  budget: { text: "budget used up", glyph: "✗", tone: "fail" },
  stalled: { text: "no progress", glyph: "✗", tone: "fail" },
  time_limit: { text: "time limit", glyph: "✗", tone: "fail" },
  failures: { text: "failures in a row", glyph: "✗", tone: "fail" },
  needs_user: { text: "action needed", glyph: "✗", tone: "fail" },
  vacuous_checks: { text: "checks prove nothing", glyph: "✗", tone: "fail" },
  not_approved: { text: "plan not approved", glyph: "⊘", tone: "retry" },
  interrupted: { text: "interrupted", glyph: "⊘", tone: "retry" },
  user_stop: { text: "stopped by you", glyph: "⊘", tone: "retry" },
};

export const NODE_LABELS: Record<NodeState, Label> = {
  passed: { text: "passed", glyph: "✓", tone: "pass" },
  running: { text: "running", glyph: "▸", tone: "run" },
  stuck: { text: "stuck", glyph: "✗", tone: "fail" },
  next: { text: "next", glyph: "▸", tone: "run" },
  retried: { text: "retried", glyph: "↻", tone: "retry" },
  open: { text: "open", glyph: "◦", tone: "open" },
};

/** The outcomes that this version knows. */
export const OUTCOME_LABELS: Record<string, Label> = {
  passed: { text: "passed", glyph: "✓", tone: "pass" },
  unconfirmed: { text: "unconfirmed", glyph: "↻", tone: "retry" },
  checks_failed: { text: "checks failed", glyph: "✗", tone: "fail" },
  guard_failed: { text: "guard failed", glyph: "✗", tone: "fail" },
  review_refused: { text: "review refused", glyph: "✗", tone: "fail" },
  retry: { text: "retry", glyph: "↻", tone: "retry" },
  decomposed: { text: "split", glyph: "◊", tone: "run" },
  rule_violation: { text: "rule violated", glyph: "✗", tone: "fail" },
  invalid_tree: { text: "invalid tree", glyph: "✗", tone: "fail" },
  repaired: { text: "repaired", glyph: "✓", tone: "pass" },
  repair_failed: { text: "repair failed", glyph: "✗", tone: "fail" },
  repair_abandoned: { text: "repair abandoned", glyph: "✗", tone: "fail" },
  replanned: { text: "replanned", glyph: "◊", tone: "run" },
  replan_refused: { text: "replan refused", glyph: "✗", tone: "fail" },
  split_refused: { text: "not split", glyph: "✗", tone: "fail" },
  planned: { text: "planned", glyph: "◊", tone: "run" },
  plan_questions: { text: "has questions", glyph: "↻", tone: "retry" },
  plan_rejected: { text: "plan rejected", glyph: "✗", tone: "fail" },
  timed_out: { text: "timed out", glyph: "⊘", tone: "retry" },
  idle_timeout: { text: "no output", glyph: "⊘", tone: "retry" },
  guard_timed_out: { text: "guard timed out", glyph: "⊘", tone: "retry" },
  over_budget: { text: "budget used", glyph: "⊘", tone: "retry" },
  interrupted: { text: "interrupted", glyph: "⊘", tone: "retry" },
  rate_limited: { text: "rate limited", glyph: "↻", tone: "retry" },
  overloaded: { text: "overloaded", glyph: "↻", tone: "retry" },
  disconnected: { text: "disconnected", glyph: "↻", tone: "retry" },
  usage_limit: { text: "usage limit", glyph: "↻", tone: "retry" },
  agent_not_started: { text: "agent not started", glyph: "✗", tone: "fail" },
  agent_crashed: { text: "agent crashed", glyph: "✗", tone: "fail" },
  no_answer: { text: "no answer", glyph: "✗", tone: "fail" },
  provider_refused: { text: "provider refused", glyph: "✗", tone: "fail" },
  guard_not_started: { text: "guard not started", glyph: "✗", tone: "fail" },
  review_failed: { text: "review failed", glyph: "✗", tone: "fail" },
  not_logged_in: { text: "not logged in", glyph: "✗", tone: "fail" },
  context_full: { text: "context full", glyph: "⊘", tone: "retry" },
};
