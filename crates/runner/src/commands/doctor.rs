//! `runner doctor`

use std::path::Path;

use runner_host::ops::doctor::{CheckVerdict, DoctorCheck, run_checks};
use runner_term::format::counted;
use runner_term::{CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::render::verdict::{verdict_glyph, verdict_word};

/// The column of the results, behind a glyph and the name of the check.
const FOUND_COLUMN: usize = 14;

pub(crate) struct DoctorOutput {
    checks: Vec<DoctorCheck>,
}

pub(crate) fn run(dir: &Path) -> DoctorOutput {
    DoctorOutput { checks: run_checks(dir) }
}

impl DoctorOutput {
    fn problems(&self) -> usize {
        self.checks.iter().filter(|check| check.verdict == CheckVerdict::Problem).count()
    }
}

impl CommandOutput for DoctorOutput {
    fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "check": check.name, "verdict": verdict_word(check.verdict), "found": check.found,
                    "fix": check.fix,
                })
            })
            .collect();
        json!({ "schema": "runner.doctor/1", "checks": checks, "problems": self.problems() })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for check in &self.checks {
            let line = KeyValueLine::new().with("check", check.name);
            let line = line.with("verdict", verdict_word(check.verdict)).with("found", &check.found);
            lines.push(match &check.fix {
                Some(fix) => line.with("fix", fix),
                None => line,
            });
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let glyph = verdict_glyph(check.verdict, styler);
            let found = styler.wrap_commands(&check.found, FOUND_COLUMN);
            text.push_str(&format!("{glyph} {:10}  {found}\n", check.name));
            if let Some(fix) = &check.fix {
                let fix = styler.wrap_commands(fix, FOUND_COLUMN + 2);
                text.push_str(&format!("{:FOUND_COLUMN$}{} {fix}\n", "", styler.glyph(Glyph::Arrow)));
            }
        }
        let verdict = match self.problems() {
            0 => styler.paint(TextRole::Good, "Ready to run"),
            count => styler.paint(TextRole::Bad, &counted(count, "problem", "problems")),
        };
        text + &format!("\n{verdict}\n")
    }

    fn exit(&self) -> CommandExit {
        if self.problems() == 0 { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
