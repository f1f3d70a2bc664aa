//! `answer_length`: answers as long as the user asked for / answers with a style (KL-6.1 to 6.3).
//!
//! A concise answer has at most 60 words, a detailed one at least 30. Words are counted between spaces, without
//! citations, without the sources that it lists, and without the notices of the agent. The style is that of the case (`answer.style`), because a case
//! knows what the user meant in whatever words; only without one it is what the agent logged. An answer that is
//! written without spaces between words is not a unit.

use super::catalogue::Registered;
use super::expectation::answers;
use super::trajectory::{logs, own_words};
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView};
use crate::scenario::expect::AnswerStyle;
use crate::settings::catalogue::Units;
use crate::trace::Logged;
use crate::trace::citations::listed;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("answer_length", |_| Metric {
    members: &[Member::Log, Member::Answers],
    ..Metric::new("answers with a style", observe)
})
.about(
    "Of the answers for which a style was asked, those as long as it says: concise, at most 60 words; \
         detailed, at least 30.",
)
.counted(Units::OfTurns)];

/// Most words of a concise answer.
const CONCISE: usize = 60;
/// Fewest words of a detailed answer.
const DETAILED: usize = 30;
/// Mean length of words, in characters, above which a text has no spaces between them.
const LONGEST_MEAN: usize = 20;

static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[[\d\s,;^#–-]+\]").ok());

/// Number of words of a turn's answer; `None` where it cannot be counted.
fn length(turn: &TurnView<'_>) -> Option<usize> {
    let own = own_words(turn)?;
    let text = NUMBERS.as_ref()?.replace_all(&own, " ");
    let words = |text: &str| {
        let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
        words.fold((0, 0), |(count, letters), word| (count + 1, letters + word.chars().count()))
    };
    let without = |(count, letters): (usize, usize), source: (usize, usize)| {
        (count.saturating_sub(source.0), letters.saturating_sub(source.1))
    };
    let sources = listed(&own);
    let (count, letters) =
        sources.iter().filter(|entry| entry.is_marked).map(|entry| words(entry.text)).fold(words(&text), without);
    (letters <= count * LONGEST_MEAN).then_some(count)
}

/// Whether the answer of a turn has the length of a style; `None` where it cannot be counted.
pub(super) fn has_style(style: AnswerStyle, turn: &TurnView<'_>) -> Option<Held> {
    let words = length(turn)?;
    let (holds, bound) = match style {
        AnswerStyle::Concise => (words <= CONCISE, format!("at most {CONCISE}")),
        AnswerStyle::Detailed => (words >= DETAILED, format!("at least {DETAILED}")),
    };
    let seen = || Seen::new(format!("{words} words; a {} answer has {bound}", style.as_str()));
    Some(holds.then_some(()).ok_or_else(seen))
}

/// The style that the agent logged.
fn logged(turn: &TurnView<'_>) -> Option<AnswerStyle> {
    logs(turn).find_map(|entry| if let Logged::Style { style, .. } = entry { AnswerStyle::named(style) } else { None })
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let asked: BTreeMap<(u32, u32), AnswerStyle> =
        answers(view).filter_map(|(turn, expected)| Some(((turn.conversation, turn.turn), expected.style?))).collect();
    let unit = |turn: &TurnView<'_>| {
        let style = asked.get(&(turn.conversation, turn.turn)).copied().or_else(|| logged(turn))?;
        Some(Observation::of(turn.label(), has_style(style, turn)?))
    };
    view.turns.iter().filter_map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{Story, observe};
    use crate::trace::What;

    fn style(story: Story, style: &str) -> Story {
        story.push(What::Logged(Logged::Style { style: style.into(), because: "so".into() }))
    }

    fn notes(cases: &str, tell: impl Fn(Story) -> Story) -> Vec<String> {
        observe("answer_length", cases, tell).into_iter().map(|unit| unit.note).collect()
    }

    const UNDECLARED: &str = "[{case: a, ask: q}]";

    #[test]
    fn an_answer_has_the_length_of_the_style_that_was_logged() {
        let told = |name: &'static str, words: usize| {
            let text = "word [1] ".repeat(words);
            notes(UNDECLARED, move |s| style(s.turn("q"), name).deliver(&text, &[], 1))
        };
        assert_eq!(told("concise", 60), [""]);
        assert_eq!(told("concise", 61), ["61 words; a concise answer has at most 60"]);
        assert_eq!(told("detailed", 30), [""]);
        assert_eq!(told("detailed", 29), ["29 words; a detailed answer has at least 30"]);
        assert!(told("florid", 10).is_empty(), "a style without a rule");
        assert!(notes(UNDECLARED, |s| s.turn("q").deliver("So.", &[], 1)).is_empty(), "no style was asked for");
    }

    #[test]
    fn the_case_knows_what_was_asked_for_in_words_that_the_agent_does_not_read() {
        for question in ["Why? Spare me the essay.", "Pourquoi ? Deux lignes suffisent.", "Why, in a nutshell?"] {
            let cases = format!("[{{case: a, ask: '{question}', expect: {{answer: {{style: concise}}}}}}]");
            let essay = "word ".repeat(90);
            let told = notes(&cases, |s| style(s.turn(question), "detailed").deliver(&essay, &[], 1));
            assert_eq!(told, ["90 words; a concise answer has at most 60"], "{question}");
        }
    }

    #[test]
    fn notices_and_citations_are_no_words_and_a_text_without_spaces_is_not_counted() {
        let long = "word ".repeat(40);
        let notice = Logged::Notice { about: "own_knowledge".into(), text: long.trim().into() };
        let answer = format!("It is so [1][2], [3, 4].\n\nNote: {}", long.trim());
        let told = notes(UNDECLARED, |s| {
            style(s.turn("q"), "detailed").push(What::Logged(notice.clone())).deliver(&answer, &[], 1)
        });
        assert_eq!(told, ["3 words; a detailed answer has at least 30"]);
        let sources = format!("It is so [1].\n\n[1] {}", long.trim());
        let told = notes(UNDECLARED, |s| style(s.turn("q"), "detailed").deliver(&sources, &[], 1));
        assert_eq!(told, ["3 words; a detailed answer has at least 30"]);
        let unspaced = "保証期間は二十四か月です。故障した場合は販売店に連絡してください。";
        assert!(notes(UNDECLARED, |s| style(s.turn("q"), "detailed").deliver(unspaced, &[], 1)).is_empty());
    }
}
