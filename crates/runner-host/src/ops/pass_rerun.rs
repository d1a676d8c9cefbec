//! `runner verify --rerun`: repeats for passes what the runner ran before it let them pass. A pass is repeated as a list of
//! steps, each with a result of its own, and passes are repeated in parallel.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use runner_core::config::{Config, IgnoredFiles, RoomMode};
use runner_core::layout::Doc;
use runner_core::model::heldout::HeldoutRecord;
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::step::HeldoutId;

use super::environment::environment;
use super::guard_rerun::{GuardRerunOutcome, GuardRerunner};
use super::rerun_step::{RerunExpectation, RerunPlace, RerunStep};
use super::verify::{PassedHeldout, PassingCommit};
use crate::error::Error;
use crate::iteration::laid_files::LaidFiles;
use crate::iteration::step_inputs::checks_at;
use crate::repo::heldout_folder::{HeldoutFolder, LoadedHeldout};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassRerun {
    pub pass: PassingCommit,
    pub steps: Vec<RerunStep>,
    /// What cannot be repeated here, one sentence for each.
    pub unrepeated: Vec<String>,
    /// What differs from the environment that the start recorded.
    pub environment: Vec<String>,
}

impl PassRerun {
    /// Whether every step came to what the commit records.
    pub fn has_passed(&self) -> bool {
        self.steps.iter().all(RerunStep::is_repeated)
    }

    /// The exit code of a command that the user stopped.
    pub fn stopped(&self) -> Option<u8> {
        self.steps.iter().find_map(|step| match step.outcome {
            GuardRerunOutcome::Stopped(code) => Some(code),
            GuardRerunOutcome::Ended(_)
            | GuardRerunOutcome::TimedOut
            | GuardRerunOutcome::NotStarted(_)
            | GuardRerunOutcome::Rejected(_) => None,
        })
    }
}

/// Repeats passes, `jobs` at a time. `on_result` receives each as it ends; the result has them in the order of `passes`.
pub fn rerun_passes(
    dir: &Path,
    passes: &[PassingCommit],
    jobs: usize,
    on_result: &mut dyn FnMut(&PassRerun),
) -> Result<Vec<PassRerun>, Error> {
    let rerunner = GuardRerunner::begin(dir)?;
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let mut ended = thread::scope(|scope| -> Result<Vec<NumberedRerun>, Error> {
        for _ in 0..jobs.clamp(1, passes.len().max(1)) {
            let handle = rerunner.handle();
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || {
                let result = handle.open().and_then(|rerunner| work(&rerunner, passes, next, &sender));
                if let Err(error) = result {
                    let _ = sender.send(Err(error));
                }
            });
        }
        drop(sender);
        let mut ended = Vec::new();
        for result in results {
            let numbered: NumberedRerun = result?;
            on_result(&numbered.rerun);
            ended.push(numbered);
        }
        Ok(ended)
    })?;
    ended.sort_by_key(|numbered| numbered.nth);
    Ok(ended.into_iter().map(|numbered| numbered.rerun).collect())
}

struct NumberedRerun {
    nth: usize,
    rerun: PassRerun,
}

/// Repeats one pass after the other, until none is left or the user stops it.
fn work(
    rerunner: &GuardRerunner,
    passes: &[PassingCommit],
    next: &AtomicUsize,
    results: &mpsc::Sender<Result<NumberedRerun, Error>>,
) -> Result<(), Error> {
    loop {
        let nth = next.fetch_add(1, Ordering::Relaxed);
        let Some(pass) = passes.get(nth) else { return Ok(()) };
        let mut unrepeated = Vec::new();
        let rerun = PassRerun {
            pass: pass.clone(),
            steps: steps(rerunner, pass, &mut unrepeated)?,
            environment: environment_differences(rerunner, pass)?,
            unrepeated,
        };
        let is_stopped = rerun.stopped().is_some();
        if results.send(Ok(NumberedRerun { nth, rerun })).is_err() || is_stopped {
            return Ok(());
        }
    }
}

