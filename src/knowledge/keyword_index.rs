//! What was learned from the external service, under keywords.
//!
//! A keyword is stored once, in its normalised form, with every (query, result) that it came from; indexing the same
//! again changes nothing. An index lives in memory, where it is opened by the first indexing (a trial that learns
//! nothing opens nothing), or in a file that conversations and processes share: writes are `Immediate` transactions
//! behind a busy timeout. The tables are in `keyword_store`.

use super::KnowledgeError;
use super::{keyword_store as store, tokenize};
use jiff::Timestamp;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An external answer, and where it was received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalRecord {
    /// The session that received it.
    pub session: String,
    /// Ordinal of the conversation within its trial.
    pub conversation: u32,
    /// The id that the flow minted, unique within the session.
    pub result: String,
    /// The query that was sent.
    pub query: String,
    /// The answer's text.
    pub answer: String,
    /// Its citations: (title, URL).
    pub citations: Vec<(String, String)>,
}

/// What one indexing did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The keywords, normalised, in the order given and without repeats.
    pub keywords: Vec<String>,
    /// Of these, the ones that were there before.
    pub merged: Vec<String>,
    /// Of these, the ones that an exact look-up found again with this result as provenance.
    pub read_back: Vec<String>,
}

/// An external answer that a search found through its keywords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedHit {
    /// `learned:<digest of the session>.<result id>`: the same wherever and whenever it is computed.
    pub id: String,
    /// The answer.
    pub record: ExternalRecord,
    /// The keywords that matched, sorted.
    pub keywords: Vec<String>,
}

/// One keyword with all that is known about it, as listed and exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeywordEntry {
    /// The keyword, normalised.
    pub keyword: String,
    /// How many searches were shown something through it.
    pub uses: u64,
    /// When it was last indexed or used.
    pub last_active: Timestamp,
    /// Everything that it came from, oldest first.
    pub provenance: Vec<Provenance>,
}

/// One source of a keyword.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The query that led to it.
    pub query: String,
    /// The session.
    pub session: String,
    /// The conversation's ordinal.
    pub conversation: u32,
    /// The external result.
    pub result: String,
    /// When.
    pub at: Timestamp,
}

/// What to prune: keywords that meet every condition given. Without a condition nothing is pruned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneRule {
    /// Neither indexed nor used since then.
    pub idle_since: Option<Timestamp>,
    /// Used fewer times than this.
    pub fewer_uses_than: Option<u64>,
}

/// Pruning that an index does by itself, at every indexing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upkeep {
    /// Keywords idle for longer than this go …
    pub idle: Duration,
    /// … when they were used fewer times than this.
    pub fewer_uses_than: u64,
}

/// What pruning removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Keywords.
    pub keywords: usize,
    /// External answers that no keyword led to any more.
    pub results: usize,
}

impl Upkeep {
    fn at(self, now: Timestamp) -> Option<PruneRule> {
        let idle_since = now.checked_sub(self.idle).ok()?;
        Some(PruneRule { idle_since: Some(idle_since), fewer_uses_than: Some(self.fewer_uses_than) })
    }
}

/// The index.
#[derive(Debug)]
pub struct KeywordIndex {
    file: Option<PathBuf>,
    upkeep: Option<Upkeep>,
    connection: Mutex<Option<Connection>>,
}

impl KeywordIndex {
    /// An index of one trial; nothing is opened before the first keyword is indexed.
    pub fn in_memory() -> Self {
        Self { file: None, upkeep: None, connection: Mutex::default() }
    }

    /// An index in a file, created at first use.
    pub fn in_file(path: &Path) -> Self {
        Self { file: Some(path.to_owned()), upkeep: None, connection: Mutex::default() }
    }

