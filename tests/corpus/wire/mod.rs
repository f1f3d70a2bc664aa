//! The dialects against recorded traffic of other people: exchanges, streams, errors, and the providers' own schemas.
//! The folder comes from `RAGCHECK_CORPUS`; without it nothing is checked, and with a wrong one everything fails.

mod plain;
mod requests;
mod responses;
mod specs;
mod streams;

use super::published;
use flate2::read::GzDecoder;
use ragcheck::internals::provider::wire::{
    Dialect, anthropic_messages, gemini, openai_chat, openai_responses, perplexity_sonar,
};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One recorded exchange.
pub struct Exchange {
    /// The corpus's id of the row.
    pub id: String,
    /// Whose server it was.
    pub provider: String,
    /// `None` where no chat is held: embeddings and lists of models.
    pub dialect: Option<&'static Dialect>,
    /// The corpus's word for the wire format.
    pub api: String,
    /// The URL without its query.
    pub path: String,
    /// HTTP status.
    pub status: u16,
    /// Whether the response is a stream of events.
    pub streamed: bool,
    /// The request's body, where it is JSON.
    pub request: Option<Value>,
    /// The response's body as it came.
    pub response: String,
}

/// The folder of the corpus.
pub fn corpus() -> PathBuf {
    crate::part("")
}

/// The text of a gzip file.
pub fn unzipped(path: &Path) -> String {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}

/// All recorded exchanges.
pub fn exchanges(corpus: &Path) -> Vec<Exchange> {
    let files = [
        ("openai-chat", openai_chat::DIALECT),
        ("openai-responses", openai_responses::DIALECT),
        ("anthropic-messages", anthropic_messages::DIALECT),
        ("gemini", gemini::DIALECT),
        ("perplexity-sonar", perplexity_sonar::DIALECT),
    ];
    let mut all = Vec::new();
    for (file, dialect) in files {
        let text = unzipped(&corpus.join("wire").join(format!("{file}.jsonl.gz")));
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).expect("a row");
            let string = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let (api, response) = (string("api"), string("response_body"));
            let streamed = ["data:", "event:", ":"].iter().any(|start| response.starts_with(start));
            let url = string("url");
            all.push(Exchange {
                id: string("id"),
                provider: string("provider"),
                dialect: (!["embeddings", "other"].contains(&api.as_str())).then_some(dialect),
                api,
                path: url.split_once('?').map_or(url.clone(), |(path, _)| path.to_owned()),
                status: u16::try_from(row["status"].as_u64().expect("a status")).expect("a status"),
                streamed,
                request: serde_json::from_str(&string("request_body")).ok(),
                response,
            });
        }
    }
    assert_eq!(all.len(), 582, "the corpus has another size than this suite was written for");
    all
}

/// One line for each dialect: exchanges, and how many of them passed requests, responses and everything.
#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn the_table_of_dialects_and_exchanges_is_full() {
    let corpus = corpus();
    let exchanges = exchanges(&corpus);
    let mut failures = Vec::new();
    let mut rows: Vec<(String, [usize; 4])> = Vec::new();
    for exchange in &exchanges {
        let name = exchange.dialect.map_or_else(|| format!("({})", exchange.api), |dialect| dialect.name().to_owned());
        let request = requests::check(exchange);
        let response = responses::check(exchange);
        if !rows.iter().any(|(known, _)| *known == name) {
            rows.push((name.clone(), [0; 4]));
        }
        let (_, counts) = rows.iter_mut().find(|(known, _)| *known == name).expect("just added");
        let passed = [true, request.is_ok(), response.is_ok(), request.is_ok() && response.is_ok()];
        for (count, passed) in counts.iter_mut().zip(passed) {
            *count += usize::from(passed);
        }
        for problem in [request, response].into_iter().filter_map(Result::err) {
            failures.push(format!("{} ({}, {name}): {problem}", exchange.id, exchange.provider));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    let cells = |(name, counts): &(String, [usize; 4])| {
        std::iter::once(name.clone()).chain(counts.iter().map(ToString::to_string)).collect()
    };
    let lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let head = ["dialect", "exchanges", "requests", "responses", "passed"];
    published::compare("exchanges", &published::table(&head, &lines));
}
