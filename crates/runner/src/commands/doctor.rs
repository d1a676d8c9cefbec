//! `runner doctor`

use std::path::Path;

use runner_cli::{Exit, Glyph, Ink, Line, Pen, Reply};
use runner_host::doctor::{Point, Verdict, examine};
use serde_json::{Value, json};

pub(crate) struct Answer {
    points: Vec<Point>,
}

pub(crate) fn run(dir: &Path) -> Answer {
    Answer { points: examine(dir) }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Doubtful => "doubtful",
        Verdict::Bad => "bad",
    }
}

impl Reply for Answer {
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

    fn plain(&self) -> Vec<Line> {
        self.points
            .iter()
            .map(|point| {
                let line = Line::new().with("check", point.name).with("verdict", word(point.verdict));
                let line = line.with("found", &point.found);
                match &point.fix {
                    Some(fix) => line.with("fix", fix),
                    None => line,
                }
            })
            .collect()
    }

    fn drawn(&self, pen: &Pen) -> String {
        let mut text = String::new();
        for point in &self.points {
            let (glyph, ink) = match point.verdict {
                Verdict::Good => (Glyph::Passed, Ink::Good),
                Verdict::Doubtful => (Glyph::Open, Ink::Warn),
                Verdict::Bad => (Glyph::Failed, Ink::Bad),
            };
            text.push_str(&format!(
                "{} {:10}  {}\n",
                pen.ink(ink, pen.glyph(glyph)),
                point.name,
                point.found
            ));
            if let Some(fix) = &point.fix {
                text.push_str(&format!("  {:10}  {} {fix}\n", "", pen.glyph(Glyph::Arrow)));
            }
        }
        let bad = self.points.iter().filter(|point| point.verdict == Verdict::Bad).count();
        let verdict = match bad {
            0 => pen.ink(Ink::Good, "everything a run needs is here"),
            1 => pen.ink(Ink::Bad, "1 thing keeps a run from working"),
            n => pen.ink(Ink::Bad, &format!("{n} things keep a run from working")),
        };
        text + &format!("\n{verdict}\n")
    }

    fn exit(&self) -> Exit {
        let bad = self.points.iter().any(|point| point.verdict == Verdict::Bad);
        if bad { Exit::FAILURE } else { Exit::SUCCESS }
    }
}
