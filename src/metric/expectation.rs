//! Checks of a trace against the expectations of its case and turns.
//!
//! An expectation on a turn sees that turn. One on the case sees all turns: calls, keywords and retries over all of
//! them, `tokens` and `cost` as their sum, `within` and what no answer may do on each, and the rest of `answer`, `sources`,
//! `context` and `error` on the last. Every turn must answer unless an error is expected of it, whether or not anything else is. The control arm
//! is inverted: history is withheld there, so at least one context probe must fail.

mod answer;
mod probes;

pub(super) use probes::{probe_failure, probed};

use super::calls::{self, Patterns};
use super::text_match::contains;
use super::{Check, Held, Seen, TrialView, TurnView, keywords, quote, taken, trajectory};
use crate::plan::{PlannedCase, ResolvedCase};
use crate::scenario::expect::{AnswerExpectation, ErrorExpectation, Expectation, RetryExpectation};
use crate::settings::TimeSpan;
use crate::trace::text::plural;
use crate::trace::{Answer, Arm, Member, TurnOutcome};
use serde_json::Value;
use std::collections::BTreeMap;

/// Description of a check, and whether it holds.
type Checked = (String, Held);

/// Checks all expectations of the case of `view`; `patterns` must be compiled from that case.
pub(crate) fn checks(view: &TrialView<'_>, patterns: &Patterns) -> Vec<Check> {
    if view.trial.lane.arm == Arm::Control {
        return vec![probes::control(view)];
    }
    let mut checks: Vec<Check> =
        view.plan.rewards.get(&view.trial.id).map(|reward| rewarded(*reward)).into_iter().collect();
    if !checks.is_empty() && !view.case.case.expects_something() {
        return checks;
    }
    let mut add = |label: &str, (what, result): Checked| {
        let what = if label.is_empty() { what } else { format!("{label}: {what}") };
        checks.push(match result {
            Ok(()) => Check { what, passed: true, seen: String::new(), unknown: None },
            Err(Seen { words, unknown }) => Check { what, passed: false, seen: words, unknown },
        });
    };
    let whole = view.case.case.expect.as_ref();
    for turn in view.turns {
        let own = expected(view.case, turn);
        let label = turn.label();
        let error = own.is_some_and(|expect| expect.error.is_some())
            || (is_last(view, turn) && whole.is_some_and(|expect| expect.error.is_some()));
        // An answer that is not expected explicitly is not checked where it cannot be seen: see `gate::examine`.
        let is_open = view.trace.lacks(Member::Answers) && !view.case.case.expects_something();
        if !error && !is_open {
            let answered = ("an answer".into(), answer_of(turn).map(|_| ()));
            needing(view, Member::Answers, vec![answered]).for_each(|checked| add(&label, checked));
        }
        let of_turn = |expect: &&Expectation| checks_over(expect, &[turn], view, patterns, |_, seen| seen);
        for checked in own.iter().flat_map(of_turn) {
            add(&label, checked);
        }
        let of_each = whole.and_then(|expect| expect.answer.as_ref()).filter(|_| !error && !is_last(view, turn));
        let own = own.and_then(|expect| expect.answer.as_ref());
        let results = of_each.map(|expected| answer::checks(&expected.of_each(own), turn, view, patterns));
        needing(view, Member::Answers, results.unwrap_or_default()).for_each(|checked| add(&label, checked));
    }
    let turns: Vec<_> = view.turns.iter().collect();
    let labelled = |turn: &TurnView<'_>, seen: Seen| Seen::new(format!("{}: {seen}", turn.label()));
    for checked in whole.iter().flat_map(|expect| checks_over(expect, &turns, view, patterns, labelled)) {
        add("", checked);
    }
    if view.case.case.asks_nothing {
        add("", ("no request to a service (asks_nothing)".into(), asks_nothing(view)));
    }
    if let Some(mistake) = patterns.mistakes().first() {
        add("", ("expectations that can be checked".into(), Err(Seen::new(mistake))));
    }
    if let Some(departures) = view.departures.filter(|_| !view.trace.lacks(Member::Moves)) {
        let seen = departures.first().map(|first| format!("turn {}: {}", first.turn.saturating_add(1), first.what));
        add("", ("moves that the state machine declares".into(), seen.map_or(Ok(()), |seen| Err(Seen::new(seen)))));
    }
    checks
}

