//! Checks of expectations: patterns can match, bounds can hold, references exist.

use super::check_sources::Citable;
use super::diagnostic::{At, Mistake, did_you_mean, nearest};
use super::expect::{ArgumentPattern, CallOutcome, ContextExpectation, RetryExpectation, argument_of};
use super::{CallExpectation, CallPattern, Expectation};
use crate::platform::bounds::Bound;
use crate::settings::catalogue::ToolEntry;
use crate::settings::{
    JsonSchema, Limits, expression, expression_work, misspelt_keyword, schema_keywords, schema_patterns,
};
use crate::trace::normalise::is_invisible;
use regex_syntax::hir::{Hir, Look};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether an expression matches every text: an empty part of the text is enough, which may have to be at its start, or at
/// its end. One that asks for both, as `^$` does, matches empty texts or lines only.
fn matches_all(pattern: &str) -> bool {
    let is_start = |look| matches!(look, Look::Start | Look::StartLF | Look::StartCRLF);
    let is_end = |look| matches!(look, Look::End | Look::EndLF | Look::EndCRLF);
    let needs_nothing = |hir: Hir| {
        let looks = hir.properties().look_set();
        hir.properties().minimum_len() == Some(0) && (looks.iter().all(is_start) || looks.iter().all(is_end))
    };
    regex_syntax::parse(pattern).is_ok_and(needs_nothing)
}

/// Position of an expectation in its case.
#[derive(Debug, Clone, Default)]
pub(super) struct Scene {
    /// The case's conversations, each with its step in the sequence.
    pub steps: Vec<(String, usize)>,
    /// The step of the expectation; `None` for one on the whole case.
    pub step: Option<usize>,
    /// Whether it covers a single turn.
    pub turn: bool,
    /// Whether earlier turns exist.
    pub history: bool,
}

/// Checks expectations, and caches the regular expressions and schemas compiled so far.
pub(super) struct Expectations<'a> {
    /// Mistakes found.
    pub mistakes: Vec<Mistake>,
    /// The tools that the flow declares; `None` where an agent's tools are known only at run time.
    pub(super) tools: Option<Vec<&'a ToolEntry>>,
    /// Sources that answers can cite; `None` where these are not in files of the project.
    pub(super) citable: Option<&'a Citable>,
    /// Errors with which turns can end; empty where these are unknown.
    pub(super) errors: BTreeSet<&'static str>,
    /// Limits on repeated requests and calls, by account.
    pub(super) limits: Limits,
    /// The tenant of the users whose expectations are checked, if any.
    pub(super) tenant: Option<String>,
    /// Services of the scenario without a price, as named in the price list.
    pub(super) unpriced: BTreeSet<String>,
    compiled: BTreeMap<String, Option<String>>,
    /// Cost of compiling expressions so far, in all scenarios.
    work: &'a AtomicU64,
}

impl<'a> Expectations<'a> {
    /// Starts the checks for an agent with these tools and sources.
    pub(super) fn new(tools: Option<Vec<&'a ToolEntry>>, citable: Option<&'a Citable>, work: &'a AtomicU64) -> Self {
        let (errors, limits) = (BTreeSet::new(), Limits::default());
        Self {
            mistakes: Vec::new(),
            tools,
            citable,
            errors,
            limits,
            tenant: None,
            unpriced: BTreeSet::new(),
            compiled: BTreeMap::new(),
            work,
        }
    }

