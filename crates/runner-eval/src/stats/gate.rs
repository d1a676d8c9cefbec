//! The gate: decides whether new results are worse than the base, and simulates how often it is wrong.

use std::fmt;

use serde::Serialize;

use super::paired::{
    ALPHA, InferenceScope, ScoredCounts, ScoredPair, difference_test, lower_bound, upper_bound,
};
use super::random::SeededRandom;
use super::{Interval, wilson};

/// Draws of the re-dealing test in simulations, where it is sampled; its error rate holds for any number.
const SIMULATED_DRAWS: u32 = 499;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GateVerdict {
    /// With 95 % confidence, the pass rate did not fall by more than the margin.
    Pass,
    /// The same, but it did fall (p <= 5 %).
    WithinMargin,
    /// With 95 % confidence, the pass rate fell by more than the margin.
    Regression,
    /// The pass rate fell (p <= 5 %), but whether by more than the margin is open.
    Worse,
    /// Too few cases or trials for any of these.
    Inconclusive,
    /// Results that have to be compared are missing.
    Incomplete,
}

impl GateVerdict {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::WithinMargin => "within_margin",
            Self::Worse => "worse",
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GateRule {
    /// The accepted drop of the pass rate.
    pub(crate) margin: f64,
    /// With fewer cases the verdict is inconclusive.
    pub(crate) min_cases: usize,
    /// What the verdict is about.
    pub(crate) scope: InferenceScope,
    /// Of the re-dealing test, if it is sampled.
    pub(crate) draws: u32,
}

/// Decides about pairs that are complete.
pub(crate) fn decide(pairs: &[ScoredPair], rule: &GateRule) -> GateVerdict {
    if pairs.len() < rule.min_cases.max(1) {
        return GateVerdict::Inconclusive;
    }
    let is_within = lower_bound(pairs, rule.scope).is_some_and(|low| low >= -rule.margin);
    let is_beyond = upper_bound(pairs, rule.scope).is_some_and(|high| high < -rule.margin);
    let is_worse = difference_test(pairs, rule.scope, rule.draws).p_drop <= ALPHA;
    match (is_worse, is_within, is_beyond) {
        (false, true, _) => GateVerdict::Pass,
        (true, true, _) => GateVerdict::WithinMargin,
        (true, false, true) => GateVerdict::Regression,
        (true, false, false) => GateVerdict::Worse,
        (false, false, _) => GateVerdict::Inconclusive,
    }
}

/// A simulated case: its probability of success, and the number of trials on each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CaseModel {
    pub(crate) probability: f64,
    pub(crate) trials: u32,
}

impl CaseModel {
    /// A case with its observed rate, shrunk towards 0.5 the more, the fewer trials there are: one success of one is not
    /// certainty.
    pub(crate) fn from_counts(counts: ScoredCounts) -> Self {
        let probability = (f64::from(counts.successes) + 0.5) / (f64::from(counts.n) + 1.0);
        Self { probability, trials: counts.n }
    }
}

/// The verdicts of simulated comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct VerdictTally {
    pub(crate) rounds: u32,
    /// Also those with a drop within the margin.
    pub(crate) pass: u32,
    pub(crate) regression: u32,
    pub(crate) worse: u32,
    pub(crate) inconclusive: u32,
}

impl VerdictTally {
    #[cfg(test)]
    fn regression_rate(&self) -> f64 {
        f64::from(self.regression) / f64::from(self.rounds.max(1))
    }

    /// How often a drop was noticed, whether or not it is beyond the margin.
    pub(crate) fn detection_rate(&self) -> f64 {
        f64::from(self.regression + self.worse) / f64::from(self.rounds.max(1))
    }

    pub(crate) fn detection_interval(&self) -> Interval {
        let interval = wilson(self.detection_rate(), f64::from(self.rounds));
        interval.unwrap_or(Interval { low: 0.0, high: 1.0 })
    }

    pub(crate) fn pass_rate(&self) -> f64 {
        f64::from(self.pass) / f64::from(self.rounds.max(1))
    }
}

