//! Checks of a trace against the expectations of its case and turns.
//!
//! An expectation on a turn sees that turn. One on the case sees all turns: calls, keywords and retries over all of
//! them, `tokens` and `cost` as their sum, `within` on each, and `answer`, `sources`, `context` and `error` on the
//! last. Every turn must answer unless an error is expected of it, whether or not anything else is. The control arm
//! is inverted: history is withheld there, so at least one context probe must fail.

use super::answer_length::has_style;
use super::calls::{self, Patterns};
use super::grounding;
use super::refusal_rate::{claims_nothing, says_so};
use super::text_match::contains;
use super::turns::names;
use super::{Check, Held, Seen, TrialView, TurnView, keywords, quote, taken};
use crate::plan::PlannedCase;
use crate::plan::ResolvedCase;
use crate::scenario::expect::{
    AnswerExpectation, ErrorExpectation, Expectation, Probe, RetryExpectation, SourcesExpectation,
};
use crate::settings::TimeSpan;
use crate::trace::text::plural;
use crate::trace::{Answer, Arm, Member, SOURCES, TurnOutcome, USED_EXTERNAL_KB, USED_INTERNAL_KB};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Description of a check, and whether it holds.
type Checked = (String, Held);

/// Checks all expectations of the case of `view`; `patterns` must be compiled from that case.
pub(crate) fn checks(view: &TrialView<'_>, patterns: &Patterns) -> Vec<Check> {
    if view.trial.lane.arm == Arm::Control {
        return vec![control(view)];
    }
    if let Some(reward) = view.plan.rewards.get(&view.trial.id) {
        return vec![rewarded(*reward)];
    }
    let mut checks = Vec::new();
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
        // What nobody expects explicitly is left out where it cannot be seen: see `gate::examine`.
        let is_open = view.trace.lacks(Member::Answers) && !view.case.case.expects_something();
        if !error && !is_open {
            let answered = ("an answer".into(), turn.answer().map(|_| ()).ok_or_else(|| ending(turn)));
            needing(view, Member::Answers, vec![answered]).for_each(|checked| add(&label, checked));
        }
        for checked in own.iter().flat_map(|expect| turn_checks(expect, turn, view, patterns)) {
            add(&label, checked);
        }
    }
    for checked in whole.iter().flat_map(|expect| case_checks(expect, view, patterns)) {
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
    let missing = view.trace.not_shown(&[member]);
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

/// Turns an imported reward into a check. The grader saw the outcome, which messages do not show, so the reward alone
/// decides.
fn rewarded(reward: f64) -> Check {
    // Rewards are sums of parts: tolerate floating-point error around 1.
    let passed = reward >= 1.0 - 1e-6;
    let seen = if passed { String::new() } else { format!("a reward of {reward}") };
    Check { what: "the full reward, as graded with the conversation".into(), passed, seen, unknown: None }
}

fn is_last(view: &TrialView<'_>, turn: &TurnView<'_>) -> bool {
    view.turns.last().is_some_and(|last| (last.conversation, last.turn) == (turn.conversation, turn.turn))
}

/// Expectations on this turn.
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

fn turn_checks(expect: &Expectation, turn: &TurnView<'_>, view: &TrialView<'_>, patterns: &Patterns) -> Vec<Checked> {
    let mut results = shared_checks(expect, &[turn], view, patterns);
    results.extend(last_turn_checks(expect, turn, view, patterns));
    let took = expect.within.iter().map(|limit| (format!("within: {limit}"), within(limit, turn)));
    results.extend(needing(view, Member::Took, took.collect()));
    results.extend(taken::checks(expect, &[turn], view));
    results
}

fn case_checks(expect: &Expectation, view: &TrialView<'_>, patterns: &Patterns) -> Vec<Checked> {
    let turns: Vec<_> = view.turns.iter().collect();
    let mut results = shared_checks(expect, &turns, view, patterns);
    if let Some(last) = view.turns.last() {
        results.extend(last_turn_checks(expect, last, view, patterns));
    }
    if let Some(limit) = &expect.within {
        let each = view
            .turns
            .iter()
            .try_for_each(|turn| within(limit, turn).map_err(|seen| Seen::new(format!("{}: {seen}", turn.label()))));
        results.extend(needing(view, Member::Took, vec![(format!("within: {limit}"), each)]));
    }
    results.extend(taken::checks(expect, &turns, view));
    results
}

/// Checks read over all turns that an expectation covers.
fn shared_checks(
    expect: &Expectation,
    turns: &[&TurnView<'_>],
    view: &TrialView<'_>,
    patterns: &Patterns,
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
            reply(pointer, turn, |part| patterns.holds(condition, part)),
        ));
    }
    if let Some(expected) = &expect.answer {
        results.extend(answer(expected, turn, view, patterns));
    }
    if let Some(expected) = &expect.sources {
        results.extend(sources(expected, turn, view));
    }
    let results = needing(view, Member::Answers, results);
    let mut results: Vec<Checked> = results.chain(needing(view, Member::Replies, replies)).collect();
    for probe in expect.context.iter().flat_map(|context| &context.probes) {
        let member = if probe.in_arguments_of.is_some() { Member::Calls } else { Member::Answers };
        results.extend(needing(view, member, vec![(describe_probe(probe), remembered(probe, turn))]));
    }
    if let Some(expected) = &expect.error {
        let held = (format!("error: {}", expected.kind), error(expected, turn));
        results.extend(needing(view, Member::Answers, vec![held]));
    }
    results
}

