//! Student's t distribution: probabilities and quantiles for intervals and tests with few cases.

/// P(T <= t) with this many degrees of freedom.
pub(super) fn probability_below(t: f64, degrees: f64) -> f64 {
    let tail = 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The value that T stays below with this probability, which must be at least one half.
pub(super) fn quantile(probability: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while probability_below(high, degrees) < probability && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if probability_below(middle, degrees) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Bisections of a quantile: enough for the precision of the type.
const BISECTIONS: u32 = 64;
/// Terms of the continued fraction, of which a few are enough for almost all values.
const TERMS_MAX: u32 = 200;

/// The regularized incomplete beta function.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The continued fraction converges fast on one side; the other side follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() * beta_fraction(a, b, x) / a
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut numerator = 1.0;
    let mut denominator = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = denominator;
    for step in 1..=TERMS_MAX {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            denominator = 1.0 / not_zero(1.0 + term * denominator);
            numerator = not_zero(1.0 + term / numerator);
            fraction *= denominator * numerator;
        }
        if (denominator * numerator - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function for positive values, by the approximation of Lanczos.
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // The approximation holds from one half on.
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let mut sum = 0.999_999_999_999_809_9;
    for (coefficient, number) in COEFFICIENTS.iter().zip(1..) {
        sum += coefficient / (x + f64::from(number));
    }
    let base = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_table() {
        for (degrees, probability, expected) in [
            (1.0, 0.975, 12.706_204_736),
            (2.0, 0.95, 2.919_985_580),
            (9.0, 0.975, 2.262_157_163),
            (30.0, 0.975, 2.042_272_456),
            (1e6, 0.975, 1.959_966_5),
        ] {
            let found = quantile(probability, degrees);
            assert!((found - expected).abs() < 1e-6, "{degrees} {probability}: {found}");
        }
    }

    #[test]
    fn probabilities_are_symmetric_and_match_the_quantiles() {
        assert!((probability_below(0.0, 5.0) - 0.5).abs() < 1e-12);
        for t in [0.3, 1.0, 2.5, 40.0] {
            let [below, above] = [t, -t].map(|t| probability_below(t, 7.0));
            assert!((below + above - 1.0).abs() < 1e-12, "{t}");
            assert!((quantile(below, 7.0) - t).abs() < 1e-6, "{t}");
        }
    }
}
