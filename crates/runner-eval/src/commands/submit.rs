//! `runner eval submit`: writes the partitions of a run as jobs of Slurm, Kubernetes or GitHub Actions, and submits them.

mod actions;
mod kubernetes;

use std::fs;
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};
use supervise::executables;

use super::scope::{create_run, resolve_scope, unused_run_name};
use crate::args::{
    ActionsArgs, ClusterEngine, EvalGlobalArgs, K8sArgs, ScopeArgs, SlurmArgs, SubmitArgs, SubmitScope,
};
use crate::execution::process::{CommandRunner, CommandSpec};
use crate::files::{self, absolute};
use crate::plan::partition::PARTITIONS_VARIABLE;
use crate::plan::run_name::EvalRunName;

pub(crate) struct SubmitOutput {
    run: String,
    files: Vec<JobFile>,
    /// The ids of the submitted jobs.
    jobs: Vec<String>,
    is_dry_run: bool,
    /// Whether jobs were submitted; a workflow is only written.
    is_submitted: bool,
}

struct JobFile {
    path: PathBuf,
    text: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &SubmitArgs) -> Result<SubmitOutput, CommandError> {
    match &args.engine {
        ClusterEngine::Slurm(args) => submit_slurm(global, args),
        ClusterEngine::K8s(args) => submit_k8s(global, args),
        ClusterEngine::Actions(args) => write_workflow(global, args),
    }
}

/// Options of a submission that every machine gets. Machines that share a folder see what the whole run has spent; of several
/// that do not (`separate`), each gets its part of the budget.
fn passed_options(args: &SubmitScope, separate: u32) -> Vec<String> {
    let mut options = vec!["--isolation".to_owned(), args.isolation.as_str().to_owned()];
    if let Some(check) = &args.provider_check {
        options.extend(["--provider-check".to_owned(), check.clone()]);
    }
    if let Some(usd) = args.budget_usd {
        options.extend(["--budget-usd".to_owned(), (usd / f64::from(separate)).to_string()]);
    }
    if let Some(tokens) = args.budget_tokens {
        options.extend(["--budget-tokens".to_owned(), (tokens / u64::from(separate)).max(1).to_string()]);
    }
    if args.steal {
        options.push("--steal".to_owned());
    }
    options
}

/// The run to submit and the path of its runner. A dry run plans it, but writes nothing.
struct PlannedRun {
    name: EvalRunName,
    /// The folder of the run.
    folder: PathBuf,
    runner: PathBuf,
    /// The longest time limit of its cases.
    wall_secs_max: u32,
}

fn plan_run(global: &EvalGlobalArgs, args: &SubmitScope) -> Result<PlannedRun, CommandError> {
    let resolved = resolve_scope(global, &args.scope)?;
    let runner = resolved.runner.path;
    let wall_secs_max = resolved.cases.iter().map(|loaded| loaded.case.limits.wall_secs).max().unwrap_or(0);
    let name = if args.dry_run {
        match &args.run {
            Some(run) => run.clone(),
            None => unused_run_name(&global.results())?,
        }
    } else {
        create_run(global, args.run.as_ref(), &resolved.scope)?.name().clone()
    };
    Ok(PlannedRun { folder: global.results().join("_runs").join(name.as_str()), name, runner, wall_secs_max })
}

fn submit_slurm(global: &EvalGlobalArgs, args: &SlurmArgs) -> Result<SubmitOutput, CommandError> {
    let planned = plan_run(global, &args.common)?;
    let run = &planned.name;
    let logs = planned.folder.join("logs");
    let array = JobFile {
        path: planned.folder.join("array.sbatch"),
        text: array_script(global, args, &planned, &absolute(&logs))?,
    };
    let merge = JobFile {
        path: planned.folder.join("merge.sbatch"),
        text: format!(
            "{}#SBATCH --output={}/merge.log\nexec {} merge --run {run}\n",
            sbatch_head(args, "merge", &planned),
            absolute(&logs).display(),
            remote_command(global)?,
        ),
    };
    let array_path = absolute(&array.path).display().to_string();
    let merge_path = absolute(&merge.path).display().to_string();
    let mut output = SubmitOutput {
        run: run.to_string(),
        files: vec![array, merge],
        jobs: Vec::new(),
        is_dry_run: args.common.dry_run,
        is_submitted: true,
    };
    if !output.is_dry_run {
        fs::create_dir_all(&logs)
            .map_err(|error| CommandError::io("could not write the jobs", &logs, &error))?;
        output.write_files()?;
        let job = sbatch(global, &[array_path])?;
        let dependency = format!("--dependency=afterany:{job}");
        let merge_job = sbatch(global, &[dependency, merge_path])?;
        output.jobs = vec![job, merge_job];
    }
    Ok(output)
}

