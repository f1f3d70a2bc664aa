//! `ragcheck compare`: compares two runs, a run and a saved baseline, or the variants of one run. `ragcheck run
//! --baseline` uses the same comparison.

use super::arguments::{Compare, Comparing, FailOn, Printed};
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs;
use super::select::{newest_run, reports_folder};
use super::show::conversation;
use crate::compare::{Comparison, LIVE_REPETITIONS, Summary, Variants, compare, compare_pair, compare_variants};
use crate::plan::Plan;
use crate::platform::bounds::Bound;
use crate::platform::{files, secrets};
use crate::report::comparison::{self, Shown};
use crate::report::variants;
use crate::stats::{ALPHA, power::fewest_cases};
use crate::suite::evaluation;
use crate::trace::text::{count, plural};
use crate::trace::{self, Arm};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of flips whose conversations the page shows.
const SHOWN: usize = 20;

/// What `compare` prints: two sides, the variants of one run, or where a side was saved.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "it names the three for the schema, and is never made")]
pub(super) enum Compared {
    /// Two sides.
    Sides(Comparison),
    /// The variants of a run.
    Variants(Variants),
    /// A side that was saved and compared with nothing.
    Saved(Saved),
}

/// A side that was saved as a baseline.
#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    /// The file.
    saved: String,
    /// Name of the run.
    label: String,
    /// Number of its cases.
    cases: usize,
}

/// One side of a comparison: its figures, and its conversations if it is a run folder.
pub(super) struct Side {
    /// The figures.
    pub summary: Summary,
    folder: Option<PathBuf>,
    /// For one variant of a run: the whole run, and the variant's name.
    variant_of: Option<(Summary, String)>,
    /// The side's report, with a link to the comparison page that will be written beside it.
    linked: Option<Vec<u8>>,
}

impl Side {
    /// The run just finished; `linked` is its report with a link to the comparison.
    pub(super) fn of_run(summary: Summary, folder: &Path, linked: Vec<u8>) -> Self {
        Self { summary, folder: Some(folder.to_owned()), variant_of: None, linked: Some(linked) }
    }

    /// Reads a run folder, `RUN@variant` or a baseline file; its report links to `page`, which will be written beside
    /// it.
    ///
    /// # Errors
    /// If there is no such run or file, or it cannot be read.
    pub(super) fn read(named: &str, page: Option<&str>) -> Result<Self, Problem> {
        if let Some(found) = Self::of_path(named, page)? {
            return Ok(found);
        }
        if let Some((name, variant)) = named.rsplit_once('@')
            && let Some(found) = Self::of_path(name, page)?
        {
            let variant_of = Some((found.summary.clone(), variant.to_owned()));
            return Ok(Self { summary: found.summary.of_variant(variant)?, variant_of, ..found });
        }
        let path = PathBuf::from(named.rsplit_once('@').map_or(named, |(run, _)| run));
        let below = if path.components().count() > 1 { path } else { reports_folder().join(path) };
        runs::newest_is_there(&below)?;
        Err(Problem::Words(format!(
            "`{named}` is neither a run folder, nor RUN@variant, nor a baseline file; runs are below {}",
            reports_folder().display()
        )))
    }

    /// Reads a side at that path, or below the reports folder; `None` if nothing is there.
    fn of_path(name: &str, page: Option<&str>) -> Result<Option<Self>, Problem> {
        let given = PathBuf::from(name);
        let path = if given.exists() { given } else { reports_folder().join(name) };
        if path.is_dir() {
            return Self::of_folder(&path, page).map(Some);
        }
        if !path.is_file() {
            return Ok(None);
        }
        let text =
            files::read_text_within(&path, Bound::BaselineSize).map_err(|why| format!("{}: {why}", path.display()))?;
        let mut summary = Summary::parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        summary.doubt = match trace::sealed(&text) {
            trace::Seal::Whole => String::new(),
            trace::Seal::Edited => format!("{} was EDITED BY HAND after it was saved", path.display()),
            trace::Seal::None => {
                format!("{} has no digest: an older ragcheck saved it, or it was EDITED BY HAND", path.display())
            }
        };
        if !summary.doubt.is_empty() {
            output::remark(&format!("note: {}", summary.doubt));
        }
        Ok(Some(Self { summary, folder: None, variant_of: None, linked: None }))
    }

