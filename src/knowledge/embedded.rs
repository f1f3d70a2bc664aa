//! The knowledge base that needs no server: a full-text index over a corpus, and a rank of our own.
//!
//! Small corpora live in memory, one copy for each connection of the pool; larger ones in a derived file, named after
//! the corpus's hash and the index's version, built once and opened read-only. What FTS5 finds is scored by
//! [`super::rank`], which says what a new passage may change. The score of a search is the sum of its terms' scores,
//! so the index is asked for each term once, and searches add up what is remembered of them.

use super::documents::Corpus;
use super::full_text::{self, FullText};
use super::language::Words;
use super::query::{self, Term};
use super::{Found, KnowledgeBase, KnowledgeError, Search, rank, tokenize};
use crate::clock::BoxFuture;
use crate::files;
use crate::settings::Language;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Passages up to which a copy in memory for each connection is cheaper than a file.
const IN_MEMORY: usize = 2_000;

/// Passages in remembered terms at most: 16 bytes each. Beyond it all are forgotten.
const MOST_REMEMBERED: usize = 2_000_000;

/// Passages below which shares of them say nothing about a word.
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
    file: Option<PathBuf>,
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
    pub fn open(corpus: Corpus, cache: Option<&Path>) -> Result<Self, KnowledgeError> {
        Self::open_in(Language::English, corpus, cache)
    }

    /// The same for a corpus of that language.
    ///
    /// # Errors
    /// When the index cannot be built.
    pub fn open_in(language: Language, corpus: Corpus, cache: Option<&Path>) -> Result<Self, KnowledgeError> {
        let words = Words::of(language);
        let file = match cache {
            Some(folder) if corpus.passages.len() > IN_MEMORY => Some(derive_file(&corpus, &words, folder)?),
            _ => None,
        };
        let length = |title: &str, text: &str| tokenize::count(title) + tokenize::count(text);
        let lengths = corpus.passages.iter().map(|passage| length(&passage.title, &passage.text)).collect();
        let (idle, terms) = (Arc::default(), Arc::default());
        let base = Self { corpus: Arc::new(corpus), words, lengths, file, idle, terms };
        let first = base.connect().map_err(failed)?;
        base.give_back(first);
        Ok(base)
    }

    /// The passages.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    fn connect(&self) -> rusqlite::Result<FullText> {
        match &self.file {
            Some(file) => FullText::open(file, &self.words),
            None => FullText::of(&self.corpus.passages, &self.words),
        }
    }

    fn give_back(&self, index: FullText) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }

    /// The `top_k` best passages for `query`.
    pub(super) fn find(&self, query: &str, top_k: usize) -> Result<Vec<Found>, KnowledgeError> {
        let (terms, times): (Vec<Term>, Vec<u32>) = query::parse(query, &self.words).into_iter().unzip();
        let mut parts: Vec<(usize, f64)> = Vec::new();
        for (occurrences, times) in self.occurrences(&terms)?.iter().zip(times) {
            parts.extend(occurrences.iter().map(|(place, score)| (*place, score * rank::repeated(times))));
        }
        // Stable: a passage's parts stay in the order of the terms, and rounding with them.
        parts.sort_by_key(|(place, _)| *place);
        let sums = parts.chunk_by(|(one, _), (other, _)| one == other);
        let sum = |parts: &[(usize, f64)]| parts.iter().fold(0.0, |sum, (_, score)| sum + score);
        let mut ranked: Vec<(usize, f64)> =
            sums.filter_map(|parts| parts.first().map(|(place, _)| (*place, sum(parts)))).collect();
        // Stable: equal scores stay in the order of the corpus.
        ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let best = ranked.into_iter().take(top_k);
        let found = best.filter_map(|(place, raw_score)| {
            let passage = self.corpus.passages.get(place)?.clone();
            Some(Found { passage, raw_score })
        });
        Ok(found.collect())
    }

    /// Of each term, in the order given.
    fn occurrences(&self, terms: &[Term]) -> Result<Vec<Occurrences>, KnowledgeError> {
        let mut known: Vec<Option<Occurrences>> = {
            let remembered = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
            terms.iter().map(|term| remembered.known.get(term).cloned()).collect()
        };
        if known.iter().any(Option::is_none) {
            let missing: Vec<&Term> =
                terms.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(term, _)| term).collect();
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let index = match idle {
                Some(index) => index,
                None => self.connect().map_err(failed)?,
            };
            let asked = self.ask(&index, &missing).map_err(failed)?;
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
        let mut terms = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
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
        let words = query::parse(text, &self.words).into_iter().map(|(term, _)| term);
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

    fn id(&self) -> &str {
        &self.corpus.id
    }
}

