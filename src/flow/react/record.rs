//! Records a turn of `react`: its log, notices, transitions, stored state and outcome.

use super::React;
use super::grade::in_range;
use super::machine::{Event, State};
use super::memory::{Document, Memory, Report, TurnState};
use super::notices::Notice;
use super::policy::{Happened, Stop, efficiency};
use crate::flow::machine::Word;
use crate::flow::turn::Turn;
use crate::flow::{Abort, StoreError};
use crate::trace::{Answer, Logged, SourceRef, TurnOutcome};
use serde_json::json;

/// Service named as unavailable when the documents cannot be searched.
pub(super) const DOCUMENTS: &str = "document search";

impl TurnState {
    /// Creates the state of a turn that begins with these words.
    pub(super) fn of(query: &str) -> Self {
        Self { query: query.to_owned(), ..Self::default() }
    }

    /// Number of steps that added a source.
    fn useful_steps(&self) -> u32 {
        let useful = self.findings.iter().filter(|finding| finding.useful).count();
        u32::try_from(useful).unwrap_or(u32::MAX)
    }

    /// Report on the finished turn, for display.
    pub(super) fn report(&self, memory: &Memory) -> Report {
        Report {
            steps: self.progress.steps,
            retries: self.progress.retries,
            approaches: self.progress.tried.clone(),
            style: self.style,
            notices: self.notices.iter().map(|(_, text)| text.clone()).collect(),
            efficiency: efficiency(self.useful_steps(), self.progress.steps),
            tokens: self.usage,
            session_tokens: memory.usage,
            estimated_tokens: self.estimated,
            expected_tokens: self.expected,
            unavailable: memory.unavailable.clone(),
            stored: self.stored,
        }
    }
}

impl Turn<'_, React> {
    /// Logs the messages sent to the model and the state of the turn at the time of an error.
    pub(super) fn log_failure(&self, kind: &str) {
        let progress = &self.own.progress;
        let step = if progress.state == State::Thinking { progress.steps + 1 } else { progress.steps };
        let context = json!({
            "state": progress.state.name(),
            "shown": self.shown(),
            "tried": progress.tried,
            "failures": progress.failures,
            "queries": self.own.queries,
            "findings": self.own.findings.iter().map(|finding| &finding.summary).collect::<Vec<_>>(),
            "relevant": self.own.relevant.iter().map(|one| &one.id).collect::<Vec<_>>(),
            "reflections": self.memory.reflections.len(),
            "notes": self.memory.notes.len(),
            "tokens": {"turn": self.own.usage, "session": self.memory.usage},
            "trouble": if kind == "model_unavailable" { &self.own.broken_off } else { &self.own.trouble },
        });
        let approach = progress.approach.name().to_owned();
        self.log(Logged::Failure { step, kind: kind.into(), approach, context });
    }

    pub(super) fn say_status(&self, text: &str, tokens: Option<u64>) {
        self.log(Logged::Status { text: text.into(), tokens });
    }

    /// Adds a notice for the user, once.
    pub(super) fn notice(&mut self, notice: &Notice) {
        let entry = (notice.about().to_owned(), notice.text());
        if !entry.1.is_empty() && !self.own.notices.contains(&entry) {
            self.log(Logged::Notice { about: entry.0.clone(), text: entry.1.clone() });
            self.own.notices.push(entry);
        }
    }

    /// Handles one occurrence: records the transition and stores the state before anything else is done.
    pub(super) fn take(&mut self, happened: Happened) -> Result<(), Abort> {
        let Some(on) = self.own.progress.on(happened) else { return Ok(()) };
        self.happen(on);
        let (to, stop) = (self.own.progress.state, self.own.progress.stop);
        if on == Event::PartialResult && self.own.answer.is_empty() {
            self.own.answer = self.partial();
            self.notice(&Notice::Partial);
        }
        if to == State::Answering || to.is_terminal() {
            if let Some(stop) = stop {
                self.notice(&Notice::Stopped(stop));
            }
            if self.memory.unavailable.iter().any(|feature| feature == DOCUMENTS) {
                self.notice(&Notice::SearchUnavailable);
            }
            if self.own.relevant.is_empty() && to != State::Failed {
                self.notice(&Notice::OwnKnowledge);
            }
        }
        if to.is_terminal() {
            self.log(Logged::Efficiency { useful: self.own.useful_steps(), actual: self.own.progress.steps });
        }
        self.persist()
    }

    /// The findings as noted, if no answer was written.
    fn partial(&self) -> String {
        let useful = self.own.findings.iter().filter(|finding| finding.useful);
        let noted = useful.map(|finding| finding.summary.as_str()).collect::<Vec<_>>().join(" ");
        // A number in a summary counts the passages of that search and does not name a source of the answer.
        in_range(&noted, 0)
    }

    /// Stores the current session.
    pub(super) fn persist(&mut self) -> Result<(), Abort> {
        let state = self.own.progress.state.name();
        self.own.elapsed_us = u64::try_from(self.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.own.model_calls = self.model_calls();
        self.own.minted = self.minted();
        self.own.stored += 1;
        let memory = Memory { under_way: Some(self.own.clone()), ..self.memory.clone() };
        self.conversation.keep(&memory)?;
        let conversation = &*self.conversation;
        match self.env.sessions.save(&conversation.session, state, &conversation.to_json()) {
            Ok(()) => self.log(Logged::Persisted { state: state.into() }),
            Err(StoreError::Killed) => {
                self.log(Logged::Persisted { state: state.into() });
                return Err(Abort::Killed);
            }
            Err(StoreError::Unusable(_)) => self.notice(&Notice::NotKept),
        }
        Ok(())
    }

    /// The outcome for the user: the answer with its notices and sources, or an error.
    pub(super) fn outcome(&mut self) -> TurnOutcome {
        self.memory.last = Some(self.own.report(&self.memory));
        let notices: Vec<&str> = self.own.notices.iter().map(|(_, text)| text.as_str()).collect();
        let progress = &self.own.progress;
        if progress.state != State::Answered {
            let kind = match progress.stop {
                Some(Stop::Model) => "model_unavailable",
                Some(Stop::Budget) => "budget_used_up",
                Some(Stop::Timeout) => "timeout",
                _ => "no_answer",
            };
            let why = if self.own.broken_off.is_empty() || progress.stop != Some(Stop::Model) {
                String::new()
            } else {
                format!(" ({})", self.own.broken_off)
            };
            let message = format!("No answer was ready{why}. {}", notices.join(" "));
            return TurnOutcome::Failed { kind: kind.into(), message: message.trim_end().to_owned() };
        }
        let source = |one: &Document| SourceRef {
            kind: "internal".into(),
            id: one.id.clone(),
            title: one.title.clone(),
            number: None,
        };
        let sources: Vec<SourceRef> = self.own.relevant.iter().map(source).collect();
        let mut text = self.own.answer.clone();
        for notice in notices {
            text.push_str("\n\nNote: ");
            text.push_str(notice);
        }
        let used_internal_kb = !sources.is_empty();
        TurnOutcome::Answered(Answer { text, sources, used_internal_kb, ..Answer::default() })
    }
}
