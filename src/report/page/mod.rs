//! The skeleton of every HTML page: one file that opens from disk, without a server and without a network.
//!
//! `skeleton.html` holds the head, the policy and the header; a page's own template extends it. `tokens.css` names the
//! colours of light and dark, `page.css` is the look that all pages share, and a page adds styles of its own. The policy
//! allows exactly the one style and the one script of this build, by hash, and no connection: text that slipped through
//! escaping still could not run.

use crate::trace::text;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::io;

const SKELETON: &str = include_str!("skeleton.html");
/// The shapes of verdicts, for pages that draw them: `{% include "shapes.html" %}`.
const SHAPES: &str = include_str!("shapes.html");
const STYLE: &str = concat!(include_str!("tokens.css"), include_str!("page.css"));

/// What stands for itself in a link to a folder: no name is a scheme, and none leads upwards.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The address of `file` in a folder beside the page, of letters that stand for themselves in HTML.
pub(super) fn below(folder: &str, file: &str) -> String {
    format!("./{}/{file}", utf8_percent_encode(folder, PLAIN))
}

/// What is a page's own.
pub(super) struct Page {
    /// The file's name, for messages.
    pub file: &'static str,
    /// The word behind "ragcheck" in the header.
    pub kind: &'static str,
    /// The template, which extends `skeleton.html`.
    pub template: &'static str,
    /// Styles besides those of every page.
    pub style: &'static str,
    /// The script; empty for a page that runs nothing, whose policy then allows none.
    pub script: &'static str,
}

/// The page with `data` as `page`; characters that no page may hold are replaced.
pub(super) fn render(page: &Page, data: impl Serialize) -> io::Result<String> {
    let filled = fill(page, data).map_err(|error| io::Error::other(format!("{}: {error:#}", page.file)))?;
    Ok(text::block(&filled))
}

fn fill(page: &Page, data: impl Serialize) -> Result<String, minijinja::Error> {
    let mut templates = minijinja::Environment::new();
    templates.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    templates.add_template("skeleton.html", SKELETON)?;
    templates.add_template("shapes.html", SHAPES)?;
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