    /// The same index, pruned by itself at every indexing.
    #[must_use]
    pub fn with_upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = Some(upkeep);
        self
    }

    /// Stores `record` under `keywords`, which came from `query`.
    ///
    /// # Errors
    /// When the index cannot be written; nothing is stored then.
    pub fn index(
        &self,
        record: &ExternalRecord,
        keywords: &[String],
        query: &str,
        at: Timestamp,
    ) -> Result<Indexed, KnowledgeError> {
        let mut distinct: Vec<String> = Vec::new();
        for keyword in keywords.iter().map(|keyword| tokenize::normalised_keyword(keyword)) {
            if !keyword.is_empty() && !distinct.contains(&keyword) {
                distinct.push(keyword);
            }
        }
        self.opened(|connection| {
            let merged = store::insert(connection, record, &distinct, query, at)?;
            if let Some(rule) = self.upkeep.and_then(|upkeep| upkeep.at(at)) {
                store::prune(connection, rule)?;
            }
            let mut read_back = Vec::new();
            for keyword in &distinct {
                if store::leads_to(connection, keyword, record)? {
                    read_back.push(keyword.clone());
                }
            }
            Ok(Indexed { keywords: distinct, merged, read_back })
        })
    }

    /// External answers whose keywords occur in `query`: every meaningful word of the keyword, plurals alike. Most
    /// matched keywords first, then in the order of conversations and of indexing.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn find(&self, query: &str) -> Result<Vec<LearnedHit>, KnowledgeError> {
        let stems = tokenize::stems(query);
        if stems.is_empty() {
            return Ok(Vec::new());
        }
        let matches = self.if_open(|connection| store::matching(connection, &stems))?.unwrap_or_default();
        let mut hits: BTreeMap<(u32, i64), LearnedHit> = BTreeMap::new();
        for (row, record, keyword) in matches {
            hits.entry((record.conversation, row))
                .or_insert_with(|| LearnedHit { id: learned_id(&record), record, keywords: Vec::new() })
                .keywords
                .push(keyword);
        }
        let mut hits: Vec<_> = hits.into_values().collect();
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.keywords.len()));
        Ok(hits)
    }

    /// Counts one use of each of these keywords.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn note_use<'a>(
        &self,
        keywords: impl IntoIterator<Item = &'a String>,
        at: Timestamp,
    ) -> Result<(), KnowledgeError> {
        let keywords: Vec<&String> = keywords.into_iter().collect();
        if keywords.is_empty() {
            return Ok(());
        }
        self.if_open(|connection| store::note_use(connection, &keywords, at)).map(|_| ())
    }

    /// All keywords, sorted.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn list(&self) -> Result<Vec<KeywordEntry>, KnowledgeError> {
        Ok(self.if_open(store::list)?.unwrap_or_default())
    }

    /// Removes what `rule` says, and the answers that nothing leads to any more.
    ///
    /// # Errors
    /// When the index cannot be written; nothing is removed then.
    pub fn prune(&self, rule: PruneRule) -> Result<Pruned, KnowledgeError> {
        if rule == PruneRule::default() {
            return Ok(Pruned::default());
        }
        Ok(self.if_open(|connection| store::prune(connection, rule))?.unwrap_or_default())
    }

    /// Whether anything was opened yet.
    pub fn is_open(&self) -> bool {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn opened<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, KnowledgeError> {
        let failed = |error| KnowledgeError::Index { what: "keyword index", error };
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(store::open(self.file.as_deref()).map_err(failed)?);
        }
        match slot.as_mut() {
            Some(connection) => work(connection).map_err(failed),
            None => Err(failed(rusqlite::Error::InvalidQuery)),
        }
    }

    /// Runs `work` unless the index is one in memory that holds nothing yet.
    fn if_open<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, KnowledgeError> {
        if self.file.is_none() && !self.is_open() {
            return Ok(None);
        }
        self.opened(work).map(Some)
    }
}

impl Drop for KeywordIndex {
    fn drop(&mut self) {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = connection.filter(|_| self.file.is_none()) {
            store::give_back(connection);
        }
    }
}