    fn of_folder(path: &Path, page: Option<&str>) -> Result<Self, Problem> {
        // `latest` may point elsewhere by the time a conversation is looked up.
        let target = std::fs::read_link(path).ok().filter(|target| target.is_relative());
        let folder = target.map_or_else(|| path.to_owned(), |target| path.with_file_name(target));
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let label = whole.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
        let mut evaluated = evaluation::score(&folder, true)?;
        let summary = evaluated.summary(&label).ok_or_else(|| format!("{} has no figures", folder.display()))?;
        let linked = page.map(|page| evaluated.linked(&folder, page)).transpose().map_err(|why| why.to_string())?;
        Ok(Self { summary, folder: Some(folder), variant_of: None, linked })
    }

    /// What `make` makes of the traces of some trials, by trial.
    fn of_traces<'t, T: Default>(
        &self,
        wanted: impl Iterator<Item = &'t String>,
        make: impl Fn(&trace::Trace) -> T,
    ) -> Result<BTreeMap<String, T>, Problem> {
        let mut found: BTreeMap<String, T> = wanted.map(|trial| (trial.clone(), T::default())).collect();
        let Some(folder) = self.folder.as_ref().filter(|_| !found.is_empty()) else { return Ok(BTreeMap::new()) };
        let mut missing = found.len();
        for trace in evaluation::read_traces(folder)? {
            let trace = trace?;
            if let Some(made) = found.get_mut(&trace.trial) {
                *made = make(&trace);
                missing -= 1;
            }
            if missing == 0 {
                break;
            }
        }
        Ok(found)
    }
}

/// Runs `ragcheck compare`.
///
/// # Errors
/// If a side cannot be read, or the two cannot be compared.
pub(super) fn run(given: &Compare) -> Result<Exit, Problem> {
    let (older, newer) = sides(given)?;
    if newer.is_none() && (given.save.is_none() || !given.variants.is_empty()) {
        return each_pair(given, &older);
    }
    let a = Side::read(&older, None)?;
    let b = newer.as_deref().map(|named| Side::read(named, Some(trace::COMPARISON_HTML))).transpose()?;
    for side in std::iter::once(&a).chain(&b) {
        as_saved(&side.summary, &given.comparing)?;
    }
    let saved = given.save.as_ref().map(|file| save(&b.as_ref().unwrap_or(&a).summary, file)).transpose()?;
    if let Some(b) = b {
        return Ok(conclude(&a, &b, &given.comparing, given.format, true)?.0);
    }
    output::data(given.format, &saved, |_| String::new())?;
    Ok(Exit::Passed)
}

/// Compares the variants of a run in pairs, writes the comparisons into its folder, and prints them.
fn each_pair(given: &Compare, named: &str) -> Result<Exit, Problem> {
    if given.comparing.fail_on.is_some() {
        return Err(Problem::Words(
            "`--fail-on` asks whether a newer side is worse, and of variants none is the newer one: name both sides, \
             `ragcheck compare RUN@one RUN@other --fail-on …`"
                .into(),
        ));
    }
    let side = Side::read(named, Some(trace::VARIANTS_HTML))?;
    let found = compare_variants(&side.summary, &given.variants, given.comparing.margin)?;
    if let Some(file) = &given.save {
        save(&side.summary, file)?;
    }
    if let Some(folder) = &side.folder {
        let trials = found.cases.iter().flat_map(|case| &case.variants).map(|one| &one.trial);
        let texts = side.of_traces(trials, comparison::exchanges)?;
        let files = variants::files(&found, &texts, evaluation::pages_beside(folder))
            .map_err(|why| format!("the comparison cannot be made: {why}"))?;
        write(files, folder, side.linked.as_deref())?;
    }
    output::data(given.format, &found, |found| {
        let page =
            side.folder.as_ref().map(|folder| format!("variants: {}\n", folder.join(trace::VARIANTS_HTML).display()));
        variants::terminal(found, output::width(), output::coloured()) + &page.unwrap_or_default()
    })?;
    Ok(Exit::Passed)
}

/// The two sides to compare; the newer one is `None` if a side is only saved.
fn sides(given: &Compare) -> Result<(String, Option<String>), Problem> {
    let named = given.a.clone().unwrap_or_default();
    if !given.previous {
        return Ok((named, given.b.clone()));
    }
    let folder = match named.as_str() {
        "" => newest_run(None),
        name if Path::new(name).exists() => PathBuf::from(name),
        name => reports_folder().join(name),
    };
    runs::newest_is_there(&folder)?;
    let previous = runs::previous(&folder)?;
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok((shown(&previous), Some(shown(&folder))))
}

fn save(summary: &Summary, file: &Path) -> Result<Saved, Problem> {
    let text = summary.to_text().map_err(|why| format!("{} cannot be saved: {why}", summary.label))?;
    files::write(file, secrets::clean(&text).as_bytes()).map_err(|why| Problem::unwritten(file, &why))?;
    let saved = Saved { saved: file.display().to_string(), label: summary.label.clone(), cases: summary.cases.len() };
    output::remark(&format!("saved {}: {} with {} cases, to be committed", saved.saved, saved.label, saved.cases));
    Ok(saved)
}

