//! `runner doctor`

use std::path::Path;

use runner_host::ops::doctor::{CheckVerdict, DoctorCheck, run_checks};
use runner_term::{CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

pub(crate) struct DoctorOutput {
    points: Vec<DoctorCheck>,
}

pub(crate) fn run(dir: &Path) -> DoctorOutput {
    DoctorOutput { points: run_checks(dir) }
}

fn word(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Good => "good",
        CheckVerdict::Doubtful => "doubtful",
        CheckVerdict::Bad => "bad",
    }
}

impl CommandOutput for DoctorOutput {
    fn json(&self) -> Value {
        let points: Vec<Value> = self
            .points
            .iter()
            .map(|point| {
                json!({
                    "name": point.name, "verdict": word(point.verdict), "found": point.found, "fix": point.fix,
                })
            })
            .collect();
        json!({ "schema": "runner.doctor/1", "points": points })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.points
            .iter()
            .map(|point| {
                let line = KeyValueLine::new().with("check", point.name).with("verdict", word(point.verdict));
                let line = line.with("found", &point.found);
                match &point.fix {
                    Some(fix) => line.with("fix", fix),
                    None => line,
                }
            })
            .collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = String::new();
        for point in &self.points {
            let (glyph, ink) = match point.verdict {
                CheckVerdict::Good => (Glyph::Passed, TextRole::Good),
                CheckVerdict::Doubtful => (Glyph::Open, TextRole::Warn),
                CheckVerdict::Bad => (Glyph::Failed, TextRole::Bad),
            };
            text.push_str(&format!(
                "{} {:10}  {}\n",
                pen.paint(ink, pen.glyph(glyph)),
                point.name,
                point.found
            ));
            if let Some(fix) = &point.fix {
                text.push_str(&format!("  {:10}  {} {fix}\n", "", pen.glyph(Glyph::Arrow)));
            }
        }
        let bad = self.points.iter().filter(|point| point.verdict == CheckVerdict::Bad).count();
        let verdict = match bad {
            0 => pen.paint(TextRole::Good, "everything a run needs is here"),
            1 => pen.paint(TextRole::Bad, "1 thing keeps a run from working"),
            n => pen.paint(TextRole::Bad, &format!("{n} things keep a run from working")),
        };
        text + &format!("\n{verdict}\n")
    }

    fn exit(&self) -> CommandExit {
        let bad = self.points.iter().any(|point| point.verdict == CheckVerdict::Bad);
        if bad { CommandExit::FAILURE } else { CommandExit::SUCCESS }
    }
}
