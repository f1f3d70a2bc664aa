//! Grounding without a model: facts of an answer that stand in nothing that was retrieved or asked.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `grounded` | answers with a fact that can be looked up | every such fact is supported |
//! | `unsupported_facts` | facts | (a rate of what is unwanted) it is not supported |
//!
//! A fact is a number with its unit, a date, a code, a name or words in quotation marks (`facts.rs`); it is supported
//! if it stands in what the conversation retrieved before the answer, or in what the user asked (`support.rs`). A statement
//! that cites `[n]` is looked up in what it cites alone: a passage, or a service's answer by each of its pages. Notices
//! that a flow adds to an answer are not looked up. A number that can be computed from others, in a
//! statement that says so, is not checked. That a fact stands in a source does not mean that the source says what the
//! answer says: `docs/reference/answers.md` has the measured rates.
//!
//! Where the whole text of a passage is not known, a fact that is not in its beginning is undetermined.

mod accounts;
mod behind;
mod cited;
mod clock;
mod date;
mod duration;
mod facts;
mod fraction;
mod members;
mod numerals;
mod quantity;
#[cfg(test)]
mod quantity_tests;
mod support;
mod units;

use super::catalogue::Registered;
use super::{Member, Metric, Observation, Seen, TrialView, TurnView, quote, trajectory};
use crate::settings::catalogue::Units;
use crate::trace::{
    Answer, FlowSearch, Hit, Logged, Mode, Role, SearchResult, ToolCalled, ToolOutcome, ToolResult, USED_INTERNAL_KB,
    What, may_be_nearest,
};
use facts::{Fact, statements};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use support::{Source, Support};

pub(super) use behind::{makes_another_unit, says_price_per_small_unit};
pub(super) use units::{is_another_unit, scale_of, unit_of};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("grounded", |_| metric("answers with facts", false))
        .about(
            "Of the answers with facts, those whose every fact stands in what was retrieved or asked: numbers with units, \
             dates, codes, names, quoted words.",
        )
        .counted(Units::OfTurns),
    Registered::rate("unsupported_facts", |_| metric("facts", true))
        .about("Of the facts in answers, those that stand in nothing that was retrieved or asked.")
        .counted(Units::Unlimited)
        .lower_is_better(),
];

/// Why nothing can be looked up.
const UNSHOWN: &str = "no search is shown, nor what the answer is made of";

/// Facts of a trial's answers, looked up when the first metric or expectation asks for them.
#[derive(Debug, Default)]
pub struct FactLookup(OnceCell<Vec<Option<Grounded>>>);

/// A passage, or an answer of a service, that a statement may take its facts from.
#[derive(Debug)]
struct Evidence<'a> {
    id: &'a str,
    /// The text, and what else is said of it.
    texts: Vec<Cow<'a, str>>,
    /// The id, where the agent was shown it: its words may be repeated.
    shown: &'a str,
    /// The texts, prepared when the first fact is looked up in them: most statements cite one passage of many.
    prepared: OnceCell<Source>,
    whole: bool,
}

impl<'a> Evidence<'a> {
    fn new(id: &'a str, texts: Vec<Cow<'a, str>>, whole: bool) -> Self {
        Self { id, texts, shown: "", prepared: OnceCell::new(), whole }
    }

    /// The title, where it has one: what else is said of it stands before its text.
    fn title(&self) -> &str {
        self.texts.split_last().and_then(|(_, beside)| beside.first()).map_or("", AsRef::as_ref)
    }

    fn source(&self) -> &Source {
        self.prepared.get_or_init(|| {
            let mut source = Source::of(self.texts.iter().map(AsRef::as_ref));
            source.add_name(self.shown);
            source
        })
    }
}

/// What one conversation asked and retrieved so far.
#[derive(Debug, Default)]
struct Known<'a> {
    asked: Source,
    evidence: Vec<Evidence<'a>>,
    /// Places in `evidence` by what an answer may name as a source: a passage, a result or the address of a page.
    named: HashMap<&'a str, Vec<usize>>,
    /// Places of passages by id and text: one that is found twice is listed once.
    places: HashMap<(&'a str, &'a str), usize>,
    /// Why a search of the conversation does not show what it found.
    hidden: Option<&'a str>,
    /// Whether the trace lists all searches, or one of the conversation failed, had no hit or came after the answer: what is not
    /// shown was not found.
    found_nothing: bool,
}

