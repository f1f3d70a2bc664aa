//! Lists the runs in a reports folder, from the beginning of each `run.json` up to its trials.
//!
//! A folder counts as a run if its name looks like one (12 hexadecimal digits) or it holds a file of a run; unreadable
//! runs are listed with the error. Other folders are ignored.

use super::history_page::{self, HISTORY_HTML};
use crate::gate::{Source, Verdict};
use crate::platform::{files, secrets};
use crate::report::Pages;
use crate::report::history::Links;
use crate::report::runs::{RunRow, html};
use crate::trace;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

/// Marker of a page written by this list.
const OWN: &str = "<p class=\"brand\">ragcheck runs</p>";
/// Bytes of a `run.json` read at first; doubled if the verdicts are longer.
const BEGINNING: u64 = 1 << 18;
/// Maximum bytes of an `environment.json`.
const ENVIRONMENT_BYTES: u64 = 1 << 20;

/// The runs below `reports`, newest first; runs without a date come last, by name.
///
/// # Errors
/// If the folder cannot be read. A missing folder has no runs.
pub(crate) fn runs(reports: &Path) -> io::Result<Vec<RunRow>> {
    let entries = match files::entries(reports) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let latest = files::resolved(&reports.join("latest")).ok();
    let latest = latest.as_deref().and_then(Path::file_name);
    let folders = entries.into_iter().filter(|entry| entry.is_folder && is_run(&entry.path));
    let folders: Vec<_> = folders.map(|entry| entry.path).collect();
    let rows = folders.par_iter().map(|folder| row(folder, latest == folder.file_name()));
    // A run that another process has just removed is not broken.
    let mut rows: Vec<RunRow> = rows.filter(|row| row.broken.is_none() || reports.join(&row.name).is_dir()).collect();
    rows.sort_by(|one, other| other.made_at.cmp(&one.made_at).then_with(|| one.name.cmp(&other.name)));
    Ok(rows)
}

/// Links for the history page in `reports`: the list of runs, and the reports of existing runs.
pub(crate) fn beside_history(reports: &Path) -> io::Result<Links> {
    Ok(history_page::links(&runs(reports)?, is_list(&reports.join(trace::INDEX_HTML))))
}

/// The pages that those of a run folder link to.
pub(crate) fn pages_beside(folder: &Path) -> Pages {
    let whole = files::resolved(folder).unwrap_or_else(|_| folder.to_owned());
    Pages {
        comparison: folder.join(trace::COMPARISON_HTML).exists(),
        variants: folder.join(trace::VARIANTS_HTML).exists(),
        history: whole.parent().is_some_and(|reports| history_page::is_own(&reports.join(HISTORY_HTML))),
    }
}

/// Whether a file is a list of runs.
fn is_list(file: &Path) -> bool {
    files::read_to_string(file).is_ok_and(|text| text.contains(OWN))
}

/// Writes the page that lists the runs below `reports`, and that of the history at `root`. An existing file of such a name
/// that is not such a page is left unchanged; the remark that is returned says so.
///
/// # Errors
/// If a folder cannot be read, or a page cannot be written.
pub(crate) fn write_runs_page(reports: &Path, root: &Path) -> io::Result<Option<String>> {
    let runs = runs(reports).map_err(named(reports))?;
    let (list, page) = (reports.join(trace::INDEX_HTML), reports.join(HISTORY_HTML));
    let listed = !list.exists() || is_list(&list);
    let history = history_page::write_beside(reports, root, &runs, listed).map_err(named(&page))?;
    write_page_of(reports, &runs).map_err(named(&list))?;
    let pages = [(trace::INDEX_HTML, listed), (HISTORY_HTML, history)];
    let kept: Vec<&str> = pages.into_iter().filter(|(_, own)| !own).map(|(page, _)| page).collect();
    Ok((!kept.is_empty()).then(|| {
        let (kept, folder) = (kept.join(" and "), reports.display());
        format!(
            "{folder} has a page of another tool, left as it is, where reports link to: {kept}; `--report-dir` or \
             `reports` in ragcheck.yaml names a folder for reports alone"
        )
    }))
}

/// An error with its file.
fn named(file: &Path) -> impl Fn(io::Error) -> io::Error {
    move |why| io::Error::new(why.kind(), format!("{}: {why}", file.display()))
}

/// Writes the page for runs that were just read.
pub(crate) fn write_page_of(reports: &Path, runs: &[RunRow]) -> io::Result<()> {
    let file = reports.join(trace::INDEX_HTML);
    // `--report-dir` may name a folder with a foreign `index.html`.
    if file.exists() && !is_list(&file) {
        return Ok(());
    }
    let page = html(runs, history_page::is_own(&reports.join(HISTORY_HTML)))?;
    files::replace(file, secrets::clean_text_bytes(&page))
}

