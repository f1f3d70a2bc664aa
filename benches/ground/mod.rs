//! What the benchmarks stand on: a generated project with recordings, in a folder that goes when they end.

#[path = "../scale/generate/mod.rs"]
mod generate;

use ragcheck::internals::plan::Plan;
use ragcheck::internals::trace::Trace;
use ragcheck::internals::trial::{Opened, replay};

/// A project of recorded trials.
pub struct Ground {
    _folder: tempfile::TempDir,
    /// Replays them.
    pub opened: Opened,
    /// Names them.
    pub plan: Plan,
}

impl Ground {
    /// `cases` cases, each recorded once.
    pub fn new(cases: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        generate::write(folder.path(), generate::Size { cases, repeat: 1, brief: false })
            .expect("the project is written");
        let (opened, plan) = generate::load(folder.path()).expect("the project loads");
        generate::record(&opened, &plan, false).expect("every trial is recorded");
        Self { _folder: folder, opened, plan }
    }

    /// The trace of one trial.
    pub fn replay(&self, trial: usize) -> Trace {
        replay(self.opened.trial(&self.plan, &self.plan.trials[trial])).trace
    }
}
