//! Expectations on tools that the agent was not offered, and on arguments that they do not have: they say nothing about the
//! agent.
//!
//! Known only at run time, for external agents and imported traces. A tool that the model called anyway is checked
//! like any other.

use crate::plan::ResolvedCase;
use crate::scenario::{CallExpectation, Expectation};
use crate::trace::text::listed;
use crate::trace::{Event, Mode, Trace, TrialError, TrialErrorKind, What};

/// Tools that the case names and that the agent was neither offered nor called.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NotOffered {
    /// Tools with expected calls.
    pub expected: Vec<String>,
    /// Tools that must not be called: the expectation holds, and a note says why. Of an agent that offered no tool at all
    /// and called none, nothing is known: its calls may be text.
    pub forbidden: Vec<String>,
    /// Arguments of calls that must not be made, with their tools, which neither a schema nor a call has: the expectation holds
    /// whatever the agent does, and a note says so.
    pub arguments: Vec<(String, String)>,
}

/// Returns the tools that `case` names and the agent of `trace` did not have; empty where its offer is unknown.
pub(crate) fn not_offered(case: &ResolvedCase, trace: &Trace) -> NotOffered {
    let mut missing = NotOffered::default();
    if trace.offered.is_none() {
        return missing;
    }
    let turns = case.turns().filter_map(|turn| turn.expect.as_ref());
    for expect in turns.chain(&case.expect) {
        let limited = expect.calls.iter().filter(|call| call.needs_none()).flat_map(CallExpectation::patterns);
        for pattern in limited.filter(|pattern| trace.has_tool(&pattern.tool)) {
            for name in pattern.argument_names().filter(|name| !has_argument(trace, &pattern.tool, name)) {
                let argument = (pattern.tool.clone(), name);
                if !missing.arguments.contains(&argument) {
                    missing.arguments.push(argument);
                }
            }
        }
        each_tool(expect, &mut |tool, forbidden| {
            let list = if forbidden { &mut missing.forbidden } else { &mut missing.expected };
            if !list.iter().any(|known| known == tool) && !trace.has_tool(tool) {
                list.push(tool.to_owned());
            }
        });
    }
    missing
}

/// Whether a tool has an argument, as far as is known: its schema names it, or a call has it.
fn has_argument(trace: &Trace, tool: &str, name: &str) -> bool {
    let has = |event: &Event| match &event.what {
        // Text is encoded JSON, or none.
        What::ToolCalled(call) if call.tool == tool => call.arguments.is_string() || call.arguments.get(name).is_some(),
        _ => false,
    };
    trace.parameters.get(tool).is_none_or(|known| known.contains(name)) || trace.events.iter().any(has)
}

/// Visits every tool that an expectation names, with whether it only forbids or limits calls.
fn each_tool(expect: &Expectation, visit: &mut dyn FnMut(&str, bool)) {
    for call in &expect.calls {
        call.patterns().iter().for_each(|pattern| visit(&pattern.tool, call.needs_none()));
    }
    let probes = expect.context.iter().flat_map(|context| &context.probes);
    probes.filter_map(|probe| probe.in_arguments_of.as_deref()).for_each(|tool| visit(tool, false));
}

impl NotOffered {
    /// Reason why the trial cannot be evaluated; `None` when nothing is expected of a missing tool.
    pub(crate) fn error(&self, trace: &Trace) -> Option<TrialError> {
        let called = || trace.events.iter().any(|event| matches!(event.what, What::ToolCalled(_)));
        let is_imported = trace.evidence.mode == Mode::Imported;
        let is_blind = !is_imported
            && !self.forbidden.is_empty()
            && trace.offered.as_ref().is_some_and(Vec::is_empty)
            && !called();
        if self.expected.is_empty() && is_blind {
            let forbidden = quoted(&self.forbidden);
            let message = format!("{}, so its traffic does not show whether it called {forbidden}", offer(trace));
            let detail = "calls that are code, or text in another form than that of ReAct or DSPy, are not seen: let the agent report its tools as spans \
                          (`target.spans`), or remove the expectation";
            let detail = vec![detail.to_owned()];
            return Some(TrialError { kind: TrialErrorKind::ToolNotOffered, cause: message.clone(), message, detail });
        }
        if self.expected.is_empty() {
            return None;
        }
        let message = format!("{}; the case expects calls of {}", offer(trace), quoted(&self.expected));
        let is_hosted = |what: &What| matches!(what, What::Searched(search) if search.outcome.is_unseen());
        let detail = if trace.events.iter().any(|event| is_hosted(&event.what)) {
            "a search that the provider or the agent makes itself is not a tool call of the model: expect the answer and its \
             sources instead"
        } else {
            "correct the names in the scenario, or offer the tools to the agent"
        };
        let detail = vec![detail.to_owned()];
        Some(TrialError { kind: TrialErrorKind::ToolNotOffered, cause: message.clone(), message, detail })
    }

    /// Notes forbidden tools that were not offered, and arguments that a forbidden call cannot have.
    pub(crate) fn notes(&self, trace: &Trace) -> impl Iterator<Item = String> {
        let tools =
            (!self.forbidden.is_empty()).then(|| format!("{}, and not {}", offer(trace), quoted(&self.forbidden)));
        let of_call = |(tool, name): &(String, String)| {
            let known = trace.parameters.get(tool).into_iter().flatten();
            let known = listed(known.map(|known| format!("`{}`", super::quote(known, 60))), 20);
            let known = if known.is_empty() { "none".to_owned() } else { known };
            let (tool, name) = (super::quote(tool, 60), super::quote(name, 60));
            format!("`{tool}` has no argument `{name}`, so the expectation says nothing; its arguments: {known}")
        };
        tools.into_iter().chain(self.arguments.iter().map(of_call).collect::<Vec<_>>())
    }
}