/// The id under which a search shows a learned answer. A digest, because a session's name may be a secret.
fn learned_id(record: &ExternalRecord) -> String {
    let digest = Sha256::digest(record.session.as_bytes());
    format!("learned:{:02x}{:02x}{:02x}.{}", digest[0], digest[1], digest[2], record.result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(conversation: u32, result: &str) -> ExternalRecord {
        ExternalRecord {
            session: format!("talk-{conversation}"),
            conversation,
            result: result.into(),
            query: "grid tariff in spring".into(),
            answer: "It fell.".into(),
            citations: vec![("Tariffs".into(), "https://example.org/tariffs".into())],
        }
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).into()).collect()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("in range")
    }

    #[test]
    fn searching_an_index_that_learned_nothing_opens_nothing() {
        let index = KeywordIndex::in_memory();
        assert!(index.find("grid tariff").expect("finds").is_empty());
        assert!(index.list().expect("lists").is_empty());
        assert!(!index.is_open());
    }

    #[test]
    fn a_later_question_finds_what_was_learned_when_it_holds_all_words_of_a_keyword() {
        let index = KeywordIndex::in_memory();
        let keywords = strings(&["Grid  Tariffs", "spring subsidy", "feed-in"]);
        let done = index.index(&record(0, "result-1"), &keywords, "why?", at(1)).expect("indexes");
        assert_eq!(done.keywords, ["grid tariffs", "spring subsidy", "feed-in"]);
        assert_eq!(done.read_back, done.keywords);
        assert!(done.merged.is_empty());
        let hits = index.find("how is the grid tariff set?").expect("finds");
        assert_eq!(hits.len(), 1);
        assert_eq!(hits[0].keywords, ["grid tariffs"]);
        assert!(hits[0].id.starts_with("learned:") && hits[0].id.ends_with(".result-1"), "{}", hits[0].id);
        assert!(index.find("the grid is down").expect("finds").is_empty());
    }

    #[test]
    fn two_conversations_with_the_same_keyword_share_it_and_keep_both_sources() {
        let index = KeywordIndex::in_memory();
        index.index(&record(1, "result-1"), &strings(&["grid tariff", "winter price"]), "b", at(1)).expect("indexes");
        let second = index.index(&record(0, "result-1"), &strings(&["Grid Tariff"]), "a", at(2)).expect("indexes");
        assert_eq!(second.merged, ["grid tariff"]);
        let hits = index.find("grid tariff winter price").expect("finds");
        assert_eq!(hits.iter().map(|hit| hit.record.conversation).collect::<Vec<_>>(), [1, 0]);
        assert_ne!(hits[0].id, hits[1].id);
        let tied = index.find("grid tariff").expect("finds");
        assert_eq!(tied.iter().map(|hit| hit.record.conversation).collect::<Vec<_>>(), [0, 1]);
        let entry = &index.list().expect("lists")[0];
        assert_eq!((entry.keyword.as_str(), entry.provenance.len()), ("grid tariff", 2));
    }

    #[test]
    fn pruning_takes_what_is_idle_or_unused_and_the_answers_that_nothing_leads_to() {
        let index = KeywordIndex::in_memory();
        index.index(&record(0, "result-1"), &strings(&["old thing"]), "a", at(100)).expect("indexes");
        index.index(&record(1, "result-1"), &strings(&["new thing", "old thing"]), "b", at(200)).expect("indexes");
        index.note_use([&"new thing".to_owned()], at(900)).expect("notes");
        assert_eq!(index.prune(PruneRule::default()).expect("prunes"), Pruned::default());
        let unused = PruneRule { idle_since: Some(at(500)), fewer_uses_than: Some(1) };
        assert_eq!(index.prune(unused).expect("prunes"), Pruned { keywords: 1, results: 1 });
        let left = index.list().expect("lists");
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].keyword.as_str(), left[0].uses, left[0].last_active), ("new thing", 1, at(900)));
    }

    #[test]
    fn an_index_with_upkeep_forgets_what_is_old_and_unused_when_it_learns() {
        let upkeep = Upkeep { idle: Duration::from_secs(100), fewer_uses_than: 1 };
        let index = KeywordIndex::in_memory().with_upkeep(upkeep);
        let learn = |n: u32, keyword: &str, second: i64| {
            index.index(&record(n, "result-1"), &strings(&[keyword]), "q", at(second)).expect("indexes")
        };
        learn(1, "old unused", 0);
        learn(2, "old used", 1);
        index.note_use([&"old used".to_owned()], at(2)).expect("notes");
        let last = learn(3, "new thing", 500);
        assert_eq!(last.read_back, ["new thing"], "what was just learned stays");
        let left: Vec<_> = index.list().expect("lists").into_iter().map(|entry| entry.keyword).collect();
        assert_eq!(left, ["new thing", "old used"]);
    }

    #[test]
    fn an_index_in_memory_begins_empty_whatever_was_learned_before_it() {
        for round in 0..3 {
            let index = KeywordIndex::in_memory();
            let done =
                index.index(&record(0, "result-1"), &strings(&["grid tariff"]), "q", at(round)).expect("indexes");
            assert!(done.merged.is_empty());
            let entries = index.list().expect("lists");
            assert_eq!((entries.len(), entries[0].provenance.len(), entries[0].uses), (1, 1, 0));
        }
    }

    #[test]
    fn writers_that_share_a_file_lose_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("keywords.sqlite");
        std::thread::scope(|scope| {
            for writer in 0..4_u32 {
                let file = &file;
                scope.spawn(move || {
                    let index = KeywordIndex::in_file(file);
                    for n in 0..10 {
                        let keywords = strings(&["shared word", &format!("own {writer} {n}")]);
                        let record = record(writer, &format!("result-{n}"));
                        index.index(&record, &keywords, "q", at(1)).expect("indexes");
                    }
                });
            }
        });
        let entries = KeywordIndex::in_file(&file).list().expect("lists");
        assert_eq!(entries.len(), 41);
        let shared = entries.iter().find(|entry| entry.keyword == "shared word").expect("is there");
        assert_eq!(shared.provenance.len(), 40);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_order_and_the_number_of_indexings_do_not_matter(
            order in proptest::sample::subsequence(vec![0_usize, 1, 2, 3, 0, 1, 2, 3], 8).prop_shuffle(),
        ) {
            let sets = [&["a one", "b two"][..], &["b two", "c three"], &["a one"], &["d four", "c three"]];
            let fill = |order: &[usize]| {
                let index = KeywordIndex::in_memory();
                for n in order {
                    let record = record(*n as u32, "result-1");
                    index.index(&record, &strings(sets[*n]), "q", at(1)).expect("indexes");
                }
                index.list().expect("lists").into_iter().map(|mut entry| {
                    entry.provenance.sort_by_key(|source| source.conversation);
                    entry
                }).collect::<Vec<_>>()
            };
            prop_assert_eq!(fill(&order), fill(&[0, 1, 2, 3]));
        }
    }
}
