//! Finds the wanted length of an answer, and lasting decisions and preferences, in the user's words, by rules for
//! English and German. Questions in other languages get short, direct answers; their preferences are left to the model.

use crate::platform::secrets;
use crate::platform::words;
use serde::{Deserialize, Serialize};

words! {
    fn name;
    /// The length of an answer.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(super) enum Style {
        /// The requested fact.
        #[default]
        Concise = "concise",
        /// With reasons and conditions.
        Detailed = "detailed",
    }
}

words! {
    fn name;
    /// Kind of a user statement that stays valid in later turns.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(super) enum NoteKind {
        Decision = "decision",
        Preference = "preference",
    }
}

const BREVITY: [&str; 15] = [
    "be brief", "briefly", "keep it short", "short answer", "short answers", "in one sentence", "just the", "concise",
    "kurz", "in einem satz", "knapp", "fasse dich kurz", "kurze antwort", "kurze antworten", "nur die",
];
const DETAIL: [&str; 14] = [
    "in detail", "detailed", "at length", "step by step", "long answer", "thorough", "with all the reasons",
    "ausführlich", "im detail", "im einzelnen", "schritt für schritt", "genau erklären", "mit allen gründen",
    "detailliert",
];
const EXPLORING: [&str; 22] = [
    "why", "how does", "how do", "explain", "understand", "what happens", "difference", "tell me more", "what if",
    "i wonder", "compare", "warum", "wieso", "weshalb", "wie funktioniert", "erkläre", "erklär", "verstehen",
    "was passiert", "unterschied", "was wäre, wenn", "vergleiche",
];
const DECIDED: [&str; 13] = [
    "we decided", "i decided", "we will use", "i will use", "we chose", "i chose", "let us use",
    "wir haben entschieden", "wir haben beschlossen", "wir haben uns für", "ich habe mich für", "wir nehmen",
    "wir verwenden künftig",
];
const PREFERRED: [&str; 15] = [
    "i prefer", "from now on", "in future", "always answer", "please always", "never use", "call me", "ich bevorzuge",
    "ab jetzt", "von jetzt an", "in zukunft", "künftig", "antworte immer", "bitte immer", "nenne mich",
];

/// Openings without content; a sentence that begins with one is removed if another follows.
const FILLER: [&str; 24] = [
    "sure", "of course", "certainly", "absolutely", "great question", "good question", "thank you for", "thanks for",
    "i'd be happy to", "i would be happy to", "let me help", "as an ai", "happy to help", "based on the provided",
    "gerne", "natürlich", "selbstverständlich", "gute frage", "tolle frage", "vielen dank für", "danke für",
    "ich helfe gerne", "als ki", "basierend auf",
];

/// Lower case, single spaces, straight apostrophes.
fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace(['\u{2019}', '\u{2018}'], "'");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `text` contains one of `phrases` at word boundaries.
fn has(text: &str, phrases: &[&str]) -> bool {
    let ends = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
    phrases.iter().any(|phrase| {
        text.match_indices(phrase)
            .any(|(at, found)| ends(text[..at].chars().next_back()) && ends(text[at + found.len()..].chars().next()))
    })
}

/// The style that the user asks for explicitly; if both, the last one.
fn wish(text: &str) -> Option<Style> {
    let last = |phrases: &[&str]| {
        let found = phrases.iter().filter(|phrase| has(text, &[phrase]));
        found.filter_map(|phrase| text.rfind(phrase)).max()
    };
    match (last(&BREVITY), last(&DETAIL)) {
        (None, None) => None,
        (brief, detail) => Some(if brief >= detail { Style::Concise } else { Style::Detailed }),
    }
}

/// The style of the answer to `query` and the reason, given the preferences of earlier turns, newest last. A request in
/// the question has priority, then a lasting preference, then the form of the question.
pub(super) fn style<'p>(query: &str, preferences: impl DoubleEndedIterator<Item = &'p str>) -> (Style, &'static str) {
    let text = plain(query);
    if let Some(style) = wish(&text) {
        return (style, "the question asks for it");
    }
    if let Some(style) = preferences.rev().find_map(|said| wish(&plain(said))) {
        return (style, "an earlier wish");
    }
    if has(&text, &EXPLORING) {
        (Style::Detailed, "the question explores")
    } else {
        (Style::Concise, "the question is short and direct")
    }
}

/// The sentences of a text, with their end marks.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?', '\n']).map(str::trim).filter(|sentence| !sentence.is_empty())
}

/// Decisions and preferences in the user's words: whole sentences.
pub(super) fn notes(query: &str) -> Vec<(NoteKind, String)> {
    let kind = |sentence: &str| {
        let text = plain(sentence);
        let kind = if has(&text, &DECIDED) {
            NoteKind::Decision
        } else if has(&text, &PREFERRED) {
            NoteKind::Preference
        } else {
            return None;
        };
        Some((kind, secrets::beginning(sentence, 300)))
    };
    sentences(query).filter_map(kind).collect()
}

