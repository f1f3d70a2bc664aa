//! Secrets in variables that no project names, by the names of the variables.

use std::path::Path;

/// Name suffixes of variables that hold secrets.
const SECRET_NAMES: [&str; 10] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "_PASS", "_PAT", "_AUTH", "CREDENTIALS", "WEBHOOK_URL"];
/// Minimum length of their values.
const LONG: usize = 16;

/// Whether a variable of that name holds a secret.
pub(crate) fn looks_secret(name: &str, value: &str) -> bool {
    let says = SECRET_NAMES.iter().any(|end| name.to_ascii_uppercase().ends_with(end));
    let looks = value.len() >= LONG
        && value.chars().any(|letter| letter.is_ascii_digit())
        && value.chars().any(|letter| letter.is_ascii_alphabetic())
        && !value.contains([' ', '\\'])
        && !Path::new(value).exists();
    says && looks
}
