//! The file formats of a report: a file each, and one table.

pub(super) mod csv;
pub(super) mod html;
pub(super) mod json;
pub(super) mod junit;
pub(super) mod latency;
pub(super) mod markdown;

use super::Format;

/// Every file format, in the order of the help.
pub const FORMATS: [&dyn Format; 7] = [
    &html::Html,
    &csv::TrialsCsv,
    &csv::CriteriaCsv,
    &latency::LatencyCsv,
    &junit::Junit,
    &markdown::Markdown,
    &json::Json,
];

/// The formats behind one word of `--to`; `csv` gives three, an unknown word none.
pub fn named(name: &str) -> impl Iterator<Item = &'static dyn Format> {
    FORMATS.into_iter().filter(move |format| format.name() == name)
}

/// The words of `--to`, each once, in the order of the table.
pub fn names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for format in FORMATS {
        if !names.contains(&format.name()) {
            names.push(format.name());
        }
    }
    names
}
