//! Turns traces into verdicts and the files of a run folder; shared by runs, scores and imports.

use crate::compare::{Collector, Comparison, Seen, Summary};
use crate::gate::{Evaluation, EvaluationError, Evaluator, Examined, Examiner, Verdict};
use crate::plan::Plan;
use crate::platform::files;
use crate::platform::secrets;
use crate::report::{self, Beside, DecidedExit, Room, Searchable, TimelineBuilder, Timelines, View};
use crate::trace::{self, Grades, NamedPassage, Trace};
use rayon::prelude::*;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// One examined trace.
pub struct Prepared {
    examined: Result<Examined, EvaluationError>,
    searchable: Searchable,
    /// The trace as a line of `traces.jsonl`, including the newline.
    pub line: Vec<u8>,
}

impl Prepared {
    /// [`Prepared::verdict_of`], as spelled in reports.
    pub fn verdict(&self) -> Option<&'static str> {
        self.verdict_of().map(Verdict::as_str)
    }

    /// Verdict of the trial; `None` if it could not be examined.
    pub fn verdict_of(&self) -> Option<Verdict> {
        self.examined.as_ref().ok().map(|examined| examined.result().verdict)
    }

    /// Cost of the trial in US dollars, if known.
    pub fn cost(&self) -> Option<f64> {
        self.examined.as_ref().ok()?.result().cost
    }
}

/// Examines traces on any thread.
#[derive(Clone)]
pub struct Preparer<'p> {
    examiner: Arc<Examiner<'p>>,
    room: Room,
    /// Whether every trace is needed again when it is added.
    collects: bool,
}

impl Preparer<'_> {
    /// Examines a trace and serialises it.
    pub fn prepare(&self, trace: &Trace) -> Prepared {
        let mut line = Vec::with_capacity(8 * 1024);
        // Writing to memory cannot fail, and a trace has string keys only.
        let _ = trace::write_trace(&mut line, trace);
        self.prepare_line(trace, line)
    }

    /// Whether the trace need not be passed to [`EvaluationBuilder::add`].
    pub fn is_done_with(&self, prepared: &Prepared) -> bool {
        !self.collects && prepared.verdict_of().is_some_and(|verdict| self.room.is_full(verdict))
    }

    /// Examines a trace that is already serialised.
    pub fn prepare_line(&self, trace: &Trace, line: Vec<u8>) -> Prepared {
        Prepared { examined: self.examiner.examine(trace), searchable: Searchable::of(trace), line }
    }
}

/// Aggregates examined traces in plan order.
pub struct EvaluationBuilder<'p> {
    plan: &'p Arc<Plan>,
    evaluator: Evaluator<'p>,
    timelines: TimelineBuilder,
    collector: Option<Collector<'p>>,
}

impl<'p> EvaluationBuilder<'p> {
    /// Starts evaluating a run of `plan`.
    ///
    /// # Errors
    /// If a criterion or expectation of the plan is invalid.
    pub fn begin(plan: &'p Arc<Plan>) -> Result<Self, EvaluationError> {
        Self::with_grades(plan, Grades::default())
    }

    /// Like [`EvaluationBuilder::begin`], with grades of the answers for the metrics and reports that use them.
    ///
    /// # Errors
    /// See [`EvaluationBuilder::begin`]; also if a grade belongs to a trial that is not in the plan.
    pub fn with_grades(plan: &'p Arc<Plan>, grades: Grades) -> Result<Self, EvaluationError> {
        let evaluator = Evaluator::with_grades(plan, grades)?;
        Ok(Self { plan, evaluator, timelines: TimelineBuilder::default(), collector: None })
    }

    /// Also keeps the figures of every case, for a comparison.
    #[must_use]
    pub fn collecting(mut self) -> Self {
        let examiner = self.evaluator.examiner();
        self.collector = Some(Collector::new(self.plan, |written| examiner.metric(written)));
        self
    }

