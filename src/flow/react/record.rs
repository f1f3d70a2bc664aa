//! What is written down of a turn of `react`: its log, its notices, its transitions, its state in the store, and how it ended.

use super::grade::in_range;
use super::memory::{Document, Memory, Report, TurnState};
use super::notices::Notice;
use super::policy::{Event, State, Stop, efficiency};
use super::turn::UnderWay;
use crate::flow::{Abort, StoreError};
use crate::trace::{Answer, Logged, SourceRef, TurnOutcome};
use serde_json::json;

/// What is said to be unavailable where the documents cannot be searched.
pub(super) const DOCUMENTS: &str = "document search";

impl TurnState {
    /// A turn that begins with these words.
    pub(super) fn of(query: &str) -> Self {
        Self { query: query.to_owned(), ..Self::default() }
    }

    /// The finished turn, for whoever shows it.
    pub(super) fn report(&self, memory: &Memory) -> Report {
        let useful = self.findings.iter().filter(|finding| finding.useful).count();
        Report {
            steps: self.progress.steps,
            retries: self.progress.retries,
            approaches: self.progress.tried.clone(),
            style: self.style,
            notices: self.notices.iter().map(|(_, text)| text.clone()).collect(),
            efficiency: efficiency(u32::try_from(useful).unwrap_or(u32::MAX), self.progress.steps),
            tokens: self.usage,
            session_tokens: memory.usage,
            estimated_tokens: self.estimated,
            unavailable: memory.unavailable.clone(),
            stored: self.stored,
        }
    }
}

impl UnderWay<'_> {
    /// Writes down everything that the model was shown and the turn knows, at the moment of an error.
    pub(super) fn log_failure(&self, kind: &str) {
        let progress = &self.state.progress;
        let step = if progress.state == State::Thinking { progress.steps + 1 } else { progress.steps };
        let context = json!({
            "state": progress.state.name(),
            "shown": self.turn.shown(),
            "tried": progress.tried,
            "failures": progress.failures,
            "queries": self.state.queries,
            "findings": self.state.findings.iter().map(|finding| &finding.summary).collect::<Vec<_>>(),
            "relevant": self.state.relevant.iter().map(|one| &one.id).collect::<Vec<_>>(),
            "reflections": self.memory.reflections.len(),
            "notes": self.memory.notes.len(),
            "tokens": {"turn": self.state.usage, "session": self.memory.usage},
            "trouble": if kind == "model_unavailable" { &self.state.broken_off } else { &self.state.trouble },
        });
        let approach = progress.approach.name().to_owned();
        self.turn.log(Logged::Failure { step, kind: kind.into(), approach, context });
    }

    pub(super) fn say_status(&self, text: &str, tokens: Option<u64>) {
        self.turn.log(Logged::Status { text: text.into(), tokens });
    }

    /// Tells the user, once.
    pub(super) fn notice(&mut self, notice: &Notice) {
        let told = (notice.about().to_owned(), notice.text());
        if !told.1.is_empty() && !self.state.notices.contains(&told) {
            self.turn.log(Logged::Notice { about: told.0.clone(), text: told.1.clone() });
            self.state.notices.push(told);
        }
    }

    /// Takes an event in: the transition is recorded and the state stored, before anything else is done.
    pub(super) fn happen(&mut self, event: Event) -> Result<(), Abort> {
        let Some(moved) = self.state.progress.on(event) else { return Ok(()) };
        self.turn.moved(moved.from.name(), moved.on, moved.to.name());
        let stop = self.state.progress.stop;
        if moved.on == "partial_result" && self.state.answer.is_empty() {
            self.state.answer = self.partial();
            self.notice(&Notice::Partial);
        }
        if moved.to == State::Answering || moved.to.is_terminal() {
            if let Some(stop) = stop {
                self.notice(&Notice::Stopped(stop));
            }
            if self.memory.unavailable.iter().any(|feature| feature == DOCUMENTS) {
                self.notice(&Notice::SearchUnavailable);
            }
            if self.state.relevant.is_empty() && moved.to != State::Failed {
                self.notice(&Notice::OwnKnowledge);
            }
        }
        if moved.to.is_terminal() {
            let useful = self.state.findings.iter().filter(|finding| finding.useful).count();
            let actual = self.state.progress.steps;
            let optimal = u32::try_from(useful).unwrap_or(u32::MAX).clamp(1, actual.max(1));
            self.turn.log(Logged::Efficiency { optimal, actual });
        }
        self.persist()
    }

    /// What was found, as it was noted, where no answer was written.
    fn partial(&self) -> String {
        let useful = self.state.findings.iter().filter(|finding| finding.useful);
        let noted = useful.map(|finding| finding.summary.as_str()).collect::<Vec<_>>().join(" ");
        // A number in a summary counts the passages of its own search, and stands for no source of the answer.
        in_range(&noted, 0)
    }

    /// Stores the session as it is now.
    pub(super) fn persist(&mut self) -> Result<(), Abort> {
        let state = self.state.progress.state.name();
        self.state.elapsed_us = u64::try_from(self.turn.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.state.model_calls = self.turn.model_calls();
        self.state.minted = self.turn.minted();
        self.state.stored += 1;
        let memory = Memory { under_way: Some(self.state.clone()), ..self.memory.clone() };
        self.turn.conversation.keep(&memory)?;
        let conversation = &*self.turn.conversation;
        match self.turn.env.sessions.save(&conversation.session, state, &conversation.to_json()) {
            Ok(()) => self.turn.log(Logged::Persisted { state: state.into() }),
            Err(StoreError::Killed) => {
                self.turn.log(Logged::Persisted { state: state.into() });
                return Err(Abort::Killed);
            }
            Err(StoreError::Unusable(_)) => self.notice(&Notice::NotKept),
        }
        Ok(())
    }

    /// What the user gets: the answer with its notices and sources, or an error.
    pub(super) fn outcome(&self) -> TurnOutcome {
        let notices: Vec<&str> = self.state.notices.iter().map(|(_, text)| text.as_str()).collect();
        let progress = &self.state.progress;
        if progress.state != State::Answered {
            let kind = match progress.stop {
                Some(Stop::Model) => "model_unavailable",
                Some(Stop::Budget) => "budget_used_up",
                Some(Stop::Timeout) => "timeout",
                _ => "no_answer",
            };
            let why = if self.state.broken_off.is_empty() || progress.stop != Some(Stop::Model) {
                String::new()
            } else {
                format!(" ({})", self.state.broken_off)
            };
            let message = format!("No answer was ready{why}. {}", notices.join(" "));
            return TurnOutcome::Failed { kind: kind.into(), message: message.trim_end().to_owned() };
        }
        let source =
            |one: &Document| SourceRef { kind: "internal".into(), id: one.id.clone(), title: one.title.clone() };
        let sources: Vec<SourceRef> = self.state.relevant.iter().map(source).collect();
        let mut text = self.state.answer.clone();
        for notice in notices {
            text.push_str("\n\nNote: ");
            text.push_str(notice);
        }
        let used_internal_kb = !sources.is_empty();
        let (confidence, used_external_kb, refused, unseen) = (None, false, false, Vec::new());
        TurnOutcome::Answered(Answer {
            text,
            sources,
            confidence,
            used_internal_kb,
            used_external_kb,
            refused,
            unseen,
            traceable: false,
        })
    }
}
