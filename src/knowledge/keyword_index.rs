//! Answers of the external service, indexed by keywords.
//!
//! A keyword is stored once, regardless of case, spaces and simple plurals, with every (query, question, result) that it
//! came from; indexing the same again changes nothing. An index lives in memory, where it is opened by the first indexing (a trial that learns
//! nothing opens nothing), or in a file that conversations and processes share: writes are `Immediate` transactions
//! with a busy timeout. The tables are in `keyword_store`.

#[cfg(test)]
mod tests;

use super::learned::{ExternalRecord, KeywordEntry, LearnedHit, learned_id};
use super::upkeep::{PruneRule, Pruned, Upkeep};
use super::{KnowledgeError, keyword_store as store, tokenize};
use crate::platform::lock::lock;
use crate::settings::KeywordIndexSettings;
use jiff::Timestamp;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Result of one indexing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The keywords, normalised, in the order given and without repeats.
    pub keywords: Vec<String>,
    /// Keywords that were already in the index.
    pub merged: Vec<String>,
    /// Keywords whose exact look-up afterwards has this result as provenance.
    pub read_back: Vec<String>,
}

/// The index.
#[derive(Debug)]
pub struct KeywordIndex {
    file: Option<PathBuf>,
    /// Whether it is read-only.
    read_only: bool,
    upkeep: Option<Upkeep>,
    connection: Mutex<Option<Connection>>,
}

impl KeywordIndex {
    /// An index of one trial; nothing is opened before the first keyword is indexed.
    pub fn in_memory() -> Self {
        Self { file: None, read_only: false, upkeep: None, connection: Mutex::default() }
    }

    /// An index in a file, created at first use.
    pub fn in_file(path: &Path) -> Self {
        Self { file: Some(path.to_owned()), read_only: false, upkeep: None, connection: Mutex::default() }
    }

    /// An existing index in a file, read-only.
    pub fn to_read(path: &Path) -> Self {
        let mut index = Self::in_file(path);
        index.read_only = true;
        index
    }

    /// An index in memory that cannot be written: look-ups find nothing, and indexing fails with an error of `SQLite`.
    pub fn unwritable() -> Self {
        Self { file: None, read_only: true, upkeep: None, connection: Mutex::default() }
    }

    /// Closes an index in a file; its next use opens the file again, as another process would.
    pub fn close(&self) {
        if self.file.is_some() {
            drop(lock(&self.connection).take());
        }
    }

    /// The index that a project declares, its file below `root`, with its upkeep.
    pub fn declared(root: &Path, settings: &KeywordIndexSettings) -> Self {
        let index = Self::in_file(&root.join(&settings.file));
        match settings.forget.as_ref().and_then(Upkeep::declared) {
            Some(upkeep) => index.with_upkeep(upkeep),
            None => index,
        }
    }

    /// The same index, pruned automatically at every indexing.
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
        let distinct = tokenize::distinct_keywords(keywords.iter().map(String::as_str));
        store::short_enough(record, &distinct, query)?;
        self.opened(|connection| {
            let merged = store::insert(connection, record, &distinct, query, at)?;
            if let Some(rule) = self.upkeep.and_then(|upkeep| upkeep.at(at)) {
                store::prune(connection, rule)?;
            }
            let mut read_back = Vec::new();
            for (keyword, form) in &distinct {
                if store::leads_to(connection, form, record)? {
                    read_back.push(keyword.clone());
                }
            }
            let keywords = distinct.into_iter().map(|(keyword, _)| keyword).collect();
            Ok(Indexed { keywords, merged, read_back })
        })
    }

    /// External answers whose keywords occur in `query`: every meaningful word of the keyword, plurals alike. Most
    /// matched keywords first, then in the order of conversations and of indexing.
    pub fn find(&self, query: &str) -> Result<Vec<LearnedHit>, KnowledgeError> {
        let stems = tokenize::stems(query);
        if stems.is_empty() {
            return Ok(Vec::new());
        }
        let matches = self.if_open(|connection| store::matching(connection, &stems))?.unwrap_or_default();
        let mut hits: BTreeMap<(u32, i64), LearnedHit> = BTreeMap::new();
        for (row, record, keyword) in matches {
            hits.entry((record.conversation, row))
                .or_insert_with(|| LearnedHit { id: learned_id(&record.digest()), record, keywords: Vec::new() })
                .keywords
                .push(keyword);
        }
        let mut hits: Vec<_> = hits.into_values().collect();
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.keywords.len()));
        Ok(hits)
    }

    /// Counts one use of each of these keywords.
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
    pub fn list(&self) -> Result<Vec<KeywordEntry>, KnowledgeError> {
        Ok(self.if_open(store::list)?.unwrap_or_default())
    }

    /// Removes keywords by `rule`, and answers without a keyword.
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
        lock(&self.connection).is_some()
    }

    fn opened<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, KnowledgeError> {
        let failed = |error| store::failed(self.file.as_deref(), error);
        let mut slot = lock(&self.connection);
        if slot.is_none() {
            *slot = Some(match self.file.as_deref() {
                Some(file) if self.read_only => store::open_to_read(file)?,
                None if self.read_only => store::open_unwritable().map_err(failed)?,
                file => store::open(file)?,
            });
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
        if let Some(connection) = connection.filter(|_| self.file.is_none() && !self.read_only) {
            store::give_back(connection);
        }
    }
}
