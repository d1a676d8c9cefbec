//! The checks of a task in an iteration: red first, before the first session, and green after an accepted `done`.
//!
//! Everything is decided here; the world only runs commands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::before_work::RedResults;
use super::event::Event;
use super::guard_place::GuardPlace;
use super::heldout::HeldoutGreen;
use super::interpret::Claim;
use super::next_state::bounded_output;
use super::outcome::{Interruption, StopReason};
use super::plan::Job;
use super::{IterationWorld, LoadedRun, World};
use crate::checks::{CheckVerdict, EndedCheck};
use crate::config::VacuousPolicy;
use crate::model::checks::{
    Check, CheckEnd, CheckExit, CheckName, CheckRecord, CheckRed, RedKind, RedRule, TaskChecks, TaskProof,
};
use crate::model::heldout::HeldoutTask;
use crate::model::id::NodeId;
use crate::text::lines;

/// The checks of a session's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChecks {
    pub node: NodeId,
    pub task: TaskChecks,
    /// How they ended before the work, if that is on record; else they run before the session.
    pub red: Option<TaskProof>,
    pub vacuous: VacuousPolicy,
}

/// The result of one run of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckRun {
    Ended {
        exit: CheckExit,
        /// What it printed, as far as it was kept; or why it could not start.
        output: Vec<u8>,
        /// The JUnit report that it wrote.
        junit: Option<Vec<u8>>,
        /// What can change what runs in the place of its files, as [`redirects`](crate::checks::redirects) finds it.
        redirects: Vec<String>,
        place: GuardPlace,
    },
    /// A signal interrupted the runner.
    Interrupted { by: Interruption },
}

/// When a check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CheckPhase {
    /// Before the first session on the task.
    Red,
    /// After a session answered `done`.
    Green,
}

/// What the checks of a task showed in an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckEvidence {
    /// How they ended before the work, if they ran then in this iteration.
    #[serde(default)]
    pub red: Option<TaskProof>,
    /// The same for tasks above it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<TaskProof>,
    /// The same for held-out checks, of the task and of those above it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heldout_red: Vec<HeldoutTask>,
    #[serde(default)]
    pub green: GreenRun,
    #[serde(default, skip_serializing_if = "HeldoutGreen::is_skipped")]
    pub heldout: HeldoutGreen,
}

/// The checks after an accepted `done`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GreenRun {
    /// The task has none, or the session's answer does not call for them.
    #[default]
    Skipped,
    Ended {
        /// One result for each check, in their order.
        results: Vec<CheckResult>,
        /// What those that failed printed, bounded.
        output: String,
        place: GuardPlace,
    },
    /// A signal interrupted the runner.
    Interrupted { by: Interruption },
}

/// How one check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    pub name: CheckName,
    pub exit: CheckExit,
}

impl GreenRun {
    /// Where the checks ran, if they ran to their end.
    pub fn place(&self) -> Option<&GuardPlace> {
        match self {
            Self::Ended { place, .. } => Some(place),
            Self::Skipped | Self::Interrupted { .. } => None,
        }
    }

    /// Whether all checks succeeded, or there are none.
    pub fn is_green(&self) -> bool {
        match self {
            Self::Skipped => true,
            Self::Ended { results, .. } => results.iter().all(|result| result.exit.is_green()),
            Self::Interrupted { .. } => false,
        }
    }

    fn exit_of(&self, name: &CheckName) -> Option<CheckExit> {
        match self {
            Self::Ended { results, .. } => {
                results.iter().find(|result| result.name == *name).map(|result| result.exit)
            }
            Self::Skipped | Self::Interrupted { .. } => None,
        }
    }
}

impl CheckEvidence {
    /// Adds what ran before the session.
    pub(super) fn set_red(&mut self, red: RedResults) {
        (self.red, self.above, self.heldout_red) = (red.task, red.above, red.heldout);
    }

