//! Expectations, as written in YAML, against traces.

use super::sample::{Story, plan, story, viewed};
use super::{Check, Patterns, TrialView, expectation};
use crate::plan::Plan;
use crate::trace::state_machine::Machine;
use crate::trace::{Account, ModelCalled, Moved, Reply, ToolOutcome, ToolResult, Trace, What};
use serde_json::{Value, json};

fn checks(plan: &Plan, trace: &Trace) -> Vec<Check> {
    let machine = Machine::of("asking", &["asking", "done"], &[("asking", "answer", "done")]);
    let departures = machine.departures(trace);
    viewed(plan, trace, |view| {
        let patterns = Patterns::of(&view.case.case);
        expectation::checks(&TrialView { departures: Some(&departures), ..view }, &patterns)
    })
}

/// Failed checks of a one-turn case that expects `expect`: `what | seen`.
fn failing(expect: &str, tell: impl Fn(Story) -> Story) -> Vec<String> {
    let plan = plan(&format!("[{{case: a, ask: q, expect: {expect}}}]"), "[]", 1);
    let checks = checks(&plan, &tell(story(&plan, 0).turn("q")).done());
    checks.into_iter().filter(|check| !check.passed).map(|check| format!("{} | {}", check.what, check.seen)).collect()
}

fn holds(expect: &str, tell: impl Fn(Story) -> Story) -> bool {
    failing(expect, tell).is_empty()
}

/// Makes calls `tool{json}` and answers without the response tool.
fn calling(calls: &[(&str, Value)]) -> impl Fn(Story) -> Story {
    move |mut story| {
        for (tool, arguments) in calls {
            story = story.call(tool, arguments.clone(), ToolOutcome::Ok(ToolResult::Responded));
        }
        story.deliver("x", &[], 1)
    }
}

#[test]
fn the_table_of_trajectories() {
    let kb = || ("kb", json!({"q": "a"}));
    let end = || ("end", json!({}));
    let outputs = [
        ("same", vec![kb(), end()], [true, true, true, true]),
        ("extra tool", vec![kb(), ("web", json!({})), end()], [false, false, false, true]),
        ("reordered", vec![end(), kb()], [false, true, true, true]),
        ("missing kb", vec![end()], [false, false, true, false]),
        ("duplicate kb", vec![kb(), kb(), end()], [false, false, false, true]),
        ("wrong arguments", vec![("kb", json!({"q": "b"})), end()], [false, false, false, false]),
        ("no calls", vec![], [false, false, true, false]),
    ];
    for (name, calls, expected) in outputs {
        for (key, wanted) in ["exact", "any_order", "subset", "superset"].into_iter().zip(expected) {
            let expect = format!("{{calls: [{{{key}: [{{tool: kb, arguments: {{q: {{equals: a}}}}}}, end]}}]}}");
            assert_eq!(holds(&expect, calling(&calls)), wanted, "{name}, {key}");
        }
    }
}

#[test]
fn a_general_pattern_does_not_take_the_call_that_a_strict_one_needs() {
    let general = "{tool: t, arguments: {a: {equals: 1}}}";
    let strict = "{tool: t, arguments: {a: {equals: 1}, b: {equals: 2}}}";
    let output = [("t", json!({"a": 1, "b": 2})), ("t", json!({"a": 1}))];
    for key in ["superset", "any_order", "subset"] {
        for (first, second) in [(general, strict), (strict, general)] {
            assert!(holds(&format!("{{calls: [{{{key}: [{first}, {second}]}}]}}"), calling(&output)), "{key}");
        }
    }
}

#[test]
fn expectations_that_name_no_call_are_not_met_by_silence() {
    for key in ["in_order", "superset", "before"] {
        assert!(!holds(&format!("{{calls: [{{{key}: []}}]}}"), calling(&[("kb", json!({}))])), "{key}");
    }
    assert!(
        holds("{calls: [{exact: []}]}", calling(&[]))
            && !holds("{calls: [{exact: []}]}", calling(&[("kb", json!({}))]))
    );
}