/// Rewrites the list beside a run folder after a verdict may have changed; does nothing if there is no list.
///
/// # Errors
/// If a folder cannot be read, or the page cannot be written.
pub(crate) fn renew_runs_page(folder: &Path) -> io::Result<()> {
    // `latest` is beside the folder that it points to.
    let whole = files::resolved(folder).unwrap_or_else(|_| folder.to_owned());
    match whole.parent() {
        Some(reports) if reports.join(trace::INDEX_HTML).exists() => {
            write_page_of(reports, &runs(reports)?).map_err(named(&reports.join(trace::INDEX_HTML)))
        }
        _ => Ok(()),
    }
}

fn is_run(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let named = name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let holds = || [trace::RUN, trace::PLAN, trace::TRACES].iter().any(|file| folder.join(file).exists());
    !name.starts_with('.') && (named || holds())
}

fn row(folder: &Path, latest: bool) -> RunRow {
    let environment = files::read_at_most(folder.join(trace::ENVIRONMENT), ENVIRONMENT_BYTES).ok();
    let environment: Environment = environment.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let (head, broken) = match head(folder) {
        Ok(head) => (head, None),
        Err(why) => (Head::default(), Some(format!("{}: {why}", trace::RUN))),
    };
    let rows = || head.criteria.iter().chain(&head.gates);
    let failed = rows().filter(|row| row.required && row.verdict == Verdict::Fail);
    let scenarios: BTreeSet<&String> = head.gates.iter().filter_map(|gate| gate.scenario.as_ref()).collect();
    let models: BTreeSet<&String> = head.sources.iter().map(|source| &source.model).collect();
    let days: BTreeSet<&String> = head.sources.iter().flat_map(|source| &source.dates).collect();
    let listed = |names: BTreeSet<&String>| names.into_iter().filter(|name| !name.is_empty()).cloned().collect();
    let pages = [trace::INDEX_HTML, trace::COMPARISON_HTML, trace::VARIANTS_HTML].into_iter();
    RunRow {
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        made_at: environment.written_at,
        mode: environment.mode.unwrap_or_default(),
        broken,
        exit_code: head.exit_code,
        failed: failed.map(Brief::name).collect(),
        scenarios: listed(scenarios),
        models: listed(models),
        recorded_on: listed(days),
        conclusion: head.conclusion,
        part: head.part,
        pages: pages.filter(|page| folder.join(page).exists()).map(str::to_owned).collect(),
        point: environment.point,
        latest,
    }
}

/// Contents of `environment.json`.
#[derive(Default, Deserialize)]
struct Environment {
    written_at: Option<String>,
    mode: Option<String>,
    point: Option<String>,
}

/// The part of `run.json` before the causes of ERROR and the trials.
#[derive(Default)]
struct Head {
    exit_code: u8,
    conclusion: String,
    part: String,
    sources: Vec<Source>,
    criteria: Vec<Brief>,
    gates: Vec<Brief>,
}

/// Summary of a criterion or gate.
#[derive(Deserialize)]
struct Brief {
    id: String,
    scenario: Option<String>,
    verdict: Verdict,
    required: bool,
}

impl Brief {
    fn name(&self) -> String {
        self.scenario.as_ref().map_or_else(|| self.id.clone(), |scenario| format!("{scenario}/{}", self.id))
    }
}

/// Reads the beginning of a `run.json`, without the trials of a large run.
fn head(folder: &Path) -> io::Result<Head> {
    let mut file = files::open(folder.join(trace::RUN))?;
    let (mut text, mut most) = (Vec::new(), BEGINNING);
    loop {
        let read = (&mut file).take(most).read_to_end(&mut text)?;
        let mut reading = Reading::default();
        // Parsing from memory is several times as fast as from a file.
        let parsed = reading.deserialize(&mut serde_json::Deserializer::from_slice(&text));
        // Stopping in the middle, the parser reports the unread rest as an error.
        match parsed {
            Err(error) if !reading.enough && error.is_eof() && read as u64 == most => most = text.len() as u64,
            Err(error) if !reading.enough => return Err(error.into()),
            _ => return Ok(reading.head),
        }
    }
}

