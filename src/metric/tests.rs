//! Each metric on scripted traces: what is a unit, a success, and neither.

use super::sample::{self, Story, plan, story};
use super::{Metric, Outcome, Patterns, TrialView, expectation};
use crate::plan::Plan;
use crate::trace::{Account, Mode, Reply, Trace, TurnEnded, TurnOutcome, What};

const ONE: &str = "[{case: a, ask: 'How do I bleed it?', expect: {within: 60s}}]";

/// What `read` says of the trial of `trace`, with its checks.
fn viewed<T>(metric: &str, plan: &Plan, trace: &Trace, read: impl Fn(&Metric, &TrialView<'_>) -> T) -> T {
    sample::viewed(plan, trace, |view| {
        let checks = expectation::checks(&view, &Patterns::of(&view.case.case));
        read(&sample::metric(metric), &TrialView { checks: &checks, ..view })
    })
}

/// Units of the trial of `trace`: success, failure with its note, or time.
fn observe(metric: &str, plan: &Plan, trace: &Trace) -> Vec<String> {
    let units = viewed(metric, plan, trace, |metric, view| (metric.observe)(view)).into_iter();
    let words = units.map(|unit| match unit.outcome {
        Outcome::Success if unit.note.is_empty() => "yes".to_owned(),
        Outcome::Success => format!("yes: {}", unit.note),
        Outcome::Failure if unit.note.is_empty() => "no".to_owned(),
        Outcome::Failure => format!("no: {}", unit.note),
        Outcome::Took(time) => format!("{time}"),
        Outcome::Never => format!("never: {}", unit.note),
    });
    words.collect()
}

fn one(metric: &str, tell: impl Fn(Story) -> Story) -> Vec<String> {
    let plan = plan(ONE, "[]", 1);
    observe(metric, &plan, &tell(story(&plan, 0).turn("How do I bleed it?")).done())
}

#[test]
fn a_mandatory_call_must_run_before_the_answer() {
    let rate = "mandatory_call_rate(knowledge_base_search)";
    let first = "mandatory_call_rate(knowledge_base_search, at=first)";
    let fed_back = |s: Story| s.feedback("knowledge_base_search").search(&["d#1"]).answer("x", &[]);
    assert_eq!(one(rate, |s| s.search(&["d#1"]).answer("x", &[])), ["yes"]);
    assert_eq!(one(rate, fed_back), ["yes"]);
    assert_eq!(one(first, fed_back), ["no: knowledge_base_search was executed only after feedback"]);
    assert_eq!(one(rate, |s| s.failed_call("knowledge_base_search").answer("x", &[])), ["yes"], "it ran");
    assert_eq!(one(rate, |s| s.answer("x", &[]).search(&["d#1"])), ["no: answered without knowledge_base_search"]);
    let beside = |mut s: Story| {
        s.each(|what| {
            if let What::ModelCalled(called) = what
                && let Reply::Completion(completion) = &mut called.reply
            {
                completion.calls = vec!["knowledge_base_search".into(), "generate_response".into()];
            }
        });
        s.search(&["d#1"]).answer("x", &[])
    };
    assert_eq!(one(rate, beside), ["no: knowledge_base_search was called beside the answer"]);
    let after = |s: Story| s.deliver("x", &[], 1).search(&["d#1"]);
    assert_eq!(one(rate, after), ["no: knowledge_base_search was never executed: answered"]);
    let never = "no: knowledge_base_search was never executed: ended with the error e";
    assert_eq!(one(rate, |s| s.rejected("knowledge_base_search").fail("e")), [never]);
    assert_eq!(one(rate, |s| s.out_of_order("knowledge_base_search").fail("e")), [never]);
}

#[test]
fn a_trial_passes_by_meeting_all_expectations_and_a_control_by_missing_a_probe() {
    let probe = "{context: {probes: [{any_of: [Turku]}]}}";
    let cases =
        format!("[{{case: a, control: true, turns: [{{ask: I live in Turku}}, {{ask: where?, expect: {probe}}}]}}]");
    let plan = plan(&cases, "[]", 1);
    let of = |metric: &str, place: usize, text: &str| {
        let trace = story(&plan, place).turn("x").answer("x", &[]).turn("y").answer(text, &[]).done();
        observe(metric, &plan, &trace)
    };
    let missed = "no: turn 2: context: the answer has Turku: the answer says: Oslo";
    assert_eq!(of("case_pass_rate", 0, "In Turku."), ["yes"]);
    assert_eq!(of("case_pass_rate", 0, "Oslo"), [missed]);
    assert_eq!(of("control_validity", 1, "Oslo"), ["yes"]);
    assert!(of("control_validity", 1, "In Turku.")[0].starts_with("no: "));
}

#[test]
fn an_imported_conversation_passes_nothing_unless_its_case_expects_something() {
    for (cases, units) in [("[{case: a, ask: q}]", 0), (ONE, 1)] {
        let plan = plan(cases, "[]", 1);
        let mut trace = story(&plan, 0).turn("q").answer("x", &[]).done();
        assert_eq!(observe("case_pass_rate", &plan, &trace).len(), 1, "{cases}");
        trace.evidence.mode = Mode::Imported;
        assert_eq!(observe("case_pass_rate", &plan, &trace).len(), units, "{cases}");
    }
}

#[test]
fn a_turn_that_never_began_is_still_a_query() {
    let cases = "[{case: a, turns: [{ask: x, expect: {within: 9s}}, {ask: y}]}]";
    let plan = plan(cases, "[]", 1);
    let trace = story(&plan, 0).turn("x").fail("timeout").done();
    assert_eq!(observe("latency_p95", &plan, &trace), ["never: ended with the error timeout", "never: never began"]);
    assert_eq!(observe("turn_success_rate", &plan, &trace), ["no: ended with the error timeout", "no: never began"]);
    assert_eq!(one("latency_p95", |s| s.answer("x", &[])), ["2000000"]);
}

#[test]
fn the_first_attempt_is_used_up_by_free_text_and_by_invalid_arguments() {
    let rate = "first_attempt_rate(generate_response)";
    assert_eq!(one(rate, |s| s.search(&["d#1"]).answer("x", &[])), ["yes"]);
    assert_eq!(one(rate, |s| s.feedback("knowledge_base_search").search(&["d#1"]).answer("x", &[])), ["yes"]);
    assert_eq!(one(rate, |s| s.out_of_order("generate_response").search(&["d#1"]).answer("x", &[])), ["yes"]);
    let fed_back = ["no: not called; generate_response needed a reminder"];
    assert_eq!(one(rate, |s| s.search(&["d#1"]).feedback("generate_response").answer("x", &[])), fed_back);
    let rejected = ["no: first call rejected: too short"];
    assert_eq!(one(rate, |s| s.search(&["d#1"]).rejected("generate_response").answer("x", &[])), rejected);
    let never = ["no: generate_response was never accepted: ended with the error model_unavailable"];
    assert_eq!(one("first_attempt_rate", |s| s.fail("model_unavailable")), never);
}

#[test]
fn a_call_of_a_tool_that_does_not_exist_uses_up_the_first_attempt_at_its_own_step() {
    let rate = "first_attempt_rate(generate_response)";
    let no = ["no: `respond`, which does not exist, was called before generate_response"];
    assert_eq!(one(rate, |s| s.search(&["d#1"]).unknown("respond").answer("x", &[])), no);
    assert_eq!(one(rate, |s| s.unknown("kb").search(&["d#1"]).answer("x", &[])), ["yes"], "a step was still to come");
    let searched_again = |s: Story| s.search(&["d#1"]).unknown("kb").search(&["d#1"]).answer("x", &[]);
    assert_eq!(one(rate, searched_again), ["yes"]);
}

#[test]
fn keywords_count_only_when_every_one_is_found_again_for_that_result() {
    let rate = |tell: fn(Story) -> Story| one("keyword_coverage", tell);
    assert!(rate(|s| s.search(&["d#1"]).answer("x", &[])).is_empty(), "no external result, no unit");
    assert_eq!(rate(|s| s.external("r1").index("r1", &["a", "b"], 2)), ["yes"]);
    assert_eq!(rate(|s| s.external("r1").index("r1", &["a", "b"], 1)), ["no: r1: not every keyword was found again"]);
    assert_eq!(rate(|s| s.external("r1").index("r1", &[], 0)), ["no: r1: it was indexed without any keyword"]);
    assert_eq!(rate(|s| s.external("r1").index("r9", &["a"], 1)), ["no: r1: no keywords were indexed for it"]);
    let second = ["no: r2: no keywords were indexed for it"];
    assert_eq!(rate(|s| s.external("r1").index("r1", &["a"], 1).external("r2")), second);
}

#[test]
fn retries_are_counted_by_attempt_or_by_episode_on_the_accounts_named() {
    // Ten episodes, 14 retries, 8 recoveries: 57 % or 80 %.
    let tell = |mut s: Story| {
        for episode in 0..10 {
            let last = if episode < 4 { 2 } else { 1 };
            for attempt in 1..=last {
                s = s.retried(Account::Model, episode, attempt, attempt == last && episode < 8);
            }
        }
        s.retried(Account::Transport, 0, 1, false)
    };
    let count = |metric: &str| {
        let units = one(metric, tell);
        (units.iter().filter(|unit| *unit == "yes").count(), units.len())
    };
    assert_eq!(count("retry_recovery"), (8, 14));
    assert_eq!(count("retry_recovery(by=episode)"), (8, 10));
    assert_eq!(count("retry_recovery(accounts=transport)"), (0, 1));
}

const SEQUENCE: &str = "
- case: a
  expect: {within: 60s}
  sequence:
    - conversation: {name: first, turns: [{ask: x}]}
    - conversation: {name: later, turns: [{ask: y}], related: {to: first, kind: paraphrase, relevant: [learned, guide]}}
    - conversation: {name: apart, turns: [{ask: z}], related: {to: first, kind: unrelated}}";

fn sequence(metric: &str, later: fn(Story) -> Story, apart: fn(Story) -> Story) -> Vec<String> {
    let plan = plan(SEQUENCE, "[]", 1);
    let start = story(&plan, 0).conversation(0, "first").turn("x").search(&[]).answer("x", &[]);
    let then = later(start.conversation(1, "later").turn("y")).answer("y", &[]);
    observe(metric, &plan, &apart(then.conversation(2, "apart").turn("z")).answer("z", &[]).done())
}

#[test]
fn a_rescue_needs_something_learned_and_nothing_relevant_without_it() {
    let rate = |later| sequence("learned_retrieval", later, |s| s.search(&[]));
    assert_eq!(rate(|s| s.search_with(&["other#1"], Some(0), &["other#1"])), ["yes"]);
    assert_eq!(rate(|s| s.search_with(&[], Some(0), &["guide#3"])), ["no: found without anything learned too"]);
    assert_eq!(rate(|s| s.search_with(&["other#1"], Some(7), &[])), ["no: nothing learned from first was found"]);
    assert_eq!(rate(|s| s), ["no: no search ran"]);
}

#[test]
fn what_was_learned_is_found_also_where_documents_would_have_done_and_kinds_are_told_apart() {
    let found = |metric| sequence(metric, |s| s.search_with(&[], Some(0), &["guide#3"]), |s| s.search(&[]));
    assert_eq!(found("learned_found"), ["yes"]);
    assert_eq!(found("learned_found(kind=paraphrase)"), ["yes"]);
    assert!(found("learned_found(kind=repeat)").is_empty());
    let documents = sequence("learned_found", |s| s.search(&["guide#1"]), |s| s.search(&[]));
    assert_eq!(documents, ["no: found without anything learned"]);
}

#[test]
fn harm_is_a_relevant_passage_lost_or_an_unrelated_entry_shown() {
    let harm = |later, apart| sequence("learned_harm", later, apart);
    assert_eq!(harm(|s| s.search(&["guide#1"]), |s| s.search(&["other#1"])), ["no", "no"]);
    let lost = "yes: a relevant passage was lost to learned entries";
    assert_eq!(harm(|s| s.search_with(&["other#1"], None, &["guide#1"]), |s| s), [lost]);
    let unasked = "yes: an entry learned from first came up unasked";
    assert_eq!(harm(|s| s, |s| s.search_with(&[], Some(0), &[])), [unasked]);
    let of = |kind| sequence(kind, |s| s.search(&["guide#1"]), |s| s.search_with(&[], Some(0), &[]));
    assert_eq!(of("learned_harm(kind=unrelated)"), [unasked]);
    assert_eq!(of("learned_harm(kind=paraphrase)"), ["no"]);
    assert!(of("learned_harm(kind=repeat)").is_empty());
}

#[test]
fn an_agent_outside_may_keep_its_calls_among_the_history_and_shows_no_other_user() {
    let plan = plan("[{case: a, turns: [{ask: I live in Turku}, {ask: heating grants?}]}]", "[]", 1);
    let tell = |flow: &str, shown: &[&str]| {
        let shown = shown.iter().map(ToString::to_string).collect();
        let first = story(&plan, 0).turn("I live in Turku").answer("noted", &[]);
        let mut trace = first.turn_shown("heating grants?", shown).answer("x", &[]).done();
        trace.lane.flow = flow.into();
        observe("context_preservation", &plan, &trace)
    };
    let kept = ["user:I live in Turku", "assistant:calls", "tool:found", "assistant:noted"];
    assert_eq!(tell("external", &kept), ["yes"]);
    assert!(tell("tool-rag", &kept)[0].contains("a foreign message"));
    let other = ["user:I live in Turku", "assistant:noted", "user:I live in Oslo"];
    assert!(tell("external", &other)[0].contains("a foreign message"));
}

#[test]
fn context_is_the_history_shown_and_the_probes_held() {
    let cases = "[{case: a, turns: [{ask: I live in Turku}, {ask: heating grants?, expect: {context: {probes: \
                 [{any_of: [Turku, Åbo], in_arguments_of: knowledge_base_search}]}}}]}]";
    let plan = plan(cases, "[]", 1);
    let tell = |shown: &[&str], query: &str| {
        let first = story(&plan, 0).turn("I live in Turku").answer("noted", &[]);
        let shown = shown.iter().map(ToString::to_string).collect();
        let searched = serde_json::json!({"query": query});
        let second = first.turn_shown("heating grants?", shown);
        let outcome = crate::trace::ToolOutcome::Ok(crate::trace::ToolResult::Responded);
        observe(
            "context_preservation",
            &plan,
            &second.call("knowledge_base_search", searched, outcome).answer("x", &[]).done(),
        )
    };
    let all = ["user:I live in Turku", "assistant:noted"];
    assert_eq!(tell(&all, "grants in åbo"), ["yes"]);
    assert_eq!(tell(&all[..1], "grants in Turku"), ["no: turn 2 was not shown the history before it"]);
    assert_eq!(tell(&[all[1], all[0]], "grants in Turku"), ["no: turn 2 was not shown the history before it"]);
    assert!(tell(&all, "grants")[0].contains("its arguments were: grants"));
    let alone = story(&plan, 0).turn("I live in Turku").fail("timeout").done();
    assert_eq!(observe("context_preservation", &plan, &alone), ["no: turn 2 never asked the model"]);
    assert!(one("context_preservation", |s| s.answer("x", &[])).is_empty(), "one turn has nothing to keep");
}

#[test]
fn a_completion_is_shown_the_system_prompt_the_question_and_every_result_so_far() {
    let of = |metric: &str, shown: &[&str]| {
        one(metric, |s| s.search(&["d#1"]).completion_shown(shown).answer("x", &[("internal", "d#1")]))
    };
    let all = ["system:0", "user:How do I bleed it?", "assistant:1", "tool:2"];
    assert_eq!(of("turn_context", &all), ["yes"]);
    assert_eq!(of("turn_context", &all[1..]), ["no: completion 2 was shown no system prompt"]);
    assert_eq!(of("turn_context", &["system:0", "tool:2"]), ["no: completion 2 was not shown the user's message"]);
    assert_eq!(of("turn_context", &all[..3]), ["no: completion 2 was shown 0 of 1 results"]);
    let unseen = "no: the completion that names sources was shown no result";
    assert_eq!(of("turn_context(context=step)", &all[..3]), [unseen]);
    let step = one("turn_context(context=step)", |s| s.search(&[]).completion_shown(&all[..2]).answer("x", &[]));
    assert_eq!(step, ["yes"], "a step may begin anew");
}

#[test]
fn a_turn_is_shown_its_history_and_nothing_that_its_conversation_did_not_leave() {
    let plan = plan("[{case: a, turns: [{ask: a}, {ask: b}]}]", "[]", 1);
    let of = |shown: &[&str]| {
        let shown = shown.iter().map(ToString::to_string).collect();
        let story = story(&plan, 0).turn("a").answer("x", &[]).turn_shown("b", shown).answer("y", &[]);
        let trace = story.done();
        ["turn_context", "turn_context(context=step)"]
            .map(|metric| observe(metric, &plan, &trace).pop().expect("a turn"))
    };
    let foreign = "no: completion 1 was shown messages that its conversation did not leave";
    assert_eq!(of(&["user:a", "assistant:x"]), ["yes", "yes"]);
    assert_eq!(of(&[]), ["no: completion 1 was not shown the whole history", "yes"]);
    assert_eq!(of(&["user:c", "assistant:z"]), [foreign; 2]);
    assert_eq!(of(&["assistant:x", "user:a"]), [foreign; 2], "in its order");
}

#[test]
fn a_search_returns_the_best_passage_first() {
    let of = |scores: &[f64]| {
        let ids = ["d#1", "d#2", "d#3"];
        one("passage_order", |s| {
            let mut story = s.search(&ids[..scores.len()]);
            story.each(|what| {
                if let What::ToolCalled(call) = what
                    && let crate::trace::ToolOutcome::Ok(crate::trace::ToolResult::Search(found)) = &mut call.outcome
                {
                    found.hits.iter_mut().zip(scores).for_each(|(hit, score)| hit.raw_score = *score);
                }
            });
            story.answer("x", &[])
        })
    };
    assert_eq!(of(&[3.0, 2.0, 2.0]), ["yes"]);
    assert_eq!(of(&[3.0, 1.0, 2.0]), ["no: d#2 stands before d#3, which has a higher score"]);
    assert!(of(&[3.0]).is_empty(), "one passage has no order");
}

#[test]
fn messages_about_failures_name_the_tool_the_correction_or_the_cause() {
    let fed = |message: &'static str| {
        one("failure_messages", move |s| {
            let mut story = s.feedback("search");
            story.each(|what| {
                if let What::FedBack(told) = what {
                    told.message = message.to_owned();
                }
            });
            story.answer("x", &[])
        })
    };
    assert_eq!(fed("Call the tool search now."), ["yes"]);
    assert_eq!(fed("Reply with this line: «embed:1»"), ["yes"]);
    assert_eq!(fed("That was not valid. Please try again."), ["no: feedback that names no tool"]);
    let (refusal, cause) = ("no: a refusal without reason or guidance", "no: an error without its cause");
    assert_eq!(one("failure_messages", |s| s.rejected("search").fail("timeout")), [refusal, cause]);
    assert_eq!(one("failure_messages", |s| s.failed_call("search").answer("x", &[])), [cause]);
    assert!(one("failure_messages", |s| s.answer("x", &[])).is_empty());
}

