//! Answers of the form that a request demands (`response_format`, `text.format` and the like): a real model gives JSON of that
//! schema, and clients fail on anything else.

use super::model::Completion;
use super::required::{Words, of_schema};
use crate::provider::chat::{Message, Role};
use serde_json::{Value, json};

/// Where the APIs have the demanded form.
const PLACES: [&str; 4] = ["/response_format", "/text/format", "/output_format", "/output_config/format"];
/// Where a form has its schema.
const SCHEMAS: [&str; 2] = ["/json_schema/schema", "/schema"];

/// Gives a text as JSON if the request demands it; one that is an object already stays.
pub(super) fn fit(completion: &mut Completion, body: &Value, messages: &[Message]) {
    let is_said = completion.calls.is_empty() && completion.refusal.is_none();
    let Some(schema) = demanded(body).filter(|_| is_said) else { return };
    if serde_json::from_str(&completion.text).is_ok_and(|said: Value| said.is_object()) {
        return;
    }
    let question = messages.iter().rev().find(|message| message.role == Role::User);
    let words = Words { answer: &completion.text, query: question.map_or("", |message| &message.content) };
    let fitting = match schema {
        Demanded::Schema(schema) => of_schema(schema, &words),
        Demanded::Object => {
            example(messages).map_or_else(|| json!({"answer": completion.text}), |one| said(one, &completion.text))
        }
    };
    completion.text = fitting.to_string();
}

/// What a request demands its answer to be.
enum Demanded<'b> {
    Object,
    Schema(&'b Value),
}

fn demanded(body: &Value) -> Option<Demanded<'_>> {
    let written = PLACES.iter().find_map(|at| body.pointer(at));
    if let Some(form) = written.filter(|form| form["type"].as_str().is_some_and(|kind| kind.starts_with("json"))) {
        let schema = SCHEMAS.iter().find_map(|at| form.pointer(at)).filter(|schema| schema.is_object());
        return Some(schema.map_or(Demanded::Object, Demanded::Schema));
    }
    let gemini = body.get("generationConfig")?;
    let schema = ["responseJsonSchema", "responseSchema"].iter().find_map(|name| gemini.get(*name));
    let is_object = gemini["responseMimeType"] == "application/json";
    schema.map(Demanded::Schema).or_else(|| is_object.then_some(Demanded::Object))
}

/// The object that the instructions, or else the user's words, show as an example.
fn example(messages: &[Message]) -> Option<Value> {
    let objects = |message: &Message| {
        message.content.match_indices('{').find_map(|(at, _)| {
            let read = serde_json::Deserializer::from_str(&message.content[at..]).into_iter::<Value>().next()?.ok()?;
            read.as_object().is_some_and(|members| !members.is_empty()).then_some(read)
        })
    };
    let of = |role: Role| messages.iter().rev().filter(move |message| message.role == role).find_map(objects);
    of(Role::System).or_else(|| of(Role::User))
}

/// An example with a text in place of each of its own.
fn said(example: Value, text: &str) -> Value {
    match example {
        Value::String(_) => json!(text),
        Value::Array(items) => items.into_iter().map(|item| said(item, text)).collect(),
        Value::Object(members) => members.into_iter().map(|(name, item)| (name, said(item, text))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Finish;

    fn fitted(body: &Value, system: &str, text: &str) -> Value {
        let mut completion = Completion { text: text.into(), refusal: None, calls: Vec::new(), finish: Finish::Stop };
        fit(&mut completion, body, &[Message::text(Role::System, system), Message::text(Role::User, "How long?")]);
        serde_json::from_str(&completion.text).unwrap_or(Value::String(completion.text))
    }

    #[test]
    fn an_answer_has_the_form_that_each_api_demands() {
        let schema = json!({"type": "object", "required": ["answer", "days", "query"], "properties": {
            "answer": {"type": "string"}, "days": {"type": "integer"}, "query": {"type": "string"}}});
        let strict = json!({"type": "json_schema", "name": "A", "schema": schema, "strict": true});
        for body in [
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "A", "schema": schema}}}),
            json!({"text": {"format": strict}}),
            json!({"output_format": strict}),
            json!({"output_config": {"format": strict}}),
            json!({"generationConfig": {"responseMimeType": "application/json", "responseSchema": schema}}),
            json!({"generationConfig": {"responseJsonSchema": schema}}),
        ] {
            let expected = json!({"answer": "30 days.", "days": 0, "query": "How long?"});
            assert_eq!(fitted(&body, "Be brief.", "30 days."), expected, "{body}");
            assert_eq!(fitted(&body, "", r#"{"answer": "own"}"#), json!({"answer": "own"}), "a rule's own JSON stays");
        }
        let referring = json!({"$ref": "#/$defs/A", "$defs": {"A": schema}});
        let body = json!({"response_format": {"type": "json_schema", "json_schema": {"schema": referring}}});
        assert_eq!(fitted(&body, "", "30 days.")["days"], 0);
    }

    #[test]
    fn any_json_is_like_the_example_of_the_instructions_and_words_stay_words_where_none_is_demanded() {
        let any = json!({"response_format": {"type": "json_object"}});
        let system = r#"Use {curly} words. Answer as JSON: {"answer": "...", "days": 7, "sources": ["id"]}."#;
        assert_eq!(fitted(&any, system, "Yes."), json!({"answer": "Yes.", "days": 7, "sources": ["Yes."]}));
        assert_eq!(fitted(&any, "Answer as JSON.", "Yes."), json!({"answer": "Yes."}));
        for body in [
            json!({}),
            json!({"response_format": {"type": "text"}}),
            json!({"text": {"format": {"type": "text"}, "verbosity": "low"}}),
            json!({"response_format": "json"}),
            json!({"generationConfig": {"temperature": 0}}),
        ] {
            assert_eq!(fitted(&body, system, "Yes."), json!("Yes."), "{body}");
        }
    }
}
