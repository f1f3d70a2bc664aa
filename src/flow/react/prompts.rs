//! The prompts of `react`: files in `prompts/` with sections, and the typed values that fill them in.

use super::budget::{Budget, Usage};
use super::machine::State;
use super::memory::{Note, Reflection, TurnState};
use super::policy::{MOST_RETRIES, MOST_STEPS, Stop};
use super::style::Style;
use super::tools::{ANALYSE, ASSESS, SEARCH};
use crate::flow::template::Value;
use crate::flow::{PromptText, Prompts};

/// The system prompt of every request except the last.
pub(super) const SYSTEM: &str = "system";
pub(super) const ANSWER_SYSTEM: &str = "answer_system";
const GROUNDING: &str = "grounding";
const FAILURE: &str = "failure";
const REFLECTION: &str = "reflection";
const NOTE: &str = "note";
const SYNTHESIS: &str = "synthesis";

pub(super) static PROMPTS: [PromptText; 10] = [
    PromptText::fixed(SYSTEM, include_str!("prompts/system.md")).with_sections(&["Role", "Thinking", "Tools", "Rules"]),
    PromptText::fixed(ANSWER_SYSTEM, include_str!("prompts/answer_system.md"))
        .with_sections(&["Role", "Sources", "Thinking", "Form"]),
    PromptText::template(
        GROUNDING,
        include_str!("prompts/grounding.md"),
        &["step", "most_steps", "approach", "retries_left", "tokens_left", "unavailable", "findings"],
    )
    .with_sections(&["State", "Objective", "Findings"]),
    PromptText::template(FAILURE, include_str!("prompts/failure.md"), &["kind", "trouble"])
        .with_sections(&["Failure", "Task"]),
    PromptText::template(REFLECTION, include_str!("prompts/reflection.md"), &["trigger", "approach", "text"]),
    PromptText::template(NOTE, include_str!("prompts/note.md"), &["kind", "text"]),
    PromptText::template(SYNTHESIS, include_str!("prompts/synthesis.md"), &["grounded", "stopped", "detailed"])
        .with_sections(&["Task", "Style"]),
    PromptText::plain(SEARCH, include_str!("prompts/search_documents_for_facts.md")),
    PromptText::plain(ASSESS, include_str!("prompts/assess_search_results.md")),
    PromptText::plain(ANALYSE, include_str!("prompts/record_failure_analysis.md")),
];

fn fill(prompts: &Prompts, name: &str, values: &[(&str, Value<'_>)]) -> String {
    prompts.fill(name, values).unwrap_or_default()
}

/// State and goal of the turn, sent at the beginning of each cycle.
pub(super) fn grounding(
    prompts: &Prompts,
    state: &TurnState,
    unavailable: &[String],
    (budget, used): (Budget, Usage),
) -> String {
    let progress = &state.progress;
    let begins = u32::from(progress.state == State::Thinking);
    let step = (progress.steps + begins).min(MOST_STEPS).to_string();
    let retries = (MOST_RETRIES - progress.retries.min(MOST_RETRIES)).to_string();
    // In thousands, so that a difference of one token changes no message.
    let left = budget.limit.saturating_sub(used.total()) / 1_000;
    let findings: Vec<String> = state
        .findings
        .iter()
        .map(|finding| format!("- step {} ({}): {}", finding.step, finding.approach.name(), finding.summary))
        .collect();
    fill(
        prompts,
        GROUNDING,
        &[
            ("step", Value::Text(&step)),
            ("most_steps", Value::Text(&MOST_STEPS.to_string())),
            ("approach", Value::Text(progress.approach.name())),
            ("retries_left", Value::Text(&retries)),
            ("tokens_left", Value::Text(&format!("about {left} thousand"))),
            ("unavailable", Value::Text(&unavailable.join(", "))),
            ("findings", Value::Text(&findings.join("\n"))),
        ],
    )
}

/// A failure, with the request to analyse it.
pub(super) fn failure(prompts: &Prompts, kind: &str, trouble: &str) -> String {
    fill(prompts, FAILURE, &[("kind", Value::Text(kind)), ("trouble", Value::Text(trouble))])
}

/// A lesson, as sent in every later step.
pub(super) fn reflection(prompts: &Prompts, reflection: &Reflection) -> String {
    let Reflection { trigger, approach, text } = reflection;
    fill(
        prompts,
        REFLECTION,
        &[("trigger", Value::Text(trigger)), ("approach", Value::Text(approach)), ("text", Value::Text(text))],
    )
}

/// A decision or preference of the user, as sent in every later request.
pub(super) fn note(prompts: &Prompts, note: &Note) -> String {
    fill(prompts, NOTE, &[("kind", Value::Text(note.kind.name())), ("text", Value::Text(&note.text))])
}

/// The request for the answer.
pub(super) fn synthesis(prompts: &Prompts, state: &TurnState) -> String {
    let stopped = match state.progress.stop {
        Some(Stop::Steps) => "no step is left",
        Some(Stop::Retries) => "no retry is left",
        _ => "",
    };
    fill(
        prompts,
        SYNTHESIS,
        &[
            ("grounded", Value::Flag(!state.relevant.is_empty())),
            ("stopped", Value::Text(stopped)),
            ("detailed", Value::Flag(state.style == Style::Detailed)),
        ],
    )
}
