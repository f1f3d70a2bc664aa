//! Compares two runs, or two variants of one run, case by case: better, worse, or inconclusive, and the smallest
//! visible difference.
//!
//! A [`Collector`] builds a [`Summary`] of each side while reading its traces; a saved summary is a baseline.
//! [`compare`] pairs the cases, lists differences in settings, tests each criterion, corrects by Holm over the gated
//! ones, and lists the cases that flipped. [`compare_variants`] does so for each pair of the variants of one run,
//! with one correction over all pairs. Equal summaries give equal results to the last digit: random draws are seeded
//! by the summaries. Nothing here knows how a verdict of a gate is made or how a comparison is shown.

mod collect;
mod comparison;
mod counts;
mod decision;
mod differences;
mod error;
#[cfg(test)]
mod error_rate_tests;
mod flips;
mod held;
mod inputs;
mod judged;
mod pairing;
mod rates;
mod repetitions;
#[cfg(test)]
pub(crate) mod sample;
mod sentences;
mod summary;
mod tail;
mod taken;
#[cfg(test)]
mod tests;
mod times;
mod usage;
mod variant_figures;
mod variants;

pub(crate) use collect::{Collector, TrialFigures};
pub(crate) use comparison::{
    COMPARISON_VERSION, ComparedCriterion, Comparison, Finding, LIVE_REPETITIONS, Scale, Side, TIME_MARGIN,
};
pub(crate) use counts::{Counts, Fraction, Passes, RepetitionCounts, Span};
pub(crate) use decision::Decision;
pub(crate) use differences::{Difference, PromptChange};
pub(crate) use error::CompareError;
pub(crate) use flips::{Flip, PairedCase};
pub(crate) use summary::{CASES, CaseFigures, Measured, Setting, StoppedEarly, Summary};
pub(crate) use variants::{Beside, Cell, Figure, InCase, Unit, Variant, Variants, compare_pair, compare_variants};

use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// The name of the simulator among services that answered.
const SIMULATOR: &str = "simulator";

/// The mode of a live run, as summaries spell it.
const LIVE: &str = "LIVE";

/// Compares two summaries; a loss of at most `margin` (0 to 1) does not matter.
///
/// # Errors
/// If there is nothing to compare, or one side is live and the other replayed.
pub(crate) fn compare(a: &Summary, b: &Summary, margin: f64) -> Result<Comparison, CompareError> {
    let opened = open(a, b, margin)?;
    // One was opened, so one is closed.
    close(vec![opened]).pop().ok_or_else(|| CompareError::NothingInCommon("nothing to compare".into()))
}

/// A comparison of prompts that a simulator answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Simulated {
    /// A side does not declare what its prompts ask for: a simulator does not read them, so nothing is compared.
    Undeclared,
    /// Both sides declare it.
    Declared,
}

impl Simulated {
    fn words(self) -> &'static str {
        match self {
            Self::Undeclared => {
                "withheld: the sides differ in a prompt, and a simulator answered, which reads no prompt; declare what each \
                 prompt asks for (`asks_for` of the variants), or record a model"
            }
            Self::Declared => {
                "a simulator answered, which behaves by what the variants declare (`asks_for`) and reads no prompt: this shows \
                 how the harness distinguishes two behaviours, and nothing about the prompts"
            }
        }
    }
}

/// Whether sides of a pair differ in a prompt while a simulator answered both; undeclared if any pair is.
fn prompts_of_a_simulator(settings: &[(&Setting, &Setting)]) -> Option<Simulated> {
    let is_it = |service: &String| service.split(' ').next() == Some(SIMULATOR);
    let simulated = |one: &Setting| one.recorded_from.iter().any(is_it);
    let pairs = settings.iter().filter(|(a, b)| a.prompts != b.prompts && simulated(a) && simulated(b));
    let found = pairs.map(|(a, b)| match (&a.asks_for, &b.asks_for) {
        (Some(_), Some(_)) => Simulated::Declared,
        _ => Simulated::Undeclared,
    });
    found.min_by_key(|found| *found as u8)
}

/// A comparison without rows, and the rows before correction.
struct Opened {
    comparison: Comparison,
    rows: Vec<judged::Tested>,
}