#[test]
fn order_and_number_of_calls() {
    let kb = |s: Story| s.search(&["d#1"]);
    let usual = |s: Story| kb(s).external("r1").answer("x", &[]);
    assert!(holds("{calls: [{in_order: [knowledge_base_search, generate_response]}]}", usual));
    assert!(holds("{calls: [{before: [knowledge_base_search, perplexity_search, generate_response]}]}", usual));
    assert!(holds(
        "{calls: [{exactly_once: perplexity_search}, {at_most: {times: 1, call: perplexity_search}}]}",
        usual
    ));
    assert!(!holds("{calls: [{before: [knowledge_base_search, index_keywords]}]}", usual), "both must happen");
    assert_eq!(
        failing("{calls: [{in_order: [perplexity_search, knowledge_base_search]}]}", usual),
        ["calls.in_order: perplexity_search, knowledge_base_search | no knowledge_base_search at its place; \
          calls were: knowledge_base_search (ok), perplexity_search (ok), generate_response (ok)"]
    );
    assert_eq!(
        failing("{calls: [{never: perplexity_search}]}", usual),
        ["calls.never: perplexity_search | it happened 1 times; \
          calls were: knowledge_base_search (ok), perplexity_search (ok), generate_response (ok)"]
    );
    assert_eq!(failing("{calls: [{exactly_once: kb}]}", |s| s.deliver("x", &[], 1)).len(), 1);
}

#[test]
fn an_earlier_turn_does_not_excuse_a_later_one() {
    let cases = "[{case: a, turns: [{ask: x}, {ask: y}], expect: {calls: [{before: [knowledge_base_search, generate_response]}]}}]";
    let plan = plan(cases, "[]", 1);
    let first = || story(&plan, 0).turn("x").search(&["d#1"]).answer("x", &[]).turn("y");
    let passed = |trace: Trace| checks(&plan, &trace).iter().all(|check| check.passed);
    assert!(passed(first().search(&["d#1"]).answer("y", &[]).done()));
    assert!(!passed(first().answer("y", &[]).done()));
}

#[test]
fn a_call_comes_before_another_if_its_run_ended_when_the_other_began() {
    let expect = |one: &str, other: &str| format!("{{calls: [{{before: [{one}, {other}]}}]}}");
    // Begin and duration of two runs, in seconds, in the order of the trace.
    let ran = |times: [(u64, u64); 2]| {
        move |story: Story| {
            let mut story = calling(&[("a", json!({})), ("b", json!({}))])(story);
            let mut times = times.into_iter();
            story.each(|what| {
                if let What::ToolCalled(call) = what {
                    let (began, took) = times.next().expect("two calls");
                    (call.began_us, call.took_us) = (Some(began * 1_000_000), took * 1_000_000);
                }
            });
            story
        }
    };
    for (times, first, second) in [
        ([(1, 4), (2, 1)], false, false),
        ([(1, 1), (1, 1)], false, false),
        ([(1, 1), (2, 1)], true, false),
        ([(3, 1), (1, 1)], false, true),
    ] {
        assert_eq!(holds(&expect("a", "b"), ran(times)), first, "{times:?}");
        assert_eq!(holds(&expect("b", "a"), ran(times)), second, "{times:?}");
    }
}

