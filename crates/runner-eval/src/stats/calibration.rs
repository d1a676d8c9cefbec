//! Simulations that show how often the statistics are wrong. A short version runs with the tests; `just eval-calibrate` runs
//! 2,000 comparisons for every shape and prints the table.

use super::gate::{GateRule, GateVerdict, decide};
use super::paired::{InferenceScope, ScoredCounts, ScoredPair};
use super::random::SeededRandom;
use super::score::rate_of_cases;

/// How the probabilities of success differ between cases.
#[derive(Clone, Copy, Debug)]
enum Difficulty {
    /// From hopeless to certain, most of them near the ends.
    Mixed,
    /// Evenly spread.
    Spread,
    /// Most cases are easy.
    Easy,
    /// All cases are alike.
    Alike,
}

impl Difficulty {
    const ALL: [Self; 4] = [Self::Mixed, Self::Spread, Self::Easy, Self::Alike];

    fn draw(self, random: &mut SeededRandom) -> f64 {
        let uniform = random.uniform();
        match self {
            // The quantile function of the arcsine distribution.
            Self::Mixed => (uniform * std::f64::consts::FRAC_PI_2).sin().powi(2),
            Self::Spread => uniform,
            Self::Easy => uniform.powf(0.2),
            Self::Alike => 0.6,
        }
    }

    fn mean(self) -> f64 {
        match self {
            Self::Mixed | Self::Spread => 0.5,
            Self::Easy => 1.0 / 1.2,
            Self::Alike => 0.6,
        }
    }
}

struct Shape {
    cases: usize,
    trials: u32,
}

const SHAPES: [Shape; 5] = [
    Shape { cases: 10, trials: 3 },
    Shape { cases: 10, trials: 5 },
    Shape { cases: 20, trials: 3 },
    Shape { cases: 30, trials: 5 },
    Shape { cases: 100, trials: 5 },
];

fn rounds() -> u32 {
    std::env::var("EVAL_CALIBRATION_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// How often the interval of the pass rate contains the true rate of the population of cases.
fn coverage(shape: &Shape, difficulty: Difficulty, rounds: u32) -> f64 {
    let mut random = SeededRandom::new(1);
    let mut hits = 0;
    for _ in 0..rounds {
        let mut counts = Vec::new();
        for _ in 0..shape.cases {
            let probability = difficulty.draw(&mut random);
            counts.push(ScoredCounts {
                successes: random.successes(shape.trials, probability),
                n: shape.trials,
            });
        }
        let interval = rate_of_cases(&counts).interval.unwrap();
        hits += u32::from((interval.low..=interval.high).contains(&difficulty.mean()));
    }
    f64::from(hits) / f64::from(rounds)
}

/// The share of comparisons in which a suite whose rate falls by `drop` gets one of these verdicts.
fn verdict_rate(shape: &Shape, drop: f64, margin: f64, verdicts: &[GateVerdict], rounds: u32) -> f64 {
    let rule = GateRule { margin, min_cases: 1, scope: InferenceScope::Cases, draws: 99 };
    let mut random = SeededRandom::new(2);
    let mut hits = 0;
    for _ in 0..rounds {
        let probabilities: Vec<f64> =
            (0..shape.cases).map(|_| Difficulty::Mixed.draw(&mut random).max(drop)).collect();
        let mut pairs = Vec::new();
        for probability in probabilities {
            let mut side = |probability| ScoredCounts {
                successes: random.successes(shape.trials, probability),
                n: shape.trials,
            };
            pairs.push(ScoredPair { base: side(probability), new: side(probability - drop) });
        }
        hits += u32::from(verdicts.contains(&decide(&pairs, &rule)));
    }
    f64::from(hits) / f64::from(rounds)
}

/// Three standard deviations of a rate near 5 % in this many rounds.
fn slack(rounds: u32) -> f64 {
    3.0 * (0.05 * 0.95 / f64::from(rounds)).sqrt()
}

#[test]
fn coverage_and_error_rates_are_as_promised() {
    let rounds = rounds();
    let slack = slack(rounds);
    let mut failures = Vec::new();
    let mut lines = vec![format!(
        "{rounds} rounds; coverage of the pass rate's 95 % interval, and error rates of the gate"
    )];
    for shape in &SHAPES {
        let name = format!("{} x {}", shape.cases, shape.trials);
        let mut line = name.clone();
        for difficulty in Difficulty::ALL {
            let covered = coverage(shape, difficulty, rounds);
            line.push_str(&format!("  {difficulty:?} {:.1} %", 100.0 * covered));
            if !(0.93 - slack..=0.97 + slack).contains(&covered) {
                failures.push(format!("{name}: coverage {covered} for {difficulty:?}"));
            }
        }
        let noticed = [GateVerdict::Regression, GateVerdict::Worse];
        let alarms = verdict_rate(shape, 0.0, 0.05, &noticed, rounds);
        let inside = verdict_rate(shape, 0.04, 0.05, &[GateVerdict::Regression], rounds);
        let whole = verdict_rate(shape, 0.05, 0.05, &[GateVerdict::Pass, GateVerdict::WithinMargin], rounds);
        line.push_str(&format!(
            "  | A/A alarms {:.1} %, drop of 4 at margin 5 is a regression {:.1} %, drop of 5 passes {:.1} %",
            100.0 * alarms,
            100.0 * inside,
            100.0 * whole
        ));
        for (what, rate) in [("alarms", alarms), ("regressions inside the margin", inside), ("passes", whole)]
        {
            if rate > 0.05 + slack {
                failures.push(format!("{name}: {what} {rate}"));
            }
        }
        lines.push(line);
    }
    if let Some(file) = std::env::var_os("EVAL_CALIBRATION_FILE") {
        std::fs::write(file, lines.join("\n") + "\n").unwrap();
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