/// Compares, writes the comparison into B's folder, and prints it; `json` says whether JSON may go to stdout. Returns
/// the comparison for further reports.
///
/// # Errors
/// If the two cannot be compared, or the files cannot be written.
pub(super) fn conclude(
    a: &Side,
    b: &Side,
    comparing: &Comparing,
    format: Printed,
    json: bool,
) -> Result<(Exit, Comparison), Problem> {
    let found = match (&a.variant_of, &b.variant_of) {
        // Two variants of one run are a pair of `compare RUN`, and are decided in the same way.
        (Some((run, one)), Some((other, two))) if run == other && one != two => {
            compare_pair(run, one, two, comparing.margin)
                .or_else(|_| compare(&a.summary, &b.summary, comparing.margin))?
        }
        _ => compare(&a.summary, &b.summary, comparing.margin)?,
    };
    let flips = || found.flips.iter().chain(&found.changes).take(SHOWN);
    let (ours, theirs) = (
        a.of_traces(flips().filter_map(|flip| flip.trial_a.as_ref()), conversation)?,
        b.of_traces(flips().filter_map(|flip| flip.trial_b.as_ref()), conversation)?,
    );
    let shown = Shown {
        comparison: &found,
        folders: (a.folder.as_deref(), b.folder.as_deref()),
        conversations: (&ours, &theirs),
        pages: b.folder.as_deref().map(evaluation::pages_beside).unwrap_or_default(),
    };
    if let Some(folder) = &b.folder {
        let files = comparison::files(&shown).map_err(|why| format!("the comparison cannot be made: {why}"))?;
        write(files, folder, b.linked.as_deref())?;
    }
    if format == Printed::Json && !json {
        output::remark(&format!("compared with {}: {}", found.a.label, found.conclusion));
    } else {
        output::data(format, &found, |_| {
            let page = b
                .folder
                .as_ref()
                .map(|folder| format!("comparison: {}\n", folder.join(trace::COMPARISON_HTML).display()));
            comparison::terminal(&shown, output::width(), output::coloured()) + &page.unwrap_or_default()
        })?;
    }
    let exit = exit(&found, comparing);
    if let Some(decided) = decided(&found, comparing, exit) {
        output::remark(&format!("{decided} (exit code {})", exit.code()));
    }
    Ok((exit, found))
}

/// Result of the `--fail-on` condition.
pub(super) fn decided(found: &Comparison, comparing: &Comparing, exit: Exit) -> Option<String> {
    let fewer = found.changes.iter().filter(|one| one.worse).count();
    let fewer = if fewer > 0 { format!("; {} less often, which is no flip", pass(fewer)) } else { String::new() };
    Some(match (&comparing.fail_on, exit) {
        (Some(FailOn::Flip), Exit::Failed) => {
            "--fail-on flip: a case that passed on the older side fails now, in every repetition".to_owned()
        }
        (Some(FailOn::Flip), Exit::Passed) => {
            format!("--fail-on flip: no case that passed on the older side fails now{fewer}{}", dropped(found.dropped))
        }
        (Some(FailOn::Flip), Exit::Usage) => format!("--fail-on flip: {}", found.too_few_repetitions()?),
        (Some(FailOn::Regression), Exit::Usage) => format!("--fail-on regression: {}", found.too_few_cases()?),
        (Some(FailOn::Regression), Exit::Failed) => {
            "--fail-on regression: a required criterion is worse beyond the margin".to_owned()
        }
        (Some(FailOn::Regression), Exit::Passed) if found.dropped > 0 => {
            format!("--fail-on regression: no required criterion is worse beyond the margin{}", dropped(found.dropped))
        }
        (Some(_), Exit::Incomplete) => "--fail-on: trials could not be run, or nothing could be compared".to_owned(),
        _ => return None,
    })
}

/// What the condition says nothing about: a failing case is as easily dropped as mended.
fn dropped(cases: u64) -> String {
    if cases == 0 {
        return String::new();
    }
    let cases = count(cases, "case of the older side is", "cases of the older side are");
    format!("; {cases} no longer there, so not compared")
}

fn pass(cases: usize) -> String {
    if cases == 1 { "1 case passes".to_owned() } else { format!("{cases} cases pass") }
}