/// The facts of an answer, with what became of each.
#[derive(Debug)]
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

    /// The first unsupported amount: a number with a unit, except times, which refusals have beside them ("open from 9 to 5").
    pub(super) fn invented(&self) -> Option<&Fact> {
        let mut facts = self.unsupported.iter().map(|(fact, _)| fact).filter(|_| self.unseen.is_none());
        facts.find(|fact| fact.is_amount())
    }
}

/// The facts of a turn's answer; `None` without an answer.
pub(super) fn grounded<'v>(view: &TrialView<'v>, turn: &TurnView<'_>) -> Option<&'v Grounded> {
    let is_it = |other: &TurnView<'_>| (other.conversation, other.turn) == (turn.conversation, turn.turn);
    let place = view.turns.iter().position(is_it)?;
    view.facts.0.get_or_init(|| of_trial(view)).get(place)?.as_ref()
}

fn of_trial<'a>(view: &TrialView<'a>) -> Vec<Option<Grounded>> {
    let texts: HashMap<&str, &'a str> =
        view.passages.iter().map(|passage| (passage.name(), passage.text.as_str())).collect();
    let (mut conversation, mut known) = (0, Known::<'a>::default());
    let mut found = Vec::with_capacity(view.turns.len());
    for turn in view.turns {
        if turn.conversation != conversation {
            (conversation, known) = (turn.conversation, Known::default());
        }
        known.asked.add(turn.query);
        let mut numbered = Vec::new();
        known.hidden = known.hidden.or_else(|| hidden(view, turn));
        known.found_nothing |= says_searches(view) || turn.events.iter().any(|what| is_failed_search(view, what));
        // An imported turn may go on after its answer: what that found supports later answers alone.
        let end = turn.events.iter().position(|what| matches!(what, What::TurnEnded(_)));
        let (before, after) = turn.events.split_at(end.unwrap_or(turn.events.len()));
        for result in before.iter().filter_map(|what| what.given()) {
            numbered.extend(known.hear(result, view, &texts));
        }
        // Notices are the flow's own words, not the model's.
        let notices: Vec<&str> = trajectory::logs(turn)
            .filter_map(|entry| if let Logged::Notice { text, .. } = entry { Some(text.as_str()) } else { None })
            .collect();
        known.found_nothing |= after.iter().any(|what| what.given().is_some());
        found.push(turn.answer().map(|answer| known.look_up(answer, &numbered, &notices)));
        for result in after.iter().filter_map(|what| what.given()) {
            known.hear(result, view, &texts);
        }
    }
    found
}

/// Why the trace does not show what a search or another tool of the turn returned, where it does not. What the model was not
/// asked again after is no part of its answer, unless it is a search.
fn hidden<'a>(view: &TrialView<'a>, turn: &TurnView<'a>) -> Option<&'a str> {
    let last = turn.events.iter().rposition(|what| matches!(what, What::ModelCalled(_))).unwrap_or_default();
    turn.events.iter().enumerate().find_map(|(place, what)| match what {
        What::Searched(FlowSearch { outcome: ToolOutcome::Unseen { reason }, .. }) => Some(reason.as_str()),
        What::ToolCalled(ToolCalled { tool, outcome, .. }) => {
            let role = view.trace.role(tool);
            let retrieves = matches!(role, Role::Knowledge | Role::External);
            match outcome {
                ToolOutcome::Unseen { reason } if retrieves || role == Role::None && place < last => {
                    Some(reason.as_str())
                }
                ToolOutcome::Ok(ToolResult::Other(result)) if retrieves && *result == ToolResult::UNSHOWN => {
                    Some("the trace does not show what a search found")
                }
                _ => None,
            }
        }
        _ => None,
    })
}

/// Whether an imported trace lists the searches and calls of every turn: where a list is empty, nothing was retrieved.
fn says_searches(view: &TrialView<'_>) -> bool {
    let lacks = |member| view.trace.lacks(member);
    let lists = view.trace.evidence.mode == Mode::Imported && view.trace.absent.is_some();
    lists && !lacks(Member::Passages) && !lacks(Member::Calls)
}

fn is_failed_search(view: &TrialView<'_>, what: &What) -> bool {
    let What::ToolCalled(ToolCalled { tool, outcome: ToolOutcome::Failed { .. }, .. }) = what else { return false };
    matches!(view.trace.role(tool), Role::Knowledge | Role::External)
}

impl<'a> Known<'a> {
    /// Adds what a tool returned; returns the places of the passages that `[1]`, `[2]` and so on stand for.
    fn hear(&mut self, result: &'a ToolResult, view: &TrialView<'a>, texts: &HashMap<&str, &'a str>) -> Vec<usize> {
        match result {
            ToolResult::Search(search) => {
                self.found_nothing |= search.hits.is_empty();
                let mut numbered = Vec::with_capacity(search.hits.len());
                for hit in &search.hits {
                    let (text, whole) = text_of(view, search, hit, texts);
                    let urls = hit.learned.iter().flat_map(|learned| &learned.urls);
                    let names = urls.chain(&hit.names).map(String::as_str);
                    let place = self.add(&hit.id, names, (text, &[&hit.title, &hit.beside]), whole);
                    self.evidence[place].shown = &hit.id;
                    numbered.push(place);
                }
                if !search.beside.is_empty() {
                    let whole = search.beside.chars().count() < Hit::BESIDE;
                    self.evidence.push(Evidence::new("a search's result", vec![search.beside.as_str().into()], whole));
                }
                // A service's text stands for each of its pages: it, and not their text, is what the agent was given.
                if let Some(managed) = &search.managed {
                    let pages = search.hits.iter().map(|hit| hit.id.as_str());
                    self.add(&search.kb_id, pages, (&managed.text, &[]), true);
                }
                numbered
            }
            ToolResult::External(found) => {
                let titles: Vec<&'a str> = found.citations.iter().map(|page| page.title.as_str()).collect();
                let pages = found.citations.iter().map(|page| page.url.as_str());
                self.add(&found.result, pages, (&found.answer, &titles), true);
                Vec::new()
            }
            ToolResult::Other(value) if *value == ToolResult::UNSHOWN => Vec::new(),
            ToolResult::Other(value) => {
                let text = written(value);
                let whole = text.chars().count() < ToolResult::MOST && !may_be_nearest(value);
                self.evidence.push(Evidence::new("a tool's result", vec![text.into()], whole));
                Vec::new()
            }
            ToolResult::Indexed(_) | ToolResult::Responded => Vec::new(),
        }
    }

    /// Adds a text with what else is said of it, under its id and other names; returns its place.
    fn add(
        &mut self,
        id: &'a str,
        names: impl Iterator<Item = &'a str>,
        (text, beside): (&'a str, &[&'a str]),
        whole: bool,
    ) -> usize {
        let place = *self.places.entry((id, text)).or_insert_with(|| {
            let texts = beside.iter().copied().chain([text]).map(Cow::Borrowed).collect();
            self.evidence.push(Evidence::new(id, texts, whole));
            self.evidence.len() - 1
        });
        for name in names.chain([id]) {
            let places = self.named.entry(name).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        place
    }

    /// Looks up the facts of an answer, except those in notices.
    fn look_up(&self, answer: &Answer, numbered: &[usize], notices: &[&str]) -> Grounded {
        let own: Vec<Range<usize>> = notices
            .iter()
            .filter_map(|notice| answer.text.rfind(notice).map(|from| from..from + notice.len()))
            .collect();
        let mut found = Grounded { supported: 0, unsupported: Vec::new(), unseen: None };
        let list = self.listed(answer);
        for statement in statements(&answer.text) {
            let text = &answer.text[statement.place.clone()];
            let cited: Vec<usize> =
                statement.cited.iter().flat_map(|number| self.places_of(*number, &list, answer, numbered)).collect();
            let everything = || (0..self.evidence.len()).collect();
            let all: Cow<'_, [usize]> = if cited.is_empty() { everything() } else { (&cited).into() };
            for fact in statement.facts {
                if own.iter().any(|notice| notice.contains(&fact.place.start)) {
                    continue;
                }
                let supports = |source: &Source| source.supports(&fact, text);
                let sources = all.iter().map(|place| self.evidence[*place].source());
                match Support::best([&self.asked].into_iter().chain(sources).map(supports)) {
                    Support::Supported => found.supported += 1,
                    Support::Computed => {}
                    Support::Unsupported => {
                        if let Some(part) = all.iter().map(|place| &self.evidence[*place]).find(|one| !one.whole) {
                            let why = format!("the whole text of {} is not known", quote(part.id, 60));
                            found.unseen.get_or_insert(why);
                        } else if let Some(why) = self.hidden {
                            found.unseen.get_or_insert_with(|| why.to_owned());
                        } else if self.evidence.is_empty() && !self.found_nothing && answer.hides(USED_INTERNAL_KB) {
                            found.unseen.get_or_insert_with(|| UNSHOWN.to_owned());
                        }
                        let note = note(&fact, text, &self.evidence, &cited);
                        found.unsupported.push((fact, note));
                    }
                }
            }
        }
        found
    }
}

/// What is missing, where it was looked for, and where it stands instead, or the passage nearest to the statement.
fn note(fact: &Fact, statement: &str, evidence: &[Evidence<'_>], cited: &[usize]) -> String {
    let words = format!("“{}”", quote(&fact.words, 60));
    if evidence.is_empty() {
        return format!("{words} was not asked, and nothing was retrieved");
    }
    let id = |place: usize| quote(evidence[place].id, 60);
    let elsewhere =
        (0..evidence.len()).find(|place| evidence[*place].source().supports(fact, statement) == Support::Supported);
    let mut places: Vec<String> = cited.iter().map(|place| id(*place)).collect();
    places.dedup();
    if let Some(place) = elsewhere {
        return format!("{words} is not in {}, which is cited; it is in {}", places.join(", "), id(place));
    }
    let near = |place: &usize| (evidence[*place].source().overlap(statement), usize::MAX - place);
    let nearest = (0..evidence.len()).max_by_key(near).map(id).unwrap_or_default();
    format!("{words} is in nothing that was retrieved; the nearest passage is {nearest}")
}

/// An untyped result as text, with the lines and quotation marks of the texts in it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string().replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\""),
    }
}

