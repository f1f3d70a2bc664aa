//! Defects: evidence that is removed from a trace or bent, each by a small function.
//!
//! | file | holds |
//! |---|---|
//! | this one | the table of defects |
//! | `calls`, `texts`, `managed`, `service` | what they do, by kind |
//! | `edits` | what several of them share |
//!
//! A function changes the trace that it is given, and returns whether there was anything to change. What an agent
//! decided by its states (`moved`) stays as it was: a defect is of the evidence, and not of the state machine.

mod calls;
mod edits;
mod managed;
mod service;
mod texts;

use crate::trace::{Account, Answer, Logged, Role, SourceRef, Trace, TurnOutcome, What};
use calls::{call_doubled, drop_calls, keywords_generic, order_swapped, query_copied};
use edits::{answers, each, ends, keep, replace, replace_value, replace_with, searches, take, take_flag};
use managed::{artifacts, managed, markers_moved, past_the_gateway, renumbered, rewording_lost, status_turned};
use serde_json::Value;
use service::{errors_swallowed, fault_switched_off, model_slower, tokens_times_a_hundred};
use texts::{history, notice_removed, numbered, other_numbers, shifted};

/// A time that no limit allows.
const TOO_LATE_US: u64 = 600_000_000;

pub(crate) struct Defect {
    /// Its name, as printed.
    pub name: &'static str,
    /// What it does to a trace.
    pub about: &'static str,
    /// What a case that does not notice it asserts nothing about.
    pub topic: &'static str,
    /// The lines that a case would notice it by.
    pub lines: &'static str,
    /// One trial in so many has it.
    pub every: usize,
    /// Whether only trials of cases with a declared fault have it.
    pub of_faults: bool,
    /// Changes a trace; returns false if it has nothing of the kind.
    pub bend: fn(&mut Trace) -> bool,
}

/// What most defects are: in every trial that has something of the kind.
const USUAL: Defect = Defect { name: "", about: "", topic: "", lines: "", every: 1, of_faults: false, bend: |_| false };

/// The table: name, what it does, what it is about, the lines of a case, and what changes the trace.
macro_rules! defects {
    ($($name:literal, $about:literal, $topic:literal, $lines:literal $(, $member:ident = $value:literal)? => $bend:expr;)+) => {
        &[$(Defect { name: $name, about: $about, topic: $topic, lines: $lines, bend: $bend, $($member: $value,)? ..USUAL }),+]
    };
}

