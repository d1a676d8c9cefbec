//! `runner eval gate`

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::compare::{DRAWS, add_difference, render_difference, summary};
use crate::args::{EvalGlobalArgs, GateArgs};
use crate::result::selection::ResultSelection;
use crate::stats::comparison::{PairedComparison, scores_by_case};
use crate::stats::gate::{CaseModel, GateRule, GateVerdict, VerdictTally, decide, simulate};
use crate::stats::paired::{MeanDifference, mean_difference};
use crate::stats::score::Score;

/// Simulated comparisons of `--aa`.
const ROUNDS: u32 = 2_000;
/// The drops of the pass rate whose detection `--aa` simulates.
const DROPS: [f64; 3] = [0.05, 0.1, 0.2];

/// Not 1: an error must not look like a verdict.
const REGRESSION: CommandExit = CommandExit(7);
const INCONCLUSIVE: CommandExit = CommandExit(5);
const INCOMPLETE: CommandExit = CommandExit(6);

pub(crate) fn run(global: &EvalGlobalArgs, args: &GateArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    if !(0.0..=1.0).contains(&args.margin) {
        return Err(CommandError::refused("margin", format!("invalid margin: {}", args.margin))
            .cause("it must be from 0 to 1")
            .hint("five percentage points: --margin 0.05"));
    }
    let rule = GateRule { margin: args.margin, min_cases: args.min_cases, draws: DRAWS };
    let base = ResultSelection::load(global, Some(&args.base))?;
    let Some(new) = &args.new else { return Ok(Box::new(simulate_gate(&base, rule)?)) };
    let new = ResultSelection::load(global, Some(new))?;
    let comparison = PairedComparison::new(&base, &new)?;
    let pairs = comparison.pairs();
    let missing = find_missing(&base, &new, &comparison);
    let verdict = if missing.is_empty() { decide(&pairs, &rule) } else { GateVerdict::Incomplete };
    Ok(Box::new(GateOutput {
        base: base.name,
        new: new.name,
        rule,
        verdict,
        missing,
        difference: mean_difference(&pairs, DRAWS),
        comparison,
    }))
}

/// What is missing for a verdict, in sentences.
fn find_missing(base: &ResultSelection, new: &ResultSelection, comparison: &PairedComparison) -> Vec<String> {
    let mut missing = Vec::new();
    for side in [base, new] {
        if !side.missing.is_empty() {
            missing.push(format!("{} planned trials of `{}` have no result", side.missing.len(), side.name));
        }
        for result in &side.unreadable {
            missing.push(format!("{result} (in `{}`)", side.name));
        }
    }
    for (what, cases) in [
        ("no score in the new results", &comparison.only_base),
        ("changed between the results", &comparison.changed),
    ] {
        if !cases.is_empty() {
            missing.push(format!("{what}: {}", cases.join(", ")));
        }
    }
    missing
}

struct GateOutput {
    base: String,
    new: String,
    rule: GateRule,
    verdict: GateVerdict,
    missing: Vec<String>,
    /// None if no case has a score on both sides.
    difference: Option<MeanDifference>,
    comparison: PairedComparison,
}

impl GateOutput {
    fn why(&self) -> String {
        let n = self.comparison.pairs.len();
        match self.verdict {
            GateVerdict::Pass => format!(
                "the pass rate did not fall by more than {:.1} points (95 % confidence)",
                100.0 * self.rule.margin
            ),
            GateVerdict::Regression => "the pass rate fell significantly (p <= 5 %)".to_owned(),
            GateVerdict::Inconclusive if n < self.rule.min_cases => {
                format!(
                    "{n} cases have a score on both sides, fewer than --min-cases {}",
                    self.rule.min_cases
                )
            }
            GateVerdict::Inconclusive => {
                "neither a drop nor its absence is shown: run more cases or trials".to_owned()
            }
            GateVerdict::Incomplete => self.missing.join("; "),
        }
    }
}