    pub(super) fn say(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    fn nothing(&mut self, at: At<'_>, message: &str) {
        let mistake = Mistake::at(at, "asserts-nothing", message).on_key();
        self.say(mistake.help("write what must hold, or remove it"));
    }

    pub(super) fn check(&mut self, expect: &Expectation, at: At<'_>, scene: &Scene) {
        if *expect == Expectation::default() {
            self.nothing(at, "this expectation asserts nothing");
            return;
        }
        let calls = at.key("calls");
        for (index, call) in expect.calls.iter().enumerate() {
            self.call(call, calls.index(index));
        }
        self.answer(expect, at.key("answer"));
        let empty = |sources: &super::expect::SourcesExpectation| {
            (sources.internal, sources.external) == (None, None) && sources.at_least.unwrap_or(0) == 0
        };
        if expect.sources.as_ref().is_some_and(empty) {
            self.nothing(at.key("sources"), "this expectation on sources asserts nothing");
        }
        let reply = at.key("reply");
        for (pointer, condition) in &expect.reply {
            let at = reply.key(pointer);
            self.pointer(pointer, at);
            self.condition(condition, at);
        }
        self.keywords(expect, at.key("keywords"), scene);
        let retries = at.key("retries");
        for (index, retry) in expect.retries.iter().enumerate() {
            self.retry(retry, retries.index(index));
        }
        if let Some(context) = &expect.context {
            self.context(context, at.key("context"), scene);
        }
        if expect.within.as_ref().is_some_and(|within| within.is_zero()) {
            self.say(Mistake::at(at.key("within"), "bad-duration", "no time at all: no turn can end in it"));
        }
        self.spending(expect, at);
        self.possible(expect, at);
        if expect.error.is_some() {
            for (key, given) in [("answer", expect.answer.is_some()), ("sources", expect.sources.is_some())] {
                if given && scene.turn {
                    let mistake =
                        Mistake::at(at.key(key), "contradiction", format!("`{key}` and `error` cannot both hold"));
                    self.say(mistake.on_key().label("a turn ends with an answer or with an error"));
                }
            }
        }
    }

    fn answer(&mut self, expect: &Expectation, at: At<'_>) {
        let Some(answer) = &expect.answer else { return };
        if *answer == super::expect::AnswerExpectation::default() {
            self.nothing(at, "this expectation on the answer asserts nothing");
        }
        let matches = at.key("matches");
        for (index, pattern) in answer.matches.iter().enumerate() {
            self.regex(pattern, matches.index(index));
            if matches_all(pattern) {
                self.say(Mistake::at(matches.index(index), "empty-text", "every text matches this expression"));
            }
        }
        for (key, list) in
            [("contains", &answer.contains), ("not_contains", &answer.not_contains), ("cites", &answer.cites)]
        {
            self.texts(list, at.key(key));
        }
        if answer.grounded == Some(false) {
            let mistake = Mistake::at(at.key("grounded"), "asserts-nothing", "no answer is expected to be unsupported");
            self.say(mistake.on_key().label("write `true`, or leave it out"));
        }
        if answer.grounded.is_some() && answer.unsupported_facts.is_some() {
            let message = "`grounded` allows no unsupported fact";
            let mistake = Mistake::at(at.key("unsupported_facts"), "contradiction", message);
            self.say(mistake.on_key().label("keep one of the two"));
        }
        self.texts(&answer.evidence, at.key("evidence"));
        self.sources(&answer.cites, at.key("cites"));
        self.sources(&answer.evidence, at.key("evidence"));
        let nuggets = at.key("nuggets");
        for (index, nugget) in answer.nuggets.iter().enumerate() {
            let at = nuggets.index(index);
            if nugget.any_of.is_empty() {
                self.nothing(at.key("any_of"), "a nugget without a spelling is in no answer");
            }
            self.texts(&nugget.any_of, at.key("any_of"));
        }
        if answer.refusal == Some(true) && !answer.cites.is_empty() {
            let mistake = Mistake::at(at.key("refusal"), "contradiction", "`cites` asks for a source");
            self.say(mistake.on_key().label("a refusal names no sources"));
        }
        for (index, word) in answer.not_contains.iter().enumerate() {
            let wanted = word.to_lowercase();
            if !wanted.is_empty() && answer.contains.iter().any(|other| other.to_lowercase().contains(&wanted)) {
                let list = at.key("not_contains");
                self.say(Mistake::at(list.index(index), "contradiction", "`contains` asks for this very text"));
            }
        }
    }

    /// Every text contains the empty text.
    fn texts(&mut self, list: &[String], at: At<'_>) {
        let blank = |text: &str| text.chars().all(|one| one.is_whitespace() || is_invisible(one));
        for (index, _) in list.iter().enumerate().filter(|(_, text)| blank(text)) {
            self.say(Mistake::at(at.index(index), "empty-text", "empty text is contained in every text"));
        }
    }

    fn keywords(&mut self, expect: &Expectation, at: At<'_>, scene: &Scene) {
        let Some(keywords) = &expect.keywords else { return };
        if *keywords == super::expect::KeywordsExpectation::default() {
            self.nothing(at, "this expectation on keywords asserts nothing");
        }
        self.texts(&keywords.include, at.key("include"));
        self.texts(&keywords.merged, at.key("merged"));
        let Some(name) = &keywords.found_by else { return };
        let later = |step: usize| scene.step.is_none_or(|own| step > own);
        let known = || scene.steps.iter().filter(|(_, step)| later(*step)).map(|(name, _)| name.as_str());
        if !known().any(|other| other == name) {
            let message = "`found_by` must name a later conversation of this case";
            let mistake = Mistake::at(at.key("found_by"), "unknown-conversation", message);
            self.say(mistake.label(did_you_mean(name, known())));
        }
    }

    fn spending(&mut self, expect: &Expectation, at: At<'_>) {
        if let Some(tokens) = &expect.tokens {
            let at = at.key("tokens");
            let bounds = [
                ("at_most", tokens.at_most),
                ("input_at_most", tokens.input_at_most),
                ("output_at_most", tokens.output_at_most),
            ];
            if bounds.iter().all(|(_, bound)| bound.is_none()) {
                self.nothing(at, "this expectation on tokens asserts nothing");
            }
            for (key, _) in bounds.iter().filter(|(_, bound)| *bound == Some(0)) {
                self.say(Mistake::at(at.key(key), "impossible", "every completion takes tokens"));
            }
        }
        let Some(cost) = &expect.cost else { return };
        let at = at.key("cost");
        if !cost.at_most.is_finite() || cost.at_most < 0.0 {
            self.say(Mistake::at(at.key("at_most"), "bad-value", "a cost is 0 or more US dollars"));
        }
        if !self.unpriced.is_empty() {
            let names: Vec<String> = self.unpriced.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("no cost can be measured: {} has no price", names.join(", "));
            let mistake = Mistake::at(at, "no-price", message).on_key();
            self.say(mistake.help("add it under `prices` in ragcheck.yaml; 0 for what costs nothing"));
        }
    }

    fn retry(&mut self, retry: &RetryExpectation, at: At<'_>) {
        match (retry.at_least, retry.at_most) {
            (Some(least), Some(most)) if least > most => {
                let mistake =
                    Mistake::at(at.key("at_most"), "contradiction", format!("at least {least} and at most {most}"));
                self.say(mistake.label("no number is both"));
            }
            (None | Some(0), None) if retry.recovered.is_none() => {
                let mistake = Mistake::at(at, "asserts-nothing", "this expectation on retries asserts nothing");
                self.say(mistake.help("add `at_least` (1 or more), `at_most` or `recovered`"));
            }
            _ => {}
        }
    }

    fn context(&mut self, context: &ContextExpectation, at: At<'_>, scene: &Scene) {
        if context.probes.is_empty() {
            self.nothing(at.key("probes"), "there are no probes, so nothing is asserted");
        }
        if !scene.history {
            let mistake = Mistake::at(
                at,
                "probe-without-history",
                "nothing was said before this turn, so there is nothing to remember",
            );
            self.say(mistake.on_key().label("put it on a later turn of the same conversation"));
        }
        let probes = at.key("probes");
        for (index, probe) in context.probes.iter().enumerate() {
            let at = probes.index(index);
            if probe.any_of.is_empty() {
                self.nothing(at.key("any_of"), "a probe without words asserts nothing");
            }
            self.texts(&probe.any_of, at.key("any_of"));
            if let Some(tool) = &probe.in_arguments_of {
                self.tool(tool, at.key("in_arguments_of"));
            }
        }
    }

    fn call(&mut self, call: &CallExpectation, at: At<'_>) {
        let (key, list, wanted) = match call {
            CallExpectation::InOrder(list) => ("in_order", list.as_slice(), 1..),
            CallExpectation::Exact(list) => ("exact", list.as_slice(), 1..),
            CallExpectation::AnyOrder(list) => ("any_order", list.as_slice(), 1..),
            CallExpectation::Subset(list) => ("subset", list.as_slice(), 1..),
            CallExpectation::Superset(list) => ("superset", list.as_slice(), 1..),
            CallExpectation::Before(list) => ("before", list.as_slice(), 2..),
            CallExpectation::ExactlyOnce(pattern) => return self.pattern(pattern, at.key("exactly_once")),
            CallExpectation::Never(pattern) => return self.pattern(pattern, at.key("never")),
            CallExpectation::AtMost(bound) => {
                let at = at.key("at_most");
                return self.pattern(&bound.call, at.key("call"));
            }
        };
        let at = at.key(key);
        if !wanted.contains(&list.len()) || (key == "before" && list.len() != 2) {
            let message = match key {
                "before" => format!("`before` compares two calls, found {}", list.len()),
                _ => format!("`{key}` without calls"),
            };
            let mistake = Mistake::at(at, "wrong-count", message).on_key();
            let label =
                if key == "before" { "write [first, second]" } else { "name one call or more; `never` forbids one" };
            self.say(mistake.label(label));
        }
        for (index, pattern) in list.iter().enumerate() {
            self.pattern(pattern, at.index(index));
        }
    }

    fn tool(&mut self, name: &str, at: At<'_>) {
        if name.trim().is_empty() {
            self.say(Mistake::at(at, "empty-text", "a tool without a name"));
            return;
        }
        let Some(tools) = &self.tools else { return };
        if !tools.iter().any(|known| known.name == name) {
            let mistake = Mistake::at(at, "unknown-tool", format!("unknown tool `{name}`"));
            self.say(mistake.label(did_you_mean(name, tools.iter().map(|known| known.name))));
        }
    }

    fn pattern(&mut self, pattern: &CallPattern, at: At<'_>) {
        // A bare name has no key `tool`: the locator then stops at the pattern.
        self.tool(&pattern.tool, at.key("tool"));
        let declared =
            self.tools.as_ref().and_then(|tools| tools.iter().copied().find(|known| known.name == pattern.tool));
        let here = at.key("arguments");
        for (name, condition) in &pattern.arguments {
            let at = here.key(name);
            let first = argument_of(name);
            if let Some(declared) = declared.filter(|declared| !declared.arguments.contains(&first)) {
                let message = format!("`{}` has no argument `{first}`", pattern.tool);
                let mistake = Mistake::at(at, "unknown-argument", message).on_key();
                self.say(mistake.label(did_you_mean(&first, declared.arguments.iter().map(String::as_str))));
            }
            self.condition(condition, at);
        }
        let here = at.key("result");
        for (pointer, condition) in &pattern.result {
            let at = here.key(pointer);
            self.pointer(pointer, at);
            self.condition(condition, at);
        }
        if !pattern.result.is_empty() && pattern.outcome == Some(CallOutcome::Failed) {
            let mistake = Mistake::at(at.key("outcome"), "contradiction", "a call that failed has no result");
            self.say(mistake.on_key().label("remove `result`, or the outcome"));
        }
    }

    fn pointer(&mut self, pointer: &str, at: At<'_>) {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            let mistake = Mistake::at(at, "bad-pointer", "not a JSON pointer").on_key();
            self.say(mistake.label(format!("write `/{}`", pointer.replace('.', "/"))));
        }
    }