#[test]
fn arguments_by_value_by_pattern_and_by_schema() {
    let with = |condition: &str| format!("{{calls: [{{superset: [{{tool: t, arguments: {{a: {condition}}}}}]}}]}}");
    let call = |value: Value| {
        calling(&[("t", json!({"a": value}))])(story(&plan("[{case: a, ask: q}]", "[]", 1), 0).turn("q")).done()
    };
    let holds = |condition: &str, value: Value| {
        let plan = plan(&format!("[{{case: a, ask: q, expect: {}}}]", with(condition)), "[]", 1);
        checks(&plan, &call(value)).iter().all(|check| check.passed)
    };
    assert!(holds("{equals: 5}", json!(5.0)) && !holds("{equals: 5}", json!("5")));
    assert!(
        holds("{equals: {x: [1]}}", json!({"x": [1.0]})) && !holds("{equals: {x: [1]}}", json!({"x": [1], "y": 0}))
    );
    assert!(holds("{matches: '^heat'}", json!("heat pump")) && !holds("{matches: '^heat'}", json!(["heat"])));
    assert!(holds("{matches: heat}", json!(["heat"])) && holds("{matches: '\"to\":\"heat'}", json!({"to": "heat"})));
    assert!(!holds("{matches: ''}", json!(null)));
    assert!(
        holds("{schema: {type: integer, minimum: 3}}", json!(3))
            && !holds("{schema: {type: integer, minimum: 3}}", json!(2))
    );
    assert!(!holds("{equals: null}", json!(0)));
    assert!(!holds("{matches: '('}", json!("(")), "a pattern that does not compile never holds");
}

#[test]
fn outcomes_of_calls() {
    let recovered = |s: Story| s.failed_call("knowledge_base_search").search(&["d#1"]).answer("x", &[]);
    let once =
        |outcome: &str| format!("{{calls: [{{exactly_once: {{tool: knowledge_base_search, outcome: {outcome}}}}}]}}");
    for outcome in ["ok", "failed", "recovered"] {
        assert!(holds(&once(outcome), recovered), "{outcome}");
    }
    assert!(!holds(&once("recovered"), |s| s.search(&["d#1"]).failed_call("knowledge_base_search").answer("x", &[])));
    let together = |later: u32| {
        move |mut s: Story| {
            s.each(|what| {
                if let What::ModelCalled(ModelCalled { reply: Reply::Completion(said), .. }) = what {
                    said.calls = vec!["knowledge_base_search".into(); 2];
                }
            });
            s.failed_call("knowledge_base_search").search_of_completion(later).answer("x", &[])
        }
    };
    assert!(!holds(&once("recovered"), together(0)), "one completion asked for both");
    assert!(holds(&once("recovered"), together(1)));
}

#[test]
fn a_turn_must_answer_unless_its_error_is_expected() {
    let fail = |s: Story| s.fail("response_missing");
    assert_eq!(
        failing("{calls: [{never: kb}]}", fail),
        ["turn 1: an answer | it ended with the error response_missing: we are sorry"]
    );
    assert!(holds("{error: {kind: response_missing, contains: [SORRY]}}", fail));
    assert!(!holds("{error: {kind: timeout}}", fail));
    assert_eq!(
        failing("{error: {kind: response_missing}}", |s| s.deliver("x", &[], 1)),
        ["error: response_missing | it answered"]
    );
    assert_eq!(failing("{within: 1s}", |s| s.deliver("x", &[], 1_000_000)), ["within: 1s | turn 1: it took 1.00 s"]);
}

#[test]
fn answers_and_their_sources() {
    let tell = |s: Story| s.search(&["guide#2"]).answer("Open the VALVE\u{1b}[2J slowly", &[("internal", "guide#2")]);
    assert!(holds(
        "{answer: {contains: [the valve], not_contains: [quickly], matches: ['Open .* VALVE'], cites: [guide]}}",
        tell
    ));
    assert!(holds("{answer: {cites: ['guide#2']}, sources: {internal: true, external: false, at_least: 1}}", tell));
    assert_eq!(failing("{answer: {cites: [guid]}}", tell), ["answer.cites: guid | it cites: guide#2"]);
    assert_eq!(
        failing("{answer: {contains: [pump]}}", tell),
        ["answer.contains: pump | the answer says: Open the VALVE\u{fffd}[2J slowly"]
    );
    assert_eq!(failing("{sources: {external: true, at_least: 2}}", tell).len(), 2);
    assert_eq!(failing("{answer: {not_contains: [x]}}", |s| s.fail("timeout")).len(), 2, "no answer contains nothing");
}

