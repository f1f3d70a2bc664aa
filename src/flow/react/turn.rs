//! The four requests of `react`, each from its messages to the resulting event.

use super::budget::{self, Budget};
use super::grade::{Grades, in_range};
use super::machine::State;
use super::memory::{Document, Finding, Note, Reflection};
use super::notices::Notice;
use super::policy::{FailureKind, Happened};
use super::record::DOCUMENTS;
use super::tools::{ANALYSE, ASSESS, SEARCH, TOOLS};
use super::{React, prompts, style};
use crate::flow::tools::{Declaration, End, Refusal};
use crate::flow::turn::{Completed, Turn};
use crate::flow::{Abort, digest};
use crate::provider::chat::{Finish, Role, ToolCall, ToolChoice};
use crate::settings::Enforcement;
use crate::trace::{Logged, ToolResult};
use serde_json::Value;

/// Maximum number of sources of one answer.
const MOST_SOURCES: usize = 8;

impl Turn<'_, React> {
    /// Limits on its tokens.
    pub(super) fn budget(&self) -> Budget {
        let settings = &self.env.settings;
        let limits = &settings.limits;
        Budget::new(limits.window, limits.tokens, limits.warn_tokens, settings.model.max_tokens)
    }

    /// Prepares the turn before the first request: lasting preferences in the user's words, length of the answer, cost
    /// estimate.
    pub(super) fn prepare(&mut self) -> Result<(), Abort> {
        for (kind, text) in style::notes(&self.own.query) {
            let note = Note { kind, text };
            let shown = digest(Role::User, &prompts::note(&self.env.settings.prompts, &note));
            if self.memory.note(note.clone()) {
                self.log(Logged::Noted { kind: kind.name().into(), text: note.text, shown });
            }
        }
        let wishes = self.memory.notes.iter().map(|note| note.text.as_str());
        let (chosen, because) = style::style(&self.own.query, wishes);
        self.own.style = chosen;
        self.log(Logged::Style { style: chosen.name().into(), because: because.into() });
        let (budget, used) = (self.budget(), self.memory.usage);
        let (most, warned) = (budget.most_of_turn(used), budget.warns(used));
        let expected = budget.expected_of_turn(used, self.first_request(), chosen);
        (self.own.estimated, self.own.expected) = (most, expected);
        let (expected, Budget { warn, limit, .. }) = (Some(expected), budget);
        self.log(Logged::Estimated { most, expected, warn, warned, limit });
        if let Some(threshold) = warn.filter(|_| warned) {
            self.notice(&Notice::Costs { most, threshold });
        }
        self.persist()
    }

    /// One step: reasoning, and the search.
    pub(super) async fn think_and_act(&mut self) -> Result<(), Abort> {
        self.say_status("Thinking…", None);
        self.own.exchange.clear();
        self.own.found.clear();
        let forced = self.env.settings.enforcement == Enforcement::Forced || self.own.progress.must_call();
        let choice = if forced { ToolChoice::Named(SEARCH.into()) } else { ToolChoice::Auto };
        let offered = self.offered(Some(SEARCH));
        let Some(completion) = self.request(choice, offered).await? else { return Ok(()) };
        let step = self.own.progress.steps + 1;
        if completion.calls.is_empty() {
            if self.own.progress.has_findings {
                return self.take(Happened::Ready);
            }
            return self.fail(FailureKind::NoCall, "The reply called no tool.");
        }
        let approach = self.own.progress.approach.name();
        let reasoning = reasoning(&completion.calls[0]);
        if let Some(text) = &reasoning {
            self.log(Logged::Thought { step, text: text.clone(), approach: approach.into() });
        }
        self.say_status("Searching…", None);
        let end = self.run(&completion, SEARCH).await?;
        match end {
            End::Gave(ToolResult::Search(search)) => {
                if let Some(place) = self.memory.unavailable.iter().position(|feature| feature == DOCUMENTS) {
                    let feature = self.memory.unavailable.remove(place);
                    self.log(Logged::Recovered { feature });
                }
                if search.hits.is_empty() {
                    self.finding(step, format!("`{}` found nothing.", search.query), false);
                    self.fail(FailureKind::NothingFound, "The search found no passage.")
                } else {
                    self.take(Happened::Found)
                }
            }
            End::Failed(cause) => self.search_failed(cause),
            End::UsedUp if self.own.progress.failures.contains(&FailureKind::SearchFailed) => {
                self.search_failed("no try is left")
            }
            other => {
                let cause = if let End::Refused(cause) = other { cause } else { "it is not on offer now" };
                self.fail(FailureKind::CallRefused, &format!("The call was refused ({cause}); its result says why."))
            }
        }
    }

    fn search_failed(&mut self, cause: &str) -> Result<(), Abort> {
        if !self.memory.unavailable.iter().any(|feature| feature == DOCUMENTS) {
            self.memory.unavailable.push(DOCUMENTS.into());
        }
        self.fail(FailureKind::SearchFailed, &format!("The documents could not be searched ({cause})."))
    }

    /// Assesses the results and names the relevant ones.
    pub(super) async fn observe(&mut self) -> Result<(), Abort> {
        self.say_status("Analysing the results…", None);
        self.own.assessment = None;
        let offered = self.offered(None);
        let Some(completion) = self.request(ToolChoice::Named(ASSESS.into()), offered).await? else { return Ok(()) };
        self.run(&completion, ASSESS).await?;
        let step = self.own.progress.steps;
        let query = self.own.queries.last().cloned().unwrap_or_default();
        let (grades, by, observation, said_met, summary) = match self.own.assessment.take() {
            Some(said) => {
                // The tool has checked the numbers against the passages.
                let grades = Grades::of_numbers(&said.relevant, self.own.found.len()).ok();
                (grades, "model", said.observation, said.goal_met, said.summary)
            }
            None => (None, "words", String::new(), false, String::new()),
        };
        let by_model = grades.is_some();
        let grades = grades.unwrap_or_else(|| Grades::by_words(&query, &self.own.found));
        let goal_met = grades.count() > 0 && (said_met || !by_model) || self.own.progress.has_findings && said_met;
        let of = |wanted: bool| {
            let pairs = self.own.found.iter().zip(&grades.relevant);
            pairs.filter(move |(_, relevant)| **relevant == wanted).map(|(one, _)| one.clone())
        };
        let (relevant, irrelevant): (Vec<Document>, Vec<Document>) = (of(true).collect(), of(false).collect());
        let ids = |documents: &[Document]| documents.iter().map(|one| one.id.clone()).collect();
        let observation =
            if by_model { observation } else { "No grades were given; the words of the query decide.".into() };
        self.log(Logged::Observation { step, text: observation, goal_met });
        self.log(Logged::Graded { step, relevant: ids(&relevant), irrelevant: ids(&irrelevant), by: by.into() });
        let mut useful = false;
        for document in relevant {
            if !self.own.relevant.contains(&document) && self.own.relevant.len() < MOST_SOURCES {
                self.own.relevant.push(document);
                useful = true;
            }
        }
        self.own.progress.has_findings |= useful;
        let summary = if by_model { summary } else { format!("`{query}` found {} relevant passages.", grades.count()) };
        self.finding(step, summary, useful);
        if grades.mostly_irrelevant() {
            return self.fail(FailureKind::Irrelevant, "Most of the passages do not help to answer the question.");
        }
        self.take(Happened::Observed { goal_met })
    }

    /// Analyses why the last action failed; the lesson is kept for the session.
    pub(super) async fn reflect(&mut self) -> Result<(), Abort> {
        self.say_status("Analysing what went wrong…", None);
        self.own.analysis = None;
        let offered = self.offered(None);
        if let Some(completion) = self.request(ToolChoice::Named(ANALYSE.into()), offered).await? {
            self.run(&completion, ANALYSE).await?;
            if self.own.analysis.is_none() {
                self.take(Happened::NoAnalysis)?;
            }
        } else if self.own.progress.state.is_terminal() {
            return Ok(());
        }
        let kind = self.own.progress.failures.last().copied().unwrap_or(FailureKind::CallRefused);
        let text = self.own.analysis.take().unwrap_or_else(|| self.own.trouble.clone());
        let approach = self.own.progress.approach.name().to_owned();
        let reflection = Reflection { trigger: kind.name().into(), approach, text };
        let shown = digest(Role::System, &prompts::reflection(&self.env.settings.prompts, &reflection));
        let step = self.own.progress.steps;
        let (trigger, text) = (reflection.trigger.clone(), reflection.text.clone());
        self.log(Logged::Reflection { step, trigger, text, shown });
        self.memory.reflect(reflection);
        self.take(Happened::Reflected)?;
        if self.own.progress.state == State::Thinking {
            let tokens = self.budget().of_retry(budget::of_messages(self.messages()));
            let words = format!("Trying again, approach {}…", self.own.progress.approach.name());
            self.say_status(&words, Some(tokens));
        }
        Ok(())
    }

    /// Answers from the relevant passages or, if there are none, from the model's own knowledge.
    pub(super) async fn answer(&mut self) -> Result<(), Abort> {
        self.say_status("Writing the answer…", None);
        let offered = self.offered(None);
        let Some(completion) = self.request(ToolChoice::None, offered).await? else { return Ok(()) };
        let text = in_range(style::without_filler(&completion.text), self.own.relevant.len());
        let is_cut_off = completion.finish == Finish::Length;
        if text.is_empty() || is_cut_off || completion.refused || !completion.calls.is_empty() {
            return self.take(Happened::NoAnswer);
        }
        self.own.answer = text;
        self.take(Happened::Answered)
    }

    /// Executes the calls of one completion: only the first call of `tool` runs.
    async fn run(&mut self, completion: &Completed, tool: &'static str) -> Result<End, Abort> {
        let before = self.messages().len() - 1;
        let mut first = None;
        for call in &completion.calls {
            let taken = first.is_some();
            let order = |declaration: &Declaration| {
                let wrong = taken || declaration.name != tool;
                let guidance = format!("Call `{tool}` once.");
                wrong.then(|| Refusal::new("order", "one call is made at a time, and another one is due", guidance))
            };
            let executed = self.execute(&TOOLS, (completion.ordinal, call), order).await?;
            first.get_or_insert(executed.end);
        }
        if tool == SEARCH {
            self.own.exchange = self.messages()[before..].to_vec();
        }
        Ok(first.unwrap_or(End::Unknown))
    }

    fn finding(&mut self, step: u32, summary: String, useful: bool) {
        self.log(Logged::Summary { step, text: summary.clone() });
        let approach = self.own.progress.approach;
        self.own.findings.push(Finding { step, approach, summary, useful });
    }

    fn fail(&mut self, kind: FailureKind, trouble: &str) -> Result<(), Abort> {
        trouble.clone_into(&mut self.own.trouble);
        self.log_failure(kind.name());
        self.take(Happened::Failed(kind))
    }
}

/// The reasoning in a call, where it has one.
fn reasoning(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = arguments.get("reasoning")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
