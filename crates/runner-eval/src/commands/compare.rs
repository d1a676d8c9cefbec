//! `runner eval compare`

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{CompareArgs, EvalGlobalArgs};
use crate::result::selection::ResultSelection;
use crate::stats::comparison::PairedComparison;
use crate::stats::paired::{MeanDifference, difference};

/// How many draws the sign-flip test makes where there are too many cases to count all.
pub(super) const DRAWS: u32 = 9_999;

/// Two results, side by side.
pub(crate) struct CompareOutput {
    base: String,
    new: String,
    pairing: PairedComparison,
    difference: MeanDifference,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &CompareArgs) -> Result<CompareOutput, CommandError> {
    let base = ResultSelection::read(global, Some(&args.base))?;
    let new = ResultSelection::read(global, Some(&args.new))?;
    let pairing = PairedComparison::new(&base, &new)?;
    let Some(difference) = difference(&pairing.list(), DRAWS) else {
        let what = format!("`{}` and `{}` cannot be compared", args.base, args.new);
        let report = CommandError::refused("no_pairs", what).cause("no case has a score on both sides");
        return Err(pairing.notes().into_iter().fold(report, CommandError::cause));
    };
    Ok(CompareOutput { base: args.base.clone(), new: args.new.clone(), pairing, difference })
}

/// A difference of rates in percentage points, with its sign.
pub(super) fn points(difference: f64) -> String {
    format!("{:+.1}", 100.0 * difference)
}

/// What a difference means, in a sentence.
pub(super) fn words(difference: &MeanDifference) -> &'static str {
    let interval = difference.interval;
    if interval.low > 0.0 {
        "the new results are better: the interval does not include zero"
    } else if interval.high < 0.0 {
        "the new results are worse: the interval does not include zero"
    } else {
        "the interval includes zero: these results do not show a difference, nor that there is none"
    }
}

/// A difference as pairs.
pub(super) fn line(line: KeyValueLine, found: &MeanDifference) -> KeyValueLine {
    let line = line.with("difference", format!("{:.4}", found.mean));
    let line = line.with("low", format!("{:.4}", found.interval.low));
    let line = line.with("high", format!("{:.4}", found.interval.high));
    let line = line.with("wins", found.wins).with("ties", found.ties).with("losses", found.losses);
    line.with("p_value", format!("{:.4}", found.p_value)).with("exact", found.exact)
}

/// A difference for people.
pub(super) fn drawn(pen: &Styler, found: &MeanDifference) -> String {
    let ink = match (found.interval.low > 0.0, found.interval.high < 0.0) {
        (true, _) => TextRole::Good,
        (_, true) => TextRole::Bad,
        _ => TextRole::Warn,
    };
    format!(
        "{} points, 95 %: {} to {}\n{} better, {} alike, {} worse; by chance alone: p = {:.3}{}\n{}\n",
        pen.paint(TextRole::Strong, &points(found.mean)),
        points(found.interval.low),
        points(found.interval.high),
        found.wins,
        found.ties,
        found.losses,
        found.p_value,
        if found.exact { " (exact)" } else { "" },
        pen.paint(ink, words(found)),
    )
}

impl CommandOutput for CompareOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.compare/1",
            "base": self.base,
            "new": self.new,
            "n": self.pairing.pairs.len(),
            "difference": self.difference,
            "words": words(&self.difference),
            "paired": self.pairing.json(),
            "notes": self.pairing.notes(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let whole = KeyValueLine::new().with("base", &self.base).with("new", &self.new);
        let whole = line(whole.with("n", self.pairing.pairs.len()), &self.difference);
        let mut lines = vec![whole, KeyValueLine::new().with("words", words(&self.difference))];
        lines.extend(self.pairing.pairs.iter().map(|(case, pair)| {
            let side =
                |counts: crate::stats::paired::ScoredCounts| format!("{}/{}", counts.successes, counts.n);
            let line = KeyValueLine::new()
                .with("case", case)
                .with("base", side(pair.base))
                .with("new", side(pair.new));
            line.with("difference", format!("{:.4}", pair.difference()))
        }));
        lines.extend(self.pairing.notes().iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = format!("{} against {}, {} cases\n", self.new, self.base, self.pairing.pairs.len());
        text.push_str(&drawn(pen, &self.difference));
        let width = self.pairing.pairs.keys().map(String::len).max().unwrap_or(0);
        for (case, pair) in self.pairing.pairs.iter().filter(|(_, pair)| pair.difference() != 0.0) {
            let (base, new) = (pair.base, pair.new);
            let ink = if pair.difference() > 0.0 { TextRole::Good } else { TextRole::Bad };
            let told = format!("{}/{} → {}/{}", base.successes, base.n, new.successes, new.n);
            text.push_str(&format!("  {case:width$}  {}\n", pen.paint(ink, &told)));
        }
        for note in self.pairing.notes() {
            text.push_str(&format!("{}\n", pen.paint(TextRole::Faint, &note)));
        }
        text
    }
}
