//! Turns paired figures into rows: tests, one correction over all gated rows, and the finding of each row.

use super::pairing::Pair;
use super::rates::Rates;
use super::summary::{Measured, Summary};
use super::tail::{self, Tail};
use super::times::Times;
use super::{ComparedCriterion, Finding, Scale, Span, TIME_MARGIN, held, rates, sentences, times};
use crate::plan::trial_seed;
use crate::stats::paired_shift::PairedShift;
use crate::stats::{benjamini_hochberg, benjamini_hochberg_levels, holm, holm_levels};
use crate::trace::text::count;
use std::collections::BTreeMap;

/// The two-sided error probability over all gated rows together.
const ALPHA: f64 = 0.05;

/// The key of the row on the median case's turn time.
pub(super) const TURN_TIME: &str = "turn time (median case)";

/// A row before correction, with the data for its interval and its power.
#[derive(Debug)]
pub(super) struct Tested {
    pub row: ComparedCriterion,
    of: Of,
}

#[derive(Debug)]
enum Of {
    Rates(Rates, Option<PairedShift>),
    Times(Times),
    Tail(Tail),
}

/// All rows before correction, in the order of B's criteria, turn times last; what cannot be compared is added to
/// `notes`.
pub(super) fn tested(a: &Summary, b: &Summary, pairs: &[Pair<'_>], seed: u64, notes: &mut Vec<String>) -> Vec<Tested> {
    let mut rows = Vec::new();
    let pairs = &with_copies(pairs);
    let [older, newer] = sentences::names_of(a, b);
    let logged = Summary::one_is_logged(a, b);
    for measured in &b.criteria {
        match a.criteria.iter().find(|other| other.key == measured.key) {
            None => notes.push(format!("{}: not compared, only {newer} measures it", measured.key)),
            Some(other) if !alike(other, measured) => notes.push(format!(
                "{}: not compared, {older} measures {} and {newer} {}",
                measured.key,
                counted(other),
                counted(measured)
            )),
            Some(other) => {
                // The gate of a log has the name of its file before it.
                let key = if logged { measured.key.rsplit('/').next() } else { None };
                let mut row = rate_row(pairs, measured, trial_seed(seed, key.unwrap_or(&measured.key)));
                // A side that no longer requires what it lost takes no loss back.
                row.row.gated |= other.required && !other.proxy;
                rows.push(row);
            }
        }
    }
    let gone = a.criteria.iter().filter(|one| !b.criteria.iter().any(|other| other.key == one.key));
    notes.extend(gone.map(|one| format!("{}: not compared, only {older} measures it", one.key)));
    // What nobody recorded has no row.
    if !pairs.iter().flat_map(|pair| &pair.rows).any(|(a, b)| a.is_timed() || b.is_timed()) {
        return rows;
    }
    let timed = a.criteria.iter().chain(&b.criteria).any(|one| one.required && one.limit_us.is_some());
    let pairs = if held::is_held(pairs) { &[] } else { &pairs[..] };
    rows.push(time_row(pairs, timed, notes));
    let tail = tail::tail(pairs, logged);
    rows.push(Tested { row: tail.row(trial_seed(seed, tail::TURN_TIME_P95)), of: Of::Tail(tail) });
    rows
}

impl Tested {
    /// The row with its finding, after correction of its p-value.
    pub(super) fn conclude(self, margin: f64) -> ComparedCriterion {
        let mut row = self.row;
        // Visibility is that of the first step: a later step is not guaranteed for any row.
        let first = ALPHA / row.family.max(1) as f64;
        match self.of {
            Of::Tail(tail) => {
                tail.conclude(&mut row, margin_of(Scale::Time, margin));
                return row;
            }
            Of::Rates(rates, test) => {
                let level = row.level.unwrap_or(first);
                let found = test.map_or_else(|| rates.unchanged(level), |test| Some(test.interval(level)));
                row.interval = found.map(Span::from);
                row.visible = rates.visible(first);
            }
            Of::Times(times) => {
                row.interval = times.interval(row.level.unwrap_or(first)).map(Span::from);
                row.visible = times.visible(first);
            }
        }
        // "Not worse" is claimed at no lower level than that of the interval in the same sentence.
        let end = row.interval.map(|Span { low, high }| if row.fewer_is_better { -high } else { low });
        row.least = row.least.map(|least| end.map_or(least, |end| least.min(end)));
        row.finding = finding(&row, margin);
        row.sentence = sentences::sentence(&row, margin_of(row.scale, margin));
        row
    }
}

/// The pairs, with those of cases that repeat an earlier one, on either side, as part of that one's.
fn with_copies<'s>(pairs: &[Pair<'s>]) -> Vec<Pair<'s>> {
    let mut merged: Vec<Pair<'s>> = Vec::new();
    let mut places: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for pair in pairs {
        let first = |copy_of: &str| match copy_of {
            "" => format!("{}/{}", pair.scenario, pair.case),
            first => first.to_owned(),
        };
        let keys = pair.rows.first().map(|(a, b)| [("a", first(&a.copy_of)), ("b", first(&b.copy_of))]);
        let known = keys.iter().flatten().find_map(|key| places.get(key).copied());
        let place = known.unwrap_or(merged.len());
        places.extend(keys.into_iter().flatten().map(|key| (key, place)));
        match merged.get_mut(place) {
            Some(earlier) => earlier.rows.extend_from_slice(&pair.rows),
            None => merged.push(pair.clone()),
        }
    }
    merged
}

