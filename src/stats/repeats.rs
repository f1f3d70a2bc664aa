//! Repeated trials of one task: any of k succeeds, all of k succeed (unbiased estimators, Chen et al. 2021 and
//! Yao et al. 2024).

/// `pass@k = 1 - C(n-c, k) / C(n, k)`: some of `k` repetitions succeeds, given `c` of `n`; `None` when `n < k`.
pub(crate) fn pass_any_of(k: u64, c: u64, n: u64) -> Option<f64> {
    Some(1.0 - choose_ratio(n.checked_sub(c)?, n, k)?)
}

/// `pass^k = C(c, k) / C(n, k)`: all of `k` repetitions succeed, given `c` of `n`; `None` when `n < k`.
pub(crate) fn pass_all_of(k: u64, c: u64, n: u64) -> Option<f64> {
    (c <= n).then(|| choose_ratio(c, n, k)).flatten()
}

/// `C(part, k) / C(whole, k)`, factor by factor; `None` when `whole < k`.
fn choose_ratio(part: u64, whole: u64, k: u64) -> Option<f64> {
    if whole < k {
        return None;
    }
    Some((0..k).map(|i| part.saturating_sub(i) as f64 / (whole - i) as f64).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_tasks_of_four_repetitions() {
        let counts = [4_u64, 4, 3, 4, 1, 4];
        let mean = |f: fn(u64, u64, u64) -> Option<f64>, k| {
            counts.iter().map(|c| f(k, *c, 4).expect("n >= k")).sum::<f64>() / 6.0
        };
        for (k, all, any) in [(1, 0.8333, 0.8333), (2, 0.75, 0.9167), (3, 0.7083, 0.9583), (4, 0.6667, 1.0)] {
            assert!((mean(pass_all_of, k) - all).abs() < 5e-5, "pass^{k}");
            assert!((mean(pass_any_of, k) - any).abs() < 5e-5, "pass@{k}");
        }
        assert_eq!(pass_all_of(5, 4, 4), None);
    }

    #[test]
    fn the_published_airline_counts() {
        // Tasks with 0 to 4 successes of 4.
        let tasks = [14_u32, 12, 10, 4, 10];
        for (k, expected) in [(1, 0.42), (2, 0.2733), (3, 0.22), (4, 0.2)] {
            let sum: f64 = (0_u64..).zip(tasks).map(|(c, n)| f64::from(n) * pass_all_of(k, c, 4).expect("4")).sum();
            assert!((sum / 50.0 - expected).abs() < 5e-5, "pass^{k}: {}", sum / 50.0);
        }
    }
}
