//! The slow tail of turn times on both sides: the time that 95 of 100 turns do not exceed.
//!
//! The row on the median case does not cover it: a fifth of the cases may take ten times as long while the median
//! stays. A difference is tested by exchanging the two sides of whole cases, in every way or in random ones: under equal
//! behaviours every exchange is equally likely. "Not worse" is reported only where order statistics support it, with the turns of a
//! case as one cluster: the upper bound on B's quantile must be within the margin of the lower bound on A's, each
//! with a quarter of 5 %. Unanswered turns count as slower than any other.

use super::pairing::Pair;
use super::sentences::{change, p_value};
use super::summary::CaseFigures;
use super::{ComparedCriterion, Finding, Scale};
use crate::stats::percent::{MOST_CHANGE, percent};
use crate::stats::quantile::{Bounded, Sizes, nearest_rank, quantile_in_clusters, rank};
use crate::trace::text::count;
use rand::{RngExt as _, SeedableRng as _, rngs::ChaCha8Rng};

/// The key of its row.
pub(super) const TURN_TIME_P95: &str = "turn time (p95)";

/// The quantile.
const Q: f64 = 0.95;
/// The error probability of a finding, both directions together.
const ALPHA: f64 = 0.05;
/// Exchanges that are drawn, and how many times of turns they may look at together.
const DRAWS: usize = 1_999;
const LOOKS: usize = 20_000_000;

/// The turn times of both sides over the cases that they share.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tail {
    /// Microseconds of all turns of each case under A, and under B, each ascending.
    cases: Vec<Times>,
    /// Whether the cases are of logs, whose numbers of turns nobody planned.
    logged: bool,
    /// Whether a case ran more often on one side.
    uneven: bool,
    /// Whether a side has no times because an older build saved it.
    not_kept: bool,
}