/// Whether two criteria count the same units; the target of a rate may differ, the limit of a time may not.
fn alike(a: &Measured, b: &Measured) -> bool {
    a.metric == b.metric
        && a.flow == b.flow
        && a.limit_us == b.limit_us
        && a.fewer_is_better == b.fewer_is_better
        && a.proxy == b.proxy
}

/// A criterion as it is measured: `latency_p95 <= 10s` over the flow react; a grade whose agreement with people is not
/// known is a proxy.
fn counted(measured: &Measured) -> String {
    let flow = measured.flow.as_ref().map_or_else(String::new, |flow| format!(" over the flow {flow}"));
    let proxy = if measured.proxy { " as a proxy" } else { "" };
    format!("`{} {}`{flow}{proxy}", measured.metric, measured.target)
}

fn rate_row(pairs: &[Pair<'_>], measured: &Measured, seed: u64) -> Tested {
    let found = rates::rates(pairs, measured);
    let cases = found.differences.len() as u64;
    let (up, down) = found.discordant();
    let (better, worse) = if measured.fewer_is_better { (down, up) } else { (up, down) };
    let tested = found.test(seed);
    let some = |value: f64| (cases > 0).then_some(value);
    let method = |test: &PairedShift| {
        if test.is_exact() { "exact sign-flip by case" } else { "sign-flip by case, drawn" }
    };
    let row = ComparedCriterion {
        key: measured.key.clone(),
        about: measured.about.clone(),
        metric: measured.metric.clone(),
        scale: Scale::Rate,
        gated: measured.required && !measured.proxy,
        proxy: measured.proxy,
        fewer_is_better: measured.fewer_is_better,
        cases,
        a: some(found.means.0),
        b: some(found.means.1),
        units_a: found.a.into(),
        units_b: found.b.into(),
        difference: some(found.value()),
        least: found.least_gain(if measured.fewer_is_better { -1.0 } else { 1.0 }),
        method: tested.as_ref().map(method).unwrap_or_default().to_owned(),
        p: tested.as_ref().map(PairedShift::p),
        better,
        worse,
        ..ComparedCriterion::default()
    };
    Tested { row, of: Of::Rates(found, tested) }
}

fn time_row(pairs: &[Pair<'_>], gated: bool, notes: &mut Vec<String>) -> Tested {
    let found = times::times(pairs);
    if found.unanswered > 0 {
        let cases = count(found.unanswered, "case", "cases");
        notes.push(format!(
            "{TURN_TIME}: in {cases}, half of the turns got no answer on one side or both: one such side is slower than any \
             time, two are equal"
        ));
    }
    let cases = found.ratios.len() as u64;
    let p = found.test();
    let count = |which: fn(f64) -> bool| found.ratios.iter().filter(|ratio| which(**ratio)).count() as u64;
    let row = ComparedCriterion {
        key: TURN_TIME.into(),
        about: "Time from the user's words to the answer, the median of each case; nothing is said of slow cases."
            .into(),
        metric: "turn time".into(),
        scale: Scale::Time,
        gated,
        fewer_is_better: true,
        cases,
        a: found.medians.0,
        b: found.medians.1,
        units_a: (0, cases).into(),
        units_b: (0, cases).into(),
        difference: found.change(),
        least: found.interval(ALPHA).map(|(_, high)| -high),
        method: if p.is_some() { "signed ranks, Hodges-Lehmann".into() } else { String::new() },
        p,
        better: count(|ratio| ratio < 0.0),
        worse: count(|ratio| ratio > 0.0),
        ..ComparedCriterion::default()
    };
    Tested { row, of: Of::Times(found) }
}

/// Corrects the p-values: Holm over the gated rows, Benjamini and Hochberg over the others. A row without a changed
/// case belongs to its family with p = 1: the set of tested rows must not depend on the data. The rows of several
/// comparisons read together form one family.
pub(super) fn correct(rows: &mut [&mut ComparedCriterion]) {
    type Correction = (fn(&[f64]) -> Vec<f64>, fn(&[f64], f64) -> Vec<f64>);
    let corrections: [(bool, Correction); 2] =
        [(true, (holm, holm_levels)), (false, (benjamini_hochberg, benjamini_hochberg_levels))];
    for (gated, (adjust, levels)) in corrections {
        let family: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].gated == gated && rows[*i].cases > 0).collect();
        let values: Vec<f64> = family.iter().map(|i| rows[*i].p.unwrap_or(1.0)).collect();
        let size = family.len() as u64;
        for ((place, adjusted), level) in family.into_iter().zip(adjust(&values)).zip(levels(&values, ALPHA)) {
            rows[place].p_adjusted = rows[place].p.map(|_| adjusted);
            (rows[place].level, rows[place].family) = (Some(level), size);
        }
    }
}

