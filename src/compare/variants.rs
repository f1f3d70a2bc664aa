//! Compares all variants of a run: figures of each over the same queries, and a comparison of each pair, with one
//! correction over all pairs.
//!
//! Only cases that every variant ran count, in the figures and in the pairs, so that each number has one source. The
//! p-values of all required rows of all pairs are corrected together by Holm, the others by Benjamini and Hochberg:
//! four variants form six pairs, and a chance finding in any of them would pass for a real one. The correction covers
//! all pairs even if only some variants are requested, so that one pair alone gets the same finding as among all
//! pairs.

use super::variant_figures::figures;
use super::{
    CaseFigures, CompareError, Comparison, Finding, Fraction, Opened, Passes, Summary, close, open, sentences,
};
use crate::platform::distinct;
use crate::trace::text::{count, listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Version of a comparison of variants as JSON.
pub(crate) const VARIANTS_VERSION: u32 = 1;

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A share of 0 to 1.
    Share,
    /// Calls, tokens or citations, per query or per answer.
    Number,
    /// Seconds.
    Seconds,
    /// US dollars.
    Dollars,
}

/// One figure of one variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The value in the figure's unit; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// What it was counted from: successes and units, or a sum and the number of queries or answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Fraction>,
    /// Why there is no value, in words; empty when there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_measured: String,
}

/// One figure of every variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The criterion's key as in the comparisons, or `model calls`, `turn p95` and so on.
    pub key: String,
    /// Its meaning.
    pub about: String,
    /// Its unit.
    pub unit: Unit,
    /// In the order of the variants.
    pub cells: Vec<Cell>,
}

/// One variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Variant {
    /// Its name.
    pub name: String,
    /// The agents that it runs.
    pub flow: String,
    /// Purpose of the variant.
    pub about: String,
    /// Source of its evidence.
    pub evidence: String,
    /// Trials of the cases compared.
    pub trials: u64,
    /// Planned trials of these cases that could not be run.
    pub errors: u64,
}

/// Figures of one variant in one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct InCase {
    /// Trials that met everything the case expects, and trials run.
    pub passed: Passes,
    /// Model calls per query.
    pub model_calls: f64,
    /// Tool calls per query.
    pub tool_calls: f64,
    /// Input tokens per query, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<f64>,
    /// Output tokens per query, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<f64>,
    /// The median time of a query in seconds; `None` where it got no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<f64>,
    /// Sources that an answer names, on average; `None` without an answer that shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citations: Option<f64>,
    /// A trial to look at: of the first repetition that fails under any variant, otherwise the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trial: String,
}

/// One case under every variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Beside {
    /// `scenario/case`.
    pub case: String,
    /// In the order of the variants.
    pub variants: Vec<InCase>,
}

/// All variants of a run compared, as plain data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Variants {
    /// Format version.
    pub version: u32,
    /// The run.
    pub run: String,
    /// Describes how the run is partial; empty for a complete one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Largest difference of a rate that does not matter.
    pub margin: f64,
    /// The variants, in the order in which they were named, or by name.
    pub variants: Vec<Variant>,
    /// Warnings that weaken the figures: cases left out, a partial run, early stopping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Criteria first, then calls, tokens, times and citations.
    pub figures: Vec<Figure>,
    /// Each case under every variant.
    pub cases: Vec<Beside>,
    /// Number of required rows, over all pairs of the run's variants, that were corrected together.
    pub tests: u64,
    /// Number of these pairs; larger than `pairs` if only some variants were requested.
    #[serde(default)]
    pub corrected_pairs: u64,
    /// Each pair once, with the earlier variant as A.
    pub pairs: Vec<Comparison>,
    /// The result in one sentence.
    pub conclusion: String,
}

