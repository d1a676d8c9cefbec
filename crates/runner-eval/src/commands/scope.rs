//! Resolves the scope of an evaluation run: cases, agents, runner, and the folder of the run.

use std::path::Path;

use runner_core::config::Config as RunnerConfig;
use runner_host::clock::{now_ms, utc};
use runner_term::CommandError;

use crate::args::{EvalGlobalArgs, RunArgs, ScopeArgs};
use crate::case::suite::{LoadedCase, filter_cases, load_cases};
use crate::execution::process::CommandRunner;
use crate::execution::runner_under_test::RunnerUnderTest;
use crate::files;
use crate::plan::PlanScope;
use crate::plan::agent::EvalAgent;
use crate::plan::arm::{ExperimentArm, resolve_arms};
use crate::plan::run_name::EvalRunName;
use crate::result::run_folder::RunFolder;

pub(super) struct ResolvedScope {
    pub(super) cases: Vec<LoadedCase>,
    pub(super) runner: RunnerUnderTest,
    pub(super) scope: PlanScope,
}

/// The scope that the options describe.
pub(super) fn resolve_scope(
    global: &EvalGlobalArgs,
    args: &ScopeArgs,
) -> Result<ResolvedScope, CommandError> {
    let cases = filter_cases(load_cases(&global.cases())?, &args.cases.to_filter())?;
    let agents = if args.agent.is_empty() { vec![EvalAgent::Case] } else { args.agent.clone() };
    for loaded in cases.iter().filter(|loaded| args.cases.ids.contains(&loaded.case.id)) {
        if let Some(agent) = agents.iter().find(|agent| !agent.can_run(&loaded.case)) {
            return Err(cannot_run(loaded, agent));
        }
    }
    let runner = find_runner(global, args.runner.as_deref())?;
    let arms = resolve_arms(&args.arm, args.grid.as_deref(), &global.shared.project_dir)?;
    check_configurations(&cases, &agents, &arms)?;
    let scope = PlanScope::new(&cases, &agents, &arms, args.trials, runner.version.clone())?;
    if scope.trials.is_empty() {
        return Err(CommandError::refused("no_trials", "none of these agents can run any of these cases")
            .hint("choose another agent, such as --agent codex"));
    }
    Ok(ResolvedScope { cases, runner, scope })
}

/// An arm that makes the configuration of a case invalid is an error before any trial starts.
fn check_configurations(
    cases: &[LoadedCase],
    agents: &[EvalAgent],
    arms: &[ExperimentArm],
) -> Result<(), CommandError> {
    for arm in arms.iter().filter(|arm| !arm.settings.is_empty()) {
        for loaded in cases {
            for agent in agents.iter().filter(|agent| agent.can_run(&loaded.case)) {
                let scenario = agent.scenario(&loaded.case).map(Into::into);
                let config = agent.configuration(&loaded.case, scenario, &arm.table());
                if let Err(problems) = RunnerConfig::decode(config.as_bytes()) {
                    let what = format!("arm `{}` is not a valid configuration", arm.name);
                    let error = CommandError::refused("arm", what);
                    return Err(problems
                        .iter()
                        .fold(error, |error, problem| {
                            error.cause(format!("`{}` {}", problem.key, problem.fault))
                        })
                        .hint("docs/reference/configuration.md lists every key"));
                }
            }
        }
    }
    Ok(())
}

fn cannot_run(loaded: &LoadedCase, agent: &EvalAgent) -> CommandError {
    let what = format!("agent `{agent}` cannot run case `{}`", loaded.case.id);
    CommandError::refused("unfit_agent", what).hint(match agent {
        EvalAgent::Case => "the case names no agent itself: choose one, such as --agent codex",
        EvalAgent::Oracle | EvalAgent::ExitZero => "add a scenario to the case: `solution` under [case]",
        EvalAgent::Cheat(_) => "add a scenario to the case: `cheats` under [case]",
        EvalAgent::Nop | EvalAgent::Real { .. } => "choose another agent, such as --agent codex",
    })
}

/// The scope of the run that is continued. Fails if its cases or its runner have changed.
pub(super) fn continued_scope(
    global: &EvalGlobalArgs,
    args: &RunArgs,
) -> Result<ResolvedScope, CommandError> {
    let what = "could not continue a run";
    let results = global.results();
    let folder = match &args.run {
        Some(run) => RunFolder::open(&results, run.as_str())?,
        None => {
            let retries = args.execution.retries;
            RunFolder::all(&results).find(|folder| folder.is_unfinished(retries)).ok_or_else(|| {
                CommandError::refused("nothing_to_continue", what)
                    .cause("there is no unfinished run")
                    .hint("start one: runner eval run")
            })?
        }
    };
    let scope = folder.plan.scope.clone();
    let runner = find_runner(global, args.scope.runner.as_deref())?;
    let cases = load_cases(&global.cases())?.cases;
    let mut unchanged = 0;
    for planned in &scope.cases {
        if let Some(loaded) = cases.iter().find(|loaded| loaded.case.id == planned.id) {
            unchanged += usize::from(loaded.digests()?.whole.to_string() == planned.sha256);
        }
    }
    if unchanged != scope.cases.len() || runner.version != scope.runner {
        return Err(CommandError::refused("scope_changed", what)
            .cause(format!("the cases or the runner changed since run `{}` started", folder.name()))
            .hint("restore them, or start a new run: runner eval run --new"));
    }
    Ok(ResolvedScope { cases, runner, scope })
}

pub(super) fn find_runner(
    global: &EvalGlobalArgs,
    path: Option<&Path>,
) -> Result<RunnerUnderTest, CommandError> {
    let scratch = global.workspaces().join(format!(".eval-{}", std::process::id()));
    let commands = CommandRunner::new(scratch.clone())
        .map_err(|error| CommandError::from_host("could not find the runner under test", error))?;
    let runner = RunnerUnderTest::find(path, &commands);
    let _ = files::remove_any(&scratch);
    runner
}

/// The folder of the run with this name, or the newest run.
pub(super) fn open_run(
    global: &EvalGlobalArgs,
    run: Option<&EvalRunName>,
) -> Result<RunFolder, CommandError> {
    let results = global.results();
    match run {
        Some(run) => RunFolder::open(&results, run.as_str()),
        None => RunFolder::newest(&results),
    }
}

/// Creates or opens the folder of a run. Without a name, creates a new run named after the current time.
pub(super) fn create_run(
    global: &EvalGlobalArgs,
    run: Option<&EvalRunName>,
    scope: &PlanScope,
) -> Result<RunFolder, CommandError> {
    let results = global.results();
    match run {
        Some(run) => RunFolder::create_or_open(&results, run, scope),
        None => RunFolder::create_or_open(&results, &unused_run_name(&results)?, scope),
    }
}

pub(super) fn unused_run_name(results: &Path) -> Result<EvalRunName, CommandError> {
    let now = utc(now_ms()).unwrap_or_default();
    let base: String = now.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let used = RunFolder::names(results);
    let mut name = base.clone();
    let mut number = 1;
    while used.iter().any(|run| run.as_str() == name) {
        number += 1;
        name = format!("{base}-{number}");
    }
    name.parse().map_err(|error| {
        CommandError::refused("run_name", format!("`{name}` is not a run name: it {error}"))
            .hint("name the run: --run NAME")
    })
}
