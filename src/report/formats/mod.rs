//! The file formats of a report: a file each, and one line in one table.

pub(super) mod annotations;
pub(super) mod csv;
pub(super) mod html;
pub(super) mod json;
pub(super) mod junit;
pub(super) mod latency;
pub(super) mod markdown;

use super::Format;

/// Lists the formats of each file: one line a file, beside its `mod` line.
macro_rules! formats {
    ($($file:ident),+ $(,)?) => {
        /// The formats of each file, by its name.
        static FILES: &[(&str, &[&dyn Format])] = &[$((stringify!($file), $file::FORMATS)),+];
    };
}

// In the order of the help.
formats! {
    html,
    csv,
    latency,
    junit,
    markdown,
    annotations,
    json,
}

/// Every file format, in the order of the help.
pub(crate) fn formats() -> impl Iterator<Item = &'static dyn Format> {
    FILES.iter().flat_map(|(_, formats)| *formats).copied()
}

/// The formats behind one word of `--to`; `csv` gives four, an unknown word none.
pub(crate) fn named(name: &str) -> impl Iterator<Item = &'static dyn Format> {
    formats().filter(move |format| format.name() == name)
}

/// The words of `--to`, each once, in the order of the table.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for format in formats() {
        if !names.contains(&format.name()) {
            names.push(format.name());
        }
    }
    names
}
