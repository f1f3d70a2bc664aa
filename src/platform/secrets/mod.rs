//! Finds and removes secrets before anything is written or printed.
//!
//! [`Redactor`] knows secrets by value and finds them in every spelling of `spellings`: plain, JSON-escaped,
//! percent-encoded, HTML-escaped, hex, base64 once and twice. It also knows the forms of well-known keys
//! (`well_known`), ignores invisible characters inside a key (`invisible`), and joins the pieces of a stream
//! (`stream`), also in binary frames (`frames`). Secrets that the project declares are known to the whole process (`declared`): terminal, run folder and
//! panic messages pass through [`clean`]. SECURITY.md states the guarantees and their limits.

mod declared;
mod frames;
mod given;
mod invisible;
pub(crate) mod query_keys;
mod redactor;
#[cfg(test)]
mod spelling_tests;
mod spellings;
mod stream;
#[cfg(test)]
mod tests;
mod variables;
mod well_known;

pub(crate) use declared::{
    beginning, clean, clean_bytes, clean_packed, clean_text_bytes, clean_value, declare, declared,
};
pub(crate) use frames::frame_ends;
pub(crate) use given::{cookies, given};
pub use redactor::Redactor;
pub(crate) use redactor::{BYTES, MARK, is_unredacted};
pub(crate) use stream::redact_stream;
pub(crate) use variables::looks_secret;
pub(crate) use well_known::keys_by_name;
