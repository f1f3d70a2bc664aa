//! Compaction: replaces older turns of the history by one summary, or reports that this does not save enough.
//!
//! Decisions, preferences and reflections must not be lost: they are separate messages and are not compacted. What a user
//! states in words that no rule recognises must not be lost either, so the summary keeps more of what was asked than of
//! what was answered: the beginning of each question, and of the first sentence of each answer. It adds nothing.

use super::budget;
use crate::platform::secrets;
use crate::provider::chat::{Message, Role};

/// Minimum saving of a compaction, as a fraction of the context: 1 / 5.
pub(super) const SAVES: u64 = 5;
/// Number of newest messages that stay unchanged.
const NEWEST: usize = 2;
/// Characters that a summary keeps of a message, by who wrote it.
#[derive(Debug, Clone, Copy)]
struct Kept {
    asked: usize,
    answered: usize,
}

/// What a summary keeps: on the first attempt, and if that is not enough, answers first.
const KEPT: [Kept; 4] = [
    Kept { asked: 480, answered: 120 },
    Kept { asked: 240, answered: 120 },
    Kept { asked: 240, answered: 40 },
    Kept { asked: 40, answered: 40 },
];
const ASKED: &str = "- asked: ";
const ANSWERED: &str = "- answered: ";
/// First line of a summary, by which the next compaction includes it.
const HEADING: &str = "Summary of the earlier conversation:";

/// A shortened history, with the tokens of the whole context before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compacted {
    pub(super) history: Vec<Message>,
    pub(super) before: u64,
    pub(super) after: u64,
}

/// Reason why a context is not compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the context of {before} tokens cannot be made a fifth smaller: its shortest form has {after}")]
pub(super) struct CannotCompact {
    pub(super) before: u64,
    pub(super) after: u64,
}

/// Compacts the history; `beside` is the number of tokens of the rest of the context.
///
/// # Errors
/// [`CannotCompact`] if no form makes the whole context a fifth smaller.
pub(super) fn compact(history: &[Message], beside: u64) -> Result<Compacted, CannotCompact> {
    let before = beside + budget::of_messages(history);
    let mut after = before;
    for newest in [NEWEST, 0] {
        let (old, new) = history.split_at(history.len().saturating_sub(newest));
        for kept in KEPT {
            if old.is_empty() {
                continue;
            }
            let summary = Message::text(Role::Assistant, summary(old, kept));
            let shorter: Vec<Message> = [summary].into_iter().chain(new.iter().cloned()).collect();
            let tokens = beside + budget::of_messages(&shorter);
            if tokens * SAVES <= before * (SAVES - 1) {
                return Ok(Compacted { history: shorter, before, after: tokens });
            }
            after = after.min(tokens);
        }
    }
    Err(CannotCompact { before, after })
}

fn summary(old: &[Message], kept: Kept) -> String {
    let mut lines = vec![HEADING.to_owned()];
    let line = |who: &str, text: &str| {
        let most = if who == ASKED { kept.asked } else { kept.answered };
        format!("{who}{}", shortened(text, most))
    };
    for message in old {
        if let Some(earlier) = message.content.strip_prefix(HEADING) {
            let who = |said: &str| if said.starts_with(ASKED) { ASKED } else { ANSWERED };
            let again = |said: &str| line(who(said), said.strip_prefix(who(said)).unwrap_or(said));
            lines.extend(earlier.lines().filter(|said| !said.is_empty()).map(again));
        } else if message.role == Role::User {
            lines.push(line(ASKED, &message.content.split_whitespace().collect::<Vec<_>>().join(" ")));
        } else {
            lines.push(line(ANSWERED, first_sentence(&message.content)));
        }
    }
    lines.join("\n")
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let end = text.match_indices(['.', '?', '!', '\n']).find(|(at, end)| {
        let after = text[at + end.len()..].chars().next();
        after.is_none_or(char::is_whitespace)
    });
    end.map_or(text, |(at, end)| text[..at + end.len()].trim_end())
}

fn shortened(text: &str, most: usize) -> String {
    let text = &*secrets::clean(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(turns: &[(&str, String)]) -> Vec<Message> {
        let pair = |(asked, answered): &(&str, String)| {
            [Message::text(Role::User, *asked), Message::text(Role::Assistant, answered.as_str())]
        };
        turns.iter().flat_map(pair).collect()
    }

    #[test]
    fn older_turns_become_one_summary_and_the_newest_stays() {
        let long = |fact: &str| format!("{fact} {}", "More is said about it at length. ".repeat(20));
        let history = said(&[
            ("How long is the warranty?", long("24 months.")),
            ("And in Norway?", long("60 months.")),
            ("Which port?", "8883 [1].".to_owned()),
        ]);
        let compacted = compact(&history, 100).expect("is possible");
        assert_eq!(compacted.history.len(), 3);
        assert_eq!(compacted.history[1..], history[4..]);
        let summary = &compacted.history[0].content;
        for fact in ["How long is the warranty?", "24 months.", "60 months."] {
            assert!(summary.contains(fact), "{summary}");
        }
        let again = compact(&[compacted.history[0].clone(), history[0].clone(), history[1].clone()], 0);
        let again = again.expect("is possible").history[0].content.clone();
        assert_eq!(again.matches(HEADING).count(), 1);
        assert!(again.contains("60 months."), "{again}");
    }

    #[test]
    fn what_a_user_states_beside_a_question_stays_in_whatever_words() {
        let long = "More is said about it at length. ".repeat(20);
        for stated in [
            "Mine is the one with the cracked lid, GL-4417.",
            "It has to run on twelve volts, whatever you find.",
            "Meine Anlage steht am Teich.",
        ] {
            let asked = format!("How long is the warranty? {stated} Which port?");
            let mut history = vec![Message::text(Role::User, asked), Message::text(Role::Assistant, &*long)];
            for _ in 0..3 {
                history.extend(said(&[("And then?", long.clone())]));
                history = compact(&history, 100).expect("is possible").history;
                assert!(history[0].content.contains(stated), "{}", history[0].content);
            }
        }
    }

    #[test]
    fn what_cannot_be_made_a_fifth_smaller_is_left_as_it_is() {
        let history = said(&[("Port?", "8883.".to_owned())]);
        let refused = compact(&history, 4_000).expect_err("too little to gain");
        assert!(refused.to_string().contains("cannot be made a fifth smaller"), "{refused}");
        assert!(compact(&[], 10).is_err());
        assert_eq!(compact(&[], 0), Err(CannotCompact { before: 0, after: 0 }));
    }

    proptest! {
        #[test]
        fn every_compaction_that_is_done_saves_a_fifth_and_keeps_the_end(
            texts in prop::collection::vec("[a-zé .?]{0,300}", 0..12), beside in 0_u64..600,
        ) {
            let role = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
            let history: Vec<Message> =
                texts.iter().enumerate().map(|(at, text)| Message::text(role(at), text.as_str())).collect();
            match compact(&history, beside) {
                Ok(done) => {
                    prop_assert_eq!(done.before, beside + budget::of_messages(&history));
                    prop_assert_eq!(done.after, beside + budget::of_messages(&done.history));
                    prop_assert!(done.after * 5 <= done.before * 4);
                    prop_assert!(done.history.len() == 1 || done.history[1..] == history[history.len() - NEWEST..]);
                }
                // An empty context cannot shrink.
                Err(refused) => prop_assert!(refused.before == 0 || refused.after * 5 > refused.before * 4),
            }
        }
    }
}
