//! One attempt at one trial, from an empty folder to a sealed result.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use runner_core::layout::Doc;
use runner_core::model::cost::number;
use runner_core::model::digest::Sha256;
use runner_core::model::run_state::RunState;
use runner_core::step::CostSource;
use runner_core::strict::canonical_json;
use runner_host::clock::{now_ms, utc};
use runner_term::{CommandError, CommandExit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use supervise::executables;
use supervise::{ExitReason, StopRequest, TimeLimits};

use crate::agent::EvalAgent;
use crate::files;
use crate::grade::Grader;
use crate::plan::TrialUnit;
use crate::process::{CommandRunner, CommandSpec};
use crate::result::{
    CHECKS_SCHEMA, CheckResults, LOCK_SCHEMA, META_SCHEMA, RunnerVersion, TrialCost, TrialInputs, TrialMeta,
};
use crate::results::{CHECKS, LOCK, META, StoredTrial};
use crate::run_folder::RunFolder;
use crate::runner_under_test::host;
use crate::signature::fingerprints;
use crate::suite::LoadedCase;
use crate::verdict::{LoopEnd, RunnerReport, TrialVerdict, judge};
use crate::workspace::{Workspace, environment};

/// How long `runner init` and `runner start` may take.
const START_WITHIN: Duration = Duration::from_secs(300);
/// The logs of a result.
pub(crate) const START_LOG: &str = "runner.start.log";
/// What `runner loop` wrote: one JSON line an event.
pub(crate) const LOOP_LOG: &str = "runner.loop.log";
/// The folder of iterations, in a repository's own and in a result.
pub(crate) const ITERATIONS: &str = "iterations";

/// What a worker is told to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerJob {
    pub(crate) unit: TrialUnit,
    pub(crate) run: String,
    pub(crate) case_file: PathBuf,
    /// What the case was when the plan was made.
    pub(crate) case_sha256: String,
    pub(crate) runner: PathBuf,
    pub(crate) runner_id: RunnerVersion,
    pub(crate) results: PathBuf,
    pub(crate) workspaces: PathBuf,
    pub(crate) retries: u32,
    pub(crate) jobs: u32,
}

/// What a worker says meanwhile and at its end, one JSON line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerMessage {
    /// What it is at.
    Phase(String),
    /// So many iterations are made.
    Iterations(u32),
    /// Something that should be seen.
    Note(String),
    /// The attempt's result is on record.
    Made(Box<TrialMeta>),
    /// The unit had its result already.
    Had(Box<TrialMeta>),
}

/// One attempt under way.
pub(crate) struct TrialAttempt<'a> {
    order: &'a WorkerJob,
    kit: &'a LoadedCase,
    launcher: &'a CommandRunner,
    say: &'a dyn Fn(WorkerMessage),
    workspace: Workspace,
    agent: EvalAgent,
    eval_run_id: String,
    attempt: u32,
    /// Where the result is put together.
    made: PathBuf,
}

/// What is known when the loop has ended.
struct LoopResult {
    end: LoopEnd,
    seconds: f64,
    config: String,
}

impl<'a> TrialAttempt<'a> {
    pub(crate) fn new(
        order: &'a WorkerJob,
        kit: &'a LoadedCase,
        (attempt, made): (u32, PathBuf),
        launcher: &'a CommandRunner,
        say: &'a dyn Fn(WorkerMessage),
    ) -> Result<Self, CommandError> {
        let agent = order.unit.agent.parse().map_err(|fault: String| {
            CommandError::refused("agent", format!("there is no agent `{}`", order.unit.agent)).cause(fault)
        })?;
        let eval_run_id = order.unit.eval_run_id(&order.run, attempt);
        let workspace = Workspace::of(&order.workspaces, &order.unit.case, &eval_run_id);
        Ok(Self { order, kit, launcher, say, workspace, agent, eval_run_id, attempt, made })
    }