/// Pairs the times of all turns; `logged` if they are of logs.
pub(super) fn tail(pairs: &[Pair<'_>], logged: bool) -> Tail {
    let mut found = Tail { logged, ..Tail::default() };
    for pair in pairs {
        let run: Vec<_> = pair.rows.iter().filter(|(a, b)| a.trials > 0 && b.trials > 0).collect();
        let kept: Option<Vec<Times>> = run.iter().map(|(a, b)| a.paired_times(b, pair.logged)).collect();
        let Some(kept) = kept else {
            found.not_kept = true;
            continue;
        };
        if !kept.iter().any(|(a, b)| !a.is_empty() && !b.is_empty()) {
            continue;
        }
        let (ours, theirs): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        let (ours, theirs) = (sorted(ours), sorted(theirs));
        let unpaired = |(a, b): &&(&CaseFigures, &CaseFigures)| a.times.is_empty() || b.times.is_empty();
        found.uneven |= run.iter().copied().filter(unpaired).any(|(a, b)| a.trials != b.trials);
        found.cases.push((ours, theirs));
    }
    // Exchanges are drawn for the cases in this order: neither that of the lines of a log nor the names of the sides count.
    found.cases.sort_by_cached_key(|(a, b)| (a.min(b).clone(), a.max(b).clone()));
    if found.not_kept {
        found = Tail { not_kept: true, ..Tail::default() };
    }
    found
}

fn sorted(times: Vec<Vec<u64>>) -> Vec<u64> {
    let mut sorted = times.concat();
    sorted.sort_unstable();
    sorted
}

/// A time of microseconds in seconds; `None` for a turn without an answer.
fn seconds(us: u64) -> Option<f64> {
    (us != u64::MAX).then_some(us as f64 / 1e6)
}

/// By what share B's time is longer. Of a time of 0, the clock's own step stands for it.
fn longer(a: u64, b: u64) -> f64 {
    b.max(1) as f64 / a.max(1) as f64 - 1.0
}

fn words(us: u64) -> String {
    seconds(us).map_or_else(|| "no answer".to_owned(), |seconds| format!("{seconds:.2} s"))
}

/// The times of a case under both settings.
type Times = (Vec<u64>, Vec<u64>);

impl Tail {
    fn side(&self, of: fn(&Times) -> &Vec<u64>) -> Vec<(u64, u32)> {
        let each = (0..).zip(&self.cases);
        each.flat_map(|(number, case)| of(case).iter().map(move |us| (*us, number))).collect()
    }

    fn bounded(&self, of: fn(&Times) -> &Vec<u64>) -> Option<Bounded> {
        let sizes = if self.logged { Sizes::Observed } else { Sizes::Planned };
        quantile_in_clusters(self.side(of), sizes, Q, ALPHA / 4.0)
    }

    /// The two-sided p-value of the log ratio of the two quantiles, over exchanges of the sides of whole cases, and whether
    /// these are all that there are; `None` where nothing changed, or a case ran more often on one side.
    fn exchanged(&self, seed: u64) -> Option<(f64, bool)> {
        let changed = self.cases.iter().filter(|(a, b)| a != b).count();
        if changed == 0 || self.uneven {
            return None;
        }
        let turns: usize = self.cases.iter().map(|(a, b)| a.len() + b.len()).sum();
        let log = |times: &mut Vec<u64>| {
            let place = rank(times.len() as u64, Q)? as usize - 1;
            Some((*times.select_nth_unstable(place).1 as f64).max(1.0).ln())
        };
        let (mut ours, mut theirs) = (Vec::with_capacity(turns), Vec::with_capacity(turns));
        let mut size = |exchange: &mut dyn FnMut(&Times) -> bool| {
            ours.clear();
            theirs.clear();
            for case in &self.cases {
                let (a, b) = if case.0 != case.1 && exchange(case) { (&case.1, &case.0) } else { (&case.0, &case.1) };
                ours.extend(a);
                theirs.extend(b);
            }
            Some((log(&mut theirs)? - log(&mut ours)?).abs())
        };
        let seen = size(&mut |_| false)? - 1e-12;
        let draws = DRAWS.min(LOOKS / turns.max(1)).max(199);
        let all = 1_usize.checked_shl(changed as u32).filter(|all| *all <= draws);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut hits = 0_usize;
        for pattern in 0..all.unwrap_or(draws) {
            let mut place = 0;
            let mut drawn = || match all {
                Some(_) => {
                    place += 1;
                    pattern >> (place - 1) & 1 == 1
                }
                None => rng.random_bool(0.5),
            };
            // Which side the smaller times are on, whichever side they were seen on.
            hits += usize::from(size(&mut |(a, b)| drawn() != (a > b))? >= seen);
        }
        Some(
            all.map_or_else(|| ((hits + 1) as f64 / (draws + 1) as f64, false), |all| (hits as f64 / all as f64, true)),
        )
    }

    /// The row before correction. It gates nothing.
    pub(super) fn row(&self, seed: u64) -> ComparedCriterion {
        let (a, b) = (self.bounded(|case| &case.0), self.bounded(|case| &case.1));
        let value = |bounded: Option<Bounded>| bounded.and_then(|bounded| seconds(bounded.value));
        let (p, all) = self.exchanged(seed).unzip();
        let answered = |us: Option<u64>| us.filter(|us| *us != u64::MAX);
        let most =
            |a: Option<u64>, b: Option<u64>| answered(a).zip(answered(b)).map(|(a, b)| longer(a, b).min(MOST_CHANGE));
        let changed = |which: fn(&u64, &u64) -> bool| {
            let each = self.cases.iter().filter_map(|(a, b)| nearest_rank(a, Q).zip(nearest_rank(b, Q)));
            each.filter(|(a, b)| which(a, b)).count() as u64
        };
        ComparedCriterion {
            key: TURN_TIME_P95.into(),
            about: "Time from the user's words to the answer, the time that 95 of 100 turns do not exceed.".into(),
            metric: "turn time p95".into(),
            scale: Scale::Time,
            fewer_is_better: true,
            cases: self.cases.len() as u64,
            a: value(a),
            b: value(b),
            units_a: (0, self.cases.iter().map(|case| case.0.len() as u64).sum()).into(),
            units_b: (0, self.cases.iter().map(|case| case.1.len() as u64).sum()).into(),
            difference: most(a.map(|a| a.value), b.map(|b| b.value)),
            least: most(a.and_then(|a| a.lower), b.and_then(|b| b.upper)).map(|most| -most),
            method: match all {
                None => String::new(),
                Some(true) => "exact exchange of sides by case".into(),
                Some(false) => "exchange of sides by case, drawn".into(),
            },
            p,
            better: changed(|a, b| b < a),
            worse: changed(|a, b| b > a),
            ..ComparedCriterion::default()
        }
    }

    /// Sets the finding of the row and its sentence; a change of at most `margin` does not matter.
    pub(super) fn conclude(&self, row: &mut ComparedCriterion, margin: f64) {
        let Some((a, b)) = self.bounded(|case| &case.0).zip(self.bounded(|case| &case.1)) else {
            row.sentence = if self.not_kept {
                "not compared: a side that an older ragcheck saved did not keep the times of its turns".into()
            } else {
                "not compared: no case has turns with times on both sides".into()
            };
            return;
        };
        if self.cases.iter().all(|(a, b)| a == b) {
            row.finding = Finding::NoDiscordance;
            row.sentence = format!("no turn took another time: p95 {} on both sides", words(a.value));
            return;
        }
        let slack = margin + 1e-12;
        let sure = row.p_adjusted.is_some_and(|p| p <= ALPHA);
        // A turn without an answer is longer than any limit.
        let ratio = longer(a.value, b.value);
        row.finding = if sure && ratio > slack {
            Finding::Worse
        } else if sure && ratio < -slack {
            Finding::Better
        } else if row.least.is_some_and(|least| least >= -slack) {
            Finding::NotWorse
        } else {
            Finding::Undecided
        };
        row.sentence = self.sentence(row, (a, b), margin);
    }

    fn sentence(&self, row: &ComparedCriterion, (a, b): (Bounded, Bounded), margin: f64) -> String {
        let limit = if a.value == u64::MAX { b.value } else { a.value };
        let beyond = |times: Vec<(u64, u32)>| {
            percent(times.iter().filter(|(us, _)| *us > limit).count() as f64 / times.len().max(1) as f64)
        };
        let p = row.p_adjusted.map_or_else(String::new, |p| format!(", {} (for information)", p_value(p)));
        let change = row.difference.map_or_else(String::new, |value| format!(", {}", change(Scale::Time, value)));
        let head = if limit == u64::MAX {
            format!("p95 of all turns: not defined, more than 5 % of the turns got no answer on both sides{p}")
        } else {
            format!(
                "p95 of all turns: {} to {}{change}{p}; {} and then {} of the turns take longer than {}",
                words(a.value),
                words(b.value),
                beyond(self.side(|case| &case.0)),
                beyond(self.side(|case| &case.1)),
                words(limit)
            )
        };
        let most = format!("{:.0} %", margin * 100.0);
        match row.finding {
            Finding::Worse => format!("{head}: the slow tail is worse (observed difference above {most})"),
            Finding::Better => format!("{head}: the slow tail is better (observed difference above {most})"),
            Finding::NotWorse => format!("{head}: the p95 is not worse by more than {most}"),
            _ => {
                // So many cases of one turn each have an upper bound on this quantile at all.
                let fewest = ((ALPHA / 4.0).ln() / Q.ln()).ceil() as u64;
                let needs = if row.cases < fewest {
                    format!(": {} bound no p95, {fewest} do", count(row.cases, "case", "cases"))
                } else {
                    String::new()
                };
                format!("{head}: undecided, nothing is said of the slow tail{needs}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{pairing::pair, sample::summary};
    use super::*;

    /// A run of so many cases of one turn each: two seconds, and `slow` of them ten.
    fn run(cases: usize, slow: usize) -> super::super::Summary {
        let names: Vec<String> = (0..cases).map(|index| format!("c{index:03}")).collect();
        let mut run = summary("run", &names.iter().map(|name| (name.as_str(), 1, 1)).collect::<Vec<_>>());
        for (index, case) in run.cases.iter_mut().enumerate() {
            // Not all alike: a tenth of a per cent between neighbours.
            let us = if index < slow { 10_000_000 } else { 2_000_000 } + index as u64 * 2_000;
            case.turn_us = Some(us);
            case.usage.as_mut().expect("kept").turns_us = vec![us];
        }
        run
    }

    fn row(a: &super::super::Summary, b: &super::super::Summary) -> ComparedCriterion {
        let tail = tail(&pair(a, b).pairs, false);
        let mut row = tail.row(7);
        row.p_adjusted = row.p;
        tail.conclude(&mut row, 0.10);
        row
    }

    #[test]
    fn a_slow_tail_that_grows_from_5_to_25_percent_of_the_cases_is_never_not_worse() {
        for cases in [20, 40, 60, 100, 200, 400] {
            let found = row(&run(cases, cases / 20), &run(cases, cases / 4));
            assert!(matches!(found.finding, Finding::Worse | Finding::Undecided), "{cases}: {}", found.sentence);
            if cases >= 40 {
                assert_eq!(found.finding, Finding::Worse, "{cases}: {}", found.sentence);
            }
            assert!(found.sentence.contains("then 25.0 % of the turns"), "{}", found.sentence);
        }
        let few = row(&run(20, 1), &run(20, 5));
        assert!(
            few.sentence.ends_with("nothing is said of the slow tail: 20 cases bound no p95, 86 do"),
            "{}",
            few.sentence
        );
    }

    #[test]
    fn a_tail_that_stays_is_not_worse_where_there_are_turns_enough_and_equal_ones_did_not_change() {
        let (a, mut b) = (run(400, 8), run(400, 8));
        assert_eq!(row(&a, &b).finding, Finding::NoDiscordance);
        b.cases[50].usage.as_mut().expect("kept").turns_us[0] += 1_000;
        let found = row(&a, &b);
        assert_eq!(found.finding, Finding::NotWorse, "{}", found.sentence);
        assert_eq!(row(&run(400, 100), &run(400, 8)).finding, Finding::Better);
    }

    #[test]
    fn equal_behaviours_are_seldom_called_different_and_a_tail_of_5_percent_that_grew_never_not_worse() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut alarms, mut not_worse) = (0_u32, 0_u32);
        for seed in 0..60 {
            let mut drawn = |share: f64| {
                let mut run = run(120, 0);
                for case in &mut run.cases {
                    let us = if rng.random_bool(share) { 10_000_000 } else { rng.random_range(1_900_000..2_100_000) };
                    case.usage.as_mut().expect("kept").turns_us = vec![us];
                }
                run
            };
            let (a, same, grown) = (drawn(0.05), drawn(0.05), drawn(0.25));
            alarms += u32::from(tail(&pair(&a, &same).pairs, false).exchanged(seed).is_some_and(|(p, _)| p <= 0.05));
            not_worse += u32::from(row(&a, &grown).finding == Finding::NotWorse);
        }
        assert!(alarms <= 8, "{alarms} of 60");
        assert_eq!(not_worse, 0);
    }

    #[test]
    fn p_does_not_depend_on_the_order_of_the_cases() {
        let (a, b) = (run(40, 2), run(40, 6));
        let turned = |run: &super::super::Summary, by: usize| {
            let mut turned = run.clone();
            turned.cases.rotate_left(by);
            turned
        };
        let p = |by: usize, other: usize| row(&turned(&a, by), &turned(&b, other)).p.expect("a change");
        assert!([(3, 0), (0, 11), (5, 30)].into_iter().all(|(by, other)| p(by, other).total_cmp(&p(0, 0)).is_eq()));
    }

    #[test]
    fn p_does_not_depend_on_which_side_is_named_first_and_that_of_few_cases_is_exact() {
        let mixed = |cases: usize, slow: usize| {
            let mut run = run(cases, slow);
            run.cases.iter_mut().step_by(2).for_each(|case| case.usage.as_mut().expect("kept").turns_us[0] += 700_000);
            run
        };
        for cases in [7, 10, 25, 40] {
            let (a, b) = (run(cases, cases / 8), mixed(cases, cases / 4));
            let (there, back) = (row(&a, &b), row(&b, &a));
            assert_eq!((there.p, &there.method), (back.p, &back.method), "{cases} cases");
            assert_eq!(there.method.starts_with("exact"), cases <= 10, "{}", there.method);
        }
        // The p95 of six turns is the longest of them.
        let (a, b) = (run(6, 0), run(6, 1));
        assert_eq!(row(&a, &b).p, Some(1.0), "one changed case: either side may have it");
        let both = row(&run(6, 0), &mixed(6, 0));
        assert_eq!(both.p, Some(0.25), "all three changed cases on one side, of 2^3 exchanges");
    }

    #[test]
    fn times_of_0_do_not_differ_and_no_difference_is_beyond_the_largest_that_is_said() {
        let of = |us: u64| {
            let mut run = run(3, 0);
            run.cases.iter_mut().for_each(|case| case.usage.as_mut().expect("kept").turns_us = vec![us]);
            run
        };
        assert_eq!(row(&of(0), &of(0)).difference, Some(0.0));
        let found = row(&of(1_000_000), &of(900_000_000));
        assert_eq!(found.difference, Some(MOST_CHANGE));
        assert!(found.sentence.contains(", > +9999 %, "), "{}", found.sentence);
    }

    #[test]
    fn turns_without_an_answer_are_longer_than_any_other() {
        let (a, mut b) = (run(200, 0), run(200, 0));
        for case in b.cases.iter_mut().take(50) {
            case.usage.as_mut().expect("kept").turns_us = vec![u64::MAX];
        }
        let found = row(&a, &b);
        assert_eq!((found.finding, found.b), (Finding::Worse, None), "{}", found.sentence);
        assert!(found.sentence.contains("to no answer"), "{}", found.sentence);
    }

    #[test]
    fn a_side_that_kept_no_times_is_not_compared() {
        let (mut a, b) = (run(20, 1), run(20, 1));
        a.cases[3].usage = None;
        assert_eq!(row(&a, &b).finding, Finding::NotCompared);
    }
}
