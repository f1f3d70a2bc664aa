//! Metrics of trajectories on scripted traces: each holds, and fails by exactly the fact it checks.

use super::Outcome;
use super::sample::{self, Story};
use crate::trace::{Attempt, Logged, ModelCalled, Moved, Reply, What};
use serde_json::json;

fn observe(metric: &str, tell: impl Fn(Story) -> Story) -> Vec<String> {
    let cases = "[{case: a, turns: [{ask: q}, {ask: r}], expect: {answer: {matches: [so]}}}]";
    let words = sample::observe(metric, cases, tell).into_iter().map(|unit| match unit.outcome {
        Outcome::Success if unit.note.is_empty() => format!("{}: yes", unit.unit),
        Outcome::Failure if unit.note.is_empty() => format!("{}: no", unit.unit),
        _ => format!("{}: {}", unit.unit, unit.note),
    });
    words.collect()
}

fn log(story: Story, entry: Logged) -> Story {
    story.push(What::Logged(entry))
}

fn thought(story: Story, step: u32, approach: &str) -> Story {
    log(story, Logged::Thought { step, text: "Because.".into(), approach: approach.into() })
}

fn failure(story: Story, step: u32, kind: &str, approach: &str) -> Story {
    log(story, Logged::Failure { step, kind: kind.into(), approach: approach.into(), context: json!({}) })
}

fn reflection(story: Story, shown: &str) -> Story {
    let (trigger, text, shown) = ("irrelevant".into(), "Other words.".into(), shown.into());
    log(story, Logged::Reflection { step: 1, trigger, text, shown })
}

fn graded(story: Story, relevant: &[&str]) -> Story {
    let relevant = relevant.iter().map(ToString::to_string).collect();
    log(story, Logged::Graded { step: 1, relevant, irrelevant: vec!["b#1".into()], by: "model".into() })
}

fn notice(story: Story, about: &str, text: &str) -> Story {
    log(story, Logged::Notice { about: about.into(), text: text.into() })
}

fn moved(story: Story, from: &str, on: &str, to: &str) -> Story {
    story.push(What::Moved(Moved { from: from.into(), on: on.into(), to: to.into() }))
}

fn stored(story: Story, state: &str) -> Story {
    log(story, Logged::Persisted { state: state.into() })
}

/// A completion that was shown these messages.
fn completion(story: Story, shown: &[&str]) -> Story {
    story.push(What::ModelCalled(ModelCalled {
        service: None,
        call: 7,
        state: "thinking".into(),
        took_us: 1,
        first_token_us: None,
        shown: shown.iter().map(ToString::to_string).collect(),
        tool_choice: "auto".into(),
        attempts: Vec::new(),
        reply: Reply::Failure { kind: "timeout".into(), message: String::new() },
    }))
}

#[test]
fn only_steps_that_ran_a_call_count_by_the_log_and_by_the_searches_and_without_a_log_there_is_no_unit() {
    let searches = |s: Story| (0..3).fold(thought(s.turn("q"), 1, "direct"), Story::search_of_completion);
    assert_eq!(observe("step_limit(most=2)", searches), ["turn 1: 3 steps"], "whatever the log calls them");
    assert_eq!(observe("step_limit(most=3)", searches), ["turn 1: yes"]);
    let refused =
        |s: Story| thought(searches(s), 4, "direct").rejected("knowledge_base_search").search_of_completion(3);
    assert_eq!(observe("step_limit(most=4)", refused), ["turn 1: yes"]);
    assert_eq!(observe("step_limit(most=3)", refused), ["turn 1: 4 steps"]);
    let only_logged =
        |useful: u32| move |s: Story| log(thought(s.turn("q"), 6, "direct"), Logged::Efficiency { useful, actual: 6 });
    assert_eq!(observe("step_limit", only_logged(0)), ["turn 1: yes"], "no call ran");
    let wrong = "turn 1: 1 of 6 steps are logged as useful, by the grades 0";
    assert_eq!(observe("step_limit", only_logged(1)), [wrong]);
    let by_the_log = |s: Story| (1..=6).fold(s.turn("q"), |s, step| thought(s, step, "direct").search(&["a#1"]));
    assert_eq!(observe("step_limit", by_the_log), ["turn 1: 6 steps"], "several steps of one completion");
    assert!(observe("step_limit", |s| s.turn("q").search(&["a#1"])).is_empty());
}

#[test]
fn a_search_needs_a_thought_of_its_own_before_it() {
    let told = |s: Story| thought(s.turn("q"), 1, "direct").search(&["a#1"]).rejected("knowledge_base_search");
    assert_eq!(observe("reasoned_calls", told), ["turn 1, search 1: yes"], "a call that was refused ran nothing");
    let twice = |s: Story| told(s).search(&["a#1"]);
    assert_eq!(observe("reasoned_calls", twice)[1], "turn 1, search 2: no thought was logged before it");
}

