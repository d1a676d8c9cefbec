//! The gate: whether new results are worse than old ones, and how often it is wrong about that.

use std::fmt;

use serde::Serialize;

use super::paired::{ScoredCounts, ScoredPair, at_least, sign_flip};
use super::random::SeededRandom;
use super::{Interval, wilson};

/// What may be wrong once in twenty times.
const ALPHA: f64 = 0.05;
/// How many draws a simulated gate makes; the test keeps its promise with any number.
const SIMULATED_DRAWS: u32 = 499;

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GateVerdict {
    /// With 95 %, the new results are not worse by more than the margin.
    Pass,
    /// They are worse: by chance alone that would be seen in at most 5 % of comparisons.
    Regression,
    /// Too few cases or trials to tell.
    Inconclusive,
    /// Something is missing that would have to be compared.
    Incomplete,
}

impl GateVerdict {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regression => "regression",
            Self::Inconclusive => "inconclusive",
            Self::Incomplete => "incomplete",
        }
    }
}

impl fmt::Display for GateVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the gate holds results to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GateRule {
    /// A drop of the rate by so much is borne.
    pub(crate) margin: f64,
    /// Fewer cases than this decide nothing.
    pub(crate) min_n: usize,
    /// For the sign-flip test.
    pub(crate) draws: u32,
}

/// Judges pairs that are complete.
pub(crate) fn judge(pairs: &[ScoredPair], rule: &GateRule) -> GateVerdict {
    if pairs.len() < rule.min_n.max(1) {
        return GateVerdict::Inconclusive;
    }
    if at_least(pairs).is_some_and(|low| low >= -rule.margin) {
        return GateVerdict::Pass;
    }
    let is_worse = sign_flip(pairs, rule.draws).lower <= ALPHA;
    if is_worse { GateVerdict::Regression } else { GateVerdict::Inconclusive }
}

/// A case to be simulated: its chance of success, and how often each side tries it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CaseModel {
    pub(crate) chance: f64,
    pub(crate) trials: u32,
}

impl CaseModel {
    /// A case as its results show it, drawn towards the middle as much as their number leaves open: one of one is not
    /// certainty.
    pub(crate) fn of(counts: ScoredCounts) -> Self {
        let chance = (f64::from(counts.successes) + 0.5) / (f64::from(counts.n) + 1.0);
        Self { chance, trials: counts.n }
    }
}

/// How often the gate said what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct VerdictTally {
    pub(crate) rounds: u32,
    pub(crate) pass: u32,
    pub(crate) regression: u32,
    pub(crate) inconclusive: u32,
}

impl VerdictTally {
    /// The share of alarms, and where it probably is.
    pub(crate) fn alarms(&self) -> (f64, Interval) {
        let rate = f64::from(self.regression) / f64::from(self.rounds.max(1));
        (rate, wilson(rate, f64::from(self.rounds)).unwrap_or(Interval { low: 0.0, high: 1.0 }))
    }
}

