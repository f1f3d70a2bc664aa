//! Usage of both sides over the cases that they share: tokens, cost, and the time that 95 of 100 turns do not exceed.
//!
//! These figures are not tested and give no findings. Missing figures of a side are reported as missing, never as 0.

use super::pairing::Pair;
use super::summary::{CaseFigures, Summary};
use super::usage::Usage;
use super::variant_figures::{quantile, without};
use super::variants::{Cell, Figure, Unit};
use std::collections::BTreeMap;

/// Why a baseline of an older build has no such figure.
const NOT_KEPT: &str = "not known in the base, which an older ragcheck saved";

/// The figures of A and of B, in this order: input tokens, output tokens, cost where one side knows it, and `turn p95`
/// of each flow and variant, of two where the sides have different ones.
pub(super) fn taken(a: &Summary, b: &Summary, pairs: &[Pair<'_>]) -> Vec<Figure> {
    let rows = || pairs.iter().flat_map(|pair| &pair.rows).filter(|(a, b)| a.trials > 0 && b.trials > 0);
    let ours = Side::of(rows().map(|(a, _)| *a));
    let theirs = Side::of(rows().map(|(_, b)| *b));
    // Sums of unlike numbers of trials say nothing: then it is the mean of a trial.
    let alike = ours.trials == theirs.trials;
    let mut figures = Vec::new();
    let mut add = |key: &str, about: &str, unit: Unit, a: Cell, b: Cell| {
        if a.value.is_some() || b.value.is_some() {
            figures.push(Figure { key: key.to_owned(), about: about.to_owned(), unit, cells: vec![a, b] });
        }
    };
    let of = if alike { "" } else { " a trial" };
    let tokens = |side: &Side, tokens: fn(&Usage) -> Option<u64>| {
        side.cell(alike, |usage| tokens(usage).map(|sum| sum as f64), "a service did not report its tokens")
    };
    for (key, about, read) in [
        ("input tokens", "Tokens sent to the model", (|usage| usage.input_tokens) as fn(&Usage) -> Option<u64>),
        ("output tokens", "Tokens of the model's answers", |usage| usage.output_tokens),
    ] {
        let about = format!("{about}{of}, of the cases on both sides.");
        add(&format!("{key}{of}"), &about, Unit::Number, tokens(&ours, read), tokens(&theirs, read));
    }
    let cost = |side: &Side| side.cell(alike, |usage| usage.cost, "a price or a service's tokens are not known");
    let about = format!("US dollars{of} of the model, the search service and managed retrieval.");
    add(&format!("cost{of}"), &about, Unit::Dollars, cost(&ours), cost(&theirs));
    let mut agents: BTreeMap<String, (Side, Side)> = BTreeMap::new();
    for (of_a, of_b) in rows() {
        let (older, newer) = (agent(a, of_a), agent(b, of_b));
        let name = if older == newer { newer } else { format!("{older} and {newer}") };
        let sides = agents.entry(name).or_default();
        sides.0.add(of_a);
        sides.1.add(of_b);
    }
    for (agent, (a, b)) in agents {
        let about = "The time that 95 of 100 turns do not exceed, over the cases on both sides.";
        let p95 = |side: &Side| side.usage.as_ref().map_or_else(|| without(NOT_KEPT), |usage| quantile(usage, 0.95));
        add(&format!("turn p95 of {agent}"), about, Unit::Seconds, p95(&a), p95(&b));
    }
    figures
}

/// Flow and variant of a case's figures.
fn agent(side: &Summary, of: &CaseFigures) -> String {
    let setting = side.settings.iter().find(|one| one.scenario == of.scenario && one.variant == of.variant);
    format!("{}.{}", setting.map_or("", |setting| setting.flow.as_str()), of.variant)
}

/// Usage of the trials of one side.
#[derive(Debug, Clone)]
struct Side {
    trials: u64,
    /// `None` as soon as one case has none.
    usage: Option<Usage>,
}

impl Default for Side {
    fn default() -> Self {
        Self { trials: 0, usage: Some(Usage::default()) }
    }
}

impl Side {
    fn of<'c>(cases: impl Iterator<Item = &'c CaseFigures>) -> Self {
        let mut side = Self::default();
        cases.for_each(|case| side.add(case));
        side
    }

    fn add(&mut self, case: &CaseFigures) {
        self.trials += case.trials;
        self.usage = self.usage.take().zip(case.usage.as_ref()).map(|(mut sum, more)| {
            sum.add(more);
            sum
        });
    }

    /// A sum over the trials, or the mean of one.
    fn cell(&self, whole: bool, read: impl Fn(&Usage) -> Option<f64>, unknown: &str) -> Cell {
        let Some(usage) = &self.usage else { return without(NOT_KEPT) };
        let Some(sum) = read(usage) else { return without(unknown) };
        let trials = self.trials.max(1) as f64;
        Cell { value: Some(if whole { sum } else { sum / trials }), ..Cell::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{compare, sample::summary};
    use super::*;

    fn figures(a: &Summary, b: &Summary) -> Vec<(String, Option<f64>, Option<f64>)> {
        let found = compare(a, b, 0.02).expect("comparable").taken;
        found.into_iter().map(|row| (row.key, row.cells[0].value, row.cells[1].value)).collect()
    }

    fn row(key: &str, a: f64, b: f64) -> (String, Option<f64>, Option<f64>) {
        (key.to_owned(), Some(a), Some(b))
    }

    #[test]
    fn tokens_money_and_p95_stand_side_by_side_over_the_cases_of_both() {
        let (a, mut b) = (summary("a", &[("one", 1, 2)]), summary("b", &[("one", 1, 2), ("new", 2, 2)]));
        b.cases[0].usage.as_mut().expect("kept").input_tokens = Some(260);
        b.cases[0].usage.as_mut().expect("kept").turns_us[1] = 3_000_000;
        assert_eq!(
            figures(&a, &b),
            [
                row("input tokens", 200.0, 260.0),
                row("output tokens", 40.0, 40.0),
                row("cost", 0.5, 0.5),
                row("turn p95 of tool-rag.base", 2.0, 3.0)
            ]
        );
    }

    #[test]
    fn sides_of_two_variants_are_both_named() {
        let (mut a, b) = (summary("a", &[("one", 1, 2)]), summary("b", &[("one", 1, 2)]));
        a.settings.iter_mut().for_each(|one| "strict".clone_into(&mut one.variant));
        a.cases.iter_mut().for_each(|one| "strict".clone_into(&mut one.variant));
        let keys: Vec<String> = figures(&a, &b).into_iter().map(|(key, ..)| key).collect();
        assert!(keys.contains(&"turn p95 of tool-rag.strict and tool-rag.base".to_owned()), "{keys:?}");
    }

    #[test]
    fn sums_of_unlike_numbers_of_trials_become_means_of_a_trial() {
        let (a, b) = (summary("a", &[("one", 1, 2)]), summary("b", &[("one", 1, 4)]));
        let found = figures(&a, &b);
        assert_eq!(found[0], row("input tokens a trial", 100.0, 100.0));
        assert_eq!(found[2], row("cost a trial", 0.25, 0.25));
    }

    #[test]
    fn a_base_that_did_not_keep_them_is_not_known_and_never_nothing() {
        let (mut a, b) = (summary("a", &[("one", 1, 2)]), summary("b", &[("one", 1, 2)]));
        a.cases[0].usage = None;
        let found = compare(&a, &b, 0.02).expect("comparable").taken;
        assert_eq!(found.len(), 4);
        for row in &found {
            assert_eq!((row.cells[0].value, row.cells[0].not_measured.as_str()), (None, NOT_KEPT));
            assert!(row.cells[1].value.is_some(), "{row:?}");
        }
    }

    #[test]
    fn without_a_price_there_are_tokens_alone() {
        let (mut a, mut b) = (summary("a", &[("one", 1, 1)]), summary("b", &[("one", 1, 1)]));
        for side in [&mut a, &mut b] {
            side.cases[0].usage.as_mut().expect("kept").cost = None;
        }
        let keys: Vec<String> = figures(&a, &b).into_iter().map(|row| row.0).collect();
        assert_eq!(keys, ["input tokens", "output tokens", "turn p95 of tool-rag.base"]);
    }
}
