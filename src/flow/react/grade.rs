//! Relevance of passages: the model's grades, or the query's words if the model gives no usable grades.

use super::memory::Document;
use std::collections::BTreeSet;

/// Fraction of a query's words that a passage must contain to count as relevant without grades by the model.
const ENOUGH: f64 = 0.5;

/// Grades of the passages of one search, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grades {
    pub(super) relevant: Vec<bool>,
}

impl Grades {
    /// Grades from the numbers, from 1, of the relevant passages among `count`.
    ///
    /// # Errors
    /// The first number without a passage.
    pub(super) fn of_numbers(numbers: &[u64], count: usize) -> Result<Self, u64> {
        let outside = |number: &&u64| **number == 0 || usize::try_from(**number).is_ok_and(|number| number > count);
        if let Some(wrong) = numbers.iter().find(outside) {
            return Err(*wrong);
        }
        let relevant = (1..).take(count).map(|number| numbers.contains(&number)).collect();
        Ok(Self { relevant })
    }

    /// Grades by words: a passage is relevant if it contains at least half of the query's words of three letters or
    /// more.
    pub(super) fn by_words(query: &str, documents: &[Document]) -> Self {
        let wanted = words(query);
        let share = |document: &Document| {
            let there = words(&format!("{} {}", document.title, document.text));
            wanted.intersection(&there).count() as f64 / wanted.len().max(1) as f64
        };
        Self { relevant: documents.iter().map(|document| !wanted.is_empty() && share(document) >= ENOUGH).collect() }
    }

    /// Number of relevant passages.
    pub(super) fn count(&self) -> usize {
        self.relevant.iter().filter(|relevant| **relevant).count()
    }

    /// Whether most of the passages are irrelevant, so that the query should be rewritten.
    pub(super) fn mostly_irrelevant(&self) -> bool {
        self.count() * 2 < self.relevant.len()
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() >= 3);
    words.map(str::to_lowercase).collect()
}

/// A query in the form used for comparison: the same words in any order are the same search.
pub(super) fn same_search(query: &str) -> BTreeSet<String> {
    query
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Removes numbers in brackets that are not among the `count` sources; a list loses only its wrong numbers. The text
/// around a removed number is checked again: `[9[7]]` leaves nothing.
pub(super) fn in_range(text: &str, count: usize) -> String {
    let mut kept = String::with_capacity(text.len());
    for letter in text.chars() {
        match (letter == ']').then(|| list_at_the_end(&kept, count)).flatten() {
            Some((open, sound)) if sound.is_empty() => kept.truncate(kept[..open].trim_end().len()),
            Some((open, sound)) => kept.replace_range(open.., &format!("[{sound}]")),
            None => kept.push(letter),
        }
    }
    kept
}

/// Opening position of the list whose closing bracket comes next, and its numbers from 1 to `count`.
fn list_at_the_end(text: &str, count: usize) -> Option<(usize, String)> {
    let is_of_list = |letter: char| letter.is_ascii_digit() || letter == ',' || letter.is_whitespace();
    let open = text.trim_end_matches(is_of_list).strip_suffix('[')?.len();
    let numbers: Vec<&str> = text[open + 1..].split(',').map(str::trim).collect();
    if numbers.iter().any(|number| number.is_empty() || number.contains(char::is_whitespace)) {
        return None;
    }
    // A number too long for a machine word belongs to no source.
    let is_sound = |number: &&&str| number.parse().is_ok_and(|number: usize| (1..=count).contains(&number));
    let sound: Vec<&str> = numbers.iter().filter(is_sound).copied().collect();
    Some((open, sound.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(text: &str) -> Document {
        Document { id: "a#1".into(), title: String::new(), text: text.into() }
    }

    #[test]
    fn a_number_that_no_passage_has_is_named() {
        assert_eq!(Grades::of_numbers(&[1, 6], 5), Err(6));
        assert_eq!(Grades::of_numbers(&[0], 5), Err(0));
        assert_eq!(Grades::of_numbers(&[u64::MAX], 5), Err(u64::MAX));
        assert_eq!(Grades::of_numbers(&[2, 2], 3).map(|grades| grades.relevant), Ok(vec![false, true, false]));
    }

    #[test]
    fn the_majority_decides_and_half_is_no_majority_of_irrelevant_ones() {
        let of = |relevant: &[bool]| Grades { relevant: relevant.to_vec() }.mostly_irrelevant();
        assert!(of(&[true, false, false]) && of(&[false]));
        assert!(!of(&[true, false]) && !of(&[true, true, false]) && !of(&[]));
    }

    #[test]
    fn without_grades_the_words_of_the_query_decide() {
        let documents = [document("The warranty of the Sprig lasts 24 months."), document("Frost guard.")];
        assert_eq!(Grades::by_words("Sprig warranty months", &documents).relevant, [true, false]);
        assert_eq!(Grades::by_words("?", &documents).count(), 0, "no word, no relevance");
    }

    #[test]
    fn numbers_without_a_source_go_and_all_other_text_stays() {
        assert_eq!(in_range("So [1]. But [7]. [sic] [2, 9] [", 2), "So [1]. But. [sic] [2] [");
        assert_eq!(in_range("x [9 [7]] [99999999999999999999] [] [1,,2] 3] [[1]]", 2), "x [] [1,,2] 3] [[1]]");
    }

    proptest! {
        #[test]
        fn every_passage_is_graded_once(numbers in prop::collection::vec(0_u64..8, 0..8), count in 0_usize..6) {
            match Grades::of_numbers(&numbers, count) {
                Ok(grades) => {
                    prop_assert_eq!(grades.relevant.len(), count);
                    let distinct: BTreeSet<_> = numbers.iter().collect();
                    prop_assert_eq!(grades.count(), distinct.len());
                }
                Err(wrong) => prop_assert!(numbers.contains(&wrong) && (wrong == 0 || wrong > count as u64)),
            }
        }

        #[test]
        fn only_sources_that_there_are_stay_cited(text in "[\\[\\]0-9, a-z.é]{0,40}", count in 0_usize..4) {
            let kept = in_range(&text, count);
            let plain = regex::Regex::new(r"\[( *\d+ *(, *\d+ *)*)\]").expect("a pattern");
            for found in plain.captures_iter(&kept) {
                for number in found[1].split(',') {
                    let number = number.trim().parse::<usize>().unwrap_or(usize::MAX);
                    prop_assert!((1..=count).contains(&number), "{} -> {}", text, kept);
                }
            }
        }

        #[test]
        fn grading_by_words_does_not_depend_on_order_or_case(query in "[a-zA-Z ]{0,30}", text in "[a-zA-Z ]{0,60}") {
            let turned: Vec<&str> = query.split(' ').rev().collect();
            let upper = turned.join(" ").to_uppercase();
            let documents = [document(&text)];
            prop_assert_eq!(Grades::by_words(&query, &documents), Grades::by_words(&upper, &documents));
        }
    }
}