#[test]
fn keywords_and_retries() {
    let tell = |s: Story| s.external("r1").index("r1", &["heat pump", "the answer"], 2).answer("x", &[]);
    assert!(holds("{keywords: {indexed: true, include: ['Heat  Pump']}}", tell));
    assert_eq!(
        failing("{keywords: {none_generic: true, merged: [heat pump]}}", tell),
        [
            "keywords.none_generic: true | generic keywords: the answer",
            "keywords.merged: heat pump | merged keywords were: none"
        ]
    );
    let quiet = |s: Story| s.answer("x", &[]);
    assert!(!holds("{keywords: {indexed: true}}", quiet) && holds("{keywords: {indexed: false}}", quiet));
    assert!(!holds("{keywords: {none_generic: true}}", quiet), "of no keywords none is generic");
    let retried =
        |s: Story| s.retried(Account::Model, 0, 1, false).retried(Account::Model, 0, 2, true).answer("x", &[]);
    assert!(holds(
        "{retries: [{account: model, at_least: 2, at_most: 2, recovered: true}, {account: tool, at_most: 0}]}",
        retried
    ));
    assert!(!holds("{retries: [{account: tool, recovered: true}]}", retried), "no retry recovered nothing");
}

#[test]
fn what_one_conversation_learned_is_found_by_a_later_one() {
    let cases = "
- case: a
  sequence:
    - conversation: {name: first, turns: [{ask: x, expect: {keywords: {found_by: later}}}]}
    - together: [{name: aside, turns: [{ask: z}]}, {name: later, turns: [{ask: y}]}]";
    let plan = plan(cases, "[]", 1);
    let tell = |origin| {
        let first = story(&plan, 0).conversation(0, "first").turn("x").answer("x", &[]);
        let aside = first.conversation(1, "aside").turn("z").answer("z", &[]);
        aside.conversation(2, "later").turn("y").search_with(&[], origin, &[]).answer("y", &[]).done()
    };
    assert!(checks(&plan, &tell(Some(0))).iter().all(|check| check.passed));
    for origin in [None, Some(1)] {
        let failed: Vec<_> = checks(&plan, &tell(origin)).into_iter().filter(|check| !check.passed).collect();
        assert_eq!(failed[0].what, "conversation first, turn 1: keywords.found_by: later");
    }
}

#[test]
fn a_move_that_no_machine_declares_fails_the_trial() {
    let moved = |to: &str| What::Moved(Moved { from: "asking".into(), on: "answer".into(), to: to.into() });
    assert!(holds("{within: 9s}", |s| s.push(moved("done")).answer("x", &[])));
    let failed = failing("{within: 9s}", |s| s.push(moved("lost")).answer("x", &[]));
    assert!(failed[0].starts_with("moves that the state machine declares | turn 1: "), "{failed:?}");
}

#[test]
fn a_call_of_which_nothing_shows_what_came_of_it_holds_or_fails_only_where_that_makes_no_difference() {
    let story =
        |story: Story| story.unseen("kb").unseen("kb").call("end", json!({}), ToolOutcome::Ok(ToolResult::Responded));
    for (expect, told) in [
        ("{never: kb}", "fails"),
        ("{never: web}", "holds"),
        ("{at_most: {call: kb, times: 2}}", "holds"),
        ("{exactly_once: kb}", "fails"),
        ("{superset: [end]}", "holds"),
        ("{superset: [web]}", "fails"),
        ("{superset: [kb]}", "open"),
        ("{superset: [{tool: kb, arguments: {q: {equals: b}}}]}", "fails"),
        ("{in_order: [kb, end]}", "open"),
        ("{in_order: [end, kb]}", "fails"),
        ("{before: [kb, end]}", "open"),
        ("{exact: [kb, kb, end]}", "open"),
        ("{exact: [kb, end]}", "fails"),
        ("{exactly_once: {tool: kb, outcome: failed}}", "open"),
        ("{never: {tool: kb, outcome: failed}}", "open"),
        ("{superset: [{tool: kb, result: {/n: {equals: 1}}}]}", "open"),
        ("{superset: [{tool: kb, outcome: failed, result: {/n: {equals: 1}}}]}", "fails"),
    ] {
        let plan = plan(&format!("[{{case: a, ask: q, expect: {{calls: [{expect}]}}}}]"), "[]", 1);
        let trace = story(super::sample::story(&plan, 0).turn("q")).deliver("x", &[], 1).done();
        let check = checks(&plan, &trace).into_iter().find(|check| check.what.contains("calls.")).expect("a check");
        assert_eq!(seen(&check), told, "{expect}: {}", check.seen);
    }
}

