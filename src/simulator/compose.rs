//! Composes the simulated model's answers from sentences of its context, with their sources.

use super::sentences::{content_words, overlap, sentences, stem, stems};
use super::situation::{Chunk, Situation};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Fraction of the question's words that a chunk must contain to be cited.
const WORTH_CITING: f64 = 0.3;

/// Maximum number of words of a query.
const LONGEST_SUBJECT: usize = 14;

/// An answer with its sources.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Composed {
    /// The text, two to four sentences.
    pub text: String,
    /// The sources, in the format of the answering tool.
    pub sources: Vec<Value>,
    /// Whether a source is from the knowledge base.
    pub internal: bool,
    /// Whether a source is external.
    pub external: bool,
    /// Confidence, 0 to 1 with two decimals.
    pub confidence: f64,
}

/// Composes the answer to `asked` (the subject's words) from the results of the turn. `fixed` replaces the text,
/// `recalled` are things from earlier turns to name. Takes `length` sentences of the best passage.
pub(super) fn compose(
    situation: &Situation,
    asked: &[String],
    fixed: Option<&str>,
    recalled: &[String],
    length: usize,
) -> Composed {
    let cited = cited(situation, asked);
    let best = cited.first().map_or(0.0, |chunk| overlap(asked, &chunk.text));
    let mut parts = Vec::new();
    if !recalled.is_empty() {
        parts.push(format!("About {}:", recalled.join(", ")));
    }
    if let Some(text) = fixed {
        parts.push(text.to_owned());
    } else {
        parts.extend(extracted(situation, asked, &cited, length));
    }
    let named = cited.iter().filter(|chunk| !chunk.id.is_empty());
    let mut sources: Vec<Value> =
        named.map(|chunk| json!({"kind": "internal", "id": chunk.id, "title": chunk.title})).collect();
    let outside = situation.external.iter().flat_map(|external| external.citations.iter()).take(3);
    sources.extend(outside.map(|(title, url)| json!({"kind": "external", "id": url, "title": title})));
    let external = sources.iter().any(|source| source["kind"] == "external");
    let sure = match (situation.external.is_some(), cited.is_empty()) {
        (true, _) => 0.8,
        (false, true) => 0.1,
        (false, false) => 0.5 + best / 2.0,
    };
    Composed {
        text: parts.join(" "),
        sources,
        internal: !cited.is_empty(),
        external,
        confidence: (sure * 100.0).round() / 100.0,
    }
}

/// The chunks to cite, best first, at most two.
fn cited<'a>(situation: &'a Situation, asked: &[String]) -> Vec<&'a Chunk> {
    let mut ranked: Vec<(f64, &Chunk)> = situation
        .chunks
        .iter()
        .map(|chunk| (overlap(asked, &format!("{} {}", chunk.title, chunk.text)), chunk))
        .filter(|(share, _)| *share >= WORTH_CITING)
        .collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut chosen: Vec<&Chunk> = Vec::new();
    let mut covered = BTreeSet::new();
    for (_, chunk) in ranked {
        let present = stems(&chunk.text);
        let new: Vec<String> = asked
            .iter()
            .map(|word| stem(word))
            .filter(|word| present.contains(word) && !covered.contains(word))
            .collect();
        if chosen.is_empty() || (!new.is_empty() && chosen.len() < 2) {
            chosen.push(chunk);
            covered.extend(new);
        }
    }
    if chosen.is_empty() && situation.sufficient {
        chosen.extend(situation.chunks.first());
    }
    chosen
}

fn extracted(situation: &Situation, asked: &[String], cited: &[&Chunk], length: usize) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(external) = &situation.external {
        if let Some(chunk) = cited.first() {
            let said = renumbered(&best_sentences(&chunk.text, asked, length - 2), |_| 1);
            parts.push(format!("Our documentation says: {said}"));
        }
        let outside = sentences(&external.answer);
        let outside = outside[..outside.len().min(length)].join(" ");
        // The answer lists its passages first, then the pages in the order of the external answer.
        parts.push(format!("Outside sources add: {}", renumbered(&outside, |number| number + cited.len())));
        return parts;
    }
    if situation.search_down {
        parts.push("The outside search was not available, so this rests on the knowledge base alone.".to_owned());
    }
    match cited {
        [] if situation.searched => parts.push("I found nothing about this in the knowledge base.".to_owned()),
        // Perhaps an agent without one: words about a knowledge base would be a riddle in its tests.
        [] => parts.push("I am a simulated model, and none of my rules answers this.".to_owned()),
        [only] => parts.push(quoted(only, asked, length, 1)),
        [first, second, ..] => {
            parts.push(quoted(first, asked, length, 1));
            parts.push(quoted(second, asked, 1, 2));
        }
    }
    parts
}