/// Simulates comparisons in which the mean pass rate of the new side is lower by `drop`, and applies the gate to each. With
/// a drop of 0 both sides are equal, and every regression is a false alarm.
pub(crate) fn simulate(models: &[CaseModel], drop: f64, rule: &GateRule, rounds: u32) -> VerdictTally {
    let mean = models.iter().map(|model| model.probability).sum::<f64>() / models.len().max(1) as f64;
    let factor = if mean > 0.0 { (1.0 - drop / mean).max(0.0) } else { 1.0 };
    let rule = GateRule { draws: SIMULATED_DRAWS, ..*rule };
    let mut random = SeededRandom::new(models.len() as u64);
    let mut tally = VerdictTally { rounds, ..VerdictTally::default() };
    for _ in 0..rounds {
        let mut pairs = Vec::new();
        for CaseModel { probability, trials } in models {
            let base = ScoredCounts { successes: random.successes(*trials, *probability), n: *trials };
            let new = ScoredCounts { successes: random.successes(*trials, probability * factor), n: *trials };
            pairs.push(ScoredPair { base, new });
        }
        match decide(&pairs, &rule) {
            GateVerdict::Pass | GateVerdict::WithinMargin => tally.pass += 1,
            GateVerdict::Regression => tally.regression += 1,
            GateVerdict::Worse => tally.worse += 1,
            GateVerdict::Inconclusive | GateVerdict::Incomplete => tally.inconclusive += 1,
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: GateRule = GateRule { margin: 0.05, min_cases: 10, scope: InferenceScope::Cases, draws: 999 };
    /// From hopeless to certain, with a mean of one half.
    const PROBABILITIES: [f64; 10] = [0.0, 0.02, 0.1, 0.3, 0.5, 0.5, 0.7, 0.9, 0.98, 1.0];
    const ROUNDS: u32 = 1_000;
    const SHAPES: [(usize, u32); 8] =
        [(10, 1), (10, 5), (20, 3), (30, 1), (30, 5), (50, 5), (100, 3), (100, 5)];

    fn models(cases: usize, trials: u32) -> Vec<CaseModel> {
        PROBABILITIES
            .iter()
            .cycle()
            .take(cases)
            .map(|probability| CaseModel { probability: *probability, trials })
            .collect()
    }

    fn pairs(count: usize, base: u32, new: u32) -> Vec<ScoredPair> {
        let counts = |successes| ScoredCounts { successes, n: 5 };
        vec![ScoredPair { base: counts(base), new: counts(new) }; count]
    }

    #[test]
    fn clear_drop_is_a_regression_and_no_change_in_many_cases_passes() {
        assert_eq!(decide(&pairs(20, 5, 2), &RULE), GateVerdict::Regression);
        assert_eq!(decide(&pairs(20, 2, 5), &RULE), GateVerdict::Pass);
        assert_eq!(decide(&pairs(100, 4, 4), &RULE), GateVerdict::Pass);
    }

    #[test]
    fn too_few_cases_are_inconclusive() {
        assert_eq!(decide(&pairs(9, 5, 0), &RULE), GateVerdict::Inconclusive);
        assert_eq!(decide(&pairs(9, 5, 5), &RULE), GateVerdict::Inconclusive);
        assert_eq!(decide(&[], &GateRule { min_cases: 0, ..RULE }), GateVerdict::Inconclusive);
        let once = ScoredCounts { successes: 1, n: 1 };
        let same = vec![ScoredPair { base: once, new: once }; 10];
        assert_eq!(
            decide(&same, &RULE),
            GateVerdict::Inconclusive,
            "ten ties of one trial each do not prove a margin of 5 %"
        );
    }

    #[test]
    fn drop_within_the_margin_passes() {
        let mut drop = pairs(200, 5, 5);
        drop.extend(pairs(10, 5, 4));
        assert_eq!(decide(&drop, &GateRule { margin: 0.1, ..RULE }), GateVerdict::WithinMargin);
        let mut clear = pairs(100, 5, 4);
        clear.extend(pairs(100, 5, 5));
        assert_eq!(decide(&clear, &GateRule { margin: 0.2, ..RULE }), GateVerdict::WithinMargin);
        assert_eq!(decide(&clear, &GateRule { margin: 0.1, ..RULE }), GateVerdict::Worse);
        assert_eq!(decide(&clear, &GateRule { margin: 0.05, ..RULE }), GateVerdict::Regression);
    }

    #[test]
    fn probability_of_a_case_is_shrunk() {
        assert_eq!(CaseModel::from_counts(ScoredCounts { successes: 1, n: 1 }).probability, 0.75);
        assert_eq!(CaseModel::from_counts(ScoredCounts { successes: 0, n: 4 }).probability, 0.1);
    }

    #[test]
    fn false_alarm_rate_is_at_most_five_percent() {
        for (cases, trials) in SHAPES {
            for margin in [0.0, 0.05] {
                let tally = simulate(&models(cases, trials), 0.0, &GateRule { margin, ..RULE }, ROUNDS);
                assert!(tally.detection_rate() <= 0.06, "{cases}x{trials}, {margin}: {tally:?}");
                assert!(tally.regression_rate() <= 0.05, "{cases}x{trials}, {margin}: {tally:?}");
            }
        }
    }

    #[test]
    fn drop_inside_the_margin_is_rarely_called_a_regression() {
        for (cases, trials) in [(10, 5), (30, 5), (100, 5)] {
            for (drop, margin) in [(0.04, 0.05), (0.05, 0.05), (0.08, 0.1), (0.1, 0.1)] {
                let tally = simulate(&models(cases, trials), drop, &GateRule { margin, ..RULE }, ROUNDS);
                assert!(tally.regression_rate() <= 0.06, "{cases}x{trials}, {drop} of {margin}: {tally:?}");
            }
        }
    }

    #[test]
    fn unequal_numbers_of_trials_do_not_raise_the_false_alarm_rate() {
        for (base, new) in [(1, 5), (5, 1), (4, 5), (5, 3)] {
            for cases in [10, 30] {
                let mut random = SeededRandom::new(7);
                let mut alarms = 0;
                for _ in 0..ROUNDS {
                    let mut side = |n| ScoredCounts { successes: random.successes(n, 0.9), n };
                    let pairs: Vec<ScoredPair> =
                        (0..cases).map(|_| ScoredPair { base: side(base), new: side(new) }).collect();
                    let rule = GateRule { margin: 0.0, draws: 99, ..RULE };
                    let verdict = decide(&pairs, &rule);
                    alarms += u32::from(matches!(verdict, GateVerdict::Regression | GateVerdict::Worse));
                }
                assert!(alarms <= ROUNDS * 6 / 100, "{base} against {new}, {cases} cases: {alarms}");
            }
        }
    }

    #[test]
    fn drop_of_the_whole_margin_rarely_passes() {
        for (cases, trials) in SHAPES {
            let rule = GateRule { margin: 0.1, ..RULE };
            let tally = simulate(&models(cases, trials), 0.1, &rule, ROUNDS);
            assert!(f64::from(tally.pass) / f64::from(ROUNDS) <= 0.06, "{cases}x{trials}: {tally:?}");
        }
    }

    /// The table in docs/guide/comparing-results.md, computed with the shipped code.
    fn power_table() -> String {
        let mut text =
            "| cases × trials | false alarms | drop of 5 noticed | of 10 | of 20 | 20 is a regression | no change passes |\n\
                        | --- | --- | --- | --- | --- | --- | --- |\n"
                .to_owned();
        let percent = |count: u32| format!("{:.0} %", f64::from(count) * 100.0 / f64::from(ROUNDS));
        for (cases, trials) in SHAPES {
            let models = models(cases, trials);
            let tally = |drop| simulate(&models, drop, &RULE, ROUNDS);
            let [same, five, ten, twenty] = [0.0, 0.05, 0.1, 0.2].map(tally);
            let alarms = same.detection_interval();
            let noticed = |tally: &VerdictTally| percent(tally.regression + tally.worse);
            text.push_str(&format!(
                "| {cases} × {trials} | {:.1} % ({:.1} – {:.1}) | {} | {} | {} | {} | {} |\n",
                100.0 * same.detection_rate(),
                100.0 * alarms.low,
                100.0 * alarms.high,
                noticed(&five),
                noticed(&ten),
                noticed(&twenty),
                percent(twenty.regression),
                percent(same.pass)
            ));
        }
        text
    }

    #[test]
    fn power_table_in_the_guide_is_generated() {
        let name = "docs/guide/comparing-results.md";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let begin = "<!-- power table -->\n";
        let end = "<!-- end of the power table -->\n";
        let (before, rest) = text.split_once(begin).unwrap();
        let (_, after) = rest.split_once(end).unwrap();
        let expected = format!("{before}{begin}\n{}\n{end}{after}", power_table());
        testkit::generated::assert_generated(name, expected.as_bytes());
    }
}
