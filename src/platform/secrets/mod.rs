//! Which texts are secrets, and how are they removed before anything is written or printed?
//!
//! [`Redactor`] knows secrets by value and finds them in every spelling of `spellings`: plain, JSON-escaped,
//! percent-encoded, HTML-escaped, in hex, in base64 once and twice. Beside them it knows the forms of well-known keys
//! (`well_known`), ignores what nobody sees between a key's characters (`invisible`), and puts the pieces of a stream together
//! (`stream`). What the project declares is known to the whole
//! process (`declared`): terminal, run folder and panic messages pass through [`clean`]. SECURITY.md says what that
//! promises, and what not.

mod declared;
mod invisible;
mod redactor;
mod spellings;
mod stream;
#[cfg(test)]
mod tests;
mod well_known;

pub(crate) use declared::{
    beginning, clean, clean_bytes, clean_packed, clean_text_bytes, clean_value, declare, declared,
};
pub(crate) use redactor::MARK;
pub use redactor::Redactor;
pub(crate) use stream::redact_stream;
