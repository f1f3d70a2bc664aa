//! Grounding without a model, on answers that people have read against their source (FaithBench): facts that were put in
//! another's place are found, and answers without an unsupported span are seldom called unsupported.

use super::part;
use super::published::{compare, table};
use flate2::read::GzDecoder;
use ragcheck::internals::metric::grounding::{places, unsupported};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// An answer, its source, and where people found it unsupported, in bytes.
struct Annotated {
    source: String,
    answer: String,
    unwanted: Vec<Range<usize>>,
}

fn answers() -> Vec<Annotated> {
    let mut text = String::new();
    let file = File::open(part("grounding/faithbench.jsonl.gz")).expect("the answers");
    GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let read = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let answer = row["answer"].as_str().expect("an answer").to_owned();
        let bytes: Vec<usize> = answer.char_indices().map(|(at, _)| at).chain([answer.len()]).collect();
        let byte = |value: &Value| bytes[(value.as_u64().expect("a place") as usize).min(bytes.len() - 1)];
        let is_unwanted =
            |one: &&Value| one["label"].as_array().is_some_and(|labels| labels.iter().any(|label| label == "Unwanted"));
        let spans = row["annotations"].as_array().expect("annotations").iter().filter(is_unwanted);
        let unwanted = spans.map(|one| byte(&one["start"])..byte(&one["end"])).collect();
        Annotated { source: row["source"].as_str().expect("a source").to_owned(), answer, unwanted }
    };
    text.lines().map(read).collect()
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Numbers, dates, codes and names of a text, found by other means than the metric's.
fn facts(kind: usize, text: &str) -> Vec<Range<usize>> {
    let expression = [
        r"\b(\d+(?:[.,]\d+)*)\b",
        r"\b((?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2},? \d{4})\b",
        r"\b([A-Z]+-?\d+)\b",
        r"[a-z,] ([A-Z][a-z]{3,})\b",
    ][kind];
    let found: Vec<Range<usize>> = Regex::new(expression)
        .expect("an expression")
        .captures_iter(text)
        .filter_map(|parts| parts.get(1))
        .filter(|one| kind != 0 || one.as_str().replace(',', "").parse::<f64>().is_ok_and(|value| value > 12.0))
        .map(|one| one.range())
        .collect();
    found
}

/// A seeded draw: the 64 bits of a linear congruential step.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn facts_put_in_anothers_place_are_found_and_clean_answers_are_seldom_flagged() {
    let answers = answers();
    let kinds = ["numbers", "dates", "codes", "names"];
    let pools: Vec<Vec<String>> = (0..kinds.len())
        .map(|kind| {
            let all =
                answers.iter().flat_map(|one| facts(kind, &one.source).into_iter().map(|at| one.source[at].to_owned()));
            all.collect::<BTreeSet<_>>().into_iter().collect()
        })
        .collect();
    let clean = || answers.iter().filter(|one| one.unwanted.is_empty());
    let mut dice = Dice(20_261_124);
    let mut rows = Vec::new();
    let (mut all_found, mut all) = (0, 0);
    for (kind, name) in kinds.iter().enumerate() {
        let (mut absent, mut other) = ((0, 0), (0, 0));
        for one in clean() {
            let lower = one.source.to_lowercase();
            let own: Vec<String> = facts(kind, &one.source).into_iter().map(|at| one.source[at].to_owned()).collect();
            for place in facts(kind, &one.answer) {
                let is_found = |new: &str| {
                    let text = format!("{}{new}{}", &one.answer[..place.start], &one.answer[place.end..]);
                    let swapped = place.start..place.start + new.len();
                    unsupported(&text, &one.source).1.iter().any(|at| overlap(at, &swapped))
                };
                let strange: Vec<&String> =
                    pools[kind].iter().filter(|new| !lower.contains(&new.to_lowercase())).collect();
                if !strange.is_empty() {
                    absent.1 += 1;
                    absent.0 += usize::from(is_found(strange[dice.below(strange.len())]));
                }
                let others: Vec<&String> = own.iter().filter(|new| **new != one.answer[place.clone()]).collect();
                if !others.is_empty() {
                    other.1 += 1;
                    other.0 += usize::from(is_found(others[dice.below(others.len())]));
                }
            }
        }
        (all_found, all) = (all_found + absent.0, all + absent.1);
        let share = |(found, n): (usize, usize)| if n == 0 { "none".to_owned() } else { format!("{found} of {n}") };
        rows.push(vec![(*name).to_owned(), share(absent), share(other)]);
    }
    compare("swapped-facts", &table(&["swapped", "found, absent from the source", "found, of the same source"], &rows));

    let flagged = clean().filter(|one| !unsupported(&one.answer, &one.source).1.is_empty()).count();
    let (mut spans, mut found) = (0, 0);
    for one in &answers {
        let (facts, missing) = (places(&one.answer), unsupported(&one.answer, &one.source).1);
        for span in one.unwanted.iter().filter(|span| facts.iter().any(|fact| overlap(fact, span))) {
            spans += 1;
            found += usize::from(missing.iter().any(|at| overlap(at, span)));
        }
    }
    let rows = [
        vec!["answers without an unsupported span, flagged".to_owned(), format!("{flagged} of {}", clean().count())],
        vec!["unsupported spans with a fact, flagged".to_owned(), format!("{found} of {spans}")],
    ];
    compare("answers-as-they-are", &table(&["answers as they are", ""], &rows));

    assert!(all_found as f64 >= 0.95 * all as f64, "{all_found} of {all} swapped facts are found");
    assert!(flagged as f64 <= 0.05 * clean().count() as f64, "{flagged} clean answers are flagged");
}
