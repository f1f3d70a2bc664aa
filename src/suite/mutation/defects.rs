//! Defects: evidence that is removed from a trace or bent, each by a small function.
//!
//! A function changes the first trace that it is given, and returns whether there was anything to change. What an agent
//! decided by its states (`moved`) stays as it was: a defect is of the evidence, and not of the state machine.

use crate::trace::{
    Account, Answer, Logged, Reply, Role, SearchResult, SourceRef, ToolCalled, ToolOutcome, ToolResult, Trace,
    TurnEnded, TurnOutcome, What,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// A time that no limit allows.
const TOO_LATE_US: u64 = 600_000_000;

/// One defect.
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

const fn defect(
    name: &'static str,
    about: &'static str,
    topic: &'static str,
    lines: &'static str,
    bend: fn(&mut Trace) -> bool,
) -> Defect {
    Defect { name, about, topic, lines, every: 1, of_faults: false, bend }
}

/// Every defect, in the order of the table.
pub(crate) static DEFECTS: &[Defect] = &[
    defect(
        "search-dropped",
        "no search of the knowledge base ran",
        "the search of the knowledge base",
        "calls: [{superset: [SEARCH_TOOL]}]",
        |trace| drop_calls(trace, Role::Knowledge),
    ),
    defect(
        "external-dropped",
        "no search service was asked",
        "the search service",
        "calls: [{superset: [EXTERNAL_TOOL]}]",
        |trace| drop_calls(trace, Role::External),
    ),
    defect(
        "order-swapped",
        "the first two calls of a turn ran the other way round",
        "the order of calls",
        "calls: [{before: [FIRST_TOOL, SECOND_TOOL]}]",
        order_swapped,
    ),
    defect(
        "call-doubled",
        "the first call ran twice",
        "the number of calls",
        "calls: [{exactly_once: CALLED}]",
        call_doubled,
    ),
    defect(
        "result-emptied",
        "searches found nothing",
        "what a search finds",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/hits/0/id: {equals: PASSAGE}}}]}]",
        |trace| searches(trace, |search| !search.hits.is_empty() && take(&mut search.hits)),
    ),
    defect(
        "query-copied",
        "queries are the user's sentence",
        "the wording of queries",
        "calls: [{superset: [{tool: SEARCH_TOOL, arguments: {query: {matches: WORDS}}}]}]",
        query_copied,
    ),
    defect(
        "other-tenant",
        "searches are of another base",
        "whose documents are searched",
        "calls: [{superset: [{tool: SEARCH_TOOL, result: {/kb_id: {equals: BASE}}}]}]",
        |trace| {
            searches(trace, |search| {
                search.kb_id.push_str("-of-another");
                true
            })
        },
    ),
    defect(
        "answer-replaced",
        "answers say something else",
        "what the answer says",
        "answer: {contains: [WORDS]}",
        |trace| answers(trace, |answer| replace(&mut answer.text, "It depends on many things.")),
    ),
    defect(
        "number-changed",
        "numbers in answers are other ones",
        "the figures in the answer",
        "answer: {contains: [NUMBER]}",
        |trace| answers(trace, |answer| replace_with(&mut answer.text, other_numbers)),
    ),
    defect(
        "fact-added",
        "answers say one thing more, which nothing supports",
        "whether the answer is supported",
        "answer: {grounded: true}",
        |trace| {
            answers(trace, |answer| {
                answer.text.push_str("\n\nThe part XQ-7741 costs 8,461 euros.");
                true
            })
        },
    ),
    defect(
        "citation-shifted",
        "every number in brackets is the next one",
        "what a citation stands for",
        "answer: {matches: ['WORDS \\[1\\]']}",
        |trace| answers(trace, |answer| replace_with(&mut answer.text, shifted)),
    ),
    defect(
        "citations-dropped",
        "no number in brackets is left",
        "that the answer cites",
        "answer: {matches: ['\\[\\d\\]']}",
        |trace| answers(trace, |answer| replace_with(&mut answer.text, |text| numbered(text, |_| String::new()))),
    ),
    defect(
        "source-invented",
        "the first source is one that nothing gave",
        "where sources come from",
        "answer: {cites: [DOCUMENT]}",
        |trace| {
            answers(trace, |answer| {
                let first = answer.sources.first_mut();
                first.is_some_and(|source| replace(&mut source.id, "https://invented.example/page"))
            })
        },
    ),
    defect(
        "sources-dropped",
        "answers name no source",
        "the sources of the answer",
        "sources: {at_least: 1}",
        |trace| answers(trace, |answer| take::<SourceRef>(&mut answer.sources)),
    ),
    defect(
        "claims-turned",
        "answers claim the kinds of sources that they did not use",
        "which kinds of sources are claimed",
        "sources: {internal: true, external: false}",
        |trace| {
            answers(trace, |answer| {
                answer.used_internal_kb ^= true;
                answer.used_external_kb ^= true;
                true
            })
        },
    ),
    defect(
        "answered-in-free-text",
        "the answer came as text, and not by the response tool",
        "how the answer is given",
        "calls: [{exactly_once: RESPONSE_TOOL}]",
        |trace| drop_calls(trace, Role::Respond),
    ),
    defect(
        "reply-emptied",
        "the body of the reply is empty",
        "the reply of the service",
        "reply: {/answer: {matches: .}}",
        |trace| ends(trace, |end| end.reply.as_mut().is_some_and(|reply| replace_value(reply, Value::Null))),
    ),
    defect(
        "history-lost",
        "later turns are shown nothing of earlier ones",
        "memory of earlier turns",
        "context: {probes: [{any_of: [WORDS]}]}",
        |trace| history(trace, None),
    ),
    defect(
        "history-of-another",
        "later turns are shown another session's history",
        "whose history is shown",
        "context: {probes: [{any_of: [WORDS]}]}",
        |trace| history(trace, Some("user:ffffffffffff")),
    ),
    defect(
        "keywords-not-stored",
        "no keywords were indexed",
        "the keywords that are stored",
        "keywords: {indexed: true}",
        |trace| drop_calls(trace, Role::Index),
    ),
    defect(
        "keywords-generic",
        "the stored keywords fit any result",
        "the quality of keywords",
        "keywords: {none_generic: true, include: [KEYWORD]}",
        keywords_generic,
    ),
    defect(
        "errors-swallowed",
        "failed and refused calls left no trace",
        "how errors are handled",
        "retries: [{account: tool, at_least: 1, recovered: true}]",
        errors_swallowed,
    ),
    defect(
        "retries-in-vain",
        "no retry recovered",
        "that retries recover",
        "retries: [{account: model, at_least: 1, recovered: true}]",
        |trace| {
            each(trace, |what| if let What::Retried(retry) = what { take_flag(&mut retry.recovered) } else { false })
        },
    ),
    defect(
        "waits-lost",
        "HTTP was not tried again",
        "retries of HTTP requests",
        "retries: [{account: transport, at_least: 1}]",
        |trace| keep(trace, |what| !matches!(what, What::Retried(retry) if retry.account == Account::Transport)),
    ),
    defect(
        "notice-removed",
        "nothing says what the answer lacks",
        "notices to the user",
        "answer: {contains: [NOTICE]}",
        notice_removed,
    ),
    defect(
        "error-became-answer",
        "turns that ended in an error ended in an answer",
        "the error that ends the turn",
        "error: {kind: KIND}",
        |trace| {
            ends(trace, |end| {
                let failed = matches!(end.outcome, TurnOutcome::Failed { .. });
                if failed {
                    end.outcome = TurnOutcome::Answered(Answer::text_alone("It is done.".into()));
                }
                failed
            })
        },
    ),
    defect(
        "answer-lost",
        "turns ended in an error",
        "that there is an answer",
        "answer: {contains: [WORDS]}",
        |trace| {
            ends(trace, |end| {
                let answered = matches!(end.outcome, TurnOutcome::Answered(_));
                if answered {
                    end.outcome = TurnOutcome::Failed { kind: "timeout".into(), message: "No answer.".into() };
                }
                answered
            })
        },
    ),
    defect(
        "log-emptied",
        "the agent logged nothing",
        "the agent's log",
        "reply: {/trajectory/steps: {equals: N}}",
        |trace| keep(trace, |what| !matches!(what, What::Logged(_))),
    ),
    defect(
        "compaction-off",
        "the context was not compacted",
        "the compaction of the context",
        "reply: {/trajectory/notices: {matches: shorter}}",
        |trace| keep(trace, |what| !matches!(what, What::Logged(Logged::Compacted { .. }))),
    ),
    defect(
        "model-slower",
        "every completion took ten times as long",
        "how long a turn takes",
        "within: 10s",
        model_slower,
    ),
    Defect {
        every: 16,
        ..defect(
            "some-too-late",
            "6 % of the trials took ten minutes a turn",
            "how long a turn takes",
            "within: 10s",
            |trace| {
                ends(trace, |end| {
                    end.took_us = TOO_LATE_US;
                    true
                })
            },
        )
    },
    defect(
        "tokens-times-a-hundred",
        "every completion used a hundred times the tokens",
        "tokens and cost",
        "tokens: {at_most: N}",
        tokens_times_a_hundred,
    ),
    Defect {
        of_faults: true,
        ..defect(
            "fault-switched-off",
            "the declared fault did not happen",
            "the fault that it declares",
            "retries: [{account: ACCOUNT, at_least: 1}]",
            fault_switched_off,
        )
    },
];

