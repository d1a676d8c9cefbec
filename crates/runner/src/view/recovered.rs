//! What a command says when it finished something that a crash had left.

use runner_cli::Line;
use runner_core::step::StepEnd;
use runner_host::workshop::Taken;
use serde_json::{Value, json};

pub(crate) fn recovered_text(taken: &Taken) -> String {
    match taken {
        Taken::Move(it) => {
            let kept =
                it.found.as_ref().map(|found| format!("; what lay in the work tree is kept as {found}"));
            format!("finished what was interrupted in run {}{}", it.run, kept.unwrap_or_default())
        }
        Taken::Iteration(end) => match end.as_ref() {
            StepEnd::Iterated(it) => {
                let meta = &it.transition.meta;
                format!(
                    "finished the interrupted iteration {} of run {}: {}",
                    meta.iter, meta.run_id, meta.outcome
                )
            }
            StepEnd::Stopped(stop) => format!("found an iteration that had not begun: {}", stop.as_str()),
        },
    }
}

pub(crate) fn recovered_line(taken: &Taken) -> Line {
    match taken {
        Taken::Move(it) => {
            let line = Line::new().with("recovered", &it.run);
            it.found.iter().fold(line, |line, found| line.with("found", found))
        }
        Taken::Iteration(end) => match end.as_ref() {
            StepEnd::Iterated(it) => {
                let meta = &it.transition.meta;
                Line::new()
                    .with("recovered", &meta.run_id)
                    .with("iter", meta.iter)
                    .with("outcome", meta.outcome)
            }
            StepEnd::Stopped(stop) => Line::new().with("recovered", stop.as_str()),
        },
    }
}

pub(crate) fn recovered_json(taken: &Taken) -> Value {
    match taken {
        Taken::Move(it) => json!({ "run": it.run, "found": it.found }),
        Taken::Iteration(end) => match end.as_ref() {
            StepEnd::Iterated(it) => {
                let meta = &it.transition.meta;
                json!({ "run": meta.run_id, "iter": meta.iter, "outcome": meta.outcome, "commit": it.record.commit })
            }
            StepEnd::Stopped(stop) => json!({ "stop": stop }),
        },
    }
}