impl CommandOutput for GateOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.gate/1",
            "base": self.base,
            "new": self.new,
            "margin": self.rule.margin,
            "min_cases": self.rule.min_cases,
            "n": self.comparison.pairs.len(),
            "verdict": self.verdict,
            "why": self.why(),
            "missing": self.missing,
            "difference": self.difference,
            "summary": self.difference.as_ref().map(summary),
            "paired": self.comparison.json(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut head = KeyValueLine::new()
            .with("verdict", self.verdict)
            .with("base", &self.base)
            .with("new", &self.new)
            .with("margin", self.rule.margin)
            .with("min_cases", self.rule.min_cases)
            .with("n", self.comparison.pairs.len());
        if let Some(difference) = &self.difference {
            head = add_difference(head, difference);
        }
        let mut lines = vec![head, KeyValueLine::new().with("why", self.why())];
        if let Some(difference) = &self.difference {
            lines.push(KeyValueLine::new().with("summary", summary(difference)));
        }
        lines.extend(self.comparison.notes().iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let role = match self.verdict {
            GateVerdict::Pass => TextRole::Good,
            GateVerdict::Regression => TextRole::Bad,
            GateVerdict::Inconclusive | GateVerdict::Incomplete => TextRole::Warn,
        };
        let mut text = format!("{}: {}\n", styler.paint(role, self.verdict.as_str()), self.why());
        if let Some(difference) = &self.difference {
            text.push_str(&render_difference(styler, difference));
        }
        for note in self.comparison.notes() {
            text.push_str(&format!("{}\n", styler.paint(TextRole::Faint, &note)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        match self.verdict {
            GateVerdict::Pass => CommandExit::SUCCESS,
            GateVerdict::Regression => REGRESSION,
            GateVerdict::Inconclusive => INCONCLUSIVE,
            GateVerdict::Incomplete => INCOMPLETE,
        }
    }
}

/// The verdicts of simulated comparisons: of the suite with itself, and with one that got worse.
struct GateSimulationOutput {
    base: String,
    rule: GateRule,
    cases: usize,
    no_change: VerdictTally,
    drops: Vec<SimulatedDrop>,
}

struct SimulatedDrop {
    drop: f64,
    tally: VerdictTally,
}

fn simulate_gate(base: &ResultSelection, rule: GateRule) -> Result<GateSimulationOutput, CommandError> {
    base.require_one_agent()?;
    let scores = scores_by_case(base);
    let models: Vec<CaseModel> =
        scores.values().filter_map(Score::counts).map(CaseModel::from_counts).collect();
    if models.is_empty() {
        return Err(CommandError::refused("no_scores", format!("no case of `{}` has a score", base.name))
            .hint(format!("see the results: runner eval report table {}", base.name)));
    }
    let tally = |drop| simulate(&models, drop, &rule, ROUNDS);
    Ok(GateSimulationOutput {
        base: base.name.clone(),
        rule,
        cases: models.len(),
        no_change: tally(0.0),
        drops: DROPS.into_iter().map(|drop| SimulatedDrop { drop, tally: tally(drop) }).collect(),
    })
}

impl CommandOutput for GateSimulationOutput {
    fn json(&self) -> Value {
        let mut power = Vec::new();
        for SimulatedDrop { drop, tally } in &self.drops {
            power.push(json!({ "drop": drop, "detected": tally.regression_rate(), "verdicts": tally }));
        }
        json!({
            "schema": "runner.eval.aa/1",
            "base": self.base,
            "margin": self.rule.margin,
            "min_cases": self.rule.min_cases,
            "n": self.cases,
            "false_alarm_rate": self.no_change.regression_rate(),
            "confidence_interval": self.no_change.regression_interval(),
            "verdicts": self.no_change,
            "power": power,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let interval = self.no_change.regression_interval();
        let mut lines = vec![
            KeyValueLine::new()
                .with("base", &self.base)
                .with("n", self.cases)
                .with("rounds", ROUNDS)
                .with("false_alarm_rate", format!("{:.4}", self.no_change.regression_rate()))
                .with("ci_low", format!("{:.4}", interval.low))
                .with("ci_high", format!("{:.4}", interval.high))
                .with("no_change_passes", format!("{:.4}", self.no_change.pass_rate())),
        ];
        for SimulatedDrop { drop, tally } in &self.drops {
            let detected = format!("{:.4}", tally.regression_rate());
            lines.push(KeyValueLine::new().with("drop", drop).with("detected", detected));
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let interval = self.no_change.regression_interval();
        let rate = format!("{:.1} %", 100.0 * self.no_change.regression_rate());
        let mut text = format!(
            "{} cases, {ROUNDS} simulated comparisons of the suite with itself\n\
             false alarms: {} (95 % confidence interval {:.1} to {:.1} %)\n\
             no change passes: {:.0} %\n",
            self.cases,
            styler.paint(TextRole::Strong, &rate),
            100.0 * interval.low,
            100.0 * interval.high,
            100.0 * self.no_change.pass_rate()
        );
        for SimulatedDrop { drop, tally } in &self.drops {
            text.push_str(&format!(
                "a drop of {:.0} percentage points is detected: {:.0} %\n",
                100.0 * drop,
                100.0 * tally.regression_rate()
            ));
        }
        text
    }
}