fn take<T>(list: &mut Vec<T>) -> bool {
    !std::mem::take(list).is_empty()
}

fn take_flag(flag: &mut bool) -> bool {
    std::mem::take(flag)
}

fn replace(text: &mut String, new: &str) -> bool {
    let differs = text != new;
    new.clone_into(text);
    differs
}

fn replace_value(value: &mut Value, new: Value) -> bool {
    std::mem::replace(value, new) != Value::Null
}

fn replace_with(text: &mut String, change: impl Fn(&str) -> String) -> bool {
    let new = change(text);
    replace(text, &new)
}

/// Changes every event; returns whether any was changed.
fn each(trace: &mut Trace, mut change: impl FnMut(&mut What) -> bool) -> bool {
    let mut changed = false;
    for event in &mut trace.events {
        changed |= change(&mut event.what);
    }
    changed
}

/// Keeps some events; returns whether any was dropped.
fn keep(trace: &mut Trace, mut kept: impl FnMut(&What) -> bool) -> bool {
    let before = trace.events.len();
    trace.events.retain(|event| kept(&event.what));
    trace.events.len() < before
}

fn ends(trace: &mut Trace, mut change: impl FnMut(&mut TurnEnded) -> bool) -> bool {
    each(trace, |what| if let What::TurnEnded(end) = what { change(end) } else { false })
}

