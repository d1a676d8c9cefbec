//! The report of a command that recovered the run from a crash before its own work.

use runner_host::repo::recovery::Recovered;
use runner_term::KeyValueLine;
use serde_json::{Value, json};

pub(crate) fn recovered_text(recovered: &Recovered) -> String {
    match recovered {
        Recovered::Publish(publish) => {
            let saved =
                publish.saved.as_ref().map(|saved| format!("; files from the work tree are in {saved}"));
            format!("recovered run {} from a crash{}", publish.run, saved.unwrap_or_default())
        }
        Recovered::Iteration(completed) => {
            let meta = &completed.transition.meta;
            format!("recovered iteration {} of run {} from a crash: {}", meta.iter, meta.run_id, meta.outcome)
        }
    }
}

pub(crate) fn recovered_line(recovered: &Recovered) -> KeyValueLine {
    match recovered {
        Recovered::Publish(publish) => {
            let line = KeyValueLine::new().with("recovered", &publish.run);
            publish.saved.iter().fold(line, |line, saved| line.with("saved", saved))
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
        Recovered::Publish(publish) => json!({ "run": publish.run, "saved": publish.saved }),
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
