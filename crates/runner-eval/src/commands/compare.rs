//! `runner eval compare`, and the presentation of a difference that `gate` shares.

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{CompareArgs, EvalGlobalArgs};
use crate::result::selection::ResultSelection;
use crate::stats::comparison::PairedComparison;
use crate::stats::holm;
use crate::stats::paired::{InferenceScope, MeanDifference, ScoredCounts, ShownDirection, mean_difference};

/// Draws of the re-dealing test, if the numbers of trials do not allow an exact one.
pub(super) const DRAWS: u32 = 9_999;

pub(crate) struct CompareOutput {
    base: String,
    new: String,
    comparison: PairedComparison,
    difference: MeanDifference,
    /// Corrected for the number of comparisons; none for a single one.
    adjusted_p: Option<f64>,
}

/// Several results compared with one base.
pub(crate) struct ComparisonList(Vec<CompareOutput>);

pub(crate) fn run(
    global: &EvalGlobalArgs,
    args: &CompareArgs,
) -> Result<Box<dyn CommandOutput>, CommandError> {
    let base = ResultSelection::load(global, Some(&args.base))?;
    let scope = inference_scope(args.population);
    let mut compared = Vec::new();
    for new in &args.new {
        compared.push(compare(&base, &ResultSelection::load(global, Some(new))?, scope)?);
    }
    if compared.len() == 1
        && let Some(only) = compared.pop()
    {
        return Ok(Box::new(only));
    }
    let p_values: Vec<f64> = compared.iter().map(|output| output.difference.p_value).collect();
    for (output, adjusted) in compared.iter_mut().zip(holm::adjusted(&p_values)) {
        output.adjusted_p = Some(adjusted);
        // The words follow the corrected value.
        output.difference.p_value = adjusted;
    }
    Ok(Box::new(ComparisonList(compared)))
}

pub(super) fn inference_scope(is_population: bool) -> InferenceScope {
    if is_population { InferenceScope::Population } else { InferenceScope::Cases }
}

pub(super) fn compare(
    base: &ResultSelection,
    new: &ResultSelection,
    scope: InferenceScope,
) -> Result<CompareOutput, CommandError> {
    let comparison = PairedComparison::new(base, new)?;
    let Some(difference) = mean_difference(&comparison.pairs(), scope, DRAWS) else {
        let what = format!("`{}` and `{}` cannot be compared", base.name, new.name);
        let error = CommandError::refused("no_pairs", what).cause("no case has a score on both sides");
        return Err(comparison.notes().into_iter().fold(error, CommandError::cause));
    };
    let [base, new] = [base, new].map(|selection| selection.name.clone());
    Ok(CompareOutput { base, new, comparison, difference, adjusted_p: None })
}

/// A difference of rates in percentage points, with its sign.
fn points(difference: f64) -> String {
    format!("{:+.1}", 100.0 * difference)
}

pub(super) fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// What a difference means, in a sentence.
pub(super) fn summary(direction: ShownDirection, scope: InferenceScope) -> &'static str {
    match (direction, scope) {
        (ShownDirection::Better, InferenceScope::Cases) => "on these cases, the new results are better",
        (ShownDirection::Worse, InferenceScope::Cases) => "on these cases, the new results are worse",
        (ShownDirection::Better, InferenceScope::Population) => "the new results are better",
        (ShownDirection::Worse, InferenceScope::Population) => "the new results are worse",
        (ShownDirection::None, _) => "neither a difference nor its absence is shown (p > 5 %)",
    }
}

pub(super) fn add_difference(line: KeyValueLine, difference: &MeanDifference) -> KeyValueLine {
    line.with("difference", format!("{:.4}", difference.mean))
        .with("ci_low", format!("{:.4}", difference.interval.low))
        .with("ci_high", format!("{:.4}", difference.interval.high))
        .with("wins", difference.wins)
        .with("ties", difference.ties)
        .with("losses", difference.losses)
        .with("p_value", format!("{:.4}", difference.p_value))
        .with("p_drop", format!("{:.4}", difference.p_drop))
        .with("exact", difference.exact)
}

/// A difference for people, with the p-value that `direction` follows.
pub(super) fn render_difference(
    styler: &Styler,
    difference: &MeanDifference,
    direction: ShownDirection,
    p: &str,
) -> String {
    let interval = difference.interval;
    let role = match direction {
        ShownDirection::Better => TextRole::Good,
        ShownDirection::Worse => TextRole::Bad,
        ShownDirection::None => TextRole::Warn,
    };
    format!(
        "{} percentage points, 95 % confidence interval {} to {}\n\
         {} better, {} equal, {} worse; {}{}\n{}\n",
        styler.paint(TextRole::Strong, &points(difference.mean)),
        points(interval.low),
        points(interval.high),
        difference.wins,
        difference.ties,
        difference.losses,
        p,
        if difference.exact { " (exact)" } else { "" },
        styler.paint(role, summary(direction, difference.scope)),
    )
}

fn fraction(counts: ScoredCounts) -> String {
    format!("{}/{}", counts.successes, counts.n)
}

impl CommandOutput for CompareOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.compare/1",
            "base": self.base,
            "new": self.new,
            "n": self.comparison.pairs.len(),
            "difference": self.difference,
            "adjusted_p": self.adjusted_p,
            "direction": self.difference.direction(),
            "summary": summary(self.difference.direction(), self.difference.scope),
            "paired": self.comparison.json(),
            "notes": self.comparison.notes(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let head = KeyValueLine::new()
            .with("base", &self.base)
            .with("new", &self.new)
            .with("n", self.comparison.pairs.len());
        let mut lines = vec![
            add_difference(head, &self.difference),
            KeyValueLine::new().with("summary", summary(self.difference.direction(), self.difference.scope)),
        ];
        for (case, pair) in &self.comparison.pairs {
            lines.push(
                KeyValueLine::new()
                    .with("case", case)
                    .with("base", fraction(pair.base))
                    .with("new", fraction(pair.new))
                    .with("difference", format!("{:.4}", pair.difference())),
            );
        }
        lines.extend(self.comparison.notes().iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let pairs = &self.comparison.pairs;
        let mut text = format!("{} compared with {}, {} cases\n", self.new, self.base, pairs.len());
        let p = p_value(self.difference.p_value);
        text.push_str(&render_difference(styler, &self.difference, self.difference.direction(), &p));
        let width = pairs.keys().map(String::len).max().unwrap_or(0);
        for (case, pair) in pairs.iter().filter(|(_, pair)| pair.difference() != 0.0) {
            let role = if pair.difference() > 0.0 { TextRole::Good } else { TextRole::Bad };
            let change = format!("{} → {}", fraction(pair.base), fraction(pair.new));
            text.push_str(&format!("  {case:width$}  {}\n", styler.paint(role, &change)));
        }
        for note in self.comparison.notes() {
            text.push_str(&format!("{}\n", styler.paint(TextRole::Faint, &note)));
        }
        text
    }
}

impl CommandOutput for ComparisonList {
    fn json(&self) -> Value {
        let comparisons: Vec<Value> = self.0.iter().map(CompareOutput::json).collect();
        json!({ "schema": "runner.eval.comparisons/1", "correction": "holm", "comparisons": comparisons })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.0.iter().flat_map(CompareOutput::key_values).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let parts: Vec<String> = self.0.iter().map(|output| output.human(styler)).collect();
        format!("{}\np-values are corrected for {} comparisons (Holm)\n", parts.join("\n"), self.0.len())
    }
}