fn answers(trace: &mut Trace, mut change: impl FnMut(&mut Answer) -> bool) -> bool {
    ends(trace, |end| if let TurnOutcome::Answered(answer) = &mut end.outcome { change(answer) } else { false })
}

fn searches(trace: &mut Trace, mut change: impl FnMut(&mut SearchResult) -> bool) -> bool {
    each(trace, |what| {
        let outcome = match what {
            What::ToolCalled(call) => &mut call.outcome,
            What::Searched(search) => &mut search.outcome,
            _ => return false,
        };
        if let ToolOutcome::Ok(ToolResult::Search(search)) = outcome { change(search) } else { false }
    })
}

/// The called tools with one of these roles.
fn tools_of(trace: &Trace, roles: &[Role]) -> BTreeSet<String> {
    let called = trace.events.iter().filter_map(|event| match &event.what {
        What::ToolCalled(call) => Some(&call.tool),
        _ => None,
    });
    called.filter(|tool| roles.contains(&trace.role(tool))).cloned().collect()
}

/// Drops the calls of a role from events and completions; for searches, those of the flow too.
fn drop_calls(trace: &mut Trace, role: Role) -> bool {
    let tools = tools_of(trace, &[role]);
    each(trace, |what| {
        if let What::ModelCalled(called) = what
            && let Reply::Completion(completion) = &mut called.reply
        {
            completion.calls.retain(|tool| !tools.contains(tool));
        }
        false
    });
    keep(trace, |what| match what {
        What::ToolCalled(call) => !tools.contains(&call.tool),
        What::Searched(_) => role != Role::Knowledge,
        _ => true,
    })
}

