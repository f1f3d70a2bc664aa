//! Answers that cite passages of their turn by number: `[1]` is the first one retrieved.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `citation_range` | answers with a number | every number is one of the turn's passages |
//! | `cited_answer_rate` | answers of turns that retrieved a passage, except refusals | it has a number, and a word besides the numbers |
//! | `declared_refusal_rate` | answered queries whose searches returned neither a passage nor a managed service's answer | it is a refusal |
//!
//! An answer with a number and nothing to cite is out of range, and not a unit of the second metric. A refusal is known
//! by what it says, in the language of the conversation: the agent marks it as one (`refused` in the trace), or it says
//! that it cannot answer (`trace::refusal`), cites nothing, and states no fact that the user did not: a number, a date, a
//! code, and outside of that sentence a name or quoted words. "I found nothing, but it is 42 metres" is an answer.

use super::catalogue::Registered;
use super::trajectory::own_words;
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView, grounding};
use crate::settings::catalogue::Units;
use crate::trace::citations::numbers_of;
use crate::trace::refusal::{SENTENCE_ENDS, says_that_it_cannot_answer};
use crate::trace::{Answer, SearchResult};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("citation_range", |_| InlineCitations::Range.metric())
        .about("Of the answers that cite by number, those whose every number is one of the passages of their turn.")
        .counted(Units::OfTurns),
    Registered::rate("cited_answer_rate", |_| InlineCitations::Cited.metric())
        .about(
            "Of the answers to queries for which passages were found, those in words with a number; \
             refusals left out.",
        )
        .counted(Units::OfTurns),
    Registered::rate("declared_refusal_rate", |_| InlineCitations::Refusal.metric())
        .about("Of the answered queries for which no passage was found, those that say so and state nothing else.")
        .counted(Units::OfTurns),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InlineCitations {
    Range,
    Cited,
    Refusal,
}

/// Whether an answer without a number, whose own words are `text`, refuses to answer `asked`, and states nothing else. What was not found may be named
/// in the sentence that says so, in a language whose names are not known; a number is never part of a refusal.
pub(super) fn is_refusal(answer: &Answer, text: &str, asked: &str) -> bool {
    let is_named = |place: &std::ops::Range<usize>| {
        let from = text[..place.start].rfind(SENTENCE_ENDS).unwrap_or_default();
        let to = text[place.end..].find(SENTENCE_ENDS).map_or(text.len(), |at| place.end + at);
        !text[place.clone()].contains(char::is_numeric) && says_that_it_cannot_answer(&text[from..to])
    };
    answer.refused || says_that_it_cannot_answer(text) && grounding::unsupported(text, asked).1.iter().all(is_named)
}

impl InlineCitations {
    /// What a search counts for: its passages, or whether it found something.
    fn found(self, search: &SearchResult) -> usize {
        if self == Self::Refusal { search.found_something().into() } else { search.hits.len() }
    }

    /// The unit for an answer, if any; `found` is what the searches of its turn count for.
    fn judge(self, answer: &Answer, refuses: impl Fn() -> bool, found: usize) -> Option<Held> {
        let numbers = numbers_of(&answer.text);
        let outside = || numbers.iter().find(|number| **number == 0 || **number > found);
        Some(match self {
            Self::Range if numbers.is_empty() => return None,
            Self::Range => match outside() {
                None => Ok(()),
                Some(number) => Err(Seen::new(format!("cites [{number}] of {found} passages"))),
            },
            Self::Cited if found == 0 || answer.refused => return None,
            Self::Cited if numbers.is_empty() && refuses() => return None,
            Self::Cited if numbers.is_empty() => Err(Seen::new("cites no passage")),
            Self::Cited if !answer.text.chars().any(char::is_alphabetic) => Err(Seen::new("says nothing but numbers")),
            Self::Cited => Ok(()),
            Self::Refusal if found > 0 => return None,
            Self::Refusal if numbers.is_empty() && refuses() => Ok(()),
            Self::Refusal => Err(Seen::new("answers although nothing was found")),
        })
    }
}

