//! `runner fork`

use std::path::Path;

use runner_host::ops::fork::{ForkBase, ForkResult, fork};
use runner_host::view::run_view::RunView;
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::ForkArgs;
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};
use crate::target_arg::{committed_iteration, is_iteration, resolve_iteration};

const WHAT: &str = "could not fork the run";

pub(crate) struct ForkOutput {
    forked: ForkResult,
    passed: usize,
}

pub(crate) fn run(dir: &Path, args: &ForkArgs) -> Result<ForkOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let (view, target) = match other_run(dir, args) {
        Some(other) => other,
        None => (RunView::at(dir, args.run.as_deref()).map_err(failed)?, args.target.as_str()),
    };
    let iter = resolve_iteration(target, &view, WHAT)?;
    let iteration = committed_iteration(iter, &view, WHAT)?;
    let run = iteration.run().unwrap_or(&view.target.run).clone();
    let base = ForkBase { run, iter, commit: iteration.commit.clone() };
    let forked = fork(dir, base, args.id.clone()).map_err(failed)?;
    let tree = super::tree::load(dir, WHAT)?;
    Ok(ForkOutput { forked, passed: tree.root().leaves().passed })
}

/// The run and iteration of `RUN/57`. A run's id has no slash, but `api/57` may also be a node of the current run, so
/// that a run of that name has to exist.
fn other_run<'a>(dir: &Path, args: &'a ForkArgs) -> Option<(RunView, &'a str)> {
    let (run, iter) = args.target.rsplit_once('/')?;
    if run.contains('/') || !is_iteration(iter) || args.run.name.is_some() {
        return None;
    }
    RunView::at(dir, Some(run)).ok().map(|view| (view, iter))
}

impl CommandOutput for ForkOutput {
    fn json(&self) -> Value {
        let forked = &self.forked;
        json!({
            "schema": "runner.fork/1",
            "run_id": forked.run,
            "branch": forked.run.branch(),
            "commit": forked.commit,
            "from": { "run_id": forked.from.run, "iter": forked.from.iter, "commit": forked.from.commit },
            "passed": self.passed,
            "recovered": forked.recovered.as_ref().map(recovered_json),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let forked = &self.forked;
        let mut lines: Vec<KeyValueLine> =
            forked.recovered.as_ref().map(recovered_line).into_iter().collect();
        lines.push(KeyValueLine::new().with("run_id", &forked.run));
        lines.push(KeyValueLine::new().with("branch", forked.run.branch()));
        lines.push(KeyValueLine::new().with("commit", &forked.commit));
        lines.push(KeyValueLine::new().with("from_run", &forked.from.run));
        lines.push(KeyValueLine::new().with("from_iter", forked.from.iter.get()));
        lines.push(KeyValueLine::new().with("from_commit", &forked.from.commit));
        lines.push(KeyValueLine::new().with("passed", self.passed));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let forked = &self.forked;
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let mut text = String::new();
        if let Some(recovered) = &forked.recovered {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        let tasks = counted(self.passed, "task", "tasks");
        text.push_str(&format!(
            "{tick} run {} started from iteration {} of {}, on branch {}\n  {tasks} already passed\n",
            styler.paint(TextRole::Strong, forked.run.as_str()),
            forked.from.iter.get(),
            forked.from.run,
            forked.run.branch(),
        ));
        text.push_str(&format!("\nNext: runner loop\nTo go back: git switch {}\n", forked.from.run.branch()));
        text
    }
}