fn ending(turn: &TurnView<'_>) -> Seen {
    Seen::new(match turn.ended().map(|end| &end.outcome) {
        Some(TurnOutcome::Failed { message, .. }) => format!("it {}: {}", turn.ending(), quote(message, 160)),
        _ => format!("it {}", turn.ending()),
    })
}

/// Checks each of `wanted` against the answer; all fail when there is none.
fn each<'a>(
    key: &str,
    wanted: &'a [String],
    turn: &TurnView<'_>,
    holds: impl Fn(&'a str, &Answer) -> Held,
) -> Vec<Checked> {
    let judge = |text: &'a String| {
        let result = turn.answer().ok_or_else(|| ending(turn)).and_then(|answer| holds(text, answer));
        (format!("{key}: {}", quote(text, 100)), result)
    };
    wanted.iter().map(judge).collect()
}

fn answer(
    expected: &AnswerExpectation,
    turn: &TurnView<'_>,
    view: &TrialView<'_>,
    patterns: &Patterns,
) -> Vec<Checked> {
    let seen =
        |holds: bool, part: &str, answer: &Answer| if holds { Ok(()) } else { Err(said(answer, part, turn.query)) };
    let has = |answer: &Answer, part: &str| {
        if expected.exact { answer.text.contains(part) } else { contains(&answer.text, part) }
    };
    let grounded = |most: u32| {
        turn.answer().ok_or_else(|| ending(turn))?;
        grounding::grounded(view, turn).map_or(Ok(()), |found| found.holds(most))
    };
    let mut results =
        each("answer.contains", &expected.contains, turn, |part, answer| seen(has(answer, part), part, answer));
    results.extend(each("answer.not_contains", &expected.not_contains, turn, |part, answer| {
        seen(!has(answer, part), part, answer)
    }));
    results.extend(each("answer.matches", &expected.matches, turn, |expression, answer| {
        seen(patterns.matches(expression, &answer.text), expression, answer)
    }));
    results.extend(expected.style.map(|style| {
        let held = || {
            turn.answer().ok_or_else(|| ending(turn))?;
            let uncounted = || Err(Seen::hidden("not measured: the answer has no spaces between its words"));
            has_style(style, turn).unwrap_or_else(uncounted)
        };
        (format!("answer.style: {}", style.as_str()), held())
    }));
    results.extend(expected.grounded.map(|wanted| (format!("answer.grounded: {wanted}"), grounded(0))));
    let most = expected.unsupported_facts;
    results.extend(most.map(|most| (format!("answer.unsupported_facts: {most}"), grounded(most))));
    if let Some(wanted) = expected.refusal {
        let seen = |answer: &Answer| match (wanted, claims_nothing(answer)) {
            (true, false) => Err(cited(answer)),
            (true, true) if !says_so(answer, Some(expected)) => {
                Err(Seen::new(format!("it does not say that it cannot answer: {}", quote(&answer.text, 160))))
            }
            (false, true) if hides_claims(answer) && says_so(answer, Some(expected)) => {
                Err(Seen::new(format!("it says that it cannot answer: {}", quote(&answer.text, 160))))
            }
            (false, true) if hides_claims(answer) => Err(sources_hidden(view)),
            (false, true) => Err(Seen::new("it names no source and claims none")),
            (true, true) | (false, false) => Ok(()),
        };
        let result = turn.answer().ok_or_else(|| ending(turn)).and_then(seen);
        results.push((format!("answer.refusal: {wanted}"), result));
    }
    results.extend(each("answer.cites", &expected.cites, turn, |wanted, answer| {
        shown(answer, answer.sources.iter().any(|source| names(wanted, &source.id)), view)
    }));
    results
}

