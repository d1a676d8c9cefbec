//! `runner plan lint`: runs the checks of a plan before the night, and reports everything that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_core::checks::coverage::{Coverage, coverage};
use runner_core::checks::{effective_exit, reader};
use runner_core::model::checks::{Check, CheckRed, TaskChecks};
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::tree::Node;
use runner_core::runs::estimate::{PlanEstimate, TaskSample, estimate};
use runner_core::runs::plan_lint::{
    PlanProblem, PlanProblemKind, ProsePoint, open_leaves, prose_points, red_problems, static_problems,
    stub_paths,
};
use runner_core::step::{CheckRun, Job, LoadedRun, Outcome, StopReason, World, check_job, run_red_checks};

use crate::error::Error;
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
    /// The open leaves.
    pub tasks: usize,
    /// How many checks ran.
    pub checks: usize,
    /// A signal ended it before everything ran.
    pub stop: Option<StopReason>,
}

/// Lints the plan of the run in this work tree. No agent runs, and nothing is committed.
pub fn plan_lint(dir: &Path, stubs: StubPolicy, sink: EventSink<'_>) -> Result<PlanLint, Error> {
    let samples = task_samples(dir)?;
    let mut world = RepoWorld::new(UnrecoveredRepo::lock(dir)?, sink, Box::new(|| false))?;
    let run = world.load()?;
    let tree = &run.snapshot.tree;
    let checks = task_checks(&Git::open(dir)?, tree)?;
    let leaves = open_leaves(tree);
    let mut lint = PlanLint {
        problems: static_problems(tree, &checks, &run.snapshot.config),
        prose: prose_points(tree, &checks),
        coverage: coverage(tree, &checks, &run.snapshot.state.proofs),
        estimate: estimate(&samples, leaves.len()),
        tasks: leaves.len(),
        checks: 0,
        stop: None,
    };
    for (path, leaf) in &leaves {
        let Some(task) = checks.get(&leaf.id) else { continue };
        lint.checks += task.checks.len();
        if let Err(stop) =
            (LeafLint { world: &mut world, run: &run, path, leaf, task }).run(stubs, &mut lint.problems)?
        {
            lint.stop = Some(stop);
            break;
        }
    }
    Ok(lint)
}

/// One task while its checks run.
struct LeafLint<'l, 'a> {
    world: &'l mut RepoWorld<'a>,
    run: &'l LoadedRun,
    path: &'l str,
    leaf: &'l Node,
    task: &'l TaskChecks,
}

impl LeafLint<'_, '_> {
    fn run(
        self,
        stubs: StubPolicy,
        problems: &mut Vec<PlanProblem>,
    ) -> Result<Result<(), StopReason>, Error> {
        let Some(job) = check_job(&self.run.snapshot, &self.leaf.id, self.task.clone())? else {
            return Ok(Ok(()));
        };
        let proof = match run_red_checks(self.world, self.run, &job)? {
            Ok(proof) => proof,
            Err(stop) => return Ok(Err(stop)),
        };
        problems.extend(red_problems(self.path, self.task, &proof));
        if stubs == StubPolicy::Skip {
            return Ok(Ok(()));
        }
        for check in &self.task.checks {
            let is_proof = |red: &CheckRed| red.name == check.name && red.red.is_proof();
            if proof.checks.iter().any(is_proof)
                && let Some(stub) = satisfying_stub(self.world, self.run, &job, check)?
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
    world: &mut RepoWorld<'_>,
    run: &LoadedRun,
    job: &Job,
    check: &Check,
) -> Result<Option<String>, Error> {
    let laid = job.destinations();
    let mut paths = stub_paths(check.command.words());
    paths.retain(|path| !laid.iter().any(|file| file.as_str() == path) && !world.has_file(path));
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

/// What the tasks of all runs in this repository took until they passed, as far as their logs are here.
fn task_samples(dir: &Path) -> Result<Vec<TaskSample>, Error> {
    let git = Git::open(dir)?;
    let runs = git.runner_branches()?;
    let mut samples = Vec::new();
    // A fork begins with the commits of another run.
    let mut counted = BTreeSet::new();
    for run in runs.iter().filter_map(|branch| RunId::of_branch(branch.name.as_str())) {
        let Ok(view) = RunView::at(dir, Some(run.as_str())) else { continue };
        let mut used: BTreeMap<NodeId, TaskSample> = BTreeMap::new();
        for iteration in &view.iterations {
            let Some(node) = iteration.node().filter(|_| iteration.meta.is_some()) else { continue };
            let none = TaskSample { secs: 0, microdollars: None };
            let sample = used.entry(node.clone()).or_insert(none);
            let ms = ["agent_ms", "guard_ms"].iter().filter_map(|key| iteration.number(key)).sum::<u64>();
            sample.secs = sample.secs.saturating_add(ms.div_ceil(1000));
            if let Some(cost) = iteration.cost() {
                sample.microdollars = Some(sample.microdollars.unwrap_or_default().saturating_add(cost));
            }
            let sample = *sample;
            if iteration.outcome == Some(Outcome::Passed) && counted.insert(iteration.commit.to_string()) {
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}
