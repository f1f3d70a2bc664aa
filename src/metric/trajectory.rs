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
//! A log is whole if it ends with an efficiency. A failure of the model is not a failure of an approach. What a turn continues without is read from its moves and
//! results, not from its notices; a turn whose state cannot be stored has no changes to store. A flow that logs
//! nothing has no units.

use super::catalogue::Registered;
use super::trajectory_session::Session;
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView, quote, turns::executed};
use crate::settings::catalogue::{Parameter, Units as Number, Values};
use crate::trace::citations::numbers_of;
use crate::trace::{Logged, ModelCalled, Reply, Role, ToolOutcome, Trace, TurnOutcome, What};
use std::collections::{BTreeMap, BTreeSet};

/// Limit on steps.
const MOST: Parameter = Parameter { name: "most", values: Values::Count, default: Some("5") };

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("step_limit", |asked| Box::new(Trajectory::Steps(asked.parameter("most").parse().unwrap_or(5))))
        .about("Of the turns with logged steps, those in which no more steps than the limit ran a call.")
        .takes(&[MOST]),
    Registered::rate("reasoned_calls", |_| Box::new(Trajectory::Reasoned))
        .about("Of the searches that ran in logged steps, those with a thought logged before.")
        .counted(Number::Unlimited),
    Registered::rate("approach_changes", |_| Box::new(Trajectory::Approach))
        .about(
            "Of the failures of a kind that their turn had before, those after which the next step \
             takes another approach.",
        )
        .counted(Number::Unlimited),
    Registered::rate("lessons_shown", |_| Box::new(Trajectory::Lessons))
        .about("Of the logged reflections, those that every later completion of their turn was shown.")
        .counted(Number::Unlimited),
    Registered::rate("failure_contexts", |_| Box::new(Trajectory::Contexts))
        .about("Of the logged failures, those logged with the state and all messages that the model was shown last.")
        .counted(Number::Unlimited),
    Registered::rate("compaction_savings", |_| Box::new(Trajectory::Savings))
        .about("Of the compactions of the context, those that made it at least a fifth smaller.")
        .counted(Number::Unlimited),
    Registered::rate("compaction_keeps", |_| Box::new(Trajectory::Keeps))
        .about(
            "Of the compactions of the context, those after which the model was shown all decisions, \
             preferences and lessons.",
        )
        .counted(Number::Unlimited),
    Registered::rate("irrelevant_citation_rate", |_| Box::new(Trajectory::Citations))
        .about(
            "Of the citations of answers to graded searches, those of what was not graded relevant; lower is better.",
        )
        .lower_is_better()
        .counted(Number::Unlimited),
    Registered::rate("degradation_notices", |_| Box::new(Trajectory::Notices))
        .about("Of the things that turns continued without, those that the user was informed of.")
        .counted(Number::Unlimited),
    Registered::rate("session_budget", |_| Box::new(Trajectory::Budget))
        .about("Of the completions, those after which the session's tokens are within its limit.")
        .counted(Number::OfCompletions),
    Registered::rate("state_persistence", |_| Box::new(Trajectory::Persistence))
        .about(
            "Of the changes of state, those that were stored before anything else was done; and of the \
             restarts, those that go on there.",
        )
        .counted(Number::Unlimited),
];

/// Things that a turn continues without after a move, and the subject of the notice about each.
const MOVES: [(&str, &str); 7] = [
    ("steps_used_up", "stopped"),
    ("retries_used_up", "stopped"),
    ("budget_used_up", "stopped"),
    ("timeout", "stopped"),
    ("model_unavailable", "stopped"),
    ("shorter_context", "context"),
    ("partial_result", "partial"),
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

impl Metric for Trajectory {
    fn units(&self) -> &'static str {
        match self {
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
        }
    }

    fn members(&self) -> &'static [Member] {
        match self {
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
        }
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        // Where no completion reports tokens, the log holds estimates alone.
        if *self == Self::Budget && !view.turns.iter().flat_map(TurnView::models).any(reports_tokens) {
            return Vec::new();
        }
        let mut sessions: BTreeMap<u32, Session<'_>> = BTreeMap::new();
        let mut units = Vec::new();
        for turn in view.turns.iter().filter(|turn| logs(turn).next().is_some()) {
            let session = sessions.entry(turn.conversation).or_default();
            let seen = match self {
                Self::Steps(most) => steps(turn, view.trace, *most),
                Self::Reasoned => reasoned(turn, view.trace),
                Self::Approach => approaches(turn),
                Self::Lessons => lessons(turn),
                Self::Contexts => contexts(turn),
                Self::Savings => savings(turn),
                Self::Keeps => session.keeps(turn),
                Self::Citations => {
                    units.extend(citations(turn));
                    continue;
                }
                Self::Notices => notices(turn, view.trace),
                Self::Budget => session.budget(turn),
                Self::Persistence => session.persistence(turn),
            };
            units.extend(seen.into_iter().map(|(unit, held)| {
                let unit = if unit.is_empty() { turn.label() } else { format!("{}, {unit}", turn.label()) };
                match held {
                    Ok(()) => Observation::success(unit),
                    Err(seen) => Observation::failure(unit, seen.words),
                }
            }));
        }
        units
    }
}

