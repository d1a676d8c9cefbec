//! Simulations that show how often the statistics are wrong. A short version runs with the tests; `just eval-calibrate` runs
//! 2,000 comparisons for every shape and prints the table.
//!
//! Numbers of successes are whole numbers, so the coverage at one true rate jumps between values around 95 %. Each round
//! therefore draws a population of its own.

use super::gate::{GateRule, GateVerdict, decide};
use super::paired::{InferenceScope, ScoredCounts, ScoredPair, interval};
use super::random::SeededRandom;
use super::score::rate_of_cases;

/// How the probabilities of success differ between cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difficulty {
    /// From hopeless to certain, most of them near the ends.
    Mixed,
    /// Most cases are easy, or most are hard.
    Skewed,
    /// All cases are alike.
    Alike,
    /// Each case always succeeds or always fails.
    AllOrNothing,
}

/// A population of cases.
#[derive(Clone, Copy, Debug)]
struct Population {
    difficulty: Difficulty,
    /// The exponent of a skewed population, the rate of the others.
    parameter: f64,
    is_hard: bool,
}

impl Difficulty {
    const ALL: [Self; 4] = [Self::Mixed, Self::Skewed, Self::Alike, Self::AllOrNothing];

    fn population(self, random: &mut SeededRandom) -> Population {
        let parameter = 0.1 + 0.8 * random.uniform();
        Population { difficulty: self, parameter, is_hard: random.below(2) == 1 }
    }
}

impl Population {
    /// The probability of success of one of its cases.
    fn draw(&self, random: &mut SeededRandom) -> f64 {
        let uniform = random.uniform();
        match self.difficulty {
            // The quantile function of the arcsine distribution.
            Difficulty::Mixed => (uniform * std::f64::consts::FRAC_PI_2).sin().powi(2),
            Difficulty::Skewed if self.is_hard => 1.0 - uniform.powf(self.parameter),
            Difficulty::Skewed => uniform.powf(self.parameter),
            Difficulty::Alike => self.parameter,
            Difficulty::AllOrNothing => f64::from(u8::from(uniform < self.parameter)),
        }
    }

    fn mean(&self) -> f64 {
        let skewed = 1.0 / (1.0 + self.parameter);
        match self.difficulty {
            Difficulty::Mixed => 0.5,
            Difficulty::Skewed if self.is_hard => 1.0 - skewed,
            Difficulty::Skewed => skewed,
            Difficulty::Alike | Difficulty::AllOrNothing => self.parameter,
        }
    }
}

struct Shape {
    name: &'static str,
    cases: usize,
    /// The numbers of trials that a case may have.
    trials: &'static [u32],
}

const SHAPES: [Shape; 7] = [
    Shape { name: "10 x 3", cases: 10, trials: &[3] },
    Shape { name: "10 x 5", cases: 10, trials: &[5] },
    Shape { name: "10 x 1-8", cases: 10, trials: &[1, 2, 3, 5, 8] },
    Shape { name: "20 x 3", cases: 20, trials: &[3] },
    Shape { name: "30 x 5", cases: 30, trials: &[5] },
    Shape { name: "30 x 1-8", cases: 30, trials: &[1, 2, 3, 5, 8] },
    Shape { name: "100 x 5", cases: 100, trials: &[5] },
];

impl Shape {
    /// The results of a case with this probability of success.
    fn counts(&self, probability: f64, random: &mut SeededRandom) -> ScoredCounts {
        let n = self.trials.get(random.below(self.trials.len())).copied().unwrap_or(1);
        ScoredCounts { successes: random.successes(n, probability), n }
    }
}

