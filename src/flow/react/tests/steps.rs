//! Steps of a turn: the log before and after a search, and the messages of each request.

use super::*;

#[test]
fn the_reasoning_is_logged_before_the_search_the_observation_after_it_and_the_answer_cites_what_was_graded_relevant() {
    let model = vec![search("warranty months", "direct"), grades(&[1, 3], true), Says::Text("Sure! 24 months [1].")];
    let played = play(model, &["How long is the warranty?"]);
    assert_eq!(played.end(), ("24 months [1].", "answered"), "no filler, no notice");
    let ids = played.sources();
    assert_eq!(ids.len(), 2);
    let order: Vec<&str> = played
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Logged(Logged::Thought { .. }) => Some("thought"),
            What::ToolCalled(called) if called.tool == SEARCH => Some("search"),
            What::Logged(Logged::Observation { .. }) => Some("observation"),
            What::Logged(Logged::Graded { relevant, irrelevant, .. }) => {
                assert_eq!((relevant.len(), irrelevant.len()), (2, 1));
                assert!(relevant.iter().all(|id| ids.contains(&id.as_str())));
                Some("grades")
            }
            What::TurnEnded(_) => Some("end"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["thought", "search", "observation", "grades", "end"]);
    assert_eq!(played.requests.len(), 3);
}

#[test]
fn the_answer_is_asked_for_with_the_relevant_passages_alone_and_no_tool_may_be_called() {
    let model = vec![search("warranty months", "direct"), grades(&[2, 3], true), Says::Text("24 months [1] [9].")];
    let played = play(model, &["How long is the warranty?"]);
    let last = played.requests.last().expect("requests");
    assert_eq!(last.tool_choice, crate::provider::chat::ToolChoice::None);
    let passages = last.messages.iter().find(|message| message.role == Role::Tool).expect("the passages");
    let read: Value = serde_json::from_str(&passages.content).expect("is JSON");
    assert_eq!(read["chunks"].as_array().map(Vec::len), Some(2));
    assert_eq!(played.end().0, "24 months [1].", "a number that no passage has is taken out");
}

#[test]
fn every_cycle_shows_where_it_stands_and_finished_steps_as_their_summaries_alone() {
    let model = vec![
        search("warranty months", "direct"),
        grades(&[1, 2], false),
        search("frost heater", "direct"),
        grades(&[1], true),
        Says::Text("24 months [1]; a frost guard [3]."),
    ];
    let played = play(model, &["How long is the warranty, and what does the frost guard do?"]);
    assert_eq!((played.end().1, played.took("incomplete")), ("answered", 1));
    let second = played.shown(2);
    assert!(second.contains("Step 2 of 5") && second.contains("Passages [1, 2] tell of the warranty."), "{second}");
    assert!(!second.contains("part 1"), "the passages themselves are gone: {second}");
    let shown: Vec<_> = played.log().into_iter().filter(|one| matches!(one, Logged::Grounding { .. })).collect();
    assert_eq!(shown.len(), 2);
}

#[test]
fn a_lesson_reaches_the_retry_and_later_turns_and_the_query_is_rewritten_by_another_approach() {
    let again = [search("warranty", "direct"), grades(&[1, 2], true), Says::Text("Yes [1].")];
    let model = whole().into_iter().chain(again).collect();
    let played = play(model, &["How long is it?", "Is there a warranty?"]);
    assert_eq!((played.end().1, played.took("irrelevant"), played.took("change_approach")), ("answered", 1, 1));
    for request in [3, 4, 5, 6, 7] {
        assert!(played.shown(request).contains("Leave the frost out."), "request {request}");
    }
    let tokens = played.log().into_iter().filter(|one| matches!(one, Logged::Status { tokens: Some(_), .. }));
    assert_eq!(tokens.count(), 1, "the retry says what it is estimated to take");
}

#[test]
fn a_call_with_wrong_parameters_gets_an_error_that_says_what_to_do_and_can_be_made_again() {
    let wrong = Says::Calls(vec![(SEARCH, json!({"query": 7}))]);
    let model = vec![
        wrong,
        analysis("Send the reasoning too."),
        search("warranty months", "direct"),
        grades(&[1, 2], true),
        Says::Text("24 months [1]."),
    ];
    let played = play(model, &["How long?"]);
    assert_eq!((played.end().1, played.took("call_refused"), played.took("retry")), ("answered", 1, 1));
    assert!(played.shown(1).contains("reasoning (string, required)"), "{}", played.shown(1));
}

#[test]
fn without_grades_the_words_decide_and_a_second_call_of_one_completion_does_not_run() {
    let twice = Says::Calls(vec![
        (SEARCH, json!({"reasoning": "So.", "query": "warranty months", "approach": "direct"})),
        (SEARCH, json!({"reasoning": "So.", "query": "frost", "approach": "direct"})),
    ]);
    let model = vec![twice, Says::Text("They look fine."), Says::Text("24 months [1].")];
    let played = play(model, &["How long?"]);
    assert_eq!(played.end().1, "answered");
    let by: Vec<_> = played
        .log()
        .into_iter()
        .filter_map(|one| if let Logged::Graded { by, .. } = one { Some(by.as_str()) } else { None })
        .collect();
    assert_eq!(by, ["words"]);
    let searched = played.events.iter().filter(|event| {
        matches!(&event.what, What::ToolCalled(called) if matches!(called.outcome, crate::trace::ToolOutcome::Ok(_)))
    });
    assert_eq!(searched.count(), 1);
}