/// What a pass is repeated by: its checks before the work and after it, and the guard.
fn steps(
    rerunner: &GuardRerunner,
    pass: &PassingCommit,
    unrepeated: &mut Vec<String>,
) -> Result<Vec<RerunStep>, Error> {
    let Some(config) = &pass.config else {
        return Ok(vec![RerunStep {
            name: "guard".to_owned(),
            expected: RerunExpectation::Success,
            place: RerunPlace::Clone,
            outcome: GuardRerunOutcome::NotStarted(
                "the configuration of that commit cannot be read".to_owned(),
            ),
            output: Vec::new(),
        }]);
    };
    if let Some(why) = unrepeatable(rerunner, pass, config)? {
        unrepeated.push(why);
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    if let Some(checks) = &pass.checks {
        let git = rerunner.git();
        let task = checks_at(git, &checks.parent, &checks.node)?;
        for record in &checks.records {
            let all = task.iter().filter(|task| task.digest == record.digest).flat_map(|task| &task.checks);
            let Some((task, check)) =
                task.as_ref().zip(all.into_iter().find(|check| check.name == record.name))
            else {
                continue;
            };
            let laid = LaidFiles::of_task(git, &checks.node, task, &checks.parent)?;
            let mut facts = None;
            if let Some(before) = &checks.before_work {
                let red = rerunner.run_check(before, config, &laid, check)?;
                facts = red.facts(check);
                steps.push(red.red_step(check, record.red));
            }
            let green = rerunner.run_check(&pass.commit, config, &laid, check)?;
            steps.push(green.green_step(check, facts.as_ref()));
            if steps.iter().any(|step| matches!(step.outcome, GuardRerunOutcome::Stopped(_))) {
                return Ok(steps);
            }
        }
    }
    for heldout in &pass.heldout {
        match heldout_steps(rerunner, pass, config, heldout)? {
            Ok(repeated) => steps.extend(repeated),
            Err(why) => unrepeated.push(why),
        }
        if steps.iter().any(|step| matches!(step.outcome, GuardRerunOutcome::Stopped(_))) {
            return Ok(steps);
        }
    }
    steps.push(rerunner.run_guard(&pass.commit, config)?);
    Ok(steps)
}

/// Why a pass cannot be repeated here, if its guard had files that are in no commit: without them, a failure says nothing.
fn unrepeatable(
    rerunner: &GuardRerunner,
    pass: &PassingCommit,
    config: &Config,
) -> Result<Option<String>, Error> {
    let guard = &config.guard;
    if guard.room == RoomMode::InPlace {
        return Ok(None);
    }
    if guard.ignored == IgnoredFiles::Worktree {
        let why =
            "its guard had ignored files of the work tree (ignored = \"worktree\"), which are in no commit";
        return Ok(Some(format!("iteration {}: {why}", pass.iter)));
    }
    let missing = rerunner.kept_files(&pass.commit)?.missing(&guard.keep)?;
    Ok(missing.map(|path| {
        format!("iteration {}: its guard had a copy of `{path}` (keep), which is not here", pass.iter)
    }))
}

/// Repeats a held-out check before the work and after it; or why that cannot be done here.
fn heldout_steps(
    rerunner: &GuardRerunner,
    pass: &PassingCommit,
    config: &Config,
    heldout: &PassedHeldout,
) -> Result<Result<Vec<RerunStep>, String>, Error> {
    let HeldoutRecord { node, name, red, digest, .. } = &heldout.record;
    let id = HeldoutId { node, digest: *digest, name };
    let folder = config.checks.heldout.as_deref().unwrap_or_default();
    let loaded = match HeldoutFolder::open(rerunner.git(), folder) {
        Ok(folder) => folder.load(id),
        Err(error) => Err(error.into()),
    };
    let LoadedHeldout { check, files } = match loaded {
        Ok(loaded) => loaded,
        Err(Error::Refused(why)) => {
            return Ok(Err(format!("held-out check {name} of iteration {}: {why}", pass.iter)));
        }
        Err(error) => return Err(error),
    };
    let run = |commit: &CommitId| rerunner.run_check(commit, config, &files, &check);
    let named = |step: RerunStep| RerunStep { name: format!("held-out {}", step.name), ..step };
    let mut steps = Vec::new();
    let mut facts = None;
    if let Some(before) = &heldout.before_work {
        let before = run(before)?;
        facts = before.facts(&check);
        steps.push(named(before.red_step(&check, *red)));
    }
    steps.push(named(run(&pass.commit)?.green_step(&check, facts.as_ref())));
    Ok(Ok(steps))
}

/// What is not as the start recorded it.
fn environment_differences(rerunner: &GuardRerunner, pass: &PassingCommit) -> Result<Vec<String>, Error> {
    let Some(config) = &pass.config else { return Ok(Vec::new()) };
    let git = rerunner.git();
    let state = RunState::decode(&git.file_at(&pass.commit, Doc::RunState.path())?);
    let Ok(state) = state else { return Ok(Vec::new()) };
    Ok(state.environment.differences(&environment(git, &pass.commit, &config.guard)?))
}
