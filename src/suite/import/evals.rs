//! Rows of OpenAI Evals, `{"item": …}` with an optional `sample`, and its exported configurations.
//!
//! A configuration is an eval (`testing_criteria`), a run (`data_source`), or both; it applies to every row after it. The
//! conversation of a row is what its `sample` says was sent, else the `input_messages` of the run with the members of
//! `item`, then what the sample answered. A testing criterion becomes an expectation if one says exactly the same;
//! otherwise it is named with the reason. Code in a configuration is never run.

use super::ImportError;
use super::error::ConversationError;
use super::json::items;
use super::record::Record;
use crate::scenario::Turn;
use crate::scenario::expect::{AnswerExpectation, Expectation};
use crate::trace::finish_of;
use crate::trace::text::{plural, quote};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Members of which a configuration has one.
const SETTINGS: [&str; 4] = ["testing_criteria", "data_source_config", "data_source", "input_messages"];
/// What a template names between braces.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{\{\s*([^{}]*?)\s*\}\}").ok());
/// The text that the model answered.
const OUTPUT: &str = "sample.output_text";

/// Why a row is no conversation.
#[derive(Debug, thiserror::Error)]
enum RowError {
    /// It is of another kind.
    #[error("it is neither a row (`item`) nor a configuration (`testing_criteria`, `data_source`)")]
    Neither,
    /// Its question is unknown.
    #[error(
        "nothing says what was asked: the sample has no `input`, and no configuration before the row has `input_messages`"
    )]
    NotAsked,
    /// Its messages hold no question.
    #[error("no text of a user in its input messages")]
    NoUser,
    /// It lacks a member that a template names.
    #[error("its row has no `{0}`")]
    NoMember(String),
    /// It lacks the messages that the configuration names.
    #[error("its row has no list of messages at `{0}`")]
    NoMessages(String),
    /// The configuration's messages are of no known shape.
    #[error("`input_messages` has no `template` and no `item_reference`")]
    NoTemplate,
    /// A message of the configuration is of no known shape.
    #[error("`input_messages` holds a message without a role and a text")]
    Message,
    /// It was not answered.
    #[error("it has no `sample`, so nothing was answered: `ragcheck promote` makes a case of it")]
    NoSample,
    /// The service reported an error in place of an answer.
    #[error("its sample is an error: {0}")]
    Failed(String),
    /// The service did not grade it.
    #[error("the service gave it no grade: {0}")]
    Ungraded(String),
    /// Its sample holds no answer.
    #[error("its sample has none of `output`, `choices`, `output_text` and `output_tools`")]
    NoOutput,
}

impl From<RowError> for ConversationError {
    fn from(why: RowError) -> Self {
        Self::Source(why.to_string())
    }
}

/// Whether a value is a row or a configuration, or a list of rows as the service exports it.
pub(super) fn is_one(value: &Value) -> bool {
    let listed = value.get("data").and_then(|rows| rows.get(0)).is_some_and(is_row);
    is_row(value) || SETTINGS.iter().any(|name| value.get(*name).is_some()) || listed
}

fn is_row(value: &Value) -> bool {
    ["item", "datasource_item"].iter().any(|name| value.get(*name).is_some_and(Value::is_object))
}

/// Rows of a file as conversations, and remarks on what is left out of them.
///
/// # Errors
/// If the file is not JSON or JSON lines, or has no row.
pub(super) fn records(text: &[u8]) -> Result<(Vec<Record>, Vec<String>), ImportError> {
    let (mut setup, mut records) = (Setup::default(), Vec::new());
    for item in items(text)? {
        match item {
            Ok(item) => setup.take(item, &mut records),
            Err(broken) => records.push(Record::of(Err(broken))),
        }
    }
    if records.is_empty() {
        return Err(ImportError::NoRows(if setup.is_stored {
            "its rows are stored at the service: export them"
        } else {
            "add its rows, a line each"
        }));
    }
    for (number, record) in (1..).zip(&mut records) {
        record.task.get_or_insert_with(|| format!("row-{number}"));
    }
    let mut remarks: Vec<String> =
        setup.left_out.iter().map(|(what, rows)| format!("{what} ({})", plural(*rows, "row"))).collect();
    if setup.criteria.is_empty() {
        let is_graded = records.iter().any(|record| record.reward.is_some());
        let what =
            if is_graded { "the `results` of its rows are the grade" } else { "nothing is expected of the answers" };
        remarks.push(format!("no `testing_criteria` in the file: {what}"));
    }
    Ok((records, remarks))
}

