//! The knowledge base without a server: a full-text index over a corpus, with its own ranking.
//!
//! Small corpora live in memory, one copy for each connection of the pool; larger ones in a derived file
//! ([`super::index_file`]), which is updated incrementally and opened read-only. [`super::rank`] scores the matches of FTS5
//! and explains what a new passage may change. The score of a search is the sum of its terms' scores, so each term is
//! looked up once and cached.

use super::documents::Corpus;
use super::full_text::FullText;
use super::index_file::{self, Derived, Rows};
use super::language::Words;
use super::query::{self, Term};
use super::{Found, KnowledgeBase, KnowledgeError, Search, rank, tokenize};
use crate::platform::clock::BoxFuture;
use crate::platform::files::{self, OwnKey};
use crate::platform::lock::lock;
use crate::settings::Language;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Maximum number of passages for which a copy in memory for each connection is cheaper than a file.
const IN_MEMORY: usize = 2_000;

/// Maximum number of passages in cached terms, 16 bytes each; the cache is cleared when it is reached.
const MOST_REMEMBERED: usize = 2_000_000;

/// Minimum number of passages for which the share that holds a word is meaningful.
const FEW: usize = 20;

/// The passages (places in the corpus) that a term occurs in, each with the term's part of the score.
type Occurrences = Arc<[(usize, f64)]>;

#[derive(Default)]
struct Terms {
    known: HashMap<Term, Occurrences>,
    passages: usize,
}

/// A corpus with its full-text index; cheap to clone, and every clone shares one pool of connections.
#[derive(Clone)]
pub struct Embedded {
    corpus: Arc<Corpus>,
    words: Words,
    /// Words of each passage, title included.
    lengths: Arc<[usize]>,
    file: Option<(Arc<Derived>, Rows)>,
    idle: Arc<Mutex<Vec<FullText>>>,
    terms: Arc<Mutex<Terms>>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Embedded")
            .field("id", &self.corpus.id)
            .field("hash", &self.corpus.hash)
            .finish_non_exhaustive()
    }
}

impl Embedded {
    /// Indexes `corpus`, which is English. A corpus of more than 2,000 passages goes to a file in `cache`, where one is
    /// given.
    ///
    /// # Errors
    /// When the index cannot be built.
    #[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
    pub fn open(corpus: Corpus, cache: Option<&Path>) -> Result<Self, KnowledgeError> {
        Self::open_in(Language::English, corpus, cache)
    }

    /// Like [`Self::open`], for a corpus in `language`.
    ///
    /// # Errors
    /// When the index cannot be built.
    pub fn open_in(language: Language, corpus: Corpus, cache: Option<&Path>) -> Result<Self, KnowledgeError> {
        Self::with(language, corpus, cache, files::own_key)
    }