#[test]
fn a_condition_on_a_result_that_the_trace_does_not_show_is_open() {
    let unshown = || ToolOutcome::Ok(ToolResult::Other(ToolResult::UNSHOWN.into()));
    let null = || ToolOutcome::Ok(ToolResult::Other(Value::Null));
    let six = "tool: kb, result: {/a: {equals: 6}}";
    for (expect, outcome, told) in [
        (format!("{{never: {{{six}}}}}"), unshown(), "open"),
        (format!("{{at_most: {{call: {{{six}}}, times: 0}}}}"), unshown(), "open"),
        (format!("{{at_most: {{call: {{{six}}}, times: 1}}}}"), unshown(), "holds"),
        (format!("{{superset: [{{{six}}}]}}"), unshown(), "open"),
        (format!("{{never: {{{six}, outcome: failed}}}}"), unshown(), "holds"),
        ("{never: kb}".to_owned(), unshown(), "fails"),
        ("{exactly_once: kb}".to_owned(), unshown(), "holds"),
        (format!("{{never: {{{six}}}}}"), null(), "holds"),
    ] {
        let plan = plan(&format!("[{{case: a, ask: q, expect: {{calls: [{expect}]}}}}]"), "[]", 1);
        let trace = super::sample::story(&plan, 0).turn("q").call("kb", json!({}), outcome).deliver("x", &[], 1).done();
        let check = checks(&plan, &trace).into_iter().find(|check| check.what.contains("calls.")).expect("a check");
        assert_eq!(seen(&check), told, "{expect}: {}", check.seen);
    }
}

#[test]
fn a_call_whose_result_a_later_turn_shows_counts_once_over_the_case() {
    let expect = "{calls: [{exactly_once: {tool: kb, outcome: ok}}, {at_most: {call: kb, times: 1}}]}";
    let plan = plan(&format!("[{{case: a, turns: [{{ask: q}}, {{ask: r}}], expect: {expect}}}]"), "[]", 1);
    let first = super::sample::story(&plan, 0).turn("q").unseen("kb").deliver("x", &[], 1);
    let again = first.turn("r").call("kb", json!({"q": "a"}), ToolOutcome::Ok(ToolResult::Other(json!("done"))));
    let all = checks(&plan, &again.deliver("x", &[], 1).done());
    let failed: Vec<&String> = all.iter().filter(|check| !check.passed).map(|check| &check.seen).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn the_outcomes_of_up_to_four_calls_are_assumed() {
    let of = |number: usize| {
        let plan = plan("[{case: a, ask: q, expect: {calls: [{never: kb}]}}]", "[]", 1);
        let story = (0..number).fold(super::sample::story(&plan, 0).turn("q"), |story, _| story.unseen("kb"));
        let checks = checks(&plan, &story.deliver("x", &[], 1).done());
        seen(checks.iter().find(|check| check.what.contains("calls.")).expect("a check"))
    };
    assert_eq!([4, 5].map(of), ["fails", "open"]);
}

#[test]
fn arguments_that_are_no_object_satisfy_no_requirement_and_no_condition_of_a_prohibition() {
    for (arguments, expect, told) in [
        ("{\"n\": 150}", "{never: {tool: t, arguments: {n: {equals: 150}}}}", "fails"),
        ("{\"n\": 10}", "{never: {tool: t, arguments: {n: {equals: 150}}}}", "holds"),
        ("{\"n\": 150", "{never: {tool: t, arguments: {n: {equals: 150}}}}", "open"),
        ("{\"n\": 15", "{never: {tool: t, arguments: {n: {equals: 150}}}}", "open"),
        ("{\"n\": \"DROP\"; --", "{never: {tool: t, arguments: {n: {matches: '^DROP'}}}}", "open"),
        ("{'n': 150}", "{at_most: {times: 0, call: {tool: t, arguments: {n: {equals: 150}}}}}", "open"),
        ("{\"n\": 150", "{never: t}", "fails"),
        ("{\"n\": 150", "{superset: [{tool: t, arguments: {n: {equals: 150}}}]}", "fails"),
        ("{\"n\": 150}", "{superset: [{tool: t, arguments: {n: {equals: 150}}}]}", "holds"),
        (" ", "{never: {tool: t, arguments: {n: {equals: 150}}}}", "holds"),
    ] {
        assert_eq!(with_arguments(arguments, expect), told, "{arguments} {expect}");
    }
}

fn with_arguments(arguments: &str, expect: &str) -> &'static str {
    let plan = plan(&format!("[{{case: a, ask: q, expect: {{calls: [{expect}]}}}}]"), "[]", 1);
    let trace =
        calling(&[("t", json!(arguments))])(super::sample::story(&plan, 0).turn("q")).deliver("x", &[], 1).done();
    let check = checks(&plan, &trace).into_iter().find(|check| check.what.contains("calls.")).expect("a check");
    seen(&check)
}

