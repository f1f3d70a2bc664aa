//! `variants.html`: a page without scripts; the figures of all variants first, then each pair and each case.

use super::{corrected, shown};
use crate::compare::{Finding, Unit, Variants};
use crate::report::Pages;
use crate::report::comparison::{self, Exchange, ShownPrompt, ShownRow, Stretch, marked};
use crate::report::figures::thousands;
use crate::report::page::{self, FRAGMENT};
use crate::trace::VARIANTS_HTML;
use percent_encoding::utf8_percent_encode;
use serde::Serialize;
use std::collections::BTreeMap;
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
    /// The decision in a word, if there is one pair.
    word: &'static str,
    pages: Pages,
    run: &'v str,
    part: &'v str,
    headline: String,
    /// The conclusion after the headline.
    conclusion: &'v str,
    warnings: &'v [String],
    variants: &'v [crate::compare::Variant],
    figures: Vec<Figure<'v>>,
    corrected: String,
    pairs: Vec<Pair<'v>>,
    cases: Vec<Case<'v>>,
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
    rows: Vec<ShownRow<'v>>,
}

#[derive(Serialize)]
struct Case<'v> {
    case: &'v str,
    /// Filters that show the row.
    shows: String,
    cells: Vec<CaseCell>,
    /// Its conversation: what was asked, and for each variant the answer; empty without texts.
    turns: Vec<Turn>,
}

#[derive(Serialize)]
struct Turn {
    asked: String,
    answers: Vec<Said>,
}

/// The answer of one variant.
#[derive(Serialize)]
struct Said {
    /// Empty if it is that of an earlier variant.
    words: Vec<Stretch>,
    /// The variant with the same answer.
    same_as: String,
}

/// Cases whose answers are shown.
const WITH_TEXTS: usize = 300;

#[derive(Serialize)]
struct CaseCell {
    passed: String,
    class: &'static str,
    /// Its first trial in the report.
    href: String,
    took: String,
}

/// Renders the page.
pub(super) fn html(found: &Variants, texts: &BTreeMap<String, Vec<Exchange>>, pages: Pages) -> io::Result<Vec<u8>> {
    let any = |wanted: &[Finding]| {
        found.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.gated && wanted.contains(&row.finding))
    };
    // The sentence of the only pair begins with its verdict.
    let verdict = match found.pairs.as_slice() {
        [pair] => pair.verdict(),
        _ => String::new(),
    };
    let (headline, conclusion) = match found.conclusion.split_once(verdict.as_str()) {
        Some((_, rest)) if !verdict.is_empty() => (verdict.as_str(), rest.trim_start()),
        _ => (found.conclusion.as_str(), ""),
    };
    let word = match found.pairs.as_slice() {
        [pair] => comparison::decided(pair).1,
        _ => "",
    };
    let page = VariantsPage {
        headline: if word.is_empty() {
            headline.to_owned()
        } else {
            page::without_word(headline, comparison::UNDECIDED)
        },
        word,
        pages,
        outcome: if any(&[Finding::Better, Finding::Worse]) { "undecided" } else { "unmeasured" },
        run: &found.run,
        part: &found.part,
        conclusion,
        warnings: &found.warnings,
        variants: &found.variants,
        figures: found.figures.iter().map(figure).collect(),
        corrected: corrected(found),
        pairs: found.pairs.iter().map(pair).collect(),
        cases: (0..)
            .zip(&found.cases)
            .map(|(place, one)| Case {
                turns: if place < WITH_TEXTS { turns(one, &found.variants, texts) } else { Vec::new() },
                ..case(one)
            })
            .collect(),
        names: found.variants.iter().map(|one| one.name.as_str()).collect(),
    };
    Ok(page::render(&PAGE, page)?.into_bytes())
}

fn figure(figure: &crate::compare::Figure) -> Figure<'_> {
    let cells = figure.cells.iter().map(|cell| {
        let counts = cell.counts.filter(|_| figure.unit == Unit::Share);
        let counts =
            counts.map(|counts| format!("{} of {}", thousands(counts.numerator), thousands(counts.denominator)));
        (shown(figure.unit, cell), counts.unwrap_or_else(|| cell.not_measured.clone()))
    });
    Figure { key: &figure.key, about: &figure.about, cells: cells.collect() }
}