/// The sentence of the answer that shares most words with the expected `part`, and of several the one that shares most with the
/// question; the beginning of the answer if none does.
fn said(answer: &Answer, part: &str, question: &str) -> Seen {
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|letter: char| !letter.is_alphanumeric()).map(str::to_lowercase).collect()
    };
    let (wanted, asked) = (words(part), words(question));
    let common = |sentence: &str, with: &BTreeSet<String>| {
        words(sentence).intersection(with).filter(|word| !word.is_empty()).count()
    };
    let shared = |sentence: &&str| (common(sentence, &wanted), common(sentence, &asked));
    let lines = answer.text.split_inclusive(['!', '?', '\n']).flat_map(|line| line.split_inclusive(". "));
    let sentences: Vec<&str> = lines.map(str::trim).collect();
    // The first of the best: `max_by_key` returns the last.
    let best = sentences.into_iter().rev().max_by_key(shared).filter(|sentence| common(sentence, &wanted) > 0);
    Seen::new(format!("the answer says: {}", quote(best.unwrap_or(&answer.text), 160)))
}

/// Whether the trace does not show the sources that an answer claims.
fn hides_claims(answer: &Answer) -> bool {
    [SOURCES, USED_INTERNAL_KB, USED_EXTERNAL_KB].iter().any(|member| answer.hides(member))
}

/// Whether a condition on an answer's sources holds; undetermined where the trace does not show them.
fn shown(answer: &Answer, holds: bool, view: &TrialView<'_>) -> Held {
    match (holds, answer.hides(SOURCES)) {
        (true, _) => Ok(()),
        (false, true) => Err(sources_hidden(view)),
        (false, false) => Err(cited(answer)),
    }
}

fn sources_hidden(view: &TrialView<'_>) -> Seen {
    let missing = view.trace.not_shown(&[Member::Sources]);
    let why = missing.unwrap_or_else(|| "the reply shows no sources; `target.sources` names their place".into());
    Seen::hidden(format!("not measured: {why}"))
}

fn cited(answer: &Answer) -> Seen {
    let ids: Vec<_> = answer.sources.iter().take(8).map(|source| quote(&source.id, 80)).collect();
    Seen::new(if ids.is_empty() { "it cites no source".into() } else { format!("it cites: {}", ids.join(", ")) })
}

fn sources(expected: &SourcesExpectation, turn: &TurnView<'_>, view: &TrialView<'_>) -> Vec<Checked> {
    let with = |holds: &dyn Fn(&Answer) -> Held| turn.answer().ok_or_else(|| ending(turn)).and_then(holds);
    let flag = |answer: &Answer, wanted: bool, said: bool, member: &str| {
        if answer.hides(member) {
            let why = "neither the reply nor a message to the model shows what the answer is made of";
            let why = view.trace.not_shown(&[Member::Claims]).unwrap_or_else(|| why.into());
            return Err(Seen::hidden(format!("not measured: {why}")));
        }
        if wanted == said { Ok(()) } else { Err(Seen::new(format!("the answer says {said}"))) }
    };
    let mut results = Vec::new();
    if let Some(wanted) = expected.internal {
        let held = with(&|answer| flag(answer, wanted, answer.used_internal_kb, USED_INTERNAL_KB));
        results.push((format!("sources.internal: {wanted}"), held));
    }
    if let Some(wanted) = expected.external {
        let held = with(&|answer| flag(answer, wanted, answer.used_external_kb, USED_EXTERNAL_KB));
        results.push((format!("sources.external: {wanted}"), held));
    }
    if let Some(least) = expected.at_least {
        let enough = |answer: &Answer| shown(answer, answer.sources.len() >= least as usize, view);
        results.push((format!("sources.at_least: {least}"), with(&enough)));
    }
    results
}

