//! From traces to verdicts and the files of a run folder: the one way that runs, scores and imports share.

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

/// What a worker makes of one trace.
pub struct Prepared {
    examined: Result<Examined, EvaluationError>,
    searchable: Searchable,
    /// The trace as a line of `traces.jsonl`, with its newline.
    pub line: Vec<u8>,
}

impl Prepared {
    /// [`Prepared::verdict_of`] as reports spell it.
    pub fn verdict(&self) -> Option<&'static str> {
        self.verdict_of().map(Verdict::as_str)
    }

    /// The trial's verdict; `None` when it could not be examined.
    pub fn verdict_of(&self) -> Option<Verdict> {
        self.examined.as_ref().ok().map(|examined| examined.result().verdict)
    }

    /// What the trial cost in US dollars, where that is known.
    pub fn cost(&self) -> Option<f64> {
        self.examined.as_ref().ok()?.result().cost
    }
}

/// Examines traces on any thread.
#[derive(Clone)]
pub struct Preparer<'p> {
    examiner: Arc<Examiner<'p>>,
    room: Room,
    /// Whether every trace is looked at again when it is added.
    collects: bool,
}

impl Preparer<'_> {
    /// Examines a trace and spells its line.
    pub fn prepare(&self, trace: &Trace) -> Prepared {
        let mut line = Vec::with_capacity(8 * 1024);
        // Writing into memory cannot fail, and a trace has string keys only.
        let _ = trace::write_trace(&mut line, trace);
        self.prepare_line(trace, line)
    }

    /// Whether the trace is of no further use, and need not be handed to [`EvaluationBuilder::add`].
    pub fn is_done_with(&self, prepared: &Prepared) -> bool {
        !self.collects && prepared.verdict_of().is_some_and(|verdict| self.room.is_full(verdict))
    }

    /// Examines a trace whose line is known.
    pub fn prepare_line(&self, trace: &Trace, line: Vec<u8>) -> Prepared {
        Prepared { examined: self.examiner.examine(trace), searchable: Searchable::of(trace), line }
    }
}

/// Adds up examined traces in plan order.
pub struct EvaluationBuilder<'p> {
    plan: &'p Arc<Plan>,
    evaluator: Evaluator<'p>,
    timelines: TimelineBuilder,
    collector: Option<Collector<'p>>,
}

impl<'p> EvaluationBuilder<'p> {
    /// Begins to evaluate a run of `plan`.
    ///
    /// # Errors
    /// When a criterion or expectation of the plan cannot be understood.
    pub fn begin(plan: &'p Arc<Plan>) -> Result<Self, EvaluationError> {
        Self::with_grades(plan, Grades::default())
    }

    /// The same with grades of the answers, for metrics and reports that read them.
    ///
    /// # Errors
    /// As [`EvaluationBuilder::begin`]; and when there is a grade of a trial that the plan does not have.
    pub fn with_grades(plan: &'p Arc<Plan>, grades: Grades) -> Result<Self, EvaluationError> {
        let evaluator = Evaluator::with_grades(plan, grades)?;
        Ok(Self { plan, evaluator, timelines: TimelineBuilder::default(), collector: None })
    }

    /// Keeps the figures of every case too, for a comparison.
    #[must_use]
    pub fn collecting(mut self) -> Self {
        let examiner = self.evaluator.examiner();
        self.collector = Some(Collector::new(self.plan, |written| examiner.metric(written)));
        self
    }

    /// What workers need.
    pub fn preparer(&self) -> Preparer<'p> {
        Preparer {
            examiner: self.evaluator.examiner(),
            room: self.timelines.room(),
            collects: self.collector.is_some(),
        }
    }

    /// Adds one trial; call it in plan order. `trace` may be left out as [`Preparer::is_done_with`] says; `passages` are
    /// what its searches found, whole, for those who read the report.
    ///
    /// # Errors
    /// When the trial is not in the plan, or was added before.
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

    /// In a run until decided: `pass` is complete. Whether another one is needed.
    pub fn end_of_pass(&mut self, pass: u32) -> bool {
        self.evaluator.end_of_pass(pass)
    }

    /// The verdicts.
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

/// A run with its verdicts.
pub struct EvaluatedRun {
    plan: Arc<Plan>,
    /// The verdicts.
    pub evaluation: Evaluation,
    timelines: Timelines,
    cases: Option<Summary>,
    comparison: Option<Comparison>,
    decided: Option<DecidedExit>,
    /// Whether a comparison lies beside its report.
    compared: bool,
    /// Whether a comparison of its variants does.
    variants_compared: bool,
}

impl EvaluatedRun {
    /// The plan that it was evaluated by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What reports are made from.
    pub fn view(&self) -> View<'_> {
        let Self { plan, evaluation, timelines, comparison, decided, compared, variants_compared, .. } = self;
        let (comparison, decided) = (comparison.as_ref(), decided.as_ref());
        let (compared, variants_compared) = (*compared, *variants_compared);
        View { plan, evaluation, timelines, comparison, decided, compared, variants_compared }
    }

    /// `index.html` with links to the comparisons in `folder`, `file` among them, which is about to be written.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn linked(&self, folder: &Path, file: &str) -> io::Result<Vec<u8>> {
        let there = |name: &str| name == file || folder.join(name).exists();
        let (compared, variants_compared) = (there(trace::COMPARISON_HTML), there(trace::VARIANTS_HTML));
        let mut out = Vec::new();
        report::Format::write(&report::Html, &View { compared, variants_compared, ..self.view() }, &mut out)?;
        Ok(out)
    }

    /// Takes what it was compared with, for reports that tell what changed.
    pub fn compare_with(&mut self, comparison: Comparison) {
        self.comparison = Some(comparison);
    }

    /// Takes the exit code of the run, where more than its criteria decided it.
    pub fn ends_with(&mut self, decided: DecidedExit) {
        self.decided = Some(decided);
    }

    /// The figures of every case under the name `label`, once; `None` unless they were kept, and afterwards.
    pub fn summary(&mut self, label: &str) -> Option<Summary> {
        self.cases.take().map(|cases| Summary { label: label.to_owned(), ..cases })
    }

    /// Writes every file that a run folder keeps of its traces, each whole or not at all.
    ///
    /// # Errors
    /// When a file cannot be written.
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