/// Refuses a baseline file that may not be as it was saved, if it alone is to decide the exit code.
///
/// # Errors
/// Says how to make it anew.
fn as_saved(base: &Summary, comparing: &Comparing) -> Result<(), Problem> {
    if comparing.fail_on.is_none() || base.doubt.is_empty() {
        return Ok(());
    }
    Err(Problem::Words(format!(
        "--fail-on: {}, and it would decide the exit code: save it again with `ragcheck compare RUN --save FILE`",
        base.doubt
    )))
}

/// Refuses a comparison that cannot show a difference, before it costs a request: a baseline that was edited by hand or has
/// too few cases, or too few repetitions to detect a flip against a live run.
///
/// # Errors
/// States the number that would suffice.
pub(super) fn possible(base: &Summary, comparing: &Comparing, live: bool) -> Result<(), Problem> {
    as_saved(base, comparing)?;
    let cases: BTreeSet<(&str, &str)> =
        base.cases.iter().filter(|case| case.trials > 0).map(|case| (&*case.scenario, &*case.case)).collect();
    let fewest = base.cases.iter().map(|case| case.graded().1).filter(|trials| *trials > 0).min().unwrap_or(0);
    match comparing.fail_on {
        Some(FailOn::Regression) if (cases.len() as u64) < fewest_cases(ALPHA) => Err(Problem::Words(format!(
            "--fail-on regression: the baseline {} has {}, and fewer than {} can show no regression",
            base.label,
            plural(cases.len(), "case"),
            fewest_cases(ALPHA)
        ))),
        Some(FailOn::Flip) if live && fewest < LIVE_REPETITIONS => Err(Problem::Words(format!(
            "--fail-on flip: a flip between live runs needs {LIVE_REPETITIONS} repetitions of each case on both sides, and \
             the baseline {} has a case with {fewest}: make it anew with `--repeat {LIVE_REPETITIONS}`",
            base.label
        ))),
        _ => Ok(()),
    }
}

/// Refuses a live run with too few repetitions per case to detect a flip.
///
/// # Errors
/// Names the first such case, and the number that would suffice.
pub(super) fn repeated(plan: &Plan) -> Result<(), Problem> {
    let mut trials: BTreeMap<(usize, usize, &str), u64> = BTreeMap::new();
    for trial in plan.trials.iter().filter(|trial| trial.lane.arm == Arm::Main) {
        *trials.entry((trial.scenario, trial.case, &trial.lane.variant)).or_default() += 1;
    }
    let Some(((scenario, case, _), number)) = trials.into_iter().find(|(_, number)| *number < LIVE_REPETITIONS) else {
        return Ok(());
    };
    let scenario = &plan.scenarios[scenario];
    Err(Problem::Words(format!(
        "--fail-on flip: a flip between live runs needs {LIVE_REPETITIONS} repetitions of each case on both sides, and \
         {}/{} would be run {}: add `--repeat {LIVE_REPETITIONS}`",
        scenario.name,
        scenario.cases[case].case.case,
        plural(number as usize, "time")
    )))
}

/// Writes the files of a comparison, and the report that links to them.
fn write(written: Vec<(&str, Vec<u8>)>, folder: &Path, linked: Option<&[u8]>) -> Result<(), Problem> {
    let names: Vec<&str> = written.iter().map(|(name, _)| *name).collect();
    for (name, bytes) in written {
        let file = folder.join(name);
        files::write(&file, secrets::clean_text_bytes(&bytes)).map_err(|why| Problem::unwritten(&file, &why))?;
    }
    trace::claim(folder, &names).map_err(|why| Problem::unwritten(folder, &why))?;
    if let Some(index) = linked {
        let file = folder.join(trace::INDEX_HTML);
        files::replace(&file, secrets::clean_text_bytes(index)).map_err(|why| Problem::unwritten(&file, &why))?;
    }
    // The list of runs links to the comparison.
    runs::renew_page(folder)
}

/// Exit of a comparison. It fails only if `--fail-on` was given; with trials that could not be run, or nothing
/// compared, it is incomplete, because it cannot show that nothing changed.
fn exit(found: &Comparison, comparing: &Comparing) -> Exit {
    let Some(fail_on) = &comparing.fail_on else { return Exit::Passed };
    match fail_on {
        _ if found.a.errors + found.b.errors > 0 => Exit::Incomplete,
        FailOn::Regression if found.too_few_cases().is_some() => Exit::Usage,
        FailOn::Flip if found.too_few_repetitions().is_some() => Exit::Usage,
        FailOn::Regression if found.regression => Exit::Failed,
        FailOn::Flip if found.flips.iter().any(|flip| flip.worse) => Exit::Failed,
        _ if found.nothing_compared() => Exit::Incomplete,
        _ => Exit::Passed,
    }
}
