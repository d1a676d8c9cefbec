//! `runner eval submit`: the units of a plan as jobs of an engine that is there already.

use std::fs;
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};
use supervise::executables;

use super::run::{new_run, scope_of};
use crate::args::{ClusterEngine, EvalGlobalArgs, K8sArgs, SlurmArgs, SubmitArgs, SubmitScope};
use crate::plan::SHARDS;
use crate::process::{CommandRunner, CommandSpec};
use crate::run_folder::RunFolder;

/// What was written, and submitted if it was to be.
pub(crate) struct SubmitOutput {
    run: String,
    /// Name and text of each file.
    files: Vec<(PathBuf, String)>,
    jobs: Vec<String>,
    is_dry: bool,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &SubmitArgs) -> Result<SubmitOutput, CommandError> {
    match &args.engine {
        ClusterEngine::Slurm(args) => slurm(global, args),
        ClusterEngine::K8s(args) => k8s(global, args),
    }
}

/// The run whose units are submitted, with its plan on record.
fn planned(global: &EvalGlobalArgs, args: &SubmitScope) -> Result<(RunFolder, PathBuf), CommandError> {
    let (_, runner, scope) = scope_of(global, &args.scope)?;
    let folder = match &args.run {
        Some(run) => RunFolder::make(&global.results(), run, &scope)?,
        None => new_run(global, &scope)?,
    };
    Ok((folder, runner.path))
}

fn slurm(global: &EvalGlobalArgs, args: &SlurmArgs) -> Result<SubmitOutput, CommandError> {
    let (folder, runner) = planned(global, &args.of)?;
    let own = std::env::current_exe()
        .map_err(|error| CommandError::io("could not find this program", Path::new("runner-eval"), &error))?;
    let place = RemotePaths { own: &own, runner: &runner, global, run: folder.name() };
    let logs = folder.file("logs");
    fs::create_dir_all(&logs).map_err(|error| CommandError::io("could not write the jobs", &logs, &error))?;
    let logs = absolute(&logs);
    let last = args.of.shards - 1;
    let throttle = args.throttle.map(|most| format!("%{most}")).unwrap_or_default();
    let time = args.time.as_ref().map(|time| format!("#SBATCH --time={time}\n")).unwrap_or_default();
    let queue = args.queue.as_ref().map(|name| format!("#SBATCH --partition={name}\n")).unwrap_or_default();
    let head = |name: &str| format!("#!/bin/sh\n#SBATCH --job-name=eval-{name}-{}\n{queue}", folder.name());
    // The script becomes the program, so that what Slurm sends before the end of its time reaches it.
    let array = format!(
        "{}#SBATCH --array=0-{last}{throttle}\n#SBATCH --output={}/%a.log\n#SBATCH --open-mode=append\n\
         #SBATCH --requeue\n#SBATCH --signal=B:TERM@60\n{time}export {SHARDS}={}\nexec {} --jobs {}\n",
        head("run"),
        logs.display(),
        args.of.shards,
        place.command("run --continue"),
        args.of.jobs,
    );
    let merge = format!(
        "{}#SBATCH --output={}/merge.log\nexec {}\n",
        head("merge"),
        logs.display(),
        place.command("merge")
    );
    let mut submitted = SubmitOutput {
        run: folder.name().to_owned(),
        files: vec![(folder.file("array.sbatch"), array), (folder.file("merge.sbatch"), merge)],
        jobs: Vec::new(),
        is_dry: args.of.dry_run,
    };
    submitted.write()?;
    if !submitted.is_dry {
        let [array, merge] =
            [0, 1].map(|at| submitted.files.get(at).map(|(path, _)| absolute(path)).unwrap_or_default());
        let job = ask(global, "sbatch", &["--parsable".into(), array.display().to_string()])?;
        let job = job.split(';').next().unwrap_or_default().to_owned();
        let after = format!("--dependency=afterany:{job}");
        let merge = ask(global, "sbatch", &["--parsable".into(), after, merge.display().to_string()])?;
        submitted.jobs = vec![job, merge.split(';').next().unwrap_or_default().to_owned()];
    }
    Ok(submitted)
}

