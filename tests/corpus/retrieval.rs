//! How well the embedded search finds, on two public collections: recall at 5 and nDCG at 10 (Järvelin and Kekäläinen,
//! 2002, relevant or not), and never below what BM25 as FTS5 computes it reaches over the same index and the same
//! words. The folder comes from `RAGCHECK_CORPUS`.

use crate::published;
use ragcheck::clock::{VirtualClock, block_on};
use ragcheck::knowledge::{Corpus, Embedded, KnowledgeBase, Passage, tokenize};
use rusqlite::{Connection, params};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// (collection, judged queries)
const COLLECTIONS: [(&str, usize); 2] = [("anthropic-docs", 100), ("cacm", 52)];

struct Collection {
    passages: Vec<Passage>,
    /// Query and the ids that answer it.
    evaluated: Vec<(String, BTreeSet<String>)>,
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn collection(name: &str) -> Collection {
    let folder = crate::part(&format!("ir/{name}"));
    let passages = lines(&folder.join("corpus.jsonl")).into_iter();
    let passage = |row: Value| Passage { id: text(&row["_id"]), title: text(&row["title"]), text: text(&row["text"]) };
    let mut relevant: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let judgements = std::fs::read_to_string(folder.join("qrels/test.tsv")).expect("judgements");
    for row in judgements.lines().skip(1) {
        let mut cells = row.split('\t');
        let (Some(query), Some(id), Some(grade)) = (cells.next(), cells.next(), cells.next()) else { continue };
        if grade != "0" {
            relevant.entry(query.to_owned()).or_default().insert(id.to_owned());
        }
    }
    let queries = lines(&folder.join("queries.jsonl")).into_iter();
    let evaluated = queries.filter_map(|row| Some((text(&row["text"]), relevant.remove(&text(&row["_id"]))?)));
    Collection { passages: passages.map(passage).collect(), evaluated: evaluated.collect() }
}

/// FTS5 with its own BM25, asked for any of the words.
fn bm25(passages: &[Passage], queries: &[String]) -> Vec<Vec<String>> {
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
        connection.prepare("SELECT rowid FROM p WHERE p MATCH ?1 ORDER BY rank, rowid LIMIT 10").expect("a query");
    let mut found = |query: &String| {
        let any: Vec<String> = tokenize::terms(query).iter().map(|term| format!("\"{term}\"")).collect();
        let rows = ask.query_map([any.join(" OR ")], |row| row.get::<_, i64>(0)).expect("searches");
        rows.map(|row| passages[row.expect("a row") as usize - 1].id.clone()).collect()
    };
    queries.iter().map(&mut found).collect()
}

fn ours(passages: &[Passage], queries: &[String]) -> Vec<Vec<String>> {
    let base = Embedded::open(Corpus::of("collection", passages.to_vec()), None).expect("opens");
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let found = |query: &String| {
        let found = block_on(&clock, base.search(query, 10)).expect("no deadlock").result.expect("searches");
        found.into_iter().map(|hit| hit.passage.id).collect()
    };
    queries.iter().map(found).collect()
}

/// Mean recall at 5 and mean nDCG at 10.
fn figures(evaluated: &[(String, BTreeSet<String>)], found: &[Vec<String>]) -> (f64, f64) {
    let (mut recall, mut gain) = (0.0, 0.0);
    for ((_, relevant), found) in evaluated.iter().zip(found) {
        let seen = found.iter().take(5).filter(|id| relevant.contains(*id)).count();
        recall += seen as f64 / relevant.len() as f64;
        let discounted = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
        let ideal: f64 = (0..relevant.len().min(10)).map(discounted).sum();
        let reached = found.iter().take(10).enumerate().filter(|(_, id)| relevant.contains(*id));
        gain += reached.map(|(rank, _)| discounted(rank)).sum::<f64>() / ideal;
    }
    (recall / evaluated.len() as f64, gain / evaluated.len() as f64)
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn the_search_finds_no_less_than_bm25_does() {
    let mut rows = Vec::new();
    for (name, queries) in COLLECTIONS {
        let Collection { passages, evaluated } = collection(name);
        assert_eq!(evaluated.len(), queries, "{name}");
        let asked: Vec<String> = evaluated.iter().map(|(query, _)| query.clone()).collect();
        let (recall, gain) = figures(&evaluated, &ours(&passages, &asked));
        let (least_recall, least_gain) = figures(&evaluated, &bm25(&passages, &asked));
        assert!(recall >= least_recall && gain >= least_gain, "{name} finds less than BM25");
        let counts = [passages.len(), queries].map(|count| count.to_string());
        let shares = [recall, least_recall, gain, least_gain].map(|share| format!("{share:.3}"));
        rows.push([name.to_owned()].into_iter().chain(counts).chain(shares).collect());
    }
    let head = ["collection", "passages", "queries", "recall at 5", "of BM25", "nDCG at 10", "of BM25"];
    published::compare("retrieval", &published::table(&head, &rows));
}
