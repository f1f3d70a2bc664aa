//! Parses a document directly into its type, the usual path for valid documents.
//!
//! Only `true` and `false` are booleans, numbers with leading zeros or underscores are text, and a repeated key is an
//! error. A document may have about as many nodes as characters, so that aliases cannot expand without limit.

use super::error::ReadError;
use serde::de::DeserializeOwned;
use serde_saphyr::DuplicateKeyPolicy;

/// Maximum nesting depth.
const DEPTH: usize = 64;

/// Parses one document; stops at the first mistake.
///
/// # Errors
/// [`ReadError`] with the mistake and its position.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_nodes = text.len() + 1_000;
    budget.max_events = 4 * text.len() + 4_000;
    budget.max_depth = DEPTH;
    let options = serde_saphyr::options! {
        budget: Some(budget),
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        // `!!binary` of imported recordings stays base64 here, and is decoded where it is used.
        ignore_binary_tag_for_string: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| ReadError::from(&error))
}

#[cfg(test)]
mod tests {
    use super::super::error::Problem;
    use super::*;
    use crate::platform::yaml::alias_bomb;
    use serde_json::{Value, json};

    #[test]
    fn words_that_look_like_numbers_or_booleans_stay_words() {
        let value: Value = read("[no, yes, 012, 1_000, true, 12, 1.5]").expect("YAML");
        assert_eq!(value, json!(["no", "yes", "012", "1_000", true, 12, 1.5]));
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        assert_eq!(read::<Value>(&alias_bomb()).expect_err("a bomb").problem, Problem::TooLarge);
    }

    #[test]
    fn a_repeated_key_is_an_error_with_its_line() {
        let error = read::<Value>("a: 1\na: 2\n").expect_err("twice");
        assert_eq!(error.problem, Problem::RepeatedKey(Some("a".to_owned())));
        assert_eq!(error.place.map(|place| place.line), Some(2));
    }
}
