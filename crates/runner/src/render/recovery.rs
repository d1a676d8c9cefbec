//! The report of a command that recovered the run from a crash before its own work.

use runner_host::repo::recovery::Recovered;
use runner_term::KeyValueLine;
use serde_json::{Value, json};

pub(crate) fn recovered_text(recovered: &Recovered) -> String {
    match recovered {
        Recovered::Publish(publish) => {
            format!("recovered run {} from a crash{}", publish.run, saved_text(publish.saved.as_ref()))
        }
        Recovered::Iteration(iteration) => {
            let meta = &iteration.completed.transition.meta;
            let saved = saved_text(iteration.saved.as_ref());
            format!(
                "recovered iteration {} of run {} from a crash: {}{saved}",
                meta.iter, meta.run_id, meta.outcome
            )
        }
    }
}

/// Where files are that recovery found in the work tree, and how to see them.
fn saved_text(saved: Option<&String>) -> String {
    saved
        .map(|saved| format!("; other files from the work tree are in {saved} (git show {saved})"))
        .unwrap_or_default()
}

pub(crate) fn recovered_line(recovered: &Recovered) -> KeyValueLine {
    match recovered {
        Recovered::Publish(publish) => {
            let line = KeyValueLine::new().with("recovered", &publish.run);
            publish.saved.iter().fold(line, |line, saved| line.with("saved", saved))
        }
        Recovered::Iteration(iteration) => {
            let meta = &iteration.completed.transition.meta;
            let line = KeyValueLine::new()
                .with("recovered", &meta.run_id)
                .with("iter", meta.iter)
                .with("outcome", meta.outcome);
            iteration.saved.iter().fold(line, |line, saved| line.with("saved", saved))
        }
    }
}

pub(crate) fn recovered_json(recovered: &Recovered) -> Value {
    match recovered {
        Recovered::Publish(publish) => json!({ "run": publish.run, "saved": publish.saved }),
        Recovered::Iteration(iteration) => {
            let meta = &iteration.completed.transition.meta;
            json!({
                "run": meta.run_id,
                "iter": meta.iter,
                "outcome": meta.outcome,
                "commit": iteration.completed.commit,
                "saved": iteration.saved,
            })
        }
    }
}
