//! The messages and tools of a turn's two requests, and the answer to the user.

use super::*;

#[test]
fn the_first_request_is_made_to_retrieve_and_the_second_may_call_nothing() {
    let played = play("north", vec![retrieve("warranty"), Says::Text("24 months [1].")], &["How long?"]);
    let [first, second] = played.requests.as_slice() else { panic!("{} requests", played.requests.len()) };
    assert_eq!(first.tool_choice, crate::provider::chat::ToolChoice::Named(RETRIEVE_DOCUMENTS.into()));
    assert_eq!(second.tool_choice, crate::provider::chat::ToolChoice::None);
    assert_eq!(first.tools.len(), 1);
    assert_eq!(first.tools[0].parameters["properties"].as_object().map(serde_json::Map::len), Some(1), "query alone");
    let systems = |request: &ChatRequest| {
        let systems = request.messages.iter().filter(|message| message.role == Role::System);
        systems.map(|message| message.content.clone()).collect::<Vec<_>>()
    };
    assert_eq!((systems(first).len(), systems(second).len()), (1, 1), "each stage has its own instructions alone");
    assert_ne!(systems(first), systems(second));
    assert!(systems(second)[0].contains(REFUSAL));
}

#[test]
fn five_passages_of_the_tenant_are_shown_and_none_of_another() {
    for (tenant, own, other) in [("north", "24 months", "60 months"), ("south", "60 months", "24 months")] {
        let played = play(tenant, vec![retrieve("warranty months"), Says::Text("So [1].")], &["How long?"]);
        let shown: String = played.requests[1].messages.iter().map(|message| message.content.as_str()).collect();
        assert!(shown.contains(own) && !shown.contains(other), "{tenant}");
        let [call] = played.calls()[..] else { panic!("one call") };
        let ToolOutcome::Ok(ToolResult::Search(search)) = &call.outcome else { panic!("{:?}", call.outcome) };
        assert_eq!((search.hits.len(), search.kb_id.as_str()), (5, tenant));
    }
}

#[test]
fn the_sources_are_the_documents_that_the_answer_cites_and_the_reply_has_all_that_were_retrieved_beside_them() {
    let text = "24 months [3], or 12 [1], [9] and `[2]`.";
    let played = play("north", vec![retrieve("warranty"), Says::Text(text)], &["How long?"]);
    let answer = played.answer();
    assert_eq!(answer.sources.iter().map(|source| source.number).collect::<Vec<_>>(), [Some(1), Some(3)]);
    assert!(answer.used_internal_kb);
    let reply = TwoStage.reply(&played.conversation, answer);
    assert_eq!(reply["answer"], text);
    let (sources, retrieved) = (reply["sources"].as_array().expect("a list"), &reply["retrieved"]);
    assert_eq!(sources.iter().map(|source| &source["number"]).collect::<Vec<_>>(), [1, 3]);
    let retrieved = retrieved.as_array().expect("a list");
    assert_eq!(retrieved.iter().map(|source| &source["number"]).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!((&sources[0], &sources[1]), (&retrieved[0], &retrieved[2]));
    for (source, known) in sources.iter().zip(&answer.sources) {
        assert_eq!(source["id"], known.id);
        assert_eq!(source["filename"], "warranty.md");
        assert!(source["text"].as_str().is_some_and(|text| text.contains("24 months")));
        assert!(source["score"].as_f64().is_some_and(|score| score > 0.0 && score <= 1.0));
    }
}

#[test]
fn an_answer_that_cites_nothing_has_no_source_and_later_turns_are_shown_every_document_of_one_that_does() {
    let model = vec![retrieve("warranty"), Says::Text("24 months."), retrieve("warranty"), Says::Text("24 [4].")];
    let played = play("north", model, &["How long?", "Really?"]);
    assert!(played.answer().sources.is_empty() || played.answer().sources.len() == 1);
    let told = &played.conversation.history.last().expect("an answer").content;
    let listed = told.split("Sources: ").nth(1).expect("the sources");
    assert_eq!(listed.split(", ").count(), 5, "the number 4 stands for the fourth of them: {told}");
}

#[test]
fn a_refusal_names_no_source_although_documents_were_found() {
    let played = play("north", vec![retrieve("warranty"), Says::Text(REFUSAL)], &["Which colour?"]);
    let answer = played.answer();
    assert!(answer.refused && answer.sources.is_empty() && !answer.used_internal_kb);
    let reply = TwoStage.reply(&played.conversation, answer);
    assert_eq!((&reply["sources"], reply["retrieved"].as_array().map(Vec::len)), (&json!([]), Some(5)));
}

#[test]
fn both_stages_are_shown_the_history_and_earlier_documents_are_gone() {
    let model = vec![retrieve("warranty"), Says::Text("24 months [2]."), retrieve("zeppelin"), Says::Text(REFUSAL)];
    let played = play("north", model, &["How long?", "And for zeppelins?"]);
    assert_eq!(played.ends(), ["answered", "refused"]);
    for request in &played.requests[2..] {
        let said: Vec<&str> = request.messages.iter().map(|message| message.content.as_str()).collect();
        assert!(said.contains(&"How long?"), "{said:?}");
        assert!(said.iter().any(|text| text.starts_with("24 months [2].")), "{said:?}");
        assert!(!said.iter().any(|text| text.contains("part 1")), "documents of the turn before: {said:?}");
    }
    let Memory { documents } = played.conversation.flow_state().expect("its own");
    assert!(documents.is_empty());
}

#[test]
fn a_stored_conversation_goes_on_with_its_tenant() {
    let played = play("south", vec![retrieve("warranty"), Says::Text("60 months [1].")], &["How long?"]);
    let restored = ConversationState::from_json(&played.conversation.to_json()).expect("is read");
    assert_eq!(restored, played.conversation);
    assert_eq!(restored.tenant.as_deref(), Some("south"));
}
