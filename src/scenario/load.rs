//! Loads a project: reads every file once and collects every mistake.
//!
//! The fast path is the typed reader alone. A file that it rejects is walked as a tree (`shape`), and its valid parts
//! are checked for meaning too, so that one pass reports everything.

use super::check_criteria::Known;
use super::diagnostic::{At, Diagnostic, Mistake, Severity, diagnose};
use super::document::Scenario;
use super::files::{self as found, PROJECT_FILE, shown};
use super::load_scenario::{ParsedScenario, checked, declared_tools, parsed_scenario};
use super::read_files::{ReadCriteria, read};
use super::tables::Around;
use super::{Criteria, Project, Rubric, check, check_criteria, check_external};
use crate::platform::bounds::Bound;
use crate::platform::files;
use crate::settings::ManagedRetrievalSettings;
use crate::settings::catalogue::Catalogues;
use crate::trace::MeasuredAgreement;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

/// A project with everything that a run needs, without mistakes.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The project's folder; paths in `Project` are relative to it.
    pub root: PathBuf,
    /// The project file, or its defaults.
    pub project: Project,
    /// The project file's path relative to the root, when there is one.
    pub project_file: Option<String>,
    /// The scenarios, by file.
    pub scenarios: Vec<LoadedScenario>,
    /// Whether the paths select only some of the project's scenarios, which are evaluated by its criteria.
    pub partial: bool,
    /// Scenarios in and below the folders of the project's patterns that these do not match; empty if paths were typed.
    pub unmatched: Vec<String>,
    /// The paths that were typed, relative to the root.
    pub paths: Vec<String>,
    /// The criteria file that was typed, relative to the root.
    pub typed_criteria: Option<String>,
    /// Criteria on the whole run; empty when no file states any.
    pub criteria: Criteria,
    /// The criteria file relative to the root; empty when there is none.
    pub criteria_file: String,
    /// Human ratings by trial id, when the project names a file.
    pub ratings: Option<BTreeMap<String, bool>>,
    /// A note on trials of that file that are not rated.
    pub unrated: Option<Diagnostic>,
    /// Measured agreement of grades with people, when the project names a file.
    pub agreement: Option<MeasuredAgreement>,
}

/// One scenario with the files read for it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedScenario {
    /// Its file relative to the root, with forward slashes.
    pub file: String,
    /// The scenario as written.
    pub scenario: Scenario,
    /// Where each case begins.
    pub case_places: Vec<CasePlace>,
    /// The tables that cases are made from, relative to the root, with forward slashes.
    pub tables: BTreeSet<String>,
    /// Replaced prompt texts, by variant (`base` without any), then by prompt.
    pub prompts: BTreeMap<String, BTreeMap<String, String>>,
    /// The managed retrieval service that it names, as the project declares it.
    pub managed_retrieval: Option<(String, ManagedRetrievalSettings)>,
}

/// Position where a case begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CasePlace {
    /// The table whose row makes the case, relative to the root; none for a case in the scenario's file.
    pub table: Option<String>,
    /// Line number, from 1.
    pub line: u32,
}

/// Result of loading, including diagnostics.
#[derive(Debug)]
pub(crate) struct LoadReport {
    /// The project, when there is no error.
    pub loaded: Option<Loaded>,
    /// Errors and notes, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// Number of files read.
    pub files: usize,
}

/// Loads a project: the scenarios at `paths` (all of the project's if empty) and its criteria (`criteria` overrides
/// the project file). `catalogues` hold the names that scenarios and criteria may use.
///
/// # Errors
/// All mistakes of all files at once.
pub fn load(
    root: &Path,
    paths: &[PathBuf],
    criteria: Option<&Path>,
    catalogues: &Catalogues,
) -> Result<Loaded, Vec<Diagnostic>> {
    let report = load_report(root, paths, criteria, catalogues);
    report.loaded.ok_or(report.diagnostics)
}

/// Loads the project file alone; its defaults if there is none.
///
/// # Errors
/// All mistakes in it.
pub(crate) fn load_project(root: &Path, catalogues: &Catalogues) -> Result<Project, Vec<Diagnostic>> {
    let mut work = Work::of(root);
    let (project, ..) = work.project(catalogues);
    if work.diagnostics.is_empty() { Ok(project) } else { Err(work.diagnostics) }
}

