//! Infers search results that no message to the model shows: two-stage agents put the passages into the system prompt
//! of their next request, and name them in their reply.
//!
//! A source of the reply that appears in the prompt, by its text or by its name, was retrieved. So was a passage of a
//! JSON list in the prompt. Documents in the reply of an agent that did not call its model again were retrieved too,
//! but only the reply shows which. Nothing else is evidence.

use super::decoder::{passages, words_and_names};
use serde_json::Value;
use std::collections::BTreeSet;

/// Letters of a passage that are enough to find it; a shorter passage must appear whole.
const ENOUGH: usize = 80;
/// Minimum letters of a text or name; shorter ones would match by chance.
const LEAST_WORDS: usize = 12;
const LEAST_NAME: usize = 3;
/// Maximum number of list openings tried in one prompt.
const MOST_LISTS: usize = 50;

/// Retrieved passages, by the kind of evidence.
#[derive(Debug, PartialEq)]
pub(super) enum Retrieved {
    /// Passages that the model was shown.
    Shown(Value),
    /// Documents that only the reply shows.
    Replied(Value),
}

/// Passages that the searches of a turn returned, by the sources of its reply and the texts sent to the model; `None`
/// without evidence. If `by_name`, a source is also found there by its name, and so is a list of passages: whoever can search
/// may be told names and examples.
pub(super) fn retrieved(replied: Option<&Value>, told: &[String], by_name: bool) -> Option<Retrieved> {
    let sources: &[Value] = replied.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let prompts: Vec<String> = told.iter().map(|text| plain(text)).collect();
    let shown: Vec<Value> = sources.iter().filter(|source| stands_in(source, &prompts, by_name)).cloned().collect();
    if !shown.is_empty() {
        return Some(Retrieved::Shown(Value::Array(shown.iter().map(|source| as_passage(source, told)).collect())));
    }
    if let Some(list) = told.iter().filter(|_| by_name).find_map(|text| listed(text)) {
        return Some(Retrieved::Shown(list));
    }
    let documents = !sources.is_empty() && sources.iter().all(|source| words_and_names(source).0.is_some());
    (told.is_empty() && documents).then(|| Retrieved::Replied(Value::Array(sources.to_vec())))
}

/// Turns a source that is only a name into a passage of that name, with what stands beside it in the prompt.
fn as_passage(source: &Value, told: &[String]) -> Value {
    let mut passage = if source.is_object() { source.clone() } else { serde_json::json!({ "id": source }) };
    let (words, names) = words_and_names(source);
    if let (None, Some(text), Some(members)) = (words, beside(&names, told), passage.as_object_mut()) {
        members.insert("text".to_owned(), text.into());
    }
    passage
}

/// What a prompt shows beside the first of the names: the passages below it if it stands in their heads, else from the
/// beginning of its line to the next empty line. The end says then that it may be a part of the passage.
fn beside(names: &[String], told: &[String]) -> Option<String> {
    told.iter().find_map(|text| {
        let at = names.iter().find_map(|name| places_alone(name, text).next())?;
        let from = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = &text[from..];
        below_heads(names, text).or_else(|| Some(plain(&rest[..rest.find("\n\n").unwrap_or(rest.len())]) + "…"))
    })
}

/// The passages below heads that hold one of the names, in the form of LlamaIndex: between two equal lines of dashes, each head
/// of `name: value` lines, an empty line, and the passage. `None` for another form.
fn below_heads(names: &[String], text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &str| line.len() >= 10 && line.bytes().all(|byte| byte == b'-');
    let begin = lines.iter().position(|line| is_rule(line))?;
    let end = begin + 1 + lines[begin + 1..].iter().position(|line| *line == lines[begin])?;
    let block = &lines[begin + 1..end];
    let of_name = |letter: char| letter.is_alphanumeric() || "_- ".contains(letter);
    let member =
        |line: &str| line.split_once(": ").map(|(name, _)| name.to_owned()).filter(|name| name.chars().all(of_name));
    let head = |lines: &[&str]| -> Vec<String> { lines.iter().map_while(|line| member(line)).collect() };
    let form = head(block);
    let is_head = |at: usize| {
        let starts = at == 0 || block[at - 1].trim().is_empty();
        let ends = block.get(at + form.len()).is_some_and(|line| line.trim().is_empty());
        starts && ends && head(&block[at..]) == form
    };
    let heads: Vec<usize> = (0..block.len()).filter(|at| !form.is_empty() && is_head(*at)).collect();
    let ends = heads.iter().copied().skip(1).chain([block.len()]);
    let passages = heads.iter().zip(ends).filter_map(|(at, next)| {
        let (head, passage) = block[*at..next].split_at(form.len());
        let head = head.join("\n");
        names.iter().any(|name| places_alone(name, &head).next().is_some()).then(|| passage.join(" "))
    });
    let found = plain(&passages.collect::<Vec<_>>().join(" "));
    (!found.is_empty()).then_some(found)
}

/// The numbers of a text, as their digits without zeros in front.
pub(super) fn numbers(text: &str) -> BTreeSet<String> {
    let text = text.replace(',', "");
    let runs = text.split(|letter: char| !letter.is_ascii_digit()).filter(|run| !run.is_empty());
    runs.map(|run| run.trim_start_matches('0').to_owned()).filter(|number| !number.is_empty()).collect()
}

fn stands_in(source: &Value, prompts: &[String], by_name: bool) -> bool {
    let (words, names) = words_and_names(source);
    let words = words.map(plain).filter(|words| words.chars().count() >= LEAST_WORDS);
    let beginning = words.map(|words| {
        let whole = words.trim_end_matches(['.', '…']);
        whole.chars().take(ENOUGH).collect::<String>()
    });
    let named = |prompt: &String| by_name && names.iter().any(|name| stands_alone(name, prompt));
    prompts.iter().any(|prompt| beginning.as_ref().is_some_and(|words| prompt.contains(words)) || named(prompt))
}

