//! Pairs the figures of A and B by scenario and case, and within a case by variant.
//!
//! Variants of the same name are paired; if each side has only one, these are paired whatever their names. A case on
//! one side only is listed and not compared.

use super::summary::{CaseFigures, Setting, Summary};
use crate::platform::distinct;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

/// One case on both sides.
#[derive(Debug, Clone)]
pub(super) struct Pair<'s> {
    pub scenario: &'s str,
    pub case: &'s str,
    /// Its figures under A and under B, one row per pair of variants.
    pub rows: Vec<(&'s CaseFigures, &'s CaseFigures)>,
    /// Whether a side is of logs, whose repetitions have no partner of the same number.
    pub logged: bool,
}

/// All pairs, and everything unpaired.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairing<'s> {
    /// Cases on both sides, in the order of A.
    pub pairs: Vec<Pair<'s>>,
    /// Settings on both sides, by scenario.
    pub settings: Vec<(&'s Setting, &'s Setting)>,
    /// `scenario/case` on side A only; with the variant if only that is missing.
    pub only_a: Vec<String>,
    /// `scenario/case` on side B only; with the variant if only that is missing.
    pub only_b: Vec<String>,
    /// Scenarios on both sides whose variants cannot be paired.
    pub unmatched: Vec<String>,
}

/// Pairs the cases of two sides.
pub(super) fn pair<'s>(a: &'s Summary, b: &'s Summary) -> Pairing<'s> {
    let mut pairing = Pairing::default();
    let logged = Summary::one_is_logged(a, b);
    for scenario in distinct(a.cases.iter().chain(&b.cases).map(|case| case.scenario.as_str())) {
        let (ours, theirs) = (by_case(a, scenario), by_case(b, scenario));
        let name = |case: &&str| format!("{scenario}/{case}");
        let known = |cases: &[(&str, Vec<&CaseFigures>)], case: &str| cases.iter().any(|(known, _)| *known == case);
        pairing.only_a.extend(ours.iter().map(|(case, _)| case).filter(|case| !known(&theirs, case)).map(name));
        pairing.only_b.extend(theirs.iter().map(|(case, _)| case).filter(|case| !known(&ours, case)).map(name));
        let variants = matched(&ours, &theirs);
        if variants.is_empty() {
            if !ours.is_empty() && !theirs.is_empty() {
                pairing.unmatched.push(scenario.to_owned());
            }
            continue;
        }
        for (one, other) in &variants {
            let of = |summary: &'s Summary, variant: &str| {
                summary.settings.iter().find(|row| row.scenario == scenario && row.variant == variant)
            };
            pairing.settings.extend(of(a, one).zip(of(b, other)));
        }
        for (case, ours) in &ours {
            let Some((_, theirs)) = theirs.iter().find(|(known, _)| known == case) else { continue };
            let of = |rows: &[&'s CaseFigures], variant: &str| rows.iter().find(|row| row.variant == variant).copied();
            let rows = variants.iter().filter_map(|(one, other)| of(ours, one).zip(of(theirs, other)));
            let (rows, scenario, case): (Vec<_>, &'s str, &'s str) = (rows.collect(), scenario, case);
            let paired = |row: &CaseFigures| rows.iter().any(|(a, b)| ptr::eq(*a, row) || ptr::eq(*b, row));
            let alone = |side: &[&CaseFigures]| -> Vec<String> {
                let alone = side.iter().filter(|row| !paired(row));
                alone.map(|row| format!("{scenario}/{case} ({})", row.variant)).collect()
            };
            pairing.only_a.extend(alone(ours));
            pairing.only_b.extend(alone(theirs));
            if !rows.is_empty() {
                pairing.pairs.push(Pair { scenario, case, rows, logged });
            }
        }
    }
    pairing
}

