//! The four requests of `react`, each from what the model is shown to the event that comes of it.

use super::budget::{self, Budget};
use super::grade::{Grades, in_range};
use super::memory::{Document, Finding, Memory, Note, Reflection, Report, TurnState};
use super::notices::Notice;
use super::policy::{Event, FailureKind, State, Stop, efficiency};
use super::tools::{self, ANALYSE, ASSESS, SEARCH, TOOLS};
use super::{compaction, prompts, style};
use crate::chat::{Message, Role, ToolCall, ToolChoice, ToolDefinition};
use crate::flow::tools::{Declaration, End, Refusal};
use crate::flow::turn::{Ask, Completed, Reply, Turn};
use crate::flow::{Abort, StoreError, digest};
use crate::settings::Enforcement;
use crate::trace::{Answer, Logged, SourceRef, ToolResult, TurnOutcome, What};
use serde_json::{Value, json};
use std::sync::Arc;

/// Sources of one answer.
const MOST_SOURCES: usize = 8;
/// What is said to be unavailable where the documents cannot be searched.
const DOCUMENTS: &str = "document search";

/// One turn with what the flow knows of it.
pub(super) struct UnderWay<'a> {
    pub(super) turn: Turn<'a>,
    pub(super) memory: Memory,
    pub(super) state: TurnState,
    budget: Budget,
}

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
        }
    }
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

    /// Asks the model in the state that the turn is in; `None` where it did not come to that, or nothing came of it.
    async fn ask(&mut self, tool_choice: ToolChoice, tools: Arc<[ToolDefinition]>) -> Result<Option<Completed>, Abort> {
        self.show();
        let offered = budget::of_tools(&tools);
        let mut shown = offered + budget::of_messages(self.turn.messages());
        if shown >= self.budget.compacts_at() && !self.state.progress.short {
            self.compact(offered);
            self.show();
            shown = offered + budget::of_messages(self.turn.messages());
        }
        if self.turn.model_calls_used_up().is_some() || !self.budget.allows(self.memory.usage, shown) {
            self.happen(Event::BudgetUsedUp)?;
            return Ok(None);
        }
        if self.state.progress.state == State::Thinking {
            let grounding = self.turn.shown().last().cloned().unwrap_or_default();
            self.turn.log(Logged::Grounding { step: self.state.progress.steps + 1, shown: grounding });
        }
        let asked = Ask { state: self.state.progress.state.name(), tools, tool_choice };
        match self.turn.ask(asked).await? {
            Reply::Completion(completion) => {
                let wrote = budget::of_text(&completion.text)
                    + completion.calls.iter().map(|call| budget::of_text(&call.arguments)).sum::<u64>();
                let usage = (completion.usage.input.unwrap_or(shown), completion.usage.output.unwrap_or(wrote));
                self.state.usage = self.state.usage.and(usage.0, usage.1);
                self.memory.usage = self.memory.usage.and(usage.0, usage.1);
                let (session_input, session_output) = (self.memory.usage.input, self.memory.usage.output);
                self.turn.log(Logged::Used { input: usage.0, output: usage.1, session_input, session_output });
                Ok(Some(completion))
            }
            Reply::Unavailable(why) => {
                let state = self.state.progress.state;
                self.state.broken_off = why;
                if state != State::Reflecting && !self.state.progress.short {
                    let without = "earlier parts of the conversation".into();
                    let reason = self.state.broken_off.clone();
                    self.turn.push(self.turn.env.clock.now(), What::Degraded { without, reason });
                    self.notice(&Notice::ShorterContext);
                }
                self.log_failure("model_unavailable");
                self.happen(Event::ModelFailed)?;
                Ok(None)
            }
        }
    }

    /// What the model is shown in this state: what stays of the session, the question, where the turn stands, and the
    /// call and result that it is about. Finished steps are there as their summaries alone.
    fn show(&mut self) {
        let env = self.turn.env;
        let prompts = &env.settings.prompts;
        let state = self.state.progress.state;
        let mut messages = self.kept();
        messages.push(Message::text(Role::User, self.state.query.as_str()));
        if state == State::Answering {
            messages.extend(self.relevant_passages());
            messages.push(Message::text(Role::System, prompts::synthesis(prompts, &self.state)));
        } else {
            messages.extend(self.state.exchange.iter().cloned());
            let spent = (self.budget, self.memory.usage);
            let grounding = prompts::grounding(prompts, &self.state, &self.memory.unavailable, spent);
            messages.push(Message::text(Role::System, grounding));
        }
        if state == State::Reflecting {
            let kind = self.state.progress.failures.last().map_or("", |kind| kind.name());
            messages.push(Message::text(Role::System, prompts::failure(prompts, kind, &self.state.trouble)));
        }
        let prompt = if state == State::Answering { prompts::ANSWER_SYSTEM } else { prompts::SYSTEM };
        self.turn.show(prompt, !self.state.progress.short, messages);
    }

    /// What must never be lost: the user's decisions and preferences, and the lessons of failures.
    fn kept(&self) -> Vec<Message> {
        let prompts = &self.turn.env.settings.prompts;
        let notes = self.memory.notes.iter().map(|note| Message::text(Role::User, prompts::note(prompts, note)));
        let lessons = self.memory.reflections.iter();
        let lessons = lessons.map(|lesson| Message::text(Role::System, prompts::reflection(prompts, lesson)));
        notes.chain(lessons).collect()
    }

    /// The sources of the answer, as the result of one search; nothing where there are none.
    fn relevant_passages(&self) -> Vec<Message> {
        if self.state.relevant.is_empty() {
            return Vec::new();
        }
        let query = self.state.queries.join("; ");
        let arguments =
            json!({"reasoning": "All relevant passages.", "query": query, "approach": "direct"}).to_string();
        let call = ToolCall { id: "relevant".into(), name: SEARCH.into(), arguments };
        let asked = Message { calls: vec![call], ..Message::text(Role::Assistant, "") };
        vec![asked, Message::tool_result("relevant", tools::for_model(&self.state.relevant))]
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

    /// Makes older turns of the history shorter, or says that it cannot be done.
    fn compact(&mut self, offered: u64) {
        let history = &self.turn.conversation.history;
        let whole = offered + budget::of_messages(self.turn.messages());
        let beside = whole.saturating_sub(budget::of_messages(history));
        let keeps = self.kept().iter().map(|message| digest(message.role, &message.content)).collect();
        match compaction::compact(history, beside) {
            Ok(compacted) => {
                let (before, after) = (compacted.before, compacted.after);
                self.turn.log(Logged::Compacted { before, after, done: true, keeps });
                self.turn.conversation.history = compacted.history;
            }
            Err(compaction::CannotCompact { before, after }) => {
                self.turn.log(Logged::Compacted { before, after, done: false, keeps });
                self.notice(&Notice::FullContext);
            }
        }
    }

    /// The tools of a request: one of them, or all.
    fn offered(&self, only: Option<&str>) -> Arc<[ToolDefinition]> {
        let all = self.turn.env.settings.prompts.tools();
        match only {
            Some(name) => all.iter().filter(|tool| tool.name == name).cloned().collect(),
            None => Arc::clone(all),
        }
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

    /// Writes down everything that the model was shown and the turn knows, at the moment of an error.
    fn log_failure(&self, kind: &str) {
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

    fn say_status(&self, text: &str, tokens: Option<u64>) {
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
        useful.map(|finding| finding.summary.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Stores the session as it is now.
    fn persist(&mut self) -> Result<(), Abort> {
        let state = self.state.progress.state.name();
        self.state.elapsed_us = u64::try_from(self.turn.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.state.model_calls = self.turn.model_calls();
        self.state.minted = self.turn.minted();
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
        let (confidence, used_external_kb, refused) = (None, false, false);
        TurnOutcome::Answered(Answer { text, sources, confidence, used_internal_kb, used_external_kb, refused })
    }
}

/// The reasoning in a call, where it has one.
fn reasoning(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = arguments.get("reasoning")?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
