//! Hashes of system prompts and tool lists, which are long and repeat in most requests of a lane.

use super::digest::{canonical, digest};
use crate::platform::secrets::Redactor;
use serde_json::Value;

/// Maximum number of hashes kept; further distinct prompts and tool lists are hashed on every use.
const KEPT_AT_MOST: usize = 64;

/// Hashes of values, found by equality. All belong to one redactor: another may know other keys.
#[derive(Debug, Default)]
pub(super) struct PartHashes(Vec<(Value, String)>);

impl PartHashes {
    /// The hash of a value's canonical form, redacted.
    pub(super) fn of(&mut self, value: &Value, redactor: &Redactor) -> String {
        if let Some((_, hash)) = self.0.iter().find(|(candidate, _)| same(candidate, value)) {
            return hash.clone();
        }
        let plain = canonical(value);
        let clean = std::str::from_utf8(&plain).is_ok_and(|text| redactor.is_surely_clean(text));
        let hash = if clean { digest(plain, 64) } else { digest(canonical(&redactor.redact_value(value)), 64) };
        if self.0.len() < KEPT_AT_MOST {
            self.0.push((value.clone(), hash.clone()));
        }
        hash
    }
}

/// Equality that is fast if members have the same order, as in values from one program.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((a, x), (b, y))| a == b && same(x, y))
        }
        (Value::Array(_) | Value::Object(_), _) => false,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_over_the_redacted_text_and_is_the_same_the_second_time() {
        let prompt = Value::from("Search with only-in-this-prompt-4711 first.");
        let key = Redactor::new([("KEY".to_owned(), "only-in-this-prompt-4711".to_owned())]);
        let (mut plain, mut redacted) = (PartHashes::default(), PartHashes::default());
        let marked = Value::from("Search with [redacted:KEY] first.");
        for _ in 0..2 {
            assert_eq!(redacted.of(&prompt, &key), plain.of(&marked, &Redactor::default()));
            assert_ne!(redacted.of(&prompt, &key), plain.of(&prompt, &Redactor::default()));
        }
        assert_eq!((plain.0.len(), redacted.0.len()), (2, 1));
    }
}