fn failed(error: rusqlite::Error) -> KnowledgeError {
    KnowledgeError::Index { what: "search index", error }
}

/// The derived file of a large corpus, built where there is none that is as it was written.
///
/// A file is named after its own content: `<corpus hash>-<language>-v<version>-<SHA-256>.sqlite`. What has another content was
/// damaged, and `SQLite` would not notice every damage: it is removed. Two processes that build at once make two files.
fn derive_file(corpus: &Corpus, words: &Words, folder: &Path) -> Result<PathBuf, KnowledgeError> {
    let unwritable = |error| KnowledgeError::Read { path: folder.to_owned(), error };
    let stem = format!("{}-{}-v{}-", corpus.hash, words.language(), full_text::INDEX_VERSION);
    files::create_dir_all(folder).map_err(unwritable)?;
    for entry in files::entries(folder).map_err(unwritable)? {
        let name = entry.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(digest) = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(".sqlite")) else { continue };
        let is_whole = || content_digest(&entry.path).is_ok_and(|content| content == digest);
        // Whoever knows the name can write a file of that name with a digest that fits.
        if is_whole() && FullText::is_ours(&entry.path, words).is_ok_and(|ours| ours) {
            return Ok(entry.path);
        }
        // Another process may have removed it already.
        let _ = files::remove_file(&entry.path);
    }
    let beside = files::temporary_file(folder).map_err(unwritable)?;
    full_text::write(beside.path(), &corpus.passages, words).map_err(failed)?;
    let digest = content_digest(beside.path()).map_err(unwritable)?;
    let file = folder.join(format!("{stem}{digest}.sqlite"));
    files::persist(beside, &file).map_err(unwritable)?;
    Ok(file)
}