    /// Makes the attempt; the result lies in its temporary folder then, but for its lock. Nothing if the evaluation
    /// was killed meanwhile.
    pub(crate) fn make(&self) -> Result<(TrialMeta, TrialInputs), CommandError> {
        let (began, started) = (Instant::now(), now_ms());
        let fail = |error| CommandError::io("could not write the result", &self.made, &error);
        files::clear(&self.made).and_then(|()| fs::create_dir_all(&self.made)).map_err(fail)?;
        let nothing = || CheckResults { schema: CHECKS_SCHEMA.to_owned(), checks: Vec::new() };
        let missing = self.missing();
        let (looped, checks, verdict) = if missing.is_empty() {
            let looped = self.run_loop();
            let is_stopped = matches!(looped.end, LoopEnd::Stopped | LoopEnd::NeverBegan(_));
            self.capture().map_err(fail)?;
            let checks = if is_stopped { nothing() } else { self.grade(&looped).map_err(fail)? };
            self.tear_down();
            let verdict = judge(&looped.end, &self.told(), &checks.checks);
            (looped, checks, verdict)
        } else {
            let config = String::new();
            let end = LoopEnd::NeverBegan(String::new());
            (LoopResult { end, seconds: 0.0, config }, nothing(), TrialVerdict::skipped(&missing))
        };
        let meta = self.meta(&looped, verdict, (began, started));
        fs::write(self.made.join(META), canonical_json(&meta)).map_err(fail)?;
        fs::write(self.made.join(CHECKS), canonical_json(&checks)).map_err(fail)?;
        let _ = files::clear(&self.workspace.private);
        Ok((meta, self.lock(&looped)))
    }

    fn missing(&self) -> Vec<&str> {
        let requires = self.kit.case.requires.iter().map(String::as_str);
        requires.filter(|program| executables::find(program, None).is_none()).collect()
    }

