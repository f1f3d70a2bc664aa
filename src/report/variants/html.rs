//! `variants.html`: a page without scripts; the figures of all variants first, then each pair and each case.

use super::{corrected, names, shown};
use crate::compare::{Finding, Unit, Variants};
use crate::report::comparison::{self, ShownPrompt, ShownRow};
use crate::report::figures::count;
use crate::report::page::{self, FRAGMENT};
use crate::trace::VARIANTS_HTML;
use percent_encoding::utf8_percent_encode;
use serde::Serialize;
use std::io;

const PAGE: page::PageTemplate = page::PageTemplate {
    file: VARIANTS_HTML,
    kind: "variants",
    template: include_str!("page.html"),
    style: concat!(include_str!("../comparison/comparison.css"), include_str!("variants.css")),
    script: "",
};

#[derive(Serialize)]
struct VariantsPage<'v> {
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
    /// The variants' names.
    names: Vec<&'v str>,
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
    prompts: Vec<ShownPrompt>,
    rows: Vec<ShownRow>,
}

#[derive(Serialize)]
struct Case<'v> {
    case: &'v str,
    /// Filters that show the row.
    shows: String,
    cells: Vec<CaseCell>,
}

#[derive(Serialize)]
struct CaseCell {
    passed: String,
    class: &'static str,
    /// Its first trial in the report.
    href: String,
    took: String,
}

/// Renders the page.
pub(super) fn html(found: &Variants) -> io::Result<Vec<u8>> {
    let any = |wanted: &[Finding]| {
        found.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.gated && wanted.contains(&row.finding))
    };
    let page = VariantsPage {
        outcome: if any(&[Finding::Better, Finding::Worse]) { "undecided" } else { "unmeasured" },
        run: &found.run,
        part: &found.part,
        conclusion: &found.conclusion,
        warnings: &found.warnings,
        variants: &found.variants,
        figures: found.figures.iter().map(figure).collect(),
        corrected: corrected(found),
        pairs: found.pairs.iter().map(pair).collect(),
        cases: found.cases.iter().map(|one| case(one, &found.variants)).collect(),
        names: found.variants.iter().map(|one| one.name.as_str()).collect(),
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
    Pair { a, b, conclusion: &pair.conclusion, notes: &pair.notes, prompts: comparison::shown_prompts(pair), rows }
}

fn case<'v>(case: &'v crate::compare::Beside, variants: &[crate::compare::Variant]) -> Case<'v> {
    let cells = case.variants.iter().zip(variants).map(|(one, variant)| {
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
            href: format!(
                "index.html#trial={}",
                utf8_percent_encode(&format!("{}/{}.{}.1", case.case, variant.flow, variant.name), FRAGMENT)
            ),
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
    let passes: Vec<(u64, u64)> = case.variants.iter().map(|one| (one.passed.passed, one.passed.trials)).collect();
    Case { case: &case.case, shows: comparison::shows(&passes), cells: cells.collect() }
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
