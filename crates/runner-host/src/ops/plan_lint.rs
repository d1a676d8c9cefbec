//! `runner plan lint`: runs the checks of a plan before the night, and reports everything that is wrong with it.

use std::collections::BTreeSet;
use std::path::Path;

use runner_core::checks::coverage::{Coverage, coverage};
use runner_core::checks::{effective_exit, reader};
use runner_core::layout::node_folder;
use runner_core::model::checks::{Check, TaskChecks};
use runner_core::model::id::RunId;
use runner_core::model::tree::Node;
use runner_core::runs::estimate::{PlanEstimate, TaskSample, estimate};
use runner_core::runs::plan_lint::{
    PlanProblem, PlanProblemKind, ProsePoint, checked_tasks, heldout_problems, heldout_tasks, open_leaves,
    prose_points, red_problems, static_problems, stub_paths,
};
use runner_core::step::{
    CheckRun, Job, LoadedRun, Outcome, StopReason, World, check_job, run_heldout_red, run_red_checks,
};

use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::{EventSink, RepoWorld, StubFile};
use crate::repo::locked_repo::UnrecoveredRepo;
use crate::view::checks::task_checks;
use crate::view::run_view::RunView;

/// What a lint does besides the checks themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StubPolicy {
    Skip,
    /// Runs the checks on stubs too.
    Try,
}

/// What a lint found.
#[derive(Clone, Debug)]
pub struct PlanLint {
    pub problems: Vec<PlanProblem>,
    pub prose: Vec<ProsePoint>,
    pub coverage: Coverage,
    pub estimate: Option<PlanEstimate>,
    /// How many open leaves the plan has.
    pub tasks: usize,
    /// How many checks ran.
    pub checks: usize,
    /// A signal ended it before everything ran.
    pub stop: Option<StopReason>,
}

/// Lints the plan of the run in this work tree. No agent runs, and nothing is committed.
pub fn plan_lint(dir: &Path, stubs: StubPolicy, sink: EventSink<'_>) -> Result<PlanLint, Error> {
    let samples = task_samples(dir)?;
    let mut world = RepoWorld::new(UnrecoveredRepo::lock(dir)?, sink, Box::new(|| None))?;
    let run = world.load()?;
    let tree = &run.snapshot.tree;
    let git = Git::open(dir)?;
    let checks = task_checks(&git, tree)?;
    let leaves = open_leaves(tree);
    let mut lint = PlanLint {
        problems: static_problems(tree, &checks, &run.snapshot.state, &run.snapshot.config),
        prose: prose_points(tree, &checks, &run.snapshot.state),
        coverage: coverage(tree, &checks, &run.snapshot.state),
        estimate: estimate(&samples, leaves.len()),
        tasks: leaves.len(),
        checks: 0,
        stop: None,
    };
    for (path, node) in checked_tasks(tree, &checks) {
        let Some(task) = checks.get(&node.id) else { continue };
        lint.checks += task.checks.len();
        let task_lint = TaskLint { root: git.root(), world: &mut world, run: &run, path: &path, node, task };
        if let Err(stop) = task_lint.run(stubs, &mut lint.problems)? {
            lint.stop = Some(stop);
            return Ok(lint);
        }
    }
    for (path, task) in heldout_tasks(tree, &run.snapshot.state) {
        lint.checks += task.checks.len();
        match run_heldout_red(&mut world, &run, task)? {
            Ok(task) => lint.problems.extend(heldout_problems(&path, &task)),
            Err(stop) => {
                lint.stop = Some(stop);
                break;
            }
        }
    }
    Ok(lint)
}

/// One task while its checks run.
struct TaskLint<'l, 'a> {
    root: &'l Path,
    world: &'l mut RepoWorld<'a>,
    run: &'l LoadedRun,
    path: &'l str,
    node: &'l Node,
    task: &'l TaskChecks,
}

impl TaskLint<'_, '_> {
    fn run(
        self,
        stubs: StubPolicy,
        problems: &mut Vec<PlanProblem>,
    ) -> Result<Result<(), StopReason>, Error> {
        let Some(job) = check_job(&self.run.snapshot, &self.node.id, self.task.clone())? else {
            return Ok(Ok(()));
        };
        let ends = match run_red_checks(self.world, self.run, &job)? {
            Ok(ends) => ends,
            Err(stop) => return Ok(Err(stop)),
        };
        problems.extend(red_problems(self.path, self.task, &ends));
        if stubs == StubPolicy::Skip {
            return Ok(Ok(()));
        }
        for check in &self.task.checks {
            if ends.get(&check.name).is_some_and(|end| end.red.is_proof())
                && let Some(stub) = satisfying_stub(self.root, self.world, self.run, &job, check)?
            {
                problems.push(PlanProblem {
                    task: self.path.to_owned(),
                    check: Some(check.name.clone()),
                    kind: PlanProblemKind::Stub,
                    text: format!("succeeds on stubs: {stub}"),
                });
            }
        }
        Ok(Ok(()))
    }
}

