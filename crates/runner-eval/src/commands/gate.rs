//! `runner eval gate`

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::compare::{DRAWS, drawn, line, words};
use crate::args::{EvalGlobalArgs, GateArgs};
use crate::result::selection::ResultSelection;
use crate::stats::comparison::{PairedComparison, by_case, counts};
use crate::stats::gate::{CaseModel, GateRule, GateVerdict, VerdictTally, judge, simulate};
use crate::stats::paired::{MeanDifference, difference};

/// How many comparisons are made up by `--aa`.
const ROUNDS: u32 = 2_000;
/// The drops that `--aa` tries to see.
const DROPS: [f64; 3] = [0.05, 0.1, 0.2];

/// It got worse. Not 1: an error of any kind must not look like a verdict.
const REGRESSION: CommandExit = CommandExit(7);
/// Too little to tell.
const INCONCLUSIVE: CommandExit = CommandExit(5);
/// Something is missing.
const INCOMPLETE: CommandExit = CommandExit(6);

pub(crate) fn run(global: &EvalGlobalArgs, args: &GateArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    if !(0.0..=1.0).contains(&args.margin) {
        return Err(CommandError::refused("margin", format!("a margin of {} cannot be", args.margin))
            .cause("it is a part of the rate: from 0 to 1")
            .hint("five percentage points: --margin 0.05"));
    }
    let rule = GateRule { margin: args.margin, min_n: args.min_n, draws: DRAWS };
    let base = ResultSelection::read(global, Some(&args.base))?;
    let Some(new) = &args.new else {
        return tried(&base, rule).map(|tried| Box::new(tried) as Box<dyn CommandOutput>);
    };
    let new = ResultSelection::read(global, Some(new))?;
    let pairing = PairedComparison::new(&base, &new)?;
    let pairs = pairing.list();
    let lacks = lacks(&base, &new, &pairing);
    let verdict = if lacks.is_empty() { judge(&pairs, &rule) } else { GateVerdict::Incomplete };
    Ok(Box::new(GateOutput {
        base: base.name,
        new: new.name,
        rule,
        verdict,
        lacks,
        difference: difference(&pairs, DRAWS),
        pairing,
    }))
}

/// What would have to be there for a judgement.
fn lacks(base: &ResultSelection, new: &ResultSelection, pairing: &PairedComparison) -> Vec<String> {
    let mut lacks = Vec::new();
    for side in [base, new] {
        if !side.missing.is_empty() {
            lacks.push(format!("{} planned trials of `{}` have no result", side.missing.len(), side.name));
        }
        lacks.extend(side.faults.iter().map(|fault| format!("{fault} (in `{}`)", side.name)));
    }
    let told =
        |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
    lacks.extend(told("no score in the new results", &pairing.only_base));
    lacks.extend(told("changed between the results", &pairing.changed));
    lacks
}

/// What the gate says of two results.
struct GateOutput {
    base: String,
    new: String,
    rule: GateRule,
    verdict: GateVerdict,
    lacks: Vec<String>,
    /// None if no case has a score on both sides.
    difference: Option<MeanDifference>,
    pairing: PairedComparison,
}