    /// A fresh repository, `runner start`, `runner loop`.
    fn run_loop(&self) -> LoopResult {
        (self.say)(WorkerMessage::Phase("setup".to_owned()));
        let config = self
            .workspace
            .make(self.kit, self.launcher)
            .and_then(|()| self.workspace.configuration(self.kit, &self.agent));
        let begun = config.and_then(|config| self.start(&config).map(|()| config));
        let config = match begun {
            Ok(config) => config,
            Err(why) => {
                let end = if self.is_stopped() { LoopEnd::Stopped } else { LoopEnd::NeverBegan(why) };
                return LoopResult { end, seconds: 0.0, config: String::new() };
            }
        };
        (self.say)(WorkerMessage::Phase("loop".to_owned()));
        let (line, count) = (Cell::new(Vec::new()), Cell::new(0_u32));
        let hear = |bytes: &[u8]| {
            let mut text = line.take();
            text.extend_from_slice(bytes);
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let settled = text.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
            let settled = settled.filter(|line| is_event(line, "decided")).count();
            if settled > 0 {
                count.set(count.get() + u32::try_from(settled).unwrap_or_default());
                (self.say)(WorkerMessage::Iterations(count.get()));
            }
            line.set(text.split_off(whole));
        };
        let wall = Duration::from_secs(self.kit.case.limits.wall_secs.into());
        let errand = CommandSpec {
            hear: Some(&hear),
            limits: TimeLimits::wall(wall),
            ..self.errand(&["--json", "loop"], LOOP_LOG)
        };
        match self.launcher.run(&errand) {
            Err(error) => LoopResult { end: LoopEnd::NeverBegan(error.to_string()), seconds: 0.0, config },
            Ok(ended) => {
                let end = match &ended.exit {
                    _ if self.is_stopped() => LoopEnd::Stopped,
                    ExitReason::Exited(code) => LoopEnd::Exited(*code),
                    ExitReason::TimedOut => LoopEnd::OutOfTime,
                    ExitReason::CouldNotStart(error) => LoopEnd::NeverBegan(error.to_string()),
                    exit @ (ExitReason::Signalled(_)
                    | ExitReason::Idle
                    | ExitReason::Stopped
                    | ExitReason::Lost) => LoopEnd::Killed(exit.to_string()),
                };
                LoopResult { end, seconds: ended.seconds, config }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.launcher.control.request() != StopRequest::None
    }

    fn errand(&self, words: &[&str], log: &str) -> CommandSpec<'a> {
        let argv = std::iter::once(self.order.runner.clone().into()).chain(words.iter().map(Into::into));
        CommandSpec {
            argv: argv.collect(),
            folder: self.workspace.repository.clone(),
            env: environment(self.kit, false),
            limits: TimeLimits::wall(START_WITHIN),
            log: Some(self.made.join(log)),
            ..CommandSpec::default()
        }
    }

    /// Sets the repository up, configures it and begins the run.
    fn start(&self, config: &str) -> Result<(), String> {
        self.call(&["init"])?;
        let path = self.workspace.document(Doc::Config);
        fs::write(&path, config).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let goal = self.workspace.private.join("goal.md");
        fs::write(&goal, &self.kit.case.goal).map_err(|error| format!("`{}`: {error}", goal.display()))?;
        self.call(&["start", "--goal-file", &goal.to_string_lossy()])
    }

    fn call(&self, words: &[&str]) -> Result<(), String> {
        let ended = self.launcher.run(&self.errand(words, START_LOG)).map_err(|error| error.to_string())?;
        if ended.is_success() {
            return Ok(());
        }
        Err(format!("`runner {}` {}: {}", words.join(" "), ended.exit, ended.tail()))
    }

    /// Copies what the run left: its documents and the folders of its iterations.
    fn capture(&self) -> std::io::Result<()> {
        for (doc, name) in [(Doc::Tree, "tree.json"), (Doc::RunState, "run_state.json")] {
            let path = self.workspace.document(doc);
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
                fs::copy(path, self.made.join(name))?;
            }
        }
        let folder = self.workspace.document(Doc::Goal).with_file_name(ITERATIONS);
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir()) {
            files::copy(&folder, &self.made.join(ITERATIONS))?;
        }
        Ok(())
    }

    /// Runs the checks on a copy: the workspace stays as the run left it, and sees nothing hidden.
    fn grade(&self, looped: &LoopResult) -> std::io::Result<CheckResults> {
        (self.say)(WorkerMessage::Phase("checks".to_owned()));
        let copy = self.workspace.private.join("checked");
        files::clear(&copy)?;
        files::copy(&self.workspace.repository, &copy)?;
        let grader = Grader {
            kit: self.kit,
            launcher: self.launcher,
            runner: &self.order.runner,
            folder: &copy,
            completed: looped.end == LoopEnd::Exited(0),
        };
        Ok(grader.grade())
    }

    fn tear_down(&self) {
        if let Some(teardown) = &self.kit.case.teardown
            && let Err(why) = self.workspace.errand(self.kit, teardown, "teardown", self.launcher)
        {
            (self.say)(WorkerMessage::Note(runner_core::text::one_line(&why)));
        }
    }

    fn state(&self) -> Option<RunState> {
        RunState::decode(&fs::read(self.made.join("run_state.json")).ok()?).ok()
    }

    fn told(&self) -> RunnerReport {
        let log = fs::read(self.made.join(LOOP_LOG)).unwrap_or_default();
        RunnerReport { last: self.state().and_then(|state| state.last_outcome), why: why(&log) }
    }

    fn meta(
        &self,
        looped: &LoopResult,
        verdict: TrialVerdict,
        (began, started): (Instant, u64),
    ) -> TrialMeta {
        let state = self.state();
        let spent = state.as_ref().map(|state| state.spent);
        let known = |amount: u64, blind: u64| if amount == 0 && blind > 0 { None } else { Some(amount) };
        let tokens = spent.and_then(|s| known(number(s.tokens), number(s.sessions_without_tokens)));
        let microdollars = spent.and_then(|s| known(number(s.microdollars), number(s.sessions_without_cost)));
        TrialMeta {
            schema: META_SCHEMA.to_owned(),
            case_id: self.order.unit.case.clone(),
            tags: self.kit.case.tags.clone(),
            agent: self.order.unit.agent.clone(),
            trial: self.order.unit.trial,
            attempt: self.attempt,
            run: self.order.run.clone(),
            eval_run_id: self.eval_run_id.clone(),
            outcome: verdict.outcome,
            cause: verdict.cause,
            why: verdict.why.map(|why| runner_core::text::one_line(&why)),
            expected: self.kit.case.expect.filter(|_| self.agent == EvalAgent::Case),
            runner_exit: match looped.end {
                LoopEnd::Exited(code) => Some(code),
                LoopEnd::OutOfTime | LoopEnd::Stopped | LoopEnd::Killed(_) | LoopEnd::NeverBegan(_) => None,
            },
            wall_secs: rounded(began.elapsed().as_secs_f64()),
            loop_secs: rounded(looped.seconds),
            iterations: state.as_ref().map_or(0, |state| state.next_iter.get().saturating_sub(1)),
            tokens,
            cost: TrialCost { microdollars, basis: spent.map_or(CostSource::Unknown, |spent| spent.basis()) },
            runner: self.order.runner_id.clone(),
            started_at: utc(started).unwrap_or_default(),
            ended_at: utc(now_ms()).unwrap_or_default(),
        }
    }

    fn lock(&self, looped: &LoopResult) -> TrialInputs {
        let digests = &self.kit.digests;
        TrialInputs {
            schema: LOCK_SCHEMA.to_owned(),
            case_sha256: digests.case.to_string(),
            fixture_sha256: digests.fixture.map(|digest| digest.to_string()),
            checks_sha256: digests.checks.to_string(),
            config_sha256: Sha256::of(looped.config.as_bytes()).to_string(),
            runner: self.order.runner_id.clone(),
            host: host(self.order.jobs),
            files: fingerprints(&self.made),
            seal: String::new(),
        }
    }
}