/// The results of checks that need `member`: undetermined in a trace that lacks it.
fn needing(view: &TrialView<'_>, member: Member, results: Vec<Checked>) -> impl Iterator<Item = Checked> {
    unless(view.trace.not_shown(&[member]), results)
}

/// The results of checks: undetermined for that reason, if there is one.
fn unless(missing: Option<String>, results: Vec<Checked>) -> impl Iterator<Item = Checked> {
    results.into_iter().map(move |(what, held)| match &missing {
        Some(why) => (what, Err(Seen::hidden(format!("not measured: {why}")))),
        None => (what, held),
    })
}

/// Whether the agent called no service, as its case declares.
fn asks_nothing(view: &TrialView<'_>) -> Held {
    let asked = view.turns.iter().map(|turn| turn.models().count()).sum::<usize>();
    let searched = view.turns.iter().flat_map(TurnView::calls).filter(|call| !call.attempts.is_empty()).count();
    match (asked, searched) {
        (0, 0) => Ok(()),
        (asked, 0) => Err(Seen::new(format!("it asked its model: {}", plural(asked, "completion")))),
        (_, searched) => Err(Seen::new(format!("it asked the search service: {}", plural(searched, "call")))),
    }
}

/// Turns an imported reward into a check. The grader saw the outcome, which messages do not show, so without expectations
/// the reward alone decides.
fn rewarded(reward: f64) -> Check {
    // Rewards are sums of parts: tolerate floating-point error around 1.
    let passed = reward >= 1.0 - 1e-6;
    let seen = if passed { String::new() } else { format!("a reward of {reward}") };
    Check { what: "the full reward, as graded with the conversation".into(), passed, seen, unknown: None }
}

fn is_last(view: &TrialView<'_>, turn: &TurnView<'_>) -> bool {
    view.turns.last().is_some_and(|last| (last.conversation, last.turn) == (turn.conversation, turn.turn))
}

fn expected<'a>(case: &'a PlannedCase, turn: &TurnView<'_>) -> Option<&'a Expectation> {
    let conversation = case.case.conversations().nth(turn.conversation as usize)?;
    conversation.turns.get(turn.turn as usize)?.expect.as_ref()
}

/// Expectations on the answer of each turn; the case's answer expectation applies to its last turn.
pub(super) fn answers<'v>(view: &'v TrialView<'_>) -> impl Iterator<Item = (&'v TurnView<'v>, &'v AnswerExpectation)> {
    let whole = view.case.case.expect.as_ref().and_then(|expect| expect.answer.as_ref());
    view.turns.iter().flat_map(move |turn| {
        let own = expected(view.case, turn).and_then(|expect| expect.answer.as_ref());
        own.into_iter().chain(whole.filter(|_| is_last(view, turn))).map(move |answer| (turn, answer))
    })
}

/// Whether the case expects such an answer of any turn.
pub(super) fn expects(case: &ResolvedCase, wanted: impl Fn(&AnswerExpectation) -> bool) -> bool {
    let turns = case.turns().map(|turn| turn.expect.as_ref());
    turns.chain([case.expect.as_ref()]).flatten().filter_map(|expect| expect.answer.as_ref()).any(wanted)
}

