//! The four requests of `react`, each from what the model is shown to the event that comes of it.

use super::budget::{self, Budget};
use super::grade::{Grades, in_range};
use super::memory::{Document, Finding, Memory, Note, Reflection, TurnState};
use super::notices::Notice;
use super::policy::{Event, FailureKind, State};
use super::record::DOCUMENTS;
use super::tools::{ANALYSE, ASSESS, SEARCH, TOOLS};
use super::{prompts, style};
use crate::flow::tools::{Declaration, End, Refusal};
use crate::flow::turn::{Completed, Turn};
use crate::flow::{Abort, digest};
use crate::provider::chat::{Role, ToolCall, ToolChoice};
use crate::settings::Enforcement;
use crate::trace::{Logged, ToolResult};
use serde_json::Value;

/// Sources of one answer.
const MOST_SOURCES: usize = 8;

/// One turn with what the flow knows of it.
pub(super) struct UnderWay<'a> {
    pub(super) turn: Turn<'a>,
    pub(super) memory: Memory,
    pub(super) state: TurnState,
    pub(super) budget: Budget,
}

impl<'a> UnderWay<'a> {
    pub(super) fn new(turn: Turn<'a>, memory: Memory, state: TurnState) -> Self {
        let settings = &turn.env.settings;
        let limits = &settings.limits;
        let budget = Budget::new(limits.window, limits.tokens, limits.warn_tokens, settings.model.max_tokens);
        Self { turn, memory, state, budget }
    }

    /// Before the first request: what the user's words say for later, how long the answer is to be, what it may cost.
    pub(super) fn prepare(&mut self) -> Result<(), Abort> {
        for (kind, text) in style::notes(&self.state.query) {
            let note = Note { kind, text };
            let shown = digest(Role::User, &prompts::note(&self.turn.env.settings.prompts, &note));
            if self.memory.note(note.clone()) {
                self.turn.log(Logged::Noted { kind: kind.name().into(), text: note.text, shown });
            }
        }
        let wishes = self.memory.notes.iter().map(|note| note.text.as_str());
        let (chosen, because) = style::style(&self.state.query, wishes);
        self.state.style = chosen;
        self.turn.log(Logged::Style { style: chosen.name().into(), because: because.into() });
        let (most, warned) = (self.budget.most_of_turn(), self.budget.warns());
        self.state.estimated = most;
        self.turn.log(Logged::Estimated { most, warn: self.budget.warn, warned, limit: self.budget.limit });
        if let Some(threshold) = self.budget.warn.filter(|_| warned) {
            self.notice(&Notice::Costs { most, threshold });
        }
        self.persist()
    }

