//! `runner doctor`

use std::path::Path;

use runner_host::ops::doctor::{CheckVerdict, DoctorCheck, run_checks};
use runner_term::{CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

pub(crate) struct DoctorOutput {
    checks: Vec<DoctorCheck>,
}

pub(crate) fn run(dir: &Path) -> DoctorOutput {
    DoctorOutput { checks: run_checks(dir) }
}

impl CommandOutput for DoctorOutput {
    fn json(&self) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "name": check.name, "verdict": check.verdict.as_str(), "found": check.found, "fix": check.fix,
                })
            })
            .collect();
        json!({ "schema": "runner.doctor/1", "checks": checks })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.checks
            .iter()
            .map(|check| {
                let line =
                    KeyValueLine::new().with("check", check.name).with("verdict", check.verdict.as_str());
                let line = line.with("found", &check.found);
                match &check.fix {
                    Some(fix) => line.with("fix", fix),
                    None => line,
                }
            })
            .collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let (glyph, role) = match check.verdict {
                CheckVerdict::Ok => (Glyph::Passed, TextRole::Good),
                CheckVerdict::Warning => (Glyph::Open, TextRole::Warn),
                CheckVerdict::Failed => (Glyph::Failed, TextRole::Bad),
            };
            text.push_str(&format!(
                "{} {:10}  {}\n",
                pen.paint(role, pen.glyph(glyph)),
                check.name,
                check.found
            ));
            if let Some(fix) = &check.fix {
                text.push_str(&format!("  {:10}  {} {fix}\n", "", pen.glyph(Glyph::Arrow)));
            }
        }
        let failed = self.checks.iter().filter(|check| check.verdict == CheckVerdict::Failed).count();
        let verdict = match failed {
            0 => pen.paint(TextRole::Good, "Ready to run"),
            1 => pen.paint(TextRole::Bad, "1 problem"),
            n => pen.paint(TextRole::Bad, &format!("{n} problems")),
        };
        text + &format!("\n{verdict}\n")
    }

    fn exit(&self) -> CommandExit {
        let has_failed = self.checks.iter().any(|check| check.verdict == CheckVerdict::Failed);
        if has_failed { CommandExit::FAILURE } else { CommandExit::SUCCESS }
    }
}
