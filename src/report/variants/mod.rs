//! Compares all variants of a run: for a terminal, and as `variants.csv`, `pairs.csv`, `variants.html` and
//! `variants.json`.
//!
//! A table of figures by variant comes first, then a table of findings for each pair. Files contain no path of this
//! machine, so the same run gives the same bytes.

mod csv;
mod html;
mod terminal;

pub(crate) use csv::columns;
pub(crate) use terminal::terminal;

use super::Pages;
use super::comparison::Exchange;
use crate::compare::{Cell, Unit, Variants};
use crate::settings::price::dollars;
use crate::stats::percent::percent;
use crate::trace::{PAIRS_CSV, VARIANTS_CSV, VARIANTS_HTML, VARIANTS_JSON};
use std::collections::BTreeMap;
use std::io;

/// Files of a comparison of variants: name and bytes. `texts` are the questions and answers of the trials that the cases name, by
/// trial, and `pages` what lies beside them.
pub(crate) fn files(
    found: &Variants,
    texts: &BTreeMap<String, Vec<Exchange>>,
    pages: Pages,
) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut json = serde_json::to_vec_pretty(found)?;
    json.push(b'\n');
    Ok(vec![
        (VARIANTS_CSV, csv::csv(found)?),
        (PAIRS_CSV, super::comparison::csv(&found.pairs)?),
        (VARIANTS_HTML, html::html(found, texts, pages)?),
        (VARIANTS_JSON, json),
    ])
}

/// A formatted figure: `90.0 %`, `3.2`, `1.72 s`, or a dash if unknown.
fn shown(unit: Unit, cell: &Cell) -> String {
    match (cell.value, unit) {
        (None, _) => "–".into(),
        (Some(value), Unit::Share) => percent(value),
        (Some(value), Unit::Number) if value >= 100.0 => super::figures::thousands(value.round() as u64),
        (Some(value), Unit::Number) => format!("{value:.1}"),
        (Some(value), Unit::Seconds) => format!("{value:.2} s"),
        (Some(value), Unit::Dollars) => dollars(value),
    }
}

/// Sentence on the correction of the p-values.
fn corrected(found: &Variants) -> String {
    let pairs = found.corrected_pairs.max(found.pairs.len() as u64);
    let of = if pairs > 1 { format!(" of all {}", super::figures::counted(pairs, "pair")) } else { String::new() };
    format!(
        "p is corrected by Holm over {}{of}; rows in brackets are not required and are corrected among \
         themselves by Benjamini and Hochberg.",
        super::figures::counted(found.tests, "required row")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare_variants, sample::summary};

    /// A run of two variants over eight cases, one of them hostile and worse in all of them.
    pub(super) fn found() -> Variants {
        let names: Vec<String> = (0..8).map(|index| format!("c{index}")).collect();
        let of = |variant: &str, passed: u64| {
            let mut side = summary("run", &names.iter().map(|name| (name.as_str(), passed, 1)).collect::<Vec<_>>());
            side.cases.iter_mut().for_each(|case| case.variant = variant.into());
            variant.clone_into(&mut side.settings[0].variant);
            side
        };
        let (mut run, mut worse) = (of("a", 1), of("b", 0));
        worse.settings[0].about = "=cmd()<script>alert(1)</script>\u{202e}\u{1b}[31m".into();
        run.cases.extend(worse.cases);
        run.settings.extend(worse.settings);
        compare_variants(&run, &[], 0.02).expect("comparable")
    }

    #[test]
    fn the_same_variants_give_the_same_bytes() {
        let none = BTreeMap::new();
        let made = || files(&found(), &none, Pages::default()).expect("files");
        assert_eq!(made(), made());
    }

    #[test]
    fn figures_are_written_with_their_unit_and_unknown_ones_as_a_dash() {
        let cell = |value| Cell { value: Some(value), ..Cell::default() };
        assert_eq!(shown(Unit::Share, &cell(0.9)), "90.0 %");
        assert_eq!(shown(Unit::Number, &cell(1_234.6)), "1,235");
        assert_eq!(shown(Unit::Number, &cell(2.34)), "2.3");
        assert_eq!(shown(Unit::Seconds, &cell(1.725)), "1.73 s");
        assert_eq!(shown(Unit::Number, &Cell::default()), "–");
    }
}