impl GateOutput {
    fn why(&self) -> String {
        let n = self.pairing.pairs.len();
        match self.verdict {
            GateVerdict::Pass => {
                format!(
                    "with 95 %, the rate did not fall by more than {:.1} points",
                    100.0 * self.rule.margin
                )
            }
            GateVerdict::Regression => {
                "the rate fell, and chance alone would show that in at most 5 % of comparisons".to_owned()
            }
            GateVerdict::Inconclusive if n < self.rule.min_n => {
                format!("{n} cases have a score on both sides, and --min-n asks for {}", self.rule.min_n)
            }
            GateVerdict::Inconclusive => {
                "neither a fall nor its absence is shown: more cases or trials would tell".to_owned()
            }
            GateVerdict::Incomplete => self.lacks.join("; "),
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
            "min_n": self.rule.min_n,
            "n": self.pairing.pairs.len(),
            "verdict": self.verdict,
            "why": self.why(),
            "lacks": self.lacks,
            "difference": self.difference,
            "words": self.difference.as_ref().map(words),
            "paired": self.pairing.json(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let whole =
            KeyValueLine::new().with("verdict", self.verdict).with("base", &self.base).with("new", &self.new);
        let whole = whole.with("margin", self.rule.margin).with("min_n", self.rule.min_n);
        let whole = whole.with("n", self.pairing.pairs.len());
        let whole = match &self.difference {
            Some(found) => line(whole, found),
            None => whole,
        };
        let mut lines = vec![whole, KeyValueLine::new().with("why", self.why())];
        lines.extend(self.difference.iter().map(|found| KeyValueLine::new().with("words", words(found))));
        lines.extend(self.pairing.notes().iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let ink = match self.verdict {
            GateVerdict::Pass => TextRole::Good,
            GateVerdict::Regression => TextRole::Bad,
            GateVerdict::Inconclusive | GateVerdict::Incomplete => TextRole::Warn,
        };
        let mut text = format!("{}: {}\n", pen.paint(ink, self.verdict.as_str()), self.why());
        text.push_str(&self.difference.as_ref().map(|found| drawn(pen, found)).unwrap_or_default());
        for note in self.pairing.notes() {
            text.push_str(&format!("{}\n", pen.paint(TextRole::Faint, &note)));
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

/// What the gate would say of a suite that is compared with itself, and of one that got worse.
struct GateSimulationOutput {
    base: String,
    rule: GateRule,
    cases: usize,
    same: VerdictTally,
    drops: Vec<(f64, VerdictTally)>,
}

fn tried(base: &ResultSelection, rule: GateRule) -> Result<GateSimulationOutput, CommandError> {
    base.one_agent()?;
    let models: Vec<CaseModel> = by_case(base).values().filter_map(counts).map(CaseModel::of).collect();
    if models.is_empty() {
        return Err(CommandError::refused("no_scores", format!("no case of `{}` has a score", base.name))
            .hint("look at what there is: runner eval report"));
    }
    let seen = |drop| simulate(&models, drop, &rule, ROUNDS);
    let drops = DROPS.into_iter().map(|drop| (drop, seen(drop))).collect();
    Ok(GateSimulationOutput { base: base.name.clone(), rule, cases: models.len(), same: seen(0.0), drops })
}

fn share(count: u32) -> f64 {
    f64::from(count) / f64::from(ROUNDS)
}

impl CommandOutput for GateSimulationOutput {
    fn json(&self) -> Value {
        let (rate, interval) = self.same.alarms();
        let drop = |(drop, tally): &(f64, VerdictTally)| json!({ "drop": drop, "seen": share(tally.regression), "verdicts": tally });
        json!({
            "schema": "runner.eval.aa/1",
            "base": self.base,
            "margin": self.rule.margin,
            "min_n": self.rule.min_n,
            "n": self.cases,
            "false_alarms": rate,
            "interval": interval,
            "verdicts": self.same,
            "power": self.drops.iter().map(drop).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let (rate, interval) = self.same.alarms();
        let line = KeyValueLine::new().with("base", &self.base).with("n", self.cases).with("rounds", ROUNDS);
        let line =
            line.with("false_alarms", format!("{rate:.4}")).with("low", format!("{:.4}", interval.low));
        let line = line.with("high", format!("{:.4}", interval.high));
        let line = line.with("passes", format!("{:.4}", share(self.same.pass)));
        let drop = |(drop, tally): &(f64, VerdictTally)| {
            KeyValueLine::new().with("drop", drop).with("seen", format!("{:.4}", share(tally.regression)))
        };
        std::iter::once(line).chain(self.drops.iter().map(drop)).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let (rate, interval) = self.same.alarms();
        let mut text = format!(
            "{} cases, {ROUNDS} comparisons of the suite with itself, made up from its results\nfalse alarms: {} (95 %: {:.1} to {:.1}); passes: {:.0} %\n",
            self.cases,
            pen.paint(TextRole::Strong, &format!("{:.1} %", 100.0 * rate)),
            100.0 * interval.low,
            100.0 * interval.high,
            100.0 * share(self.same.pass)
        );
        for (drop, tally) in &self.drops {
            let told = format!("a drop of {:.0} points is seen in", 100.0 * drop);
            text.push_str(&format!("{told} {:.0} %\n", 100.0 * share(tally.regression)));
        }
        text
    }
}