/// What configurations said so far.
#[derive(Default)]
struct Setup {
    criteria: Vec<Value>,
    messages: Option<Value>,
    model: Option<String>,
    /// Whether the rows are kept at the service.
    is_stored: bool,
    /// Criteria that do not translate, and those that the file says rows failed, with the number of rows.
    left_out: BTreeMap<String, usize>,
}

impl Setup {
    fn take(&mut self, item: Value, records: &mut Vec<Record>) {
        if is_row(&item) {
            let record = self.row(&item);
            return records.push(record.unwrap_or_else(|why| Record::of(Err(why.into()))));
        }
        if !is_one(&item) {
            return records.push(Record::of(Err(RowError::Neither.into())));
        }
        if let Some(Value::Array(criteria)) = item.get("testing_criteria") {
            self.criteria.clone_from(criteria);
        }
        let kind = item.pointer("/data_source_config/type").and_then(Value::as_str);
        self.is_stored |= matches!(kind, Some("logs" | "stored_completions"));
        let source = item.get("data_source").unwrap_or(&item);
        if let Some(messages) = source.get("input_messages").filter(|messages| !messages.is_null()) {
            self.messages = Some(messages.clone());
        }
        let model = source.get("model").and_then(Value::as_str);
        self.model = model.map(str::to_owned).or(self.model.take());
        let rows = source.pointer("/source/content").or_else(|| item.get("data"));
        for row in rows.and_then(Value::as_array).into_iter().flatten().filter(|row| is_row(row)) {
            let record = self.row(row);
            records.push(record.unwrap_or_else(|why| Record::of(Err(why.into()))));
        }
    }

    /// The conversation of a row, with what its case asks and expects.
    fn row(&mut self, row: &Value) -> Result<Record, RowError> {
        let nothing = Value::Null;
        let item = ["item", "datasource_item"].iter().find_map(|name| row.get(*name)).unwrap_or(&nothing);
        let sample = row.get("sample").filter(|sample| !sample.is_null());
        let sent = sample.and_then(|sample| sample.get("input")?.as_array()).filter(|sent| !sent.is_empty());
        let mut messages = match (sent, &self.messages) {
            (Some(sent), _) => sent.clone(),
            (None, Some(template)) => rendered_messages(template, item)?,
            (None, None) => return Err(RowError::NotAsked),
        };
        let is_user = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("user");
        let asked =
            messages.iter().filter(is_user).map(|message| text_of(message.get("content"))).collect::<Option<Vec<_>>>();
        let asked = asked.filter(|asked| !asked.is_empty());
        let asked = asked.ok_or(RowError::NoUser)?;
        let results = results(row);
        let expect = self.expected(item, &results)?;
        let mut record = Record::of(Ok(Vec::new()));
        let status = row.get("status").and_then(Value::as_str).unwrap_or_default();
        let is_failed =
            results.iter().any(|(_, passed)| *passed == Some(false)) || ["fail", "failed"].contains(&status);
        let ungraded = if status.starts_with("error") {
            Some(format!("its `status` is `{}`", quote(status, 40)))
        } else {
            let without = results.iter().find(|(_, passed)| passed.is_none());
            without.map(|(name, _)| format!("its result `{}` is neither passed nor failed", quote(name, 60)))
        };
        record.reward = match &expect {
            _ if is_failed => Some(0.0),
            None if !results.is_empty() => Some(1.0),
            // What passed in the file has to meet the translated criteria too.
            _ => None,
        };
        let turn = |ask: String| Turn { ask, expect: None };
        record.case = Some((asked.into_iter().map(turn).collect(), expect));
        let id = row.get("datasource_item_id").filter(|id| id.is_u64() || id.is_string());
        record.task = id.map(|id| format!("row-{}", id.as_str().map_or_else(|| id.to_string(), str::to_owned)));
        record.id = row.get("id").filter(|_| row.get("datasource_item").is_some()).map(Value::to_string);
        let model = sample.and_then(|sample| sample.get("model")?.as_str()).map(str::to_owned);
        record.model = model.or_else(|| self.model.clone());
        record.messages = match sample.map(finished) {
            Some(Ok(answer)) => {
                messages.extend(answer);
                ungraded.filter(|_| !is_failed).map_or(Ok(messages), |why| Err(RowError::Ungraded(why).into()))
            }
            Some(Err(why)) => Err(why.into()),
            None => Err(RowError::NoSample.into()),
        };
        Ok(record)
    }