/// The job array: one task per partition. `exec` replaces the shell, so that the signal that Slurm sends before the time
/// limit reaches the evaluation.
fn array_script(
    global: &EvalGlobalArgs,
    args: &SlurmArgs,
    planned: &PlannedRun,
    logs: &Path,
) -> Result<String, CommandError> {
    let partitions = args.common.partitions;
    let throttle = args.throttle.map(|most| format!("%{most}")).unwrap_or_default();
    let options: String =
        passed_options(&args.common, 1).iter().map(|word| format!(" {}", shell_word(word))).collect();
    let time = args.time.as_ref().map(|time| format!("#SBATCH --time={time}\n")).unwrap_or_default();
    Ok(format!(
        "{}#SBATCH --array=0-{}{throttle}\n#SBATCH --output={}/%a.log\n#SBATCH --open-mode=append\n\
         #SBATCH --requeue\n#SBATCH --signal=B:TERM@60\n{time}export {PARTITIONS_VARIABLE}={partitions}\n\
         exec {} run --continue --run {} --runner {} --jobs {}{options}\n",
        sbatch_head(args, "run", planned),
        partitions - 1,
        logs.display(),
        remote_command(global)?,
        planned.name,
        shell_quoted(&planned.runner),
        args.common.jobs,
    ))
}

fn sbatch_head(args: &SlurmArgs, name: &str, planned: &PlannedRun) -> String {
    let mut head = format!("#!/bin/sh\n#SBATCH --job-name=eval-{name}-{}\n", planned.name);
    let cpus = args.cpus.map(|cpus| cpus.to_string());
    for (option, value) in [
        ("partition", &args.queue),
        ("account", &args.account),
        ("mem", &args.memory),
        ("cpus-per-task", &cpus),
        ("constraint", &args.constraint),
    ] {
        if let Some(value) = value {
            head.push_str(&format!("#SBATCH --{option}={value}\n"));
        }
    }
    head
}

fn submit_k8s(global: &EvalGlobalArgs, args: &K8sArgs) -> Result<SubmitOutput, CommandError> {
    let planned = plan_run(global, &args.common)?;
    let run = planned.name.to_string();
    let path = planned.folder.join("jobs.json");
    let absolute_path = absolute(&path).display().to_string();
    let mut output = SubmitOutput {
        files: vec![JobFile { path, text: kubernetes::manifests(args, &run, planned.wall_secs_max) }],
        run,
        jobs: Vec::new(),
        is_dry_run: args.common.dry_run,
        is_submitted: true,
    };
    if !output.is_dry_run {
        output.write_files()?;
        output.jobs = vec![run_engine(global, "kubectl", &["create".into(), "-f".into(), absolute_path])?];
    }
    Ok(output)
}

fn write_workflow(global: &EvalGlobalArgs, args: &ActionsArgs) -> Result<SubmitOutput, CommandError> {
    if args.common.steal {
        return Err(CommandError::refused("usage", "--steal needs a folder that all machines share")
            .cause("machines of GitHub Actions do not see each other's results and would repeat every trial")
            .hint("use more partitions: --partitions 16"));
    }
    resolve_scope(global, &args.common.scope)?;
    let run = match &args.common.run {
        Some(run) => run.clone(),
        None => unused_run_name(&global.results())?,
    };
    let text = actions::workflow(args, run.as_str(), &plan_arguments(&args.common));
    let path = global.shared.project_dir.join(&args.out);
    let output = SubmitOutput {
        run: run.to_string(),
        files: vec![JobFile { path: path.clone(), text }],
        jobs: Vec::new(),
        is_dry_run: args.common.dry_run,
        is_submitted: false,
    };
    if !output.is_dry_run {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| CommandError::io("could not write the workflow", parent, &error))?;
        }
        output.write_files()?;
    }
    Ok(output)
}

/// The arguments of `runner eval plan` with the same scope.
fn plan_arguments(args: &SubmitScope) -> Vec<String> {
    let ScopeArgs { cases, agent, arm, grid, trials, .. } = &args.scope;
    let mut arguments = cases.ids.clone();
    for tag in &cases.tag {
        arguments.extend(["--tag".to_owned(), tag.clone()]);
    }
    if let Some(pattern) = &cases.filter {
        arguments.extend(["--filter".to_owned(), pattern.clone()]);
    }
    if let Some(sample) = cases.sample {
        arguments.extend([
            "--sample".to_owned(),
            sample.to_string(),
            "--seed".to_owned(),
            cases.seed.to_string(),
        ]);
    }
    for agent in agent {
        arguments.extend(["--agent".to_owned(), agent.to_string()]);
    }
    for arm in arm {
        arguments.extend(["--arm".to_owned(), arm.text().to_owned()]);
    }
    if let Some(grid) = grid {
        arguments.extend(["--grid".to_owned(), grid.display().to_string()]);
    }
    arguments.extend(["--trials".to_owned(), trials.to_string()]);
    arguments
}

