//! The one place that knows the YAML library.
//!
//! Booleans are `true` and `false` only, numbers with leading zeros or underscores are text, a repeated key is an
//! error, and a document may hold about as many nodes as it has characters, so that aliases cannot blow it up.

use super::diagnostic::{Diagnostic, Place, did_you_mean};
use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error};

/// Reads one document.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Box<Error>> {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_nodes = text.len() + 1_000;
    budget.max_events = 4 * text.len() + 4_000;
    budget.max_depth = super::node::DEPTH;
    let options = serde_saphyr::options! {
        budget: Some(budget),
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(Box::new)
}

/// Whether the text is no YAML at all, or too much of it: then there is nothing more to look at.
pub(super) fn is_hopeless(error: &Error) -> bool {
    match error.without_snippet() {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::MultipleDocuments { .. } => true,
        Error::AliasError { error, .. } => is_hopeless(error),
        _ => false,
    }
}

/// The library's error in our words.
pub(super) fn diagnose(error: &Error, file: &str, text: &str) -> Diagnostic {
    let mut error = error.without_snippet();
    while let Error::AliasError { error: inner, .. } = error {
        error = inner.without_snippet();
    }
    let (code, message, label) = match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            ("unknown-key", format!("unknown key `{field}`"), Some(did_you_mean(field, expected.iter().copied())))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            ("unknown-word", format!("unknown word `{variant}`"), Some(did_you_mean(variant, expected.iter().copied())))
        }
        Error::SerdeMissingField { field, .. } => ("missing-key", format!("the key `{field}` is missing"), None),
        Error::DuplicateMappingKey { key, .. } => (
            "duplicate-key",
            key.as_ref()
                .map_or_else(|| "a key is written twice".into(), |key| format!("the key `{key}` is written twice")),
            Some("remove one of the two".into()),
        ),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            ("wrong-type", format!("expected {expected}, found {unexpected}"), None)
        }
        Error::MultipleDocuments { .. } => {
            ("syntax", "the file holds several documents (`---`): one file, one document".into(), None)
        }
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } | Error::AliasExpansionLimitExceeded { .. } => {
            ("too-large", "the document is too deep, or its aliases make it too large".into(), None)
        }
        Error::Eof { .. } => ("syntax", "the file is empty, or ends too early".into(), None),
        Error::InvalidBooleanStrict { .. } => ("wrong-type", "expected `true` or `false`".into(), None),
        other => ("syntax", format!("not valid YAML here: {}", plain(&other.render())), None),
    };
    let mut diagnostic = Diagnostic::error(code, file, message);
    diagnostic.label = label;
    match error.location() {
        Some(location) if location.line() > 0 => {
            let length = location.span().len().clamp(1, 200) as u32;
            let place = Place { line: location.line() as u32, column: location.column() as u32, length };
            diagnostic.at(text, place)
        }
        _ => diagnostic,
    }
}

/// The first line of the library's own text, without the place that we print ourselves.
fn plain(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let end = [" at line ", " at byte "].iter().filter_map(|mark| first.find(mark)).min().unwrap_or(first.len());
    let start = first.strip_prefix("line ").and_then(|_| first.find(": ")).map_or(0, |colon| colon + 2);
    first.get(start.min(end)..end).unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn words_that_look_like_numbers_or_booleans_stay_words() {
        let value: Value = read("[no, yes, 012, 1_000, true, 12, 1.5]").expect("YAML");
        assert_eq!(value, json!(["no", "yes", "012", "1_000", true, 12, 1.5]));
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let level = |level: usize| {
            let below = if level == 0 { "x".to_owned() } else { format!("*a{}", level - 1) };
            format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(", "))
        };
        let text: String = (0..9).map(level).collect();
        let error = read::<Value>(&text).expect_err("a bomb");
        assert!(is_hopeless(&error), "{error:?}");
        assert_eq!(diagnose(&error, "a.yaml", &text).code, "too-large");
    }

    #[test]
    fn a_repeated_key_is_an_error_with_its_line() {
        let error = read::<Value>("a: 1\na: 2\n").expect_err("twice");
        let diagnostic = diagnose(&error, "a.yaml", "a: 1\na: 2\n");
        assert_eq!((diagnostic.code, diagnostic.place.map(|place| place.line)), ("duplicate-key", Some(2)));
    }
}
