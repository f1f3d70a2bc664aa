//! What the numbers that an answer cites stand for.

use super::Known;
use crate::trace::Answer;
use crate::trace::citations::{Listed, addresses, listed, one_spelling};

/// An entry of a list of sources, and the places of what it names.
type Entry<'t> = (Listed<'t>, Vec<usize>);

impl Known<'_> {
    /// The sources that an answer lists in its text.
    pub(super) fn listed<'t>(&self, answer: &'t Answer) -> Vec<Entry<'t>> {
        listed(&answer.text).into_iter().map(|entry| (entry, self.named_in(entry))).collect()
    }

    /// What `[number]` stands for: the source of that number among those of the answer or, where it names none that is known,
    /// in a list in its text or, without either, the passage found in that place. Empty for a source that nothing gave,
    /// and for one that is not known by its entry in the list.
    pub(super) fn places_of(
        &self,
        number: usize,
        list: &[Entry<'_>],
        answer: &Answer,
        numbered: &[usize],
    ) -> Vec<usize> {
        let source = answer.source_of(number);
        if let Some(places) = source.and_then(|source| self.named.get(source.id.as_str())) {
            return places.clone();
        }
        if let Some((_, named)) =
            list.iter().find(|(entry, named)| entry.number == number && (entry.is_marked || !named.is_empty()))
        {
            return named.clone();
        }
        let place = number.checked_sub(1).and_then(|at| numbered.get(at)).filter(|_| answer.sources.is_empty());
        place.copied().into_iter().collect()
    }

    /// Places of what an entry of a list of sources names: by the longest id or address in it or, where it has none, by title.
    /// `1. Open the settings` names no page `Settings`: an entry whose number may be that of a step has a name of words alone.
    fn named_in(&self, entry: Listed<'_>) -> Vec<usize> {
        let lower = entry.text.to_lowercase();
        let bare = lower.trim_matches(|letter: char| !letter.is_alphanumeric());
        let has = |name: &str| {
            if name.contains("://") {
                return addresses(entry.text).iter().any(|address| one_spelling(address) == one_spelling(name));
            }
            let name = name.to_lowercase();
            let is_of_words = name.chars().all(|letter| letter.is_alphabetic() || letter == ' ');
            // `2` of `page 2` is no id.
            bare == name || (entry.is_marked || !is_of_words) && name.chars().count() > 3 && has_word(&lower, &name)
        };
        let named = self.named.iter().filter(|(name, _)| has(name)).max_by_key(|(name, _)| (name.len(), **name));
        if let Some((_, places)) = named {
            return places.clone();
        }
        let titled = self.evidence.iter().filter(|evidence| has(evidence.title()));
        titled.filter_map(|evidence| self.named.get(evidence.id)).flatten().copied().collect()
    }
}

/// Whether a text has some words, with no letter or digit directly before or behind them.
fn has_word(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + words.len()..].chars().next());
        [before, after].into_iter().flatten().all(|letter| !letter.is_alphanumeric())
    })
}