#[test]
fn the_second_failure_of_a_kind_must_change_the_approach_of_the_next_step() {
    let twice = |next: &'static str| {
        move |s: Story| {
            let s = failure(thought(s.turn("q"), 1, "direct"), 1, "call_refused", "direct");
            let s = failure(thought(s, 2, "direct"), 2, "call_refused", "direct");
            thought(s, 3, next)
        }
    };
    assert_eq!(observe("approach_changes", twice("broader")), ["turn 1, step 2: yes"]);
    assert_eq!(
        observe("approach_changes", twice("direct")),
        ["turn 1, step 2: call_refused again, and again by direct"]
    );
    let ends = |s: Story| failure(failure(s.turn("q"), 1, "irrelevant", "direct"), 2, "irrelevant", "broader");
    assert!(observe("approach_changes", ends).is_empty(), "no step comes after it");
    let model = |s: Story| {
        let s = failure(failure(s.turn("q"), 1, "model_unavailable", "direct"), 2, "model_unavailable", "direct");
        thought(s, 3, "direct")
    };
    assert!(observe("approach_changes", model).is_empty(), "the model itself failed, and no approach");
}

#[test]
fn a_lesson_must_be_shown_to_each_later_completion_of_its_turn() {
    let told = |shown: &'static [&'static str]| {
        move |s: Story| completion(completion(reflection(s.turn("q"), "system:l"), &["system:l"]), shown)
    };
    assert_eq!(observe("lessons_shown", told(&["user:q", "system:l"])), ["turn 1, reflection on step 1: yes"]);
    assert_eq!(
        observe("lessons_shown", told(&["user:q"])),
        ["turn 1, reflection on step 1: irrelevant: completion 7 was not shown it"]
    );
    assert!(observe("lessons_shown", |s| reflection(s.turn("q"), "system:l")).is_empty());
}

#[test]
fn a_failure_is_logged_with_its_state_and_with_every_message_that_the_model_was_shown() {
    let logged = |context: serde_json::Value| {
        move |s: Story| {
            let (step, kind, approach, context) = (1, "irrelevant".into(), "direct".into(), context.clone());
            log(completion(s.turn("q"), &["a", "b", "c"]), Logged::Failure { step, kind, approach, context })
        }
    };
    let whole = json!({"state": "thinking", "shown": ["a", "b", "c", "d"]});
    assert_eq!(observe("failure_contexts", logged(whole)), ["turn 1, irrelevant in step 1: yes"]);
    let part = json!({"state": "thinking", "shown": ["b"]});
    assert_eq!(
        observe("failure_contexts", logged(part)),
        ["turn 1, irrelevant in step 1: 2 of 3 messages are not in the log"]
    );
    assert!(observe("failure_contexts", logged(json!({"shown": ["a", "b"]})))[0].contains("the state is not"));
}

#[test]
fn a_compaction_must_save_a_fifth_and_what_the_user_decided_and_what_was_learned_must_still_be_shown() {
    let compacted = |after: u64, shown: &'static [&'static str]| {
        move |s: Story| {
            let (kind, text) = ("decision".into(), "We decided.".into());
            let s = log(s.turn("q"), Logged::Noted { kind, text, shown: "user:d".into() });
            let s = reflection(s, "system:l").deliver("so", &[], 1).turn("r");
            let s = log(s, Logged::Compacted { before: 1_000, after, done: true, keeps: Vec::new() });
            completion(s, shown)
        }
    };
    assert_eq!(observe("compaction_savings", compacted(800, &[])), ["turn 2, compaction 1: yes"]);
    assert_eq!(
        observe("compaction_savings", compacted(801, &[])),
        ["turn 2, compaction 1: 1000 tokens before, 801 after"]
    );
    let all = observe("compaction_keeps", compacted(800, &["system:l", "user:d"]));
    assert_eq!(all, ["turn 2, compaction 1: yes"]);
    let lost = observe("compaction_keeps", compacted(800, &["system:l"]));
    assert_eq!(lost, ["turn 2, compaction 1: 1 of 2 decisions, preferences and lessons were not shown"]);
    let refused =
        |s: Story| log(s.turn("q"), Logged::Compacted { before: 10, after: 9, done: false, keeps: Vec::new() });
    assert!(observe("compaction_savings", refused).is_empty() && observe("compaction_keeps", refused).is_empty());
}

