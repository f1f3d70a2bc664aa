//! `keyword_quality`: stored keywords that are about what they index / stored keywords (FR-007).
//!
//! A keyword is about an external result if it is not generic and has a content word of the result: of its answer, of the
//! titles of its pages, or of the user's question or the query that led to it. Content words are those of queries
//! (`content_words`), so the words that a tool refuses do not decide. A keyword of a result that the trace does not show
//! is not a unit.

use super::catalogue::Registered;
use super::content_words::content_words;
use super::generic::{is_generic, normalise};
use super::tools::Tools;
use super::{Member, Metric, Observation, TrialView, quote};
use crate::settings::catalogue::Units;
use crate::trace::{ExternalResult, Role};
use std::collections::{BTreeMap, BTreeSet};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("keyword_quality", |_| Metric {
    needs: vec![Tools::Role(Role::External), Tools::Role(Role::Index)],
    members: &[Member::IndexWrites],
    ..Metric::new("stored keywords", observe)
})
.about("Of the stored keywords, those with a content word of the result that they index or of its question.")
.counted(Units::Unlimited)];

/// Content words of a result and of what led to it.
fn subject(found: &ExternalResult, question: &str) -> BTreeSet<String> {
    let titles = found.citations.iter().map(|page| page.title.as_str());
    let texts = [found.answer.as_str(), found.query.as_str(), question].into_iter().chain(titles);
    texts.flat_map(content_words).flat_map(|word| parts(&word)).collect()
}

/// A word and, if it is hyphenated, its parts.
fn parts(word: &str) -> Vec<String> {
    let parts = word.split('-').filter(|_| word.contains('-')).map(str::to_owned);
    std::iter::once(word.to_owned()).chain(parts).collect()
}

/// What is wrong with a keyword, if anything.
fn flaw(keyword: &str, subject: &BTreeSet<String>) -> Option<&'static str> {
    let words = content_words(keyword);
    if words.is_empty() || is_generic(&normalise(keyword)) {
        return Some("generic");
    }
    let known = |word: &String| parts(word).iter().any(|part| subject.contains(part));
    (!words.iter().any(known)).then_some("no word of the result or its question")
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let (mut subjects, mut units) = (BTreeMap::new(), Vec::new());
    for turn in view.turns {
        for found in turn.externals() {
            subjects.insert((turn.conversation, found.result.as_str()), subject(found, turn.query));
        }
        for index in turn.indexings() {
            let Some(subject) = subjects.get(&(turn.conversation, index.result.as_str())) else { continue };
            units.extend(index.keywords.iter().map(|keyword| {
                let unit = format!("{}, {}", turn.label(), quote(keyword, 60));
                Observation::unless(unit, flaw(keyword, subject))
            }));
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Outcome;
    use crate::metric::sample::observe;
    use crate::trace::CitedPage;

    /// A question, the result with its title, good keywords and bad ones.
    type Judged = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

    /// Results in three languages, with keywords that a reader finds good and bad; no simulator wrote them.
    #[test]
    fn keywords_are_judged_by_the_result_and_not_by_a_list_of_good_ones() {
        let results: [Judged; 3] = [
            (
                "Which subsidy is there for heat pumps in Austria?",
                "Households that replace an oil boiler get up to 75 percent of the costs; applications close in December.",
                "Federal funding: clean heating",
                &[
                    "heat pump subsidy",
                    "oil boiler replacement",
                    "clean heating",
                    "Austria",
                    "application deadline December",
                ],
                &["information", "interesting aspects", "the best answer", "miscellaneous", "please", "lorem ipsum"],
            ),
            (
                "Wie hoch ist die Netzgebühr in Tirol?",
                "Die Netzgebühr in Tirol beträgt seit Jänner 6,4 Cent je Kilowattstunde.",
                "Netztarife",
                &["Netzgebühr Tirol", "Cent je Kilowattstunde"],
                &["bitte", "Wissenswertes", "die"],
            ),
            ("太陽光の買取価格は？", "買取価格は 16 円です。", "FIT", &["FIT", "16 円です"], &["一般的"]),
        ];
        for (question, answer, title, good, bad) in results {
            let page = CitedPage { title: title.into(), url: "https://example.org/a".into() };
            let found = ExternalResult {
                result: "result-1".into(),
                query: String::new(),
                answer: answer.into(),
                citations: vec![page],
                model: "s".into(),
                input_tokens: None,
                cached_tokens: None,
                output_tokens: None,
            };
            let subject = subject(&found, question);
            for keyword in good {
                assert_eq!(flaw(keyword, &subject), None, "{keyword}");
            }
            for keyword in bad {
                assert!(flaw(keyword, &subject).is_some(), "{keyword}");
            }
        }
    }

    #[test]
    fn each_stored_keyword_is_a_unit_and_one_of_an_unknown_result_is_none() {
        let keywords = ["web terms", "blue ledger", "information"];
        let told = |result: &'static str| {
            let units = observe("keyword_quality", "[{case: a, ask: q}]", |s| {
                s.turn("q").external("result-1").index(result, &keywords, 3)
            });
            units.into_iter().map(|unit| (unit.outcome == Outcome::Success, unit.note)).collect::<Vec<_>>()
        };
        let foreign = "no word of the result or its question".to_owned();
        assert_eq!(told("result-1"), [(true, String::new()), (false, foreign), (false, "generic".into())]);
        assert!(told("result-9").is_empty());
    }
}