    fn with<'k>(
        language: Language,
        corpus: Corpus,
        cache: Option<&Path>,
        key: impl FnOnce() -> Option<&'k OwnKey>,
    ) -> Result<Self, KnowledgeError> {
        let words = Words::of(language);
        let file = match cache {
            Some(folder) if corpus.passages.len() > IN_MEMORY => {
                let (file, rows) = index_file::derive(&corpus, words, folder, key())?;
                Some((Arc::new(file), rows))
            }
            _ => None,
        };
        let length = |title: &str, text: &str| tokenize::count(title) + tokenize::count(text);
        let lengths = corpus.passages.iter().map(|passage| length(&passage.title, &passage.text)).collect();
        let (idle, terms) = (Arc::default(), Arc::default());
        let base = Self { corpus: Arc::new(corpus), words, lengths, file, idle, terms };
        let first = base.connect().map_err(|error| base.failed(error))?;
        base.give_back(first);
        Ok(base)
    }

    /// The passages.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    fn connect(&self) -> rusqlite::Result<FullText> {
        match &self.file {
            Some((file, rows)) => FullText::open(file.path(), self.words, rows.clone()),
            None => FullText::of(&self.corpus.passages, self.words),
        }
    }

    fn failed(&self, error: rusqlite::Error) -> KnowledgeError {
        let file = self.file.as_ref().map(|(file, _)| file.path().to_owned());
        KnowledgeError::Index { what: "search index", file, error }
    }

    fn give_back(&self, index: FullText) {
        lock(&self.idle).push(index);
    }

    /// The `top_k` best passages for `query`.
    pub(super) fn find(&self, query: &str, top_k: usize) -> Result<Vec<Found>, KnowledgeError> {
        let (terms, times): (Vec<Term>, Vec<u32>) = query::parse(query, self.words).into_iter().unzip();
        // A passage's parts are added in the order of the terms, and rounding with them. Every part is above 0.
        let mut scores = vec![0.0_f64; self.corpus.passages.len()];
        let mut ranked: Vec<usize> = Vec::new();
        for (occurrences, times) in self.occurrences(&terms)?.iter().zip(times) {
            let repeated = rank::repeated(times);
            for (place, part) in occurrences.iter() {
                let Some(score) = scores.get_mut(*place) else { continue };
                if *score == 0.0 {
                    ranked.push(*place);
                }
                *score += part * repeated;
            }
        }
        // Equal scores are in the order of the corpus.
        let order = |one: &usize, other: &usize| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other));
        if top_k > 0 && ranked.len() > top_k {
            ranked.select_nth_unstable_by(top_k - 1, order);
        }
        ranked.truncate(top_k);
        ranked.sort_unstable_by(order);
        let best = ranked.into_iter().map(|place| (place, scores[place]));
        let found = best.filter_map(|(place, raw_score)| {
            let passage = self.corpus.passages.get(place)?.clone();
            Some(Found { passage, raw_score })
        });
        Ok(found.collect())
    }

    /// Of each term, in the order given.
    fn occurrences(&self, terms: &[Term]) -> Result<Vec<Occurrences>, KnowledgeError> {
        let mut known: Vec<Option<Occurrences>> = {
            let remembered = lock(&self.terms);
            terms.iter().map(|term| remembered.known.get(term).cloned()).collect()
        };
        if known.iter().any(Option::is_none) {
            let missing: Vec<&Term> =
                terms.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(term, _)| term).collect();
            let idle = lock(&self.idle).pop();
            let index = match idle {
                Some(index) => index,
                None => self.connect().map_err(|error| self.failed(error))?,
            };
            let asked = self.ask(&index, &missing).map_err(|error| self.failed(error))?;
            // Not after an error, which may have left something behind.
            self.give_back(index);
            self.remember(missing.into_iter().cloned().zip(asked.iter().cloned()));
            let mut asked = asked.into_iter();
            known.iter_mut().filter(|known| known.is_none()).for_each(|known| *known = asked.next());
        }
        Ok(known.into_iter().flatten().collect())
    }

    fn ask(&self, index: &FullText, terms: &[&Term]) -> rusqlite::Result<Vec<Occurrences>> {
        let texts: Vec<&str> = terms.iter().map(|term| term.text()).collect();
        let mut asked = Vec::with_capacity(terms.len());
        for (term, stems) in terms.iter().zip(index.stems(&texts)?) {
            let mut parts = Vec::new();
            let mut add = |counts: &[(usize, usize)]| {
                let weight = rank::weight(counts.len());
                let length = |place: usize| self.lengths.get(place).copied().unwrap_or_default();
                parts.extend(counts.iter().map(|(place, count)| (*place, rank::part(weight, *count, length(*place)))));
            };
            match term {
                Term::Word(_) => stems.iter().try_for_each(|stem| index.counts(stem).map(|counts| add(&counts)))?,
                Term::Phrase(_) => add(&index.side_by_side(&stems)?),
                Term::Prefix(prefix) => add(&index.beginning_with(&tokenize::without_accents(prefix))?),
            }
            asked.push(parts.into());
        }
        Ok(asked)
    }

    fn remember(&self, found: impl Iterator<Item = (Term, Occurrences)>) {
        let mut terms = lock(&self.terms);
        for (term, occurrences) in found {
            if terms.passages + occurrences.len() > MOST_REMEMBERED {
                *terms = Terms::default();
            }
            terms.passages += occurrences.len();
            terms.known.insert(term, occurrences);
        }
    }
}

impl KnowledgeBase for Embedded {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        Box::pin(std::future::ready(Search::local(self.find(query, top_k))))
    }

    fn share_holding(&self, text: &str) -> Option<f64> {
        let passages = self.corpus.passages.len();
        let words = query::parse(text, self.words).into_iter().map(|(term, _)| term);
        let terms: Vec<Term> = words.filter(|term| matches!(term, Term::Word(_))).collect();
        if passages < FEW || terms.is_empty() {
            return None;
        }
        let places = |parts: &Occurrences| parts.iter().map(|(place, _)| *place).collect::<BTreeSet<usize>>();
        let of_each = self.occurrences(&terms).ok()?.iter().map(places).collect::<Vec<_>>();
        let all = of_each.into_iter().reduce(|one, other| one.intersection(&other).copied().collect())?;
        Some(all.len() as f64 / passages as f64)
    }

    fn hash(&self) -> String {
        match self.words.language() {
            Language::English => self.corpus.hash.clone(),
            other => format!("{}-{other}", self.corpus.hash),
        }
    }
}

#[cfg(test)]
mod tests;
