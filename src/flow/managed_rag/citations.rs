//! Turns the service's citations into numbered sources and a text with markers.
//!
//! Each page of a file has one number. The requirements number paragraphs: two paragraphs of one page would be two
//! numbers for one link, so pages are numbered instead.

use crate::provider::{AskAnswer, Paragraph};
use crate::trace::markers::{MarkerPlaces, marker, with_markers};
use crate::trace::{ManagedCitation, ManagedSource, TextSpan};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::BTreeSet;

/// Path for downloading sources: users reach the gateway, but not the service.
const GATEWAY: &str = "/gateway/download";
/// Characters left unescaped in a link.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text with markers, and the sources that they refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cited {
    /// The service's text with markers.
    pub(super) text: String,
    /// Citations with the text that they support, in the service's order.
    pub(super) citations: Vec<ManagedCitation>,
    /// The sources, in the order of their numbers.
    pub(super) sources: Vec<ManagedSource>,
    /// Notes about citations that were omitted or moved, one sentence each.
    pub(super) notes: Vec<String>,
}

/// Numbers the sources of an answer and inserts the numbers into its text, as links or plain.
pub(super) fn cite(answer: &AskAnswer, links: bool) -> Cited {
    let (citations, mut notes) = located(answer);
    let places = MarkerPlaces::of(&answer.text);
    // Position of each citation; those without one come last, in the service's order.
    let mut anchors: Vec<(usize, usize, Option<usize>)> = Vec::new();
    for (index, citation) in citations.iter().enumerate().filter(|(_, citation)| citation.source.is_some()) {
        for place in ends(citation, &places, &mut notes) {
            anchors.push((place.unwrap_or(usize::MAX), index, place));
        }
    }
    anchors.sort_unstable();
    let mut sources: Vec<ManagedSource> = Vec::new();
    let mut markers = BTreeSet::new();
    for (_, index, place) in anchors {
        let Some(citation) = citations.get(index) else { continue };
        let known =
            sources.iter().find(|known| Some(&known.source) == citation.source.as_ref() && known.page == citation.page);
        let number = known.map_or_else(|| sources.len() as u32 + 1, |known| known.number);
        if number as usize > sources.len()
            && let Some(paragraph) = answer.paragraphs.iter().find(|paragraph| paragraph.id == citation.paragraph)
        {
            sources.extend(source(number, paragraph));
        }
        markers.extend(place.map(|place| (place, number)));
    }
    let link = |number: u32| sources.iter().find(|source| source.number == number).map(|source| source.link.as_str());
    let text = with_markers(&answer.text, &markers, |number| marker(number, link(number).filter(|_| links)));
    Cited { text, citations, sources, notes }
}

/// The citations with their file and page; those without one are noted.
fn located(answer: &AskAnswer) -> (Vec<ManagedCitation>, Vec<String>) {
    let mut notes = Vec::new();
    let located = answer.citations.iter().map(|citation| {
        let found = answer.paragraphs.iter().find(|paragraph| paragraph.id == citation.paragraph);
        let source = found.filter(|paragraph| paragraph.file.is_some()).map(key);
        if source.is_none() {
            let why = if found.is_some() { "is of no file" } else { "is none of the passages that were found" };
            notes.push(format!("The citation of `{}` was left out: it {why}.", shown(&citation.paragraph)));
        }
        let page = found.and_then(|paragraph| paragraph.page);
        let spans = citation.spans.iter().map(|(start, end)| TextSpan { start: *start, end: *end });
        ManagedCitation { paragraph: citation.paragraph.clone(), source, page, spans: spans.collect() }
    });
    (located.collect(), notes)
}

