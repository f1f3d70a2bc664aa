//! Compresses the conversations of a run for the HTML report while traces stream by.
//!
//! Trials are encoded in blocks of at most [`TRIALS_A_BLOCK`] trials or [`BLOCK_BYTES`] bytes of JSON, and each block
//! is compressed (gzip without time stamp; the first eight blocks of a lane at a high level, others fast). There are
//! two lanes, trials that did not pass and trials that did. If the budget is too small for all, the former take
//! precedence, each lane in plan order, and omitted trials are counted. Memory is bounded by twice the budget and a few
//! open blocks; the result does not depend on the number of threads.

use super::Searchable;
use super::compact::{CommonTexts, Encoder};
use crate::gate::{TrialResult, Verdict};
use crate::platform::secrets;
use crate::trace::{Grade, NamedPassage, Trace};
use flate2::{Compression, write::GzEncoder};
use rayon::prelude::*;
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Data of a trial that a run folder stores besides its trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Grades of its answers.
    pub grades: &'a [Grade],
    /// Full passages that its searches found, as far as stored.
    pub passages: &'a [Arc<NamedPassage>],
}

impl<'a> Beside<'a> {
    /// Full text of a passage found in `base`; if no base has that name, any base is searched.
    pub(super) fn passage(&self, base: &str, id: &str) -> Option<&'a str> {
        let of = |one: &&Arc<NamedPassage>| one.id == id;
        let named = self.passages.iter().filter(of).find(|one| one.base == base);
        named.or_else(|| self.passages.iter().find(of)).map(|one| one.text.as_str())
    }
}

/// Default budget of the HTML report for conversations, in compressed bytes: with the rows of ten thousand trials, a page has four
/// megabytes.
pub(crate) const BUDGET: usize = 2_900_000;
/// What a trial's row and notes take of the budget.
const ROW: usize = 200;
/// Part of the budget that rows do not take.
const LEAST: usize = 500_000;
/// Maximum number of conversations: those of the trials in the page's table, which uses the same order.
const MOST: usize = super::TABLE_ROWS;
/// Trials per block, which is what a browser unpacks to show one.
const TRIALS_A_BLOCK: usize = 200;
/// Bytes of JSON after which a block is closed early.
const BLOCK_BYTES: usize = 1_000_000;
/// Blocks that are compressed in parallel.
const BATCH: usize = 8;

/// Compressed conversations of some trials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Ids of its trials, in the order of its JSON.
    pub trials: Vec<String>,
    /// The gzip member.
    pub gzip: Vec<u8>,
}

/// Conversations within the budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timelines {
    blocks: Vec<Block>,
    common: Vec<u8>,
    left_out: usize,
    searchable: HashMap<String, Searchable>,
}

impl Timelines {
    /// Blocks, trials that did not pass first.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The gzip member of the texts that several blocks use.
    pub fn common(&self) -> &[u8] {
        &self.common
    }

    /// Number of trials whose conversation is in a block.
    pub fn kept(&self) -> usize {
        self.blocks.iter().map(|block| block.trials.len()).sum()
    }

    /// Search text of a trial; `None` if the table has no room for it.
    pub fn searchable(&self, trial: &str) -> Option<&Searchable> {
        self.searchable.get(trial)
    }

    /// Number of trials whose conversation did not fit.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

/// Remaining room; once there is none for a kind of trial, this is final.
#[derive(Debug, Clone, Default)]
pub struct Room {
    troubled: Arc<Full>,
    passed: Arc<Full>,
}

/// What a kind of trial has no more room for.
#[derive(Debug, Default)]
struct Full {
    conversations: AtomicBool,
    search_texts: AtomicBool,
}

impl Room {
    /// Whether a trial of that verdict would only be counted.
    pub fn is_full(&self, verdict: Verdict) -> bool {
        self.of(verdict).conversations.load(Ordering::Relaxed)
    }

    /// Whether the search text of a trial of that verdict would be dropped.
    pub(crate) fn is_unsearchable(&self, verdict: Verdict) -> bool {
        self.of(verdict).search_texts.load(Ordering::Relaxed)
    }