    /// What the testing criteria expect of a row's answer, beside the `results` in the file.
    fn expected(&mut self, item: &Value, results: &[(&str, Option<bool>)]) -> Result<Option<Expectation>, RowError> {
        let mut answer = AnswerExpectation::default();
        for criterion in &self.criteria {
            let word = |name: &str| criterion.get(name).and_then(Value::as_str).unwrap_or_default();
            let name = if word("name").is_empty() { "without a name" } else { word("name") };
            let why = translated(criterion, item, &mut answer)?;
            // The service adds an id to the name.
            let of_it = |result: &str| result.strip_prefix(name).is_some_and(|id| id.is_empty() || id.starts_with('-'));
            if let Some(why) = why.filter(|_| !results.iter().any(|(result, _)| of_it(result))) {
                let what = format!("not translated: `{}` ({}): {why}", quote(name, 60), quote(word("type"), 40));
                *self.left_out.entry(what).or_default() += 1;
            }
        }
        for (name, _) in results.iter().filter(|(_, passed)| *passed == Some(false) && !self.criteria.is_empty()) {
            let what = format!("failed in the `results` of the file, which decide: `{}`", quote(name, 60));
            *self.left_out.entry(what).or_default() += 1;
        }
        let expect = Expectation { answer: Some(answer), ..Expectation::default() };
        Ok(expect.asserts().then_some(expect))
    }
}

/// The results of a row in the file: the names of its criteria, and whether it passed them, if they were applied.
fn results(row: &Value) -> Vec<(&str, Option<bool>)> {
    let listed = row.get("results").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_known = listed.iter().any(|one| one.get("passed").is_some());
    let read = listed.iter().filter(|_| is_known).map(|one| {
        let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
        (name, one.get("passed").and_then(Value::as_bool))
    });
    read.collect()
}

/// Adds to `answer` what a testing criterion expects, or returns why no expectation says the same.
///
/// # Errors
/// If the row lacks a member that the criterion names.
fn translated(criterion: &Value, item: &Value, answer: &mut AnswerExpectation) -> Result<Option<String>, RowError> {
    let word = |name: &str| criterion.get(name).and_then(Value::as_str).unwrap_or_default();
    Ok(Some(match word("type") {
        "string_check" => {
            let names_output = |side: &str| names(word(side)).iter().any(|name| name.starts_with("sample."));
            let is_output = |side: &str| only(word(side)) == Some(OUTPUT);
            let reference = match (is_output("input"), is_output("reference")) {
                (true, false) if !names_output("reference") => rendered(word("reference"), item)?,
                (false, true) if matches!(word("operation"), "eq" | "ne") && !names_output("input") => {
                    rendered(word("input"), item)?
                }
                _ => return Ok(Some(format!("only checks of `{{{{{OUTPUT}}}}}` against the row are expectations"))),
            };
            let pattern = regex::escape(&reference);
            match word("operation") {
                "eq" => answer.matches.push(format!(r"\A{pattern}\z")),
                "like" | "ilike" if reference.is_empty() => {
                    return Ok(Some("its reference is empty, so any answer passes".to_owned()));
                }
                "like" => {
                    answer.exact = true;
                    answer.contains.push(reference);
                }
                "ilike" => answer.matches.push(format!("(?i){pattern}")),
                "ne" => return Ok(Some("no expectation says that an answer differs from a text".to_owned())),
                other => return Ok(Some(format!("its operation `{}` is not known", quote(other, 40)))),
            }
            return Ok(None);
        }
        "text_similarity" => format!("no expectation measures similarity (`{}`)", quote(word("evaluation_metric"), 40)),
        "label_model" | "score_model" => {
            "a model grades it: write its question as a rubric, and run `ragcheck judge`".to_owned()
        }
        "python" => "code from a file is not run".to_owned(),
        _ => "its type is not known".to_owned(),
    }))
}

