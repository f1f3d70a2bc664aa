//! `ragcheck knowledge`: what a knowledge base holds and finds.

use super::arguments::{Knowledge, KnowledgeCommand};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::clock::{VirtualClock, block_on};
use crate::knowledge::{Corpus, Embedded, KnowledgeBase};
use crate::scenario;

/// Does what `ragcheck knowledge` was asked to.
///
/// # Errors
/// When the knowledge base cannot be read.
pub(super) fn run(given: &Knowledge) -> Result<Exit, Problem> {
    let KnowledgeCommand::Search { base, query, top_k } = &given.command;
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let root = scenario::find_root(&here);
    let project = scenario::load(&root, &[], None, &crate::catalogues())?.project;
    let folder = root.join(&project.knowledge).join(base);
    let corpus = Corpus::load(&folder).map_err(|why| why.to_string())?;
    let knowledge = Embedded::open(corpus, None).map_err(|why| why.to_string())?;
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let found = block_on(&clock, knowledge.search(query, *top_k))
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