fn offer(trace: &Trace) -> String {
    let offered = trace.offered.as_deref().unwrap_or_default();
    if offered.is_empty() {
        return "the agent offered no tool".to_owned();
    }
    format!("the agent offered {}", listed(offered.iter().map(|tool| super::quote(tool, 60)), 20))
}

fn quoted(tools: &[String]) -> String {
    tools.iter().map(|tool| format!("`{}`", super::quote(tool, 60))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};
    use crate::trace::{Event, FlowSearch, ToolOutcome, ToolResult};
    use serde_json::json;

    const CASES: &str = "[{case: a, ask: q, expect: {calls: [{never: create_ticket}, {before: [lookup, answer]}], \
                         context: {probes: [{any_of: [x], in_arguments_of: lookup}]}}}]";

    fn missing(offered: Option<&[&str]>, called: &[&str]) -> (NotOffered, Trace) {
        let plan = plan(CASES, "[]", 1);
        let mut story = story(&plan, 0).turn("q");
        for tool in called {
            story = story.call(tool, json!({}), ToolOutcome::Ok(ToolResult::Other(json!(1))));
        }
        let mut trace = story.done();
        trace.offered = offered.map(|tools| tools.iter().map(ToString::to_string).collect());
        (not_offered(&plan.scenarios[0].cases[0].case, &trace), trace)
    }

    #[test]
    fn a_tool_that_is_expected_and_not_offered_is_an_error_that_names_the_offer() {
        let (found, trace) = missing(Some(&["search_docs", "answer"]), &[]);
        assert_eq!(
            (found.expected.as_slice(), found.forbidden.as_slice()),
            (&["lookup".to_owned()][..], &["create_ticket".to_owned()][..])
        );
        let error = found.error(&trace).expect("an error");
        assert_eq!(error.message, "the agent offered search_docs, answer; the case expects calls of `lookup`");
        assert!(error.detail[0].starts_with("correct the names"), "{error:?}");
    }

    #[test]
    fn a_search_that_is_not_shown_is_no_tool_to_expect() {
        let (found, mut trace) = missing(Some(&["answer"]), &[]);
        let outcome = ToolOutcome::Unseen { reason: "the provider made it".into() };
        let searched = FlowSearch { query: "q".into(), outcome, took_us: 1, attempts: Vec::new() };
        trace.events.push(Event { what: What::Searched(searched), ..trace.events[0].clone() });
        let error = found.error(&trace).expect("an error");
        assert!(error.detail[0].starts_with("a search that the provider or the agent makes itself"), "{error:?}");
    }

    #[test]
    fn a_tool_that_may_not_be_called_and_is_not_offered_is_a_note() {
        let (found, trace) = missing(Some(&["lookup", "answer"]), &[]);
        assert_eq!(found.error(&trace), None);
        assert_eq!(
            found.notes(&trace).collect::<Vec<_>>(),
            ["the agent offered lookup, answer, and not `create_ticket`"]
        );
    }

    #[test]
    fn an_argument_that_a_forbidden_call_cannot_have_is_a_note_and_one_of_an_open_or_unknown_schema_is_none() {
        let cases = "[{case: a, ask: q, expect: {calls: [{never: {tool: find, arguments: {qeury: {equals: 1}, query: {equals: 1}}}}, \
                     {at_most: {times: 0, call: {tool: find, arguments: {/filter/query: {equals: 1}}}}}, \
                     {superset: [{tool: find, arguments: {q: {equals: 1}}}]}]}}]";
        let plan = plan(cases, "[]", 1);
        let said = |parameters: &[&str], arguments: serde_json::Value| {
            let outcome = ToolOutcome::Ok(ToolResult::Other(json!(1)));
            let mut trace = story(&plan, 0).turn("q").call("find", arguments, outcome).done();
            trace.offered = Some(vec!["find".to_owned()]);
            if !parameters.is_empty() {
                let names = parameters.iter().map(ToString::to_string).collect();
                trace.parameters.insert("find".to_owned(), names);
            }
            not_offered(&plan.scenarios[0].cases[0].case, &trace).notes(&trace).collect::<Vec<_>>()
        };
        let note = |name: &str| {
            format!("`find` has no argument `{name}`, so the expectation says nothing; its arguments: `query`, `top`")
        };
        assert_eq!(said(&["query", "top"], json!({"query": "x"})), [note("qeury"), note("filter")]);
        assert_eq!(said(&["query", "top"], json!({"qeury": "x", "filter": {}})), [""; 0], "calls have it");
        assert_eq!(said(&[], json!({"query": "x"})), [""; 0], "no schema names its arguments");
    }

    #[test]
    fn of_an_agent_that_offers_no_tool_and_calls_none_a_forbidden_call_is_not_measured() {
        let (mut found, trace) = missing(Some(&[]), &[]);
        found.expected.clear();
        let error = found.error(&trace).expect("an error");
        assert!(error.message.contains("does not show whether it called `create_ticket`"), "{}", error.message);
        let (mut found, trace) = missing(Some(&[]), &["answer"]);
        found.expected.clear();
        assert_eq!(found.error(&trace), None, "its calls are seen");
    }

    #[test]
    fn without_a_known_offer_nothing_is_missing_and_a_call_is_as_good_as_an_offer() {
        assert_eq!(missing(None, &[]).0, NotOffered::default());
        let (found, trace) = missing(Some(&["answer", "create_ticket"]), &["lookup"]);
        assert_eq!((found.error(&trace), found.notes(&trace).count()), (None, 0));
        assert!(missing(Some(&[]), &[]).0.error(&trace).is_some());
    }
}
