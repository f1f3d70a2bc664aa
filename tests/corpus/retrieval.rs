//! How well the embedded search finds, on two public collections: recall at 5 and nDCG at 10 (Järvelin and Kekäläinen,
//! 2002, relevant or not), how many lists stay as they are when passages are added, and never below what BM25 as FTS5
//! computes it reaches over the same index and the same words. The folder comes from `RAGCHECK_CORPUS`.

use crate::published;
use ragcheck::internals::knowledge::{Corpus, Embedded, KnowledgeBase, Passage, tokenize};
use ragcheck::internals::platform::clock::{VirtualClock, block_on};
use rusqlite::{Connection, params};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// (collection, judged queries)
const COLLECTIONS: [(&str, usize); 2] = [("anthropic-docs", 100), ("cacm", 52)];

/// How often new passages are drawn for each share.
const DRAWS: usize = 20;

pub struct Collection {
    pub passages: Vec<Passage>,
    /// Query and the ids that answer it.
    pub evaluated: Vec<(String, BTreeSet<String>)>,
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Query and the ids that answer it.
fn judgements(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut relevant: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let judgements = std::fs::read_to_string(folder.join("qrels/test.tsv")).expect("judgements");
    for row in judgements.lines().skip(1) {
        let mut cells = row.split('\t');
        let (Some(query), Some(id), Some(grade)) = (cells.next(), cells.next(), cells.next()) else { continue };
        if grade != "0" {
            relevant.entry(query.to_owned()).or_default().insert(id.to_owned());
        }
    }
    relevant
}

pub fn collection(name: &str) -> Collection {
    let folder = crate::part(&format!("ir/{name}"));
    let passages = lines(&folder.join("corpus.jsonl")).into_iter();
    let passage = |row: Value| Passage { id: text(&row["_id"]), title: text(&row["title"]), text: text(&row["text"]) };
    let mut relevant = judgements(&folder);
    let queries = lines(&folder.join("queries.jsonl")).into_iter();
    let evaluated = queries.filter_map(|row| Some((text(&row["text"]), relevant.remove(&text(&row["_id"]))?)));
    Collection { passages: passages.map(passage).collect(), evaluated: evaluated.collect() }
}

/// The best `depth` for each query.
type Search = fn(&[Passage], &[String], usize) -> Vec<Vec<String>>;

/// FTS5 with its own BM25, asked for any of the words.
fn bm25(passages: &[Passage], queries: &[String], depth: usize) -> Vec<Vec<String>> {
    let connection = Connection::open_in_memory().expect("opens");
    let table = "CREATE VIRTUAL TABLE p USING fts5(title, text, tokenize='porter unicode61 remove_diacritics 2')";
    connection.execute_batch(table).expect("a table");
    let transaction = connection.unchecked_transaction().expect("begins");
    for (row, passage) in (1_i64..).zip(passages) {
        let values = params![row, passage.title, passage.text];
        transaction.execute("INSERT INTO p (rowid, title, text) VALUES (?1, ?2, ?3)", values).expect("inserts");
    }
    transaction.commit().expect("commits");
    let mut ask =
        connection.prepare("SELECT rowid FROM p WHERE p MATCH ?1 ORDER BY rank, rowid LIMIT ?2").expect("a query");
    let mut found = |query: &String| {
        let any: Vec<String> = tokenize::terms(query).iter().map(|term| format!("\"{term}\"")).collect();
        let rows =
            ask.query_map(params![any.join(" OR "), depth as i64], |row| row.get::<_, i64>(0)).expect("searches");
        rows.map(|row| passages[row.expect("a row") as usize - 1].id.clone()).collect()
    };
    queries.iter().map(&mut found).collect()
}

pub fn ours(passages: &[Passage], queries: &[String], depth: usize) -> Vec<Vec<String>> {
    let base = Embedded::open(Corpus::of("collection", passages.to_vec()), None).expect("opens");
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let found = |query: &String| {
        let found = block_on(&clock, base.search(query, depth)).expect("no deadlock").result.expect("searches");
        found.into_iter().map(|hit| hit.passage.id).collect()
    };
    queries.iter().map(found).collect()
}

/// Of each draw, the share of queries whose five best are the same before and after a `share` of new passages: those
/// that are left out before, drawn anew each time from the collection itself. New ones that belong among the five change
/// a list too.
pub fn unchanged(
    search: impl Fn(&[Passage], &[String], usize) -> Vec<Vec<String>>,
    passages: &[Passage],
    queries: &[String],
    share: f64,
) -> Vec<f64> {
    let after = search(passages, queries, 5);
    let new = ((passages.len() as f64 * share / (1.0 + share)).round() as usize).max(1);
    let of_draw = |draw: usize| {
        // The passages with the smallest digests: a draw without a generator.
        let mut places: Vec<usize> = (0..passages.len()).collect();
        places.sort_by_cached_key(|place| Sha256::digest(format!("{draw} {place}")));
        let left_out: BTreeSet<usize> = places.into_iter().take(new).collect();
        let before = passages.iter().enumerate().filter(|(place, _)| !left_out.contains(place));
        let before: Vec<Passage> = before.map(|(_, passage)| passage.clone()).collect();
        let found = search(&before, queries, 5);
        found.iter().zip(&after).filter(|(before, after)| before == after).count() as f64 / queries.len() as f64
    };
    (0..DRAWS).map(of_draw).collect()
}

/// nDCG at 10 of one query.
pub fn gain(relevant: &BTreeSet<String>, found: &[String]) -> f64 {
    let discounted = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let ideal: f64 = (0..relevant.len().min(10)).map(discounted).sum();
    let reached = found.iter().take(10).enumerate().filter(|(_, id)| relevant.contains(*id));
    reached.map(|(rank, _)| discounted(rank)).sum::<f64>() / ideal
}

/// The share of the relevant ones among the first `depth`.
pub fn recall(relevant: &BTreeSet<String>, found: &[String], depth: usize) -> f64 {
    found.iter().take(depth).filter(|id| relevant.contains(*id)).count() as f64 / relevant.len() as f64
}

/// Mean average precision of one query, as trec_eval works it out: over all relevant ones.
fn average_precision(relevant: &BTreeSet<String>, found: &[String]) -> f64 {
    let mut hits = 0.0;
    let mut sum = 0.0;
    for (rank, _) in (1_u32..).zip(found).filter(|(_, id)| relevant.contains(*id)) {
        hits += 1.0;
        sum += hits / f64::from(rank);
    }
    sum / relevant.len() as f64
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of paired differences, with half of its 95 % interval.
pub fn difference(ours: &[f64], theirs: &[f64]) -> (f64, f64) {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs).collect();
    let middle = mean(&differences);
    let squares: f64 = differences.iter().map(|one| (one - middle) * (one - middle)).sum();
    let count = differences.len() as f64;
    (middle, 1.96 * (squares / (count - 1.0) / count).sqrt())
}

pub fn of_each(evaluated: &[(String, BTreeSet<String>)], found: &[Vec<String>], figure: Figure) -> Vec<f64> {
    evaluated.iter().zip(found).map(|((_, relevant), found)| figure(relevant, found)).collect()
}

pub type Figure = fn(&BTreeSet<String>, &[String]) -> f64;

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn the_search_finds_no_less_than_bm25_does() {
    let mut rows = Vec::new();
    for (name, queries) in COLLECTIONS {
        let Collection { passages, evaluated } = collection(name);
        assert_eq!(evaluated.len(), queries, "{name}");
        let asked: Vec<String> = evaluated.iter().map(|(query, _)| query.clone()).collect();
        let (found, theirs) = (ours(&passages, &asked, 10), bm25(&passages, &asked, 10));
        let mut cells: Vec<String> = vec![name.to_owned(), passages.len().to_string(), queries.to_string()];
        let figures: [Figure; 2] = [|relevant, found| recall(relevant, found, 5), gain];
        for figure in figures {
            let (ours, theirs) = (of_each(&evaluated, &found, figure), of_each(&evaluated, &theirs, figure));
            let (more, half) = difference(&ours, &theirs);
            assert!(more >= 0.0, "{name} finds less than BM25");
            cells.extend([mean(&ours), mean(&theirs)].map(|share| format!("{share:.3}")));
            cells.push(format!("{more:+.3} ± {half:.3}"));
        }
        rows.push(cells);
    }
    let head = [
        "collection", "passages", "queries", "recall at 5", "of BM25", "difference", "nDCG at 10", "of BM25",
        "difference",
    ];
    published::compare("retrieval", &published::table(&head, &rows));
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn new_passages_change_no_more_lists_than_with_bm25() {
    let mut rows = Vec::new();
    for (name, _) in COLLECTIONS {
        let Collection { passages, evaluated } = collection(name);
        let asked: Vec<String> = evaluated.iter().map(|(query, _)| query.clone()).collect();
        let mut cells = vec![name.to_owned()];
        for share in [0.01, 0.1, 0.5] {
            let [ours, theirs] = [ours as Search, bm25].map(|search| unchanged(search, &passages, &asked, share));
            let (more, half) = difference(&ours, &theirs);
            assert!(more + half >= 0.0, "{name}, {share} more passages: {ours:?} unchanged, {theirs:?} with BM25");
            cells.extend([mean(&ours), mean(&theirs)].map(|share| format!("{:.1} %", share * 100.0)));
            cells.push(format!("{:+.1} ± {:.1}", more * 100.0, half * 100.0));
        }
        rows.push(cells);
    }
    let head = [
        "collection", "at +1 %", "of BM25", "difference", "at +10 %", "of BM25", "difference", "at +50 %", "of BM25",
        "difference",
    ];
    published::compare("stability", &published::table(&head, &rows));
}

/// `trec_eval` on Anserini's BM25 run over CACM, as Anserini's own regression test asserts it.
#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn the_figures_are_those_of_trec_eval_on_anserinis_run() {
    let folder = crate::part("ir/cacm");
    let relevant = judgements(&folder);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let run = std::fs::read_to_string(folder.join("reference/anserini-bm25-top30.run")).expect("the run");
    for line in run.lines() {
        let cells: Vec<&str> = line.split_whitespace().collect();
        found.entry(cells[0].to_owned()).or_default().push(cells[2].to_owned());
    }
    assert_eq!((found.len(), relevant.len()), (64, 52), "topics of the run, and those that were judged");
    let precision: Figure =
        |relevant, found| found.iter().take(30).filter(|id| relevant.contains(*id)).count() as f64 / 30.0;
    let figures: [(Figure, f64); 4] =
        [(average_precision, 0.2744), (precision, 0.1942), (gain, 0.4543), (|r, f| recall(r, f, 30), 0.5052)];
    for (figure, published) in figures {
        let each: Vec<f64> = relevant.iter().map(|(topic, relevant)| figure(relevant, &found[topic])).collect();
        assert!((mean(&each) - published).abs() < 0.000_05, "{} instead of {published}", mean(&each));
    }
}