impl InlineCitations {
    fn metric(self) -> Metric {
        let units = match self {
            Self::Range => "answers that cite by number",
            Self::Cited => "answers with passages",
            Self::Refusal => "answers without passages",
        };
        let members: &[Member] = match self {
            Self::Range => &[Member::Passages, Member::Answers],
            Self::Cited | Self::Refusal => &[Member::Passages, Member::Answers, Member::Refusals],
        };
        Metric { members, ..Metric::new(units, move |view| self.observe(view)) }
    }

    fn observe(self, view: &TrialView<'_>) -> Vec<Observation> {
        let unit = |turn: &TurnView<'_>| {
            let mut searches = turn.searches().peekable();
            searches.peek()?;
            let found = searches.map(|search| self.found(search)).sum();
            let answer = turn.answer()?;
            let refuses = || is_refusal(answer, &own_words(turn).unwrap_or_default(), turn.query);
            Some(Observation::of(turn.label(), self.judge(answer, refuses, found)?))
        };
        view.turns.iter().filter_map(unit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(metric: InlineCitations, text: &str, found: usize) -> Option<bool> {
        let refused = text == "No.";
        let answer = Answer { text: text.into(), refused, ..Answer::default() };
        metric
            .judge(&answer, || is_refusal(&answer, text, "How wide is the Canopy?"), found)
            .map(|judged| judged.is_ok())
    }

    #[test]
    fn each_mistake_is_one_of_its_own_metric_and_of_no_other() {
        use InlineCitations::{Cited, Range, Refusal};
        for (text, found, range, cited, refusal) in [
            ("So it is [1] [3].", 3, Some(true), Some(true), None),
            ("So it is [1] [4].", 3, Some(false), Some(true), None),
            ("So it is [0].", 3, Some(false), Some(true), None),
            ("So it is.", 3, None, Some(false), None),
            ("[1] [2]", 3, Some(true), Some(false), None),
            ("No.", 3, None, None, None),
            ("No.", 0, None, None, Some(true)),
            ("So it is.", 0, None, None, Some(false)),
            ("So it is [1].", 0, Some(false), None, Some(false)),
            // Every spelling counts: a range, a footnote, a link, other brackets.
            ("So it is [1-3].", 3, Some(true), Some(true), None),
            ("So it is [2-4].", 3, Some(false), Some(true), None),
            ("So it is [^4].", 3, Some(false), Some(true), None),
            ("So it is [4](https://a.example).", 3, Some(false), Some(true), None),
            ("So it is 【3】.", 3, Some(true), Some(true), None),
        ] {
            let seen = (judged(Range, text, found), judged(Cited, text, found), judged(Refusal, text, found));
            assert_eq!(seen, (range, cited, refusal), "{text} {found}");
        }
    }

    #[test]
    fn a_refusal_is_known_by_what_it_says_in_any_language_and_states_nothing_else() {
        use InlineCitations::{Cited, Refusal};
        for refusal in [
            "I found nothing about this in the knowledge base.",
            "I could not find the width of the Canopy in the documents.",
            "Dazu habe ich in der Wissensdatenbank leider nichts gefunden.",
            "Je n'ai rien trouvé à ce sujet.",
            "No he encontrado información sobre el Canopy.",
            "該当する情報は見つかりませんでした。",
            "Sorry, I could not find that. Have a nice day!",
            "Thank you for your question. I can't help you further. Please contact our support team.",
            "No dispongo de esa información. ¿Puedo ayudarte en algo más?",
        ] {
            assert_eq!(judged(Refusal, refusal, 0), Some(true), "{refusal}");
            assert_eq!(judged(Cited, refusal, 3), None, "{refusal}");
        }
        for answer in [
            "I found nothing about this, but it is 42 metres wide.",
            "Dazu habe ich nichts gefunden, üblich sind 42 Meter.",
            "I do not know it; ask Reykjavik Instruments.",
            "I found nothing about it in the documents. Ask the people of Reykjavik Instruments.",
            "It depends on the model and its settings.",
            "I found nothing about this in the knowledge base [1].",
        ] {
            assert_eq!(judged(Refusal, answer, 0), Some(false), "{answer}");
        }
        assert_eq!(judged(Cited, "I found nothing about this, but it is 42 metres wide.", 3), Some(false));
        assert_eq!(judged(Cited, "The documents do not mention it [1].", 3), Some(true));
    }
}