/// Positions of one citation's markers: the ends of the text that it supports, or the end of the answer if it names
/// none. `None` if no position is valid: its source is still listed.
fn ends(citation: &ManagedCitation, places: &MarkerPlaces<'_>, notes: &mut Vec<String>) -> Vec<Option<usize>> {
    let name = shown(&citation.paragraph);
    let mut found = BTreeSet::new();
    for &TextSpan { start, end } in &citation.spans {
        if start >= end {
            notes.push(format!("Of `{name}`, the words from {start} to {end} are none: no marker was put there."));
            continue;
        }
        if end > places.characters() {
            notes.push(format!("Of `{name}`, the words end at {end}, behind the text: its marker stands at the end."));
        }
        found.insert(places.at(end));
    }
    if found.is_empty() {
        notes.push(format!("Of `{name}`, no words are told: its marker stands at the end."));
        found.insert(places.last());
    }
    if found.contains(&None) {
        notes.push(format!("Of `{name}`, the words are code alone: it stands in the list of sources only."));
    }
    found.into_iter().collect()
}

/// Unique key of a file, or of another field with texts.
pub(super) fn key(paragraph: &Paragraph) -> String {
    format!("{}/{}", paragraph.resource, paragraph.field)
}

fn source(number: u32, paragraph: &Paragraph) -> Option<ManagedSource> {
    let filename = paragraph.file.clone()?;
    let (id, link) = (page_id(paragraph)?, link(paragraph)?);
    let (source, title) = (key(paragraph), paragraph.title.clone());
    Some(ManagedSource { number, source, page: paragraph.page, id, filename, title, link })
}

/// The name of a page in citations, in the form that other flows use for passages: `error-codes#page=5`; `None` for a
/// paragraph without a file.
pub(super) fn page_id(paragraph: &Paragraph) -> Option<String> {
    let file = paragraph.file.as_deref()?;
    let file = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    Some(paragraph.page.map_or_else(|| file.to_owned(), |page| format!("{file}#page={}", page.saturating_add(1))))
}

/// Link to a page through the gateway. Readers count pages from 1, the service from 0.
fn link(paragraph: &Paragraph) -> Option<String> {
    let file = paragraph.file.as_deref()?;
    let parts = [paragraph.resource.as_str()].into_iter().chain(paragraph.field.split('/')).chain([file]);
    // A segment of only dots could leave the folder.
    let spelt = parts.map(|part| match part {
        "." | ".." => part.replace('.', "%2E"),
        part => utf8_percent_encode(part, PLAIN).to_string(),
    });
    let path = spelt.collect::<Vec<_>>().join("/");
    let page = paragraph.page.map_or_else(String::new, |page| format!("#page={}", page.saturating_add(1)));
    Some(format!("{GATEWAY}/{path}{page}"))
}

