//! `runner eval gate`

use runner_cli::{Exit, Ink, Line, Pen, Reply, Report};
use serde_json::{Value, json};

use super::compare::{DRAWS, drawn, line, words};
use crate::cli::{GateArgs, Global};
use crate::pairing::{Pairing, by_case, counts};
use crate::selection::Selection;
use crate::stats::gate::{Model, Rule, Tally, Verdict, judge, simulate};
use crate::stats::paired::{Difference, difference};

/// How many comparisons are made up by `--aa`.
const ROUNDS: u32 = 2_000;
/// The drops that `--aa` tries to see.
const DROPS: [f64; 3] = [0.05, 0.1, 0.2];

/// It got worse. Not 1: an error of any kind must not look like a verdict.
const REGRESSION: Exit = Exit(7);
/// Too little to tell.
const INCONCLUSIVE: Exit = Exit(5);
/// Something is missing.
const INCOMPLETE: Exit = Exit(6);

pub(crate) fn run(global: &Global, args: &GateArgs) -> Result<Box<dyn Reply>, Report> {
    if !(0.0..=1.0).contains(&args.margin) {
        return Err(Report::refused("margin", format!("a margin of {} cannot be", args.margin))
            .cause("it is a part of the rate: from 0 to 1")
            .hint("five percentage points: --margin 0.05"));
    }
    let rule = Rule { margin: args.margin, min_n: args.min_n, draws: DRAWS };
    let base = Selection::read(global, Some(&args.base))?;
    let Some(new) = &args.new else {
        return tried(&base, rule).map(|tried| Box::new(tried) as Box<dyn Reply>);
    };
    let new = Selection::read(global, Some(new))?;
    let pairing = Pairing::new(&base, &new)?;
    let pairs = pairing.list();
    let lacks = lacks(&base, &new, &pairing);
    let verdict = if lacks.is_empty() { judge(&pairs, &rule) } else { Verdict::Incomplete };
    Ok(Box::new(Judged {
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
fn lacks(base: &Selection, new: &Selection, pairing: &Pairing) -> Vec<String> {
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
struct Judged {
    base: String,
    new: String,
    rule: Rule,
    verdict: Verdict,
    lacks: Vec<String>,
    /// None if no case has a score on both sides.
    difference: Option<Difference>,
    pairing: Pairing,
}

impl Judged {
    fn why(&self) -> String {
        let n = self.pairing.pairs.len();
        match self.verdict {
            Verdict::Pass => {
                format!(
                    "with 95 %, the rate did not fall by more than {:.1} points",
                    100.0 * self.rule.margin
                )
            }
            Verdict::Regression => {
                "the rate fell, and chance alone would show that in at most 5 % of comparisons".to_owned()
            }
            Verdict::Inconclusive if n < self.rule.min_n => {
                format!("{n} cases have a score on both sides, and --min-n asks for {}", self.rule.min_n)
            }
            Verdict::Inconclusive => {
                "neither a fall nor its absence is shown: more cases or trials would tell".to_owned()
            }
            Verdict::Incomplete => self.lacks.join("; "),
        }
    }
}

impl Reply for Judged {
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

    fn plain(&self) -> Vec<Line> {
        let whole = Line::new().with("verdict", self.verdict).with("base", &self.base).with("new", &self.new);
        let whole = whole.with("margin", self.rule.margin).with("min_n", self.rule.min_n);
        let whole = whole.with("n", self.pairing.pairs.len());
        let whole = match &self.difference {
            Some(found) => line(whole, found),
            None => whole,
        };
        let mut lines = vec![whole, Line::new().with("why", self.why())];
        lines.extend(self.difference.iter().map(|found| Line::new().with("words", words(found))));
        lines.extend(self.pairing.notes().iter().map(|note| Line::new().with("note", note)));
        lines
    }

    fn drawn(&self, pen: &Pen) -> String {
        let ink = match self.verdict {
            Verdict::Pass => Ink::Good,
            Verdict::Regression => Ink::Bad,
            Verdict::Inconclusive | Verdict::Incomplete => Ink::Warn,
        };
        let mut text = format!("{}: {}\n", pen.ink(ink, self.verdict.as_str()), self.why());
        text.push_str(&self.difference.as_ref().map(|found| drawn(pen, found)).unwrap_or_default());
        for note in self.pairing.notes() {
            text.push_str(&format!("{}\n", pen.ink(Ink::Faint, &note)));
        }
        text
    }

    fn exit(&self) -> Exit {
        match self.verdict {
            Verdict::Pass => Exit::SUCCESS,
            Verdict::Regression => REGRESSION,
            Verdict::Inconclusive => INCONCLUSIVE,
            Verdict::Incomplete => INCOMPLETE,
        }
    }
}

/// What the gate would say of a suite that is compared with itself, and of one that got worse.
struct Tried {
    base: String,
    rule: Rule,
    cases: usize,
    same: Tally,
    drops: Vec<(f64, Tally)>,
}

fn tried(base: &Selection, rule: Rule) -> Result<Tried, Report> {
    base.one_agent()?;
    let models: Vec<Model> = by_case(base).values().filter_map(counts).map(Model::of).collect();
    if models.is_empty() {
        return Err(Report::refused("no_scores", format!("no case of `{}` has a score", base.name))
            .hint("look at what there is: runner eval report"));
    }
    let seen = |drop| simulate(&models, drop, &rule, ROUNDS);
    let drops = DROPS.into_iter().map(|drop| (drop, seen(drop))).collect();
    Ok(Tried { base: base.name.clone(), rule, cases: models.len(), same: seen(0.0), drops })
}

fn share(count: u32) -> f64 {
    f64::from(count) / f64::from(ROUNDS)
}

impl Reply for Tried {
    fn json(&self) -> Value {
        let (rate, interval) = self.same.alarms();
        let drop = |(drop, tally): &(f64, Tally)| json!({ "drop": drop, "seen": share(tally.regression), "verdicts": tally });
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

    fn plain(&self) -> Vec<Line> {
        let (rate, interval) = self.same.alarms();
        let line = Line::new().with("base", &self.base).with("n", self.cases).with("rounds", ROUNDS);
        let line =
            line.with("false_alarms", format!("{rate:.4}")).with("low", format!("{:.4}", interval.low));
        let line = line.with("high", format!("{:.4}", interval.high));
        let line = line.with("passes", format!("{:.4}", share(self.same.pass)));
        let drop = |(drop, tally): &(f64, Tally)| {
            Line::new().with("drop", drop).with("seen", format!("{:.4}", share(tally.regression)))
        };
        std::iter::once(line).chain(self.drops.iter().map(drop)).collect()
    }

    fn drawn(&self, pen: &Pen) -> String {
        let (rate, interval) = self.same.alarms();
        let mut text = format!(
            "{} cases, {ROUNDS} comparisons of the suite with itself, made up from its results\nfalse alarms: {} (95 %: {:.1} to {:.1}); passes: {:.0} %\n",
            self.cases,
            pen.ink(Ink::Strong, &format!("{:.1} %", 100.0 * rate)),
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
