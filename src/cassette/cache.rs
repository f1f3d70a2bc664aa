//! Hashes of system prompts and tool lists: long, and the same in request after request of a process.

use super::canonical::{canonical, hex};
use crate::secrets::Redactor;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::{PoisonError, RwLock};

/// Hashes of long values that come again and again, compared as values, the newest last.
static REMEMBERED: RwLock<Vec<(Value, String)>> = RwLock::new(Vec::new());
/// More distinct prompts and tool lists than this are hashed anew each time.
const REMEMBERED_AT_MOST: usize = 64;

/// The hash of a value's canonical form, redacted.
pub(super) fn remembered(value: &Value, redactor: &Redactor) -> String {
    {
        let known = REMEMBERED.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hash)) = known.iter().find(|(candidate, _)| same(candidate, value)) {
            return hash.clone();
        }
    }
    let plain = canonical(value);
    let clean = std::str::from_utf8(&plain).is_ok_and(|text| redactor.is_surely_clean(text));
    if !clean {
        return hex(&Sha256::digest(canonical(&redactor.redact_value(value))), 64);
    }
    let hash = hex(&Sha256::digest(&plain), 64);
    let mut known = REMEMBERED.write().unwrap_or_else(PoisonError::into_inner);
    if known.len() < REMEMBERED_AT_MOST && !known.iter().any(|(candidate, _)| same(candidate, value)) {
        known.push((value.clone(), hash.clone()));
    }
    hash
}

/// Equality that is quick where members stand in the same order, as they do when one program made both.
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
