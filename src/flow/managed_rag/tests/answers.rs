//! What the user receives: the artifact inserted, its versions over a conversation, parameters, and neither the
//! service's address nor its token.

use super::*;
use crate::trace::ManagedStatus;

const EMBED: &str = "«artifact_content:nuclia_answer.md:1»";

#[test]
fn the_answer_holds_the_services_text_with_a_marker_behind_each_cited_word_and_the_pages_as_sources() {
    let played = play(vec![ask("How long is the warranty?"), Says::Text(EMBED)], &["How long is the warranty?"]);
    let answer = played.answers()[0];
    let link = |page: u32| format!("/gateway/download/w/f/file/warranty.pdf#page={page}");
    let expected = format!("👨‍🔧 It lasts 24 months.[[1]]({}) The pump: 60 months.[[2]]({})", link(2), link(5));
    assert!(answer.text.starts_with(&expected), "{}\n{expected}", answer.text);
    assert_eq!(
        answer.sources.iter().map(|source| source.id.as_str()).collect::<Vec<_>>(),
        ["warranty#page=2", "warranty#page=5"]
    );
    assert!(answer.used_internal_kb && !answer.refused);
    let managed = played.managed()[0];
    assert_eq!((managed.input_tokens, managed.output_tokens), (Some(400), Some(30)));
    let told = &played.told()[0];
    assert_eq!((&told["status"], &told["nuclia_learning_id"]), (&json!("success"), &json!("l1")));
    assert!(!told.to_string().contains("24 months"), "the model passes the file on and never retells it: {told}");
}

#[test]
fn an_answer_that_cites_no_file_names_no_source_and_claims_none() {
    let played = play(vec![ask("the opening hours"), Says::Text(EMBED)], &["When do you open?"]);
    let answer = played.answers()[0];
    assert_eq!((answer.text.as_str(), answer.sources.len(), answer.used_internal_kb), ("From nine.", 0, false));
}

#[test]
fn a_passage_of_no_file_is_a_hit_under_its_resource_and_field() {
    let played = play(vec![ask("the opening hours"), Says::Text(EMBED)], &["When do you open?"]);
    let ToolOutcome::Ok(ToolResult::Search(search)) = &played.calls()[0].outcome else { panic!("a search") };
    assert_eq!(search.hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["h/t/page"]);
}

#[test]
fn nothing_that_is_kept_or_shown_holds_the_token_or_the_services_address() {
    let model = vec![ask("warranty"), Says::Text(EMBED), ask("broken"), Says::Text("It could not be asked.")];
    let played = play(model, &["How long?", "And broken?"]);
    assert_eq!(played.ends(), ["answered", "answered"]);
    let kept = format!(
        "{}{:?}{}",
        serde_json::to_string(&played.events).expect("JSON"),
        played.requests,
        serde_json::to_string(&ManagedRag.artifacts(&played.conversation)).expect("JSON")
    );
    assert!(kept.contains("no such label"), "what the service said is kept: {kept}");
    for secret in [TOKEN, HOST] {
        assert!(!kept.contains(secret), "{secret}: {kept}");
    }
}

#[test]
fn each_call_of_a_conversation_makes_the_next_version_and_an_answer_embeds_the_one_it_names() {
    let second = "«artifact_content:nuclia_answer.md:2»";
    let model = vec![ask("warranty of the pump"), Says::Text(EMBED), ask("warranty of the tap"), Says::Text(second)];
    let played = play(model, &["The pump?", "And the tap?"]);
    let artifacts = ManagedRag.artifacts(&played.conversation);
    let told: Vec<_> = artifacts.iter().map(|one| (one.version, one.description.as_str())).collect();
    assert_eq!(
        told,
        [(1, "Answer with sources to: warranty of the pump"), (2, "Answer with sources to: warranty of the tap")]
    );
    let reply = ManagedRag.reply(&played.conversation, played.answers()[1]);
    assert_eq!(reply["artifacts"][0]["version"], json!(2));
    assert_eq!(reply["sources"][0]["page"], json!(2));
    assert_eq!(reply["sources"][0]["url"], json!("/gateway/download/w/f/file/warranty.pdf#page=2"));
}

#[test]
fn an_embed_of_an_earlier_turn_alone_is_no_answer_to_this_one() {
    let model = vec![ask("warranty"), Says::Text(EMBED), ask("warranty again"), Says::Text(EMBED), Says::Text(EMBED)];
    let played = play(model, &["The pump?", "And now?"]);
    assert_eq!(played.ends(), ["answered", "no_artifact"]);
}

#[test]
fn without_a_required_parameter_nothing_is_asked_and_the_model_is_told_which() {
    let country = |required| TemplateParameter { name: "country".into(), required, ..TemplateParameter::default() };
    let mut stage = Stage::default();
    stage.settings.template_parameters = vec![country(true)];
    let model = || vec![ask("warranty"), Says::Text("It could not be asked.")];
    let played = stage.play(model(), &["How long?"]);
    assert!(played.asked.is_empty() && played.managed().is_empty());
    let told = &played.told()[0];
    assert_eq!(told["status"], json!("error"));
    assert!(told["message_to_llm"].as_str().is_some_and(|words| words.contains("country")), "{told}");

    stage.context.insert("country".into(), json!("Norway"));
    let played = stage.play(vec![ask("warranty"), Says::Text(EMBED)], &["How long?"]);
    assert_eq!((played.asked.len(), played.managed()[0].status), (1, ManagedStatus::Success));
}

#[test]
fn a_filter_that_lacks_a_value_is_left_out_and_the_result_says_so() {
    let mut stage = Stage::default();
    stage.settings.template_parameters =
        vec![TemplateParameter { name: "country".into(), ..TemplateParameter::default() }];
    stage.settings.filter_expression_template = Some(json!({"field": {"prop": "label", "label": "{country}"}}));
    let played = stage.play(vec![ask("warranty"), Says::Text(EMBED)], &["How long?"]);
    assert!(played.asked[0].body.get("filter_expression").is_none());
    let told = &played.told()[0];
    assert_eq!((&told["filter_applied"], &told["missing_filter_parameters"]), (&json!(false), &json!(["country"])));
    stage.context.insert("country".into(), json!("Norway"));
    let played = stage.play(vec![ask("warranty"), Says::Text(EMBED)], &["How long?"]);
    assert_eq!(played.asked[0].body["filter_expression"]["field"]["label"], json!("Norway"));
    assert_eq!(played.told()[0]["applied_filter"], played.asked[0].body["filter_expression"]);
}