/// Units of a turn, each with its name within the turn.
pub(super) type Units = Vec<(String, Held)>;

/// The log of a turn.
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

/// Success where `held`, else what was seen.
pub(super) fn hold(held: bool, seen: impl FnOnce() -> String) -> Held {
    if held { Ok(()) } else { Err(Seen::new(seen())) }
}

/// Whether a completion says how many tokens it used.
pub(super) fn reports_tokens(called: &ModelCalled) -> bool {
    let Reply::Completion(completion) = &called.reply else { return false };
    completion.input_tokens.is_some() || completion.output_tokens.is_some()
}

fn steps(turn: &TurnView<'_>, trace: &Trace, most: u32) -> Units {
    let (mut thought, mut logged, mut searches) = (None, BTreeSet::new(), BTreeSet::new());
    for what in &turn.events {
        match what {
            What::Logged(Logged::Thought { step, .. }) => thought = Some(*step),
            What::ToolCalled(call) if executed(call) => {
                logged.extend(thought);
                if matches!(trace.role(&call.tool), Role::Knowledge | Role::External) {
                    searches.insert(call.call);
                }
            }
            _ => {}
        }
    }
    let counts = |entry: &Logged| {
        matches!(
            entry,
            Logged::Thought { .. } | Logged::Grounding { .. } | Logged::Failure { .. } | Logged::Efficiency { .. }
        )
    };
    if !logs(turn).any(counts) {
        return Vec::new();
    }
    let steps = u32::try_from(logged.len().max(searches.len())).unwrap_or(u32::MAX);
    let wrong = logs(turn).find_map(|entry| match entry {
        Logged::Efficiency { useful, actual } => {
            let graded = useful_grades(turn);
            let so = *useful <= graded && (*useful == 0) == (graded == 0) && useful <= actual;
            (!so).then(|| format!("{useful} of {actual} steps are logged as useful, by the grades {graded}"))
        }
        _ => None,
    });
    let held = wrong.map_or_else(|| hold(steps <= most, || format!("{steps} steps")), |seen| Err(Seen::new(seen)));
    vec![(String::new(), held)]
}

/// Searches of a turn that found a source which was graded relevant for the first time.
fn useful_grades(turn: &TurnView<'_>) -> u32 {
    let mut known = BTreeSet::new();
    let graded = logs(turn).filter_map(|entry| match entry {
        Logged::Graded { relevant, .. } => Some(relevant),
        _ => None,
    });
    let new = graded.filter(|relevant| {
        let before = known.len();
        known.extend(relevant.iter());
        known.len() > before
    });
    u32::try_from(new.count()).unwrap_or(u32::MAX)
}

/// Whether the log of a turn is whole: it ends with what the turn took.
fn is_whole(turn: &TurnView<'_>) -> bool {
    logs(turn).any(|entry| matches!(entry, Logged::Efficiency { .. }))
}

fn reasoned(turn: &TurnView<'_>, trace: &Trace) -> Units {
    let unlogged = !is_whole(turn);
    let (mut thought, mut status, mut number, mut units) = (false, unlogged, 0, Vec::new());
    for what in &turn.events {
        match what {
            What::Logged(Logged::Thought { text, .. }) => thought = !text.trim().is_empty(),
            What::Logged(Logged::Status { text, .. }) => status |= !text.trim().is_empty(),
            What::ToolCalled(call) if trace.role(&call.tool) == Role::Knowledge && executed(call) => {
                number += 1;
                let held = match (std::mem::take(&mut thought), status) {
                    (true, true) => Ok(()),
                    (false, _) => Err(Seen::new("no thought was logged before it")),
                    (true, false) => Err(Seen::new("no status was logged before it")),
                };
                status = unlogged;
                units.push((format!("search {number}"), held));
            }
            _ => {}
        }
    }
    units
}

