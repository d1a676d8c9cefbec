//! `runner pause` and `runner resume`

use std::path::Path;

use runner_cli::{Glyph, Ink, Line, Pen, Reply, Report};
use runner_host::pausing::{self, Paused};
use serde_json::{Value, json};

use crate::cli::PauseArgs;

/// What was wished for, and how things stand.
pub(crate) struct Done {
    is_paused: bool,
    found: Paused,
    /// Whether the running iteration was waited for.
    waited: bool,
}

pub(crate) fn pause(dir: &Path, args: &PauseArgs) -> Result<Done, Report> {
    let told = |error| Report::of("could not pause the run", &error);
    let found = pausing::pause(dir).map_err(told)?;
    if args.wait {
        pausing::wait_until_free(dir).map_err(told)?;
    }
    Ok(Done { is_paused: true, found, waited: args.wait })
}

pub(crate) fn resume(dir: &Path) -> Result<Done, Report> {
    let found = pausing::resume(dir).map_err(|error| Report::of("could not let the run go on", &error))?;
    Ok(Done { is_paused: false, found, waited: false })
}

impl Done {
    /// The runner that is still at work.
    fn at_work(&self) -> Option<u32> {
        self.found.at_work.filter(|_| !self.waited)
    }

    fn text(&self) -> String {
        match (self.is_paused, self.at_work()) {
            (true, Some(pid)) => {
                format!("the loop (pid {pid}) stands still after the iteration that it is making")
            }
            (true, None) => "the run is paused: a loop waits until 'runner resume'".to_owned(),
            (false, _) if !self.found.was_paused => "the run was not paused".to_owned(),
            (false, _) => "the run goes on: a loop that waits takes the next leaf".to_owned(),
        }
    }

    fn next(&self) -> &'static str {
        match (self.is_paused, self.found.at_work) {
            (true, _) => "runner node …, runner answer, runner note; then 'runner resume'",
            (false, _) => "runner loop    if none is waiting",
        }
    }
}

impl Reply for Done {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.pause/1",
            "paused": self.is_paused,
            "was_paused": self.found.was_paused,
            "at_work": self.at_work(),
        })
    }

    fn plain(&self) -> Vec<Line> {
        let line = Line::new().with("paused", self.is_paused).with("was_paused", self.found.was_paused);
        vec![match self.at_work() {
            Some(pid) => line.with("at_work", pid),
            None => line,
        }]
    }

    fn drawn(&self, pen: &Pen) -> String {
        let (glyph, ink) =
            if self.is_paused { (Glyph::Retried, Ink::Warn) } else { (Glyph::Passed, Ink::Good) };
        format!("{} {}\n\nNext: {}\n", pen.ink(ink, pen.glyph(glyph)), self.text(), self.next())
    }
}