    /// What a commit records about the checks of its task; nothing in an iteration in which none ran.
    pub fn records(&self, checks: Option<&JobChecks>) -> Vec<CheckRecord> {
        let Some(checks) = checks else { return Vec::new() };
        let has_run = self.red.is_some() || matches!(self.green, GreenRun::Ended { .. });
        let proof = self.red.as_ref().or(checks.red.as_ref());
        let Some(proof) = proof.filter(|_| has_run) else { return Vec::new() };
        let record = |check: &Check| CheckRecord {
            name: check.name.clone(),
            red: proof.red_of(&check.name).unwrap_or(RedKind::Broken),
            exit: self.green.exit_of(&check.name),
            digest: checks.task.digest,
        };
        checks.task.checks.iter().map(record).collect()
    }
}

impl JobChecks {
    /// The checks that had to fail before the work and did not, so that their success proves nothing.
    pub fn unproven(&self, proof: &TaskProof) -> Vec<CheckRed> {
        let is_required = |red: &&CheckRed| {
            let check = self.task.checks.iter().find(|check| check.name == red.name);
            check.is_some_and(|check| check.red == RedRule::Required)
        };
        let reds = proof.checks.iter().filter(is_required);
        reds.filter(|red| !red.red.is_proof()).cloned().collect()
    }
}

/// What ran before a session.
pub(super) enum RedFirst {
    /// The session may begin; with the result, if the checks ran.
    Ready(Option<TaskProof>),
    Stop(StopReason),
}

/// Runs the checks of a task before its first session. They must fail, for a reason that counts.
pub(super) fn red_first<W: World>(world: &mut W, run: &LoadedRun, job: &Job) -> Result<RedFirst, W::Error> {
    let Some(checks) = job.task.checks.as_ref().filter(|checks| checks.red.is_none()) else {
        return Ok(RedFirst::Ready(None));
    };
    let mut reds = Vec::new();
    for check in &checks.task.checks {
        match red_runs(world, run, job, check)? {
            RedRun::Ended(CheckEnd { red, facts, .. }) => {
                let is_comparable = facts.ran.is_some() || !check.files.is_empty();
                let facts = is_comparable.then_some(facts);
                reds.push(CheckRed { name: check.name.clone(), red, facts });
            }
            RedRun::Interrupted { by } => return Ok(RedFirst::Stop(StopReason::Interrupted { by })),
        }
    }
    let proof = TaskProof { node: checks.node.clone(), digest: checks.task.digest, checks: reds };
    let unproven = checks.unproven(&proof);
    if checks.vacuous == VacuousPolicy::Stop && !unproven.is_empty() {
        let names = unproven.into_iter().map(|red| red.name).collect();
        return Ok(RedFirst::Stop(StopReason::VacuousChecks { node: checks.node.clone(), checks: names }));
    }
    Ok(RedFirst::Ready(Some(proof)))
}

/// Runs the checks of a job's task as before the first session, or returns the signal that ended them.
pub fn run_red_checks<W: World>(
    world: &mut W,
    run: &LoadedRun,
    job: &Job,
) -> Result<Result<BTreeMap<CheckName, CheckEnd>, StopReason>, W::Error> {
    let mut ends = BTreeMap::new();
    for check in job.task.checks.iter().flat_map(|checks| &checks.task.checks) {
        match red_runs(world, run, job, check)? {
            RedRun::Ended(end) => drop(ends.insert(check.name.clone(), end)),
            RedRun::Interrupted { by } => return Ok(Err(StopReason::Interrupted { by })),
        }
    }
    Ok(Ok(ends))
}

enum RedRun {
    Ended(CheckEnd),
    Interrupted { by: Interruption },
}

