//! Random draws without state: each depends only on the seed and its purpose.
//!
//! So a lane gets the same answers in any order and alongside any others.

use crate::platform::schema;
use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Draws for one purpose.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    seed: [u8; 32],
}

impl Dice {
    /// Creates dice for `parts`; their lengths are hashed too, so that different parts never give the same input.
    pub(crate) fn new(seed: u64, parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self { seed: hash.finalize().into() }
    }

    fn generator(&self, label: &str) -> ChaCha8Rng {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(label.as_bytes());
        ChaCha8Rng::from_seed(hash.finalize().into())
    }

    /// A number in [0, 1); the same for the same label.
    pub(crate) fn roll(&self, label: &str) -> f64 {
        self.generator(label).random::<f64>()
    }

    /// An index below `length`, which must not be 0.
    pub(crate) fn pick(&self, label: &str, length: usize) -> usize {
        self.generator(label).random_range(0..length)
    }

    /// Eight hex digits for an id.
    pub(crate) fn id(&self, label: &str) -> String {
        format!("{:08x}", self.generator(label).random::<u32>())
    }
}

/// Distribution of response times.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Latency {
    /// A constant time.
    Constant(Span),
    /// A log-normal distribution, cut off at `max`.
    Lognormal(Lognormal),
}

/// A log-normal distribution.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lognormal {
    /// Median.
    pub median: Span,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// Maximum.
    pub max: Span,
}

impl Latency {
    /// Draws a time in whole microseconds.
    pub(crate) fn draw(&self, dice: &Dice) -> Duration {
        match self {
            Self::Constant(span) => span.0,
            Self::Lognormal(shape) => {
                // Box–Muller: one standard normal draw from two uniform ones.
                let (u, v) = (1.0 - dice.roll("latency u"), dice.roll("latency v"));
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                let micros = shape.median.0.as_micros() as f64 * (shape.sigma * normal).exp();
                Duration::from_micros(micros as u64).min(shape.max.0)
            }
        }
    }
}

/// A duration as written: `900ms`, `1.5s`, `2m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub Duration);

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let split = text.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = text[..split].trim().parse().ok()?;
        let factor = match &text[split..] {
            "us" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            "m" => 6e7,
            _ => return None,
        };
        (0.0..=3.6e9)
            .contains(&(number * factor))
            .then(|| Self(Duration::from_micros((number * factor).round() as u64)))
    }
}

schema!(
    inline Span,
    json_schema!({"type": "string", "pattern": r"^[0-9.]+ *(us|ms|s|m)$", "examples": ["900ms", "1.5s", "2m"]})
);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(format!("`{text}` is not a duration: write 900ms, 1.5s or 2m, at most an hour"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_repeat_for_the_same_purpose_and_differ_between_purposes() {
        let dice = Dice::new(1, &["lane 1"]);
        assert!((dice.roll("a") - Dice::new(1, &["lane 1"]).roll("a")).abs() < f64::EPSILON);
        assert!((dice.roll("a") - dice.roll("b")).abs() > f64::EPSILON);
        assert_ne!(Dice::new(1, &["ab", "c"]).id("x"), Dice::new(1, &["a", "bc"]).id("x"));
    }

    #[test]
    fn half_of_the_log_normal_draws_lie_below_the_median_and_none_above_the_cut() {
        let latency: Latency =
            serde_saphyr::from_str("lognormal: {median: 900ms, sigma: 0.4, max: 2s}").expect("latency");
        let draws: Vec<Duration> = (0..2000).map(|n| latency.draw(&Dice::new(n, &[]))).collect();
        let below = draws.iter().filter(|draw| **draw < Duration::from_millis(900)).count();
        assert!((930..1070).contains(&below), "{below} of 2000 below the median");
        assert!(draws.iter().all(|draw| *draw <= Duration::from_secs(2)));
    }

    #[test]
    fn spans_need_a_unit_and_a_sane_size() {
        assert_eq!(Span::parse("1.5s"), Some(Span(Duration::from_millis(1500))));
        for text in ["12", "s", "-1s", "1h", "1e99s", "NaNs"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }
}
