//! `runner plan lint`: runs the checks of a plan before a long run, and reports everything that is wrong with it.

use std::collections::BTreeSet;
use std::path::Path;

use runner_core::checks::EndedCheck;
use runner_core::checks::coverage::{Coverage, coverage};
use runner_core::layout::node_folder;
use runner_core::model::checks::{Check, CheckFileName, CheckPath, TaskChecks};
use runner_core::model::id::RunId;
use runner_core::model::tree::Node;
use runner_core::runs::estimate::{PlanEstimate, TaskSample, estimate};
use runner_core::runs::plan_lint::{
    PlanProblem, PlanProblemKind, ProsePoint, UntriedCheck, checked_tasks, heldout_problems, heldout_tasks,
    open_leaves, prose_points, red_problems, static_problems,
};
use runner_core::runs::plan_stubs::{
    CheckText, StubForm, has_unknown_target, missing_python_files, python_modules, stub_paths,
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
    /// Checks that could not be tried on stubs, where that was asked for.
    pub untried: Vec<UntriedCheck>,
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
        untried: Vec::new(),
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
        if let Err(stop) = task_lint.run(stubs, &mut lint)? {
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
    fn run(mut self, stubs: StubPolicy, lint: &mut PlanLint) -> Result<Result<(), StopReason>, Error> {
        let Some(job) = check_job(&self.run.snapshot, &self.node.id, self.task.clone())? else {
            return Ok(Ok(()));
        };
        let ends = match run_red_checks(self.world, self.run, &job)? {
            Ok(ends) => ends,
            Err(stop) => return Ok(Err(stop)),
        };
        lint.problems.extend(red_problems(self.path, self.task, &ends));
        if stubs == StubPolicy::Skip {
            return Ok(Ok(()));
        }
        let (task, path) = (self.task, self.path);
        let is_proof = |check: &&Check| ends.get(&check.name).is_some_and(|end| end.red.is_proof());
        for check in task.checks.iter().filter(is_proof) {
            let (task, name) = (path.to_owned(), check.name.clone());
            match self.try_stubs(&job, check)? {
                StubTrial::Failed => {}
                StubTrial::Succeeded(stubs) => lint.problems.push(PlanProblem {
                    task,
                    check: Some(name),
                    kind: PlanProblemKind::Stub,
                    text: format!("succeeds on stubs: {stubs}"),
                }),
                StubTrial::Untried => lint.untried.push(UntriedCheck { task, check: name }),
            }
        }
        Ok(Ok(()))
    }

    /// Runs a check on stubs of everything that it names or imports and that does not exist.
    fn try_stubs(&mut self, job: &Job, check: &Check) -> Result<StubTrial, Error> {
        let root = self.root;
        let (command, texts) = (check.command.words(), check_texts(root, job, check));
        let laid = job.destinations();
        let can_be_stub =
            |path: &String| !laid.iter().any(|file| file.as_str() == path) && is_free(root, path);
        let mut paths = stub_paths(command, &texts);
        paths.retain(can_be_stub);
        let modules = python_modules(command, &texts);
        // Python names one missing module at a time.
        for _ in 0..modules.len() {
            let Some(run) = self.run_on_stubs(job, check, &paths, StubForm::Code, &texts)? else { break };
            let mut missing = missing_python_files(&run.output, &modules, &texts);
            missing.retain(|path| can_be_stub(path) && !paths.contains(path));
            if missing.is_empty() {
                break;
            }
            paths.extend(missing);
        }
        if paths.is_empty() {
            return Ok(StubTrial::Untried);
        }
        for form in StubForm::ALL {
            match self.run_on_stubs(job, check, &paths, form, &texts)? {
                Some(run) if run.is_green => {
                    return Ok(StubTrial::Succeeded(format!("{} at {}", form.as_str(), paths.join(", "))));
                }
                Some(run) if !has_unknown_target(&run.output) => {}
                Some(_) | None => return Ok(StubTrial::Untried),
            }
        }
        Ok(StubTrial::Failed)
    }

    /// Runs a check on stubs of one form; none if it did not run to its end.
    fn run_on_stubs(
        &mut self,
        job: &Job,
        check: &Check,
        paths: &[String],
        form: StubForm,
        texts: &[CheckText],
    ) -> Result<Option<StubRun>, Error> {
        let stub =
            |path: &String| StubFile { path: path.clone(), bytes: form.content(path, texts).into_bytes() };
        let stubs: Vec<StubFile> = paths.iter().map(stub).collect();
        let CheckRun::Ended { exit, output, junit, redirects, .. } =
            self.world.run_stub_check(self.run, job, check, &stubs)?
        else {
            return Ok(None);
        };
        let ended = EndedCheck { check, exit, output: &output, junit: junit.as_deref(), redirects };
        let is_green = ended.verdict(None).exit.is_green();
        Ok(Some(StubRun { is_green, output: String::from_utf8_lossy(&output).into_owned() }))
    }
}

/// What came of running a check on stubs.
enum StubTrial {
    /// It failed on all of them, as it should.
    Failed,
    /// The stubs that satisfy it, in words.
    Succeeded(String),
    /// There was nothing to stub, or the check did not see the stubs.
    Untried,
}

/// One run of a check on stubs.
struct StubRun {
    is_green: bool,
    output: String,
}

/// Whether a file could be created at a path of the work tree: nothing is there, and no file is where a folder must be.
fn is_free(root: &Path, path: &str) -> bool {
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut folders = Path::new(path).ancestors().skip(1).map(|folder| root.join(folder));
    !exists(&root.join(path)) && folders.all(|folder| !exists(&folder) || is_folder(&folder))
}

/// A check's own files; those that are no text are left out.
fn check_texts(root: &Path, job: &Job, check: &Check) -> Vec<CheckText> {
    let Some(checks) = &job.task.checks else { return Vec::new() };
    let folder = root.join(node_folder(&checks.node));
    let read = |(destination, file): (&CheckPath, &CheckFileName)| {
        let bytes = atomic::read(&folder.join(file.as_str()), TEXT_BYTES_MAX).ok()??;
        let text = String::from_utf8(bytes).ok()?;
        Some(CheckText { destination: destination.as_str().to_owned(), text })
    };
    check.files.iter().filter_map(read).collect()
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
        for iteration in &view.iterations {
            let Some(record) = &iteration.meta else { continue };
            if matches!(
                iteration.outcome,
                Some(Outcome::Planned | Outcome::PlanQuestions | Outcome::PlanRejected)
            ) {
                continue;
            }
            // Without the agent's time, the session was recovered after a crash, and its end says nothing.
            if record.agent_ms.is_some() {
                let total_ms = record.ended_ms.saturating_sub(record.started_ms);
                sample.secs = sample.secs.saturating_add(total_ms.div_ceil(1000));
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
