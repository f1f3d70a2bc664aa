//! Searches of folders in memory and in a derived file.

use super::*;
use crate::knowledge::index_file::authenticate;
use crate::knowledge::{Passage, full_text};
use crate::platform::clock::{VirtualClock, block_on};
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

fn key(byte: u8) -> OwnKey {
    OwnKey::of([byte; 32])
}

/// A base with its index in a file, opened by the user of that key.
fn kept(corpus: Corpus, folder: &Path, key: Option<&OwnKey>) -> Embedded {
    Embedded::with(Language::English, corpus, Some(folder), || key).expect("opens")
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
    let open = || kept(large(), folder.path(), Some(&key(1)));
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
    let terms = query::parse(query, Words::of(Language::English));
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
        let base = kept(Corpus::of("big", passages.clone()), folder.path(), Some(&key(1)));
        assert_eq!(ids(&base, "number17", 5), ["doc#17"]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 1);
}

#[test]
fn an_index_of_other_passages_or_of_another_user_is_never_searched_whatever_its_name() {
    use sha2::{Digest, Sha256};
    let folder = tempfile::tempdir().expect("a folder");
    let in_it = || {
        let entries = std::fs::read_dir(folder.path()).expect("the cache");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let mut forged = large();
    forged.passages[0].text = "zeppelin".into();
    drop(kept(forged.clone(), folder.path(), Some(&key(1))));
    let [made] = in_it().try_into().expect("one index");
    let bytes = std::fs::read(&made).expect("an index");
    let corpus = large();
    let stem = format!("{}-english-v{}-", corpus.id, full_text::INDEX_VERSION);
    let names = [
        // What anybody can compute; what this user's key says of another base; and what another key says of this one.
        hex::encode(Sha256::digest(&bytes)),
        authenticate(&made, "another-english-v2-", &key(1)).expect("a hash"),
        authenticate(&made, &stem, &key(2)).expect("a hash"),
    ];
    std::fs::remove_file(&made).expect("removed");
    for name in names {
        let file = folder.path().join(format!("{stem}{name}.sqlite"));
        std::fs::write(&file, &bytes).expect("written");
        let base = kept(large(), folder.path(), Some(&key(1)));
        assert!(base.find("zeppelin", 5).expect("searches").is_empty(), "{name}");
        assert!(!file.exists(), "{name}");
        drop(base);
        for file in in_it() {
            std::fs::remove_file(file).expect("removed");
        }
    }
}

#[test]
fn an_index_is_brought_up_to_date_by_what_changed_and_finds_what_a_new_one_finds() {
    let folder = tempfile::tempdir().expect("a folder");
    let in_it = || std::fs::read_dir(folder.path()).expect("the cache").count();
    let mut corpus = large();
    drop(kept(corpus.clone(), folder.path(), Some(&key(1))));
    for round in 0..6 {
        corpus.passages.remove(round * 7);
        corpus.passages.swap(3, 900 + round);
        corpus.passages.insert(
            round,
            Passage { id: format!("new#{round}"), title: String::new(), text: format!("red lamp zeppelin {round}") },
        );
        let base = kept(Corpus::of(&corpus.id, corpus.passages.clone()), folder.path(), Some(&key(1)));
        let fresh = Embedded::open(Corpus::of(&corpus.id, corpus.passages.clone()), None).expect("opens");
        for query in ["zeppelin", "red lamp 3", "lamp", "\"red lamp\" zep*"] {
            assert_eq!(base.find(query, 50).expect("searches"), fresh.find(query, 50).expect("searches"), "{query}");
        }
        assert!(in_it() <= 4, "old ones go");
    }
}

#[test]
fn without_a_key_nothing_is_kept_and_nothing_that_lies_there_is_searched() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(kept(large(), folder.path(), Some(&key(1))));
    let count = || std::fs::read_dir(folder.path()).expect("the cache").count();
    assert_eq!(count(), 1);
    let base = kept(large(), folder.path(), None);
    assert!(matches!(base.file.as_ref().map(|(file, _)| &**file), Some(Derived::Once(_))));
    assert!(!base.find("red lamp 3", 20).expect("searches").is_empty());
    assert_eq!(count(), 2);
    drop(base);
    assert_eq!(count(), 1);
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
        // A tie is off by what a double rounds.
        let least = rank::weight(2) / rank::weight(1) - 1e-12;
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
