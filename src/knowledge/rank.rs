//! How well a passage answers a query: BM25 with statistics that other passages hardly move.
//!
//! BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) weighs a word by the number of all
//! passages and the number of those that hold it, and a passage by the mean length. So every new passage moves every
//! score a little, near ties turn over, and recordings miss for a passage that has nothing to do with them. Here
//! - the mean length and the number of passages are constants, [`MEAN_LENGTH`] and [`PASSAGES`];
//! - the weight of a word falls smoothly with the number of passages that hold it, and slowly where they are many
//!   ([`weight`]): one passage more moves it by a little, and never by a step;
//! - a word that a query repeats counts more, and less with each repetition ([`repeated`]).
//!
//! What holds: a passage that shares no word with a query changes nothing at all in what the query finds. One that
//! shares words takes its own place in the list, and among the others only near ties can turn over. The corpus suite
//! publishes how often they do, beside recall and nDCG, each held against BM25 as FTS5 computes it. Steps (powers of
//! four, in an earlier version) kept more lists whole at one passage more, and fewer at a tenth more: every list in
//! which one word crossed a step was shuffled.

use std::f64::consts::LN_2;

/// What weighs in a passage that is as long as most: words, title included.
const MEAN_LENGTH: f64 = 100.0;
/// The number of passages that the weight of a word is worked out for, however many there are.
const PASSAGES: f64 = 1e6;
/// BM25's k₁: how soon more of the same word says nothing new.
const SATURATION: f64 = 1.2;
/// BM25's b: how much the length of a passage counts.
const LENGTH_SHARE: f64 = 0.75;

/// BM25's k₃: how soon repeating a word in the query says nothing new.
const REPETITION: f64 = 7.0;

/// The weight of a word that `passages` passages hold: 1 for one, less for more, never 0. It is the square of
/// ln(1 + [`PASSAGES`] / passages), as a share of what it is for one passage.
pub(super) fn weight(passages: usize) -> f64 {
    let share = logarithm(1.0 + PASSAGES / passages.max(1) as f64) / logarithm(1.0 + PASSAGES);
    share * share
}

/// What a word of that weight adds to the score of a passage of `length` words that holds it `count` times.
pub(super) fn part(weight: f64, count: usize, length: usize) -> f64 {
    let (count, length) = (count as f64, length as f64);
    let norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length / MEAN_LENGTH);
    weight * count * (SATURATION + 1.0) / (count + norm)
}

/// How much a word counts that the query holds `times` times: 1 for once, up to [`REPETITION`] + 1.
pub(super) fn repeated(times: u32) -> f64 {
    let times = f64::from(times);
    times * (REPETITION + 1.0) / (times + REPETITION)
}

/// The natural logarithm of a number of at least 1, by additions, multiplications and divisions alone: the standard
/// library's may differ between machines in the last bit, and a rank must not.
fn logarithm(number: f64) -> f64 {
    let (mut mantissa, mut halvings) = (number, 0.0);
    while mantissa >= 2.0 {
        mantissa *= 0.5;
        halvings += 1.0;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); the argument is below 1/3, so 20 terms are more than a double holds.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0..20).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    halvings * LN_2 + 2.0 * ratio * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_weighs_less_the_more_passages_hold_it_without_a_step_and_never_nothing() {
        assert!((weight(1) - 1.0).abs() < 1e-12 && (weight(0) - 1.0).abs() < 1e-12);
        let weights: Vec<f64> = (1..5_000).map(weight).collect();
        assert!(weights.windows(2).all(|pair| pair[1] < pair[0]));
        assert!((2..4_999).all(|n| weights[n] / weights[n - 1] > 1.0 - 0.5 / n as f64), "a step");
        assert!(weight(usize::MAX) > 0.0);
    }

    #[test]
    fn the_logarithm_is_that_of_the_standard_library_to_a_few_last_bits() {
        for number in [1.0, 1.000_001, 1.5, 2.0, 3.0, 10.0, 101.0, 65_536.0, 1_000_001.0, 1e15] {
            assert!((logarithm(number) - f64::ln(number)).abs() <= 1e-14 * f64::ln(number), "{number}");
        }
    }

    #[test]
    fn more_of_a_word_counts_more_and_a_longer_passage_less_and_both_have_an_end() {
        assert!(part(1.0, 2, 100) > part(1.0, 1, 100));
        assert!(part(1.0, 1, 40) > part(1.0, 1, 100));
        assert!(part(1.0, 1_000, 100) < SATURATION + 1.0);
        assert!((part(1.0, 1, 100) - 1.0).abs() < 1e-12, "once in a passage of the usual length");
        assert!((repeated(1) - 1.0).abs() < 1e-12);
        assert!(repeated(2) > 1.7 && repeated(2) < 2.0 && repeated(u32::MAX) <= REPETITION + 1.0);
    }
}
