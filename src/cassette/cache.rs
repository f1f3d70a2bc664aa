//! Caches hashes of system prompts and tool lists, which are long and repeat in most requests of a process.

use super::canonical::{canonical, hex};
use crate::platform::secrets::Redactor;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::{PoisonError, RwLock};

/// Hashes of recently used values, newest last, looked up by equality. Each entry has the redactor that was applied,
/// because another redactor may know other keys.
static REMEMBERED: RwLock<Vec<(Value, Redactor, String)>> = RwLock::new(Vec::new());
/// Maximum number of cached hashes; further distinct prompts and tool lists are hashed on every use.
const REMEMBERED_AT_MOST: usize = 64;

/// The hash of a value's canonical form, redacted.
pub(super) fn remembered(value: &Value, redactor: &Redactor) -> String {
    let known = |(candidate, looked_for, _): &&(Value, Redactor, String)| {
        same(candidate, value) && looked_for.knows_the_same_as(redactor)
    };
    if let Some((.., hash)) = REMEMBERED.read().unwrap_or_else(PoisonError::into_inner).iter().find(known) {
        return hash.clone();
    }
    let plain = canonical(value);
    let clean = std::str::from_utf8(&plain).is_ok_and(|text| redactor.is_surely_clean(text));
    if !clean {
        return hex(&Sha256::digest(canonical(&redactor.redact_value(value))), 64);
    }
    let hash = hex(&Sha256::digest(&plain), 64);
    let mut remembered = REMEMBERED.write().unwrap_or_else(PoisonError::into_inner);
    if remembered.len() < REMEMBERED_AT_MOST && !remembered.iter().any(|one| known(&one)) {
        remembered.push((value.clone(), redactor.clone(), hash.clone()));
    }
    hash
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
    fn a_value_that_was_hashed_without_a_key_is_looked_through_for_it_again() {
        let prompt = Value::from("Search with only-in-this-prompt-4711 first.");
        let key = Redactor::new([("KEY".to_owned(), "only-in-this-prompt-4711".to_owned())]);
        let plain = remembered(&prompt, &Redactor::default());
        let redacted = remembered(&prompt, &key);
        assert_ne!(plain, redacted);
        assert_eq!(redacted, remembered(&Value::from("Search with [redacted:KEY] first."), &Redactor::default()));
        assert_eq!(plain, remembered(&prompt, &Redactor::default()));
    }
}
