//! What a command says when it finished something that a crash had left.

use runner_core::step::StepResult;
use runner_host::iteration::Recovered;
use runner_term::KeyValueLine;
use serde_json::{Value, json};

pub(crate) fn recovered_text(taken: &Recovered) -> String {
    match taken {
        Recovered::Publish(it) => {
            let kept =
                it.found.as_ref().map(|found| format!("; what lay in the work tree is kept as {found}"));
            format!("finished what was interrupted in run {}{}", it.run, kept.unwrap_or_default())
        }
        Recovered::Iteration(end) => match end.as_ref() {
            StepResult::Iterated(it) => {
                let meta = &it.transition.meta;
                format!(
                    "finished the interrupted iteration {} of run {}: {}",
                    meta.iter, meta.run_id, meta.outcome
                )
            }
            StepResult::Stopped(stop) => format!("found an iteration that had not begun: {}", stop.as_str()),
        },
    }
}

pub(crate) fn recovered_line(taken: &Recovered) -> KeyValueLine {
    match taken {
        Recovered::Publish(it) => {
            let line = KeyValueLine::new().with("recovered", &it.run);
            it.found.iter().fold(line, |line, found| line.with("found", found))
        }
        Recovered::Iteration(end) => match end.as_ref() {
            StepResult::Iterated(it) => {
                let meta = &it.transition.meta;
                KeyValueLine::new()
                    .with("recovered", &meta.run_id)
                    .with("iter", meta.iter)
                    .with("outcome", meta.outcome)
            }
            StepResult::Stopped(stop) => KeyValueLine::new().with("recovered", stop.as_str()),
        },
    }
}

pub(crate) fn recovered_json(taken: &Recovered) -> Value {
    match taken {
        Recovered::Publish(it) => json!({ "run": it.run, "found": it.found }),
        Recovered::Iteration(end) => match end.as_ref() {
            StepResult::Iterated(it) => {
                let meta = &it.transition.meta;
                json!({ "run": meta.run_id, "iter": meta.iter, "outcome": meta.outcome, "commit": it.record.commit })
            }
            StepResult::Stopped(stop) => json!({ "stop": stop }),
        },
    }
}
