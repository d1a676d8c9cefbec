//! `runner loop --detach`: starts the loop in the background and waits until it works.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_host::ops::detach::{DetachReport, DetachedLoop};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::status::{self, StatusOutput};
use crate::args::LoopOptions;
use crate::render::clean;

/// What became of the loop.
pub(crate) enum DetachOutput {
    Working {
        pid: u32,
        log: PathBuf,
    },
    /// There was nothing to do; the status shows why.
    Ended {
        status: Box<StatusOutput>,
        exit: u8,
    },
    /// It failed and has printed why.
    Failed {
        exit: u8,
    },
}

pub(super) fn run(dir: &Path, options: &LoopOptions, ui: &Ui) -> Result<DetachOutput, CommandError> {
    let failed = |error| CommandError::from_host("cannot start the loop", error);
    let mut detached = DetachedLoop::spawn(dir, &arguments(dir, options, ui)).map_err(failed)?;
    let mut status_line = None;
    let report = loop {
        match detached.next_report() {
            DetachReport::Baseline => {
                status_line =
                    Some(ui.status_line("running the guard once before starting (Ctrl-C stops it)"));
            }
            report @ (DetachReport::Working | DetachReport::Ended(_)) => break report,
        }
    };
    drop(status_line);
    Ok(match report {
        DetachReport::Baseline | DetachReport::Working => {
            DetachOutput::Working { pid: detached.pid(), log: detached.log.clone() }
        }
        DetachReport::Ended(exit @ (0 | 3 | 4)) => {
            DetachOutput::Ended { status: Box::new(status::read(dir).map_err(failed)?), exit }
        }
        DetachReport::Ended(exit) => DetachOutput::Failed { exit },
    })
}

/// The arguments with which the loop in the background is started.
fn arguments(dir: &Path, options: &LoopOptions, ui: &Ui) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-C".into(), dir.into()];
    if ui.is_json() {
        arguments.push("--json".into());
    }
    arguments.push("loop".into());
    arguments.extend(options.arguments().into_iter().map(OsString::from));
    arguments.push("--detached".into());
    arguments
}

impl CommandOutput for DetachOutput {
    fn json(&self) -> Value {
        match self {
            Self::Working { pid, log } => json!({
                "schema": "runner.detach/1",
                "event": "detached",
                "pid": pid,
                "log": log.display().to_string(),
            }),
            Self::Ended { status, .. } => status.json(),
            Self::Failed { exit } => json!({ "schema": "runner.detach/1", "event": "failed", "exit": exit }),
        }
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        match self {
            Self::Working { pid, log } => {
                let line = KeyValueLine::new().with("event", "detached").with("pid", pid);
                vec![line.with("log", clean(&log.display().to_string()))]
            }
            Self::Ended { status, .. } => status.key_values(),
            Self::Failed { .. } => Vec::new(),
        }
    }

    fn human(&self, styler: &Styler) -> String {
        let (pid, log) = match self {
            Self::Working { pid, log } => (pid, log),
            Self::Ended { status, .. } => return status.human(styler),
            Self::Failed { .. } => return String::new(),
        };
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let mut text = format!("{tick} the loop runs in the background (process {pid})\n\n");
        for (name, value) in [
            ("watch", "runner watch"),
            ("status", "runner status"),
            ("stop", "runner stop          # after the current iteration; --now: at once"),
            ("log", &clean(&log.display().to_string())),
        ] {
            text.push_str(&format!("  {} {value}\n", styler.paint(TextRole::Faint, &format!("{name:8}"))));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        match self {
            Self::Working { .. } => CommandExit::SUCCESS,
            Self::Ended { exit, .. } | Self::Failed { exit } => CommandExit(*exit),
        }
    }
}