/// Has the gate judge so many pairs of results that are made up from a model, whose new side is worse by `drop` in the
/// mean; with 0 both sides are the same, and every alarm is a false one.
pub(crate) fn simulate(models: &[CaseModel], drop: f64, rule: &GateRule, rounds: u32) -> VerdictTally {
    let mean = models.iter().map(|model| model.chance).sum::<f64>() / models.len().max(1) as f64;
    let kept = if mean > 0.0 { (1.0 - drop / mean).max(0.0) } else { 1.0 };
    let rule = GateRule { draws: SIMULATED_DRAWS, ..*rule };
    let mut random = SeededRandom::new(models.len() as u64);
    let mut tally = VerdictTally { rounds, ..VerdictTally::default() };
    for _ in 0..rounds {
        let mut side = |model: &CaseModel, kept: f64| ScoredCounts {
            successes: random.successes(model.trials, model.chance * kept),
            n: model.trials,
        };
        let pairs: Vec<ScoredPair> = models
            .iter()
            .map(|model| ScoredPair { base: side(model, 1.0), new: side(model, kept) })
            .collect();
        match judge(&pairs, &rule) {
            GateVerdict::Pass => tally.pass += 1,
            GateVerdict::Regression => tally.regression += 1,
            GateVerdict::Inconclusive | GateVerdict::Incomplete => tally.inconclusive += 1,
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: GateRule = GateRule { margin: 0.05, min_n: 10, draws: 999 };
    /// Cases from hopeless to certain, half of which succeed in the mean.
    const CHANCES: [f64; 10] = [0.0, 0.02, 0.1, 0.3, 0.5, 0.5, 0.7, 0.9, 0.98, 1.0];
    const ROUNDS: u32 = 1_000;
    const SHAPES: [(usize, u32); 8] =
        [(10, 1), (10, 5), (20, 3), (30, 1), (30, 5), (50, 5), (100, 3), (100, 5)];

    fn models(cases: usize, trials: u32) -> Vec<CaseModel> {
        CHANCES.iter().cycle().take(cases).map(|chance| CaseModel { chance: *chance, trials }).collect()
    }

    fn pairs(count: usize, base: u32, new: u32) -> Vec<ScoredPair> {
        let counts = |successes| ScoredCounts { successes, n: 5 };
        vec![ScoredPair { base: counts(base), new: counts(new) }; count]
    }

    #[test]
    fn a_clear_drop_is_a_regression_and_no_change_in_many_cases_passes() {
        assert_eq!(judge(&pairs(20, 5, 2), &RULE), GateVerdict::Regression);
        assert_eq!(judge(&pairs(20, 2, 5), &RULE), GateVerdict::Pass);
        assert_eq!(judge(&pairs(40, 4, 4), &RULE), GateVerdict::Pass);
    }

    #[test]
    fn too_few_cases_decide_nothing_whatever_they_say() {
        assert_eq!(judge(&pairs(9, 5, 0), &RULE), GateVerdict::Inconclusive);
        assert_eq!(judge(&pairs(9, 5, 5), &RULE), GateVerdict::Inconclusive);
        assert_eq!(judge(&[], &GateRule { min_n: 0, ..RULE }), GateVerdict::Inconclusive);
        let once = ScoredCounts { successes: 1, n: 1 };
        let same = vec![ScoredPair { base: once, new: once }; 10];
        assert_eq!(
            judge(&same, &RULE),
            GateVerdict::Inconclusive,
            "ten ties of one trial each prove no margin of 5 %"
        );
    }

    #[test]
    fn a_drop_that_is_surely_within_the_margin_is_borne() {
        let mut drop = pairs(200, 5, 5);
        drop.extend(pairs(10, 5, 4));
        assert_eq!(judge(&drop, &RULE), GateVerdict::Pass);
        assert_eq!(judge(&drop, &GateRule { margin: 0.0, ..RULE }), GateVerdict::Regression);
    }

    #[test]
    fn a_case_that_was_tried_once_is_not_certain() {
        assert_eq!(CaseModel::of(ScoredCounts { successes: 1, n: 1 }).chance, 0.75);
        assert_eq!(CaseModel::of(ScoredCounts { successes: 0, n: 4 }).chance, 0.1);
    }

    #[test]
    fn identical_sides_raise_at_most_one_alarm_in_twenty() {
        for (cases, trials) in SHAPES {
            for margin in [0.0, 0.05] {
                let tally = simulate(&models(cases, trials), 0.0, &GateRule { margin, ..RULE }, ROUNDS);
                let (rate, interval) = tally.alarms();
                assert!(rate <= 0.05, "{cases}x{trials}, {margin}: {rate} {interval:?}");
            }
        }
    }

    #[test]
    fn sides_that_were_tried_unequally_often_raise_no_more_alarms() {
        for (base, new) in [(1, 5), (5, 1), (4, 5), (5, 3)] {
            for cases in [10, 30] {
                let (mut random, mut alarms) = (SeededRandom::new(7), 0);
                for _ in 0..ROUNDS {
                    let mut side = |n| ScoredCounts { successes: random.successes(n, 0.9), n };
                    let pairs: Vec<ScoredPair> =
                        (0..cases).map(|_| ScoredPair { base: side(base), new: side(new) }).collect();
                    let rule = GateRule { margin: 0.0, draws: 99, ..RULE };
                    alarms += u32::from(judge(&pairs, &rule) == GateVerdict::Regression);
                }
                assert!(alarms <= ROUNDS / 20, "{base} against {new}, {cases} cases: {alarms}");
            }
        }
    }

    #[test]
    fn a_drop_of_the_whole_margin_rarely_passes() {
        for (cases, trials) in SHAPES {
            let rule = GateRule { margin: 0.1, ..RULE };
            let tally = simulate(&models(cases, trials), 0.1, &rule, ROUNDS);
            assert!(f64::from(tally.pass) / f64::from(ROUNDS) <= 0.06, "{cases}x{trials}: {tally:?}");
        }
    }

    /// The table of the documents, from the code that ships.
    fn power_table() -> String {
        let mut text =
            "| cases × trials | false alarms | a drop of 5 is seen | of 10 | of 20 | no change passes |\n\
                        | --- | --- | --- | --- | --- | --- |\n"
                .to_owned();
        let percent = |count: u32| format!("{:.0} %", f64::from(count) * 100.0 / f64::from(ROUNDS));
        for (cases, trials) in SHAPES {
            let models = models(cases, trials);
            let seen = |drop| simulate(&models, drop, &RULE, ROUNDS);
            let same = seen(0.0);
            let (rate, interval) = same.alarms();
            text.push_str(&format!(
                "| {cases} × {trials} | {:.1} % ({:.1} – {:.1}) | {} | {} | {} | {} |\n",
                100.0 * rate,
                100.0 * interval.low,
                100.0 * interval.high,
                percent(seen(0.05).regression),
                percent(seen(0.1).regression),
                percent(seen(0.2).regression),
                percent(same.pass)
            ));
        }
        text
    }

    #[test]
    fn the_power_table_of_the_documents_is_generated() {
        let name = "docs/guide/comparing-results.md";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let (begin, end) = ("<!-- power table -->\n", "<!-- end of the power table -->\n");
        let (before, rest) = text.split_once(begin).unwrap();
        let (_, after) = rest.split_once(end).unwrap();
        let made = format!("{before}{begin}\n{}\n{end}{after}", power_table());
        testkit::generated::assert_generated(name, made.as_bytes());
    }
}