#[test]
fn a_citation_is_of_a_source_that_was_graded_relevant_in_its_turn() {
    let cites = |text: &'static str, source: &'static str| {
        move |s: Story| graded(s.turn("q"), &["a#1"]).deliver(text, &[("internal", source)], 1)
    };
    assert_eq!(observe("irrelevant_citation_rate", cites("so [1]", "a#1")), ["turn 1, a#1: no"]);
    assert_eq!(
        observe("irrelevant_citation_rate", cites("so", "b#1")),
        ["turn 1, b#1: cited, and not graded relevant"]
    );
    assert_eq!(
        observe("irrelevant_citation_rate", cites("so [1] [2]", "a#1"))[1],
        "turn 1, [2]: matches none of 1 sources"
    );
    let later = |s: Story| {
        let s = graded(s.turn("q"), &["a#1"]).deliver("so", &[], 1).turn("r");
        graded(s, &["c#1"]).deliver("so", &[("internal", "a#1")], 1)
    };
    assert_eq!(observe("irrelevant_citation_rate", later).len(), 1, "grades are of their own turn");
    assert!(observe("irrelevant_citation_rate", |s| s.turn("q").answer("so", &[("internal", "b#1")])).is_empty());
}

#[test]
fn whatever_a_turn_goes_on_without_its_user_is_told_in_the_answer() {
    let told = |text: &'static str| {
        move |s: Story| {
            let s = moved(s.turn("q"), "reflecting", "retries_used_up", "answering");
            notice(s, "stopped", "It stopped.").deliver(text, &[("internal", "a#1")], 1)
        }
    };
    assert_eq!(observe("degradation_notices", told("so. It stopped.")), ["turn 1, `stopped`: yes"]);
    let untold = "turn 1, `stopped`: the user was not informed of it";
    assert_eq!(observe("degradation_notices", told("so.")), [untold], "a log is no notice");
    let down = |s: Story| {
        let s = thought(s.turn("q"), 1, "direct").failed_call("knowledge_base_search");
        s.deliver("so", &[], 1)
    };
    let seen = observe("degradation_notices", down);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[0].starts_with("turn 1, `own_knowledge`") && seen[1].starts_with("turn 1, `search`"), "{seen:?}");
    let back = |s: Story| {
        let s = thought(s.turn("q"), 1, "direct").failed_call("knowledge_base_search").search(&["a#1"]);
        s.deliver("so", &[("internal", "a#1")], 1)
    };
    assert!(observe("degradation_notices", back).is_empty(), "it works again, and nothing is missing");
    let warns = |most: u64| {
        observe("degradation_notices", move |s| {
            let s =
                log(s.turn("q"), Logged::Estimated { most, expected: None, warn: Some(8), warned: false, limit: 10 });
            log(s, Logged::Compacted { before: 10, after: 9, done: false, keeps: Vec::new() }).fail("budget_used_up")
        })
    };
    assert_eq!([8, 9].map(|most| warns(most).len()), [1, 2]);
}

#[test]
fn a_notice_about_a_shorter_context_names_the_true_cause() {
    let told = |kind: &'static str, status: Option<u16>, text: &'static str| {
        let seen = observe("degradation_notices", move |s| {
            let mut s = completion(s.turn_begins("q"), &[]);
            s.each(|what| {
                if let What::ModelCalled(called) = what {
                    called.reply = Reply::Failure { kind: kind.into(), message: String::new() };
                    let (service, cause, took_us, wait_us) = (None, Some(kind.to_owned()), 1, None);
                    called.attempts = vec![Attempt {
                        service,
                        status,
                        cause,
                        took_us,
                        wait_us,
                        declared_fault: false,
                        held: None,
                        vectors: None,
                    }];
                }
            });
            let s = moved(notice(s, "context", text), "thinking", "shorter_context", "thinking");
            // A later failure is another one.
            completion(s, &[]).deliver(text, &[("internal", "a#1")], 1)
        });
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].ends_with(": yes")
    };
    assert!(told("server_error", Some(500), "The model failed (server_error, HTTP 500), so turns were left out."));
    assert!(told("server_error", Some(500), "The model failed (server error), so turns were left out."));
    assert!(told("timeout", None, "The model did not respond in time, so turns were left out."));
    assert!(told("connection", None, "The model could not be reached, so turns were left out."));
    for false_cause in [
        "The model did not respond in time, so turns were left out.",
        "The request timed out (HTTP 500), so turns were left out.",
        "The model was too slow, so turns were left out.",
        "Something went wrong, so turns were left out.",
        "The model failed (HTTP 429), so turns were left out.",
    ] {
        assert!(!told("server_error", Some(500), false_cause), "{false_cause}");
    }
    assert!(!told("timeout", None, "The model failed, so turns were left out."));
    assert!(!told("connection", None, "The model did not respond in time, so turns were left out."));
}

