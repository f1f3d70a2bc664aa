//! Grounding without a model: facts of an answer that stand in nothing that was retrieved or asked.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `grounded` | answers with a fact that can be looked up | every such fact is supported |
//! | `unsupported_facts` | facts | (a rate of what is unwanted) it is not supported |
//!
//! A fact is a number with its unit, a date, a code, a name or words in quotation marks ([`facts`]); it is supported
//! if it stands in what the conversation retrieved before the answer, or in what the user asked ([`support`]). A statement
//! that cites `[n]` is looked up in the passages that it cites alone. A number that can be computed from others, in a
//! statement that says so, is not checked. That a fact stands in a source does not mean that the source says what the
//! answer says: `docs/reference/answers.md` has the measured rates.
//!
//! Where the whole text of a passage is not known, a fact that is not in its beginning is undetermined.

mod date;
mod facts;
mod quantity;
mod support;

use super::catalogue::Registered;
use super::{Member, Metric, Observation, Seen, TrialView, TurnView, quote};
use crate::settings::catalogue::Units;
use crate::trace::{Answer, Hit, NamedPassage, SearchResult, ToolResult};
use facts::{Fact, statements};
use std::sync::Arc;
use support::{Source, Support};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("grounded", |_| Box::new(Grounding { facts: false }))
        .about(
            "Of the answers with facts, those whose every fact stands in what was retrieved or asked: numbers with units, \
             dates, codes, names, quoted words.",
        )
        .counted(Units::OfTurns),
    Registered::rate("unsupported_facts", |_| Box::new(Grounding { facts: true }))
        .about("Of the facts in answers, those that stand in nothing that was retrieved or asked.")
        .counted(Units::Unlimited)
        .lower_is_better(),
];

/// Longest excerpt in a trace, in characters: [`Hit::excerpt`].
const EXCERPT: usize = 160;

#[derive(Debug)]
struct Grounding {
    /// Whether the units are facts, rather than answers.
    facts: bool,
}

/// A passage, or an answer of a service, that a statement may take its facts from.
struct Evidence<'a> {
    id: &'a str,
    source: Source,
    whole: bool,
}

/// The facts of an answer, with what became of each.
pub(super) struct Grounded {
    /// Supported facts, and unsupported ones with a note.
    pub supported: usize,
    pub unsupported: Vec<(Fact, String)>,
    /// Why the unsupported facts are undetermined, where they are.
    pub unseen: Option<String>,
}

