//! Evaluates runs: verdicts from live traces and from run folders, and estimates before a run.
//!
//! | entry point | does |
//! |---|---|
//! | [`RunEvaluator`] | takes [`ExaminedTrace`]s as they come and gives an [`EvaluatedRun`], which writes its files |
//! | [`score`](fn@score) | the same of a run folder, from `plan.json`, `traces.jsonl` and `grades.jsonl` alone |
//! | [`examine_slice`], [`score_slices`] | the same by several processes, each of which examines a part of the traces |
//! | [`runs`](fn@runs), [`write_runs_page`] | the runs of a folder of reports, as a list and as its `index.html`, with `history.html` beside it |
//! | [`beside_history`] | the reports that the page of a history can lead to |
//! | [`estimate`](fn@estimate) | calls, money and the smallest visible difference of a live run, from recordings |
//! | [`prospects`] | what each required gate can show with the conversations planned |
//! | [`passes`], [`recorded_passes`], [`Designs`] | runs until decided: how many passes there may be, and where recordings say so |
//!
//! Nothing here prints, and nothing here knows how a trace was produced.

mod deciding;
mod estimate;
mod evaluator;
mod history_page;
mod prospect;
pub(in crate::suite) mod requirement_states;
mod runs;
mod score;
mod slices;
mod until_decided;
mod windows;

pub(crate) use estimate::{Estimate, Money, Requests, estimate, turns};
pub use evaluator::{EvaluatedRun, ExaminedTrace, RunEvaluator};
pub(crate) use history_page::{HISTORY_HTML, write_history_page};
pub(crate) use prospect::{Prospect, can_count, prospects};
pub(crate) use runs::{beside_history, pages_beside, renew_runs_page, runs, write_page_of, write_runs_page};
pub use score::score;
pub(crate) use score::{ScoreError, read_later_draws, read_plan, read_traces, read_whole_plan};
pub(crate) use slices::{MOST_SLICES, Slice, SlicesError, examine_slice, remove_slices, score_slices};
pub(crate) use until_decided::{Designs, RecordedPasses, passes, recorded_passes};
