//! Keys that an agent's headers told while recording, in another trial or before the first turn: the recording has their marks,
//! and the request has them where the marks stand.

use super::{Request, StoredRequest};
use crate::platform::secrets::{MARK, query_keys};
use serde_json::Value;

/// Beginning of the names of keys that an agent told.
const OF_AGENT: &str = "agent's ";

/// The keys of a request that stand where the recorded one has marks of an agent's keys, under the names of these.
pub(crate) fn masked_keys(recorded: &StoredRequest, request: Request<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    found.extend(in_text(&recorded.path, request.path));
    in_value(&recorded.body, request.body, &mut found);
    found
}

fn in_value(recorded: &Value, now: &Value, found: &mut Vec<(String, String)>) {
    match (recorded, now) {
        (Value::String(recorded), Value::String(now)) => found.extend(in_text(recorded, now)),
        (Value::Array(recorded), Value::Array(now)) => {
            recorded.iter().zip(now).for_each(|(recorded, now)| in_value(recorded, now, found));
        }
        (Value::Object(recorded), Value::Object(now)) => {
            for (name, recorded) in recorded {
                if let Some(now) = now.get(name) {
                    in_value(recorded, now, found);
                }
            }
        }
        _ => {}
    }
}

/// The key in the place of the first mark.
fn in_text(recorded: &str, now: &str) -> Option<(String, String)> {
    let (before, marked) = recorded.split_once(MARK)?;
    let (name, after) = marked.split_once(']').filter(|(name, _)| name.starts_with(OF_AGENT))?;
    let rest = now.strip_prefix(before)?;
    let key = match after.split_once(MARK) {
        None => rest.strip_suffix(after)?,
        Some((between, _)) => rest.split_once(between).filter(|_| !between.is_empty())?.0,
    };
    query_keys::is_surely_key(key).then(|| (name.to_owned(), key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_where_the_recording_has_its_mark_and_other_words_do_not() {
        const KEY: &str = "3f9Kd93mQzLx82TnPw7K";
        let found = |recorded: &str, now: &str| in_text(recorded, now).map(|(name, key)| format!("{name}={key}"));
        let whole = Some(format!("agent's authorization={KEY}"));
        assert_eq!(found("[redacted:agent's authorization]", KEY), whole);
        assert_eq!(found("use [redacted:agent's authorization], please", &format!("use {KEY}, please")), whole);
        let twice = "[redacted:agent's authorization] and [redacted:agent's authorization]";
        assert_eq!(found(twice, &format!("{KEY} and {KEY}")), whole);
        for (recorded, now) in [
            ("no mark", KEY),
            ("[redacted:SERVICE]", KEY),
            ("[redacted:agent's authorization]", "what is the warranty"),
            ("[redacted:agent's authorization]", "customer-00123-of-acme"),
            ("use [redacted:agent's authorization]", KEY),
            ("[redacted:agent's authorization].", KEY),
        ] {
            assert_eq!(found(recorded, now), None, "{recorded}: {now}");
        }
    }
}
