//! A model that makes mistakes: missing mandatory calls, calls out of order, refused parameters.

use super::*;

fn accounts(played: &Played) -> Vec<(&'static str, &str, bool)> {
    played.retries().iter().map(|one| (one.account.as_str(), one.target.as_str(), one.recovered)).collect()
}

#[test]
fn a_forgotten_search_is_fed_back_once_and_recovers() {
    let model = vec![Says::Text("Two years."), search("battery warranty"), responds(inside())];
    let played = play(model).turns(&["How long is the warranty?"]);
    assert_story!(played);
    assert_eq!(accounts(&played), [("model", KNOWLEDGE_BASE_SEARCH, true)]);
}

#[test]
fn a_search_forgotten_twice_is_an_error_that_names_step_and_tool() {
    let played = play(vec![Says::Text("Two years."), Says::Refuses]).turns(&["How long is the warranty?"]);
    assert_eq!(played.ends(), ["mandatory_call_missing"]);
    assert!(played.story().contains("step knowledge_base needs a call of knowledge_base_search"), "{}", played.story());
    assert_eq!(accounts(&played), [("model", KNOWLEDGE_BASE_SEARCH, false)]);
    assert_eq!(played.requests.len(), 2);
}

#[test]
fn a_response_forgotten_once_recovers_and_forgotten_twice_fails() {
    let once = play(vec![search("warranty"), Says::Text("Two years."), responds(inside())]).turns(&["Warranty?"]);
    assert_eq!(once.ends(), ["answered"]);
    assert_eq!(accounts(&once), [("model", GENERATE_RESPONSE, true)]);
    let twice = play(vec![search("warranty"), Says::Text("Two."), Says::Text("Two!")]).turns(&["Warranty?"]);
    assert_eq!(twice.ends(), ["response_missing"]);
    assert_eq!(accounts(&twice), [("model", GENERATE_RESPONSE, false)]);
}

#[test]
fn an_invalid_response_uses_up_the_first_attempt() {
    let mut invented = inside();
    invented["sources"][0]["id"] = "warranty#99".into();
    let played = play(vec![search("warranty"), responds(invented.clone()), responds(inside())]).turns(&["Warranty?"]);
    assert_story!(played);
    assert_eq!(accounts(&played), [("model", GENERATE_RESPONSE, true)]);
    let twice = play(vec![search("warranty"), responds(invented), responds(both())]).turns(&["Warranty?"]);
    assert_eq!(twice.ends(), ["response_missing"]);
}

#[test]
fn the_external_service_before_or_beside_the_first_search_is_not_asked() {
    let first = play(vec![outside("tariff"), search("tariff"), responds(empty_handed())]).turns(&["Tariff?"]);
    assert!(matches!(first.tools()[0].outcome, ToolOutcome::OutOfOrder(_)));
    assert_eq!(accounts(&first), [("model", KNOWLEDGE_BASE_SEARCH, true)]);
    let kb = (KNOWLEDGE_BASE_SEARCH, json!({"query": "tariff"}));
    let beside = play(vec![calls([(PERPLEXITY_SEARCH, json!({"query": "t"})), kb]), responds(empty_handed())]);
    let beside = beside.turns(&["Tariff?"]);
    assert!(matches!(beside.tools()[0].outcome, ToolOutcome::OutOfOrder(_)));
    assert!(matches!(beside.tools()[1].outcome, ToolOutcome::Ok(_)));
    assert_eq!(beside.ends(), ["answered"]);
}

#[test]
fn a_response_beside_other_calls_is_not_delivered() {
    let kb = (KNOWLEDGE_BASE_SEARCH, json!({"query": "warranty"}));
    let played =
        play(vec![calls([kb.clone(), (GENERATE_RESPONSE, inside())]), calls([(GENERATE_RESPONSE, inside()), kb])]);
    let played = Play { model: played.model.into_iter().chain([responds(inside())]).collect(), ..play(vec![]) };
    let played = played.turns(&["Warranty?"]);
    let ordered: Vec<_> = played.tools().iter().map(|c| matches!(c.outcome, ToolOutcome::OutOfOrder(_))).collect();
    assert_eq!(ordered, [false, true, true, false, false]);
    assert_eq!(played.ends(), ["answered"]);
    assert!(played.retries().is_empty());
}

