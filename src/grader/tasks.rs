//! Lists what to grade: answered turns, each with the question, the answer and the evidence the agent was given.
//!
//! Evidence comes from the trace: the first 160 characters of each passage, or the whole passage if the rubric asks for
//! it and the run folder has it; and full external answers, of this turn and of earlier turns in the conversation.

use crate::cassette::hex;
use crate::plan::{Plan, ResolvedCase};
use crate::trace::{Answer, Arm, Event, Passages, ToolResult, Trace, TrialEnd, TurnOutcome, What, answer_digest};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Answers to grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Answers for which both the knowledge base and the external search returned something (SC-004).
    BothSources,
    All,
}

/// What the judge sees of one turn. Equal contents get equal grades, so each is graded once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Content {
    /// The user's earlier questions in the conversation.
    pub earlier: Vec<String>,
    pub question: String,
    /// The answer, with the sources that it cites.
    pub answer: String,
    /// Passages and external answers that the agent was given, in order of arrival.
    pub evidence: Vec<String>,
}

impl Content {
    /// SHA-256, in hex, over `around` (rubric and model) and all parts, each with its length.
    pub(crate) fn hash(&self, around: &str) -> String {
        let mut hash = Sha256::new();
        let mut add = |kind: u8, text: &str| {
            hash.update([kind]);
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        add(0, around);
        self.earlier.iter().for_each(|text| add(1, text));
        add(2, &self.question);
        add(3, &self.answer);
        self.evidence.iter().for_each(|text| add(4, text));
        hex(&hash.finalize(), 64)
    }
}

/// One answered turn of one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GradingTask {
    pub trial: String,
    /// Ordinals of the conversation and of the turn in it, from 0.
    pub at: (u32, u32),
    /// The turn for display: `turn 2`, or `conversation b, turn 1` in a sequence.
    pub turn: String,
    /// Whether the trial has no other turn.
    pub is_only: bool,
    /// Digest of the answer.
    pub answer: String,
    pub model: String,
    pub content: Content,
}

/// Turns of `trace` selected by `scope`; none for a control or a trial that could not be run. Passages are taken from
/// `whole`, or shortened if it lacks them.
pub(crate) fn tasks(plan: &Plan, trace: &Trace, scope: Scope, whole: &Passages) -> Vec<GradingTask> {
    if trace.lane.arm == Arm::Control || trace.end != TrialEnd::Completed {
        return Vec::new();
    }
    let planned = plan.trials.place_of(&trace.trial).and_then(|place| plan.trials.at(place));
    let case = planned.as_ref().and_then(|trial| plan.case_of(trial));
    let turns = trace.events.iter().filter(|event| matches!(event.what, What::TurnStarted { .. })).count();
    let mut conversations: BTreeMap<u32, Dialogue> = BTreeMap::new();
    let mut found = Vec::new();
    for event in &trace.events {
        let dialogue = conversations.entry(event.conversation).or_default();
        let Some(answer) = dialogue.hear(event, trace, whole) else { continue };
        let both = dialogue.internal && dialogue.external;
        if scope == Scope::All || both {
            let content = Content {
                earlier: dialogue.earlier.clone(),
                question: dialogue.question.clone(),
                answer: words(answer),
                evidence: dialogue.evidence.clone(),
            };
            let turn = label(case, event);
            found.push(GradingTask {
                trial: trace.trial.clone(),
                at: (event.conversation, event.turn),
                turn,
                is_only: turns == 1,
                answer: answer_digest(answer),
                model: trace.evidence.model.clone(),
                content,
            });
        }
    }
    found.sort_by_key(|task| task.at);
    found
}

/// The conversation so far: questions and evidence.
#[derive(Default)]
struct Dialogue {
    earlier: Vec<String>,
    question: String,
    evidence: Vec<String>,
    internal: bool,
    external: bool,
}

impl Dialogue {
    /// Adds one event; returns the answer if the event is one.
    fn hear<'e>(&mut self, event: &'e Event, trace: &Trace, whole: &Passages) -> Option<&'e Answer> {
        match &event.what {
            What::TurnStarted { query } => {
                let before = std::mem::replace(&mut self.question, query.clone());
                if event.turn > 0 {
                    self.earlier.push(before);
                }
                (self.internal, self.external) = (false, false);
            }
            What::TurnEnded(ended) => {
                if let TurnOutcome::Answered(answer) = &ended.outcome {
                    return Some(answer);
                }
            }
            what => {
                if let Some(result) = what.given() {
                    self.find(result, trace, whole);
                }
            }
        }
        None
    }

    fn find(&mut self, result: &ToolResult, trace: &Trace, whole: &Passages) {
        match result {
            ToolResult::Search(search) => {
                self.internal |= !search.hits.is_empty();
                for hit in &search.hits {
                    // The trace has learned texts in full; if excerpts are requested, they are shortened like the
                    // others.
                    let text = whole.text_of(trace, search, hit).filter(|_| !whole.is_empty());
                    self.add(format!("passage {} ({}): {}", hit.id, hit.title, text.unwrap_or(&hit.excerpt)));
                }
            }
            ToolResult::External(found) => {
                self.external = true;
                let pages: Vec<String> =
                    found.citations.iter().map(|page| format!("\npage {} ({})", page.url, page.title)).collect();
                self.add(format!("external answer {}: {}{}", found.result, found.answer, pages.concat()));
            }
            _ => {}
        }
    }

    fn add(&mut self, piece: String) {
        if !self.evidence.contains(&piece) {
            self.evidence.push(piece);
        }
    }
}