#[derive(Default)]
struct Reading {
    head: Head,
    enough: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Reading {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading {
    type Value = ();

    fn expecting(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        words.write_str("the verdicts of a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut judged = false;
        while let Some(key) = map.next_key::<String>()? {
            let head = &mut self.head;
            match key.as_str() {
                "exit_code" => (head.exit_code, judged) = (map.next_value()?, true),
                "conclusion" => head.conclusion = map.next_value()?,
                "part" => head.part = map.next_value()?,
                "sources" => head.sources = map.next_value()?,
                "criteria" => head.criteria = map.next_value()?,
                "gates" => head.gates = map.next_value()?,
                "errors" if judged => {
                    self.enough = true;
                    return Ok(());
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if judged { Ok(()) } else { Err(serde::de::Error::missing_field("exit_code")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const RUN: &str = r#"{"version": 1, "exit_code": 1, "conclusion": "failed: SC-002",
        "sources": [{"mode": "replay", "from": "simulator", "model": "m", "dates": ["2026-11-20", "2026-11-21"]}],
        "criteria": [{"id": "SC-001", "scenario": null, "verdict": "PASS", "required": true},
                     {"id": "SC-002", "scenario": null, "verdict": "FAIL", "required": true},
                     {"id": "SC-003", "scenario": null, "verdict": "FAIL", "required": false}],
        "gates": [{"id": "gate 1", "scenario": "refunds", "verdict": "FAIL", "required": true}],
        "errors": [], "trials": [{"#;

    fn run(reports: &Path, name: &str, at: &str, text: &str) {
        let folder = reports.join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("run.json"), text).expect("written");
        let environment = format!(r#"{{"written_at": "{at}", "mode": "replay"}}"#);
        fs::write(folder.join("environment.json"), environment).expect("written");
    }

    #[test]
    fn runs_are_listed_newest_first_with_what_failed_and_no_trial_is_read() {
        let reports = tempfile::tempdir().expect("a folder");
        run(reports.path(), "000000000001", "2026-11-20T10:00:00Z", RUN);
        run(reports.path(), "named", "2026-11-21T10:00:00Z", RUN);
        fs::create_dir(reports.path().join("pictures")).expect("a folder of somebody's");
        fs::create_dir(reports.path().join(".unfinished")).expect("a folder of journals");
        let rows = runs(reports.path()).expect("a list");
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["named", "000000000001"]);
        let newest = &rows[0];
        assert_eq!(newest.failed, ["SC-002", "refunds/gate 1"]);
        assert_eq!((newest.exit_code, newest.broken.as_deref()), (1, None));
        assert_eq!((&newest.scenarios[..], &newest.models[..]), (&["refunds".to_owned()][..], &["m".to_owned()][..]));
        assert_eq!(newest.recorded_on, ["2026-11-20", "2026-11-21"]);
    }

    #[test]
    fn a_broken_run_folder_is_listed_as_such_and_hides_no_other() {
        let reports = tempfile::tempdir().expect("a folder");
        run(reports.path(), "00000000000a", "2026-11-20T10:00:00Z", "{\"version\": 1, \"exit_code\": 0, \"concl");
        run(reports.path(), "00000000000b", "2026-11-21T10:00:00Z", "{}");
        fs::create_dir(reports.path().join("00000000000c")).expect("an empty one");
        run(reports.path(), "00000000000d", "2026-11-22T10:00:00Z", RUN);
        let rows = runs(reports.path()).expect("a list");
        let broken: Vec<bool> = rows.iter().map(|row| row.broken.is_some()).collect();
        assert_eq!(broken, [false, true, true, true], "{rows:?}");
        write_runs_page(reports.path(), reports.path()).expect("a page");
        let page = fs::read_to_string(reports.path().join("index.html")).expect("a page");
        assert_eq!(page.matches("broken run folder").count(), 3);
    }

    #[test]
    fn verdicts_that_are_longer_than_what_is_read_at_first_are_read_whole() {
        let reports = tempfile::tempdir().expect("a folder");
        let long = "x".repeat(3 * BEGINNING as usize);
        run(reports.path(), "000000000001", "2026-11-20T10:00:00Z", &RUN.replace("failed: SC-002", &long));
        run(
            reports.path(),
            "000000000002",
            "2026-11-21T10:00:00Z",
            &RUN[..RUN.len() / 2].replace("failed: SC-002", &long),
        );
        let rows = runs(reports.path()).expect("a list");
        assert!(rows[0].broken.is_some() && rows[1].broken.is_none(), "cut off in the middle is broken");
        assert_eq!((rows[1].conclusion.len(), rows[1].failed.len()), (long.len(), 2));
    }

    #[test]
    fn the_list_beside_a_run_is_renewed_and_none_is_made() {
        let reports = tempfile::tempdir().expect("a folder");
        run(reports.path(), "000000000001", "2026-11-20T10:00:00Z", RUN);
        let (folder, page) = (reports.path().join("000000000001"), reports.path().join("index.html"));
        renew_runs_page(&folder).expect("nothing to do");
        assert!(!page.exists());
        write_runs_page(reports.path(), reports.path()).expect("a page");
        fs::write(folder.join("run.json"), RUN.replace("SC-002", "SC-009")).expect("written");
        renew_runs_page(&folder).expect("renewed");
        assert!(fs::read_to_string(&page).expect("the page").contains("SC-009"));
    }

    #[test]
    fn a_page_of_somebodys_own_is_not_overwritten() {
        let reports = tempfile::tempdir().expect("a folder");
        let page = reports.path().join("index.html");
        fs::write(&page, "<h1>my site</h1>").expect("written");
        write_runs_page(reports.path(), reports.path()).expect("left alone");
        assert_eq!(fs::read_to_string(&page).expect("the page"), "<h1>my site</h1>");
        fs::remove_file(&page).expect("removed");
        write_runs_page(reports.path(), reports.path()).expect("written");
        run(reports.path(), "000000000001", "2026-11-20T10:00:00Z", RUN);
        write_runs_page(reports.path(), reports.path()).expect("written again");
        assert!(fs::read_to_string(&page).expect("the page").contains("000000000001"));
    }

    #[test]
    fn where_no_run_was_made_there_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(runs(&folder.path().join("reports")).expect("a list").is_empty());
    }
}