/// The margin for a row of that scale.
fn margin_of(scale: Scale, margin: f64) -> f64 {
    if scale == Scale::Time { margin.max(TIME_MARGIN) } else { margin }
}

fn finding(row: &ComparedCriterion, margin: f64) -> Finding {
    let Some(difference) = row.difference.filter(|_| row.cases > 0) else { return Finding::NotCompared };
    if row.p.is_none() {
        return Finding::NoDiscordance;
    }
    // Allows for rounding: the margin is a decimal, and the difference a sum of fractions.
    let margin = margin_of(row.scale, margin) + 1e-12;
    let gain = if row.fewer_is_better { -difference } else { difference };
    let sure = row.p.zip(row.level).is_some_and(|(p, level)| p <= level);
    if sure && gain > margin {
        Finding::Better
    } else if sure && gain < -margin {
        Finding::Worse
    } else if row.least.is_some_and(|least| least > -margin) {
        Finding::NotWorse
    } else {
        Finding::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::super::collect::cases_row;
    use super::super::{pairing::pair, sample::summary};
    use super::*;

    fn both(passed_b: u64, change: impl Fn(&mut Measured)) -> Vec<ComparedCriterion> {
        let names: Vec<String> = (0..8).map(|index| format!("c{index}")).collect();
        let run = |passed: u64| {
            let mut run = summary("run", &names.iter().map(|name| (name.as_str(), passed, 1)).collect::<Vec<_>>());
            run.criteria = vec![cases_row(), Measured { key: "free".into(), required: false, ..cases_row() }];
            for case in &mut run.cases {
                let same = case.repetitions[super::super::CASES].clone();
                case.repetitions.insert("free".into(), same);
            }
            run.criteria.iter_mut().for_each(&change);
            run
        };
        let (a, b) = (run(1), run(passed_b));
        rows(&a, &b, &mut Vec::new())
    }

    fn rows(a: &Summary, b: &Summary, notes: &mut Vec<String>) -> Vec<ComparedCriterion> {
        let mut rows = tested(a, b, &pair(a, b).pairs, 1, notes);
        correct(&mut rows.iter_mut().map(|tested| &mut tested.row).collect::<Vec<_>>());
        rows.into_iter().map(|tested| tested.conclude(0.02)).collect()
    }

    #[test]
    fn only_gated_rows_share_the_correction_and_rows_without_discordance_count_in_it() {
        let found = both(0, |_| {});
        let [gated, free, time, _] = found.as_slice() else { panic!("{found:?}") };
        assert!((gated.p.expect("discordance") - 2.0 / 256.0).abs() < 1e-12);
        assert_eq!(gated.p_adjusted, gated.p, "turn times are not gated here");
        assert!((free.p_adjusted.expect("p") - 6.0 / 256.0).abs() < 1e-12, "three rows are explored");
        assert_eq!((time.p, time.finding), (None, Finding::NoDiscordance));
    }

    #[test]
    fn nothing_is_not_worse_whose_interval_in_the_same_sentence_reaches_beyond_the_margin() {
        let names: Vec<String> = (0..40).map(|index| format!("c{index}")).collect();
        let mut seen = 0;
        for lost in 0..12_u64 {
            let run = |second: bool| {
                let rows = names.iter().map(|name| (name.as_str(), 1, 1)).collect::<Vec<_>>();
                let mut run = summary("run", &rows);
                run.criteria = (0..5).map(|key| Measured { key: format!("C{key}"), ..cases_row() }).collect();
                for (place, case) in (0..).zip(&mut run.cases) {
                    let noise = (place * 37 + lost * 11) % 19;
                    case.turn_us = Some(1_000_000 + if second { noise * 25_000 } else { 200_000 });
                    let mut units = case.repetitions[super::super::CASES].clone();
                    for one in &mut units {
                        one.successes = u64::from(!second || place >= lost / 4);
                    }
                    (0..5).for_each(|key| drop(case.repetitions.insert(format!("C{key}"), units.clone())));
                }
                run.criteria[0].limit_us = Some(10_000_000);
                run
            };
            for row in rows(&run(false), &run(true), &mut Vec::new()) {
                let Some(Span { low, high }) = row.interval.filter(|_| row.finding == Finding::NotWorse) else {
                    continue;
                };
                let (worst, margin) = if row.fewer_is_better { (-high, 0.10) } else { (low, 0.02) };
                assert!(worst > -margin && row.least.is_some_and(|least| least <= worst), "{}", row.sentence);
                seen += 1;
            }
        }
        assert!(seen > 0, "a test of nothing");
    }

    #[test]
    fn where_fewer_is_better_fewer_is_better() {
        let found = both(0, |measured| measured.fewer_is_better = true);
        assert_eq!(found[0].finding, Finding::Better, "{}", found[0].sentence);
        assert_eq!((found[0].better, found[0].worse), (8, 0));
    }

    #[test]
    fn a_proxy_never_gates() {
        let found = both(0, |measured| measured.proxy = true);
        assert!(found.iter().all(|row| !row.gated), "{found:?}");
    }

    #[test]
    fn criteria_that_count_something_else_are_named_and_not_compared() {
        let (mut a, mut b) = (summary("a", &[("one", 1, 1)]), summary("b", &[("one", 1, 1)]));
        a.criteria.push(Measured { key: "T".into(), limit_us: Some(1), ..cases_row() });
        b.criteria.push(Measured { key: "T".into(), limit_us: Some(2), ..cases_row() });
        b.criteria.push(Measured { key: "N".into(), ..cases_row() });
        a.criteria.push(Measured { key: "P".into(), proxy: true, ..cases_row() });
        b.criteria.push(Measured { key: "P".into(), ..cases_row() });
        a.criteria.push(Measured { key: "F".into(), ..cases_row() });
        b.criteria.push(Measured { key: "F".into(), flow: Some("react".into()), ..cases_row() });
        let mut notes = Vec::new();
        let found = rows(&a, &b, &mut notes);
        assert_eq!(
            found.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(),
            ["cases", TURN_TIME, "turn time (p95)"]
        );
        assert!(notes[0].starts_with("T: not compared") && notes[1] == "N: not compared, only b measures it");
        let proxy = "P: not compared, a measures `case_pass_rate = 100%` as a proxy and b `case_pass_rate = 100%`";
        assert_eq!(notes[2], proxy);
    }
}