/// Places of the calls that ran, by turn.
fn ran(trace: &Trace) -> Vec<usize> {
    let ok = |what: &What| matches!(what, What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(_), .. }));
    (0..trace.events.len()).filter(|place| ok(&trace.events[*place].what)).collect()
}

fn order_swapped(trace: &mut Trace) -> bool {
    let places = ran(trace);
    let tool = |place: usize| match &trace.events[place].what {
        What::ToolCalled(call) => call.tool.clone(),
        _ => String::new(),
    };
    let turn = |place: usize| (trace.events[place].conversation, trace.events[place].turn);
    let pair = places.windows(2).find(|two| turn(two[0]) == turn(two[1]) && tool(two[0]) != tool(two[1]));
    let Some(&[first, second]) = pair else { return false };
    trace.events.swap(first, second);
    true
}

fn call_doubled(trace: &mut Trace) -> bool {
    let Some(place) = ran(trace).first().copied() else { return false };
    trace.events.insert(place, trace.events[place].clone());
    true
}

fn query_copied(trace: &mut Trace) -> bool {
    let tools = tools_of(trace, &[Role::Knowledge, Role::External]);
    let mut asked = String::new();
    each(trace, |what| match what {
        What::TurnStarted { query } => {
            asked.clone_from(query);
            false
        }
        What::ToolCalled(call) if tools.contains(&call.tool) => {
            let query = call.arguments.get_mut("query");
            if let ToolOutcome::Ok(ToolResult::Search(search)) = &mut call.outcome {
                search.query.clone_from(&asked);
            }
            query.is_some_and(|query| {
                *query = Value::String(asked.clone());
                true
            })
        }
        _ => false,
    })
}

/// The text with other numbers in place of those of two digits and more.
fn other_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut digits = 0;
    for letter in text.chars() {
        digits = if letter.is_ascii_digit() { digits + 1 } else { 0 };
        let other = letter.to_digit(10).and_then(|digit| char::from_digit((digit + 3) % 10, 10));
        out.push(other.filter(|_| digits > 1).unwrap_or(letter));
    }
    out
}

/// The text with every `[n]` as `new` says.
fn numbered(text: &str, new: impl Fn(u32) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open);
        out.push_str(before);
        let number = after.find(']').and_then(|close| Some((close, after[1..close].parse::<u32>().ok()?)));
        if let Some((close, number)) = number {
            out.push_str(&new(number));
            rest = &after[close + 1..];
        } else {
            out.push('[');
            rest = &after[1..];
        }
    }
    out + rest
}

fn shifted(text: &str) -> String {
    numbered(text, |number| format!("[{}]", number.saturating_add(1)))
}

/// Takes what earlier turns said out of the requests of later ones, or puts another message in its place.
fn history(trace: &mut Trace, other: Option<&str>) -> bool {
    let mut said: Vec<String> = Vec::new();
    let mut of = None;
    let mut changed = false;
    for event in &mut trace.events {
        if of != Some(event.conversation) {
            (of, said) = (Some(event.conversation), Vec::new());
        }
        match &mut event.what {
            What::ModelCalled(called) => {
                let before = called.shown.clone();
                called.shown.retain(|message| !said.contains(message));
                if called.shown != before {
                    called.shown.extend(other.map(str::to_owned));
                    changed = true;
                }
            }
            What::TurnEnded(end) => said.clone_from(&end.history),
            _ => {}
        }
    }
    changed
}

