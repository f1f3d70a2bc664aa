//! What was seen of a turn, and the events that are built from it: again at the end of the trial, if more spans came.

use super::session::{LOST, ended_as};
use super::target::Reply;
use super::trace_builder::{LateResult, OF_NO_CONVERSATION, RanIn, Shown, TraceBuilder};
use super::trial_spans::TrialSpans;
use super::{Session, Told, Trouble, TurnSpans, probe};
use crate::flow::context::micros;
use crate::provider::chat::Role;
use crate::trace::spans::stories;
use crate::trace::text::quote;
use crate::trace::{Event, Learned, Member, ToolOutcome, ToolResult, TurnOutcome, What};
use crate::transport::{Miss, Passed, TransportError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// One turn, as it was seen.
pub(super) struct Seen {
    pub conversation: u32,
    pub turn: u32,
    /// When it began, since the trial did.
    pub began: Duration,
    pub took: Duration,
    /// Texts of earlier turns and of this one.
    pub known: Vec<(Role, String)>,
    pub passed: Vec<Passed>,
    pub reply: Reply,
    /// Completions before it.
    pub completions: u32,
}

/// A turn whose spans were awaited.
pub(crate) struct Traced {
    seen: Seen,
    /// The span that its `traceparent` names.
    parent: String,
    /// Places of its spans.
    spans: Vec<usize>,
    shown: Shown,
    notes: Vec<String>,
    lines: Vec<String>,
}

/// What of a trial's turns is read again at its end: those whose spans are received, and results that came late.
#[derive(Default)]
pub(crate) struct Tracing {
    turns: Vec<Traced>,
    spans: TrialSpans,
    /// Results of calls of earlier turns, by the turn that showed them.
    pub(super) late: BTreeMap<(u32, u32), Vec<LateResult>>,
    /// What is odd about exports.
    notes: Vec<String>,
    /// Exports, or parts of them, that could not be read.
    unread: usize,
}

/// Events of a turn.
pub(super) struct Built {
    pub miss: Option<Box<Miss>>,
    pub outcome: Result<TurnOutcome, Trouble>,
    pub events: Vec<(Duration, What)>,
    pub completions: u32,
    pub offered: Option<Vec<String>>,
    pub parameters: BTreeMap<String, BTreeSet<String>>,
    /// Results of calls of earlier turns.
    pub late: Vec<LateResult>,
}

/// Reason for an outcome that may be of a later turn.
const UNSEEN_HERE: &str = "its result reached the model in a later turn, so the call ran in this turn or in that one";

impl Session<'_> {
    /// Builds the events of a turn that just ended, with its spans if the agent sends any.
    pub(super) async fn build(&mut self, seen: Seen, parent: &str) -> Built {
        let Some(telemetry) = self.telemetry else { return self.built(&seen, Vec::new(), &[]).0 };
        let received = telemetry.of_turn(parent).await;
        self.tracing.turns.push(Traced {
            seen,
            parent: parent.to_owned(),
            spans: Vec::new(),
            shown: Shown::default(),
            notes: Vec::new(),
            lines: Vec::new(),
        });
        self.arrived(received);
        let last = self.tracing.turns.len() - 1;
        self.rebuilt(last)
    }

    fn arrived(&mut self, TurnSpans { spans, notes, unread }: TurnSpans) {
        let last = self.tracing.turns.len().saturating_sub(1);
        self.tracing.spans.arrived(last, spans);
        self.tracing.notes.extend(notes);
        self.tracing.unread += unread;
    }

    fn spans_by_turn(&self) -> Vec<Vec<usize>> {
        let parents: Vec<String> = self.tracing.turns.iter().map(|turn| turn.parent.clone()).collect();
        self.tracing.spans.by_turn(&parents)
    }

    /// Builds a traced turn with the spans that came so far.
    fn rebuilt(&mut self, place: usize) -> Built {
        let spans = self.spans_by_turn().swap_remove(place);
        let turn = &self.tracing.turns[place];
        let outside = [turn.parent.clone()];
        let (built, (shown, notes, lines)) = self.built(&turn.seen, self.tracing.spans.at(&spans), &outside);
        let turn = &mut self.tracing.turns[place];
        (turn.spans, turn.shown, turn.notes, turn.lines) = (spans, shown, notes, lines);
        built
    }

    pub(super) fn built(
        &self,
        seen: &Seen,
        spans: Vec<crate::trace::spans::Span>,
        outside: &[String],
    ) -> (Built, (Shown, Vec<String>, Vec<String>)) {
        let is_earlier = |event: &&Event| event.conversation == seen.conversation && event.turn < seen.turn;
        let settled = self.tracing.late.range((seen.conversation, 0)..(seen.conversation, seen.turn));
        let settled: Vec<&LateResult> = settled.flat_map(|(_, late)| late).collect();
        let mut builder = TraceBuilder::new(&self.settings.roles, self.words, &seen.known, seen.completions)
            .citing(self.settings.target.sources.as_deref())
            .after(self.events.iter().filter(is_earlier).map(|event| &event.what).collect(), &settled);
        let miss = builder.hear(seen.passed.clone());
        let (mut notes, mut lines) = (Vec::new(), Vec::new());
        for mut story in stories(spans, outside) {
            notes.extend(builder.add_spans(&mut story));
            lines.extend(story.lines().iter().map(|line| self.words.text(line)));
        }
        let outcome = builder.end(seen.reply.clone());
        let TraceBuilder {
            events,
            completions,
            mut offered,
            parameters,
            of_provider,
            offers_unnamed,
            writes_calls,
            shown,
            late,
            ..
        } = builder;
        if let Some(offered) = &mut offered {
            let more = of_provider.into_iter().filter(|tool| !offered.contains(tool)).collect::<Vec<_>>();
            offered.extend(more);
        }
        // What an MCP server has is known once an answer lists it.
        let offered = offered.filter(|_| !offers_unnamed && !writes_calls);
        (Built { miss, outcome, events, completions, offered, parameters, late }, (shown, notes, lines))
    }

    /// Ends the trial: adds spans that arrived after their turns, and reads the index where it was not read yet.
    ///
    /// # Errors
    /// [`Trouble`] if the index cannot be read.
    pub(crate) async fn finish(&mut self) -> Result<(), Trouble> {
        if let Some(telemetry) = self.telemetry {
            let late = telemetry.rest().await;
            self.arrived(late);
            for (place, spans) in self.spans_by_turn().into_iter().enumerate() {
                if spans != self.tracing.turns[place].spans {
                    let built = self.rebuilt(place);
                    self.replace(place, built);
                }
            }
        }
        self.settle_late_results();
        self.read_index().await
    }

    /// Leaves each call whose result reached the model in a later turn in the turn in which it ran.
    fn settle_late_results(&mut self) {
        for ((conversation, turn), LateResult { call, id, ran_as, ran }) in std::mem::take(&mut self.tracing.late)
            .into_iter()
            .flat_map(|(at, late)| late.into_iter().map(move |one| (at, one)))
        {
            let is_it = |event: &Event| {
                event.conversation == conversation
                    && matches!(&event.what, What::ToolCalled(made) if made.call == call && made.id == id)
            };
            let is_asked = |event: &Event| {
                let is_unseen = matches!(&event.what, What::ToolCalled(made) if made.outcome.is_unseen());
                event.turn < turn && is_unseen && is_it(event)
            };
            let asked = self.events.iter().position(is_asked);
            match (asked, ran) {
                (Some(asked), RanIn::Now) => _ = self.events.remove(asked),
                (Some(asked), RanIn::Before(outcome)) => self.come_to(asked, ran_as, outcome),
                (Some(asked), RanIn::Unknown) => {
                    self.come_to(asked, ran_as, ToolOutcome::Unseen { reason: UNSEEN_HERE.to_owned() });
                }
                // A span that came later shows that it ran in the earlier turn.
                (None, _) => self.events.retain(|event| event.turn != turn || !is_it(event)),
            }
        }
    }

    fn come_to(&mut self, place: usize, ran_as: (String, Value), outcome: ToolOutcome) {
        if let What::ToolCalled(call) = &mut self.events[place].what {
            (call.tool, call.arguments) = ran_as;
            call.outcome = outcome;
        }
    }

    /// Replaces the events of a turn.
    fn replace(&mut self, place: usize, built: Built) {
        let Seen { conversation, turn, began, took, .. } = self.tracing.turns[place].seen;
        let of_turn = |event: &Event| (event.conversation, event.turn) == (conversation, turn);
        let first =
            self.events.iter().position(|event| of_turn(event) && matches!(event.what, What::TurnStarted { .. }));
        let end = self.events.iter().position(|event| of_turn(event) && matches!(event.what, What::TurnEnded(_)));
        let (Some(first), Some(end)) = (first, end) else { return };
        self.tracing.late.insert((conversation, turn), built.late);
        if let (What::TurnEnded(ended), Ok(outcome)) = (&mut self.events[end].what, built.outcome) {
            ended.outcome = outcome;
        }
        let event = |(at, what): (Duration, What)| {
            let at_us = micros(began + at.min(took));
            Event { at_us, conversation, turn, what }
        };
        self.events.splice(first + 1..end, built.events.into_iter().map(event));
    }

    /// Adds what the index holds to the entries that no probe was asked for yet.
    async fn read_index(&mut self) -> Result<(), Trouble> {
        let Some(probe) = &self.probe else { return Ok(()) };
        let lost = self.events.iter().any(|event| ended_as(event, &LOST));
        let mut held = std::mem::take(&mut self.held);
        let written =
            |event: &mut Event| event.what.indexed_mut().is_some().then_some((event.conversation, event.turn));
        let turns: Vec<(u32, u32)> = self.events.iter_mut().filter_map(written).collect();
        let mut asked: BTreeMap<String, Vec<probe::HeldKeyword>> = BTreeMap::new();
        for (conversation, turn) in turns {
            if lost || held.contains_key(&(conversation, turn)) {
                continue;
            }
            let id = self.conversation(conversation, turn);
            if !asked.contains_key(&id) {
                let found = probe.ask(&id, &*self.clock, self.settings.turn, self.words).await?;
                self.settled().await?;
                asked.insert(id.clone(), found);
                self.no_miss()?;
            }
            held.insert((conversation, turn), asked[&id].clone());
        }
        for event in &mut self.events {
            let known = held.get(&(event.conversation, event.turn));
            if let (Some(entry), Some(known)) = (event.what.indexed_mut(), known) {
                probe::read_back(entry, known);
            }
        }
        Ok(())
    }

    /// What the agent asks its services for while its index is read belongs to no turn.
    pub(super) fn no_miss(&self) -> Result<(), Trouble> {
        let miss = self.tap.take().into_iter().find_map(|one| match one.result {
            Err(TransportError::Miss(miss)) => Some(miss),
            _ => None,
        });
        miss.map_or(Ok(()), |miss| Err(Trouble::Miss(miss)))
    }

    /// What spans told in the trial, after its end. Learned entries get the conversation that stored them.
    pub(crate) fn told(&mut self) -> Told {
        let Tracing { notes, unread, .. } = &mut self.tracing;
        let mut told = Told { notes: std::mem::take(notes), unread: *unread, ..Told::default() };
        let mut shown = Shown::default();
        for turn in &self.tracing.turns {
            told.turns_without += usize::from(turn.spans.is_empty());
            told.turns_of_clients += usize::from(!turn.spans.is_empty() && !turn.shown.says_work);
            told.notes.extend(turn.notes.iter().cloned());
            told.lines.extend(turn.lines.iter().cloned());
            shown.says_outcomes |= turn.shown.says_outcomes;
            shown.outcomes += turn.shown.outcomes;
            told.unread += turn.shown.lost;
            shown.without_learned += turn.shown.without_learned;
            shown.bases += turn.shown.bases;
        }
        let (mut calls, mut searches) = (0, 0);
        let mut stored: Vec<(u32, String, Vec<String>)> = Vec::new();
        for event in &mut self.events {
            let conversation = event.conversation;
            let outcome = match &mut event.what {
                What::ToolCalled(call) => {
                    calls += 1;
                    &mut call.outcome
                }
                What::Searched(search) => &mut search.outcome,
                What::Logged(_) => {
                    told.shows.insert(Member::Log);
                    continue;
                }
                _ => continue,
            };
            match outcome {
                ToolOutcome::Ok(ToolResult::Search(search)) => {
                    searches += 1;
                    for hit in &mut search.hits {
                        let Some(learned) = &mut hit.learned else { continue };
                        if learned.conversation == OF_NO_CONVERSATION && !originate(learned, &stored) {
                            let id = quote(&hit.id, 60);
                            told.notes.push(format!("no conversation of this trial stored the learned entry {id}"));
                            hit.learned = None;
                        }
                    }
                }
                ToolOutcome::Ok(ToolResult::Indexed(entry)) => {
                    stored.push((conversation, entry.result.clone(), entry.keywords.clone()));
                }
                _ => {}
            }
        }
        let says = |shown: usize, all: usize| shown >= all && (shown > 0 || all == 0 && told.turns_without == 0);
        if shown.says_outcomes && says(shown.outcomes, calls) {
            told.shows.insert(Member::Outcomes);
        }
        if shown.without_learned > 0 && says(shown.without_learned, searches) {
            told.shows.insert(Member::WithoutLearned);
        }
        if shown.bases > 0 && says(shown.bases, searches) {
            told.shows.insert(Member::Bases);
        }
        // What some turns or exports show is not shown of all.
        if told.turns_without + told.unread > 0 {
            told.shows.clear();
        }
        told
    }
}

/// Names the conversation that stored a learned entry last; whether there is one.
fn originate(learned: &mut Learned, stored: &[(u32, String, Vec<String>)]) -> bool {
    let fits = |(_, result, keywords): &&(u32, String, Vec<String>)| {
        (learned.result.is_empty() || *result == learned.result)
            && learned.keywords.iter().all(|word| keywords.contains(word))
            && !(learned.result.is_empty() && learned.keywords.is_empty())
    };
    let found = stored.iter().rev().find(fits);
    if let Some((conversation, result, _)) = found {
        (learned.conversation, learned.result) = (*conversation, result.clone());
    }
    found.is_some()
}