/// Checks of an expectation on these turns; `late` describes a turn that took too long.
fn checks_over(
    expect: &Expectation,
    turns: &[&TurnView<'_>],
    view: &TrialView<'_>,
    patterns: &Patterns,
    late: impl Fn(&TurnView<'_>, Seen) -> Seen,
) -> Vec<Checked> {
    let call = |expected| (calls::describe(expected), calls::check(expected, turns, patterns));
    let called: Vec<Checked> = expect.calls.iter().map(call).collect();
    let mut results: Vec<Checked> = needing(view, Member::Calls, called).collect();
    if let Some(expected) = &expect.keywords {
        results.extend(needing(view, Member::IndexWrites, keywords::check(expected, turns, view.turns)));
    }
    for expected in &expect.retries {
        results.extend(needing(view, Member::Retries, retries(expected, turns)));
    }
    results.extend(needing(view, Member::Log, expect.log.iter().map(|kind| logged(kind, turns)).collect()));
    results.extend(turns.last().into_iter().flat_map(|last| last_turn_checks(expect, last, view, patterns)));
    if let Some(limit) = &expect.within {
        let each = turns.iter().try_for_each(|turn| within(limit, turn).map_err(|seen| late(turn, seen)));
        let held = (format!("within: {limit}"), each);
        // A turn whose time is known and too long decides, whatever the others took.
        let too_long = |turn: &&TurnView<'_>| turn.ended().is_some() && within(limit, turn).is_err();
        let decided = !view.trace.is_held() && turns.iter().any(too_long);
        let untimed = turns.iter().filter_map(|turn| turn.ended()).any(|end| view.trace.is_untimed(end));
        let missing = view.trace.not_shown(&[Member::Took]);
        let missing = missing.or_else(|| untimed.then(|| view.trace.unshown(Member::Took)));
        results.extend(unless(missing.filter(|_| !decided), vec![held]));
    }
    results.extend(taken::checks(expect, turns, view));
    results
}

/// Checks read from the end of one turn.
fn last_turn_checks(
    expect: &Expectation,
    turn: &TurnView<'_>,
    view: &TrialView<'_>,
    patterns: &Patterns,
) -> Vec<Checked> {
    let mut results = Vec::new();
    let mut replies = Vec::new();
    for (pointer, condition) in &expect.reply {
        let place = if pointer.is_empty() { "body" } else { pointer };
        replies.push((
            format!("reply: {}", calls::describe_condition(place, condition)),
            reply(pointer, turn, |part| (!patterns.is_open(condition, part)).then(|| patterns.holds(condition, part))),
        ));
    }
    if let Some(expected) = &expect.answer {
        results.extend(answer::checks(expected, turn, view, patterns));
    }
    if let Some(expected) = &expect.sources {
        results.extend(answer::sources(expected, turn, view));
    }
    let results = needing(view, Member::Answers, results);
    let mut results: Vec<Checked> = results.chain(needing(view, Member::Replies, replies)).collect();
    for probe in expect.context.iter().flat_map(|context| &context.probes) {
        let member = if probe.in_arguments_of.is_some() { Member::Calls } else { Member::Answers };
        results.extend(needing(view, member, vec![probes::check(probe, turn)]));
    }
    if let Some(expected) = &expect.error {
        let held = (format!("error: {}", expected.kind), error(expected, turn));
        results.extend(needing(view, Member::Answers, vec![held]));
    }
    results
}

/// The answer of a turn, or how the turn ended without one.
fn answer_of<'t>(turn: &'t TurnView<'_>) -> Result<&'t Answer, Seen> {
    turn.answer().ok_or_else(|| ending(turn))
}

fn ending(turn: &TurnView<'_>) -> Seen {
    Seen::new(match turn.ended().map(|end| &end.outcome) {
        Some(TurnOutcome::Failed { message, .. }) => format!("it {}: {}", turn.ending(), quote(message, 160)),
        _ => format!("it {}", turn.ending()),
    })
}

/// Checks the value at a JSON pointer of the turn's reply; `holds` returns `None` where the digits of a number are not known.
fn reply(pointer: &str, turn: &TurnView<'_>, holds: impl Fn(&Value) -> Option<bool>) -> Held {
    let body = turn.ended().and_then(|end| end.reply.as_ref());
    let body = body.ok_or_else(|| Seen::new("the trace holds no reply of this turn"))?;
    match body.pointer(pointer) {
        Some(part) if holds(part) == Some(true) => Ok(()),
        Some(part) if holds(part).is_none() => Err(Seen::hidden(calls::NEAREST)),
        Some(part) => Err(Seen::new(format!("it was: {}", quote(&part.to_string(), 160)))),
        None => Err(Seen::new(format!("there is no value: {}", quote(&body.to_string(), 160)))),
    }
}

fn retries(expected: &RetryExpectation, turns: &[&TurnView<'_>]) -> Vec<Checked> {
    let account = expected.account;
    let mut count = 0_u32;
    let mut episodes: BTreeMap<(u32, u32, u32), bool> = BTreeMap::new();
    for turn in turns {
        for retry in turn.retries().filter(|retry| retry.account == account) {
            count += 1;
            *episodes.entry((turn.conversation, turn.turn, retry.episode)).or_default() |= retry.recovered;
        }
    }
    let name = account.as_str();
    let counted = |holds: bool| if holds { Ok(()) } else { Err(Seen::new(format!("there were {count}"))) };
    let mut results = Vec::new();
    if let Some(least) = expected.at_least {
        results.push((format!("retries on the {name} account, at least {least}"), counted(count >= least)));
    }
    if let Some(most) = expected.at_most {
        results.push((format!("retries on the {name} account, at most {most}"), counted(count <= most)));
    }
    if let Some(wanted) = expected.recovered {
        let lost = episodes.values().filter(|recovered| !**recovered).count();
        let result = match (episodes.len(), (lost == 0) == wanted) {
            // Without a retry, none failed and none recovered: there is no evidence.
            (0, _) => Err(Seen::new("there was no retry")),
            (_, true) => Ok(()),
            (all, false) => Err(Seen::new(format!("{lost} of {all} episodes did not recover"))),
        };
        results.push((format!("retries on the {name} account, recovered: {wanted}"), result));
    }
    results
}

/// Checks that the agent's log has an entry of that kind.
fn logged(kind: &str, turns: &[&TurnView<'_>]) -> Checked {
    let mut entries = turns.iter().flat_map(|turn| trajectory::logs(turn));
    let held =
        if entries.any(|entry| entry.kind() == kind) { Ok(()) } else { Err(Seen::new("no such entry in the log")) };
    (format!("log: {kind}"), held)
}

fn within(limit: &TimeSpan, turn: &TurnView<'_>) -> Held {
    let limit = limit.as_micros();
    match turn.ended() {
        Some(end) if u128::from(end.took_us) < limit => Ok(()),
        Some(end) => Err(Seen::new(format!("it took {:.2} s", end.took_us as f64 / 1e6))),
        None => Err(Seen::new(format!("it {}", turn.ending()))),
    }
}

fn error(expected: &ErrorExpectation, turn: &TurnView<'_>) -> Held {
    match turn.ended().map(|end| &end.outcome) {
        Some(TurnOutcome::Failed { kind, message })
            if *kind == expected.kind && expected.contains.iter().all(|part| contains(message, part)) =>
        {
            Ok(())
        }
        _ => Err(ending(turn)),
    }
}

/// Expectations on this turn: its own, and on the last turn those of the case.
fn covering<'a>(view: &TrialView<'a>, turn: &TurnView<'_>) -> impl Iterator<Item = &'a Expectation> {
    let whole = view.case.case.expect.as_ref().filter(|_| is_last(view, turn));
    expected(view.case, turn).into_iter().chain(whole)
}

/// Number of searches that the question of a turn needs, where its case declares it.
pub(super) fn optimal_steps(view: &TrialView<'_>, turn: &TurnView<'_>) -> Option<u32> {
    covering(view, turn).find_map(|expect| expect.optimal_steps).map(std::num::NonZeroU32::get)
}