    /// One step: the reasoning, and the search that it leads to.
    pub(super) async fn think_and_act(&mut self) -> Result<(), Abort> {
        self.say_status("Thinking…", None);
        self.state.exchange.clear();
        self.state.found.clear();
        let forced = self.turn.env.settings.enforcement == Enforcement::Forced || self.state.progress.must_call();
        let choice = if forced { ToolChoice::Named(SEARCH.into()) } else { ToolChoice::Auto };
        let offered = self.offered(Some(SEARCH));
        let Some(completion) = self.ask(choice, offered).await? else { return Ok(()) };
        let step = self.state.progress.steps + 1;
        if completion.calls.is_empty() {
            if self.state.progress.has_findings {
                return self.happen(Event::Ready);
            }
            return self.fail(FailureKind::NoCall, "The reply called no tool.");
        }
        let approach = self.state.progress.approach.name();
        let reasoning = reasoning(&completion.calls[0]);
        if let Some(text) = &reasoning {
            self.turn.log(Logged::Thought { step, text: text.clone(), approach: approach.into() });
        }
        self.say_status("Searching…", None);
        let end = self.run(&completion, SEARCH).await?;
        match end {
            End::Gave(ToolResult::Search(search)) => {
                if let Some(place) = self.memory.unavailable.iter().position(|feature| feature == DOCUMENTS) {
                    let feature = self.memory.unavailable.remove(place);
                    self.turn.log(Logged::Recovered { feature });
                }
                if search.hits.is_empty() {
                    self.finding(step, format!("`{}` found nothing.", search.query), false);
                    self.fail(FailureKind::NothingFound, "The search found no passage.")
                } else {
                    self.happen(Event::Found)
                }
            }
            End::Failed(cause) => self.search_failed(cause),
            End::UsedUp if self.state.progress.failures.contains(&FailureKind::SearchFailed) => {
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

    /// What the results mean, and which of them help.
    pub(super) async fn observe(&mut self) -> Result<(), Abort> {
        self.say_status("Analysing the results…", None);
        self.state.assessment = None;
        let offered = self.offered(None);
        let Some(completion) = self.ask(ToolChoice::Named(ASSESS.into()), offered).await? else { return Ok(()) };
        self.run(&completion, ASSESS).await?;
        let step = self.state.progress.steps;
        let query = self.state.queries.last().cloned().unwrap_or_default();
        let (grades, by, observation, said_met, summary) = match self.state.assessment.take() {
            Some(said) => {
                // The tool has held the numbers against the passages.
                let grades = Grades::of_numbers(&said.relevant, self.state.found.len()).ok();
                (grades, "model", said.observation, said.goal_met, said.summary)
            }
            None => (None, "words", String::new(), false, String::new()),
        };
        let by_model = grades.is_some();
        let grades = grades.unwrap_or_else(|| Grades::by_words(&query, &self.state.found));
        let goal_met = grades.count() > 0 && (said_met || !by_model) || self.state.progress.has_findings && said_met;
        let of = |wanted: bool| {
            let pairs = self.state.found.iter().zip(&grades.relevant);
            pairs.filter(move |(_, relevant)| **relevant == wanted).map(|(one, _)| one.clone())
        };
        let (relevant, irrelevant): (Vec<Document>, Vec<Document>) = (of(true).collect(), of(false).collect());
        let ids = |documents: &[Document]| documents.iter().map(|one| one.id.clone()).collect();
        let observation =
            if by_model { observation } else { "No grades were given; the words of the query decide.".into() };
        self.turn.log(Logged::Observation { step, text: observation, goal_met });
        self.turn.log(Logged::Graded { step, relevant: ids(&relevant), irrelevant: ids(&irrelevant), by: by.into() });
        let mut useful = false;
        for document in relevant {
            if !self.state.relevant.contains(&document) && self.state.relevant.len() < MOST_SOURCES {
                self.state.relevant.push(document);
                useful = true;
            }
        }
        self.state.progress.has_findings |= useful;
        let summary = if by_model { summary } else { format!("`{query}` found {} relevant passages.", grades.count()) };
        self.finding(step, summary, useful);
        if grades.mostly_irrelevant() {
            return self.fail(FailureKind::Irrelevant, "Most of the passages do not help to answer the question.");
        }
        self.happen(Event::Observed { goal_met })
    }

    /// Why the last action failed; what is learned stays for the session.
    pub(super) async fn reflect(&mut self) -> Result<(), Abort> {
        self.say_status("Analysing what went wrong…", None);
        self.state.analysis = None;
        let offered = self.offered(None);
        if let Some(completion) = self.ask(ToolChoice::Named(ANALYSE.into()), offered).await? {
            self.run(&completion, ANALYSE).await?;
            if self.state.analysis.is_none() {
                self.happen(Event::NoAnalysis)?;
            }
        } else if self.state.progress.state.is_terminal() {
            return Ok(());
        }
        let kind = self.state.progress.failures.last().copied().unwrap_or(FailureKind::CallRefused);
        let text = self.state.analysis.take().unwrap_or_else(|| self.state.trouble.clone());
        let approach = self.state.progress.approach.name().to_owned();
        let reflection = Reflection { trigger: kind.name().into(), approach, text };
        let shown = digest(Role::System, &prompts::reflection(&self.turn.env.settings.prompts, &reflection));
        let step = self.state.progress.steps;
        let (trigger, text) = (reflection.trigger.clone(), reflection.text.clone());
        self.turn.log(Logged::Reflection { step, trigger, text, shown });
        self.memory.reflect(reflection);
        self.happen(Event::Reflected)?;
        if self.state.progress.state == State::Thinking {
            let tokens = self.budget.of_retry(budget::of_messages(self.turn.messages()));
            let words = format!("Trying again, approach {}…", self.state.progress.approach.name());
            self.say_status(&words, Some(tokens));
        }
        Ok(())
    }

    /// The answer, from the relevant passages or, where there are none, from what the model knows.
    pub(super) async fn answer(&mut self) -> Result<(), Abort> {
        self.say_status("Writing the answer…", None);
        let offered = self.offered(None);
        let Some(completion) = self.ask(ToolChoice::None, offered).await? else { return Ok(()) };
        let text = in_range(style::without_filler(&completion.text), self.state.relevant.len());
        if text.is_empty() || completion.refused || !completion.calls.is_empty() {
            return self.happen(Event::NoAnswer);
        }
        self.state.answer = text;
        self.happen(Event::Answered)
    }

    /// Takes the calls of one completion to their ends: the first of `tool` runs, and no other.
    async fn run(&mut self, completion: &Completed, tool: &'static str) -> Result<End, Abort> {
        let before = self.turn.messages().len() - 1;
        let mut first = None;
        for call in &completion.calls {
            let taken = first.is_some();
            let order = |declaration: &Declaration| {
                let wrong = taken || declaration.name != tool;
                let guidance = format!("Call `{tool}` once.");
                wrong.then(|| Refusal::new("order", "one call is made at a time, and another one is due", guidance))
            };
            let executed = self.turn.execute(&TOOLS, (completion.ordinal, call), order, &mut self.state).await?;
            first.get_or_insert(executed.end);
        }
        if tool == SEARCH {
            self.state.exchange = self.turn.messages()[before..].to_vec();
        }
        Ok(first.unwrap_or(End::Unknown))
    }

    fn finding(&mut self, step: u32, summary: String, useful: bool) {
        self.turn.log(Logged::Summary { step, text: summary.clone() });
        let approach = self.state.progress.approach;
        self.state.findings.push(Finding { step, approach, summary, useful });
    }

    fn fail(&mut self, kind: FailureKind, trouble: &str) -> Result<(), Abort> {
        trouble.clone_into(&mut self.state.trouble);
        self.log_failure(kind.name());
        self.happen(Event::Failed(kind))
    }
}

/// The reasoning in a call, where it has one.
fn reasoning(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = arguments.get("reasoning")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
