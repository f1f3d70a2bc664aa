//! What trials were drawn to before this run, and which of their draws counts.
//!
//! A judged trial keeps its first draw when it is run again while nothing under test has changed: to run what failed until it
//! passes would make a verdict of chance. Where every trial of a scenario is drawn in one run, the new draws count, and say
//! what came before. Recordings keep their first draw by themselves, see [`TrialRunner::record`](crate::trial::TrialRunner::record).

use super::kept::Kept;
use crate::trace::{EXTERNAL, Trace, TrialEnd, TrialErrorKind, What};
use crate::trial::Finished;
use std::collections::BTreeMap;

/// What stands for the verdict of a draw that was not judged.
pub(crate) const UNJUDGED: &str = "unknown";

/// The draws of trials in earlier live runs.
#[derive(Debug, Default)]
pub(crate) struct EarlierDraws {
    runs: Vec<Kept>,
    trials: BTreeMap<String, Draw>,
    /// How often trials ended in ERROR and are run again now.
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
    /// Adds the judged trials of a run: by id, the verdict of the draw that counted in it, and whether it goes on counting.
    pub(crate) fn add_run(&mut self, run: Kept, judged: impl IntoIterator<Item = (String, String, bool)>) {
        let number = self.runs.len();
        let draws = judged.into_iter().filter(|(trial, ..)| run.has(trial));
        let draws = draws.map(|(trial, verdict, counts)| (trial, Draw { run: number, verdict, counts }));
        for (trial, draw) in draws.collect::<Vec<_>>() {
            self.trials.entry(trial).or_insert(draw);
        }
        self.runs.push(run);
    }

    /// Adds a trial that ended in ERROR so many times.
    pub(crate) fn add_errors(&mut self, trial: String, times: u32) {
        self.errors.insert(trial, times);
    }

    /// What a trial comes to that has just been drawn under the plan of this id.
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
    /// What a trial of this first draw comes to when it was run again: the first draw, beside what the other came to. One that
    /// was stopped is no draw: the trial is still to be run.
    #[must_use]
    pub fn run_again(self, again: Self) -> Self {
        if matches!(&again.trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::Stopped) {
            return again;
        }
        let Self { mut trace, passages, .. } = self;
        trace.evidence.run_again.push(UNJUDGED.to_owned());
        Self { trace, unused: again.unused, passages, again: Some(Box::new(again.trace)) }
    }
}

/// Whether something under test changed between two draws of a trial that its plan does not say: what was searched, the tools, the
/// model, the system prompt.
fn changed(first: &Trace, now: &Trace) -> bool {
    now.end == TrialEnd::Completed
        && (first.evidence.knowledge != now.evidence.knowledge
            || first.evidence.model != now.evidence.model
            || first.offered != now.offered
            || first.lane.flow != EXTERNAL && system(first) != system(now))
}

/// The digest of the system prompt that the model was first shown.
fn system(trace: &Trace) -> Option<&str> {
    let mut called = trace.events.iter().filter_map(|event| match &event.what {
        What::ModelCalled(called) => Some(called),
        _ => None,
    });
    called.next()?.shown.first().map(String::as_str).filter(|message| message.starts_with("system:"))
}