/// Like [`load`], with notes and counts in addition to errors.
pub(crate) fn load_report(
    root: &Path,
    paths: &[PathBuf],
    criteria: Option<&Path>,
    catalogues: &Catalogues,
) -> LoadReport {
    let mut work = Work::of(root);
    let loaded = work.load(Some(paths), criteria, catalogues);
    work.report(loaded)
}

/// Loads what the cases of a test runner are judged by: a scenario whose agent has no address, or no scenario at all,
/// and the project's criteria, which are on all scenarios that the project declares.
///
/// # Errors
/// All mistakes of all files at once.
pub(crate) fn load_for_runner(
    root: &Path,
    scenario: Option<&PathBuf>,
    criteria: Option<&Path>,
    catalogues: &Catalogues,
) -> Result<Loaded, Vec<Diagnostic>> {
    let mut work = Work::of(root);
    let loaded = work.load(scenario.map(std::slice::from_ref), criteria, catalogues).map(|loaded| {
        let declared = found::discover(root, &loaded.project, &[]).unwrap_or_default();
        let partial = criteria.is_none() && declared.iter().any(|path| is_scenario(path));
        Loaded { partial, ..loaded }
    });
    work.diagnostics.retain(|one| one.code != check_external::NO_TARGET);
    let report = work.report(loaded);
    report.loaded.ok_or(report.diagnostics)
}

/// Loads a rubric and its project, without scenarios.
///
/// # Errors
/// All mistakes of both files.
pub(crate) fn load_rubric(
    root: &Path,
    path: &Path,
    catalogues: &Catalogues,
) -> Result<(Project, Rubric), Vec<Diagnostic>> {
    let mut work = Work::of(root);
    let (project, _, _) = work.project(catalogues);
    let path = root.join(path);
    let file = shown(root, &path);
    let rubric = match read(&path, &file) {
        Ok(text) => work.rubric(&text, &file, &project),
        Err(diagnostic) => {
            work.diagnostics
                .push((*diagnostic).with_help("a rubric comes from --rubric, or from scenarios/rubric.yaml"));
            None
        }
    };
    let diagnostics = consequences_removed(work.diagnostics, "");
    match rubric {
        Some(rubric) if diagnostics.iter().all(|one| one.severity == Severity::Note) => Ok((project, rubric)),
        _ => Err(diagnostics),
    }
}

/// Removes errors that may only follow from mistakes in the project or criteria file, which may be missing a
/// declaration.
fn consequences_removed(mut diagnostics: Vec<Diagnostic>, criteria_file: &str) -> Vec<Diagnostic> {
    let broken = |file: &str| diagnostics.iter().any(|one| one.severity == Severity::Error && one.file == file);
    let (project, criteria) = (broken(PROJECT_FILE), !criteria_file.is_empty() && broken(criteria_file));
    diagnostics.retain(|one| match one.code {
        "unknown-provider" | "wrong-dialect" | "unknown-knowledge" | "unknown-retrieval" | "unknown-requirement" => {
            !project
        }
        // Requirements of the project file are valid names too.
        "unknown-criterion" => !criteria && (!project || one.file == PROJECT_FILE),
        _ => true,
    });
    diagnostics
}

/// Whether a file of the project's scenarios is neither criteria nor a rubric.
fn is_scenario(path: &Path) -> bool {
    let text = read(path, "").unwrap_or_default();
    !found::is_criteria(&text) && !found::is_rubric(&text)
}

/// Patterns of scenario files that a message names, and scenarios that match none.
const SHOWN: usize = 5;

pub(super) struct Work<'a> {
    pub(super) root: &'a Path,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) files: usize,
    criteria_file: String,
}

impl<'a> Work<'a> {
    fn of(root: &'a Path) -> Self {
        Self { root, diagnostics: Vec::new(), files: 0, criteria_file: String::new() }
    }

