//! Which trials of a project are selected, and the mistakes of a selection.

use super::build::{lanes, variants};
use crate::scenario::{Case, Diagnostic, Loaded, diagnostic};
use crate::settings::DeclaredFault;
use crate::trace::Lane;
use globset::{GlobBuilder, GlobMatcher};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Selects trials of a project; the default selects all.
///
/// ```
/// let refunds = ragcheck::Selection { only: vec!["refunds/*".into()], ..Default::default() };
/// assert!(refunds.chooses_cases() && refunds.is_part());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Globs that match a trial's id, its case, or `scenario/case`; a trial needs one match. Empty selects all.
    pub only: Vec<String>,
    /// Globs of trials to exclude, matched in the same way.
    pub exclude: Vec<String>,
    /// Tags; a case needs one of them. Empty selects all.
    pub tags: Vec<String>,
    /// Only this flow.
    pub flow: Option<String>,
    /// Only this variant.
    pub variant: Option<String>,
    /// Number of repetitions, overriding the scenarios.
    pub repeat: Option<u32>,
    /// Only so many of the cases that are selected otherwise, drawn by the run's seed.
    pub sample: Option<u32>,
    /// Only these trial ids.
    pub trials: Option<BTreeSet<String>>,
    /// Run until decided, with at most this many complete passes; overrides other repetitions.
    pub passes: Option<u32>,
}

impl Selection {
    /// Whether it selects among cases, and not only flows, variants or repetitions.
    pub fn chooses_cases(&self) -> bool {
        self.trials.is_some()
            || self.sample.is_some()
            || !(self.only.is_empty() && self.exclude.is_empty() && self.tags.is_empty())
    }

    /// Whether it excludes any of a project's trials.
    pub fn is_part(&self) -> bool {
        self.chooses_cases() || self.flow.is_some() || self.variant.is_some()
    }

    /// The selection as typed; empty for all trials.
    pub fn typed(&self) -> Vec<String> {
        let each = |(option, values): (&str, Vec<String>)| -> Vec<String> {
            values.iter().map(|value| format!("--{option} {value}")).collect()
        };
        self.options().into_iter().flat_map(each).collect()
    }

    /// Options that select among a project's trials, with their values.
    pub(crate) fn options(&self) -> [(&'static str, Vec<String>); 6] {
        let one = |value: &Option<String>| value.iter().cloned().collect();
        [
            ("only", self.only.clone()),
            ("exclude", self.exclude.clone()),
            ("tag", self.tags.clone()),
            ("flow", one(&self.flow)),
            ("variant", one(&self.variant)),
            ("filter-sample", one(&self.sample.map(|cases| cases.to_string()))),
        ]
    }
}

/// A selection whose names all exist, with its patterns compiled.
pub(super) struct Wanted<'a> {
    selection: &'a Selection,
    only: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// One pattern of `--only` or `--exclude`, and whether a trial matched it.
struct Pattern {
    glob: GlobMatcher,
    fits: Cell<bool>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(loaded: &Loaded, selection: &'a Selection) -> Result<Self, Vec<Diagnostic>> {
        let mut mistakes = Vec::new();
        let mut matchers = |option: &str, patterns: &[String]| -> Vec<Pattern> {
            let matcher = |pattern: &String| match GlobBuilder::new(pattern).literal_separator(false).build() {
                Ok(glob) => Some(Pattern { glob: glob.compile_matcher(), fits: Cell::new(false) }),
                Err(error) => {
                    let message = format!("`--{option} {pattern}` is not a pattern: {}", error.kind());
                    mistakes.push(Diagnostic::error("bad-glob", "", message));
                    None
                }
            };
            patterns.iter().filter_map(matcher).collect()
        };
        let (only, exclude) = (matchers("only", &selection.only), matchers("exclude", &selection.exclude));
        let tags: BTreeSet<&str> = loaded
            .scenarios
            .iter()
            .flat_map(|source| source.scenario.cases.iter().flat_map(|case| case.tags.iter().map(String::as_str)))
            .collect();
        for tag in selection.tags.iter().filter(|tag| !tags.contains(tag.as_str())) {
            let diagnostic = Diagnostic::error("unknown-tag", "", format!("no case has the tag `{tag}`"));
            mistakes.push(diagnostic.with_help(diagnostic::did_you_mean(tag, tags.iter().copied())));
        }
        let flows: BTreeSet<&str> = loaded.scenarios.iter().flat_map(|source| source.scenario.flows()).collect();
        if let Some(flow) = selection.flow.as_ref().filter(|flow| !flows.contains(flow.as_str())) {
            let diagnostic = Diagnostic::error("unknown-flow", "", format!("no scenario has the flow `{flow}`"));
            mistakes.push(diagnostic.with_help(diagnostic::did_you_mean(flow, flows)));
        }
        let known: BTreeSet<&str> = loaded.scenarios.iter().flat_map(|source| variants(&source.scenario)).collect();
        if let Some(variant) = selection.variant.as_ref().filter(|variant| !known.contains(variant.as_str())) {
            let diagnostic = Diagnostic::error("unknown-variant", "", format!("no scenario has a variant `{variant}`"));
            mistakes.push(diagnostic.with_help(diagnostic::did_you_mean(variant, known)));
        }
        if selection.repeat == Some(0) {
            mistakes.push(Diagnostic::error("repeat-zero", "", "with `--repeat 0` nothing runs"));
        }
        if mistakes.is_empty() { Ok(Self { selection, only, exclude }) } else { Err(mistakes) }
    }