#[test]
fn a_reply_holds_the_answer_of_its_turn_and_the_session_of_its_conversation() {
    let plan = plan("[{case: a, turns: [{ask: a}, {ask: b}]}]", "[]", 1);
    let of = |member: &str, value: serde_json::Value| {
        let mut story = story(&plan, 0).turn("a").answer("x", &[]).turn("b").answer("y", &[]);
        let mut turn = 0;
        story.each(|what| {
            if let What::TurnEnded(end) = what {
                turn += 1;
                let mut reply = serde_json::json!({"answer": if turn == 1 { "x" } else { "y" }, "sources": [], "confidence_score": null,
                    "used_internal_kb": false, "used_external_kb": false, "session_id": "s-1"});
                if turn == 2 {
                    reply[member] = value.clone();
                }
                end.reply = Some(reply);
            }
        });
        observe("reply_agreement", &plan, &story.done()).pop().expect("a unit")
    };
    assert_eq!(of("session_id", "s-1".into()), "yes");
    assert_eq!(of("session_id", "s-2".into()), "no: `session_id` of the reply is not that of the turn");
    assert_eq!(of("session_id", serde_json::Value::Null), "no: `session_id` of the reply is not that of the turn");
    assert_eq!(of("answer", "x".into()), "no: `answer` of the reply is not that of the turn");
    assert_eq!(of("sources", serde_json::json!([1])), "no: `sources` of the reply is not that of the turn");
}