/// Makes an attempt at a unit, unless it has its result already, and puts the result in its place in one move.
pub(crate) fn work(
    order: &WorkerJob,
    launcher: &CommandRunner,
    is_orphaned: &dyn Fn() -> bool,
    say: &dyn Fn(WorkerMessage),
) -> Result<(), CommandError> {
    let run = RunFolder::open(&order.results, &order.run)?;
    let fail = |error| CommandError::io("could not write the result", &order.results, &error);
    let _lock = run.lock(&order.unit).map_err(fail)?;
    let attempts = true_attempts(order, &run, say).map_err(fail)?;
    if RunFolder::is_done(&attempts, order.retries)
        && let Some(last) = attempts.last()
    {
        say(WorkerMessage::Had(Box::new(last.meta.clone())));
        return Ok(());
    }
    let kit = LoadedCase::read(&order.case_file)?;
    if kit.digests.whole.to_string() != order.case_sha256 {
        return Err(CommandError::new(
            "case_changed",
            CommandExit::FAILURE,
            format!("case `{}` is not what it was", order.unit.case),
        )
        .cause("its files were changed after the run began, by you or by an agent")
        .hint("look at what changed: git status; then put it back, or begin a new run: --new"));
    }
    let attempt = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
    let place = run.result(&order.unit, attempt);
    let made = place.with_file_name(format!(".{}", order.unit.eval_run_id(&order.run, attempt)));
    let (meta, lock) = TrialAttempt::new(order, &kit, (attempt, made.clone()), launcher, say)?.make()?;
    if is_orphaned() {
        return files::clear(&made).map_err(fail);
    }
    fs::write(made.join(LOCK), canonical_json(&run.key.sealed(lock))).map_err(fail)?;
    if place.exists() {
        // Nobody else has this unit's lock: what is there was put there by the agent.
        set_aside(&order.results, &place, say).map_err(fail)?;
    }
    fs::rename(&made, &place).map_err(fail)?;
    true_attempts(order, &run, say).map_err(fail)?;
    say(WorkerMessage::Made(Box::new(meta)));
    Ok(())
}

/// The attempts at a unit; what only looks like one is set aside.
fn true_attempts(
    order: &WorkerJob,
    run: &RunFolder,
    say: &dyn Fn(WorkerMessage),
) -> std::io::Result<Vec<StoredTrial>> {
    loop {
        let (attempts, forged) = run.attempts(&order.unit);
        if forged.is_empty() {
            return Ok(attempts);
        }
        for folder in &forged {
            set_aside(&order.results, folder, say)?;
        }
    }
}

/// Moves what pretends to be a result to where it counts for nothing and can be looked at.
fn set_aside(results: &Path, folder: &Path, say: &dyn Fn(WorkerMessage)) -> std::io::Result<()> {
    let forged = results.join("_forged");
    fs::create_dir_all(&forged)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = forged.join(format!("{name}.{}", now_ms()));
    fs::rename(folder, &place)?;
    say(WorkerMessage::Note(format!("{name} was not made by this evaluation: it is in {}", place.display())));
    Ok(())
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn is_event(line: &[u8], name: &str) -> bool {
    let event: Option<Value> = serde_json::from_slice(line).ok();
    event.is_some_and(|event| event.get("event").and_then(Value::as_str) == Some(name))
}

/// Why the loop stopped, in its own words: from its last event, or from the error that it ended with.
fn why(log: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    let end = text.lines().rev().find(|line| is_event(line.as_bytes(), "end"));
    if let Some(end) = end {
        let end: Value = serde_json::from_str(end).ok()?;
        return end.get("headline").and_then(Value::as_str).map(str::to_owned);
    }
    let at = text.rfind("{\n")?;
    let error: Value = serde_json::from_str(text.get(at..)?).ok()?;
    let mut words = vec![error.get("message")?.as_str()?.to_owned()];
    let causes = error.get("causes").and_then(Value::as_array).into_iter().flatten();
    words.extend(causes.filter_map(Value::as_str).map(str::to_owned));
    Some(words.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_says_why_it_stopped() {
        let log = b"{\"event\":\"settled\"}\n{\"event\":\"end\",\"headline\":\"no attempts left\"}\n";
        assert_eq!(why(log).as_deref(), Some("no attempts left"));
        let log = b"{\"event\":\"x\"}\n{\n  \"message\": \"could not\",\n  \"causes\": [\"why\"]\n}\n";
        assert_eq!(why(log).as_deref(), Some("could not: why"));
        assert_eq!(why(b"killed"), None);
    }
}
