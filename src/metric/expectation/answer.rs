//! Checks of the text of an answer, and of its sources.

use super::{Checked, answer_of};
use crate::metric::answer_length::has_style;
use crate::metric::inline_citations::is_refusal;
use crate::metric::refusal_rate::{claims_nothing, may_be_refusal, says_so};
use crate::metric::text_match::contains;
use crate::metric::turns::names;
use crate::metric::{Held, Patterns, Seen, TrialView, TurnView, grounding, quote};
use crate::scenario::expect::{AnswerExpectation, SourcesExpectation};
use crate::trace::citations::{numbers_of, one_spelling};
use crate::trace::refusal::only_refuses;
use crate::trace::{Answer, Member, SOURCES, USED_EXTERNAL_KB, USED_INTERNAL_KB};
use std::collections::BTreeSet;

/// Checks what an expectation says of the answer.
pub(super) fn checks(
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
        answer_of(turn)?;
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
            answer_of(turn)?;
            let uncounted = || Err(Seen::hidden("not measured: the answer has no spaces between its words"));
            has_style(style, turn).unwrap_or_else(uncounted)
        };
        (format!("answer.style: {}", style.as_str()), held())
    }));
    results.extend(expected.grounded.map(|wanted| (format!("answer.grounded: {wanted}"), grounded(0))));
    let most = expected.unsupported_facts;
    results.extend(most.map(|most| (format!("answer.unsupported_facts: {most}"), grounded(most))));
    if let Some(wanted) = expected.refusal {
        let found = grounding::grounded(view, turn);
        let seen = |answer: &Answer| match wanted {
            true if !may_be_refusal(answer) && answer.sources.is_empty() => {
                Err(Seen::new("it lists no source, but says that it uses one"))
            }
            true if !may_be_refusal(answer) => Err(cited(answer)),
            true if !numbers_of(&answer.text).is_empty() => {
                Err(Seen::new(format!("it cites a source: {}", quote(&answer.text, 160))))
            }
            true if !says_so(answer, Some(expected)) => {
                Err(Seen::new(format!("it does not say that it cannot answer: {}", quote(&answer.text, 160))))
            }
            true if let Some(fact) = found.and_then(grounding::Grounded::invented) => {
                let words = quote(&fact.words, 60);
                Err(Seen::new(format!(
                    "it says that it cannot answer, but states {words}, which was neither found nor asked"
                )))
            }
            false if refuses(answer, turn.query) => {
                Err(Seen::new(format!("it says that it cannot answer: {}", quote(&answer.text, 160))))
            }
            _ => Ok(()),
        };
        let result = answer_of(turn).and_then(seen);
        results.push((format!("answer.refusal: {wanted}"), result));
    }
    results.extend(each("answer.cites", &expected.cites, turn, |wanted, answer| {
        shown(answer, answer.sources.iter().any(|source| names(wanted, &source.id)), view)
    }));
    results
}

/// Checks what an expectation says of the sources of the answer.
pub(super) fn sources(expected: &SourcesExpectation, turn: &TurnView<'_>, view: &TrialView<'_>) -> Vec<Checked> {
    let with = |holds: &dyn Fn(&Answer) -> Held| answer_of(turn).and_then(holds);
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
        let different = |answer: &Answer| {
            answer.sources.iter().map(|source| one_spelling(&source.id)).collect::<BTreeSet<_>>().len()
        };
        let enough = |answer: &Answer| shown(answer, different(answer) >= least as usize, view);
        results.push((format!("sources.at_least: {least}"), with(&enough)));
    }
    results
}

/// Checks each of `wanted` against the answer; all fail when there is none.
fn each<'a>(
    key: &str,
    wanted: &'a [String],
    turn: &TurnView<'_>,
    holds: impl Fn(&'a str, &Answer) -> Held,
) -> Vec<Checked> {
    let check = |text: &'a String| {
        (format!("{key}: {}", quote(text, 100)), answer_of(turn).and_then(|answer| holds(text, answer)))
    };
    wanted.iter().map(check).collect()
}

/// The sentence of the answer that shares most words with the expected `part`, and of several the one that shares most with the
/// question; the beginning of the answer if none does.
pub(super) fn said(answer: &Answer, part: &str, question: &str) -> Seen {
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

/// Whether an answer to `asked` is no answer: it only refuses, whatever sources it lists, or it refuses, states nothing
/// else and claims no source.
fn refuses(answer: &Answer, asked: &str) -> bool {
    only_refuses(&answer.text, asked) || claims_nothing(answer) && is_refusal(answer, &answer.text, asked)
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
