//! The keyword index: what it keeps, finds, merges and forgets.

use super::*;
use crate::knowledge::question_id;
use proptest::prelude::*;
use std::time::Duration;

fn record(conversation: u32, result: &str) -> ExternalRecord {
    ExternalRecord {
        session: format!("talk-{conversation}"),
        conversation,
        result: result.into(),
        query: "grid tariff in spring".into(),
        answer: "It fell.".into(),
        citations: vec![("Tariffs".into(), "https://example.org/tariffs".into())],
        question: "What does power cost in spring?".into(),
        question_id: question_id(&format!("talk-{conversation}"), conversation, 0, "What does power cost in spring?"),
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
    assert_eq!(hits[0].id, format!("learned:{}", record(0, "result-1").digest()));
    assert_eq!(hits[0].id.len(), "learned:".len() + 32);
    assert_eq!(hits[0].record.citations, record(0, "result-1").citations);
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
fn a_second_answer_under_the_same_names_is_kept_beside_the_first() {
    let index = KeywordIndex::in_memory();
    let first = record(0, "result-1");
    let second = ExternalRecord { answer: "It rose.".into(), ..first.clone() };
    for record in [&first, &second, &first] {
        let done = index.index(record, &strings(&["grid tariff"]), "q", at(1)).expect("indexes");
        assert_eq!(done.read_back, ["grid tariff"]);
    }
    let hits = index.find("grid tariff").expect("finds");
    assert_eq!(hits.iter().map(|hit| hit.record.answer.as_str()).collect::<Vec<_>>(), ["It fell.", "It rose."]);
    assert_ne!(hits[0].id, hits[1].id);
}

#[test]
fn keywords_that_differ_in_case_width_spaces_or_plural_are_one_with_every_source() {
    let index = KeywordIndex::in_memory();
    let given = strings(&["Feed-in Tariffs", "feed-in  tariff", "ｆｅｅｄ-in tariff", "winter price"]);
    let done = index.index(&record(0, "result-1"), &given, "first", at(1)).expect("indexes");
    assert_eq!(done.keywords, ["feed-in tariffs", "winter price"]);
    let again = index.index(&record(1, "result-1"), &strings(&["feed-in tariff"]), "second", at(2)).expect("indexes");
    assert_eq!((again.merged, again.read_back), (strings(&["feed-in tariff"]), strings(&["feed-in tariff"])));
    let entries = index.list().expect("lists");
    assert_eq!(
        entries.iter().map(|entry| entry.keyword.as_str()).collect::<Vec<_>>(),
        ["feed-in tariffs", "winter price"]
    );
    let sources: Vec<_> = entries[0].provenance.iter().map(|source| source.query.as_str()).collect();
    assert_eq!(sources, ["first", "second"]);
    let source = &entries[0].provenance[0];
    assert_eq!(source.question, "What does power cost in spring?");
    assert!(source.question_id.starts_with("question:") && source.question_id.len() == "question:".len() + 32);
    assert_eq!(source.citations[0].1, "https://example.org/tariffs");
}

#[test]
fn a_file_of_something_else_is_refused_and_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("other.sqlite");
    let other = Connection::open(&database).expect("opens");
    other.execute_batch("CREATE TABLE orders (id); PRAGMA user_version = 2").expect("a table");
    drop(other);
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "Not a database, and longer than a header would be: it goes on and on and on.")
        .expect("written");
    for (file, why) in [(&database, "a database of something else"), (&text, "not an SQLite database")] {
        let before = std::fs::read(file).expect("reads");
        let index = KeywordIndex::in_file(file);
        let refused = index.index(&record(0, "result-1"), &strings(&["grid tariff"]), "q", at(1));
        assert!(refused.expect_err("is refused").to_string().contains(why));
        assert!(index.list().is_err());
        assert_eq!(std::fs::read(file).expect("reads"), before);
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("lists").count(), 2, "no journal beside them");
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
    let upkeep = Upkeep { idle: Duration::from_secs(100), fewer_uses_than: Some(1) };
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
fn an_index_that_a_project_declares_forgets_by_age_alone_where_no_use_is_named_and_else_by_hand_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = |forget: serde_json::Value| {
        let written = serde_json::json!({"file": "kept.sqlite", "forget": forget});
        serde_json::from_value::<KeywordIndexSettings>(written).expect("is valid")
    };
    let left = |forget: serde_json::Value| {
        let index = KeywordIndex::declared(folder.path(), &settings(forget));
        index.index(&record(1, "result-1"), &strings(&["old used"]), "q", at(0)).expect("indexes");
        index.note_use([&"old used".to_owned()], at(1)).expect("notes");
        index.index(&record(2, "result-1"), &strings(&["new thing"]), "q", at(90_000)).expect("indexes");
        index.list().expect("lists").into_iter().map(|entry| entry.keyword).collect::<Vec<_>>()
    };
    assert_eq!(left(serde_json::Value::Null), ["new thing", "old used"]);
    assert_eq!(left(serde_json::json!({"after": "never"})), ["new thing", "old used"]);
    assert_eq!(left(serde_json::json!({"after": "1d", "fewer_uses_than": 1})), ["new thing", "old used"]);
    assert_eq!(left(serde_json::json!({"after": "1d"})), ["new thing"]);
    assert!(folder.path().join("kept.sqlite").is_file());
}