fn words(answer: &Answer) -> String {
    let sources: Vec<String> = answer.sources.iter().map(|source| format!("{} {}", source.kind, source.id)).collect();
    let named = if sources.is_empty() { "none".to_owned() } else { sources.join(", ") };
    format!("{}\nSources named: {named}", answer.text)
}

fn label(case: Option<&ResolvedCase>, event: &Event) -> String {
    let several = case.filter(|case| !case.is_single());
    match several.and_then(|case| case.conversations().nth(event.conversation as usize)) {
        Some(one) => format!("conversation {}, turn {}", one.name, event.turn.saturating_add(1)),
        None => format!("turn {}", event.turn.saturating_add(1)),
    }
}

#[cfg(test)]
impl GradingTask {
    /// The first turn of a trial, with that content.
    pub(super) fn sample(trial: &str, content: Content) -> Self {
        let (turn, answer) = ("turn 1".to_owned(), "0123456789abcdef".to_owned());
        Self { trial: trial.to_owned(), at: (0, 0), turn, is_only: true, answer, model: "m".to_owned(), content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, searching_itself, story};
    use crate::trace::{NamedPassage, PASSAGES, PassageText, PassageWriter, Searched};

    const CASE: &str = "[{case: a, turns: [{ask: q}, {ask: r}]}]";

    fn both() -> (Plan, Trace) {
        let plan = plan(CASE, "[]", 1);
        let sources = [("internal", "doc#1")];
        let trace = story(&plan, 0).turn("first").search(&["doc#1"]).answer("so", &sources).turn("second");
        let trace = trace.search(&["doc#1"]).external("result-1").answer("thus", &sources).done();
        (plan, trace)
    }

    #[test]
    fn only_answers_for_which_both_sources_gave_something_are_graded_unless_all_are() {
        let (plan, trace) = both();
        let found = tasks(&plan, &trace, Scope::BothSources, &Passages::default());
        assert_eq!(found.iter().map(|one| one.turn.as_str()).collect::<Vec<_>>(), ["turn 2"]);
        assert_eq!(found[0].content.earlier, ["first"]);
        assert_eq!(found[0].content.evidence.len(), 2, "a passage found twice is shown once: {found:?}");
        assert!(found[0].content.answer.ends_with("Sources named: internal doc#1"));
        assert_eq!(tasks(&plan, &trace, Scope::All, &Passages::default()).len(), 2);
        assert!(!found[0].is_only, "its trial has another turn, which is not graded");
    }

    #[test]
    fn what_a_flow_searched_itself_is_evidence_as_what_a_tool_found() {
        let (plan, trace) = both();
        let own = searching_itself(&trace);
        assert_ne!(own.events, trace.events);
        let of = |trace: &Trace| tasks(&plan, trace, Scope::BothSources, &Passages::default());
        assert_eq!(of(&own), of(&trace));
    }

    #[test]
    fn a_passage_that_the_run_folder_holds_is_shown_whole_and_another_one_shortened() {
        let (plan, mut trace) = both();
        let (base, id, title) = ("desk".into(), "doc#1".into(), "Doc".into());
        let passage = NamedPassage::of(PassageText { base, id, title, text: "two years ".repeat(40) });
        let names = [("doc#1".to_owned(), passage.name().to_owned())].into();
        trace.passages = vec![Searched { base: "desk".into(), passages: names }];
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = PassageWriter::new(Vec::new(), &Passages::default());
        writer.add(&[passage.clone().into()]).expect("written");
        std::fs::write(folder.path().join(PASSAGES), writer.out()).expect("a file");
        let whole = Passages::read(folder.path(), |_| true).expect("reads");
        let shown = tasks(&plan, &trace, Scope::BothSources, &whole);
        assert!(shown[0].content.evidence[0].ends_with(&passage.text), "{shown:?}");
        let shortened = tasks(&plan, &trace, Scope::BothSources, &Passages::default());
        assert!(!shortened[0].content.evidence[0].contains("two years"), "{shortened:?}");
    }

    #[test]
    fn a_turn_without_an_answer_and_a_trial_that_could_not_run_give_nothing() {
        let plan = plan(CASE, "[]", 1);
        let failed = story(&plan, 0).turn("q").search(&["doc#1"]).external("result-1").fail("timeout").done();
        assert_eq!(tasks(&plan, &failed, Scope::All, &Passages::default()), []);
        let (_, mut trace) = both();
        trace.lane.arm = Arm::Control;
        assert_eq!(tasks(&plan, &trace, Scope::All, &Passages::default()), []);
    }

    #[test]
    fn any_part_of_a_content_changes_its_hash_and_parts_cannot_run_into_each_other() {
        let content = |earlier: &[&str], question: &str, evidence: &[&str]| Content {
            earlier: earlier.iter().map(ToString::to_string).collect(),
            question: question.into(),
            answer: "a".into(),
            evidence: evidence.iter().map(ToString::to_string).collect(),
        };
        let hashes = [
            content(&[], "q", &["e"]).hash("r"),
            content(&[], "q", &["e"]).hash("s"),
            content(&["q"], "q", &["e"]).hash("r"),
            content(&[], "qa", &["e"]).hash("r"),
            content(&[], "q", &["e", "f"]).hash("r"),
            content(&[], "q", &["ef"]).hash("r"),
        ];
        assert_eq!(hashes.iter().collect::<std::collections::BTreeSet<_>>().len(), hashes.len());
        assert_eq!(hashes[0].len(), 64);
    }
}