fn k8s(global: &EvalGlobalArgs, args: &K8sArgs) -> Result<SubmitOutput, CommandError> {
    let (folder, _) = planned(global, &args.of)?;
    let (run, shards, jobs) = (folder.name(), args.of.shards, args.of.jobs);
    let name: String = format!("eval-{run}").to_lowercase().replace(['_', '.'], "-");
    // A text in JSON is one in YAML.
    let text = |text: &str| Value::from(text).to_string();
    let (image, claim, mount, run_word) =
        (text(&args.image), text(&args.claim), text(&args.mount), text(run));
    let job = format!(
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {shards}
  parallelism: {}
  backoffLimitPerIndex: 3
  maxFailedIndexes: {shards}
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: eval
          image: {image}
          command: [runner-eval, -C, {mount}, run, --continue, --run, {run_word}, --jobs, \"{jobs}\"]
          env:
            - name: {SHARDS}
              value: \"{shards}\"
          volumeMounts:
            - name: eval
              mountPath: {mount}
      volumes:
        - name: eval
          persistentVolumeClaim:
            claimName: {claim}
",
        args.throttle.unwrap_or(shards),
    );
    let mut submitted = SubmitOutput {
        run: run.to_owned(),
        files: vec![(folder.file("job.yaml"), job)],
        jobs: Vec::new(),
        is_dry: args.of.dry_run,
    };
    submitted.write()?;
    if !submitted.is_dry {
        let file =
            submitted.files.first().map(|(path, _)| absolute(path).display().to_string()).unwrap_or_default();
        submitted.jobs = vec![ask(global, "kubectl", &["create".into(), "-f".into(), file])?];
    }
    Ok(submitted)
}

/// How a share is worked through elsewhere: by absolute paths, with the same folders.
struct RemotePaths<'a> {
    own: &'a Path,
    runner: &'a Path,
    global: &'a EvalGlobalArgs,
    run: &'a str,
}

impl RemotePaths<'_> {
    fn command(&self, words: &str) -> String {
        let folders = [
            ("--cases", self.global.cases()),
            ("--results", self.global.results()),
            ("--workspaces", self.global.workspaces()),
        ];
        let folders = folders.map(|(name, path)| format!("{name} {}", quoted(&absolute(&path))));
        let runner = if words.starts_with("run") {
            format!(" --runner {}", quoted(self.runner))
        } else {
            String::new()
        };
        format!("{} {} {words} --run {}{runner}", quoted(self.own), folders.join(" "), self.run)
    }
}

/// A path as a word for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Asks the engine's own program, and gives the first line of its answer.
fn ask(global: &EvalGlobalArgs, program: &str, words: &[String]) -> Result<String, CommandError> {
    let what = "could not submit the jobs";
    let path = executables::find(program, None).ok_or_else(|| {
        CommandError::refused("no_engine", what)
            .cause(format!("`{program}` is not on the PATH"))
            .hint("go to where it is, or look at what would be submitted: --dry-run")
    })?;
    let scratch = global.workspaces().join(format!(".submit-{}", std::process::id()));
    let launcher =
        CommandRunner::new(scratch.clone()).map_err(|error| CommandError::from_host(what, error))?;
    let argv = std::iter::once(path.into()).chain(words.iter().map(Into::into)).collect();
    let ended = launcher
        .run(&CommandSpec { argv, ..CommandSpec::default() })
        .map_err(|error| CommandError::from_host(what, error));
    let _ = crate::files::clear(&scratch);
    let ended = ended?;
    if ended.is_success() {
        return Ok(ended.stdout.lines().next().unwrap_or_default().trim().to_owned());
    }
    Err(CommandError::new("engine", CommandExit::FAILURE, what)
        .cause(format!("`{program}` {}", ended.exit))
        .cause(ended.tail()))
}

impl SubmitOutput {
    fn write(&self) -> Result<(), CommandError> {
        for (path, text) in &self.files {
            crate::files::write(path, text.as_bytes())
                .map_err(|error| CommandError::io("could not write the jobs", path, &error))?;
        }
        Ok(())
    }
}

impl CommandOutput for SubmitOutput {
    fn json(&self) -> Value {
        let files =
            self.files.iter().map(|(path, text)| json!({ "path": path.display().to_string(), "text": text }));
        json!({
            "schema": "runner.eval.submit/1",
            "run": self.run,
            "dry_run": self.is_dry,
            "files": files.collect::<Vec<_>>(),
            "jobs": self.jobs,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        if self.is_dry {
            return self
                .files
                .iter()
                .map(|(path, text)| KeyValueLine::verbatim(format!("# {}\n{text}", path.display())))
                .collect();
        }
        let line = KeyValueLine::new().with("run", &self.run);
        vec![self.jobs.iter().fold(line, |line, job| line.with("job", job))]
    }

    fn human(&self, _: &Styler) -> String {
        let mut text: String = self.key_values().iter().map(|line| format!("{}\n", line.as_str())).collect();
        if !self.is_dry {
            text.push_str(&format!("how it stands: runner eval merge --run {}\n", self.run));
        }
        text
    }
}