/// What a template names, without braces and spaces.
fn names(template: &str) -> Vec<String> {
    let found = NAMED.as_ref().map(|named| named.captures_iter(template));
    found.into_iter().flatten().map(|found| found[1].to_owned()).collect()
}

/// The name that is the whole template.
fn only(template: &str) -> Option<&str> {
    let inner = template.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    (!inner.contains(['{', '}'])).then_some(inner)
}

/// A template with the members of a row.
///
/// # Errors
/// If the row lacks one.
fn rendered(template: &str, item: &Value) -> Result<String, RowError> {
    let Some(named) = NAMED.as_ref() else { return Ok(template.to_owned()) };
    let (mut text, mut end) = (String::new(), 0);
    for found in named.captures_iter(template) {
        let (whole, name) = (found.get(0).map_or(0..0, |whole| whole.range()), &found[1]);
        let value = member(item, name).ok_or_else(|| RowError::NoMember(quote(name, 80)))?;
        text.push_str(&template[end..whole.start]);
        text.push_str(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        end = whole.end;
    }
    text.push_str(&template[end..]);
    Ok(text)
}

/// The member of a row: `item.a.b[0]`.
fn member<'i>(item: &'i Value, name: &str) -> Option<&'i Value> {
    let path = name.strip_prefix("item")?.replace('[', ".").replace(']', "");
    path.split('.').filter(|part| !part.is_empty()).try_fold(item, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

/// The messages that a run sends for a row.
fn rendered_messages(template: &Value, item: &Value) -> Result<Vec<Value>, RowError> {
    if let Some(reference) = template.get("item_reference").and_then(Value::as_str) {
        let found = member(item, reference).and_then(Value::as_array).cloned();
        return found.ok_or_else(|| RowError::NoMessages(quote(reference, 80)));
    }
    let listed = template.get("template").unwrap_or(template).as_array();
    let listed = listed.ok_or(RowError::NoTemplate)?;
    let message = |message: &Value| {
        let role = message.get("role").and_then(Value::as_str).ok_or(RowError::Message)?;
        let text = text_of(message.get("content")).ok_or(RowError::Message)?;
        Ok(json!({"role": role, "content": rendered(&text, item)?}))
    };
    listed.iter().map(message).collect()
}

/// The text of a message's content: a text, a part, or parts.
fn text_of(content: Option<&Value>) -> Option<String> {
    match content? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            parts.iter().map(|part| text_of(Some(part))).collect::<Option<Vec<_>>>().map(|all| all.join("\n"))
        }
        part => Some(part.get("text")?.as_str()?.to_owned()),
    }
}

/// The messages that a sample answered with, and why its completion ended.
fn finished(sample: &Value) -> Result<Vec<Value>, RowError> {
    let mut messages = answered(sample)?;
    if let (Some(finish), Some(last)) = (finish_of(sample), messages.last_mut().and_then(Value::as_object_mut)) {
        last.entry("finish_reason").or_insert_with(|| finish.into());
    }
    Ok(messages)
}

/// The messages that a sample answered with.
fn answered(sample: &Value) -> Result<Vec<Value>, RowError> {
    if let Some(error) = sample.get("error").filter(|error| !error.is_null()) {
        let words = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
        return Err(RowError::Failed(quote(&words, 160)));
    }
    if let Some(output) = sample.get("output").and_then(Value::as_array).filter(|output| !output.is_empty()) {
        return Ok(output.clone());
    }
    if let Some(message) = sample.pointer("/choices/0/message").filter(|message| message.is_object()) {
        return Ok(vec![message.clone()]);
    }
    let text = sample.get("output_text").and_then(Value::as_str);
    let calls = sample.get("output_tools").and_then(Value::as_array).filter(|calls| !calls.is_empty());
    if text.is_none() && calls.is_none() {
        return Err(RowError::NoOutput);
    }
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), json!(text))]);
    message.extend(calls.map(|calls| ("tool_calls".to_owned(), calls.clone().into())));
    Ok(vec![Value::Object(message)])
}