/// The best sentences of a chunk, with its number if it is cited by number. Numbers in a learned entry referred to its
/// pages: here they are replaced by `place`, the number of the chunk among the answer's sources.
fn quoted(chunk: &Chunk, asked: &[String], count: usize, place: usize) -> String {
    let said = renumbered(&best_sentences(&chunk.text, asked, count), |_| place);
    chunk.number.map_or_else(|| said.clone(), |number| format!("{said} [{number}]"))
}

/// Replaces every number in brackets in `text`.
fn renumbered(text: &str, number: impl Fn(usize) -> usize) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        made += before;
        let number_of = |inside: &str| inside.parse::<usize>().ok().map(&number);
        let numbered = after.split_once(']').and_then(|(inside, more)| Some((number_of(inside)?, more)));
        made.push('[');
        rest = after;
        if let Some((number, more)) = numbered {
            made += &number.to_string();
            made.push(']');
            rest = more;
        }
    }
    made + rest
}

/// The `count` sentences that share the most words with the question, in the order of the text.
fn best_sentences(text: &str, asked: &[String], count: usize) -> String {
    let all = sentences(text);
    let mut ranked: Vec<(usize, f64)> =
        all.iter().enumerate().map(|(at, sentence)| (at, overlap(asked, sentence))).collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let mut chosen: Vec<usize> = ranked.into_iter().take(count).map(|(at, _)| at).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|at| all[at]).collect::<Vec<_>>().join(" ")
}

/// The words of the question's subject; a question that refers back also takes the words that it refers to. Of a long
/// question only the last sentence counts.
pub(super) fn subject(question: &str, earlier: &[&str]) -> Vec<String> {
    let question = if content_words(question).len() > LONGEST_SUBJECT {
        sentences(question).last().copied().unwrap_or(question)
    } else {
        question
    };
    let mut chain = vec![question];
    let mut back = earlier.iter().rev();
    while super::sentences::points_back(chain[chain.len() - 1]) {
        let Some(before) = back.next() else { break };
        chain.push(before);
    }
    let all = chain.into_iter().rev().collect::<Vec<_>>().join(" ");
    let mut found = content_words(&all);
    let surplus = found.len().saturating_sub(LONGEST_SUBJECT);
    found.drain(..surplus);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::situation::External;

    fn chunk(id: &str, text: &str) -> Chunk {
        Chunk { id: id.into(), title: "Manual".into(), text: text.into(), learned: false, number: None }
    }

    #[test]
    fn an_answer_is_made_of_the_chunk_that_fits_and_cites_it() {
        let situation = Situation {
            searched: true,
            sufficient: true,
            chunks: vec![
                chunk("a#1", "Roses need light."),
                chunk("b#2", "The pump runs at 6 bar. It is loud. Clean the pump filter monthly."),
            ],
            ..Situation::default()
        };
        let composed = compose(&situation, &content_words("How many bar does the pump run at?"), None, &[], 3);
        assert!(composed.text.contains("6 bar"), "{}", composed.text);
        assert_eq!(composed.sources.len(), 1);
        assert_eq!(composed.sources[0]["id"], "b#2");
        assert!(composed.internal && !composed.external);
    }

    #[test]
    fn both_kinds_of_source_are_combined_and_flagged() {
        let situation = Situation {
            searched: true,
            chunks: vec![chunk("a#1", "Export limits are set in the solar menu.")],
            external: Some(External {
                result: "result-1".into(),
                query: "q".into(),
                answer: "The tariff is 8 cents [1].".into(),
                citations: vec![("Board".into(), "https://example.org/t".into())],
            }),
            ..Situation::default()
        };
        let composed = compose(&situation, &content_words("solar export tariff"), None, &["GL-1".to_owned()], 3);
        assert!(composed.internal && composed.external);
        assert!(composed.text.starts_with("About GL-1:") && composed.text.contains("8 cents"), "{}", composed.text);
        let place = composed.sources.iter().position(|source| source["kind"] == "external").expect("a page") + 1;
        assert!(composed.text.contains(&format!("8 cents [{place}]")), "{}", composed.text);
    }

    #[test]
    fn nothing_found_is_said_and_claims_no_source() {
        let composed = compose(&Situation { searched: true, ..Situation::default() }, &["moon".into()], None, &[], 3);
        assert!(composed.sources.is_empty() && !composed.internal && !composed.external);
        assert!(composed.text.contains("nothing"));
    }

    #[test]
    fn a_follow_up_takes_along_what_it_points_at() {
        let earlier = ["How long is the warranty of the Loam Pro in Germany?", "And in Norway?"];
        let found = subject("And for the sensor?", &earlier);
        for word in ["warranty", "norway", "sensor"] {
            assert!(found.contains(&word.to_owned()), "{found:?}");
        }
        assert!(!subject("How do I reset the Loam Pro controller?", &earlier).contains(&"warranty".to_owned()));
    }
}