/// Whether a name occurs in a text other than as part of a longer name.
fn stands_alone(name: &str, text: &str) -> bool {
    let name = plain(name);
    name.chars().count() >= LEAST_NAME
        && !name.chars().all(|letter| letter.is_ascii_digit())
        && places_alone(&name, text).next().is_some()
}

/// Places of a text other than within a longer word.
pub(super) fn places_alone<'t>(name: &'t str, text: &'t str) -> impl Iterator<Item = usize> + 't {
    let letter = |letter: char| letter.is_alphanumeric();
    let places = text.match_indices(name).map(|(at, _)| at);
    places.filter(move |at| !text[..*at].ends_with(letter) && !text[at + name.len()..].starts_with(letter))
}

/// The first JSON list of passages in a text.
fn listed(text: &str) -> Option<Value> {
    let starts = text.char_indices().filter(|(_, letter)| matches!(letter, '[' | '{')).take(MOST_LISTS);
    starts.map(|(at, _)| at).find_map(|at| {
        let value = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok()?;
        passages(&value).filter(|found| !found.is_empty()).map(|_| value)
    })
}

/// Collapses white space to single spaces.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PROMPT: &str = "Answer ONLY from these.\n\n[1] (manual.md) The press is\n serviced every 500 hours.";

    fn told(replied: &Value, prompt: &str) -> Option<Retrieved> {
        retrieved(Some(replied), &[prompt.to_owned()], true)
    }

    #[test]
    fn a_source_of_the_reply_that_stands_in_the_prompt_was_retrieved_and_the_others_were_not_shown() {
        let shown = json!({"id": "m#4", "text": "The press is serviced every 500 hours."});
        let other = json!({"id": "m#9", "text": "The lathe is oiled once a week."});
        assert_eq!(told(&json!([other, shown]), PROMPT), Some(Retrieved::Shown(json!([shown]))));
        let cut = json!([{"id": "m#4", "text": "The press is serviced every 500..."}]);
        assert_eq!(told(&cut, PROMPT), Some(Retrieved::Shown(cut.clone())));
        assert_eq!(
            told(&json!(["manual.md"]), PROMPT),
            Some(Retrieved::Shown(json!([
            {"id": "manual.md", "text": "[1] (manual.md) The press is serviced every 500 hours.…"}])))
        );
        for nothing in [json!([other]), json!(["1"]), json!(["anual.md"]), json!([]), Value::Null] {
            assert_eq!(told(&nothing, PROMPT), None, "{nothing}");
        }
    }

    #[test]
    fn a_name_in_a_head_has_the_passage_below_it_up_to_the_next_head_or_a_line_of_dashes() {
        let prompt = "Context information is below.\n---------------------\npage_label: 2\nfile_name: refunds.md\n\nA battery can be \
                      returned.\n\nWithin 30 days: yes.\n\npage_label: 1\nfile_name: warranty.md\n\nIt lasts 24 months.\n\
                      ---------------------\nQuery: How long?";
        let shown = |name: &str, text: &str| Some(Retrieved::Shown(json!([{"id": name, "text": text}])));
        let refunds = "A battery can be returned. Within 30 days: yes.";
        assert_eq!(told(&json!(["refunds.md"]), prompt), shown("refunds.md", refunds));
        assert_eq!(told(&json!(["warranty.md"]), prompt), shown("warranty.md", "It lasts 24 months."));
        let twice = "----------\nfile_name: refunds.md\n\nIt is new.\n\nfile_name: a.md\n\nNo: none.\n\nfile_name: refunds.md\n\nIt is red.\n----------";
        assert_eq!(told(&json!(["refunds.md"]), twice), shown("refunds.md", "It is new. It is red."));
        let words = "Files: warranty.md, refunds.md\n\nYou are a helper.\n----------\nIt lasts.\n----------";
        assert_eq!(told(&json!(["refunds.md"]), words), shown("refunds.md", "Files: warranty.md, refunds.md…"));
        let behind = "Content: It lasts 24 months.\nSource: warranty.md\n\nContent: Free for 30 days.\nSource: refunds.md\n\nQuestion: How long?";
        assert_eq!(told(&json!(["warranty.md"]), behind), shown("warranty.md", "Source: warranty.md…"));
        assert_eq!(told(&json!(["refunds.md"]), behind), shown("refunds.md", "Source: refunds.md…"));
    }

    #[test]
    fn a_list_of_passages_in_json_within_the_prompt_is_read() {
        let list = json!({"chunks": [{"id": "a#1", "text": "so"}]});
        let prompt = format!("Use [these] {{facts}}:\n{list}\nAnswer briefly.");
        assert_eq!(retrieved(None, &[prompt], true), Some(Retrieved::Shown(list)));
        assert_eq!(retrieved(None, &["No documents were found.".to_owned()], true), None);
    }

    #[test]
    fn documents_in_the_reply_say_that_they_were_retrieved_where_the_model_was_not_asked_again() {
        let documents = json!([{"id": "a#1", "text": "so it is, and so it was"}]);
        assert_eq!(retrieved(Some(&documents), &[], true), Some(Retrieved::Replied(documents.clone())));
        assert_eq!(retrieved(Some(&json!(["a#1"])), &[], true), None, "a name may come from anywhere");
        assert_eq!(told(&documents, "Another prompt, and nothing of it."), None);
    }
}
