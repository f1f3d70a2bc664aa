//! `variants.html`: a page without scripts; the figures of all variants first, then each pair and each case.

use super::{corrected, names, shown};
use crate::compare::{Finding, Unit, Variants};
use crate::report::comparison::{self, ShownRow};
use crate::report::figures::count;
use crate::report::page;
use crate::trace::VARIANTS_HTML;
use serde::Serialize;
use std::io;

const PAGE: page::Page = page::Page {
    file: VARIANTS_HTML,
    kind: "variants",
    template: include_str!("page.html"),
    style: concat!(include_str!("../comparison/comparison.css"), include_str!("variants.css")),
    script: "",
};

#[derive(Serialize)]
struct Page<'v> {
    outcome: &'static str,
    run: &'v str,
    part: &'v str,
    conclusion: &'v str,
    warnings: &'v [String],
    variants: &'v [crate::compare::Variant],
    figures: Vec<Figure<'v>>,
    corrected: String,
    pairs: Vec<Pair<'v>>,
    cases: Vec<Case<'v>>,
}

#[derive(Serialize)]
struct Figure<'v> {
    key: &'v str,
    about: &'v str,
    /// The figure, and its counts or why it is unknown.
    cells: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Pair<'v> {
    a: &'v str,
    b: &'v str,
    conclusion: &'v str,
    notes: &'v [String],
    rows: Vec<ShownRow>,
}

#[derive(Serialize)]
struct Case<'v> {
    case: &'v str,
    cells: Vec<CaseCell>,
}

#[derive(Serialize)]
struct CaseCell {
    passed: String,
    class: &'static str,
    took: String,
}

/// Renders the page.
pub(super) fn html(found: &Variants) -> io::Result<Vec<u8>> {
    let any = |wanted: &[Finding]| {
        found.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.gated && wanted.contains(&row.finding))
    };
    let page = Page {
        outcome: if any(&[Finding::Better, Finding::Worse]) { "undecided" } else { "unmeasured" },
        run: &found.run,
        part: &found.part,
        conclusion: &found.conclusion,
        warnings: &found.warnings,
        variants: &found.variants,
        figures: found.figures.iter().map(figure).collect(),
        corrected: corrected(found),
        pairs: found.pairs.iter().map(pair).collect(),
        cases: found.cases.iter().map(case).collect(),
    };
    Ok(page::render(&PAGE, page)?.into_bytes())
}

fn figure(figure: &crate::compare::Figure) -> Figure<'_> {
    let cells = figure.cells.iter().map(|cell| {
        let counts = cell.counts.filter(|_| figure.unit == Unit::Share);
        let counts = counts.map(|counts| format!("{} of {}", count(counts.numerator), count(counts.denominator)));
        (shown(figure.unit, cell), counts.unwrap_or_else(|| cell.not_measured.clone()))
    });
    Figure { key: &figure.key, about: &figure.about, cells: cells.collect() }
}

fn pair(pair: &crate::compare::Comparison) -> Pair<'_> {
    let (a, b) = names(pair);
    let rows = comparison::shown_rows(pair);
    Pair { a, b, conclusion: &pair.conclusion, notes: &pair.notes, rows }
}

fn case(case: &crate::compare::Beside) -> Case<'_> {
    let cells = case.variants.iter().map(|one| {
        let crate::compare::Passes { passed, trials } = one.passed;
        let known =
            |value: Option<f64>, unit: &str| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}{unit}"));
        CaseCell {
            passed: format!("{}/{}", count(passed), count(trials)),
            class: match passed {
                0 => "fail",
                _ if passed == trials => "pass",
                _ => "undecided",
            },
            took: format!(
                "{:.1} model calls, {} tokens in, {} out, {}, {} sources",
                one.model_calls,
                known(one.input_tokens, ""),
                known(one.output_tokens, ""),
                one.turn.map_or_else(|| "no answer".to_owned(), |turn| format!("{turn:.2} s")),
                one.citations.map_or_else(|| "–".to_owned(), |number| format!("{number:.1}")),
            ),
        }
    });
    Case { case: &case.case, cells: cells.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_every_figure_pair_and_case_and_runs_nothing() {
        let found = super::super::tests::found();
        let page = String::from_utf8(html(&found).expect("a page")).expect("UTF-8");
        for figure in &found.figures {
            assert!(page.contains(&format!("<bdi>{}</bdi>", figure.key)), "{}", figure.key);
        }
        for case in &found.cases {
            let name = case.case.replace('/', "&#x2f;");
            assert!(page.contains(&name), "{name}");
        }
        assert!(page.contains("id=\"pair-1\"") && page.contains("Holm"), "{page}");
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'));
        assert!(page.contains("default-src 'none'") && !page.contains("script-src"));
    }
}