/// The approach of an entry, and its kind of failure.
fn step_of(entry: &Logged) -> Option<(u32, &str, Option<&str>)> {
    match entry {
        Logged::Thought { step, approach, .. } => Some((*step, approach, None)),
        Logged::Failure { kind, .. } if kind == "model_unavailable" => None,
        Logged::Failure { step, approach, kind, .. } => Some((*step, approach, Some(kind))),
        _ => None,
    }
}

fn approaches(turn: &TurnView<'_>) -> Units {
    let steps: Vec<_> = logs(turn).filter_map(step_of).collect();
    let (mut before, mut units) = (BTreeSet::new(), Vec::new());
    for (at, (step, approach, kind)) in steps.iter().enumerate() {
        let Some(kind) = kind else { continue };
        let again = !before.insert(kind);
        let Some((_, next, _)) = steps[at..].iter().find(|later| again && later.0 > *step) else { continue };
        let held = hold(next != approach, || format!("{} again, and again by {}", quote(kind, 40), quote(next, 40)));
        units.push((format!("step {step}"), held));
    }
    units
}

fn lessons(turn: &TurnView<'_>) -> Units {
    let mut units = Vec::new();
    for (at, what) in turn.events.iter().enumerate() {
        let What::Logged(Logged::Reflection { step, shown, trigger, .. }) = what else { continue };
        let later = || {
            let after = turn.events[at..].iter();
            after.filter_map(|what| if let What::ModelCalled(called) = what { Some(called) } else { None })
        };
        if later().next().is_some() {
            let missing = later().find(|called| !called.shown.contains(shown));
            let held = missing.map_or(Ok(()), |called| {
                Err(Seen::new(format!("{}: completion {} was not shown it", quote(trigger, 40), called.call)))
            });
            units.push((format!("reflection on step {step}"), held));
        }
    }
    units.extend(
        unanalysed(turn).into_iter().map(|step| {
            (format!("failure in step {step}"), Err(Seen::new("no lesson was logged before the next step")))
        }),
    );
    units
}

/// Steps whose failure was followed by another step without a reflection between them, in a whole log.
fn unanalysed(turn: &TurnView<'_>) -> Vec<u32> {
    let (mut due, mut found) = (None, Vec::new());
    if !is_whole(turn) {
        return found;
    }
    for entry in logs(turn) {
        match entry {
            Logged::Failure { step, kind, .. } if kind != "model_unavailable" => due = Some(*step),
            Logged::Reflection { .. } => due = None,
            Logged::Thought { .. } => found.extend(due.take()),
            _ => {}
        }
    }
    found
}

fn contexts(turn: &TurnView<'_>) -> Units {
    let (mut last, mut units): (&[String], Units) = (&[], Vec::new());
    for what in &turn.events {
        match what {
            What::ModelCalled(called) => last = &called.shown,
            What::Logged(Logged::Failure { step, kind, context, .. }) => {
                let logged = context["shown"].as_array().map_or(&[][..], Vec::as_slice);
                let missing = last.iter().filter(|one| !logged.iter().any(|shown| shown == *one)).count();
                let held = if context["state"].is_string() {
                    hold(missing == 0, || format!("{missing} of {} messages are not in the log", last.len()))
                } else {
                    Err(Seen::new("the state is not in the log"))
                };
                units.push((format!("{} in step {step}", quote(kind, 40)), held));
            }
            _ => {}
        }
    }
    units
}

fn savings(turn: &TurnView<'_>) -> Units {
    let done = logs(turn).filter_map(|entry| match entry {
        Logged::Compacted { before, after, done: true, .. } => Some((*before, *after)),
        _ => None,
    });
    let unit = |(number, (before, after)): (u32, (u64, u64))| {
        let held = after.saturating_mul(5) <= before.saturating_mul(4);
        (format!("compaction {number}"), hold(held, || format!("{before} tokens before, {after} after")))
    };
    (1..).zip(done).map(unit).collect()
}