    /// Creates the part that workers use.
    pub fn preparer(&self) -> Preparer<'p> {
        Preparer {
            examiner: self.evaluator.examiner(),
            room: self.timelines.room(),
            collects: self.collector.is_some(),
        }
    }

    /// Adds one trial; must be called in plan order. `trace` may be omitted if nothing needs it any more;
    /// `passages` are the full passages that its searches found, for readers of the report.
    ///
    /// # Errors
    /// If the trial is not in the plan, or was added before.
    pub fn add(
        &mut self,
        trace: Option<&Trace>,
        passages: &[Arc<NamedPassage>],
        prepared: Prepared,
    ) -> Result<(), EvaluationError> {
        let examined = prepared.examined?;
        let examiner = self.evaluator.examiner();
        let beside = Beside { grades: examiner.grades_of(&examined.result().id), passages };
        self.timelines.add(trace, beside, examined.result());
        self.timelines.add_searchable(prepared.searchable, examined.result());
        let collector = self.collector.as_mut().filter(|_| examined.result().verdict != Verdict::Error);
        if let Some((collector, trace)) = collector.zip(trace) {
            let result = examined.result();
            let missed = result.checks.iter().find(|check| !check.passed);
            let seen = Seen {
                passed: result.verdict == Verdict::Pass,
                why: missed.map(|check| format!("{}: {}", check.what, check.seen)).unwrap_or_default(),
                cost: result.cost,
                units: examiner.units(&examined).collect(),
            };
            collector.add(trace, &seen);
        }
        self.evaluator.add(examined)
    }

    /// Ends `pass` in a run until decided; returns whether another pass is needed.
    pub fn end_of_pass(&mut self, pass: u32) -> bool {
        self.evaluator.end_of_pass(pass)
    }

    /// Computes the verdicts.
    pub fn finish(self) -> EvaluatedRun {
        let evaluation = self.evaluator.finish();
        let passes = evaluation.stopped.as_ref().map(|stopped| stopped.passes);
        EvaluatedRun {
            plan: Arc::clone(self.plan),
            timelines: self.timelines.finish(),
            cases: self.collector.map(|collector| collector.finish("", passes, &evaluation.part)),
            evaluation,
            comparison: None,
            decided: None,
            compared: false,
            variants_compared: false,
        }
    }
}

/// A run and its verdicts.
pub struct EvaluatedRun {
    plan: Arc<Plan>,
    /// The verdicts.
    pub evaluation: Evaluation,
    timelines: Timelines,
    cases: Option<Summary>,
    comparison: Option<Comparison>,
    decided: Option<DecidedExit>,
    /// Whether there is a comparison beside its report.
    compared: bool,
    /// Whether there is a comparison of its variants.
    variants_compared: bool,
}

impl EvaluatedRun {
    /// Plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Input of the reports.
    pub fn view(&self) -> View<'_> {
        let Self { plan, evaluation, timelines, comparison, decided, compared, variants_compared, .. } = self;
        let (comparison, decided) = (comparison.as_ref(), decided.as_ref());
        let (compared, variants_compared) = (*compared, *variants_compared);
        View { plan, evaluation, timelines, comparison, decided, compared, variants_compared }
    }

    /// `index.html` with links to the comparisons in `folder`, including `file`, which is not written yet.
    ///
    /// # Errors
    /// If it cannot be rendered.
    pub fn linked(&self, folder: &Path, file: &str) -> io::Result<Vec<u8>> {
        let there = |name: &str| name == file || folder.join(name).exists();
        let (compared, variants_compared) = (there(trace::COMPARISON_HTML), there(trace::VARIANTS_HTML));
        let mut out = Vec::new();
        report::Format::write(&report::Html, &View { compared, variants_compared, ..self.view() }, &mut out)?;
        Ok(out)
    }

    /// Sets the comparison for reports that show changes.
    pub fn compare_with(&mut self, comparison: Comparison) {
        self.comparison = Some(comparison);
    }

    /// Sets the exit code, if more than the criteria decided it.
    pub fn ends_with(&mut self, decided: DecidedExit) {
        self.decided = Some(decided);
    }

    /// Takes the figures of every case, labelled `label`; `None` if they were not kept or were taken before.
    pub fn summary(&mut self, label: &str) -> Option<Summary> {
        self.cases.take().map(|cases| Summary { label: label.to_owned(), ..cases })
    }

    /// Writes every file of a run folder that is derived from traces, each atomically.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&mut self, folder: &Path) -> io::Result<()> {
        self.compared = folder.join(trace::COMPARISON_HTML).exists();
        self.variants_compared = folder.join(trace::VARIANTS_HTML).exists();
        let view = self.view();
        let kept = [
            trace::RUN,
            trace::TRIALS_CSV,
            trace::CRITERIA_CSV,
            trace::VIOLATIONS_CSV,
            trace::LATENCY_CSV,
            trace::INDEX_HTML,
        ];
        let formats: Vec<_> = report::formats().filter(|format| kept.contains(&format.file())).collect();
        formats.into_par_iter().try_for_each(|format| {
            let mut text = Vec::with_capacity(1 << 18);
            format.write(&view, &mut text)?;
            let text = if format.file() == trace::RUN {
                secrets::clean_bytes(&text)
            } else {
                secrets::clean_text_bytes(&text)
            };
            files::write(folder.join(format.file()), text)
        })
    }
}
