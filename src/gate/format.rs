//! Formats rates, times and units for verdicts.

use crate::stats::percent::percent_beside;

/// `38/40 = 95.0 %`, beside the share that is wanted, as in [`percent_beside`].
pub(super) fn share(successes: u64, n: u64, wanted: (f64, bool)) -> String {
    format!("{successes}/{n} = {}", percent_beside(successes as f64 / n as f64, wanted))
}

/// Microseconds in seconds, or in milliseconds below one second: `8.41 s`, `250 ms`.
pub(super) fn time(microseconds: u64) -> String {
    if microseconds < 1_000_000 {
        format!("{} ms", microseconds as f64 / 1e3)
    } else if microseconds.is_multiple_of(1_000_000) {
        format!("{} s", microseconds / 1_000_000)
    } else {
        format!("{:.2} s", microseconds as f64 / 1e6)
    }
}

/// As [`time`], with as many digits as tell it from a limit that it does not equal: `9.996 s` beside `10 s`.
pub(super) fn time_beside(microseconds: u64, limit: u64) -> String {
    let rounded = |time: u64, digits: usize| format!("{:.digits$} s", time as f64 / 1e6);
    let is_exact = microseconds < 1_000_000 || microseconds.is_multiple_of(1_000_000);
    match (2..=6).find(|digits| rounded(microseconds, *digits) != rounded(limit, *digits)) {
        Some(digits) if !is_exact => rounded(microseconds, digits),
        _ => time(microseconds),
    }
}

/// The singular of a unit name: `query` of `queries`, `answer with sources` of `answers with sources`.
pub(super) fn one_of(units: &str) -> String {
    let mut found = false;
    let word = |word: &str| {
        if found || !word.ends_with('s') {
            return word.to_owned();
        }
        found = true;
        let stem = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
        let stem = stem.or_else(|| word.strip_suffix("ches").map(|stem| format!("{stem}ch")));
        stem.unwrap_or_else(|| word.trim_end_matches('s').to_owned())
    };
    units.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_not_all_does_not_read_as_all() {
        assert_eq!(share(38, 40, (0.9, false)), "38/40 = 95.0 %");
        assert_eq!(share(40, 40, (0.9, false)), "40/40 = 100.0 %");
        assert_eq!(share(9_999, 10_000, (0.9, false)), "9999/10000 = 99.99 %");
        assert_eq!(share(1_187, 1_250, (0.95, false)), "1187/1250 = 94.96 %");
    }

    #[test]
    fn every_word_for_units_has_its_singular() {
        let rows = [
            ("queries", "query"),
            ("searches", "search"),
            ("calls", "call"),
            ("retries", "retry"),
            ("answers with sources", "answer with sources"),
            ("related queries", "related query"),
            ("changes of state", "change of state"),
        ];
        for (units, one) in rows {
            assert_eq!(one_of(units), one);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(time(8_412_000), "8.41 s");
        assert_eq!(time(10_000_000), "10 s");
        assert_eq!(time(250_000), "250 ms");
    }

    #[test]
    fn a_time_near_its_limit_has_the_digits_that_tell_them_apart() {
        assert_eq!(time_beside(9_996_000, 10_000_000), "9.996 s");
        assert_eq!(time_beside(10_000_040, 10_000_000), "10.00004 s");
        assert_eq!(time_beside(8_412_345, 10_000_000), "8.41 s");
        assert_eq!(time_beside(10_000_000, 10_000_000), "10 s");
    }
}