    /// The result, with its diagnostics in order.
    fn report(self, loaded: Option<Loaded>) -> LoadReport {
        let mut diagnostics = consequences_removed(self.diagnostics, &self.criteria_file);
        diagnostics.sort_by(|one, other| {
            (&one.file, one.place, one.severity).cmp(&(&other.file, other.place, other.severity))
        });
        diagnostics.dedup();
        let clean = diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Note);
        LoadReport { loaded: loaded.filter(|_| clean), diagnostics, files: self.files }
    }

    /// Whether all of `found` are files that the project declares, and it declares at least one more scenario.
    fn leaves_out(&self, project: &Project, paths: &[PathBuf], found: &[PathBuf], criteria: Option<&Path>) -> bool {
        if paths.is_empty() {
            return false;
        }
        let declared = found::discover(self.root, project, &[]).unwrap_or_default();
        let scenario = |path: &&PathBuf| Some(path.as_path()) != criteria && is_scenario(path);
        found.iter().all(|path| declared.contains(path))
            && declared.iter().filter(|path| !found.contains(path)).any(|path| scenario(&path))
    }

    /// Loads the scenarios at `typed`: all of the project's if it is empty, none if it is `None`.
    fn load(&mut self, typed: Option<&[PathBuf]>, criteria: Option<&Path>, catalogues: &Catalogues) -> Option<Loaded> {
        let (project, project_file, project_text) = self.project(catalogues);
        let paths = typed.unwrap_or_default();
        let discovered = typed.map_or(Ok(Vec::new()), |typed| found::discover(self.root, &project, typed));
        let scenarios_found = match discovered {
            Ok(paths) => paths,
            Err(mistakes) => {
                self.diagnostics.extend(mistakes);
                return None;
            }
        };
        let named = self.criteria_path(&project, criteria);
        let unmatched = match typed {
            Some([]) => found::unmatched(self.root, &project, &scenarios_found),
            _ => Vec::new(),
        };
        let partial = criteria.is_none() && self.leaves_out(&project, paths, &scenarios_found, named.as_deref());
        let mut room = Bound::ScenariosSize.most();
        let mut scenarios = Vec::new();
        let mut others = Vec::new();
        for path in scenarios_found.into_iter().filter(|path| named.as_ref() != Some(path)) {
            let file = shown(self.root, &path);
            let text = read(&path, &file);
            room = text.as_ref().map_or(room, |text| room.saturating_sub(text.len() as u64));
            if room == 0 {
                let message = format!("the scenarios are larger than {} together", Bound::ScenariosSize.shown());
                self.too_much(Bound::ScenariosSize, &message);
                return None;
            }
            match text {
                Ok(text) if found::is_criteria(&text) || found::is_rubric(&text) => others.push((path, file, text)),
                Ok(text) => scenarios.push((path, file, text)),
                Err(diagnostic) => self.diagnostics.push(*diagnostic),
            }
        }
        self.files += scenarios.len();
        let (root, size) = (self.root, AtomicU64::new(0));
        let parsed = scenarios
            .par_iter()
            .map(|(path, file, text)| parsed_scenario(Around { root, path, file, text, size: &size }));
        let (parsed, shapes): (Vec<Option<ParsedScenario>>, Vec<Vec<Diagnostic>>) = parsed.unzip();
        self.files += parsed.iter().flatten().map(|(_, tables)| tables.files().len()).sum::<usize>();
        self.diagnostics.extend(shapes.into_iter().flatten());
        let known = Known {
            metrics: &catalogues.metrics,
            tools: declared_tools(&parsed, catalogues),
            flows: Some(catalogues.flow_names().collect()),
        };
        let mut found_criteria = ReadCriteria::default();
        let mut criteria_file = String::new();
        if let Some(path) = named {
            criteria_file = shown(self.root, &path);
            self.criteria_file.clone_from(&criteria_file);
            found_criteria = self.criteria(&path, &criteria_file, &project, &known, catalogues);
        }
        for (path, file, text) in others {
            if found::is_criteria(&text) {
                self.criteria(&path, &file, &project, &known, catalogues);
            } else {
                self.rubric(&text, &file, &project);
            }
        }
        let ids: BTreeSet<String> = found_criteria.criteria.criteria.iter().map(|row| row.id.clone()).collect();
        // A project may name a criterion of another criteria file by its requirement.
        let ids: BTreeSet<String> = ids.into_iter().chain(project.requirements.keys().cloned()).collect();
        let with_gate = ids.iter().cloned().chain(["cases".to_owned()]).collect();
        let mistakes = check_criteria::not_measured(&project, &with_gate);
        self.diagnostics.extend(diagnose(mistakes, PROJECT_FILE, &project_text));
        let work = AtomicU64::new(0);
        let results: Vec<Option<(LoadedScenario, Vec<Diagnostic>)>> = scenarios
            .par_iter()
            .zip(parsed)
            .map(|((path, file, text), parsed)| {
                let around =
                    check::Surroundings { root, path, project: &project, catalogues, criteria: &ids, work: &work };
                Some(checked(parsed?, text, file, around))
            })
            .collect();
        if work.into_inner() > Bound::Expressions.most() {
            self.too_much(Bound::Expressions, "the regular expressions of the scenarios are too large together");
            return None;
        }
        let mut loaded = Vec::new();
        for (scenario, diagnostics) in results.into_iter().flatten() {
            loaded.push(scenario);
            self.diagnostics.extend(diagnostics);
        }
        if typed.is_some()
            && scenarios.is_empty()
            && self.diagnostics.is_empty()
            && !paths.iter().any(|path| self.is_criteria_only(path))
        {
            let diagnostic = Diagnostic::error("no-scenarios", "", "there are no scenarios here");
            let place = project.scenarios.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            self.diagnostics.push(
                diagnostic.with_help(format!(
                    "the project looks for {place}; name a file, or set `scenarios` in ragcheck.yaml; `ragcheck init my-project` \
                     makes a project that runs"
                )),
            );
        }
        self.diagnostics.extend(unmatched.iter().take(SHOWN).map(|file| {
            let message = match unmatched.len().saturating_sub(SHOWN) {
                0 => "no pattern in `scenarios` of ragcheck.yaml matches this scenario, so it is never run".to_owned(),
                more => format!(
                    "no pattern in `scenarios` of ragcheck.yaml matches this scenario and {more} more, so they are never run"
                ),
            };
            let help = "add its folder or extension to `scenarios`, or keep a scenario for `ragcheck exec` elsewhere";
            Diagnostic::note("not-run", file, message).with_help(help)
        }));
        self.same_names(&loaded);
        self.many_excluded(&loaded, &found_criteria, &criteria_file);
        let (ratings, unrated) = self.ratings(&project, &project_text).unzip();
        let unrated = unrated.flatten();
        self.diagnostics.extend(unrated.clone());
        let agreement = self.agreement(&project, &project_text);
        if ratings.is_none() {
            found_criteria.criteria.without_ratings(&catalogues.metrics);
        }
        let root = self.root.to_path_buf();
        let from_root = |path: &Path| {
            let shown = shown(&root, &root.join(path));
            if shown.is_empty() { ".".to_owned() } else { shown }
        };
        let paths = paths.iter().map(|path| from_root(path)).collect();
        let typed_criteria = criteria.map(from_root);
        Some(Loaded {
            root,
            project,
            project_file,
            scenarios: loaded,
            partial,
            unmatched,
            paths,
            typed_criteria,
            criteria: found_criteria.criteria,
            criteria_file,
            ratings,
            unrated,
            agreement,
        })
    }

    fn too_much(&mut self, bound: Bound, message: &str) {
        self.diagnostics.push(Diagnostic::error("too-large", "", message).with_help(bound.advice()));
    }

    fn is_criteria_only(&self, path: &Path) -> bool {
        files::read_to_string(self.root.join(path)).is_ok_and(|text| found::is_criteria(&text))
    }

    /// Recordings are stored under the scenario's name, so it must be unique.
    fn same_names(&mut self, loaded: &[LoadedScenario]) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for scenario in loaded {
            if let Some(other) = seen.insert(&scenario.scenario.scenario, &scenario.file) {
                let message = format!("{other} has the same scenario name");
                let diagnostic = Diagnostic::error("duplicate-scenario", &scenario.file, message);
                self.diagnostics
                    .push(diagnostic.with_help("their recordings would share a folder: rename one of the files"));
            }
        }
    }

    fn many_excluded(&mut self, loaded: &[LoadedScenario], read: &ReadCriteria, file: &str) {
        let total: usize = loaded.iter().map(|scenario| scenario.scenario.cases.len()).sum();
        let root = At::ROOT;
        let (flows, rows) = (root.key("flows"), root.key("criteria"));
        let mut mistakes = Vec::new();
        for (index, row) in read.criteria.criteria.iter().enumerate() {
            let counts = loaded.iter().map(|loaded| {
                let whole = loaded.scenario.excluded_from.contains_key(&row.id);
                loaded.scenario.cases.iter().filter(|case| whole || case.excluded_from.contains_key(&row.id)).count()
            });
            let excluded: usize = counts.sum();
            if excluded * 4 > total {
                let message = format!("{excluded} of {total} cases do not count for {}: more than a quarter", row.id);
                let row = index.checked_sub(read.of_flows).map(|own| rows.index(own));
                let at = row.as_ref().map_or(flows, |row| row.key("id"));
                mistakes.push(
                    Mistake::at(at, "many-excluded", message)
                        .into_note()
                        .help("a figure that leaves so much out says little: see `excluded_from` in the scenarios"),
                );
            }
        }
        self.diagnostics.extend(diagnose(mistakes, file, &read.text));
    }
}
