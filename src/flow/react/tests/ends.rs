//! How turns end when something is missing: with the best result so far and a notice, or with an error.

use super::*;

/// Searches without results, each by its required approach, with their analyses.
fn in_vain() -> Vec<Says> {
    let approaches = ["direct", "broader", "synonyms", "related"];
    let one = |approach: &&str| [search("zeppelin", approach), analysis("Other words.")];
    let mut says: Vec<Says> = approaches.iter().flat_map(one).collect();
    // A repeated query is refused, so each search has a different word.
    for (at, word) in [(2, "airship"), (4, "balloon"), (6, "dirigible")] {
        says[at] = search(word, approaches[at / 2]);
    }
    says
}

#[test]
fn after_three_retries_in_vain_the_model_answers_from_its_own_knowledge_with_a_disclaimer() {
    let mut model = in_vain();
    model.push(Says::Text("A zeppelin is an airship."));
    let played = play(model, &["What is a zeppelin?"]);
    let (text, end) = played.end();
    assert_eq!((end, played.took("retries_used_up"), played.took("nothing_found")), ("answered", 1, 4));
    assert!(text.contains("own knowledge") && played.sources().is_empty(), "{text}");
}

#[test]
fn five_steps_without_the_goal_end_in_the_best_result_and_say_so() {
    let queries = ["warranty", "months", "warranty part", "warranty lasts", "months lasts"];
    let step = |query: &&str| [search(query, "direct"), grades(&[1, 2, 3], false)];
    let mut model: Vec<Says> = queries.iter().flat_map(step).collect();
    model.push(Says::Text("24 months [1]."));
    let played = play(model, &["What is everything about the warranty?"]);
    let (text, end) = played.end();
    assert_eq!((end, played.took("steps_used_up"), played.took("results_found")), ("answered", 1, 5));
    assert!(text.starts_with("24 months [1].") && text.contains("after 5 steps"), "{text}");
}

#[test]
fn documents_that_cannot_be_searched_are_named_and_work_again_in_the_next_turn() {
    let model = vec![
        search("warranty", "direct"),
        analysis("Try again."),
        search("warranty", "direct"),
        analysis("It is down."),
        Says::Text("Usually two years."),
        search("warranty", "direct"),
        grades(&[1, 2], true),
        Says::Text("24 months [1]."),
    ];
    let played = Play { failures: 2, ..Play::default() }.of(model, &["How long?", "And now?"]);
    let TurnOutcome::Answered(first) = played.outcomes()[0] else { panic!("no answer") };
    assert!(first.text.contains("search of the documents is unavailable"), "{}", first.text);
    assert!(first.text.contains("own knowledge"), "{}", first.text);
    assert_eq!(played.end(), ("24 months [1].", "answered"), "nothing is missing any more");
    assert!(played.log().iter().any(|one| matches!(one, Logged::Recovered { .. })));
    let degraded = played.events.iter().filter(|event| matches!(event.what, What::Degraded { .. }));
    assert!(degraded.count() > 0);
}

#[test]
fn a_model_that_times_out_is_asked_again_with_a_shorter_context_and_the_user_is_told() {
    let model = vec![
        search("warranty", "direct"),
        grades(&[1, 2], true),
        Says::Text("24 months [1]."),
        Says::TimesOut,
        search("warranty", "direct"),
        grades(&[1, 2], true),
        Says::Text("24 months [1]."),
    ];
    let played = play(model, &["How long is the warranty?", "Again, please?"]);
    let (text, end) = played.end();
    assert_eq!((end, played.took("shorter_context")), ("answered", 1));
    assert!(text.contains("earlier parts of the conversation were left out"), "{text}");
    assert!(played.requests[4].messages.len() < played.requests[3].messages.len());
    assert!(!played.shown(4).contains("How long is the warranty?"));
}

#[test]
fn what_was_found_is_given_when_the_answer_does_not_come() {
    let found = [search("warranty", "direct"), grades(&[1, 2], true)];
    let cut_off = vec![Says::Ends("24 mon", Finish::Length)];
    for broken in [vec![Says::TimesOut, Says::TimesOut], vec![Says::Text(" ")], vec![Says::Late], cut_off] {
        let played = play([found.to_vec(), broken].concat(), &["How long?"]);
        let (text, end) = played.end();
        assert_eq!((end, played.took("partial_result")), ("answered", 1), "{text}");
        assert!(text.starts_with("Passages tell of the warranty."), "{text}");
        assert!(text.contains("Note: "), "{text}");
        assert_eq!(played.sources().len(), 2);
    }
}

#[test]
fn a_turn_that_found_nothing_ends_in_an_error_that_says_why() {
    for (model, kind) in [(vec![Says::TimesOut, Says::TimesOut], "model_unavailable"), (vec![Says::Late], "timeout")] {
        let played = play(model, &["How long?"]);
        assert_eq!(played.end().1, kind);
    }
    let played = play([in_vain(), vec![Says::Text("")]].concat(), &["What is a zeppelin?"]);
    assert_eq!(played.end().1, "no_answer");
    let played = play([in_vain(), vec![Says::Ends("A zep", Finish::Length)]].concat(), &["What is a zeppelin?"]);
    assert_eq!(played.end().1, "no_answer");
}

#[test]
fn no_request_is_sent_that_could_pass_the_budget_and_the_user_is_warned_before_the_first() {
    let limits = Limits { model_calls: 30, tokens: Some(6_000), warn_tokens: Some(1_000), ..Limits::default() };
    let model =
        vec![search("warranty", "direct"), grades(&[1, 2], false), search("months", "direct"), grades(&[1], true)];
    let played = Play { limits, ..Play::default() }.of(model, &["How long?"]);
    let used = played.log().into_iter().filter_map(|one| match one {
        Logged::Used { session_input, session_output, .. } => Some(session_input + session_output),
        _ => None,
    });
    let used: Vec<u64> = used.collect();
    assert!(
        used.windows(2).all(|pair| pair[1] > pair[0]) && used.last().is_some_and(|last| *last <= 6_000),
        "{used:?}"
    );
    assert!(played.end().0.contains("more than the 1000 that you set"), "{}", played.end().0);
    assert!(played.end().0.contains("budget of this session is used up"), "{}", played.end().0);
    let first = played.log().into_iter().find(|one| matches!(one, Logged::Estimated { .. } | Logged::Used { .. }));
    assert!(matches!(first, Some(Logged::Estimated { warned: true, .. })));
    let limits = Limits { model_calls: 30, tokens: Some(100), ..Limits::default() };
    let played = Play { limits, ..Play::default() }.of(vec![], &["How long?"]);
    assert_eq!((played.end().1, played.requests.len()), ("budget_used_up", 0));
}

#[test]
fn a_model_that_calls_nothing_twice_is_made_to_call_by_another_approach() {
    let model = vec![
        Says::Text("24 months, I think."),
        analysis("Search first."),
        Says::Text("24 months, I am sure."),
        analysis("Search."),
        search("warranty", "broader"),
        grades(&[1, 2], true),
        Says::Text("24 months [1]."),
    ];
    let played = play(model, &["How long?"]);
    assert_eq!((played.end().1, played.took("retry"), played.took("change_approach")), ("answered", 1, 1));
    assert_eq!(played.requests[4].tool_choice, crate::provider::chat::ToolChoice::Named(SEARCH.into()));
}
