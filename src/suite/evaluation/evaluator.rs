//! Turns traces into verdicts and the files of a run folder; shared by runs, scores and imports.

use super::requirement_states;
use crate::compare::{Collector, Comparison, Summary, TrialFigures};
use crate::gate::{Evaluation, EvaluationError, Evaluator, Examined, Examiner, Unread, Verdict};
use crate::plan::Plan;
use crate::platform::{files, secrets};
use crate::report::{self, Beside, DecidedExit, Room, Searchable, TimelineBuilder, Timelines, View};
use crate::trace::{self, Grades, NamedPassage, Trace};
use rayon::prelude::*;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// One examined trace, with what reports and files need of it.
pub struct ExaminedTrace {
    examined: Result<Examined, EvaluationError>,
    searchable: Searchable,
    /// The trace as a line of `traces.jsonl`, including the newline.
    pub line: Vec<u8>,
}

impl ExaminedTrace {
    /// Examines a trace with the passages that it found, on any thread, and serialises it.
    pub fn of(examiner: &Examiner<'_>, trace: &Trace, passages: &[Arc<NamedPassage>]) -> Self {
        let mut line = Vec::with_capacity(8 * 1024);
        // Writing to memory cannot fail, and a trace has string keys only.
        let _ = trace::write_trace(&mut line, trace);
        Self { line, ..Self::read(examiner, trace, passages, None) }
    }

    /// Examines a trace that is stored already. Its search text is left out if `room` has none for it.
    pub fn read(examiner: &Examiner<'_>, trace: &Trace, passages: &[Arc<NamedPassage>], room: Option<&Room>) -> Self {
        let examined = examiner.examine(trace, passages);
        let mut read = Self { examined, searchable: Searchable::default(), line: Vec::new() };
        if !room.zip(read.verdict()).is_some_and(|(room, verdict)| room.is_unsearchable(verdict)) {
            read.searchable = Searchable::of(trace);
        }
        read
    }

    /// A trial that was examined before; its search text, if its trace is given.
    pub(super) fn restored(examined: Examined, trace: Option<&Trace>) -> Self {
        let searchable = trace.map(Searchable::of).unwrap_or_default();
        Self { examined: Ok(examined), searchable, line: Vec::new() }
    }

    /// Verdict of the trial; `None` if it could not be examined.
    pub fn verdict(&self) -> Option<Verdict> {
        self.examined.as_ref().ok().map(|examined| examined.result().verdict)
    }

    /// Cost of the trial in US dollars, if known.
    pub fn cost(&self) -> Option<f64> {
        self.examined.as_ref().ok()?.result().cost
    }
}

/// Aggregates examined traces in plan order: their verdicts, by [`Evaluator`], and the data of reports.
pub struct RunEvaluator<'p> {
    plan: &'p Arc<Plan>,
    evaluator: Evaluator<'p>,
    timelines: TimelineBuilder,
    collector: Option<Collector<'p>>,
    unread: Unread<'p>,
}

impl<'p> RunEvaluator<'p> {
    /// Starts evaluating a run of `plan`.
    ///
    /// # Errors
    /// If a criterion or expectation of the plan is invalid.
    pub fn begin(plan: &'p Arc<Plan>) -> Result<Self, EvaluationError> {
        Self::with_grades(plan, Grades::default())
    }

    /// Like [`RunEvaluator::begin`], with grades of the answers for the metrics and reports that use them.
    ///
    /// # Errors
    /// See [`RunEvaluator::begin`]; also if a grade belongs to a trial that is not in the plan.
    pub fn with_grades(plan: &'p Arc<Plan>, grades: Grades) -> Result<Self, EvaluationError> {
        let evaluator = Evaluator::with_grades(plan, grades)?;
        let (timelines, unread) = (TimelineBuilder::default(), Unread::new(plan));
        Ok(Self { plan, evaluator, timelines, collector: None, unread })
    }

    /// Also keeps the figures of every case, for a comparison.
    #[must_use]
    pub fn collecting(mut self) -> Self {
        let examiner = self.evaluator.examiner();
        self.collector = Some(Collector::new(self.plan, |written| examiner.metric(written)));
        self
    }

