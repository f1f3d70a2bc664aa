//! Skeleton of every HTML page: one file that opens from disk, without a server or a network.
//!
//! `skeleton.html` has the head, the policy and the header; each page's template extends it. `tokens.css` defines the
//! light and dark colours, `page.css` the shared look, and a page may add styles. The policy allows only this build's
//! style and script, by hash, and no connections: text that escaped the escaping could still not run.

use crate::trace::text;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io;

const SKELETON: &str = include_str!("skeleton.html");
/// Shapes of verdicts, for pages that draw them: `{% include "shapes.html" %}`.
const SHAPES: &str = include_str!("shapes.html");
/// Filters of the rows of a table by style alone; needs `names`.
const FILTERS: &str = include_str!("filters.html");
const STYLE: &str = concat!(include_str!("tokens.css"), include_str!("page.css"));

/// Characters left unescaped in a link to a folder: no name can be a scheme or lead upwards.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Characters left unescaped in a URL fragment: unreserved ones and `/`.
pub(super) const FRAGMENT: &AsciiSet = &PLAIN.remove(b'~').remove(b'/');

/// Link to `file` in a folder beside the page, of characters that need no escape in HTML.
pub(super) fn below(folder: &str, file: &str) -> String {
    format!("./{}/{file}", utf8_percent_encode(folder, PLAIN))
}

/// A sentence without the verdict that it begins with, for a heading whose badge says it already: `failed: A` is `A`.
pub(super) fn without_word(sentence: &str, word: &str) -> String {
    let (part, said) = match sentence.find(": ") {
        Some(end) if sentence.starts_with("PART") => sentence.split_at(end + 2),
        _ => ("", sentence),
    };
    let begins = said.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let rest = begins.then(|| &said[word.len()..]);
    let rest = rest.and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(' ')));
    format!("{part}{}", rest.unwrap_or(said))
}

/// The parts that differ between pages.
pub(super) struct PageTemplate {
    /// File name, for messages.
    pub file: &'static str,
    /// Word after "ragcheck" in the header.
    pub kind: &'static str,
    /// The template, which extends `skeleton.html`.
    pub template: &'static str,
    /// Styles in addition to the shared ones.
    pub style: &'static str,
    /// The script; empty for a page without scripts, whose policy then allows none.
    pub script: &'static str,
}

/// Renders the page with `data` as `page`; replaces characters that a page must not contain.
pub(super) fn render(page: &PageTemplate, data: impl Serialize) -> io::Result<String> {
    let filled = fill(page, data).map_err(|error| io::Error::other(format!("{}: {error:#}", page.file)))?;
    Ok(text::block(&filled))
}

fn fill(page: &PageTemplate, data: impl Serialize) -> Result<String, minijinja::Error> {
    let mut templates = minijinja::Environment::new();
    templates.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    templates.add_template("skeleton.html", SKELETON)?;
    templates.add_template("shapes.html", SHAPES)?;
    templates.add_template("filters.html", FILTERS)?;
    templates.add_template("page.html", page.template)?;
    let style = format!("{STYLE}{}", page.style);
    let hash = |text: &str| format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())));
    templates.get_template("page.html")?.render(minijinja::context! {
        page => minijinja::Value::from(minijinja::value::Serde(data)),
        kind => page.kind,
        script => page.script,
        style_hash => hash(&style),
        script_hash => hash(page.script),
        style,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_does_not_say_the_word_of_its_badge_again() {
        for (sentence, word, left) in [
            ("failed: A; B", "Failed", "A; B"),
            ("PART (2 of 9 trials): failed: A", "Failed", "PART (2 of 9 trials): A"),
            ("undecided between a and b", "undecided", "between a and b"),
            ("failed to say", "Passed", "failed to say"),
            ("failedness", "Failed", "failedness"),
            ("été", "ét\u{e9}s", "été"),
        ] {
            assert_eq!(without_word(sentence, word), left);
        }
    }
}
