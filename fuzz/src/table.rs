//! Tables of a run folder, as a spreadsheet reads them.

use std::path::Path;

/// What begins a formula, also after spaces.
const BEGINS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A text as a cell holds it.
pub fn shown(text: &str) -> String {
    let hides = |one: char| {
        one.is_control()
            || "\u{61c}\u{200e}\u{200f}\u{feff}\u{fffe}\u{ffff}".contains(one)
            || matches!(one, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fff9}'..='\u{fffb}')
    };
    let spaced = text.replace("\r\n", " ").replace(['\n', '\t'], " ");
    spaced.chars().map(|one| if hides(one) { '\u{fffd}' } else { one }).collect()
}

/// The rows of a table: columns with the words of their cells, without the apostrophe that keeps them from being formulas.
///
/// # Panics
/// If it is no table, or a cell begins a formula.
pub fn rows(file: &Path) -> Vec<Vec<(String, String)>> {
    let begins = |text: &str| text.trim_start_matches(' ').starts_with(BEGINS);
    let mut reader = csv::ReaderBuilder::new().from_path(file).expect("a table");
    let names = reader.headers().expect("a header").clone();
    let rows = reader.records().map(|row| {
        let row = row.expect("a row of as many cells as the others");
        let cells = names.iter().zip(&row).map(|(name, cell)| {
            assert!(!begins(cell) || cell.parse::<f64>().is_ok_and(f64::is_finite), "{cell:?} in {}", file.display());
            let word = cell.strip_prefix('\'').filter(|rest| begins(rest));
            (name.to_owned(), word.unwrap_or(cell).to_owned())
        });
        cells.collect()
    });
    rows.collect()
}