fn pair(pair: &crate::compare::Comparison) -> Pair<'_> {
    let [a, b] = pair.names();
    let rows = comparison::shown_rows(pair);
    Pair { a, b, conclusion: &pair.conclusion, notes: &pair.notes, prompts: comparison::shown_prompts(pair), rows }
}

fn case(case: &crate::compare::Beside) -> Case<'_> {
    let cells = case.variants.iter().map(|one| {
        let crate::compare::Passes { passed, trials } = one.passed;
        let known = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| thousands(value.round() as u64));
        CaseCell {
            passed: format!("{}/{}", thousands(passed), thousands(trials)),
            class: match passed {
                0 => "fail",
                _ if passed == trials => "pass",
                _ => "undecided",
            },
            href: format!("index.html#trial={}", utf8_percent_encode(&one.trial, FRAGMENT)),
            took: format!(
                "{:.1} model calls, {} tokens in, {} out, {}, {} sources",
                one.model_calls,
                known(one.input_tokens),
                known(one.output_tokens),
                one.turn.map_or_else(|| "no answer".to_owned(), |turn| format!("{turn:.2} s")),
                one.citations.map_or_else(|| "–".to_owned(), |number| format!("{number:.1}")),
            ),
        }
    });
    let passes: Vec<(u64, u64)> = case.variants.iter().map(|one| (one.passed.passed, one.passed.trials)).collect();
    Case { case: &case.case, shows: comparison::shows(&passes), cells: cells.collect(), turns: Vec::new() }
}

/// The turns of a case with the answers of all variants: words that another variant lacks are marked.
fn turns(
    case: &crate::compare::Beside,
    variants: &[crate::compare::Variant],
    texts: &BTreeMap<String, Vec<Exchange>>,
) -> Vec<Turn> {
    let of: Vec<&[Exchange]> =
        case.variants.iter().map(|one| texts.get(&one.trial).map_or(&[][..], Vec::as_slice)).collect();
    let longest = of.iter().max_by_key(|turns| turns.len()).copied().unwrap_or_default();
    let turn = |(place, longest): (usize, &Exchange)| {
        let said: Vec<&str> =
            of.iter().map(|turns| turns.get(place).map_or("(no such turn)", |one| one.answered.as_str())).collect();
        let answer = |(side, words): (usize, &&str)| {
            if let Some(first) = said[..side].iter().position(|other| other == words) {
                return Said { words: Vec::new(), same_as: variants[first].name.clone() };
            }
            // The first is compared with the first other answer, every other one with the first.
            let other = if side == 0 { said.iter().find(|other| *other != words) } else { said.first() };
            let [_, words] = marked(other.unwrap_or(words), words);
            Said { words, same_as: String::new() }
        };
        Turn { asked: longest.asked.clone(), answers: said.iter().enumerate().map(answer).collect() }
    };
    longest.iter().enumerate().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_every_figure_pair_and_case_and_runs_nothing() {
        let found = super::super::tests::found();
        let page = String::from_utf8(html(&found, &BTreeMap::new(), Pages::default()).expect("a page")).expect("UTF-8");
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

    #[test]
    fn answers_stand_beside_each_other_with_the_words_marked_and_equal_ones_are_stored_once() {
        let mut found = super::super::tests::found();
        found.cases[0].variants[1].trial = "s/c0/tool-rag.b.1".into();
        let said = |answered: &str| vec![Exchange { asked: "How many ohms?".into(), answered: answered.into() }];
        let trial = |place: usize, side: usize| found.cases[place].variants[side].trial.clone();
        let texts: BTreeMap<_, _> = [(trial(0, 0), said("48 to 56 ohms")), (trial(0, 1), said("38 to 56 ohms"))].into();
        assert_ne!(trial(0, 0), trial(0, 1));
        let page = String::from_utf8(html(&found, &texts, Pages::default()).expect("a page")).expect("UTF-8");
        assert!(
            page.contains("How many ohms?") && page.contains("<mark>48</mark>") && page.contains("<mark>38</mark>"),
            "{page}"
        );
        let same: BTreeMap<_, _> = texts.keys().map(|trial| (trial.clone(), said("the same answer"))).collect();
        let page = String::from_utf8(html(&found, &same, Pages::default()).expect("a page")).expect("UTF-8");
        assert_eq!(page.matches("the same answer").count(), 1, "{page}");
        assert!(page.contains("same answer as"), "{page}");
    }
}