/// Compares the named variants of a run, or all of them where none is named; a loss of `margin` (0 to 1) or less does
/// not matter.
///
/// # Errors
/// If a variant does not exist, there are fewer than two, or no case was run under every one.
pub(crate) fn compare_variants(run: &Summary, named: &[String], margin: f64) -> Result<Variants, CompareError> {
    let known: BTreeSet<&str> = run.cases.iter().map(|case| case.variant.as_str()).collect();
    let mut names = distinct(named.iter().cloned());
    if named.is_empty() {
        names = known.iter().map(|name| (*name).to_owned()).collect();
    }
    let sides: Vec<Summary> = names.iter().map(|name| run.clone().of_variant(name)).collect::<Result<_, _>>()?;
    if sides.len() < 2 {
        let variant = names.into_iter().next().unwrap_or_default();
        return Err(CompareError::OneVariant { run: run.label.clone(), variant });
    }
    let (cases, left_out) = common(&sides);
    if cases.is_empty() {
        return Err(CompareError::NoCommonCase { run: run.label.clone(), known: by_scenario(run, &names) });
    }
    let left_out: Vec<String> = left_out.into_iter().map(|(scenario, case)| format!("{scenario}/{case}")).collect();
    let kept = cases.iter().copied().collect();
    let sides: Vec<Summary> = sides.iter().map(|side| only(side, &kept)).collect();
    let mut pairs = Vec::new();
    for (place, a) in sides.iter().enumerate() {
        for b in &sides[place + 1..] {
            pairs.push(open(a, b, margin)?);
        }
    }
    let shown = pairs.len();
    pairs.extend(others(run, &names, &known, margin));
    let mut pairs = close(pairs);
    let tests = pairs.iter().flat_map(|pair| &pair.rows).filter(|row| row.gated && row.cases > 0).count() as u64;
    let corrected_pairs = pairs.len() as u64;
    pairs.truncate(shown);
    let mut warnings: Vec<String> = Vec::new();
    if !run.part.is_empty() {
        warnings.push(format!("PART ({}); what was not run is not compared", run.part));
    }
    if !left_out.is_empty() {
        let number = count(left_out.len() as u64, "case", "cases");
        let were = if left_out.len() == 1 { "was" } else { "were" };
        warnings.push(format!(
            "{number} left out that {were} not run under every variant: {}",
            listed(&left_out, sentences::NAMED)
        ));
    }
    if let Some(stopped) = run.stopped {
        warnings.push(format!(
            "the run was stopped after {} of {} passes, when its gates were decided: its rates lean towards what decided them",
            stopped.passes, stopped.max
        ));
    }
    Ok(Variants {
        version: VARIANTS_VERSION,
        run: run.label.clone(),
        part: run.part.clone(),
        margin,
        variants: names.iter().zip(&sides).map(|(name, side)| variant(name, side)).collect(),
        warnings,
        figures: figures(&run.criteria, &sides),
        cases: beside(&cases, &sides),
        tests,
        corrected_pairs,
        conclusion: conclusion(&names, &pairs, cases.len() as u64),
        pairs,
    })
}

/// The pairs of a run's variants that were not asked for, over the cases that both ran: they share the correction.
fn others(run: &Summary, names: &[String], known: &BTreeSet<&str>, margin: f64) -> Vec<Opened> {
    let known: Vec<&str> = known.iter().copied().collect();
    let named = |variant: &str| names.iter().any(|name| name == variant);
    let mut found = Vec::new();
    for (place, a) in known.iter().enumerate() {
        for b in known[place + 1..].iter().filter(|b| !(named(a) && named(b))) {
            let sides: Vec<Summary> = [a, b].iter().filter_map(|name| run.clone().of_variant(name).ok()).collect();
            let cases = common(&sides).0.into_iter().collect();
            let kept: Vec<Summary> = sides.iter().map(|side| only(side, &cases)).collect();
            if let [a, b] = kept.as_slice() {
                found.extend(open(a, b, margin));
            }
        }
    }
    found
}

/// Two variants of one run compared: the pair that [`compare_variants`] makes of them.
pub(crate) fn compare_pair(run: &Summary, a: &str, b: &str, margin: f64) -> Result<Comparison, CompareError> {
    let mut found = compare_variants(run, &[a.to_owned(), b.to_owned()], margin)?;
    let variant = a.to_owned();
    let mut pair = found.pairs.pop().ok_or(CompareError::OneVariant { run: run.label.clone(), variant })?;
    let left_out: Vec<String> = found.warnings.into_iter().filter(|warning| !pair.warnings.contains(warning)).collect();
    pair.warnings.splice(0..0, left_out);
    Ok(pair)
}

/// Scenario and case.
type Name<'s> = (&'s str, &'s str);

fn name_of(case: &CaseFigures) -> Name<'_> {
    (&case.scenario, &case.case)
}

/// The cases that every side ran, in the order of the first, and those that only some did.
fn common(sides: &[Summary]) -> (Vec<Name<'_>>, Vec<Name<'_>>) {
    let ran: Vec<BTreeSet<Name<'_>>> =
        sides.iter().map(|side| side.cases.iter().filter(|case| case.trials > 0).map(name_of).collect()).collect();
    let mut seen = BTreeSet::new();
    let all = sides.iter().flat_map(|side| &side.cases).map(name_of).filter(|name| seen.insert(*name));
    all.partition(|name| ran.iter().all(|side| side.contains(name)))
}

/// A side with nothing but these cases.
fn only(side: &Summary, cases: &BTreeSet<Name<'_>>) -> Summary {
    let mut side = side.clone();
    side.cases.retain(|case| cases.contains(&name_of(case)));
    side.settings.retain(|setting| cases.iter().any(|(scenario, _)| *scenario == setting.scenario));
    side
}

