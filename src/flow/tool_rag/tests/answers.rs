//! Conversations without mistakes: knowledge base alone, both sources, several turns, several conversations.

use super::*;
use crate::flow::digest;

#[test]
fn knowledge_that_suffices_is_answered_from_it_alone() {
    let played = play(vec![search("battery warranty"), responds(inside())]).turns(&["How long is the warranty?"]);
    assert_story!(played);
    assert_eq!(played.requests[0].messages.len(), 2);
    assert!(played.retries().is_empty());
}

#[test]
fn an_external_answer_is_indexed_before_the_response() {
    let model = vec![search("battery tariff"), outside("tariff 2026"), keywords(&GOOD_KEYWORDS), responds(both())];
    let played = play(model).turns(&["What about warranty and tariff?"]);
    assert_story!(played);
    let ToolOutcome::Ok(ToolResult::Indexed(done)) = &played.tools()[2].outcome else { panic!("{}", played.story()) };
    assert_eq!(done.read_back, GOOD_KEYWORDS);
    assert_eq!(done.result, "result-1");
}

#[test]
fn nothing_found_is_an_answer_too() {
    let played = play(vec![search("zeppelin"), responds(empty_handed())]).turns(&["What is a zeppelin?"]);
    assert_eq!(played.ends(), ["answered"]);
    assert!(played.story().contains("-knowledge_empty->"), "{}", played.story());
}

#[test]
fn later_turns_are_shown_the_words_and_the_answers_of_earlier_ones() {
    let model = vec![search("warranty"), responds(inside()), search("charge"), responds(inside())];
    let played = play(model).turns(&["How long is the warranty?", "And charging?"]);
    let texts: Vec<_> = played.requests[2].messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts[1..], ["How long is the warranty?", "Two years.\n\nSources: warranty#1", "And charging?"]);
    let What::TurnEnded(ended) =
        &played.events.iter().find(|e| matches!(e.what, What::TurnEnded(_))).expect("ends").what
    else {
        panic!("filtered")
    };
    let shown = &played.completions().nth(2).expect("a third").shown;
    assert_eq!(shown[1..3], ended.history[..]);
    assert_eq!(shown[3], digest(Role::User, "And charging?"));
}

#[test]
fn the_control_arm_withholds_earlier_turns_and_still_says_what_should_be_shown() {
    let model = vec![search("warranty"), responds(inside()), search("charge"), responds(inside())];
    let played = Play { withhold_history: true, ..play(model) }.turns(&["How long is the warranty?", "And charging?"]);
    assert_eq!(played.requests[2].messages.len(), 2);
    assert_eq!(played.talks[0].history.len(), 4);
}

#[test]
fn a_later_conversation_finds_what_an_earlier_one_learned() {
    let learn = [search("tariff"), outside("tariff 2026"), keywords(&GOOD_KEYWORDS), responds(both_without_internal())];
    let later = [search("current grid tariff"), responds(empty_handed())];
    let played = play(learn.into_iter().chain(later).collect()).conversations(&[&["Tariff?"], &["Tariff again?"]]);
    let found = played.tools().into_iter().filter(|called| called.tool == KNOWLEDGE_BASE_SEARCH).nth(1).expect("two");
    let ToolOutcome::Ok(ToolResult::Search(found)) = &found.outcome else { panic!("{}", played.story()) };
    let learned = found.hits[0].learned.as_ref().expect("is learned");
    assert_eq!((learned.result.as_str(), learned.conversation), ("result-1", 0));
    assert_eq!(learned.keywords, ["grid tariff"]);
    assert!(found.without_learned.is_empty());
}

#[test]
fn a_search_that_finds_two_answers_through_one_keyword_is_one_use_of_it() {
    let learn =
        || [search("tariff"), outside("tariff 2026"), keywords(&GOOD_KEYWORDS), responds(both_without_internal())];
    let found = |model: Vec<Says>| {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let (_, env) = play(model).environment(&clock);
        for (ordinal, question) in ["Tariff?", "Tariff please?", "Tariff again?"].into_iter().enumerate() {
            let mut conversation = ConversationState::new(ordinal as u32, question);
            assert!(block_on(&clock, ToolRag.turn(&env, &mut conversation, question)).expect("no deadlock").is_ok());
        }
        let entries = env.keywords.list().expect("lists");
        let entry = entries.into_iter().find(|entry| entry.keyword == "grid tariff").expect("the keyword");
        (entry.provenance.len(), entry.uses)
    };
    let last = [search("current grid tariff"), responds(empty_handed())];
    assert_eq!(found(learn().into_iter().chain(learn()).chain(last).collect()), (2, 1));
}

fn both_without_internal() -> Value {
    json!({"answer": "It fell.", "sources": [{"kind": "external", "id": PAGE}],
           "used_internal_kb": false, "used_external_kb": true})
}

#[test]
fn two_conversations_at_once_that_index_the_same_keyword_merge_it() {
    let one =
        || vec![search("tariff"), outside("tariff 2026"), keywords(&GOOD_KEYWORDS), responds(both_without_internal())];
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    // Both call at the same times, so the script alternates between them.
    let model = one().into_iter().zip(one()).flat_map(|(a, b)| [a, b]).collect();
    let (_, env) = play(model).environment(&clock);
    let (mut a, mut b) = (ConversationState::new(0, "a"), ConversationState::new(1, "b"));
    let both =
        futures_util::future::join(ToolRag.turn(&env, &mut a, "Tariff?"), ToolRag.turn(&env, &mut b, "Tariff please?"));
    let (first, second) = block_on(&clock, both).expect("no deadlock");
    assert!(first.is_ok() && second.is_ok());
    let events = env.take_events();
    assert!(ToolRag.machine().departures(&trace(events.clone())).is_empty());
    let merged: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::Indexed(done)), .. }) => {
                Some((event.conversation, done.merged.len(), done.read_back.len()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(merged, [(0, 0, 3), (1, 3, 3)]);
    assert!(env.keywords.list().expect("lists").iter().all(|entry| entry.provenance.len() == 2));
}

#[test]
fn forcing_names_the_mandatory_tools_and_leaves_the_rest_to_the_model() {
    let model = vec![
        search("tariff"),
        outside("tariff 2026"),
        keywords(&GOOD_KEYWORDS),
        Says::Text("x"),
        responds(empty_handed()),
    ];
    let played = Play { enforcement: Enforcement::Forced, ..play(model) }.turns(&["Tariff?"]);
    let choices: Vec<_> = played.completions().map(|called| called.tool_choice.as_str()).collect();
    let named = ["named knowledge_base_search", "auto", "named index_keywords", "auto", "named generate_response"];
    assert_eq!(choices, named);
}

#[test]
fn without_an_external_service_only_two_tools_are_offered() {
    let model = vec![search("warranty"), outside("x"), responds(inside())];
    let played = Play { external: false, ..play(model) }.turns(&["Warranty?"]);
    assert_eq!(played.requests[0].tools.len(), 2);
    assert!(played.story().contains("rejected unknown_tool"), "{}", played.story());
    assert_eq!(played.ends(), ["answered"]);
}
