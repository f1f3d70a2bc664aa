//! Requests for vectors beside the calls of a turn.

use super::*;

#[test]
fn vectors_belong_to_the_search_that_waits_and_are_else_told_where_they_do_not_come() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &json!({"query": "cause"})))];
    exchanges.extend([vectors("cause", 503), vectors("cause", 200)]);
    result(&mut conversation, "1", &json!({"chunks": [{"id": "a#1", "text": "so"}]}));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "because"})));
    let (events, _) = told(exchanges);
    let made = calls(&events);
    let services: Vec<_> = made[0].attempts.iter().map(|one| (one.service.as_deref(), one.status)).collect();
    assert_eq!(services, [(Some("embeddings"), Some(503)), (Some("embeddings"), Some(200))]);
    assert!(events.iter().any(|what| matches!(what, What::Retried(one) if one.target == "embeddings")), "{events:?}");

    let told_of = |exchanges: Vec<Passed>| -> Vec<(String, bool)> {
        let searched = |what: What| match what {
            What::Searched(search) => Some((search.query, matches!(search.outcome, ToolOutcome::Failed { .. }))),
            What::ModelCalled(_) => panic!("an embedding is no completion"),
            _ => None,
        };
        told(exchanges).0.into_iter().filter_map(searched).collect()
    };
    assert_eq!(told_of(vec![vectors("a", 200)]), []);
    let after = vec![vectors("a", 503), vectors("b", 200), vectors("c", 200)];
    assert_eq!(told_of(after), [("a".to_owned(), true), ("b".to_owned(), false)]);
}