/// This program with absolute paths of the folders, for other machines that see them.
fn remote_command(global: &EvalGlobalArgs) -> Result<String, CommandError> {
    let own = std::env::current_exe()
        .map_err(|error| CommandError::io("could not find this program", Path::new("runner-eval"), &error))?;
    let command = if executables::is_included("runner-eval") { " eval" } else { "" };
    Ok(format!(
        "{}{command} --cases {} --results {} --workspaces {}",
        shell_quoted(&own),
        shell_quoted(&absolute(&global.cases())),
        shell_quoted(&absolute(&global.results())),
        shell_quoted(&absolute(&global.workspaces())),
    ))
}

fn shell_quoted(path: &Path) -> String {
    quoted(&path.display().to_string())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A word that a shell reads as it is.
fn shell_word(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '=' | '+');
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

/// Submits a script to Slurm and returns the id of the job.
fn sbatch(global: &EvalGlobalArgs, arguments: &[String]) -> Result<String, CommandError> {
    let mut all = vec!["--parsable".to_owned()];
    all.extend(arguments.iter().cloned());
    let output = run_engine(global, "sbatch", &all)?;
    // With several clusters, the id is followed by the name of the cluster.
    Ok(output.split(';').next().unwrap_or_default().to_owned())
}

/// Runs a program of the cluster and returns the first line of its output.
fn run_engine(global: &EvalGlobalArgs, program: &str, arguments: &[String]) -> Result<String, CommandError> {
    let what = "could not submit the jobs";
    let path = executables::find(program, None).ok_or_else(|| {
        CommandError::refused("no_engine", what)
            .cause(format!("`{program}` is not on the PATH"))
            .hint("run this where it is installed, or only print the jobs: --dry-run")
    })?;
    let scratch = global.workspaces().join(format!(".submit-{}", std::process::id()));
    let commands =
        CommandRunner::new(scratch.clone()).map_err(|error| CommandError::from_host(what, error))?;
    let mut argv = vec![path.into_os_string()];
    argv.extend(arguments.iter().map(Into::into));
    let result = commands.run(&CommandSpec::new(argv));
    let _ = files::remove_any(&scratch);
    let result = result.map_err(|error| CommandError::from_host(what, error))?;
    if result.is_success() {
        return Ok(result.stdout.lines().next().unwrap_or_default().trim().to_owned());
    }
    Err(CommandError::new("engine", CommandExit::FAILURE, what)
        .cause(format!("`{program}` {}", result.exit))
        .cause(result.tail()))
}

impl SubmitOutput {
    fn write_files(&self) -> Result<(), CommandError> {
        for JobFile { path, text } in &self.files {
            files::write_atomic(path, text.as_bytes())
                .map_err(|error| CommandError::io("could not write the jobs", path, &error))?;
        }
        Ok(())
    }
}

impl CommandOutput for SubmitOutput {
    fn json(&self) -> Value {
        let mut files = Vec::new();
        for JobFile { path, text } in &self.files {
            files.push(json!({ "path": path.display().to_string(), "text": text }));
        }
        json!({
            "schema": "runner.eval.submit/1",
            "run": self.run,
            "dry_run": self.is_dry_run,
            "files": files,
            "jobs": self.jobs,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        if self.is_dry_run {
            let file =
                |file: &JobFile| KeyValueLine::verbatim(format!("# {}\n{}", file.path.display(), file.text));
            return self.files.iter().map(file).collect();
        }
        let mut line = KeyValueLine::new().with("run", &self.run);
        for job in &self.jobs {
            line = line.with("job", job);
        }
        if !self.is_submitted {
            for file in &self.files {
                line = line.with("file", file.path.display());
            }
        }
        vec![line]
    }

    fn human(&self, _: &Styler) -> String {
        let mut text: String = self.key_values().iter().map(|line| format!("{}\n", line.as_str())).collect();
        if !self.is_dry_run && self.is_submitted {
            text.push_str(&format!("Next: runner eval merge --run {}  # progress\n", self.run));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(shell_word("max_attempts_default=1"), "max_attempts_default=1");
        assert_eq!(shell_word("a b'c"), "'a b'\\''c'");
    }
}