#[test]
fn citations_must_have_been_given_in_the_conversation() {
    let rate = |tell: fn(Story) -> Story| one("citation_validity", tell);
    assert_eq!(rate(|s| s.search(&["d#1"]).answer("x", &[("internal", "d#1")])), ["yes"]);
    assert_eq!(rate(|s| s.external("r1").answer("x", &[("external", "https://example.org/a")])), ["yes"]);
    let invented = ["no: cites d#2, which no earlier call gave as internal"];
    assert_eq!(rate(|s| s.search(&["d#1"]).answer("x", &[("internal", "d#1"), ("internal", "d#2")])), invented);
    assert!(rate(|s| s.search(&["d#1"]).answer("x", &[])).is_empty());
}

#[test]
fn citations_of_an_agent_outside_are_followed_where_it_says_that_they_name_its_passages() {
    let plan = plan(ONE, "[]", 1);
    for (flow, names, (units, is_told)) in
        [("tool-rag", false, (1, false)), ("external", false, (0, true)), ("external", true, (1, false))]
    {
        let mut story = story(&plan, 0).turn("q").search(&["d#1"]).answer("x", &[("internal", "d#1")]);
        story.each(|what| {
            if let What::TurnEnded(TurnEnded { outcome: TurnOutcome::Answered(answer), .. }) = what {
                answer.traceable = names;
            }
        });
        let mut trace = story.done();
        trace.lane.flow = flow.into();
        let found = viewed("citation_validity", &plan, &trace, |metric, view| {
            ((metric.observe)(view).len(), (metric.unseen)(view).is_some())
        });
        assert_eq!(found, (units, is_told), "{flow} {names}");
    }
}