/// Every defect, in the order of the table.
pub(crate) static DEFECTS: &[Defect] = defects! {
    "search-dropped", "no search of the knowledge base ran", "the search of the knowledge base",
        "calls: [{superset: [SEARCH_TOOL]}]" => |trace| drop_calls(trace, Role::Knowledge);
    "external-dropped", "no search service was asked", "the search service",
        "calls: [{superset: [EXTERNAL_TOOL]}]" => |trace| drop_calls(trace, Role::External);
    "order-swapped", "the first two calls of a turn ran the other way round", "the order of calls",
        "calls: [{before: [FIRST_TOOL, SECOND_TOOL]}]" => order_swapped;
    "call-doubled", "the first call ran twice", "the number of calls",
        "calls: [{exactly_once: CALLED}]" => call_doubled;
    "result-emptied", "searches found nothing", "what a search finds",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/hits/0/id: {equals: PASSAGE}}}]}]" =>
            |trace| searches(trace, |search| !search.hits.is_empty() && take(&mut search.hits));
    "query-copied", "queries are the user's sentence", "the wording of queries",
        "calls: [{superset: [{tool: SEARCH_TOOL, arguments: {query: {matches: WORDS}}}]}]" => query_copied;
    "other-tenant", "searches are of another base", "whose documents are searched",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/kb_id: {equals: BASE}}}]}]" => |trace| {
            searches(trace, |search| {
                search.kb_id.push_str("-of-another");
                true
            })
        };
    "answer-replaced", "answers say something else", "what the answer says",
        "answer: {contains: [WORDS]}" =>
            |trace| answers(trace, |answer| replace(&mut answer.text, "It depends on many things."));
    "number-changed", "numbers in answers are other ones", "the figures in the answer",
        "answer: {contains: [NUMBER]}" =>
            |trace| answers(trace, |answer| replace_with(&mut answer.text, other_numbers));
    "fact-added", "answers say one thing more, which nothing supports", "whether the answer is supported",
        "answer: {grounded: true}" => |trace| {
            answers(trace, |answer| {
                answer.text.push_str("\n\nThe part XQ-7741 costs 8,461 euros.");
                true
            })
        };
    "citation-shifted", "every number in brackets is the next one", "what a citation stands for",
        "answer: {matches: ['WORDS \\[1\\]']}" =>
            |trace| answers(trace, |answer| replace_with(&mut answer.text, shifted));
    "citations-dropped", "no number in brackets is left", "that the answer cites",
        "answer: {matches: ['\\[\\d\\]']}" =>
            |trace| answers(trace, |answer| replace_with(&mut answer.text, |text| numbered(text, |_| String::new())));
    "source-invented", "the first source is one that nothing gave", "where sources come from",
        "answer: {cites: [DOCUMENT]}" => |trace| {
            answers(trace, |answer| {
                let first = answer.sources.first_mut();
                first.is_some_and(|source| replace(&mut source.id, "https://invented.example/page"))
            })
        };
    "sources-dropped", "answers name no source", "the sources of the answer",
        "sources: {at_least: 1}" => |trace| answers(trace, |answer| take::<SourceRef>(&mut answer.sources));
    "claims-turned", "answers claim the kinds of sources that they did not use", "which kinds of sources are claimed",
        "sources: {internal: CLAIMS_INTERNAL, external: CLAIMS_EXTERNAL}" => |trace| {
            answers(trace, |answer| {
                answer.used_internal_kb ^= true;
                answer.used_external_kb ^= true;
                true
            })
        };
    "answered-in-free-text", "the answer came as text, and not by the response tool", "how the answer is given",
        "calls: [{exactly_once: RESPONSE_TOOL}]" => |trace| drop_calls(trace, Role::Respond);
    "reply-emptied", "the body of the reply is empty", "the reply of the service",
        "reply: {/answer: {matches: .}}" =>
            |trace| ends(trace, |end| end.reply.as_mut().is_some_and(|reply| replace_value(reply, Value::Null)));
    "history-lost", "later turns are shown nothing of earlier ones", "memory of earlier turns",
        "context: {probes: [{any_of: [WORDS]}]}" => |trace| history(trace, None);
    "history-of-another", "later turns are shown another session's history", "whose history is shown",
        "context: {probes: [{any_of: [WORDS]}]}" => |trace| history(trace, Some("user:ffffffffffff"));
    "keywords-not-stored", "no keywords were indexed", "the keywords that are stored",
        "keywords: {indexed: true}" => |trace| drop_calls(trace, Role::Index);
    "keywords-generic", "the stored keywords fit any result", "the quality of keywords",
        "keywords: {none_generic: true, include: [KEYWORD]}" => keywords_generic;
    "errors-swallowed", "failed and refused calls left no trace", "how errors are handled",
        "retries: [{account: tool, at_least: 1, recovered: true}]" => errors_swallowed;
    "retries-in-vain", "no retry recovered", "that retries recover",
        "retries: [{account: model, at_least: 1, recovered: true}]" => |trace| {
            each(trace, |what| if let What::Retried(retry) = what { take_flag(&mut retry.recovered) } else { false })
        };
    "waits-lost", "HTTP was not tried again", "retries of HTTP requests",
        "retries: [{account: transport, at_least: 1}]" =>
            |trace| keep(trace, |what| !matches!(what, What::Retried(retry) if retry.account == Account::Transport));
    "notice-removed", "nothing says what the answer lacks", "notices to the user",
        "answer: {contains: [NOTICE]}" => notice_removed;
    "error-became-answer", "turns that ended in an error ended in an answer", "the error that ends the turn",
        "error: {kind: KIND}" => |trace| {
            ends(trace, |end| {
                let failed = matches!(end.outcome, TurnOutcome::Failed { .. });
                if failed {
                    end.outcome = TurnOutcome::Answered(Answer::text_alone("It is done.".into()));
                }
                failed
            })
        };
    "answer-lost", "turns ended in an error", "that there is an answer",
        "answer: {contains: [WORDS]}" => |trace| {
            ends(trace, |end| {
                let answered = matches!(end.outcome, TurnOutcome::Answered(_));
                if answered {
                    end.outcome = TurnOutcome::Failed { kind: "timeout".into(), message: "No answer.".into() };
                }
                answered
            })
        };
    "log-emptied", "the agent logged nothing", "the agent's log",
        "reply: {/trajectory/steps: {equals: N}}" => |trace| keep(trace, |what| !matches!(what, What::Logged(_)));
    "compaction-off", "the context was not compacted", "the compaction of the context",
        "reply: {/trajectory/notices: {matches: shorter}}" =>
            |trace| keep(trace, |what| !matches!(what, What::Logged(Logged::Compacted { .. })));
    "model-slower", "every completion took ten times as long", "how long a turn takes",
        "within: 10s" => model_slower;
    "some-too-late", "6 % of the trials took ten minutes a turn", "how long a turn takes",
        "within: 10s", every = 16 => |trace| {
            ends(trace, |end| {
                end.took_us = TOO_LATE_US;
                true
            })
        };
    "tokens-times-a-hundred", "every completion used a hundred times the tokens", "tokens and cost",
        "tokens: {at_most: N}" => tokens_times_a_hundred;
    "markers-moved", "markers of a managed answer stand before the words that they cite",
        "where the markers of citations stand",
        "answer: {matches: ['WORDS\\[\\[1\\]\\]']}" => |trace| artifacts(trace, markers_moved);
    "pages-renumbered", "the sources of a managed answer have other numbers than its markers", "the numbers of pages",
        "answer: {matches: ['WORDS\\[\\[1\\]\\]']}" => |trace| managed(trace, renumbered);
    "past-the-gateway", "links lead to the managed service itself", "where links lead",
        "answer: {contains: [/gateway/download/]}" => |trace| managed(trace, past_the_gateway);
    "artifact-lost", "managed answers made no artifact", "the artifact",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/artifact/version: {equals: 1}}}]}]" =>
            |trace| managed(trace, |answer| answer.artifact.take().is_some());
    "version-skipped", "artifacts have the version after their own", "the version of the artifact",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/artifact/version: {equals: 1}}}]}]" =>
            |trace| artifacts(trace, |artifact| artifact.version += 1);
    "artifact-renamed", "artifacts have another name and media type", "the name of the artifact",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/artifact/filename: {equals: NAME}}}]}]" => |trace| {
            artifacts(trace, |artifact| {
                artifact.filename = "download.bin".into();
                artifact.mime_type = "application/octet-stream".into();
            })
        };
    "description-lengthened", "descriptions of artifacts are longer than declared", "the description of the artifact",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/artifact/description: {matches: '^.{1,180}$'}}}]}]" =>
            |trace| artifacts(trace, |artifact| artifact.description.push_str(&" and so on".repeat(20)));
    "status-turned", "a managed answer has the status of none, and none that of an answer", "the status of the result",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/status: {equals: success}}}]}]" =>
            |trace| managed(trace, status_turned);
    "learning-id-lost", "managed answers have no id of the service", "the service's id of the exchange",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/learning_id: {matches: .}}}]}]" =>
            |trace| managed(trace, |answer| answer.learning_id.take().is_some());
    "rewording-lost", "the managed service was asked with the query as it was, or with another prefix",
        "how queries are reworded",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/asked: {matches: WORDS}}}]}]" =>
            |trace| managed(trace, rewording_lost);
    "audit-lost", "no data for the audit log was sent", "the audit data",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/audit/FIELD: {equals: VALUE}}}]}]" =>
            |trace| managed(trace, |answer| !std::mem::take(&mut answer.audit).is_empty());
    "filter-lost", "no filter was sent", "the filter",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/filter_applied: {equals: true}}}]}]" => |trace| {
            managed(trace, |answer| {
                answer.applied_filter = None;
                answer.filter_applied.as_mut().is_some_and(std::mem::take)
            })
        };
    "missing-parameters-unnamed", "parameters that a filter lacks are not named", "the parameters that a filter lacks",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/managed/missing_filter_parameters/0: {equals: NAME}}}]}]" =>
            |trace| managed(trace, |answer| take(&mut answer.missing_filter_parameters));
    "fault-switched-off", "the declared fault did not happen", "the fault that it declares",
        "retries: [{account: ACCOUNT, at_least: 1}]", of_faults = true => fault_switched_off;
};