/// Opens a comparison: p-values uncorrected, no findings.
fn open(a: &Summary, b: &Summary, margin: f64) -> Result<Opened, CompareError> {
    one_mode(a, b)?;
    let renamed = pairing::one_log_each(a, b);
    let b = renamed.as_ref().unwrap_or(b);
    let pairing = pairing::pair(a, b);
    if pairing.pairs.is_empty() {
        return Err(CompareError::NothingInCommon(nothing(a, b, &pairing)));
    }
    let (mut differences, prompts) = differences::differences(&pairing.settings);
    differences.splice(0..0, differences::asked(a, b, &pairing.pairs));
    let mut notes = sentences::missing(a, b, &pairing);
    let simulated = prompts_of_a_simulator(&pairing.settings);
    let rows = match simulated {
        Some(Simulated::Undeclared) => Vec::new(),
        _ => judged::tested(a, b, &pairing.pairs, seed(a, b), &mut notes),
    };
    notes.extend(held::split(&pairing.pairs));
    let doubts = [a, b].into_iter().map(|side| side.doubt.clone()).filter(|doubt| !doubt.is_empty());
    let dropped: Vec<String> = doubts.chain(sentences::dropped(&pairing, sentences::names_of(a, b))).collect();
    let parts = sentences::parts(a, b);
    let part = if parts.is_empty() { String::new() } else { format!("PART ({}): ", parts.join("; ")) };
    let first = dropped.iter().fold(part, |first, dropped| format!("{first}{dropped}; "));
    let warnings = parts.iter().map(|part| format!("PART {part}; what was not run is not compared"));
    let simulated_words = simulated.map(|simulated| simulated.words().to_owned());
    let warnings = warnings.chain(dropped).chain(sentences::stopped_early(a, b)).chain(simulated_words).collect();
    let (flips, changes) = match simulated {
        Some(Simulated::Undeclared) => Default::default(),
        _ => flips::flips(&pairing.pairs),
    };
    let compared = || pairing.pairs.iter().flat_map(|pair| &pair.rows).filter(|(a, b)| a.trials > 0 && b.trials > 0);
    let comparison = Comparison {
        version: COMPARISON_VERSION,
        a: side(a),
        b: side(b),
        margin,
        cases: sentences::compared(&pairing),
        dropped: sentences::lacking(&pairing),
        warnings,
        differences,
        prompts,
        notes,
        regression: false,
        withheld: simulated
            .filter(|simulated| *simulated == Simulated::Undeclared)
            .map_or_else(String::new, |one| one.words().into()),
        rows: Vec::new(),
        flips,
        changes,
        live: a.modes().contains(LIVE),
        repetitions: compared().map(|(a, b)| a.graded().1.min(b.graded().1)).filter(|one| *one > 0).min().unwrap_or(0),
        paired: flips::paired(&pairing.pairs),
        taken: taken::taken(a, b, &pairing.pairs),
        conclusion: first,
    };
    Ok(Opened { comparison, rows })
}

/// Corrects the p-values of all these comparisons together, and sets the findings.
fn close(mut open: Vec<Opened>) -> Vec<Comparison> {
    let rows = open.iter_mut().flat_map(|opened| &mut opened.rows);
    judged::correct(&mut rows.map(|tested| &mut tested.row).collect::<Vec<_>>());
    let closed = open.into_iter().map(|Opened { comparison: mut found, rows }| {
        found.rows = rows.into_iter().map(|tested| tested.conclude(found.margin)).collect();
        found.regression = found.rows.iter().any(|row| row.gated && row.finding == Finding::Worse);
        if found.withheld.is_empty() {
            found.conclusion.push_str(&decision::conclusion(&found));
        } else {
            found.conclusion.push_str(&found.withheld);
        }
        found
    });
    closed.collect()
}

/// Rejects live beside replayed figures, which are evidence of different things.
fn one_mode(a: &Summary, b: &Summary) -> Result<(), CompareError> {
    for side in [a, b] {
        if side.modes().len() > 1 {
            return Err(CompareError::MixedModes(side.label.clone()));
        }
    }
    let modes: BTreeSet<&str> = a.modes().union(&b.modes()).copied().collect();
    if modes.len() > 1 {
        let of = |side: &Summary| side.modes().first().copied().unwrap_or_default().to_owned();
        let (mode_a, mode_b) = (of(a), of(b));
        return Err(CompareError::OtherMode { a: a.label.clone(), mode_a, b: b.label.clone(), mode_b });
    }
    Ok(())
}

fn nothing(a: &Summary, b: &Summary, pairing: &pairing::Pairing<'_>) -> String {
    match pairing.unmatched.first() {
        Some(scenario) => format!(
            "nothing to compare: the variants of `{scenario}` in {} and {} have no name in common; name one of each: \
             RUN@variant",
            a.label, b.label
        ),
        None => format!("nothing to compare: {} and {} have no case in common", a.label, b.label),
    }
}

fn side(summary: &Summary) -> Side {
    Side {
        label: summary.label.clone(),
        part: summary.part.clone(),
        doubt: summary.doubt.clone(),
        evidence: sentences::evidence(summary),
        trials: summary.trials(),
        errors: summary.errors(),
    }
}

/// The first eight bytes of SHA-256 over both sides' figures, whichever is named first.
fn seed(a: &Summary, b: &Summary) -> u64 {
    let figures = |side: &Summary| {
        if side.is_logged() {
            // A log's scenario has the name of its file, and its repetitions the order of its lines.
            let mut cases: Vec<_> = side.cases.iter().map(|case| (&case.case, case.trials, case.passed)).collect();
            cases.sort();
            return serde_json::to_vec(&cases).unwrap_or_default();
        }
        // What is drawn is of rates: a baseline that kept no tokens and times is drawn alike.
        let mut rates: Vec<CaseFigures> =
            side.cases.iter().map(|case| CaseFigures { usage: None, ..case.clone() }).collect();
        rates.sort_by(|a, b| (&a.scenario, &a.case, &a.variant).cmp(&(&b.scenario, &b.case, &b.variant)));
        // Figures are numbers and strings, so serialisation cannot fail.
        serde_json::to_vec(&rates).unwrap_or_default()
    };
    let mut sides = [figures(a), figures(b)];
    sides.sort();
    Sha256::digest(sides.concat()).iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}