    fn of(&self, verdict: Verdict) -> &Full {
        if verdict == Verdict::Pass { &self.passed } else { &self.troubled }
    }
}

/// Collects traces one by one, in plan order.
#[derive(Debug)]
pub struct TimelineBuilder {
    budget: usize,
    row: usize,
    room: Room,
    common: CommonTexts,
    troubled: Packer,
    passed: Packer,
    searchable: HashMap<String, Searchable>,
}

impl Default for TimelineBuilder {
    fn default() -> Self {
        Self { row: ROW, ..Self::within(BUDGET) }
    }
}

impl TimelineBuilder {
    /// A builder that stores at most `budget` compressed bytes.
    pub fn within(budget: usize) -> Self {
        let room = Room::default();
        let packer = |full: &Arc<Full>| Packer { full: Arc::clone(full), ..Packer::default() };
        let (troubled, passed) = (packer(&room.troubled), packer(&room.passed));
        Self { budget, row: 0, room, common: CommonTexts::default(), troubled, passed, searchable: HashMap::new() }
    }

    /// Tells trace producers which traces are no longer needed.
    pub fn room(&self) -> Room {
        self.room.clone()
    }

    /// Adds one trial's conversation; `result` is its verdict. Without a trace, the trial is only counted.
    pub fn add(&mut self, trace: Option<&Trace>, beside: Beside<'_>, result: &TrialResult) {
        let packer = if result.verdict == Verdict::Pass { &mut self.passed } else { &mut self.troubled };
        match trace {
            Some(trace) => packer.add(&mut self.common, (trace, beside, result), self.budget),
            None => packer.left_out += 1,
        }
    }

    /// Adds a trial's search text, whether or not its conversation is stored.
    pub fn add_searchable(&mut self, searchable: Searchable, result: &TrialResult) {
        let packer = if result.verdict == Verdict::Pass { &mut self.passed } else { &mut self.troubled };
        if packer.found < MOST {
            packer.found += 1;
            self.searchable.insert(result.id.clone(), searchable);
        } else {
            packer.full.search_texts.store(true, Ordering::Relaxed);
        }
    }

