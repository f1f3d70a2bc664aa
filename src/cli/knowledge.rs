//! `ragcheck knowledge`: what a knowledge base holds and finds, and what changed in it.

use super::arguments::{Knowledge, KnowledgeCommand};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::clock::{VirtualClock, block_on};
use crate::knowledge::{Corpus, Embedded, KnowledgeBase, Listing};
use crate::scenario;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Does what `ragcheck knowledge` was asked to.
///
/// # Errors
/// When the knowledge base cannot be read.
pub(super) fn run(given: &Knowledge) -> Result<Exit, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let root = scenario::find_root(&here);
    let project = scenario::load(&root, &[], None, &crate::catalogues())?.project;
    let folder = root.join(&project.knowledge);
    let load = |base: &str| Corpus::load(&folder.join(base)).map_err(|why| why.to_string());
    match &given.command {
        KnowledgeCommand::Search { base, query, top_k } => search(load(base)?, query, *top_k),
        KnowledgeCommand::Index { base } => index(load(base)?, &root),
        KnowledgeCommand::Stats { base } => {
            output::result(&stats(&load(base)?));
            Ok(Exit::Passed)
        }
        KnowledgeCommand::Diff { base } => diff(&load(base)?, &root),
    }
}

fn search(corpus: Corpus, query: &str, top_k: usize) -> Result<Exit, Problem> {
    let base = corpus.id.clone();
    let knowledge = Embedded::open(corpus, None).map_err(|why| why.to_string())?;
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let found = block_on(&clock, knowledge.search(query, top_k))
        .map_err(|why| why.to_string())?
        .result
        .map_err(|why| why.to_string())?;
    if found.is_empty() {
        output::remark(&format!("nothing in `{base}` matches: no word of the query stands in any passage"));
    }
    for (rank, found) in (1..).zip(&found) {
        let passage = &found.passage;
        let text = passage.text.split_whitespace().collect::<Vec<_>>().join(" ");
        output::result(&format!(
            "{rank}. {}  {}  (raw score {:.3})\n   {text}\n",
            passage.id, passage.title, found.raw_score
        ));
    }
    Ok(Exit::Passed)
}

/// Where the listing of the last `index` is kept, beside the derived index files.
fn listing_of(root: &Path, base: &str) -> PathBuf {
    root.join(".ragcheck").join(format!("{base}.listing.json"))
}

fn index(corpus: Corpus, root: &Path) -> Result<Exit, Problem> {
    let listing = Listing::of(&corpus);
    let (base, passages, documents) = (corpus.id.clone(), corpus.passages.len(), corpus.documents.len());
    let hash = corpus.hash.clone();
    Embedded::open(corpus, Some(&root.join(".ragcheck"))).map_err(|why| why.to_string())?;
    let file = listing_of(root, &base);
    listing.save(&file).map_err(|why| why.to_string())?;
    output::result(&format!("{base}: {passages} passages of {documents} documents, hash {hash}\n"));
    Ok(Exit::Passed)
}

fn stats(corpus: &Corpus) -> String {
    let characters = |passage: &crate::knowledge::Passage| passage.text.chars().count();
    let all: usize = corpus.passages.iter().map(characters).sum();
    let longest = corpus.passages.iter().map(characters).max().unwrap_or_default();
    let mut told = format!(
        "{}: {} passages of {} documents, {all} characters, the longest passage {longest}, hash {}\n",
        corpus.id,
        corpus.passages.len(),
        corpus.documents.len(),
        corpus.hash
    );
    for document in &corpus.documents {
        let _ = writeln!(told, "  {}  {} passages, hash {}", document.file, document.passages, document.hash);
    }
    told
}

fn diff(corpus: &Corpus, root: &Path) -> Result<Exit, Problem> {
    let file = listing_of(root, &corpus.id);
    let before = Listing::read(&file).map_err(|why| why.to_string())?;
    let Some(before) = before else {
        let base = &corpus.id;
        return Err(Problem::Words(format!(
            "`{base}` was not indexed yet: run `ragcheck knowledge index {base}` first"
        )));
    };
    let changes = Listing::of(corpus).since(&before);
    if changes.is_empty() {
        output::remark("nothing changed since the last `ragcheck knowledge index`");
    }
    for change in changes {
        output::result(&format!("{change}\n"));
    }
    Ok(Exit::Passed)
}
