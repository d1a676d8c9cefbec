//! `runner fork`

use std::path::Path;

use runner_host::ops::fork::{ForkBase, ForkResult, fork};
use runner_host::view::run_view::RunView;
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::ForkArgs;
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};
use crate::target_arg::{is_iteration, iteration_of, seen};

const WHAT: &str = "could not fork the run";

pub(crate) struct ForkOutput {
    forked: ForkResult,
    passed: usize,
}

pub(crate) fn run(dir: &Path, args: &ForkArgs) -> Result<ForkOutput, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    // A run's id holds no slash, so `RUN/57` cannot mean anything else; `api/57` could be a node.
    let split = args.which.rsplit_once('/').filter(|(run, iter)| !run.contains('/') && is_iteration(iter));
    let named = split
        .filter(|_| args.run.is_none())
        .and_then(|(run, iter)| RunView::at(dir, Some(run)).ok().map(|look| (look, iter)));
    let (look, which) = match named {
        Some(found) => found,
        None => (RunView::at(dir, args.run.as_deref()).map_err(told)?, args.which.as_str()),
    };
    let iter = iteration_of(which, &look, WHAT)?;
    let seen = seen(iter, &look, WHAT)?;
    let run = seen.run().unwrap_or(&look.target.run).clone();
    let from = ForkBase { run, iter, commit: seen.commit.clone() };
    let forked = fork(dir, from, args.id.clone()).map_err(told)?;
    let tree = super::tree::load(dir, WHAT)?;
    Ok(ForkOutput { forked, passed: tree.root().leaves().passed })
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

    fn human(&self, pen: &Styler) -> String {
        let forked = &self.forked;
        let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
        let mut text = String::new();
        if let Some(recovered) = &forked.recovered {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        let leaves = counted(self.passed, "leaf", "leaves");
        text.push_str(&format!(
            "{tick} run {} goes on from iteration {} of {}, on branch {}\n  what passed so far stays passed: {leaves}\n",
            pen.paint(TextRole::Strong, forked.run.as_str()),
            forked.from.iter.get(),
            forked.from.run,
            forked.run.branch(),
        ));
        text.push_str(&format!("\nNext: runner loop\nTo go back: git switch {}\n", forked.from.run.branch()));
        text
    }
}