#[test]
fn keywords_left_out_are_asked_for_once_and_then_the_answer_is_delivered() {
    let model = vec![search("battery"), outside("tariff"), responds(both()), responds(both())];
    let played = play(model).turns(&["Warranty and tariff?"]);
    assert_story!(played);
    assert_eq!(accounts(&played), [("model", INDEX_KEYWORDS, false)]);
    let recovered =
        play(vec![search("battery"), outside("tariff"), responds(both()), keywords(&GOOD_KEYWORDS), responds(both())]);
    assert_eq!(accounts(&recovered.turns(&["Tariff?"])), [("model", INDEX_KEYWORDS, true)]);
}

#[test]
fn keywords_refused_come_back_corrected() {
    let model = vec![
        search("battery"),
        outside("tariff"),
        keywords(&["information", "grid tariff", "levy"]),
        keywords(&["x", "grid tariff", "levy"]),
        keywords(&GOOD_KEYWORDS),
        responds(both()),
    ];
    let played = play(model).turns(&["Tariff?"]);
    assert_story!(played);
    assert_eq!(accounts(&played), [("tool", INDEX_KEYWORDS, false), ("tool", INDEX_KEYWORDS, true)]);
}

#[test]
fn keywords_refused_too_often_are_given_up_and_the_answer_is_delivered() {
    let poor = || keywords(&["information", "data", "news"]);
    let model = vec![search("battery"), outside("tariff"), poor(), poor(), poor(), poor(), responds(both())];
    let played = play(model).turns(&["Tariff?"]);
    assert_eq!(played.ends(), ["answered"]);
    assert!(played.story().contains("-keywords_given_up-> judging"), "{}", played.story());
    assert!(played.story().contains("retries_exhausted"), "{}", played.story());
    assert_eq!(played.retries().len(), 2);
}

#[test]
fn keywords_for_an_answer_that_was_never_given_are_refused() {
    let model =
        vec![search("battery"), keywords(&GOOD_KEYWORDS), outside("t"), keywords_for("result-9", &GOOD_KEYWORDS)];
    let model = model.into_iter().chain([keywords(&GOOD_KEYWORDS), responds(both())]).collect();
    let played = play(model).turns(&["Tariff?"]);
    assert!(matches!(&played.tools()[1].outcome, ToolOutcome::OutOfOrder(_)));
    let ToolOutcome::Rejected(why) = &played.tools()[3].outcome else { panic!("{}", played.story()) };
    assert_eq!(why.cause, "unknown_result");
    assert!(why.guidance.contains("result-1"));
}

#[test]
fn hostile_parameters_are_refused_with_guidance_and_corrected() {
    let hostile = search("warranty' OR '1'='1' --");
    let played = play(vec![hostile.clone(), search("warranty"), responds(inside())]).turns(&["Warranty?"]);
    assert_eq!(accounts(&played), [("tool", KNOWLEDGE_BASE_SEARCH, true)]);
    let told: Value = serde_json::from_str(&played.requests[1].messages[3].content).expect("is JSON");
    assert_eq!(told["error"]["cause"], "hostile");
    assert_eq!(told["error"]["retryable"], true);
    assert!(!told["error"]["guidance"].as_str().expect("is text").is_empty());
    let never = play(vec![hostile.clone(), hostile.clone(), hostile]).turns(&["Warranty?"]);
    assert_eq!(never.ends(), ["mandatory_call_missing"]);
    assert!(never.story().contains("-parameters_refused->"), "{}", never.story());
}

#[test]
fn malformed_arguments_and_unknown_tools_get_a_result_each() {
    let broken = Says::Calls(vec![(KNOWLEDGE_BASE_SEARCH, "{\"query\": \"warr".into()), ("web_search", "{}".into())]);
    let played = play(vec![broken, search("warranty"), responds(inside())]).turns(&["Warranty?"]);
    assert_eq!(played.tools()[0].arguments, json!("{\"query\": \"warr"));
    let causes: Vec<_> = played.tools()[..2].iter().map(|called| outcome(&called.outcome)).collect();
    assert!(causes[0].starts_with("rejected not_json") && causes[1].starts_with("rejected unknown_tool"), "{causes:?}");
    assert_eq!(played.ends(), ["answered"]);
}
