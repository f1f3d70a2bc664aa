//! Compares the log of an agent that reasons in steps with its recorded actions.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `step_limit(most=5)` | turns with steps | no more steps than the limit ran a call, by the log or by the searches; a refused call never ran; the logged efficiency is that of the grades |
//! | `reasoned_calls` | searches that ran | a thought was logged for each before it ran and, in a whole log, a status |
//! | `approach_changes` | failures of a kind seen before in the turn, followed by a step | that step takes another approach |
//! | `failure_contexts` | logged failures | the context names the state and every message of the last completion |
//! | `lessons_shown` | reflections with a completion after them in their turn; in a whole log, failures followed by a step | every such completion was shown the lesson; the failure has a lesson |
//! | `compaction_savings` | compactions that were done | the context became at least a fifth smaller |
//! | `compaction_keeps` | compactions that were done, with a completion after them | it was shown every decision, preference and lesson |
//! | `irrelevant_citation_rate` | sources of answers, and numbers that stand for none | counted: not graded relevant in its turn |
//! | `degradation_notices` | things that a turn had to continue without | the answer or the error has a notice about it, which names the cause if the model failed |
//! | `session_budget` | completions | the session's tokens are within its limit and the sum of its completions, and the log agrees with the model's report; no unit of a trial in which no completion reports any |
//! | `state_persistence` | changes of state, and turns that go on after a restart | stored before anything else is done; goes on in the state stored last |
//!
//! A log is whole if it ends with an efficiency. A failure of the model is not a failure of an approach. What a turn
//! continues without is read from its moves and results, not from its notices; a turn whose state cannot be stored has
//! no changes to store. A flow that logs nothing has no units.
//!
//! The units are found in `steps` (steps, searches, failures), `answers` (citations, notices) and `session` (what is
//! carried from turn to turn).

mod answers;
mod session;
mod steps;

use super::catalogue::Registered;
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView};
use crate::settings::catalogue::{Parameter, Units as Number, Values};
use crate::trace::{Logged, ModelCalled, Reply, What};
use session::Session;
use std::collections::BTreeMap;

/// Limit on steps.
const MOST: Parameter = Parameter { name: "most", values: Values::Count, default: Some("5") };

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("step_limit", |asked| Trajectory::Steps(asked.parameter("most").parse().unwrap_or(5)).metric())
        .about("Of the turns with logged steps, those in which no more steps than the limit ran a call.")
        .takes(&[MOST]),
    Registered::rate("reasoned_calls", |_| Trajectory::Reasoned.metric())
        .about("Of the searches that ran in logged steps, those with a thought logged before.")
        .counted(Number::Unlimited),
    Registered::rate("approach_changes", |_| Trajectory::Approach.metric())
        .about(
            "Of the failures of a kind that their turn had before, those after which the next step \
             takes another approach.",
        )
        .counted(Number::Unlimited),
    Registered::rate("lessons_shown", |_| Trajectory::Lessons.metric())
        .about("Of the logged reflections, those that every later completion of their turn was shown.")
        .counted(Number::Unlimited),
    Registered::rate("failure_contexts", |_| Trajectory::Contexts.metric())
        .about("Of the logged failures, those logged with the state and all messages that the model was shown last.")
        .counted(Number::Unlimited),
    Registered::rate("compaction_savings", |_| Trajectory::Savings.metric())
        .about("Of the compactions of the context, those that made it at least a fifth smaller.")
        .counted(Number::Unlimited),
    Registered::rate("compaction_keeps", |_| Trajectory::Keeps.metric())
        .about(
            "Of the compactions of the context, those after which the model was shown all decisions, \
             preferences and lessons.",
        )
        .counted(Number::Unlimited),
    Registered::rate("irrelevant_citation_rate", |_| Trajectory::Citations.metric())
        .about(
            "Of the citations of answers to graded searches, those of what was not graded relevant; lower is better.",
        )
        .lower_is_better()
        .counted(Number::Unlimited),
    Registered::rate("degradation_notices", |_| Trajectory::Notices.metric())
        .about("Of the things that turns continued without, those that the user was informed of.")
        .counted(Number::Unlimited),
    Registered::rate("session_budget", |_| Trajectory::Budget.metric())
        .about("Of the completions, those after which the session's tokens are within its limit.")
        .counted(Number::OfCompletions),
    Registered::rate("state_persistence", |_| Trajectory::Persistence.metric())
        .about(
            "Of the changes of state, those that were stored before anything else was done; and of the \
             restarts, those that go on there.",
        )
        .counted(Number::Unlimited),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trajectory {
    Steps(u32),
    Reasoned,
    Approach,
    Lessons,
    Contexts,
    Savings,
    Keeps,
    Citations,
    Notices,
    Budget,
    Persistence,
}

