//! Formats shares and bounds: the only place that writes a percent sign after a figure.
//!
//! A figure is rounded to the nearest decimal. A bound is rounded to the weaker side, a lower bound down
//! and an upper one up, so that no printed bound claims more than was shown.

/// Default number of decimals.
const DECIMALS: usize = 1;
/// The largest change that is printed, as a share: `> +9999 %`. Beyond it, times are those of a side that hardly answers.
pub(crate) const MOST_CHANGE: f64 = 99.99;
/// Largest number of decimals: a share of one in a million still has a digit.
const MOST_DECIMALS: usize = 6;

/// The direction of rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest, for what was observed.
    Nearest,
    /// Down, for a lower bound.
    Down,
    /// Up, for an upper bound.
    Up,
}

/// `value` with a fixed number of decimals.
///
/// A multiple of the last decimal is kept, despite the error of binary fractions.
pub(crate) fn rounded(value: f64, decimals: usize, rounding: Rounding) -> String {
    let scale = 10_f64.powi(decimals as i32);
    let (scaled, nearest) = (value * scale, (value * scale).round());
    let is_whole = (scaled - nearest).abs() < 1e-9 * scaled.abs().max(1.0);
    let number = match rounding {
        _ if is_whole => nearest,
        Rounding::Nearest => return format!("{:.decimals$}", without_sign_of_zero(value, decimals)),
        Rounding::Down => scaled.floor(),
        Rounding::Up => scaled.ceil(),
    };
    // Adding 0 turns the zero with a minus sign into the one without.
    format!("{:.decimals$}", number / scale + 0.0)
}

/// A share of 0 to 1 as `95.0 %`, with enough decimals that 99.99 % is not printed as 100 %, nor 0.01 % as nothing.
pub(crate) fn percent(share: f64) -> String {
    written(share, Rounding::Nearest, |reads| is_honest(reads, share))
}

/// A share beside its target, with enough decimals to show whether it meets it: `94.96 %` beside at least 95 %. `ceiling` for
/// a largest share.
pub(crate) fn percent_beside(share: f64, (target, ceiling): (f64, bool)) -> String {
    let meets = |value: f64, slack: f64| if ceiling { value <= target + slack } else { value >= target - slack };
    let side = |reads: f64| meets(reads / 100.0, 1e-11) == meets(share, 1e-12);
    written(share, Rounding::Nearest, |reads| is_honest(reads, share) && side(reads))
}

/// Whether a printed figure reads as all or as nothing only where the share is.
fn is_honest(reads: f64, share: f64) -> bool {
    (reads < 100.0 || share >= 1.0) && (reads > 0.0 || share <= 0.0)
}

/// A lower bound on a share, rounded down: `97.6 %` of 0.97699.
pub(crate) fn at_least(share: f64) -> String {
    written(share, Rounding::Down, |_| true)
}

/// An upper bound on a share, rounded up: `2.4 %` of 0.02301.
pub(crate) fn at_most(share: f64) -> String {
    written(share, Rounding::Up, |_| true)
}

/// A bound on a share beside its target: rounded as given, with enough decimals to show on which side of `target`
/// it is.
pub(crate) fn bound(share: f64, rounding: Rounding, target: f64) -> String {
    // The written figure is a decimal and the target a binary fraction: compare with that much slack.
    written(share, rounding, |reads| (reads >= target * 100.0 - 1e-9) == (share >= target))
}

/// An interval of shares, rounded outwards: `92.8 % to 98.6 %`.
pub(crate) fn interval(low: f64, high: f64) -> String {
    format!("{} to {}", at_least(low), at_most(high))
}

/// A difference of two shares in points, with its sign and without a unit: `+3.9`.
pub(crate) fn points(difference: f64) -> String {
    signed(difference, Rounding::Nearest)
}

/// The interval of a difference in points, rounded outwards: `[-1.3, +9.2]`.
pub(crate) fn points_interval(low: f64, high: f64) -> String {
    format!("[{}, {}]", signed(low, Rounding::Down), signed(high, Rounding::Up))
}

fn signed(difference: f64, rounding: Rounding) -> String {
    if difference >= MOST_CHANGE {
        return "> +9999".to_owned();
    }
    let text = rounded(difference * 100.0, DECIMALS, rounding);
    if text.starts_with('-') { text } else { format!("+{text}") }
}