    /// The conversations within the budget.
    pub fn finish(mut self) -> Timelines {
        let mut made = Timelines { searchable: std::mem::take(&mut self.searchable), ..Timelines::default() };
        made.common = gzip(&secrets::clean_packed(self.common.json()), Compression::new(4));
        let trials = [&self.troubled, &self.passed].map(|packer| packer.taken + packer.left_out);
        let rows = trials.iter().sum::<usize>() * self.row;
        let room = self.budget.saturating_sub(rows).max(LEAST.min(self.budget));
        let mut room = room.saturating_sub(made.common.len());
        for packer in [&mut self.troubled, &mut self.passed] {
            packer.close();
            packer.compress();
            made.left_out += packer.left_out;
            let mut full = false;
            for block in packer.done.drain(..) {
                full |= block.gzip.len() > room || made.kept() + block.trials.len() > MOST;
                if full {
                    made.left_out += block.trials.len();
                } else {
                    room -= block.gzip.len();
                    made.blocks.push(block);
                }
            }
        }
        made
    }
}

#[derive(Debug, Default)]
struct Packer {
    open: Encoder,
    closed: Vec<(Vec<String>, Vec<u8>)>,
    done: Vec<Block>,
    bytes: usize,
    taken: usize,
    /// Number of trials with a search text.
    found: usize,
    left_out: usize,
    full: Arc<Full>,
}

impl Packer {
    fn add(
        &mut self,
        common: &mut CommonTexts,
        (trace, beside, result): (&Trace, Beside<'_>, &TrialResult),
        budget: usize,
    ) {
        if self.bytes > budget || self.taken == MOST {
            self.full.conversations.store(true, Ordering::Relaxed);
            self.left_out += 1;
            return;
        }
        self.taken += 1;
        self.open.swap_common(common);
        self.open.add(trace, beside, result);
        self.open.swap_common(common);
        if self.open.trials().len() == TRIALS_A_BLOCK || self.open.len() >= BLOCK_BYTES {
            self.close();
        }
        if self.closed.len() == BATCH {
            self.compress();
        }
    }

    fn close(&mut self) {
        if !self.open.trials().is_empty() {
            self.closed.push(std::mem::take(&mut self.open).finish());
        }
    }

    fn compress(&mut self) {
        let closed = std::mem::take(&mut self.closed);
        // A page of a large run is used for looking things up: a seventh larger, in half the time.
        let level = if self.done.is_empty() { Compression::new(4) } else { Compression::fast() };
        // Text cut or cleaned for the page may contain a secret that its trace does not.
        let block = |(trials, json): (_, Vec<u8>)| Block { trials, gzip: gzip(&secrets::clean_packed(json), level) };
        let blocks: Vec<_> = closed.into_par_iter().map(block).collect();
        self.bytes += blocks.iter().map(|block| block.gzip.len()).sum::<usize>();
        self.done.extend(blocks);
    }
}

fn gzip(json: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(json.len() / 4), level);
    // Writing to a vector cannot fail; an empty member would show as a missing conversation.
    encoder.write_all(json).and_then(|()| encoder.finish()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use std::io::Read as _;

    fn build(copies: usize, budget: usize) -> (sample::Run, Timelines) {
        let run = sample::run(copies);
        let mut builder = TimelineBuilder::within(budget);
        for (trace, result) in run.traces.iter().zip(&run.evaluation.trials.to_vec()) {
            builder.add(Some(trace), Beside::default(), result);
        }
        (run, builder.finish())
    }

    #[test]
    fn blocks_unpack_to_json_that_names_their_trials_in_order() {
        let (_, timelines) = build(40, BUDGET);
        for block in timelines.blocks() {
            let mut json = String::new();
            flate2::read::GzDecoder::new(block.gzip.as_slice()).read_to_string(&mut json).expect("gzip");
            let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            let ids: Vec<_> = value["t"].as_array().expect("trials").iter().map(|trial| trial["i"].clone()).collect();
            assert_eq!(ids, block.trials);
        }
    }

    #[test]
    fn a_key_with_invisible_characters_inside_is_in_no_block() {
        let mut run = sample::run(1);
        secrets::declare([("PACKED_KEY".to_owned(), "only-in-the-page-0457-and-long".to_owned())]);
        let said = "only-in-the\u{200b}-page-0457-and\u{200d}-long, sk-abcdef\u{ad}ghijklmnop0457";
        for event in &mut run.traces[0].events {
            if let crate::trace::What::TurnEnded(ended) = &mut event.what
                && let crate::trace::TurnOutcome::Answered(answer) = &mut ended.outcome
            {
                said.clone_into(&mut answer.text);
            }
        }
        let mut builder = TimelineBuilder::within(BUDGET);
        builder.add(Some(&run.traces[0]), Beside::default(), &run.evaluation.trials.to_vec()[0]);
        let timelines = builder.finish();
        let mut json = String::new();
        let block = timelines.blocks()[0].gzip.as_slice();
        flate2::read::GzDecoder::new(block).read_to_string(&mut json).expect("gzip");
        assert!(json.contains("[redacted:PACKED_KEY], [redacted:openai]") && !json.contains("0457"), "{json}");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_trials_that_failed_come_first() {
        let (run, whole) = build(60, BUDGET);
        assert_eq!((whole.kept(), whole.left_out()), (run.evaluation.trials.len(), 0));
        let troubled: usize = run.evaluation.trials.iter().filter(|trial| trial.verdict != Verdict::Pass).count();
        let bytes: usize = whole.blocks().iter().map(|block| block.gzip.len()).sum::<usize>() + whole.common().len();
        let (_, part) = build(60, bytes - 1);
        assert_eq!(part.kept() + part.left_out(), run.evaluation.trials.len());
        assert!(part.left_out() > 0 && part.kept() >= troubled);
        let first = &part.blocks()[0].trials[0];
        let verdict = run.evaluation.trials.iter().find(|trial| trial.id == *first).map(|trial| trial.verdict);
        assert_ne!(verdict, Some(Verdict::Pass));
    }

    #[test]
    fn without_any_bytes_everything_is_left_out() {
        let (run, none) = build(1, 0);
        assert_eq!((none.kept(), none.left_out()), (0, run.evaluation.trials.len()));
    }
}