impl Trajectory {
    fn metric(self) -> Metric {
        let units = match self {
            Self::Steps(_) => "turns with steps",
            Self::Reasoned => "searches",
            Self::Approach => "repeated failures",
            Self::Lessons => "reflections",
            Self::Contexts => "failures",
            Self::Savings | Self::Keeps => "compactions",
            Self::Citations => "citations",
            Self::Notices => "degradations",
            Self::Budget => "completions",
            Self::Persistence => "changes of state",
        };
        let members: &[Member] = match self {
            Self::Steps(_) | Self::Reasoned => {
                &[Member::Log, Member::Sequence, Member::Calls, Member::Outcomes, Member::Answers]
            }
            Self::Lessons | Self::Contexts | Self::Keeps => {
                &[Member::Log, Member::Sequence, Member::Shown, Member::Answers]
            }
            Self::Notices => &[
                Member::Log,
                Member::Sequence,
                Member::Completions,
                Member::Moves,
                Member::Calls,
                Member::Outcomes,
                Member::Sources,
            ],
            Self::Budget => &[Member::Log, Member::Sequence, Member::Completions, Member::Answers],
            Self::Persistence => &[Member::Log, Member::Sequence, Member::Moves, Member::Answers],
            Self::Citations => &[Member::Log, Member::Sequence, Member::Sources],
            Self::Approach | Self::Savings => &[Member::Log, Member::Sequence, Member::Answers],
        };
        Metric { members, ..Metric::new(units, move |view| self.observe(view)) }
    }

    fn observe(self, view: &TrialView<'_>) -> Vec<Observation> {
        // Where no completion reports tokens, the log holds estimates alone.
        if self == Self::Budget && !view.turns.iter().flat_map(TurnView::models).any(reports_tokens) {
            return Vec::new();
        }
        let mut sessions: BTreeMap<u32, Session<'_>> = BTreeMap::new();
        let mut units = Vec::new();
        for turn in view.turns.iter().filter(|turn| logs(turn).next().is_some()) {
            let session = sessions.entry(turn.conversation).or_default();
            let seen = match self {
                Self::Steps(most) => steps::steps(turn, view.trace, most),
                Self::Reasoned => steps::reasoned(turn, view.trace),
                Self::Approach => steps::approaches(turn),
                Self::Lessons => steps::lessons(turn),
                Self::Contexts => steps::contexts(turn),
                Self::Savings => session::savings(turn),
                Self::Keeps => session.keeps(turn),
                Self::Citations => {
                    units.extend(answers::citations(turn));
                    continue;
                }
                Self::Notices => answers::notices(turn, view.trace),
                Self::Budget => session.budget(turn),
                Self::Persistence => session.persistence(turn),
            };
            units.extend(seen.into_iter().map(|(unit, held)| {
                let unit = if unit.is_empty() { turn.label() } else { format!("{}, {unit}", turn.label()) };
                Observation::of(unit, held)
            }));
        }
        units
    }
}

/// Units of a turn, each with its name within the turn.
type Units = Vec<(String, Held)>;

pub(super) fn logs<'a>(turn: &TurnView<'a>) -> impl Iterator<Item = &'a Logged> {
    turn.events.iter().filter_map(|what| if let What::Logged(entry) = what { Some(entry) } else { None })
}

/// The text of a turn's answer without the notices of the agent, which are not the model's words.
pub(super) fn own_words(turn: &TurnView<'_>) -> Option<String> {
    let without = |text: String, entry: &Logged| match entry {
        Logged::Notice { text: notice, .. } => {
            text.replace(&format!("Note: {notice}"), "").replace(notice.as_str(), "")
        }
        _ => text,
    };
    Some(logs(turn).fold(turn.answer()?.text.clone(), without))
}

/// The sources that each logged grading found relevant.
fn graded<'a>(turn: &TurnView<'a>) -> impl Iterator<Item = &'a Vec<String>> {
    logs(turn).filter_map(|entry| if let Logged::Graded { relevant, .. } = entry { Some(relevant) } else { None })
}

/// Whether the log of a turn is whole: it ends with an efficiency.
fn is_whole(turn: &TurnView<'_>) -> bool {
    logs(turn).any(|entry| matches!(entry, Logged::Efficiency { .. }))
}

/// Success where `held`, else what was seen.
pub(super) fn hold(held: bool, seen: impl FnOnce() -> String) -> Held {
    if held { Ok(()) } else { Err(Seen::new(seen())) }
}

/// Whether a completion says how many tokens it used.
pub(super) fn reports_tokens(called: &ModelCalled) -> bool {
    let Reply::Completion(completion) = &called.reply else { return false };
    completion.input_tokens.is_some() || completion.output_tokens.is_some()
}