#[test]
fn a_query_is_tailored_unless_it_repeats_the_user() {
    let rate = |query: &'static str| {
        let search = move |s: Story| {
            let outcome = crate::trace::ToolOutcome::Failed { message: String::new(), retryable: false };
            s.call("knowledge_base_search", serde_json::json!({"query": query}), outcome)
        };
        one("verbatim_query_rate(knowledge_base_search)", search)
    };
    assert_eq!(rate("  how do I  BLEED it"), ["yes: the user's own words"]);
    assert_eq!(rate("bleeding a radiator"), ["no"]);
    assert!(one("verbatim_query_rate(perplexity_search)", |s| s.search(&[])).is_empty());
}

#[test]
fn a_proxy_for_satisfaction_looks_at_what_an_answer_cites() {
    let both = |s: Story| s.search(&["d#1"]).external("r1");
    let (internal, external) = (("internal", "d#1"), ("external", "https://example.org/a"));
    assert_eq!(one("satisfaction", |s| both(s).answer("x", &[internal, external])), ["yes"]);
    assert_eq!(one("satisfaction", |s| both(s).answer("x", &[external])), ["no: cites no internal source"]);
    assert!(one("satisfaction", |s| s.search(&[]).external("r1").answer("x", &[external])).is_empty());
    assert!(one("satisfaction", |s| both(s).fail("timeout")).is_empty());
}