/// Which scenario has which of these variants, in words.
fn by_scenario(run: &Summary, names: &[String]) -> String {
    let mut scenarios: Vec<(&str, Vec<&str>)> = Vec::new();
    for setting in run.settings.iter().filter(|setting| names.contains(&setting.variant)) {
        match scenarios.iter_mut().find(|(scenario, _)| *scenario == setting.scenario) {
            Some((_, variants)) => variants.push(&setting.variant),
            None => scenarios.push((&setting.scenario, vec![&setting.variant])),
        }
    }
    let several = scenarios.iter().filter(|(_, variants)| variants.len() > 1);
    let found: Vec<String> =
        several.map(|(scenario, variants)| format!("{scenario} has {}", variants.join(", "))).collect();
    if found.is_empty() { "no scenario has two of them".into() } else { found.join("; ") }
}

fn variant(name: &str, side: &Summary) -> Variant {
    let words = |of: fn(&super::Setting) -> &str| {
        let all: BTreeSet<&str> = side.settings.iter().map(of).filter(|word| !word.is_empty()).collect();
        all.into_iter().collect::<Vec<_>>().join("; ")
    };
    Variant {
        name: name.to_owned(),
        flow: words(|setting| &setting.flow),
        about: words(|setting| &setting.about),
        evidence: sentences::evidence(side),
        trials: side.trials(),
        errors: side.errors(),
    }
}

fn beside(cases: &[Name<'_>], sides: &[Summary]) -> Vec<Beside> {
    let known: Vec<BTreeMap<Name<'_>, &CaseFigures>> =
        sides.iter().map(|side| side.cases.iter().map(|case| (name_of(case), case)).collect()).collect();
    let of = |name: &Name<'_>| -> Vec<InCase> {
        let ran = || known.iter().filter_map(|side| side.get(name));
        let failing = ran().flat_map(|case| &case.trials_run).filter(|trial| !trial.passed);
        let repetition = failing.map(|trial| trial.repetition).min();
        known.iter().map(|side| side.get(name).map_or_else(InCase::default, |case| in_case(case, repetition))).collect()
    };
    cases.iter().map(|name| Beside { case: format!("{}/{}", name.0, name.1), variants: of(name) }).collect()
}

fn in_case(case: &CaseFigures, repetition: Option<u32>) -> InCase {
    let taken = case.usage.clone().unwrap_or_default();
    let a_turn = |sum: u64| sum as f64 / taken.turns.max(1) as f64;
    let trial = case.trials_run.iter().find(|trial| Some(trial.repetition) == repetition).or(case.trials_run.first());
    InCase {
        trial: trial.map(|trial| trial.id.clone()).unwrap_or_default(),
        passed: case.graded().into(),
        model_calls: a_turn(taken.model_calls),
        tool_calls: a_turn(taken.tool_calls),
        input_tokens: taken.input_tokens.map(a_turn),
        output_tokens: taken.output_tokens.map(a_turn),
        turn: case.turn_us.map(|us| us as f64 / 1e6),
        citations: (taken.shown_answers() > 0).then(|| taken.citations as f64 / taken.shown_answers() as f64),
    }
}

/// Which pairs differ in what, the required rows first; the sentence of the only pair.
fn conclusion(names: &[String], pairs: &[Comparison], cases: u64) -> String {
    if let [pair] = pairs {
        return pair.conclusion.clone();
    }
    let (mut found, mut lost) = (Vec::new(), BTreeSet::new());
    for gated in [true, false] {
        let of = names.iter().enumerate().flat_map(|(place, a)| names[place + 1..].iter().map(move |b| (a, b)));
        for ((a, b), pair) in of.zip(pairs) {
            for (finding, word) in [(Finding::Better, "better"), (Finding::Worse, "worse")] {
                let rows = pair.rows.iter().filter(|row| row.gated == gated && row.finding == finding);
                let keys: Vec<&str> = rows.map(|row| row.key.as_str()).collect();
                if !keys.is_empty() {
                    if gated {
                        lost.insert(if finding == Finding::Worse { b.as_str() } else { a.as_str() });
                    }
                    let bracket = if gated { "" } else { " (not required)" };
                    found.push(format!("{b} is {word} than {a} in {}{bracket}", keys.join(", ")));
                }
            }
        }
    }
    let over = format!(
        "{}, {}, over {}",
        count(names.len() as u64, "variant", "variants"),
        count(pairs.len() as u64, "pair", "pairs"),
        count(cases, "case", "cases")
    );
    if found.is_empty() {
        return format!("{over}: undecided: no variant is clearly better or worse than another");
    }
    let lost = lost.into_iter().collect::<Vec<_>>().join(", ");
    let lost = if lost.is_empty() { "undecided in what is required".to_owned() } else { format!("do not ship {lost}") };
    format!("{over}: {}; no other difference is shown: {lost}", found.join("; "))
}

#[cfg(test)]
#[path = "variants_tests.rs"]
mod tests;
