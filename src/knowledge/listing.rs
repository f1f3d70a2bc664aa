//! What a knowledge base held when it was indexed: each passage's id with a digest of its title and text.
//!
//! Two listings tell which passages were added, changed or removed: those are what recordings may miss for.

use super::KnowledgeError;
use super::documents::{Corpus, hash_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A knowledge base's passages by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listing {
    /// The corpus's hash.
    hash: String,
    /// Passage id, and 16 hex digits over its title and text.
    passages: BTreeMap<String, String>,
}

/// What became of one passage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// It is new.
    Added(String),
    /// Its title or text is another.
    Changed(String),
    /// It is gone.
    Removed(String),
    /// The same title and text under another id: (before, now).
    Renamed(String, String),
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(id) => write!(formatter, "added    {id}"),
            Self::Changed(id) => write!(formatter, "changed  {id}"),
            Self::Removed(id) => write!(formatter, "removed  {id}"),
            Self::Renamed(before, now) => write!(formatter, "renamed  {before} is now {now}"),
        }
    }
}

impl Listing {
    /// The passages of a corpus.
    pub(crate) fn of(corpus: &Corpus) -> Self {
        let digest = |title: &str, text: &str| hash_of([title, text], 8);
        let passages = corpus.passages.iter();
        let passages = passages.map(|passage| (passage.id.clone(), digest(&passage.title, &passage.text))).collect();
        Self { hash: corpus.hash.clone(), passages }
    }

    /// What changed since `before`, by id.
    pub(crate) fn since(&self, before: &Self) -> Vec<Change> {
        let new: Vec<_> = self.passages.iter().filter(|(id, _)| !before.passages.contains_key(*id)).collect();
        let mut gone: Vec<_> = before.passages.iter().filter(|(id, _)| !self.passages.contains_key(*id)).collect();
        let mut changes = Vec::new();
        for (id, digest) in new {
            match gone.iter().position(|(_, other)| *other == digest) {
                Some(place) => changes.push(Change::Renamed(gone.remove(place).0.clone(), id.clone())),
                None => changes.push(Change::Added(id.clone())),
            }
        }
        let kept = self.passages.iter().filter_map(|(id, digest)| Some((id, digest, before.passages.get(id)?)));
        changes.extend(kept.filter(|(_, now, then)| now != then).map(|(id, _, _)| Change::Changed(id.clone())));
        changes.extend(gone.into_iter().map(|(id, _)| Change::Removed(id.clone())));
        changes.sort_by(|one, other| one.id().cmp(other.id()));
        changes
    }

    /// Writes it, whole or not at all.
    pub(crate) fn save(&self, file: &Path) -> Result<(), KnowledgeError> {
        let unwritable = |error| KnowledgeError::Write { path: file.to_owned(), error };
        let text = serde_json::to_vec(self).map_err(|why| unwritable(why.into()))?;
        crate::platform::files::replace(file, text).map_err(unwritable)
    }

    /// Reads it; `None` when there is none.
    ///
    /// # Errors
    /// When there is one that cannot be read.
    pub(crate) fn read(file: &Path) -> Result<Option<Self>, KnowledgeError> {
        let unreadable = |error| KnowledgeError::Read { path: file.to_owned(), error };
        match crate::platform::files::read(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|why| unreadable(why.into())),
        }
    }
}

impl Change {
    fn id(&self) -> &str {
        match self {
            Self::Added(id) | Self::Changed(id) | Self::Removed(id) | Self::Renamed(_, id) => id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::Passage;

    fn listing(passages: &[(&str, &str)]) -> Listing {
        let passage = |(id, text): &(&str, &str)| Passage { id: (*id).into(), title: "T".into(), text: (*text).into() };
        Listing::of(&Corpus::of("desk", passages.iter().map(passage).collect()))
    }

    #[test]
    fn passages_that_were_added_changed_moved_or_removed_are_told_by_id() {
        let before = listing(&[("a#1", "one"), ("a#2", "two"), ("b#1", "three")]);
        let now = listing(&[("a#1", "one"), ("a#2", "new"), ("a#3", "two"), ("c#1", "four")]);
        let told: Vec<String> = now.since(&before).iter().map(ToString::to_string).collect();
        assert_eq!(told, ["changed  a#2", "added    a#3", "removed  b#1", "added    c#1"]);
        let moved = listing(&[("a#1", "zero"), ("a#2", "two"), ("b#2", "three")]);
        assert_eq!(moved.since(&before)[1], Change::Renamed("b#1".into(), "b#2".into()));
        assert!(now.since(&now).is_empty());
    }

    #[test]
    fn a_listing_is_read_as_it_was_written_and_none_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("deep/desk.json");
        assert_eq!(Listing::read(&file).expect("reads"), None);
        let listing = listing(&[("a#1", "one")]);
        listing.save(&file).expect("saves");
        assert_eq!(Listing::read(&file).expect("reads"), Some(listing));
        std::fs::write(&file, "{").expect("written");
        assert!(Listing::read(&file).is_err());
    }
}