/// The stubs that make a check succeed, in words; none if it fails on all of them, as it should.
fn satisfying_stub(
    root: &Path,
    world: &mut RepoWorld<'_>,
    run: &LoadedRun,
    job: &Job,
    check: &Check,
) -> Result<Option<String>, Error> {
    let laid = job.destinations();
    let mut paths = stub_paths(check.command.words(), &check_texts(root, job, check));
    let is_laid = |path: &str| laid.iter().any(|file| file.as_str() == path);
    paths.retain(|path| !is_laid(path) && is_free(root, path));
    if paths.is_empty() {
        return Ok(None);
    }
    for (name, text) in [("empty files", ""), ("`exit 0`", "#!/bin/sh\nexit 0\n")] {
        let stubs: Vec<StubFile> = paths
            .iter()
            .map(|path| StubFile { path: path.clone(), bytes: text.as_bytes().to_vec() })
            .collect();
        let CheckRun::Ended { exit, output, junit, .. } = world.run_stub_check(run, job, check, &stubs)?
        else {
            return Ok(None);
        };
        let report = reader::read(&output, junit.as_deref());
        if effective_exit(exit, report, reader::is_expected(check)).is_green() {
            return Ok(Some(format!("{name} at {}", paths.join(", "))));
        }
    }
    Ok(None)
}

/// Whether a file could be created at a path of the work tree: nothing is there, and no file is where a folder must be.
fn is_free(root: &Path, path: &str) -> bool {
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut folders = Path::new(path).ancestors().skip(1).map(|folder| root.join(folder));
    !exists(&root.join(path)) && folders.all(|folder| !exists(&folder) || is_folder(&folder))
}

/// The texts of a check's own files; those that are no text are left out.
fn check_texts(root: &Path, job: &Job, check: &Check) -> Vec<String> {
    let Some(checks) = &job.task.checks else { return Vec::new() };
    let folder = root.join(node_folder(&checks.node));
    let files = check.files.values().map(|file| atomic::read(&folder.join(file.as_str()), TEXT_BYTES_MAX));
    files.filter_map(|bytes| String::from_utf8(bytes.ok()??).ok()).collect()
}

/// The most bytes of a check file that is searched for paths.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// What tasks of all runs in this repository took until they passed, as far as their logs are here. Sessions that ended without
/// a pass count towards the next one, so that failed attempts, splits and repairs are part of the expectation.
fn task_samples(dir: &Path) -> Result<Vec<TaskSample>, Error> {
    const NONE: TaskSample = TaskSample { secs: 0, microdollars: None };
    let runs = Git::open(dir)?.runner_branches()?;
    let mut samples = Vec::new();
    // A fork begins with the commits of another run.
    let mut counted = BTreeSet::new();
    for run in runs.iter().filter_map(|branch| RunId::of_branch(branch.name.as_str())) {
        let Ok(view) = RunView::at(dir, Some(run.as_str())) else { continue };
        let mut sample = NONE;
        for iteration in view.iterations.iter().filter(|iteration| iteration.meta.is_some()) {
            if matches!(
                iteration.outcome,
                Some(Outcome::Planned | Outcome::PlanQuestions | Outcome::PlanRejected)
            ) {
                continue;
            }
            // Without the agent's time, the session was recovered after a crash, and its end says nothing.
            if let (Some(_), Some(start), Some(end)) =
                (iteration.number("agent_ms"), iteration.number("started_ms"), iteration.number("ended_ms"))
            {
                sample.secs = sample.secs.saturating_add(end.saturating_sub(start).div_ceil(1000));
            }
            if let Some(cost) = iteration.cost() {
                sample.microdollars = Some(sample.microdollars.unwrap_or_default().saturating_add(cost));
            }
            if iteration.outcome == Some(Outcome::Passed) {
                let sample = std::mem::replace(&mut sample, NONE);
                if counted.insert(iteration.commit.to_string()) {
                    samples.push(sample);
                }
            }
        }
    }
    Ok(samples)
}