    /// The part that threads share.
    pub fn examiner(&self) -> Arc<Examiner<'p>> {
        self.evaluator.examiner()
    }

    /// The report's remaining room for traces; `None` if every trace is needed again when it is added.
    pub fn room(&self) -> Option<Room> {
        self.collector.is_none().then(|| self.timelines.room())
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
        examined: ExaminedTrace,
    ) -> Result<(), EvaluationError> {
        let ExaminedTrace { examined, searchable, .. } = examined;
        let examined = examined?;
        let examiner = self.evaluator.examiner();
        let beside = Beside { grades: examiner.grades_of(&examined.result().id), passages };
        self.timelines.add(trace, beside, examined.result());
        self.timelines.add_searchable(searchable, examined.result());
        if self.unread.holds(&examined)? {
            self.unread.hold(examined, trace.cloned());
            return Ok(());
        }
        for (earlier, trace) in self.unread.released_by(&examined) {
            self.count(earlier, trace.as_ref())?;
        }
        self.count(examined, trace)
    }

    fn count(&mut self, examined: Examined, trace: Option<&Trace>) -> Result<(), EvaluationError> {
        let examiner = self.evaluator.examiner();
        let collector = self.collector.as_mut().filter(|_| examined.result().verdict != Verdict::Error);
        if let Some((collector, trace)) = collector.zip(trace) {
            let result = examined.result();
            let missed = result.checks.iter().find(|check| !check.passed);
            let seen = TrialFigures {
                passed: (result.verdict != Verdict::NotMeasured).then_some(result.verdict == Verdict::Pass),
                why: missed.map(|check| format!("{}: {}", check.what, check.seen)).unwrap_or_default(),
                cost: result.cost,
                units: examiner.units(&examined).collect(),
                not_offered: examiner.not_offered(&examined).collect(),
            };
            collector.add(trace, &seen);
        }
        self.evaluator.add(examined)
    }

    /// Ends `pass` in a run until decided; returns whether another pass is needed.
    pub fn end_of_pass(&mut self, pass: u32) -> bool {
        self.unread.is_holding() || self.evaluator.end_of_pass(pass)
    }

    /// Computes the verdicts.
    pub fn finish(mut self) -> EvaluatedRun {
        for examined in self.unread.rest() {
            // None was added before.
            let _ = self.evaluator.add(examined);
        }
        let evaluation = self.evaluator.finish();
        let passes = evaluation.stopped.as_ref().map(|stopped| stopped.passes);
        EvaluatedRun {
            plan: Arc::clone(self.plan),
            timelines: self.timelines.finish(),
            cases: self.collector.map(|collector| collector.finish("", passes, &evaluation.part)),
            evaluation,
            comparison: None,
            decided: None,
            pages: report::Pages::default(),
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
    /// Pages beside its report.
    pages: report::Pages,
}

impl EvaluatedRun {
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Input of the reports.
    pub(crate) fn view(&self) -> View<'_> {
        let Self { plan, evaluation, timelines, comparison, decided, pages, .. } = self;
        let (comparison, decided) = (comparison.as_ref(), decided.as_ref());
        View { plan, evaluation, timelines, comparison, decided, pages: *pages }
    }

    /// `index.html` with links to the comparisons in `folder`, including `file`, which is not written yet.
    pub(crate) fn linked(&self, folder: &Path, file: &str) -> io::Result<Vec<u8>> {
        let mut pages = super::pages_beside(folder);
        pages.comparison |= file == trace::COMPARISON_HTML;
        pages.variants |= file == trace::VARIANTS_HTML;
        let mut out = Vec::new();
        report::html(&View { pages, ..self.view() }, &mut out)?;
        Ok(out)
    }

    /// Sets the comparison for reports that show changes.
    pub(crate) fn compare_with(&mut self, comparison: Comparison) {
        self.comparison = Some(comparison);
    }

    /// Sets the exit code, if more than the criteria decided it.
    pub(crate) fn ends_with(&mut self, decided: DecidedExit) {
        self.decided = Some(decided);
    }

    /// Takes the figures of every case, labelled `label`; `None` if they were not kept or were taken before.
    pub(crate) fn summary(&mut self, label: &str) -> Option<Summary> {
        self.cases.take().map(|cases| Summary { label: label.to_owned(), ..cases })
    }

    /// Writes every file of a run folder that is derived from traces, each atomically.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&mut self, folder: &Path) -> io::Result<()> {
        self.pages = super::pages_beside(folder);
        requirement_states::apply(folder, &self.plan.id, &mut self.evaluation)?;
        let view = self.view();
        let kept = [
            trace::RUN,
            trace::TRIALS_CSV,
            trace::CRITERIA_CSV,
            trace::VIOLATIONS_CSV,
            trace::LATENCY_CSV,
            trace::REQUIREMENTS_CSV,
            trace::INDEX_HTML,
        ];
        let formats: Vec<_> = report::formats().filter(|format| kept.contains(&format.file)).collect();
        formats.into_par_iter().try_for_each(|format| {
            let file = folder.join(format.file);
            if format.file == trace::RUN {
                // The largest file is written in parts; the format removes secrets from each.
                return files::write_by(file, |out| (format.write)(&view, out));
            }
            let mut text = Vec::with_capacity(1 << 18);
            (format.write)(&view, &mut text)?;
            files::write(file, secrets::clean_text_bytes(&text))
        })
    }
}