/// The text of a hit, and whether it is whole.
fn text_of<'a>(
    view: &TrialView<'a>,
    search: &'a SearchResult,
    hit: &'a Hit,
    texts: &HashMap<&str, &'a str>,
) -> (&'a str, bool) {
    // Searches may give other texts under one id, of which the trace names one.
    let is_its = |text: &&str| text.starts_with(hit.excerpt.trim_end_matches('…').trim_end());
    let named = view.trace.passage_name(&search.kb_id, &hit.id).filter(|_| hit.learned.is_none());
    let text = named.and_then(|name| texts.get(name).copied());
    let name = named.filter(|_| text.as_ref().is_none_or(is_its));
    let whole = match &hit.learned {
        Some(learned) => view.trace.external_answer(learned.conversation, &learned.result),
        None => text.filter(is_its),
    };
    // A beginning may end with a sentence, so that its end says nothing. The name of the whole text is its digest.
    let is_short = || match name {
        Some(name) => view.trace.is_named(name, hit),
        None => hit.excerpt.chars().count() < Hit::EXCERPT && !hit.excerpt.ends_with('…'),
    };
    whole.map_or_else(|| (hit.excerpt.as_str(), is_short()), |text| (text, true))
}

fn metric(units: &'static str, by_fact: bool) -> Metric {
    Metric {
        members: &[Member::Passages, Member::Answers, Member::Sources],
        unseen: Box::new(|view| {
            let mut turns = view.turns.iter().filter_map(|turn| grounded(view, turn));
            turns.find_map(|found| found.unseen.clone())
        }),
        ..Metric::new(units, move |view| observe(view, by_fact))
    }
}