#[test]
fn an_index_in_memory_begins_empty_whatever_was_learned_before_it() {
    for round in 0..3 {
        let index = KeywordIndex::in_memory();
        let done = index.index(&record(0, "result-1"), &strings(&["grid tariff"]), "q", at(round)).expect("indexes");
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

#[test]
fn what_was_learned_is_there_when_the_file_is_opened_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = KeywordIndex::in_file(&folder.path().join("kept.sqlite"));
    index.index(&record(1, "result-1"), &strings(&["grid tariff"]), "q", at(1)).expect("indexes");
    index.close();
    assert!(!index.is_open());
    assert_eq!(index.find("the grid tariff").expect("finds").len(), 1);
    let memory = KeywordIndex::in_memory();
    memory.index(&record(1, "result-1"), &strings(&["grid tariff"]), "q", at(1)).expect("indexes");
    memory.close();
    assert_eq!(memory.find("the grid tariff").expect("finds").len(), 1, "one in memory is no file");
}

#[test]
fn an_index_that_cannot_be_written_says_so_at_each_indexing_and_finds_nothing() {
    let index = KeywordIndex::unwritable();
    assert!(index.find("grid tariff").expect("looks").is_empty());
    for _ in 0..2 {
        let why = index.index(&record(1, "result-1"), &strings(&["grid tariff"]), "q", at(1)).expect_err("fails");
        assert!(why.to_string().contains("the keyword index failed: attempt to write a readonly database"), "{why}");
    }
    drop(index);
    assert!(KeywordIndex::in_memory().index(&record(1, "r"), &strings(&["grid tariff"]), "q", at(1)).is_ok());
}

#[test]
fn a_text_that_is_too_long_is_not_taken_and_a_file_that_holds_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("kept.sqlite");
    let index = KeywordIndex::in_file(&file);
    let why = index.index(&record(1, "r"), &["x".repeat(201)], "q", at(1)).expect_err("too long").to_string();
    assert!(why.contains("a keyword of more than 200 characters"), "{why}");
    let answer = "y".repeat(1_000_001);
    let long = ExternalRecord { answer, ..record(1, "r") };
    assert!(index.index(&long, &strings(&["grid tariff"]), "q", at(1)).is_err());
    index.index(&record(1, "r"), &strings(&["grid tariff"]), "q", at(1)).expect("indexes");
    drop(index);
    let stranger = rusqlite::Connection::open(&file).expect("opens");
    stranger.execute("UPDATE keywords SET keyword = ?1", ["z".repeat(300_000)]).expect("written");
    drop(stranger);
    for index in [KeywordIndex::in_file(&file), KeywordIndex::to_read(&file)] {
        let why = index.list().expect_err("is refused").to_string();
        assert!(
            why.contains("kept.sqlite is not a keyword index") && why.contains("longer than what is indexed"),
            "{why}"
        );
    }
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
