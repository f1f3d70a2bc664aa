//! The lines that a case would notice a defect by: filled in from a trace of it, and only if each of its trials that pass meets
//! them.

use super::Sound;
use super::defects::Defect;
use crate::gate::{Evaluator, Verdict};
use crate::platform::yaml;
use crate::scenario::Expectation;
use crate::suite::evaluation::ScoreError;
use crate::trace::text::quote;
use crate::trace::{Grades, Role, ToolCalled, ToolOutcome, ToolResult, Trace, TurnOutcome, What};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl Sound {
    /// The lines to add to each of these cases, of which the place of a trace is given; no lines for one whose passing trials
    /// do not all meet them.
    ///
    /// # Errors
    /// If the run cannot be evaluated with these lines.
    pub(super) fn proposed(
        &self,
        defect: &Defect,
        silent: &BTreeMap<String, usize>,
    ) -> Result<BTreeMap<String, String>, ScoreError> {
        let filled: BTreeMap<&String, (String, bool)> =
            silent.iter().map(|(case, place)| (case, filled(defect.lines, &self.traces[*place]))).collect();
        let missed = self.missed(&filled)?;
        let lines = |(case, (lines, _)): (&String, (String, bool))| {
            (case.clone(), if missed.contains(case) { String::new() } else { lines })
        };
        Ok(filled.into_iter().map(lines).collect())
    }

    /// The cases of which a trial passes, and does not with whole lines among these.
    fn missed(&self, filled: &BTreeMap<&String, (String, bool)>) -> Result<BTreeSet<String>, ScoreError> {
        let case_of = |scenario: &str, case: &str| format!("{scenario}/{case}");
        let (mut plan, mut changed) = (self.plan.clone(), BTreeSet::new());
        for scenario in &mut plan.scenarios {
            for planned in &mut scenario.cases {
                let name = case_of(&scenario.name, &planned.case.case);
                let Some((lines, true)) = filled.get(&name) else { continue };
                planned.case.expect = with(planned.case.expect.as_ref(), lines);
                changed.insert(name);
            }
        }
        let wrong = |error| ScoreError::Evaluation { file: self.file.clone(), error };
        let examiner = Evaluator::with_grades(&plan, Grades::default()).map_err(wrong)?.examiner();
        let misses = |place: &usize| {
            let trace = &self.traces[*place];
            let case = case_of(&trace.scenario, &trace.case);
            let examined = changed.contains(&case).then(|| examiner.examine(trace, &self.passages.of(trace)));
            examined.map(|examined| Ok((case, examined?.result().verdict != Verdict::Pass)))
        };
        let found: Result<Vec<(String, bool)>, _> = self.passing.par_iter().filter_map(misses).collect();
        Ok(found.map_err(wrong)?.into_iter().filter_map(|(case, is_missed)| is_missed.then_some(case)).collect())
    }
}

/// An expectation with more lines; `None` if they are no expectation.
fn with(expect: Option<&Expectation>, lines: &str) -> Option<Expectation> {
    let mut whole = serde_json::to_value(expect.cloned().unwrap_or_default()).ok()?;
    merge(&mut whole, yaml::read(lines).ok()?);
    serde_json::from_value(whole).ok()
}

/// Adds the members of one value to another; lists are joined.
fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(more)) => into.extend(more),
        (into, more) => *into = more,
    }
}

/// The lines with the trace's own tools, passages and words in place of the words in capitals, and whether none is left for
/// people to replace.
fn filled(lines: &str, trace: &Trace) -> (String, bool) {
    let whats = || trace.events.iter().map(|event| &event.what);
    let calls: Vec<&ToolCalled> = whats().filter_map(What::tool_call).collect();
    let of_role = |role: Role| calls.iter().find(|call| trace.role(&call.tool) == role).map(|call| &*call.tool);
    let ran: Vec<&str> =
        calls.iter().filter(|call| matches!(call.outcome, ToolOutcome::Ok(_))).map(|call| &*call.tool).collect();
    let second = ran.iter().position(|tool| Some(tool) != ran.first()).map(|at| ran[at]);
    let search = trace.searches().next();
    let answer = whats().find_map(What::answer);
    let error = whats().filter_map(What::ended).find_map(|end| match &end.outcome {
        TurnOutcome::Failed { kind, .. } => Some(kind.as_str()),
        TurnOutcome::Answered(_) => None,
    });
    let keyword = calls.iter().find_map(|call| match &call.outcome {
        ToolOutcome::Ok(ToolResult::Indexed(index)) => index.keywords.first().map(String::as_str),
        _ => None,
    });
    let known = [
        ("SEARCH_TOOL", of_role(Role::Knowledge)),
        ("EXTERNAL_TOOL", of_role(Role::External)),
        ("RESPONSE_TOOL", of_role(Role::Respond)),
        ("FIRST_TOOL", ran.first().copied()),
        ("SECOND_TOOL", second),
        ("CALLED", ran.first().copied()),
        ("PASSAGE", search.and_then(|search| search.hits.first()).map(|hit| hit.id.as_str())),
        ("BASE", search.map(|search| search.kb_id.as_str())),
        ("DOCUMENT", answer.and_then(|answer| answer.sources.first()).map(|source| source.id.as_str())),
        ("KIND", error),
        ("KEYWORD", keyword),
        ("CLAIMS_INTERNAL", answer.map(|answer| if answer.used_internal_kb { "true" } else { "false" })),
        ("CLAIMS_EXTERNAL", answer.map(|answer| if answer.used_external_kb { "true" } else { "false" })),
    ];
    let mut words = lines
        .split(|letter: char| !letter.is_ascii_uppercase() && letter != '_')
        .filter(|word| word.contains(|letter: char| letter.is_ascii_uppercase()));
    let is_whole = words.all(|word| known.iter().any(|(name, value)| *name == word && value.is_some()));
    let mut out = lines.to_owned();
    for (word, value) in known {
        if let Some(value) = value {
            out = out.replace(word, &quote(value, 60));
        }
    }
    (out, is_whole)
}