fn rounds() -> u32 {
    std::env::var("EVAL_CALIBRATION_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn share(hits: u32, rounds: u32) -> f64 {
    f64::from(hits) / f64::from(rounds)
}

/// How often the interval of the pass rate contains the true rate of the population of cases.
fn rate_coverage(shape: &Shape, difficulty: Difficulty, rounds: u32) -> f64 {
    let mut random = SeededRandom::new(1);
    let mut hits = 0;
    for _ in 0..rounds {
        let population = difficulty.population(&mut random);
        let mut counts = Vec::new();
        for _ in 0..shape.cases {
            let probability = population.draw(&mut random);
            counts.push(shape.counts(probability, &mut random));
        }
        let interval = rate_of_cases(&counts).interval.unwrap();
        hits += u32::from((interval.low..=interval.high).contains(&population.mean()));
    }
    share(hits, rounds)
}

/// How often the interval of a difference contains the true one: that of these cases, or that of the population. The new side
/// draws its probabilities from a population of its own.
fn difference_coverage(shape: &Shape, difficulty: Difficulty, scope: InferenceScope, rounds: u32) -> f64 {
    let mut random = SeededRandom::new(3);
    let mut hits = 0;
    for _ in 0..rounds {
        let [base, new] = [(); 2].map(|()| difficulty.population(&mut random));
        let mut pairs = Vec::new();
        let mut true_difference = 0.0;
        for _ in 0..shape.cases {
            let [before, after] = [base, new].map(|population| population.draw(&mut random));
            true_difference += (after - before) / shape.cases as f64;
            let [base, new] = [before, after].map(|probability| shape.counts(probability, &mut random));
            pairs.push(ScoredPair { base, new });
        }
        if scope == InferenceScope::Population {
            true_difference = new.mean() - base.mean();
        }
        let interval = interval(&pairs, scope).unwrap();
        hits += u32::from((interval.low..=interval.high).contains(&true_difference));
    }
    share(hits, rounds)
}

/// The share of comparisons in which a suite whose rate falls by `drop` gets one of these verdicts.
fn verdict_rate(
    shape: &Shape,
    drop: f64,
    verdicts: &[GateVerdict],
    scope: InferenceScope,
    rounds: u32,
) -> f64 {
    let rule = GateRule { margin: 0.05, min_cases: 1, scope, draws: 99 };
    let mut random = SeededRandom::new(2);
    let mut hits = 0;
    for _ in 0..rounds {
        let population = Difficulty::Mixed.population(&mut random);
        let mut pairs = Vec::new();
        for _ in 0..shape.cases {
            let probability = population.draw(&mut random).max(drop);
            let base = shape.counts(probability, &mut random);
            pairs.push(ScoredPair { base, new: shape.counts(probability - drop, &mut random) });
        }
        hits += u32::from(verdicts.contains(&decide(&pairs, &rule)));
    }
    share(hits, rounds)
}

/// The standard deviation of a simulated rate near 5 %.
fn deviation(rounds: u32) -> f64 {
    (0.05 * 0.95 / f64::from(rounds)).sqrt()
}

struct Calibration {
    rounds: u32,
    lines: Vec<String>,
    failures: Vec<String>,
}

impl Calibration {
    /// Records a coverage that must be from 93 % to `high`. With 2,000 rounds or more the limits hold as they are.
    fn expect_coverage(&mut self, what: &str, rate: f64, high: f64) {
        let slack = if self.rounds >= 2_000 { 0.0 } else { 3.0 * deviation(self.rounds) };
        self.expect(what, rate, 0.93 - slack, high + slack);
    }

    /// Records an error rate. A test at 5 % has a true rate of up to 5 %, around which a simulation scatters.
    fn expect_error(&mut self, what: &str, rate: f64) {
        self.expect(what, rate, 0.0, 0.05 + 2.5 * deviation(self.rounds));
    }

    fn expect(&mut self, what: &str, rate: f64, low: f64, high: f64) {
        if !(low..=high).contains(&rate) {
            self.failures.push(format!("{what}: {:.2} %", 100.0 * rate));
        }
        self.lines.push(format!("{:.1} %  {what}", 100.0 * rate));
    }

    fn coverage(&mut self, shape: &Shape) {
        for difficulty in Difficulty::ALL {
            let name = format!("{}, {difficulty:?}", shape.name);
            // Coverage is cheap, and its limits are close.
            let rounds = 4 * self.rounds;
            let rate = rate_coverage(shape, difficulty, rounds);
            self.expect_coverage(&format!("coverage of the pass rate, {name}"), rate, 0.97);
            let population = difference_coverage(shape, difficulty, InferenceScope::Population, rounds);
            let what = format!("coverage of the difference on cases like these, {name}");
            // Cautious on purpose, as are those of these cases: one case of twenty that breaks must not be a surprise, equal
            // trials of a case are not certainty, and cases without any noise cannot be missed.
            self.expect_coverage(&what, population, 1.0);
            let cases = difference_coverage(shape, difficulty, InferenceScope::Cases, rounds);
            self.expect_coverage(&format!("coverage of the difference on these cases, {name}"), cases, 1.0);
        }
    }

    fn errors(&mut self, shape: &Shape) {
        let fell = [GateVerdict::Regression, GateVerdict::Worse, GateVerdict::WithinMargin];
        let passed = [GateVerdict::Pass, GateVerdict::WithinMargin];
        let scopes =
            [(InferenceScope::Cases, "these cases"), (InferenceScope::Population, "cases like these")];
        for (scope, about) in scopes {
            for (what, drop, verdicts) in [
                ("A/A alarms", 0.0, &fell[..]),
                ("a drop of 4 at margin 5 is a regression", 0.04, &[GateVerdict::Regression][..]),
                ("a drop of 5 passes", 0.05, &passed[..]),
            ] {
                let rate = verdict_rate(shape, drop, verdicts, scope, self.rounds);
                self.expect_error(&format!("{what}, {about}, {}", shape.name), rate);
            }
        }
    }
}

#[test]
fn coverage_and_error_rates_are_as_promised() {
    let rounds = rounds();
    let mut calibration =
        Calibration { rounds, lines: vec![format!("{rounds} rounds")], failures: Vec::new() };
    for shape in &SHAPES {
        calibration.coverage(shape);
        // The exact test of many cases with uneven trials takes long.
        if shape.trials.len() == 1 || shape.cases <= 10 {
            calibration.errors(shape);
        }
    }
    if let Some(file) = std::env::var_os("EVAL_CALIBRATION_FILE") {
        std::fs::write(file, calibration.lines.join("\n") + "\n").unwrap();
    }
    assert!(calibration.failures.is_empty(), "{:#?}", calibration.failures);
}