    pub(super) fn wants(&self, id: &str, scenario: &str, case: &Case, lane: &Lane) -> bool {
        let named = |patterns: &[Pattern]| {
            if patterns.is_empty() {
                return false;
            }
            let both = format!("{scenario}/{}", case.case);
            let fits = |glob: &GlobMatcher| glob.is_match(id) || glob.is_match(&case.case) || glob.is_match(&both);
            // Evaluates every pattern: one that matches nothing is a mistake.
            patterns.iter().fold(false, |any, pattern| {
                let fits = fits(&pattern.glob);
                pattern.fits.set(pattern.fits.get() || fits);
                any || fits
            })
        };
        let (only, exclude) = (named(&self.only), named(&self.exclude));
        let of = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|wanted| wanted == own);
        of(&self.selection.flow, &lane.flow)
            && of(&self.selection.variant, &lane.variant)
            && self.selection.trials.as_ref().is_none_or(|trials| trials.contains(id))
            && (self.selection.tags.is_empty() || self.selection.tags.iter().any(|tag| case.tags.contains(tag)))
            && (self.only.is_empty() || only)
            && !exclude
    }
}

/// Error for a pattern that matches nothing: a mistyped name, or a removed case.
pub(super) fn fits_nothing(loaded: &Loaded, selection: &Selection, wanted: &Wanted<'_>) -> Vec<Diagnostic> {
    let options = [("only", &selection.only, &wanted.only), ("exclude", &selection.exclude, &wanted.exclude)];
    let mut mistakes = Vec::new();
    for (option, written, patterns) in options {
        for (text, _) in written.iter().zip(patterns).filter(|(_, pattern)| !pattern.fits.get()) {
            let diagnostic =
                Diagnostic::error("unknown-case", "", format!("`--{option} {text}` fits no case or trial"));
            let help = nearest_case(loaded, text).map(|meant| format!("did you mean `--{option} {meant}`?"));
            mistakes.push(diagnostic.with_help(help.unwrap_or_else(|| SHOWS.into())));
        }
    }
    mistakes
}

/// An error for each declared fault whose lane no trial of its cases has: it would strike nothing.
pub(super) fn in_no_lane(loaded: &Loaded, selection: &Selection) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    for scenario in loaded.scenarios.iter().map(|source| &source.scenario) {
        let name = &scenario.scenario;
        let mut check = |faults: &[DeclaredFault], cases: &[Case], whose: &str| {
            for (fault, named) in faults.iter().filter_map(|fault| Some((fault, fault.lane.as_deref()?))) {
                let repeats = [None, selection.passes.or(selection.repeat)];
                let all =
                    cases.iter().flat_map(|case| repeats.iter().flat_map(|repeat| lanes(scenario, case, *repeat)));
                let all: Vec<Lane> = all.collect();
                if all.iter().any(|lane| fault.is_in(&lane.to_string())) {
                    continue;
                }
                let known: BTreeSet<String> =
                    all.iter().map(|lane| format!("{}.{}", lane.flow, lane.variant)).collect();
                let kind = fault.fault.as_str();
                let message =
                    format!("the fault `{kind}` strikes nothing: no trial of `{whose}` has the lane `{named}`");
                let help = diagnostic::did_you_mean(named, known.iter().map(String::as_str));
                mistakes.push(Diagnostic::error("unknown-lane", "", message).with_help(help));
            }
        };
        check(&scenario.faults, &scenario.cases, name);
        for case in &scenario.cases {
            check(&case.faults, std::slice::from_ref(case), &format!("{name}/{}", case.case));
        }
    }
    mistakes
}

pub(super) const SHOWS: &str = "`ragcheck list` shows all cases and lanes";

fn nearest_case(loaded: &Loaded, pattern: &str) -> Option<String> {
    let cases = loaded.scenarios.iter().flat_map(|source| {
        source.scenario.cases.iter().map(|case| (source.scenario.scenario.as_str(), case.case.as_str()))
    });
    let cases: Vec<String> =
        cases.flat_map(|(scenario, case)| [case.to_owned(), format!("{scenario}/{case}")]).collect();
    diagnostic::nearest(pattern, cases.iter().map(String::as_str)).map(ToOwned::to_owned)
}