#[test]
fn the_tokens_of_a_session_stay_within_its_limit_and_the_log_says_what_the_model_reported() {
    let used = |input: u64, session: u64| {
        move |s: Story| {
            let s =
                log(s.turn("q"), Logged::Estimated { most: 9, expected: None, warn: None, warned: false, limit: 100 });
            // The first completion of a turn reports 10 and 2.
            log(s, Logged::Used { input, output: 2, session_input: session, session_output: 2 })
        }
    };
    assert!(observe("session_budget", |s| s.turn("q")).is_empty());
    assert_eq!(observe("session_budget", used(10, 98)), ["turn 1, completion 0: yes"]);
    assert_eq!(observe("session_budget", used(10, 99)), ["turn 1, completion 0: 101 tokens of 100"]);
    assert!(observe("session_budget", used(9, 20))[0].contains("others were reported"));
    let silent = |s: Story| {
        let mut s = used(10, 98)(s);
        s.each(|what| {
            if let What::ModelCalled(ModelCalled { reply: Reply::Completion(completion), .. }) = what {
                (completion.input_tokens, completion.output_tokens) = (None, None);
            }
        });
        s
    };
    assert!(observe("session_budget", silent).is_empty(), "estimates measure nothing");
}

#[test]
fn every_change_is_stored_before_anything_else_is_done_and_a_restart_goes_on_there() {
    let turn = |s: Story| {
        let s = stored(
            moved(completion(stored(s.turn_begins("q"), "thinking"), &[]), "thinking", "found", "observing"),
            "observing",
        );
        let s = stored(moved(completion(s, &[]), "observing", "met", "answering"), "answering");
        stored(s.deliver("so", &[], 1), "ended")
    };
    assert_eq!(observe("state_persistence", turn).iter().filter(|unit| unit.ends_with(": yes")).count(), 4);
    let lost =
        |s: Story| completion(moved(stored(s.turn_begins("q"), "thinking"), "thinking", "found", "observing"), &[]);
    assert_eq!(observe("state_persistence", lost)[1], "turn 1, thinking to observing: was not stored");
    let other =
        |s: Story| stored(moved(stored(s.turn_begins("q"), "thinking"), "thinking", "found", "observing"), "thinking");
    assert_eq!(observe("state_persistence", other)[1], "turn 1, thinking to observing: `thinking` was stored");
    let restart = |state: &'static str| {
        move |s: Story| log(stored(s.turn_begins("q"), "thinking"), Logged::Restored { state: Some(state.into()) })
    };
    assert_eq!(observe("state_persistence", restart("thinking"))[1], "turn 1, the restart: yes");
    assert!(observe("state_persistence", restart("answering"))[1].contains("stored was thinking"));
    let broken = |s: Story| notice(moved(s.turn_begins("q"), "thinking", "found", "observing"), "session", "Not kept.");
    assert!(observe("state_persistence", broken).is_empty(), "the user was told that nothing is stored");
}

/// Entries of a step before its search, and after it.
fn step(story: Story, missing: &str) -> Story {
    let skip = |story: Story, kind: &str, entry: Logged| if kind == missing { story } else { log(story, entry) };
    let story = skip(story, "grounding", Logged::Grounding { step: 1, shown: "system:1".into() });
    let story = if missing == "thought" { story } else { thought(story, 1, "direct") };
    let story = story.search(&["a#1", "b#1"]);
    let observation = Logged::Observation { step: 1, text: "So.".into(), goal_met: true };
    let story = skip(story, "observation", observation);
    let story = graded(story, if missing == "grade of each passage" { &[] } else { &["a#1"] });
    skip(story, "summary", Logged::Summary { step: 1, text: "So.".into() })
}

#[test]
fn the_log_of_a_step_has_its_thought_observation_grades_and_summary() {
    let of = |missing: &str| {
        let tell =
            |s: Story| completion(step(s.turn_begins("q"), missing), &["system:0"]).answer("so", &[]).turn_begins("r");
        observe("step_log", tell)
    };
    assert_eq!(of("nothing"), ["turn 1: yes"]);
    for kind in ["grounding", "thought", "observation", "grade of each passage", "summary"] {
        assert_eq!(of(kind), [format!("turn 1: search 1 has no {kind} in the log")]);
    }
    let ended = |s: Story| step(s.turn_begins("q"), "summary").fail("budget_used_up");
    assert!(observe("step_log", ended).is_empty(), "a turn that ended has no log to wait for");
}