/// SHA-256 of a file, in hex.
fn content_digest(file: &Path) -> std::io::Result<String> {
    let (mut file, mut hash, mut part) = (files::open(file)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut part)?;
        let Some(read) = part.get(..read).filter(|read| !read.is_empty()) else { break };
        hash.update(read);
    }
    Ok(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{VirtualClock, block_on};
    use crate::knowledge::Passage;
    use proptest::prelude::*;

    fn base(texts: &[&str]) -> Embedded {
        let passages = (1..)
            .zip(texts)
            .map(|(n, text)| Passage { id: format!("doc#{n}"), title: "Doc".into(), text: (*text).into() })
            .collect();
        Embedded::open(Corpus::of("desk", passages), None).expect("opens")
    }

    fn ids(base: &Embedded, query: &str, top_k: usize) -> Vec<String> {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let found = block_on(&clock, base.search(query, top_k)).expect("no deadlock").result.expect("searches");
        found.into_iter().map(|hit| hit.passage.id).collect()
    }

    /// A corpus that has its index in a file.
    fn large() -> Corpus {
        let passage = |n: usize| Passage {
            id: format!("doc#{n}"),
            title: "Doc".into(),
            text: format!("lamp {} battery {}", n % 7, "red ".repeat(n % 5)),
        };
        Corpus::of("desk", (0..=IN_MEMORY).map(passage).collect())
    }

    fn damaged(times: usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let best = |base: &Embedded| {
            let found = base.find("red lamp 3", 20).expect("searches").into_iter();
            found.map(|hit| (hit.passage.id, hit.raw_score)).collect::<Vec<_>>()
        };
        let files = || {
            let entries = std::fs::read_dir(folder.path()).expect("the cache");
            entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
        };
        let open = || Embedded::open(large(), Some(folder.path())).expect("opens");
        let expected = best(&open());
        assert!(!expected.is_empty());
        let [file] = files().try_into().expect("one index");
        let sound = std::fs::read(&file).expect("the index");
        for round in 0..times {
            let place = round * (sound.len() - 1) / times.max(2);
            let mut bytes = sound.clone();
            if round % 3 == 0 {
                bytes.truncate(place);
            } else {
                bytes[place] ^= 1 << (round % 8);
            }
            std::fs::write(&file, bytes).expect("written");
            assert_eq!(best(&open()), expected, "damage {round} at byte {place}");
            let [again] = files().try_into().expect("the damaged index is gone");
            assert!(again != file || std::fs::read(&again).expect("the index") == sound);
            if again != file {
                std::fs::remove_file(again).expect("removed");
            }
        }
    }

    #[test]
    fn a_damaged_index_is_built_again_and_never_searched() {
        damaged(8);
    }

    #[test]
    #[ignore = "a thousand damages: .ci/slow"]
    fn a_thousand_damages_of_an_index_are_never_searched() {
        damaged(1_000);
    }

    fn borrowed(texts: &[String]) -> Vec<&str> {
        texts.iter().map(String::as_str).collect()
    }

    fn scores(base: &Embedded, query: &str) -> Vec<(String, f64)> {
        base.find(query, 100).expect("searches").into_iter().map(|hit| (hit.passage.text, hit.raw_score)).collect()
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        let text = "((lamp|lamps|charging|charged|red|blue|battery|batteries|2|\u{e9}t\u{e9}) ){1,12}";
        prop::collection::vec(text, 1..24)
    }

    fn query() -> &'static str {
        "((lamp|lights|charge|red|blue|battery|batteries|2|ete) ){1,6}"
    }

    /// The stems of the words above.
    fn stems(text: &str) -> Vec<&str> {
        let stem = |word| match word {
            "lamps" => "lamp",
            "charging" | "charged" => "charge",
            "batteries" => "battery",
            "\u{e9}t\u{e9}" => "ete",
            "lights" => "light",
            other => other,
        };
        text.split_whitespace().map(stem).collect()
    }

    /// The rank's definition, word by word over every text.
    fn by_hand(texts: &[String], query: &str) -> Vec<(String, f64)> {
        let terms = query::parse(query, &Words::of(Language::English));
        let mut scored = Vec::new();
        for text in texts {
            let mut score = 0.0;
            for (term, times) in &terms {
                let stem = stems(term.text())[0];
                let holding = texts.iter().filter(|text| stems(text).contains(&stem)).count();
                let count = stems(text).into_iter().filter(|other| *other == stem).count();
                let part = rank::part(rank::weight(holding), count, stems(text).len() + "Doc".split(' ').count());
                score += part * rank::repeated(*times);
            }
            if score > 0.0 {
                scored.push((text.clone(), score));
            }
        }
        scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        scored
    }

    #[test]
    fn inflected_words_and_accents_are_found() {
        let base = base(&["Batteries are charged overnight.", "The café sells inverters."]);
        assert_eq!(ids(&base, "charging a battery", 5), ["doc#1"]);
        assert_eq!(ids(&base, "cafe inverter", 5), ["doc#2"]);
    }

    #[test]
    fn a_base_of_another_language_finds_other_forms_of_its_words_and_leaves_its_small_words_out() {
        let texts = ["Die Häuser und die Wärmepumpen.", "Und der Zähler?", "Une maison, des chaudières."];
        let open = |language| {
            let passages = (1..).zip(texts).map(|(n, text)| Passage {
                id: format!("doc#{n}"),
                title: String::new(),
                text: text.into(),
            });
            Embedded::open_in(language, Corpus::of("haus", passages.collect()), None).expect("opens")
        };
        let german = open(Language::German);
        assert_eq!(ids(&german, "Wo ist das Haus?", 5), ["doc#1"], "a vowel that changes");
        assert_eq!(ids(&german, "und eine Wärmepumpe", 5), ["doc#1"], "`und` stands in two");
        assert_eq!(ids(&german, "wärme*", 5), ["doc#1"], "a prefix with an accent");
        assert_eq!(ids(&open(Language::French), "la chaudière", 5), ["doc#3"]);
        assert_eq!(ids(&open(Language::None), "und", 5), ["doc#2", "doc#1"]);
        assert!(ids(&open(Language::None), "Haus", 5).is_empty());
        assert_ne!(german.hash(), open(Language::None).hash(), "what is found depends on it, so a recording pins it");
    }

    #[test]
    fn a_question_in_japanese_finds_a_passage_in_japanese() {
        let base = base(&["バッテリーの保証は二年です。", "充電は四時間です。"]);
        assert_eq!(ids(&base, "保証期間", 5)[0], "doc#1");
    }

    #[test]
    fn equal_scores_stand_in_the_order_of_the_corpus_and_top_k_bounds_them() {
        let base = base(&["red lamp", "red lamp", "red lamp"]);
        assert_eq!(ids(&base, "red", 2), ["doc#1", "doc#2"]);
    }

    #[test]
    fn a_word_that_the_query_repeats_counts_twice() {
        let base = base(&["red lamp", "blue lamp", "blue"]);
        assert_eq!(ids(&base, "red blue", 1), ["doc#1"]);
        assert_eq!(ids(&base, "red blue blue blue", 1), ["doc#3"]);
    }

    #[test]
    fn quoted_words_prefer_passages_where_they_stand_side_by_side_and_a_star_finds_what_begins_so() {
        let base = base(&["a pump for heat", "a pump of heat, or a heat exchange pump", "the heat pumps"]);
        assert_eq!(ids(&base, "\"heat pump\"", 1), ["doc#3"]);
        assert_eq!(ids(&base, "exch*", 5), ["doc#2"]);
        assert_eq!(ids(&base, "pum* lamp*", 5).len(), 3);
        assert!(ids(&base, "\"pump heat exchange\"*", 5).len() == 3, "words alone where no phrase is");
    }

    #[test]
    fn nothing_that_fits_is_an_empty_result() {
        let base = base(&["red lamp"]);
        assert!(ids(&base, "zeppelin", 5).is_empty());
        assert!(ids(&base, "???", 5).is_empty());
    }

    #[test]
    fn a_large_corpus_is_kept_in_a_file_and_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let passages: Vec<_> = (0..=IN_MEMORY)
            .map(|n| Passage { id: format!("doc#{n}"), title: String::new(), text: format!("lamp number{n}") })
            .collect();
        for _ in 0..2 {
            let base = Embedded::open(Corpus::of("big", passages.clone()), Some(folder.path())).expect("opens");
            assert_eq!(ids(&base, "number17", 5), ["doc#17"]);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1);
    }

    #[test]
    fn a_forgotten_term_is_asked_again() {
        let base = base(&["red lamp", "blue lamp"]);
        let first = ids(&base, "blue lamp", 5);
        base.terms.lock().expect("lock").passages = MOST_REMEMBERED;
        assert_eq!(ids(&base, "red lamp", 5), ["doc#1", "doc#2"]);
        assert!(base.terms.lock().expect("lock").passages < 5);
        assert_eq!(ids(&base, "blue lamp", 5), first);
    }

    #[test]
    fn threads_search_side_by_side() {
        let base = base(&["red lamp", "blue lamp"]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| assert_eq!(ids(&base, "blue", 5), ["doc#2"])));
            }
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn the_order_is_that_of_scores_worked_out_by_hand(texts in texts(), query in query()) {
            let found = scores(&base(&borrowed(&texts)), &query);
            prop_assert_eq!(found, by_hand(&texts, &query));
        }

        #[test]
        fn a_passage_that_shares_no_word_with_a_query_changes_nothing_that_it_finds(
            texts in texts(),
            query in query(),
            new in "((mash|wort|hops|oak|yeast) ){1,30}",
            at in any::<prop::sample::Index>(),
        ) {
            let mut more = texts.clone();
            more.insert(at.index(texts.len() + 1), new);
            prop_assert_eq!(scores(&base(&borrowed(&more)), &query), scores(&base(&borrowed(&texts)), &query));
        }

        #[test]
        fn a_passage_that_shares_words_turns_over_none_but_near_ties(
            texts in texts(),
            query in query(),
            new in "((lamp|red|blue|battery|wort|hops) ){1,12}",
        ) {
            let mut more = texts.clone();
            more.push(new);
            let (before, after) = (scores(&base(&borrowed(&texts)), &query), scores(&base(&borrowed(&more)), &query));
            // The most that one passage more takes from a word's weight: from its first passage to its second.
            let least = rank::weight(2) / rank::weight(1);
            for (place, (text, score)) in before.iter().enumerate() {
                for (behind, other) in &before[place + 1..] {
                    let at = |wanted: &String| after.iter().position(|(text, _)| text == wanted);
                    prop_assert!(at(text) <= at(behind) || other / score >= least);
                }
            }
        }

        #[test]
        fn no_text_breaks_the_query_grammar(query in "\\PC{0,60}|[\"'*^():{}+\\-ANDORNEAR ]{0,40}") {
            let base = base(&["red lamp"]);
            let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
            prop_assert!(block_on(&clock, base.search(&query, 5)).expect("no deadlock").result.is_ok());
        }
    }
}
