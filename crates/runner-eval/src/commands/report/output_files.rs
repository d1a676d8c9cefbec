//! Reports that are printed as they are, or written to files and folders.

use std::fs;
use std::path::Path;

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use crate::args::{EvalGlobalArgs, ReportArgs};
use crate::files;
use crate::report::{atif, harbor};
use crate::result::stored_trial::StoredTrial;

/// Writes a job of Harbor into the folder of jobs that `--out` names.
pub(super) fn write_harbor_job(
    global: &EvalGlobalArgs,
    args: &ReportArgs,
    name: &str,
    trials: &[&StoredTrial],
) -> Result<Box<dyn CommandOutput>, CommandError> {
    let out = args.out.as_ref().ok_or_else(|| {
        CommandError::refused("out", "a job of Harbor is a folder")
            .hint("name the folder of jobs: runner eval report harbor --out jobs")
    })?;
    let jobs = files::absolute(&global.shared.project_dir.join(out));
    let job = harbor::HarborJob { jobs: jobs.clone(), name, cases: files::absolute(&global.cases()), trials };
    let bytes = job.write().map_err(|error| CommandError::io("could not write the job", &jobs, &error))?;
    Ok(Box::new(ReportFileOutput {
        file: jobs.join(name).display().to_string(),
        bytes,
        trials: trials.len(),
    }))
}

/// Writes a trajectory per trial into a folder.
pub(super) fn write_trajectories(
    folder: &Path,
    trials: &[&StoredTrial],
) -> Result<Box<dyn CommandOutput>, CommandError> {
    let fail = |error| CommandError::io("could not write the trajectories", folder, &error);
    fs::create_dir_all(folder).map_err(fail)?;
    let mut bytes = 0;
    for trial in trials {
        let text = format!("{:#}\n", atif::atif(trial));
        let name = format!("{}.{}.json", trial.meta.case_id, trial.meta.eval_run_id);
        files::write_atomic(&folder.join(name), text.as_bytes()).map_err(fail)?;
        bytes += text.len();
    }
    Ok(Box::new(ReportFileOutput { file: folder.display().to_string(), bytes, trials: trials.len() }))
}

/// A report that is printed verbatim.
pub(super) struct ReportText(pub(super) String);

impl CommandOutput for ReportText {
    fn json(&self) -> Value {
        json!({ "schema": "runner.eval.report-text/1", "text": self.0 })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![KeyValueLine::verbatim(self.0.trim_end())]
    }

    fn human(&self, _: &Styler) -> String {
        self.0.clone()
    }
}

/// A report that was written to a file.
pub(super) struct ReportFileOutput {
    pub(super) file: String,
    pub(super) bytes: usize,
    pub(super) trials: usize,
}

impl CommandOutput for ReportFileOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.report-file/1",
            "file": self.file,
            "bytes": self.bytes,
            "trials": self.trials,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("file", &self.file).with("bytes", self.bytes);
        vec![line.with("trials", self.trials)]
    }

    fn human(&self, _: &Styler) -> String {
        format!("{} trials written to {}\n", self.trials, self.file)
    }
}
