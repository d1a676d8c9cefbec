//! `runner runs`, `runner switch`, `runner stop` and `runner clean`

use std::path::Path;

use runner_core::model::id::RunId;
use runner_core::model::tree::LeafCount;
use runner_core::run_status::RunStatus;
use runner_host::ops::run_list::{
    CleanPolicy, PlannedClean, RunEntry, WorkSafety, list_runs, plan_clean, switch_run,
};
use runner_host::ops::stop::{self, StopTime};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::status::status_of_run;
use crate::args::{CleanArgs, StopArgs, SwitchArgs};
use crate::render::clean as clean_text;
use crate::render::wait::{in_utc, on_the_wall};

pub(crate) struct RunsOutput {
    runs: Vec<ListedRun>,
}

/// A run with its status, which is that of `runner status`.
struct ListedRun {
    entry: RunEntry,
    status: RunStatus,
}

pub(crate) fn runs(dir: &Path) -> Result<RunsOutput, CommandError> {
    let failed = |error| CommandError::from_host("could not list the runs", error);
    let repo = ReadonlyRepo::open(dir).map_err(failed)?;
    let listed = |entry: RunEntry| {
        let worktree = entry.worktree.as_deref().map(Path::new);
        ListedRun { status: status_of_run(&repo, &entry.branch, worktree), entry }
    };
    Ok(RunsOutput { runs: list_runs(dir).map_err(failed)?.into_iter().map(listed).collect() })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        _ => format!("{}.{} MiB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

fn safety_text(safety: &WorkSafety) -> String {
    match safety {
        WorkSafety::Merged(branch) => format!("merged into {}", clean_text(branch)),
        WorkSafety::Landed(branch) => format!("landed on {}", clean_text(branch)),
        WorkSafety::Empty => "nothing passed".to_owned(),
        WorkSafety::OnlyHere => "not landed".to_owned(),
    }
}

fn safety_word(safety: &WorkSafety) -> &'static str {
    match safety {
        WorkSafety::Merged(_) => "merged",
        WorkSafety::Landed(_) => "landed",
        WorkSafety::Empty => "empty",
        WorkSafety::OnlyHere => "not_landed",
    }
}

impl CommandOutput for RunsOutput {
    fn json(&self) -> Value {
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|ListedRun { entry, status }| {
                json!({
                    "run_id": entry.run, "branch": entry.branch.name, "commit": entry.branch.commit,
                    "committed": entry.branch.unix_secs, "state": status.state, "stop": status.stop,
                    "headline": status.headline, "leaves": entry.leaves,
                    "iterations": entry.iterations, "log_bytes": entry.log_bytes, "worktree": entry.worktree,
                    "work": safety_word(&entry.safety),
                })
            })
            .collect();
        json!({ "schema": "runner.runs/1", "runs": runs })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |ListedRun { entry, status }: &ListedRun| {
            let line = KeyValueLine::new().with("run", &entry.run).with("state", status.state.as_str());
            let line = status.stop.iter().fold(line, |line, stop| line.with("stop", stop.as_str()));
            let line = match entry.leaves {
                Some(LeafCount { passed, total }) => line.with("tasks", format!("{passed}/{total}")),
                None => line,
            };
            line.with("iterations", entry.iterations)
                .with("log_bytes", entry.log_bytes)
                .with("work", safety_word(&entry.safety))
                .with("committed", in_utc(entry.branch.unix_secs * 1000))
        };
        self.runs.iter().map(line).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        if self.runs.is_empty() {
            return "no runs yet\n\nNext: runner run \"GOAL\"\n".to_owned();
        }
        let mut text = String::new();
        for ListedRun { entry, status } in &self.runs {
            let label = status.label();
            let glyph = styler.label_glyph(label);
            text.push_str(&format!("{glyph} {}\n", styler.paint(TextRole::Strong, entry.run.as_str())));
            let headline = format!("{}: {}", label.text, clean_text(&status.headline));
            text.push_str(&format!("  {}\n", styler.wrap(&headline, 2)));
            let mut facts = Vec::new();
            facts.extend(entry.leaves.map(|leaves| format!("{}/{} tasks", leaves.passed, leaves.total)));
            facts.push(counted(entry.iterations, "iteration", "iterations"));
            facts.push(format!("logs {}", size(entry.log_bytes)));
            facts.push(safety_text(&entry.safety));
            facts.push(on_the_wall(entry.branch.unix_secs * 1000));
            text.push_str(&format!("  {}\n", styler.wrap(&facts.join(", "), 2)));
            if let Some(worktree) = &entry.worktree {
                text.push_str(&format!("  checked out in {}\n", clean_text(worktree)));
            }
        }
        text
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// What one of the short commands did.
pub(crate) struct DoneOutput {
    schema: &'static str,
    key: &'static str,
    value: String,
    text: String,
    next: Option<String>,
}

impl CommandOutput for DoneOutput {
    fn json(&self) -> Value {
        let mut document = json!({ "schema": self.schema });
        if let Value::Object(document) = &mut document {
            document.insert(self.key.to_owned(), json!(self.value));
        }
        document
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![KeyValueLine::new().with(self.key, &self.value)]
    }

    fn human(&self, styler: &Styler) -> String {
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let next = self.next.as_ref().map(|next| format!("\nNext: {next}\n")).unwrap_or_default();
        format!("{tick} {}\n{next}", styler.wrap(&self.text, 2))
    }
}

pub(crate) fn switch(dir: &Path, args: &SwitchArgs) -> Result<DoneOutput, CommandError> {
    let run: RunId = switch_run(dir, &args.run)
        .map_err(|error| CommandError::from_host("could not switch to the run", error))?;
    Ok(DoneOutput {
        schema: "runner.switch/1",
        key: "run_id",
        value: run.to_string(),
        text: format!("on branch {}", run.branch()),
        next: Some("runner status".to_owned()),
    })
}

pub(crate) fn stop(dir: &Path, args: &StopArgs) -> Result<DoneOutput, CommandError> {
    let time = if args.now { StopTime::Now } else { StopTime::AfterIteration };
    let pid =
        stop::stop(dir, time).map_err(|error| CommandError::from_host("could not stop the loop", error))?;
    let process = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let when = if args.now {
        "ends its session and commits the work so far"
    } else {
        "stops after the current iteration"
    };
    Ok(DoneOutput {
        schema: "runner.stop/1",
        key: "pid",
        value: pid.map(|pid| pid.to_string()).unwrap_or_default(),
        text: format!("the loop{process} {when}"),
        next: None,
    })
}

pub(crate) fn clean(dir: &Path, args: &CleanArgs, ui: &Ui) -> Result<DoneOutput, CommandError> {
    let failed = |error| CommandError::from_host("could not remove the run", error);
    let policy = if args.force { CleanPolicy::Any } else { CleanPolicy::OnlySafe };
    let planned: PlannedClean = plan_clean(dir, &args.run, policy).map_err(failed)?;
    let entry = &planned.entry;
    let what = format!(
        "run {}: logs ({}), {} and branch {}",
        entry.run,
        size(entry.log_bytes),
        counted(planned.references.len(), "reference", "references"),
        entry.run.branch()
    );
    if !args.yes {
        let question = format!("Remove {what} ({})?", safety_text(&entry.safety));
        match ui.confirm_removal(&question) {
            Some(true) => {}
            Some(false) => return Err(CommandError::refused("not_confirmed", "nothing was removed")),
            None => {
                return Err(CommandError::refused("not_confirmed", "there is no terminal to ask on")
                    .hint("to remove it without a question, add --yes"));
            }
        }
    }
    planned.remove().map_err(failed)?;
    Ok(DoneOutput {
        schema: "runner.clean/1",
        key: "run_id",
        value: entry.run.to_string(),
        text: format!("removed {what}"),
        next: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_unit() {
        assert_eq!([0, 1_023, 2_048, 1_572_864].map(size), ["0 B", "1023 B", "2 KiB", "1.5 MiB"]);
    }
}