    fn condition(&mut self, condition: &ArgumentPattern, at: At<'_>) {
        match condition {
            ArgumentPattern::Equals(_) => {}
            ArgumentPattern::Matches(regex) => self.regex(regex, at.key("matches")),
            ArgumentPattern::Schema(schema) => self.schema(schema, at.key("schema")),
        }
    }

    fn regex(&mut self, pattern: &str, at: At<'_>) {
        let problem = if let Some(known) = self.compiled.get(pattern) {
            known.clone()
        } else {
            if !self.affords([pattern]) {
                return;
            }
            let problem = expression(pattern).err().map(|error| last_line(&error.to_string()));
            self.compiled.insert(pattern.to_owned(), problem.clone());
            problem
        };
        if let Some(problem) = problem {
            let mistake = Mistake::at(at, "bad-regex", "not a regular expression");
            self.say(mistake.label(problem));
        }
    }

    /// Whether these expressions fit the limit, together with all before. If not, one mistake is reported for all
    /// scenarios together, so it does not matter which expressions were compiled before.
    fn affords<'p>(&self, patterns: impl IntoIterator<Item = &'p str>) -> bool {
        let most = Bound::Expressions.most();
        patterns.into_iter().all(|pattern| {
            let before = self.work.load(Ordering::Relaxed);
            before <= most && {
                let work = expression_work(pattern);
                self.work.fetch_add(work, Ordering::Relaxed) + work <= most
            }
        })
    }

    fn schema(&mut self, schema: &Value, at: At<'_>) {
        let key = format!("schema {schema}");
        let problem = if let Some(known) = self.compiled.get(&key) {
            known.clone()
        } else {
            let mut patterns = Vec::new();
            schema_patterns(schema, &mut patterns);
            if !self.affords(patterns) {
                return;
            }
            let meant = |name: &str| nearest(name, schema_keywords());
            let misspelt = || {
                let name = misspelt_keyword(schema, &|name| meant(name).is_some())?;
                Some(format!("`{name}` is no keyword, and asserts nothing: did you mean `{}`?", meant(name)?))
            };
            let problem = JsonSchema::compile(schema).err().map(|error| error.to_string());
            let problem = problem.or_else(misspelt);
            self.compiled.insert(key, problem.clone());
            problem
        };
        if let Some(problem) = problem {
            let mistake = Mistake::at(at, "bad-schema", "not a JSON Schema");
            self.say(mistake.label(problem.chars().take(160).collect::<String>()));
        }
    }
}

fn last_line(text: &str) -> String {
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
