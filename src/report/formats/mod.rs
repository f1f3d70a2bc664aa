//! File formats of a report: one file per format, and one line in one table.

pub(super) mod annotations;
pub(super) mod calls;
pub(super) mod csv;
pub(super) mod encoding;
pub(super) mod html;
pub(super) mod json;
pub(super) mod junit;
pub(super) mod latency;
pub(super) mod markdown;
#[cfg(feature = "parquet")]
pub(super) mod parquet;
pub(super) mod requirements;

pub(crate) use annotations::annotation;
pub(crate) use calls::{columns as call_columns, rows as call_rows};
pub(crate) use csv::{criterion_columns, trial_columns, violation_columns};
pub(crate) use encoding::Encoding;
pub(crate) use latency::columns as latency_columns;
pub(crate) use requirements::columns as requirement_columns;

pub(super) use csv::{PART, bound, decimal};

use super::Format;
use crate::platform::distinct;

/// Lists the formats of each file: one line per file, beside its `mod` line.
macro_rules! formats {
    ($($(#[$attribute:meta])? $file:ident),+ $(,)?) => {
        static FILES: &[&[Format]] = &[$($(#[$attribute])? $file::FORMATS),+];
    };
}

// In the order of the help text.
formats! {
    html,
    csv,
    latency,
    requirements,
    #[cfg(feature = "parquet")]
    parquet,
    junit,
    markdown,
    annotations,
    json,
}

/// All file formats, in the order of the help text.
pub(crate) fn formats() -> impl Iterator<Item = &'static Format> {
    FILES.iter().copied().flatten()
}

/// Formats of a word of `--to`; `csv` has five, an unknown word none.
pub(crate) fn named(name: &str) -> impl Iterator<Item = &'static Format> {
    formats().filter(move |format| format.name == name)
}

/// Words of `--to`, each once, in table order.
pub(crate) fn names() -> Vec<&'static str> {
    distinct(formats().map(|format| format.name))
}