/// Units of `irrelevant_citation_rate`.
fn citations(turn: &TurnView<'_>) -> Vec<Observation> {
    let Some(answer) = turn.answer() else { return Vec::new() };
    let graded = logs(turn).filter_map(|entry| match entry {
        Logged::Graded { relevant, .. } => Some(relevant),
        _ => None,
    });
    let relevant: BTreeSet<&String> = graded.flatten().collect();
    let of_source = |id: &String| {
        let unit = format!("{}, {}", turn.label(), quote(id, 60));
        if relevant.contains(id) {
            Observation::failure(unit, "")
        } else {
            Observation::occurrence(unit, "cited, and not graded relevant")
        }
    };
    let sources = answer.sources.iter().map(|source| of_source(&source.id));
    let most = answer.sources.len();
    let numbers = numbers_of(&answer.text);
    let outside = numbers.into_iter().filter(|number| *number == 0 || *number > most);
    let outside = outside.map(|number| {
        Observation::occurrence(format!("{}, [{number}]", turn.label()), format!("matches none of {most} sources"))
    });
    sources.chain(outside).collect()
}

/// Subjects of the notices that a turn owes, derived from its events.
fn lacks(turn: &TurnView<'_>, trace: &Trace) -> BTreeSet<&'static str> {
    let mut lacks = BTreeSet::new();
    let mut search_failed = false;
    for what in &turn.events {
        match what {
            What::Moved(moved) => lacks.extend(MOVES.iter().filter(|(on, _)| *on == moved.on).map(|(_, about)| *about)),
            What::ToolCalled(call) if trace.role(&call.tool) == Role::Knowledge && executed(call) => {
                search_failed = matches!(call.outcome, ToolOutcome::Failed { .. });
            }
            What::Logged(Logged::Compacted { done: false, .. }) => {
                lacks.insert("window");
            }
            What::Logged(Logged::StartedAfresh { .. }) => {
                lacks.insert("session");
            }
            What::Logged(Logged::Estimated { most, warn: Some(warn), .. }) if most > warn => {
                lacks.insert("budget");
            }
            _ => {}
        }
    }
    if search_failed {
        lacks.insert("search");
    }
    if turn.answer().is_some_and(|answer| answer.sources.is_empty()) {
        lacks.insert("own_knowledge");
    }
    lacks
}

/// Whether the notice about a shorter context names why the model failed before: the HTTP status or the kind of the
/// failure, and a time-out only if it was one.
fn names_cause(notice: &str, turn: &TurnView<'_>) -> Held {
    let until = turn.events.iter().position(|what| matches!(what, What::Moved(moved) if moved.on == "shorter_context"));
    let failed = turn.events[..until.unwrap_or(turn.events.len())].iter().rev().find_map(|what| match what {
        What::ModelCalled(ModelCalled { reply: Reply::Failure { kind, .. }, attempts, .. }) => Some((kind, attempts)),
        _ => None,
    });
    let Some((kind, attempts)) = failed else { return Ok(()) };
    let status = attempts.last().and_then(|attempt| attempt.status).filter(|status| *status >= 400);
    let says_late = ["in time", "timed out", "timeout", "time-out", "too slow"];
    let late = says_late.iter().any(|words| notice.to_lowercase().contains(words));
    let kinds = [kind.to_lowercase(), kind.to_lowercase().replace('_', " ")];
    let kind_named = kinds.iter().any(|kind| notice.to_lowercase().contains(kind));
    let named = status.is_none_or(|status| kind_named || notice.contains(&status.to_string()));
    let cause = status.map_or_else(|| quote(kind, 40), |status| format!("{}, HTTP {status}", quote(kind, 40)));
    hold(named && late == (kind == "timeout"), || format!("the notice does not name the cause, {cause}"))
}

fn notices(turn: &TurnView<'_>, trace: &Trace) -> Units {
    let Some(ended) = turn.ended() else { return Vec::new() };
    let got = match &ended.outcome {
        TurnOutcome::Answered(answer) => &answer.text,
        TurnOutcome::Failed { message, .. } => message,
    };
    let told = |about: &str| {
        let mut of = logs(turn).filter_map(|entry| match entry {
            Logged::Notice { about: subject, text } if subject == about => Some(text),
            _ => None,
        });
        of.find(|text| got.contains(text.as_str()))
    };
    let unit = |about: &'static str| {
        let held = match told(about) {
            None => Err(Seen::new("the user was not informed of it")),
            Some(text) if about == "context" => names_cause(text, turn),
            Some(_) => Ok(()),
        };
        (format!("`{about}`"), held)
    };
    lacks(turn, trace).into_iter().map(unit).collect()
}
