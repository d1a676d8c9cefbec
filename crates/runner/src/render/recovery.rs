//! The lines that report what a command recovered after a crash.

use runner_host::repo::recovery::Recovered;
use runner_term::KeyValueLine;
use serde_json::{Value, json};

pub(crate) fn recovered_text(recovered: &Recovered) -> String {
    match recovered {
        Recovered::Publish(publish) => {
            let stored = match &publish.found {
                Some(reference) => format!("; the files in the work tree are stored as {reference}"),
                None => String::new(),
            };
            format!("finished the interrupted operation of run {}{stored}", publish.run)
        }
        Recovered::Iteration(completed) => {
            let meta = &completed.transition.meta;
            format!(
                "finished the interrupted iteration {} of run {}: {}",
                meta.iter, meta.run_id, meta.outcome
            )
        }
    }
}

pub(crate) fn recovered_line(recovered: &Recovered) -> KeyValueLine {
    match recovered {
        Recovered::Publish(publish) => {
            let line = KeyValueLine::new().with("recovered", &publish.run);
            publish.found.iter().fold(line, |line, found| line.with("found", found))
        }
        Recovered::Iteration(completed) => {
            let meta = &completed.transition.meta;
            KeyValueLine::new()
                .with("recovered", &meta.run_id)
                .with("iter", meta.iter)
                .with("outcome", meta.outcome)
        }
    }
}

pub(crate) fn recovered_json(recovered: &Recovered) -> Value {
    match recovered {
        Recovered::Publish(publish) => json!({ "run": publish.run, "found": publish.found }),
        Recovered::Iteration(completed) => {
            let meta = &completed.transition.meta;
            json!({
                "run": meta.run_id,
                "iter": meta.iter,
                "outcome": meta.outcome,
                "commit": completed.commit,
            })
        }
    }
}