/// The units: facts, or answers with facts.
fn observe(view: &TrialView<'_>, by_fact: bool) -> Vec<Observation> {
    let mut units = Vec::new();
    for turn in view.turns {
        let Some(found) = grounded(view, turn) else { continue };
        if found.unseen.is_some() || found.supported + found.unsupported.len() == 0 {
            continue;
        }
        if by_fact {
            units.extend((0..found.supported).map(|_| Observation::failure(turn.label(), "")));
            units.extend(found.unsupported.iter().map(|(_, note)| Observation::occurrence(turn.label(), note)));
        } else {
            units.push(Observation::of(turn.label(), found.holds(0)));
        }
    }
    units
}

/// Number of supported facts of a text by its source, and the unsupported ones by place.
pub fn unsupported(answer: &str, source: &str) -> (usize, Vec<std::ops::Range<usize>>) {
    let answer = Answer { text: answer.into(), ..Answer::default() };
    let mut known = Known::default();
    known.add("source", [].into_iter(), (source, &[]), true);
    let found = known.look_up(&answer, &[], &[]);
    (found.supported, found.unsupported.into_iter().map(|(fact, _)| fact.place).collect())
}

/// Places of the facts in a text.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests use it"))]
pub fn places(answer: &str) -> Vec<std::ops::Range<usize>> {
    statements(answer).into_iter().flat_map(|one| one.facts).map(|fact| fact.place).collect()
}

#[cfg(test)]
mod tests;