#[test]
fn satisfaction_is_that_of_the_raters_of_answers_from_both_sources() {
    let mut plan = plan(ONE, "[]", 1);
    let mut of = |rating: Option<bool>, tell: fn(Story) -> Story| {
        let trace = tell(story(&plan, 0).turn("q").search(&["d#1"])).answer("x", &[]).done();
        plan.ratings = Some(rating.map(|rating| (trace.trial.clone(), rating)).into_iter().collect());
        observe("satisfaction", &plan, &trace)
    };
    assert_eq!(of(Some(true), |s| s.external("r1")), ["yes"]);
    assert_eq!(of(Some(false), |s| s.external("r1")), ["no: the rater was not satisfied"]);
    assert!(of(None, |s| s.external("r1")).is_empty());
    assert!(of(Some(true), |s| s).is_empty(), "the documents alone");
}

#[test]
fn a_call_of_which_nothing_is_shown_is_no_unit_unless_the_rest_decides() {
    let kb = "knowledge_base_search";
    let rate = format!("mandatory_call_rate({kb})");
    assert_eq!(one(&rate, |story| story.unseen(kb).deliver("x", &[], 1)), Vec::<String>::new());
    assert_eq!(one(&rate, |story| story.unseen(kb).search(&["a#1"]).deliver("x", &[], 1)).len(), 1, "another ran");
    assert_eq!(one(&rate, |story| story.feedback(kb).unseen(kb).deliver("x", &[], 1)), Vec::<String>::new());
    let first = format!("mandatory_call_rate({kb}, at=first)");
    assert_eq!(one(&first, |story| story.unseen(kb).deliver("x", &[], 1)), Vec::<String>::new());
    let reminded = one(&first, |story| story.feedback(kb).unseen(kb).deliver("x", &[], 1));
    assert!(
        reminded.len() == 1 && reminded[0].contains("never executed"),
        "it came too late at any rate: {reminded:?}"
    );
    let attempt = format!("first_attempt_rate({kb})");
    assert_eq!(one(&attempt, |story| story.unseen(kb).deliver("x", &[], 1)), Vec::<String>::new());
    let told = one(&attempt, |story| story.feedback(kb).unseen(kb).deliver("x", &[], 1));
    assert!(told.len() == 1 && told[0].contains("needed a reminder"), "{told:?}");
}
