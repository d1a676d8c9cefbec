//! `runner eval submit`: writes the partitions of a run as jobs of Slurm or Kubernetes, and submits them.

use std::fs;
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};
use supervise::executables;

use super::scope::{create_run, resolve_scope};
use crate::args::{ClusterEngine, EvalGlobalArgs, K8sArgs, SlurmArgs, SubmitArgs, SubmitScope};
use crate::execution::process::{CommandRunner, CommandSpec};
use crate::files::{self, absolute};
use crate::plan::partition::PARTITIONS_VARIABLE;
use crate::result::run_folder::RunFolder;

pub(crate) struct SubmitOutput {
    run: String,
    files: Vec<JobFile>,
    /// The ids of the submitted jobs.
    jobs: Vec<String>,
    is_dry_run: bool,
}

struct JobFile {
    path: PathBuf,
    text: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &SubmitArgs) -> Result<SubmitOutput, CommandError> {
    match &args.engine {
        ClusterEngine::Slurm(args) => submit_slurm(global, args),
        ClusterEngine::K8s(args) => submit_k8s(global, args),
    }
}

/// The run to submit, with its plan written, and the path of its runner.
struct PlannedRun {
    folder: RunFolder,
    runner: PathBuf,
}

fn plan_run(global: &EvalGlobalArgs, args: &SubmitScope) -> Result<PlannedRun, CommandError> {
    let resolved = resolve_scope(global, &args.scope)?;
    let folder = create_run(global, args.run.as_ref(), &resolved.scope)?;
    Ok(PlannedRun { folder, runner: resolved.runner.path })
}

fn submit_slurm(global: &EvalGlobalArgs, args: &SlurmArgs) -> Result<SubmitOutput, CommandError> {
    let planned = plan_run(global, &args.common)?;
    let run = planned.folder.name();
    let logs = planned.folder.file("logs");
    fs::create_dir_all(&logs).map_err(|error| CommandError::io("could not write the jobs", &logs, &error))?;
    let array = JobFile {
        path: planned.folder.file("array.sbatch"),
        text: array_script(global, args, &planned, &absolute(&logs))?,
    };
    let merge = JobFile {
        path: planned.folder.file("merge.sbatch"),
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
    };
    output.write_files()?;
    if !output.is_dry_run {
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
    let time = args.time.as_ref().map(|time| format!("#SBATCH --time={time}\n")).unwrap_or_default();
    Ok(format!(
        "{}#SBATCH --array=0-{}{throttle}\n#SBATCH --output={}/%a.log\n#SBATCH --open-mode=append\n\
         #SBATCH --requeue\n#SBATCH --signal=B:TERM@60\n{time}export {PARTITIONS_VARIABLE}={partitions}\n\
         exec {} run --continue --run {} --runner {} --jobs {}\n",
        sbatch_head(args, "run", planned),
        partitions - 1,
        logs.display(),
        remote_command(global)?,
        planned.folder.name(),
        shell_quoted(&planned.runner),
        args.common.jobs,
    ))
}

fn sbatch_head(args: &SlurmArgs, name: &str, planned: &PlannedRun) -> String {
    let queue = args.queue.as_ref().map(|name| format!("#SBATCH --partition={name}\n")).unwrap_or_default();
    format!("#!/bin/sh\n#SBATCH --job-name=eval-{name}-{}\n{queue}", planned.folder.name())
}

fn submit_k8s(global: &EvalGlobalArgs, args: &K8sArgs) -> Result<SubmitOutput, CommandError> {
    let planned = plan_run(global, &args.common)?;
    let run = planned.folder.name().to_string();
    let path = planned.folder.file("job.yaml");
    let absolute_path = absolute(&path).display().to_string();
    let mut output = SubmitOutput {
        files: vec![JobFile { path, text: indexed_job(args, &run) }],
        run,
        jobs: Vec::new(),
        is_dry_run: args.common.dry_run,
    };
    output.write_files()?;
    if !output.is_dry_run {
        output.jobs = vec![run_engine(global, "kubectl", &["create".into(), "-f".into(), absolute_path])?];
    }
    Ok(output)
}

fn indexed_job(args: &K8sArgs, run: &str) -> String {
    let SubmitScope { partitions, jobs, .. } = args.common;
    let name = format!("eval-{run}").to_lowercase().replace(['_', '.'], "-");
    // A JSON string is a YAML string.
    let quoted = |text: &str| Value::from(text).to_string();
    format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {partitions}
  parallelism: {}
  backoffLimitPerIndex: 3
  maxFailedIndexes: {partitions}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: eval
          image: {}
          command: [runner-eval, -C, {mount}, run, --continue, --run, {}, --jobs, \"{jobs}\"]
          env:
            - name: {PARTITIONS_VARIABLE}
              value: \"{partitions}\"
          volumeMounts:
            - name: eval
              mountPath: {mount}
      volumes:
        - name: eval
          persistentVolumeClaim:
            claimName: {}
",
        args.throttle.unwrap_or(partitions),
        quoted(&args.image),
        quoted(run),
        quoted(&args.claim),
        mount = quoted(&args.mount),
    )
}

/// This program with absolute paths of the folders, for other machines that see them.
fn remote_command(global: &EvalGlobalArgs) -> Result<String, CommandError> {
    let own = std::env::current_exe()
        .map_err(|error| CommandError::io("could not find this program", Path::new("runner-eval"), &error))?;
    Ok(format!(
        "{} --cases {} --results {} --workspaces {}",
        shell_quoted(&own),
        shell_quoted(&absolute(&global.cases())),
        shell_quoted(&absolute(&global.results())),
        shell_quoted(&absolute(&global.workspaces())),
    ))
}

fn shell_quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
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
        vec![line]
    }

    fn human(&self, _: &Styler) -> String {
        let mut text: String = self.key_values().iter().map(|line| format!("{}\n", line.as_str())).collect();
        if !self.is_dry_run {
            text.push_str(&format!("Next: runner eval merge --run {}  # progress\n", self.run));
        }
        text
    }
}
