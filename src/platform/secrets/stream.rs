//! Secrets split across the events of a stream.
//!
//! The values at the same position in successive events (a delta's text, the arguments of one call) are joined into one
//! text. If it holds a secret, the first piece becomes the redacted whole, and the others become empty: the joined text
//! stays correct, and only the arrival of these pieces is lost.

use super::Redactor;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Members that distinguish streams within a stream: choices, calls, blocks.
const APART: [&str; 5] = ["index", "output_index", "content_index", "item_id", "contentBlockIndex"];

/// Pieces of one text: line, and position in that line's event.
type Pieces = Vec<(usize, String, String)>;

/// The stream without secrets in its joined pieces; `None` if there are none, or if it is not a stream of JSON events
/// (server-sent or newline-delimited).
pub(crate) fn redact_stream(text: &str, redactor: &Redactor) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut events: BTreeMap<usize, Value> = lines
        .iter()
        .enumerate()
        .filter_map(|(number, line)| {
            let data = line.strip_prefix("data:").or_else(|| line.starts_with('{').then_some(line))?;
            Some((number, serde_json::from_str(data.trim()).ok()?))
        })
        .collect();
    let mut texts: BTreeMap<String, Pieces> = BTreeMap::new();
    for (number, event) in &events {
        let mut place = Place::default();
        place.collect(event, &mut |key, pointer, piece| {
            texts.entry(key).or_default().push((*number, pointer, piece.to_owned()));
        });
    }
    let mut changed = Vec::new();
    for pieces in texts.into_values().filter(|pieces| pieces.len() > 1) {
        let whole: String = pieces.iter().map(|(_, _, piece)| piece.as_str()).collect();
        let split = !redactor.is_clean(&whole) && pieces.iter().all(|(_, _, piece)| redactor.is_clean(piece));
        if !split {
            continue;
        }
        let mut rest = Some(redactor.redact(&whole).into_owned());
        for (number, pointer, _) in pieces {
            if let Some(piece) = events.get_mut(&number).and_then(|event| event.pointer_mut(&pointer)) {
                *piece = Value::String(rest.take().unwrap_or_default());
                changed.push(number);
            }
        }
    }
    if changed.is_empty() {
        return None;
    }
    let written = lines.iter().enumerate().map(|(number, line)| match events.get(&number) {
        Some(event) if changed.contains(&number) && line.starts_with('{') => event.to_string(),
        Some(event) if changed.contains(&number) => format!("data: {event}"),
        _ => (*line).to_owned(),
    });
    Some(written.collect::<Vec<_>>().join("\n"))
}

/// Position in an event: a pointer, and a key that is equal in all events.
#[derive(Default)]
struct Place {
    pointer: String,
    key: String,
}

impl Place {
    fn collect(&mut self, value: &Value, seen: &mut impl FnMut(String, String, &str)) {
        match value {
            Value::String(text) => seen(self.key.clone(), self.pointer.clone(), text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(&index.to_string(), item, seen);
                }
            }
            Value::Object(entries) => {
                let length = self.key.len();
                for name in APART {
                    if let Some(value) = entries.get(name) {
                        // Writing to memory cannot fail.
                        let _ = write!(self.key, "[{name}={value}]");
                    }
                }
                for (name, value) in entries {
                    self.below(&name.replace('~', "~0").replace('/', "~1"), value, seen);
                }
                self.key.truncate(length);
            }
            _ => {}
        }
    }

    fn below(&mut self, step: &str, value: &Value, seen: &mut impl FnMut(String, String, &str)) {
        let (key, pointer) = (self.key.len(), self.pointer.len());
        for path in [&mut self.key, &mut self.pointer] {
            path.push('/');
            path.push_str(step);
        }
        self.collect(value, seen);
        self.key.truncate(key);
        self.pointer.truncate(pointer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const SECRET: &str = "planted-Key/0451+more";

    fn redactor() -> Redactor {
        Redactor::new([("SERVICE_KEY".to_owned(), SECRET.to_owned())])
    }

    fn stream(pieces: &[&str]) -> String {
        let event = |piece: &&str| json!({"id": "c", "choices": [{"index": 0, "delta": {"content": piece}}]});
        let events: Vec<String> = pieces.iter().map(|piece| format!("data: {}\n\n", event(piece))).collect();
        events.concat() + "data: [DONE]\n\n"
    }

    fn told(stream: &str) -> String {
        let events = stream.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        events.filter_map(|event| Some(event.pointer("/choices/0/delta/content")?.as_str()?.to_owned())).collect()
    }

    #[test]
    fn newline_delimited_items_are_read_together_too() {
        let item = |piece: &str| format!("{}\n", json!({"item": {"type": "answer", "text": piece}}));
        let (front, back) = SECRET.split_at(7);
        let text = [item("The key is "), item(front), item(back), item(".")].concat();
        let clean = redactor().redact_body(text.as_bytes()).expect("redacted");
        let clean = String::from_utf8(clean).expect("text");
        let lines: Vec<Value> = clean.lines().map(|line| serde_json::from_str(line).expect("still JSON")).collect();
        let told: String = lines.iter().filter_map(|line| line.pointer("/item/text")?.as_str()).collect();
        assert_eq!((told.as_str(), lines.len()), ("The key is [redacted:SERVICE_KEY].", 4));
        assert_eq!(redactor().redact_body(clean.as_bytes()), None, "redacting twice is redacting once");
    }

    #[test]
    fn two_calls_whose_pieces_alternate_keep_their_own_arguments() {
        let event = |index: u64, piece: &str| {
            let call = json!({"index": index, "function": {"arguments": piece}});
            format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
        };
        let (front, back) = SECRET.split_at(9);
        let text = [event(0, front), event(1, "plain "), event(0, back), event(1, "words")].concat();
        let clean = redact_stream(&text, &redactor()).expect("redacted");
        let expected = [event(0, "[redacted:SERVICE_KEY]"), event(1, "plain "), event(0, ""), event(1, "words")];
        assert_eq!(clean, expected.concat());
        // Values of different streams are never joined.
        let apart = [event(0, front), event(1, back)].concat();
        assert_eq!(redact_stream(&apart, &redactor()), None);
    }

    #[test]
    fn what_is_no_stream_of_events_is_left_alone() {
        for text in ["", "plain text", "data: not json\n\n", &stream(&["harmless ", "words"])] {
            assert_eq!(redact_stream(text, &redactor()), None);
        }
    }

    proptest! {
        #[test]
        fn however_a_secret_is_cut_nothing_of_it_is_told_and_the_rest_is(
            cuts in proptest::collection::btree_set(1..SECRET.len(), 1..5),
            before in "[a-z ]{0,10}", after in "[a-z ]{0,10}",
        ) {
            let mut pieces = vec![before.as_str()];
            let mut start = 0;
            for cut in cuts.iter().copied().chain([SECRET.len()]) {
                pieces.push(&SECRET[start..cut]);
                start = cut;
            }
            pieces.push(&after);
            let clean = redact_stream(&stream(&pieces), &redactor()).expect("redacted");
            prop_assert_eq!(told(&clean), format!("{before}[redacted:SERVICE_KEY]{after}"));
        }
    }
}