/// Checks the value at a JSON pointer of the turn's reply.
fn reply(pointer: &str, turn: &TurnView<'_>, holds: impl Fn(&Value) -> bool) -> Held {
    let body = turn.ended().and_then(|end| end.reply.as_ref());
    let body = body.ok_or_else(|| Seen::new("the trace holds no reply of this turn"))?;
    match body.pointer(pointer) {
        Some(part) if holds(part) => Ok(()),
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

fn describe_probe(probe: &Probe) -> String {
    let any: Vec<_> = probe.any_of.iter().map(|text| quote(text, 60)).collect();
    match &probe.in_arguments_of {
        None => format!("context: the answer has {}", any.join(" or ")),
        Some(tool) => format!("context: the arguments of {tool} have {}", any.join(" or ")),
    }
}

/// Whether the probe appears in this turn; an empty `any_of` never does.
fn remembered(probe: &Probe, turn: &TurnView<'_>) -> Held {
    let Some(tool) = &probe.in_arguments_of else {
        let answer = turn.answer().ok_or_else(|| ending(turn))?;
        let held = probe.any_of.iter().any(|text| contains(&answer.text, text));
        return held.then_some(()).ok_or_else(|| said(answer, &probe.any_of.join(" "), turn.query));
    };
    let mut said = Vec::new();
    for call in turn.calls().filter(|call| call.tool == *tool) {
        leaves(&call.arguments, &mut said);
    }
    if said.iter().any(|text| probe.any_of.iter().any(|part| contains(text, part))) {
        return Ok(());
    }
    if said.is_empty() {
        return Err(Seen::new(format!("{tool} was not called with any argument")));
    }
    Err(Seen::new(format!("its arguments were: {}", quote(&said.join("; "), 160))))
}

/// Collects the values of a JSON document as text, without field names.
fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::String(text) => out.push(text.clone()),
        Value::Bool(_) | Value::Number(_) => out.push(value.to_string()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, out)),
        Value::Object(fields) => fields.values().for_each(|item| leaves(item, out)),
    }
}

/// Expectations on this turn: its own, and on the last turn those of the case.
fn covering<'a>(view: &TrialView<'a>, turn: &TurnView<'_>) -> impl Iterator<Item = &'a Expectation> {
    let whole = view.case.case.expect.as_ref().filter(|_| is_last(view, turn));
    expected(view.case, turn).into_iter().chain(whole)
}

/// Probes that must appear in this turn.
fn probes<'a>(view: &TrialView<'a>, turn: &TurnView<'_>) -> impl Iterator<Item = &'a Probe> {
    covering(view, turn).filter_map(|expect| expect.context.as_ref()).flat_map(|context| &context.probes)
}

/// Context probes of a turn, described, and whether each holds.
pub(super) fn probed(view: &TrialView<'_>, turn: &TurnView<'_>) -> impl Iterator<Item = Checked> {
    probes(view, turn).map(|probe| (describe_probe(probe), remembered(probe, turn)))
}

/// Number of searches that the question of a turn needs, where its case declares it.
pub(super) fn optimal_steps(view: &TrialView<'_>, turn: &TurnView<'_>) -> Option<u32> {
    covering(view, turn).find_map(|expect| expect.optimal_steps).map(std::num::NonZeroU32::get)
}

/// Describes the first context probe of a turn that does not hold.
pub(super) fn probe_failure(view: &TrialView<'_>, turn: &TurnView<'_>) -> Option<String> {
    probed(view, turn).find_map(|(what, held)| held.err().map(|seen| format!("{}: {what}: {seen}", turn.label())))
}

fn control(view: &TrialView<'_>) -> Check {
    let (mut probes_seen, mut failed) = (0, false);
    for turn in view.turns {
        for probe in probes(view, turn) {
            probes_seen += 1;
            failed |= remembered(probe, turn).is_err();
        }
    }
    let seen = match (probes_seen, failed) {
        (0, _) => "the case has no context probe to control".to_owned(),
        (_, true) => String::new(),
        (_, false) => "every probe holds without history: they prove no memory".to_owned(),
    };
    let what = "control: a context probe fails without history".into();
    Check { what, passed: seen.is_empty(), seen, unknown: None }
}