fn keywords_generic(trace: &mut Trace) -> bool {
    let generic = || vec!["information".to_owned(), "details".to_owned()];
    each(trace, |what| match what {
        What::ToolCalled(ToolCalled { arguments, outcome: ToolOutcome::Ok(ToolResult::Indexed(index)), .. }) => {
            (index.keywords, index.read_back) = (generic(), generic());
            if let Some(keywords) = arguments.get_mut("keywords") {
                *keywords = Value::from(generic());
            }
            true
        }
        _ => false,
    })
}

fn errors_swallowed(trace: &mut Trace) -> bool {
    keep(trace, |what| match what {
        What::ToolCalled(call) => matches!(call.outcome, ToolOutcome::Ok(_) | ToolOutcome::Unseen { .. }),
        What::Logged(entry) => !matches!(entry, Logged::Failure { .. } | Logged::Reflection { .. }),
        What::Degraded { .. } => false,
        _ => true,
    })
}

fn notice_removed(trace: &mut Trace) -> bool {
    let mut notices = Vec::new();
    let removed = keep(trace, |what| match what {
        What::Logged(Logged::Notice { text, .. }) => {
            notices.push(text.clone());
            false
        }
        What::Degraded { .. } => false,
        _ => true,
    });
    answers(trace, |answer| {
        for notice in &notices {
            answer.text = answer.text.replace(notice.as_str(), "");
        }
        false
    });
    removed
}

fn model_slower(trace: &mut Trace) -> bool {
    let mut more = 0;
    each(trace, |what| match what {
        What::TurnStarted { .. } => {
            more = 0;
            false
        }
        What::ModelCalled(called) => {
            more += called.took_us * 9;
            called.took_us *= 10;
            true
        }
        What::TurnEnded(end) => {
            end.took_us += more;
            false
        }
        _ => false,
    })
}

fn tokens_times_a_hundred(trace: &mut Trace) -> bool {
    each(trace, |what| match what {
        What::ModelCalled(called) => match &mut called.reply {
            Reply::Completion(completion) => {
                let known = completion.input_tokens.is_some();
                for tokens in [&mut completion.input_tokens, &mut completion.output_tokens].into_iter().flatten() {
                    *tokens = tokens.saturating_mul(100);
                }
                known
            }
            Reply::Failure { .. } => false,
        },
        _ => false,
    })
}

/// Takes out what a fault leaves: failed attempts and calls, feedback, retries, lessons, restarts, what was done without.
fn fault_switched_off(trace: &mut Trace) -> bool {
    let mended = each(trace, |what| {
        let attempts = match what {
            What::ModelCalled(called) => &mut called.attempts,
            What::ToolCalled(call) => &mut call.attempts,
            What::Searched(search) => &mut search.attempts,
            _ => return false,
        };
        let before = attempts.len();
        attempts.retain(|attempt| attempt.cause.is_none());
        attempts.len() < before
    });
    let dropped = keep(trace, |what| match what {
        What::ToolCalled(call) => matches!(call.outcome, ToolOutcome::Ok(_) | ToolOutcome::Unseen { .. }),
        What::ModelCalled(called) => !matches!(called.reply, Reply::Failure { .. }),
        What::Logged(entry) => !matches!(
            entry,
            Logged::Failure { .. }
                | Logged::Reflection { .. }
                | Logged::Notice { .. }
                | Logged::Restored { .. }
                | Logged::StartedAfresh { .. }
                | Logged::Recovered { .. }
                | Logged::Compacted { .. }
        ),
        What::Retried(_) | What::FedBack(_) | What::Degraded { .. } => false,
        _ => true,
    });
    mended || dropped
}