fn shown(id: &str) -> String {
    crate::trace::text::quote(id, 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Usage;
    use crate::provider::{AskCitation, AskStatus};
    use proptest::prelude::*;

    fn paragraph(resource: &str, span: &str, page: Option<u64>, file: Option<&str>) -> Paragraph {
        Paragraph {
            id: format!("{resource}/f/manual/{span}"),
            resource: resource.into(),
            field: "f/manual".into(),
            title: format!("Title of {resource}"),
            file: file.map(str::to_owned),
            page,
            text: String::new(),
            score: 1.0,
        }
    }

    fn answer(text: &str, citations: &[(&str, &[(u64, u64)])]) -> AskAnswer {
        let paragraphs = vec![
            paragraph("r1", "0-9", Some(4), Some("error codes.pdf")),
            paragraph("r1", "10-19", Some(4), Some("error codes.pdf")),
            paragraph("r1", "20-29", Some(5), Some("error codes.pdf")),
            paragraph("r2", "0-9", None, Some("../plans?.md")),
            paragraph("r3", "0-9", Some(0), None),
        ];
        let citation =
            |(id, spans): &(&str, &[(u64, u64)])| AskCitation { paragraph: (*id).into(), spans: spans.to_vec() };
        AskAnswer {
            text: text.into(),
            status: AskStatus::Success,
            details: None,
            learning_id: None,
            paragraphs,
            citations: citations.iter().map(citation).collect(),
            usage: Usage::default(),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn one_page_is_one_number_wherever_it_is_cited_and_numbers_follow_the_text() {
        let cited = cite(
            &answer(
                "A. B. C. D.",
                &[
                    ("r1/f/manual/20-29", &[(9, 11)]),
                    ("r1/f/manual/10-19", &[(3, 5)]),
                    ("r1/f/manual/0-9", &[(0, 2), (6, 8), (3, 5)]),
                ],
            ),
            false,
        );
        assert_eq!(cited.text, "A.[1] B.[1] C.[1] D.[2]");
        let pages: Vec<_> = cited.sources.iter().map(|source| (source.number, source.id.as_str())).collect();
        assert_eq!(pages, [(1, "error codes#page=5"), (2, "error codes#page=6")]);
        assert_eq!(cited.notes, Vec::<String>::new());
    }

    #[test]
    fn a_link_leads_to_the_gateway_with_the_page_and_no_name_leads_out_of_it() {
        let cited = cite(&answer("A. B.", &[("r1/f/manual/0-9", &[(0, 2)]), ("r2/f/manual/0-9", &[(3, 5)])]), true);
        let page = "/gateway/download/r1/f/manual/error%20codes.pdf#page=5";
        let whole = "/gateway/download/r2/f/manual/..%2Fplans%3F.md";
        assert_eq!(cited.text, format!("A.[[1]]({page}) B.[[2]]({whole})"));
        assert_eq!(cited.sources.iter().map(|source| source.link.as_str()).collect::<Vec<_>>(), [page, whole]);
    }

    #[test]
    fn what_cannot_be_cited_is_left_out_and_said_and_nothing_fails() {
        let told = answer(
            "A. B.",
            &[
                ("r3/f/manual/0-9", &[(0, 2)]),
                ("r9/f/other/0-1", &[(0, 2)]),
                ("r1/f/manual/0-9", &[(5, 2), (2, 2)]),
                ("r1/f/manual/20-29", &[(3, 900)]),
            ],
        );
        let cited = cite(&told, false);
        assert_eq!(cited.text, "A. B.[1][2]");
        assert_eq!((cited.sources.len(), cited.citations.len()), (2, 4));
        let notes = cited.notes.join("\n");
        for words in ["of no file", "none of the passages", "from 5 to 2", "no words are told", "behind the text"] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
    }

    #[test]
    fn a_source_of_code_alone_is_listed_without_a_marker() {
        let cited = cite(&answer("```\nreset\n```", &[("r1/f/manual/0-9", &[(4, 9)])]), true);
        assert_eq!((cited.text.as_str(), cited.sources.len()), ("```\nreset\n```", 1));
        assert!(cited.notes[0].contains("code alone"), "{:?}", cited.notes);
    }

    proptest! {
        #[test]
        fn every_marker_has_a_source_each_page_one_number_and_without_markers_the_text_is_the_services(
            text in "[a-zé😀 .\u{301}\n]{0,40}",
            spans in proptest::collection::vec((0_usize..5, 0_u64..50, 0_u64..50), 0..12),
        ) {
            let ids = ["r1/f/manual/0-9", "r1/f/manual/10-19", "r1/f/manual/20-29", "r2/f/manual/0-9", "r3/f/manual/0-9"];
            let pairs: Vec<(&str, [(u64, u64); 1])> = spans.iter().map(|(id, start, end)| (ids[*id], [(*start, *end)])).collect();
            let borrowed: Vec<(&str, &[(u64, u64)])> = pairs.iter().map(|(id, span)| (*id, &span[..])).collect();
            let told = answer(&text, &borrowed);
            let cited = cite(&told, false);
            let numbers: Vec<u32> = cited.sources.iter().map(|source| source.number).collect();
            prop_assert_eq!(&numbers, &(1..=cited.sources.len() as u32).collect::<Vec<_>>());
            let pages: BTreeSet<_> = cited.sources.iter().map(|source| (&source.source, source.page)).collect();
            prop_assert_eq!(pages.len(), cited.sources.len());
            // The text above contains no brackets, so these are the markers.
            let marks = regex::Regex::new(r"\[(\d+)\]").expect("compiles");
            for mark in marks.captures_iter(&cited.text) {
                prop_assert!(numbers.contains(&mark[1].parse::<u32>().expect("a number")));
            }
            prop_assert_eq!(marks.replace_all(&cited.text, "").into_owned(), text);
        }
    }
}