/// Smallest number of decimals with which the printed figure is `fit`.
fn written(share: f64, rounding: Rounding, fit: impl Fn(f64) -> bool) -> String {
    let text = |decimals| rounded(share * 100.0, decimals, rounding);
    let fits = |text: &String| text.parse().is_ok_and(&fit);
    let shown = (DECIMALS..MOST_DECIMALS).map(text).find(fits);
    format!("{} %", shown.unwrap_or_else(|| text(MOST_DECIMALS)))
}

/// A number that rounds to zero without its minus sign.
fn without_sign_of_zero(value: f64, decimals: usize) -> f64 {
    if value.abs() * 10_f64.powi(decimals as i32) < 0.5 { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_share_that_is_neither_all_nor_nothing_does_not_read_so() {
        assert_eq!(
            [1.0, 0.0, 0.95, 0.9999, 0.0001, 0.000_000_1].map(percent),
            ["100.0 %", "0.0 %", "95.0 %", "99.99 %", "0.01 %", "0.00001 %"]
        );
    }

    #[test]
    fn a_share_beside_its_target_reads_as_on_its_side() {
        let least = |share: f64, target| percent_beside(share, (target, false));
        assert_eq!([least(0.9496, 0.95), least(0.95, 0.95), least(0.9504, 0.95)], ["94.96 %", "95.0 %", "95.0 %"]);
        assert_eq!(least(3000.0 / 3001.0, 0.9997), "99.967 %");
        let most = |share: f64, target| percent_beside(share, (target, true));
        assert_eq!([most(0.0996, 0.1), most(0.1, 0.1), most(0.1004, 0.1)], ["10.0 %", "10.0 %", "10.04 %"]);
    }

    #[test]
    fn a_bound_is_rounded_away_from_its_claim() {
        // The lower bound of 98,492 of 98,492.
        assert_eq!(at_least(0.999_969_58), "99.9 %");
        assert_eq!((at_least(0.976_99), at_most(0.023_01)), ("97.6 %".into(), "2.4 %".into()));
        assert_eq!((at_least(0.0), at_most(1.0)), ("0.0 %".into(), "100.0 %".into()));
        assert_eq!(interval(0.928_4, 0.986_1), "92.8 % to 98.7 %");
    }

    #[test]
    fn a_binary_fraction_of_a_round_share_stays_round() {
        assert_eq!((at_most(1.0 - 0.95), at_least(0.1 + 0.2)), ("5.0 %".into(), "30.0 %".into()));
        assert_eq!(at_least(0.29), "29.0 %");
    }

    #[test]
    fn a_bound_reads_on_its_own_side_of_the_target() {
        assert_eq!(bound(0.950_7, Rounding::Down, 0.950_5), "95.07 %");
        assert_eq!(bound(0.949_7, Rounding::Up, 0.95), "94.97 %");
        assert_eq!(bound(0.850_848, Rounding::Down, 0.95), "85.0 %");
        assert_eq!(bound(0.95, Rounding::Down, 0.95), "95.0 %");
    }

    #[test]
    fn differences_have_a_sign_and_zero_is_not_negative() {
        assert_eq!([0.039, -0.5, 0.0, -0.0001].map(points), ["+3.9", "-50.0", "+0.0", "+0.0"]);
        assert_eq!(points_interval(-0.0131, 0.0911), "[-1.4, +9.2]");
    }

    proptest! {
        #[test]
        fn no_printed_bound_says_more_than_the_bound(share in 0.0_f64..=1.0) {
            let number = |text: String| text.trim_end_matches(" %").parse::<f64>().expect("a number") / 100.0;
            prop_assert!(number(at_least(share)) <= share + 1e-9);
            prop_assert!(number(at_most(share)) >= share - 1e-9);
        }

        #[test]
        fn a_bound_beside_its_target_is_on_its_side(share in 0.0_f64..=1.0, target in 0.0_f64..=1.0) {
            let target = (target * 1000.0).round() / 1000.0;
            for rounding in [Rounding::Down, Rounding::Up] {
                let reads = bound(share, rounding, target).trim_end_matches(" %").parse::<f64>().expect("a number");
                if (share - target).abs() > 1e-6 {
                    prop_assert_eq!(reads >= target * 100.0 - 1e-9, share >= target);
                }
            }
        }
    }
}