impl Grounded {
    /// Whether at most `most` facts are unsupported.
    pub(super) fn holds(&self, most: u32) -> super::Held {
        let words: Vec<&str> = self.unsupported.iter().map(|(_, note)| note.as_str()).take(3).collect();
        let more = self.unsupported.len().saturating_sub(words.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        match &self.unseen {
            _ if self.unsupported.len() <= most as usize => Ok(()),
            Some(why) => Err(Seen::hidden(why)),
            None => Err(Seen::new(format!("{}{more}", words.join("; ")))),
        }
    }
}

/// Looks up the facts of a turn's answer; `None` without an answer.
pub(super) fn grounded(view: &TrialView<'_>, turn: &TurnView<'_>) -> Option<Grounded> {
    let answer = turn.answer()?;
    let before = view.turns.iter().filter(|other| other.conversation == turn.conversation && other.turn < turn.turn);
    let earlier: Vec<&TurnView<'_>> = before.collect();
    let asked: Vec<&str> = earlier.iter().map(|turn| turn.query).chain([turn.query]).collect();
    let mut evidence: Vec<Evidence<'_>> = Vec::new();
    let mut here = Vec::new();
    for other in earlier.into_iter().chain([turn]) {
        for result in other.retrievals() {
            let first = evidence.len();
            read(result, view, &mut evidence);
            // `[n]` is the n-th passage of this turn.
            if other.turn == turn.turn && matches!(result, ToolResult::Search(_)) {
                here.extend(first..evidence.len());
            }
        }
    }
    Some(look_up(answer, &asked, &evidence, &here))
}

fn look_up(answer: &Answer, asked: &[&str], evidence: &[Evidence<'_>], numbered: &[usize]) -> Grounded {
    let asked = Source::of(asked.iter().copied());
    let mut found = Grounded { supported: 0, unsupported: Vec::new(), unseen: None };
    for statement in statements(&answer.text) {
        let text = &answer.text[statement.place.clone()];
        let cited: Vec<usize> =
            statement.cited.iter().filter_map(|number| place_of(*number, answer, evidence, numbered)).collect();
        let all: Vec<usize> = if cited.is_empty() { (0..evidence.len()).collect() } else { cited.clone() };
        for fact in statement.facts {
            let supports = |source: &Source| source.supports(&fact, text);
            let held = [supports(&asked)].into_iter().chain(all.iter().map(|place| supports(&evidence[*place].source)));
            match held.min_by_key(|support| *support as u8) {
                Some(Support::Supported) => found.supported += 1,
                Some(Support::Computed) => {}
                _ => {
                    if let Some(part) = all.iter().map(|place| &evidence[*place]).find(|one| !one.whole) {
                        let why = format!("the whole text of {} is not known", quote(part.id, 60));
                        found.unseen.get_or_insert(why);
                    }
                    let note = note(&fact, text, evidence, &cited);
                    found.unsupported.push((fact, note));
                }
            }
        }
    }
    found
}

/// The passage that `[number]` stands for: the source of that number, or the one found in that place.
fn place_of(number: usize, answer: &Answer, evidence: &[Evidence<'_>], numbered: &[usize]) -> Option<usize> {
    let by_name = answer.source_of(number).and_then(|source| evidence.iter().position(|one| one.id == source.id));
    by_name.or_else(|| numbered.get(number.checked_sub(1)?).copied())
}

/// What is missing, where it was looked for, and where it stands instead, or the passage nearest to the statement.
fn note(fact: &Fact, statement: &str, evidence: &[Evidence<'_>], cited: &[usize]) -> String {
    let words = format!("“{}”", quote(&fact.words, 60));
    if evidence.is_empty() {
        return format!("{words} was not asked, and nothing was retrieved");
    }
    let id = |place: usize| quote(evidence[place].id, 60);
    let elsewhere =
        (0..evidence.len()).find(|place| evidence[*place].source.supports(fact, statement) == Support::Supported);
    let places: Vec<String> = cited.iter().map(|place| id(*place)).collect();
    match elsewhere {
        Some(place) => format!("{words} is not in {}, which is cited; it is in {}", places.join(", "), id(place)),
        None => {
            let nearest = (0..evidence.len())
                .max_by_key(|place| (evidence[*place].source.overlap(statement), usize::MAX - place));
            let nearest = nearest.map(id).unwrap_or_default();
            format!("{words} is in nothing that was retrieved; the nearest passage is {nearest}")
        }
    }
}

/// Adds what a tool returned.
fn read<'a>(result: &'a ToolResult, view: &TrialView<'a>, evidence: &mut Vec<Evidence<'a>>) {
    let mut add = |id: &'a str, texts: &[&str], whole: bool| {
        evidence.push(Evidence { id, source: Source::of(texts.iter().copied()), whole });
    };
    match result {
        ToolResult::Search(search) => {
            if let Some(managed) = &search.managed {
                add(&search.kb_id, &[&managed.text], true);
            }
            for hit in &search.hits {
                let (text, whole) = text_of(view, search, hit);
                add(&hit.id, &[&hit.title, &hit.id, text], whole);
            }
        }
        ToolResult::External(found) => {
            let titles: Vec<&str> = found.citations.iter().map(|page| page.title.as_str()).collect();
            add(&found.result, &[&[found.answer.as_str()], titles.as_slice()].concat(), true);
        }
        ToolResult::Other(value) => {
            let text = value.to_string();
            add("a tool's result", &[&text], text.chars().count() < ToolResult::MOST);
        }
        ToolResult::Indexed(_) | ToolResult::Responded => {}
    }
}

/// The text of a hit, and whether it is whole.
fn text_of<'a>(view: &TrialView<'a>, search: &'a SearchResult, hit: &'a Hit) -> (&'a str, bool) {
    let passage = |name: &str| view.passages.iter().find(|one: &&Arc<NamedPassage>| one.name() == name);
    let learned = hit.learned.as_ref().map(|learned| view.trace.external_answer(learned.conversation, &learned.result));
    let whole = match learned {
        Some(answer) => answer,
        None => view.trace.passage_name(&search.kb_id, &hit.id).and_then(passage).map(|one| one.text.as_str()),
    };
    let is_short = hit.excerpt.chars().count() < EXCERPT && !hit.excerpt.ends_with('…');
    whole.map_or((hit.excerpt.as_str(), is_short), |text| (text, true))
}

impl Metric for Grounding {
    fn units(&self) -> &'static str {
        if self.facts { "facts" } else { "answers with facts" }
    }

    fn members(&self) -> &'static [Member] {
        &[Member::Passages, Member::Answers]
    }

    fn unseen(&self, view: &TrialView<'_>) -> Option<String> {
        let mut turns = view.turns.iter().filter_map(|turn| grounded(view, turn));
        turns.find_map(|found| found.unseen)
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut units = Vec::new();
        for turn in view.turns {
            let Some(found) = grounded(view, turn) else { continue };
            if found.unseen.is_some() || found.supported + found.unsupported.len() == 0 {
                continue;
            }
            if self.facts {
                units.extend((0..found.supported).map(|_| Observation::failure(turn.label(), "")));
                units
                    .extend(found.unsupported.into_iter().map(|(_, note)| Observation::occurrence(turn.label(), note)));
            } else {
                units.push(match found.holds(0) {
                    Ok(()) => Observation::success(turn.label()),
                    Err(seen) => Observation::failure(turn.label(), seen.words),
                });
            }
        }
        units
    }
}

/// Number of supported facts of a text by its source, and the unsupported ones by place: for the published rates.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests use it"))]
pub fn unsupported(answer: &str, source: &str) -> (usize, Vec<std::ops::Range<usize>>) {
    let answer = Answer { text: answer.into(), ..Answer::default() };
    let evidence = [Evidence { id: "source", source: Source::of([source]), whole: true }];
    let found = look_up(&answer, &[], &evidence, &[]);
    (found.supported, found.unsupported.into_iter().map(|(fact, _)| fact.place).collect())
}

/// Places of the facts in a text.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests use it"))]
pub fn places(answer: &str) -> Vec<std::ops::Range<usize>> {
    statements(answer).into_iter().flat_map(|one| one.facts).map(|fact| fact.place).collect()
}

#[cfg(test)]
mod tests;