#[test]
fn a_condition_on_the_digits_of_a_number_beyond_64_bits_is_undetermined_and_any_other_is_checked() {
    let big = "{\"n\": 123456789012345678901234567890}";
    for (condition, required, forbidden) in [
        ("equals: 123456789012345678901234567891", "open", "open"),
        ("equals: 123456789012345678901234567890", "open", "open"),
        ("equals: 1234", "fails", "holds"),
        ("equals: '123456789012345678901234567890'", "fails", "holds"),
        ("matches: '^123456789012345678901234567890$'", "open", "open"),
        ("schema: {const: 123456789012345678901234567891}", "open", "open"),
        ("schema: {type: number}", "holds", "fails"),
        ("schema: {type: string}", "fails", "holds"),
    ] {
        let pattern = format!("{{tool: t, arguments: {{n: {{{condition}}}}}}}");
        let told = [format!("{{superset: [{pattern}]}}"), format!("{{never: {pattern}}}")]
            .map(|expect| with_arguments(big, &expect));
        assert_eq!(told, [required, forbidden], "{condition}");
    }
    let near = "{superset: [{tool: t, arguments: {n: {equals: 18446744073709551614}}}]}";
    assert_eq!(with_arguments("{\"n\": 18446744073709551615}", near), "fails");
}

fn seen(check: &Check) -> &'static str {
    match (check.passed, check.unknown) {
        (true, None) => "holds",
        (false, None) => "fails",
        (false, Some(super::Unknown::Traffic)) => "open",
        other => panic!("{}: {other:?}", check.what),
    }
}

#[test]
fn a_refusal_that_states_a_number_from_nowhere_is_none() {
    let refuses =
        |text: &'static str| failing("{answer: {refusal: true}}", move |s: Story| s.search(&[]).answer(text, &[]));
    for text in [
        "I could not find it.",
        "I could not find it. We reply within 24 hours, from 9 am to 5 pm.",
        "I could not find model KX-300, nor 2 of the others.",
    ] {
        assert_eq!(refuses(text), [""; 0], "{text}");
    }
    assert!(refuses("It is open on Sundays.")[0].contains("it does not say that it cannot answer"));
    let answers = |text: &str| {
        holds("{answer: {refusal: false}}", |s| s.search(&["doc#1"]).answer(text, &[("internal", "doc#1")]))
    };
    assert!(!answers("I do not know.") && answers("It is open on Sundays."), "whatever it lists");
    for text in [
        "I am not sure, but it is usually 80 euros.",
        "I don't know. Typically it is 5 %.",
        "Das weiß ich nicht, üblich sind 5 kg.",
    ] {
        let failed = refuses(text);
        assert!(failed.len() == 1 && failed[0].contains("neither found nor asked"), "{text}: {failed:?}");
    }
}
