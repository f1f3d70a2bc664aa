//! Draws of trials in earlier runs, and which draw of a trial counts.
//!
//! A judged trial keeps its first draw if it is run again while nothing under test has changed: rerunning failures
//! until they pass would make the verdict a matter of chance. If every trial of a scenario is drawn in one run, the new
//! draws count, and the earlier verdicts are reported. Recordings keep their first draw independently, see
//! `trial::verified`.

use super::kept::KeptTraces;
use crate::trace::{EXTERNAL, Trace, TrialEnd, TrialErrorKind, What};
use crate::trial::Finished;
use std::collections::BTreeMap;

/// Verdict shown for a draw that was not judged.
pub(crate) const UNJUDGED: &str = "unknown";

/// Draws of trials in earlier live runs.
#[derive(Debug, Default)]
pub(crate) struct EarlierDraws {
    runs: Vec<KeptTraces>,
    trials: BTreeMap<String, Draw>,
    /// Number of times each trial ended in ERROR and is run again now.
    errors: BTreeMap<String, u32>,
}

/// The draw of one trial that counted in an earlier run.
#[derive(Debug)]
struct Draw {
    run: usize,
    verdict: String,
    counts: bool,
}

impl EarlierDraws {
    /// Adds the judged trials of a run: by id, the verdict of the draw that counted, and whether it still counts.
    pub(crate) fn add_run(&mut self, run: KeptTraces, judged: impl IntoIterator<Item = (String, String, bool)>) {
        let number = self.runs.len();
        let draws = judged.into_iter().filter(|(trial, ..)| run.has(trial));
        let draws = draws.map(|(trial, verdict, counts)| (trial, Draw { run: number, verdict, counts }));
        for (trial, draw) in draws.collect::<Vec<_>>() {
            self.trials.entry(trial).or_insert(draw);
        }
        self.runs.push(run);
    }

    /// Sets how often a trial was ERROR.
    pub(crate) fn set_errors(&mut self, trial: String, times: u32) {
        self.errors.insert(trial, times);
    }

    /// Decides which draw of a trial counts, just after it was drawn under the plan of this id.
    pub(crate) fn settle(&self, plan: &str, mut now: Finished) -> Finished {
        let trial = now.trace.trial.clone();
        now.trace.evidence.replaced_errors += self.errors.get(&trial).copied().unwrap_or(0);
        let Some(draw) = self.trials.get(&trial) else { return now };
        let Some(mut first) = self.runs.get(draw.run).and_then(|run| run.finished(&trial)) else { return now };
        if changed(&first.trace, &now.trace) {
            return now;
        }
        if draw.counts {
            plan.clone_into(&mut first.trace.plan);
            return first.run_again(now);
        }
        let evidence = first.trace.evidence;
        let takes = &mut now.trace.evidence.earlier_takes;
        takes.extend(evidence.earlier_takes);
        takes.push(draw.verdict.clone());
        takes.extend(evidence.run_again);
        now
    }
}

impl Finished {
    /// Combines a first draw with a later one: the first draw counts, and the later one is reported beside it. A
    /// cancelled trial is not a draw and has to be run again.
    #[must_use]
    pub fn run_again(self, again: Self) -> Self {
        if matches!(&again.trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::Stopped) {
            return again;
        }
        let Self { mut trace, passages, .. } = self;
        trace.evidence.run_again.push(UNJUDGED.to_owned());
        Self { trace, unused: again.unused, passages, again: Some(Box::new(again.trace)), printed: again.printed }
    }
}

/// Whether something under test changed between two draws that the plan does not record: the knowledge, the tools, the
/// model or the system prompt.
fn changed(first: &Trace, now: &Trace) -> bool {
    now.end == TrialEnd::Completed
        && (first.evidence.knowledge != now.evidence.knowledge
            || first.evidence.model != now.evidence.model
            || first.offered != now.offered
            || first.lane.flow != EXTERNAL && system(first) != system(now))
}

/// Digest of the first system prompt sent to the model.
fn system(trace: &Trace) -> Option<&str> {
    let mut called = trace.events.iter().filter_map(|event| match &event.what {
        What::ModelCalled(called) => Some(called),
        _ => None,
    });
    called.next()?.shown.first().map(String::as_str).filter(|message| message.starts_with("system:"))
}