/// The rows of a scenario by case, in the order in which they stand.
fn by_case<'s>(summary: &'s Summary, scenario: &str) -> Vec<(&'s str, Vec<&'s CaseFigures>)> {
    let mut cases: Vec<(&str, Vec<&CaseFigures>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for row in summary.cases.iter().filter(|row| row.scenario == scenario) {
        let place = *places.entry(&row.case).or_insert(cases.len());
        if place == cases.len() {
            cases.push((&row.case, Vec::new()));
        }
        cases[place].1.push(row);
    }
    cases
}

/// The paired variants: A's name and B's.
fn matched<'s>(a: &[(&str, Vec<&'s CaseFigures>)], b: &[(&str, Vec<&'s CaseFigures>)]) -> BTreeSet<(&'s str, &'s str)> {
    let variants = |cases: &[(&str, Vec<&'s CaseFigures>)]| -> BTreeSet<&'s str> {
        cases.iter().flat_map(|(_, rows)| rows.iter().map(|row| row.variant.as_str())).collect()
    };
    let (a, b) = (variants(a), variants(b));
    let common: BTreeSet<_> = a.intersection(&b).map(|variant| (*variant, *variant)).collect();
    match (a.first(), b.first()) {
        (Some(one), Some(other)) if common.is_empty() && a.len() == 1 && b.len() == 1 => [(*one, *other)].into(),
        _ => common,
    }
}

/// `b` under the name of `a`'s scenario if each is one log of imported conversations: a log has the name of its file, and its
/// cases those of their messages.
pub(super) fn one_log_each(a: &Summary, b: &Summary) -> Option<Summary> {
    let only = |side: &Summary| {
        let mut names = side.cases.iter().map(|case| case.scenario.as_str()).collect::<BTreeSet<_>>().into_iter();
        names.next().filter(|_| side.is_logged() && names.next().is_none()).map(str::to_owned)
    };
    let (name, other) = (only(a)?, only(b)?);
    let has = |asked: &CaseFigures| b.cases.iter().any(|one| (&one.case, &one.text) == (&asked.case, &asked.text));
    if name == other || !a.cases.iter().any(has) {
        return None;
    }
    let mut b = b.clone();
    b.cases.iter_mut().for_each(|case| case.scenario.clone_from(&name));
    b.settings.iter_mut().for_each(|setting| setting.scenario.clone_from(&name));
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::super::sample::summary;
    use super::*;

    #[test]
    fn cases_pair_by_name_and_the_others_are_named() {
        let a = summary("a", &[("one", 1, 1), ("two", 1, 1), ("gone", 1, 1)]);
        let b = summary("b", &[("two", 0, 1), ("one", 1, 1), ("new", 1, 1)]);
        let found = pair(&a, &b);
        assert_eq!(found.pairs.iter().map(|pair| pair.case).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!((found.only_a, found.only_b), (vec!["s/gone".to_owned()], vec!["s/new".to_owned()]));
    }

    #[test]
    fn one_variant_a_side_pairs_whatever_its_name_and_several_pair_by_name() {
        let (a, mut b) = (summary("a", &[("one", 1, 1)]), summary("b", &[("one", 1, 1)]));
        b.cases[0].variant = "terse".into();
        b.settings[0].variant = "terse".into();
        let found = pair(&a, &b);
        assert_eq!((found.pairs.len(), found.settings.len()), (1, 1));
        let mut more = b.cases[0].clone();
        more.variant = "wordy".into();
        b.cases.push(more);
        let found = pair(&a, &b);
        assert!(found.pairs.is_empty() && found.unmatched == ["s"]);
        b.cases[1].variant = "base".into();
        let found = pair(&a, &b);
        assert_eq!((found.pairs[0].rows.len(), found.only_b), (1, vec!["s/one (terse)".to_owned()]));
        assert_eq!(pair(&b, &a).only_a, ["s/one (terse)"]);
    }

    #[test]
    fn a_log_and_a_run_pair_as_logs_whichever_is_named_first() {
        let (run, mut log) = (summary("run", &[("one", 1, 1)]), summary("log", &[("one", 1, 1)]));
        assert!(!pair(&run, &run).pairs[0].logged);
        log.settings[0].modes = ["IMPORTED".to_owned()].into();
        for (a, b) in [(&run, &log), (&log, &run), (&log, &log)] {
            assert!(pair(a, b).pairs[0].logged, "{} against {}", a.label, b.label);
        }
    }
}
