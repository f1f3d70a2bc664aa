//! `search_documents_for_facts {reasoning, query, approach}`: the five best passages, numbered from 1.
//!
//! The reasoning is the first argument, so that the model writes it before the query. The approach must be the one
//! required for the step, and no search is repeated within a turn.

use super::SEARCH;
use crate::flow::react::React;
use crate::flow::react::grade::same_search;
use crate::flow::react::memory::{Document, TurnState};
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Tool, ToolError, guard, search};
use crate::knowledge::Found;
use crate::trace::Role;
use serde_json::{Map, Value, json};

pub(in crate::flow::react) static TOOL: Tool<React> = Tool {
    declaration: Declaration::new(SEARCH, Role::Knowledge, schema),
    run: |arguments, scope| Box::pin(run(arguments, scope)),
};

/// Passages of one search.
const TOP_K: usize = 5;
const MAX_QUERY: usize = 300;
/// Fraction of the best score below which a passage is dropped: it is not worth grading.
const TAIL: f64 = 0.5;

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reasoning": {"type": "string", "minLength": 3, "maxLength": 1200,
                "description": "Why this search comes next: what is known, what is missing, what the result should give."},
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY,
                "description": "Two to eight words that the right passage would contain, not the user's sentence."},
            "approach": {"type": "string", "enum": ["direct", "broader", "synonyms", "related"],
                "description": "The approach that the section State of the last message names for this step."}
        },
        "required": ["reasoning", "query", "approach"],
        "additionalProperties": false
    })
}

fn query(object: &Map<String, Value>, state: &TurnState) -> Result<String, Refusal> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let query = guard::line("query", text("query"), MAX_QUERY)?;
    let wanted = state.progress.approach.name();
    if text("approach") != wanted {
        let reason = format!("the approach of this step is `{wanted}`, not `{}`", text("approach"));
        return Err(Refusal::new("approach", reason, format!("Make a query of the approach `{wanted}` and name it.")));
    }
    if state.queries.iter().any(|earlier| same_search(earlier) == same_search(&query)) {
        let reason = "these words were searched before in this turn, with what you have seen";
        return Err(Refusal::new("repeated_search", reason, "Search with other words."));
    }
    Ok(query)
}

async fn run(arguments: &Map<String, Value>, scope: Scope<'_, React>) -> Result<Output, ToolError> {
    let query = query(arguments, scope.own)?;
    let env = scope.env;
    let Some((name, base)) = env.knowledge.all().next() else {
        return Err(search::no_base("the flow has no knowledge base", "there are no documents to search"));
    };
    let (name, base) = (name.to_owned(), std::sync::Arc::clone(base));
    let (found, attempts) = search::passages(env, &*base, &query, TOP_K).await?;
    let best = found.first().map_or(0.0, |found| found.raw_score);
    let found: Vec<Found> = found.into_iter().filter(|found| found.raw_score >= best * TAIL).collect();
    scope.own.queries.push(query.clone());
    let hits = found.iter().map(search::hit).collect();
    scope.own.found = found.into_iter().map(document).collect();
    let message = for_model(&scope.own.found);
    Ok(search::output(query, name, hits, message, attempts))
}

fn document(found: Found) -> Document {
    Document { id: found.passage.id, title: found.passage.title, text: found.passage.text }
}

/// Passages in the tool message.
pub(in crate::flow::react) fn for_model(documents: &[Document]) -> String {
    let documents = (1..).zip(documents);
    search::numbered(
        documents.map(
            |(number, one): (u32, _)| json!({"number": number, "id": one.id, "title": one.title, "text": one.text}),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::react::policy::{Approach, Progress};

    fn refused(arguments: &Value, state: &TurnState) -> Result<String, (&'static str, String)> {
        query(arguments.as_object().expect("an object"), state).map_err(|why| (why.cause, why.reason))
    }

    #[test]
    fn a_search_of_another_approach_or_of_the_same_words_is_refused_with_what_to_do() {
        let mut state = TurnState { queries: vec!["Sprig warranty".into()], ..TurnState::default() };
        let asked = |query: &str, approach: &str| json!({"reasoning": "so", "query": query, "approach": approach});
        assert_eq!(refused(&asked(" battery  range ", "direct"), &state), Ok("battery range".into()));
        assert_eq!(refused(&asked("warranty, sprig!", "direct"), &state).expect_err("is refused").0, "repeated_search");
        let (cause, reason) = refused(&asked("battery", "broader"), &state).expect_err("is refused");
        assert_eq!(cause, "approach");
        assert!(reason.contains("`direct`") && reason.contains("`broader`"), "{reason}");
        state.progress = Progress { approach: Approach::Broader, ..Progress::default() };
        assert!(refused(&asked("battery", "broader"), &state).is_ok());
        let hostile = refused(&asked("x' UNION SELECT password FROM users --", "broader"), &state);
        assert_eq!(hostile.expect_err("is refused").0, "hostile");
    }
}
