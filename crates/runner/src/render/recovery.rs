//! The report of a command that recovered the run from a crash before its own work.

use runner_core::step::StepResult;
use runner_host::iteration::Recovered;
use runner_term::KeyValueLine;
use serde_json::{Value, json};

pub(crate) fn recovered_text(recovered: &Recovered) -> String {
    match recovered {
        Recovered::Publish(publish) => {
            let saved =
                publish.found.as_ref().map(|saved| format!("; files from the work tree are in {saved}"));
            format!("recovered run {} from a crash{}", publish.run, saved.unwrap_or_default())
        }
        Recovered::Iteration(result) => match result.as_ref() {
            StepResult::Iterated(iterated) => {
                let meta = &iterated.transition.meta;
                format!(
                    "recovered iteration {} of run {} from a crash: {}",
                    meta.iter, meta.run_id, meta.outcome
                )
            }
            StepResult::Stopped(stop) => {
                format!("recovered from a crash before the iteration started: {}", stop.as_str())
            }
        },
    }
}

pub(crate) fn recovered_line(recovered: &Recovered) -> KeyValueLine {
    match recovered {
        Recovered::Publish(publish) => {
            let line = KeyValueLine::new().with("recovered", &publish.run);
            publish.found.iter().fold(line, |line, saved| line.with("saved", saved))
        }
        Recovered::Iteration(result) => match result.as_ref() {
            StepResult::Iterated(iterated) => {
                let meta = &iterated.transition.meta;
                KeyValueLine::new()
                    .with("recovered", &meta.run_id)
                    .with("iter", meta.iter)
                    .with("outcome", meta.outcome)
            }
            StepResult::Stopped(stop) => KeyValueLine::new().with("recovered", stop.as_str()),
        },
    }
}

pub(crate) fn recovered_json(recovered: &Recovered) -> Value {
    match recovered {
        Recovered::Publish(publish) => json!({ "run": publish.run, "saved": publish.found }),
        Recovered::Iteration(result) => match result.as_ref() {
            StepResult::Iterated(iterated) => {
                let meta = &iterated.transition.meta;
                json!({
                    "run": meta.run_id, "iter": meta.iter, "outcome": meta.outcome,
                    "commit": iterated.record.commit,
                })
            }
            StepResult::Stopped(stop) => json!({ "stop": stop }),
        },
    }
}