/// Runs a check before the work. One that must fail and does so runs twice: it must fail in the same way.
fn red_runs<W: World>(world: &mut W, run: &LoadedRun, job: &Job, check: &Check) -> Result<RedRun, W::Error> {
    world.announce(&Event::check_started(job, check, CheckPhase::Red));
    let mut end = match red_run(world, run, job, check)? {
        RedRun::Ended(end) => end,
        interrupted @ RedRun::Interrupted { .. } => return Ok(interrupted),
    };
    if check.red == RedRule::Required && end.red.is_proof() {
        match red_run(world, run, job, check)? {
            RedRun::Ended(second) if second.red == end.red => {}
            // It differs from run to run.
            RedRun::Ended(_) => end.red = RedKind::Broken,
            interrupted @ RedRun::Interrupted { .. } => return Ok(interrupted),
        }
    }
    world.announce(&Event::check_ended(job, check, CheckPhase::Red, end.exit, Some(end.red)));
    Ok(RedRun::Ended(end))
}

fn red_run<W: World>(world: &mut W, run: &LoadedRun, job: &Job, check: &Check) -> Result<RedRun, W::Error> {
    Ok(match world.run_red_check(run, job, check)? {
        CheckRun::Ended { exit, output, junit, redirects, .. } => {
            let ended = EndedCheck { check, exit, output: &output, junit: junit.as_deref(), redirects };
            let CheckVerdict { exit, red, facts, .. } = ended.verdict(None);
            RedRun::Ended(CheckEnd { red, exit, facts })
        }
        CheckRun::Interrupted { by } => RedRun::Interrupted { by },
    })
}

/// Runs all checks of a task on what its session left, even if one fails: the next session needs to know all of them.
pub(super) fn run_green<W: IterationWorld>(
    world: &mut W,
    job: &Job,
    claim: &Claim,
    red: Option<&TaskProof>,
    iteration: &mut W::Iteration,
) -> Result<GreenRun, W::Error> {
    let Some(checks) = &job.task.checks else { return Ok(GreenRun::Skipped) };
    let mut results = Vec::new();
    let mut failures = String::new();
    let mut last_place = None;
    for check in &checks.task.checks {
        world.announce(&Event::check_started(job, check, CheckPhase::Green));
        let run = world.run_check(iteration, job, check, &claim.restored_before_guard())?;
        let (verdict, output, place) = match run {
            CheckRun::Ended { exit, output, junit, redirects, place } => {
                let ended = EndedCheck { check, exit, output: &output, junit: junit.as_deref(), redirects };
                let before = checks.red.as_ref().or(red).and_then(|proof| proof.facts_of(&check.name));
                (ended.verdict(before), output, place)
            }
            CheckRun::Interrupted { by } => return Ok(GreenRun::Interrupted { by }),
        };
        let CheckVerdict { exit, why, .. } = verdict;
        world.announce(&Event::check_ended(job, check, CheckPhase::Green, exit, None));
        if !exit.is_green() {
            failures.push_str(&failure(check, exit, why.as_deref(), &output));
        }
        results.push(CheckResult { name: check.name.clone(), exit });
        last_place = Some(place);
    }
    Ok(match last_place {
        Some(place) => GreenRun::Ended { results, output: bounded_output(&failures), place },
        None => GreenRun::Skipped,
    })
}

/// A check that failed, for the next session.
fn failure(check: &Check, exit: CheckExit, why: Option<&str>, output: &[u8]) -> String {
    let command = check.command.words().join(" ");
    let ended = match exit {
        CheckExit::Code(code) => format!("exited with code {code}"),
        CheckExit::Signal(signal) => format!("was killed by signal {signal}"),
        CheckExit::TimedOut => format!("did not end within {} seconds", check.timeout_secs.get()),
        CheckExit::NotStarted => "could not be started".to_owned(),
        CheckExit::NoTests => "exited with code 0, but did not report that a test ran".to_owned(),
        CheckExit::TestsFailed => "exited with code 0, but reported tests that failed".to_owned(),
        CheckExit::TestsMissing => {
            let why = why.unwrap_or("not all of its tests ran");
            format!("exited with code 0, but {why}")
        }
    };
    let output = bounded_output(&lines(&String::from_utf8_lossy(output)));
    format!("Check `{}` (`{command}`) {ended}:\n\n{}\n\n", check.name, output.trim_end())
}