/// Removes an opening without content. A text that consists only of one stays unchanged.
pub(super) fn without_filler(text: &str) -> &str {
    let mut rest = text.trim();
    loop {
        let Some(end) = rest.find(['.', '!', '?', '\n', ',']).map(|at| at + 1) else { return rest };
        let opening = plain(&rest[..end]);
        let after = rest[end..].trim_start();
        if after.is_empty() || !FILLER.iter().any(|filler| opening.starts_with(filler) && ends_word(&opening, filler)) {
            return rest;
        }
        rest = after;
    }
}

fn ends_word(text: &str, start: &str) -> bool {
    text[start.len()..].chars().next().is_none_or(|next| !next.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(query: &str, preferences: &[&str]) -> Style {
        style(query, preferences.iter().copied()).0
    }

    #[test]
    fn short_orders_get_short_answers_and_exploring_gets_detail() {
        for query in ["Warranty of the Sprig?", "Which port does the firewall open?", "Show the price."] {
            assert_eq!(of(query, &[]), Style::Concise, "{query}");
        }
        for query in ["Why does the ring blink yellow?", "Explain the frost guard", "I wonder: WHAT  HAPPENS then?"] {
            assert_eq!(of(query, &[]), Style::Detailed, "{query}");
        }
        assert_eq!(of("The whyever model", &[]), Style::Concise, "a part of a word is none");
    }

    #[test]
    fn german_is_read_by_rules_of_its_own_and_other_languages_are_short_and_direct() {
        for query in ["Warum blinkt der Ring gelb?", "Erkläre den Frostwächter.", "Was passiert dann?"] {
            assert_eq!(of(query, &[]), Style::Detailed, "{query}");
        }
        for query in ["Wie lange gilt die Garantie?", "Der verkürzte Weg zum Warumbau", "Que signifie le code E-21 ?"]
        {
            assert_eq!(of(query, &[]), Style::Concise, "{query}");
        }
        assert_eq!(of("Warum? In einem Satz, bitte.", &["Ab jetzt ausführlich antworten."]), Style::Concise);
        assert_eq!(of("Wie lange gilt die Garantie?", &["Ab jetzt ausführlich antworten."]), Style::Detailed);
        let said = "Wir haben uns für den Canopy entschieden. Ab jetzt ausführlich. Welcher Port?";
        let kinds: Vec<NoteKind> = notes(said).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [NoteKind::Decision, NoteKind::Preference]);
        assert_eq!(without_filler("Gute Frage! Natürlich, 24 Monate [1]."), "24 Monate [1].");
        assert_eq!(
            without_filler("Natürlicher Schatten hilft, sagt das Handbuch."),
            "Natürlicher Schatten hilft, sagt das Handbuch."
        );
    }

    #[test]
    fn an_explicit_wish_wins_over_an_earlier_one_and_both_over_the_way_of_asking() {
        assert_eq!(of("Why so? Be brief.", &[]), Style::Concise);
        assert_eq!(of("The price, in detail", &["From now on short answers, please"]), Style::Detailed);
        assert_eq!(of("Why so?", &["I prefer answers in detail.", "From now on be brief."]), Style::Concise);
        assert_eq!(of("Not in detail, just the number: why?", &[]), Style::Concise, "the last wish counts");
    }

    #[test]
    fn decisions_and_preferences_are_whole_sentences() {
        let said = "We decided to use the Canopy. How long is its warranty? From now on be brief.";
        let found = notes(said);
        assert_eq!(found[0], (NoteKind::Decision, "We decided to use the Canopy.".to_owned()));
        assert_eq!(found[1], (NoteKind::Preference, "From now on be brief.".to_owned()));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn openings_that_say_nothing_go_and_nothing_else_does() {
        for (text, left) in [
            ("Sure! Great question. It is 24 months [1].", "It is 24 months [1]."),
            ("Of course, the Sprig has 24 months.", "the Sprig has 24 months."),
            ("Surely not.", "Surely not."),
            ("Sure.", "Sure."),
            ("24 months.", "24 months."),
        ] {
            assert_eq!(without_filler(text), left, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_words_have_a_style_and_what_is_left_of_an_answer_is_its_end(text in "\\PC{0,80}", said in "\\PC{0,60}") {
            let (first, _) = style(&text, [said.as_str()].into_iter());
            prop_assert_eq!(first, style(&text, [said.as_str()].into_iter()).0);
            let left = without_filler(&text);
            prop_assert!(text.trim().ends_with(left) && (left.is_empty() == text.trim().is_empty()));
            prop_assert!(notes(&text).iter().all(|(_, note)| text.contains(note.as_str())));
        }

        #[test]
        fn a_wish_in_the_question_always_wins(before in "[a-z ?.]{0,40}", at in 0..BREVITY.len(), other in 0..DETAIL.len()) {
            let query = format!("{before} . {}", BREVITY[at]);
            prop_assert_eq!(style(&query, [DETAIL[other]].into_iter()).0, Style::Concise);
            let query = format!("{before} . {}", DETAIL[other]);
            prop_assert_eq!(style(&query, [BREVITY[at]].into_iter()).0, Style::Detailed);
        }
    }
}
