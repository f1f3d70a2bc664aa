//! `ragcheck promote`: makes a case of a trace, in a scenario.
//!
//! The case asks what the user asked, and expects of it what happened, as far as that will hold again: the calls that
//! ran, the numbers and codes of the answer, its sources. Each proposed expectation holds on the trace. Secrets are
//! taken out, and roles map the trace's tools to those of the scenario. A recording becomes the lane of the case; spans
//! never do.

mod proposal;
mod text;

use super::arguments::Promote;
use super::exit::Exit;
use super::import::{format_and_file, read_scenario};
use super::output::{self, Problem};
use super::select::{current_folder, project, variables};
use crate::cassette::Redactor;
use crate::platform::{files, secrets};
use crate::scenario::{self, Case, Scenario, Severity};
use crate::settings::catalogue::Catalogues;
use crate::suite::import::Imported;
use crate::suite::recordings::{self, known_secrets};
use crate::trace::Roles;
use crate::trace::text::{plural, quote};
use proposal::Proposal;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Traces that a message lists.
const LISTED: usize = 10;

/// What `promote` prints.
#[derive(Serialize, JsonSchema)]
pub(super) struct Promoted {
    /// The case, as written into the scenario.
    case: Case,
    /// What it leaves out, and why.
    notes: Vec<String>,
}

/// Runs `ragcheck promote`.
///
/// # Errors
/// If the trace cannot be used, does not say what was asked and answered, or the scenario cannot take the case.
pub(super) fn run(given: &Promote) -> Result<Exit, Problem> {
    let here = current_folder()?;
    let named: Vec<PathBuf> =
        given.format.iter().map(PathBuf::from).chain(std::iter::once(given.file.clone())).collect();
    let (format, file) = format_and_file(&named)?;
    let (imported, format) = crate::suite::imported(format, file, None, None)?;
    let path = scenario_file(given.scenario.as_deref(), &here)?;
    let scenario = read_scenario(&path)?;
    let place = place_of(&imported, given.trace.as_deref(), file)?;
    if scenario.cases.iter().any(|case| case.case == given.case) {
        let named = quote(&given.case, 80);
        return Err(Problem::Words(format!("{} has a case `{named}` already: name another", path.display())));
    }
    let known = roles(&scenario, &crate::catalogues());
    let mut proposed = Proposal::of(&imported, place, &given.case, &known).map_err(|why| why.to_string())?;
    let mut text = text::of_case(&proposed);
    match write(&path, &text, &here) {
        // The scenario's documents may have other names than the agent's.
        Err(Problem::Diagnostics(mistakes)) if proposed.without_sources() => {
            let why = mistakes.first().map(|mistake| mistake.message.clone()).unwrap_or_default();
            proposed.notes.push(format!("the sources of the answer are not expected: {why}"));
            text = text::of_case(&proposed);
            write(&path, &text, &here)?;
        }
        written => written?,
    }
    let shown = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
    output::remark(&format!("read as `{}`", format.name()));
    let printed = Promoted { case: proposed.case, notes: proposed.notes };
    output::data(given.output, &printed, |_| format!("{text}\n{shown}: the case `{}` is written\n", given.case))?;
    for note in &printed.notes {
        output::remark(&format!("note: {}", quote(note, 600)));
    }
    match &given.recording {
        Some(recording) => lane(recording, &scenario, given, &here)?,
        None => output::remark(&format!(
            "note: no lane: a trace holds no exchanges. Record it: `ragcheck run {shown} --only {} --mode record`; or name \
             a recording of the same conversation (HAR, VCR, go-vcr, httprr): --recording FILE",
            given.case
        )),
    }
    Ok(Exit::Passed)
}

/// The scenario file that is named, or the project's only one.
fn scenario_file(named: Option<&Path>, here: &Path) -> Result<PathBuf, Problem> {
    if let Some(named) = named {
        return Ok(here.join(named));
    }
    let root = scenario::find_root(here);
    let loaded = scenario::load(&root, &[], None, &crate::catalogues())?;
    match loaded.scenarios.as_slice() {
        [one] => Ok(root.join(&one.file)),
        all => {
            let number = plural(all.len(), "scenario");
            Err(Problem::Words(format!("the project has {number}: name the one that takes the case, --scenario FILE")))
        }
    }
}

/// The trace that is named, by its number in the file, its case, or the beginning of its id; or the only one.
fn place_of(imported: &Imported, named: Option<&str>, file: &Path) -> Result<usize, Problem> {
    let traces = &imported.traces;
    let id = |place: usize| traces[place].notes.iter().find_map(|note| note.strip_prefix("trace ")).unwrap_or_default();
    let fits = |named: &str, place: usize| {
        let starts = named.len() >= 6 && id(place).starts_with(&named.to_ascii_lowercase().replace('-', ""));
        traces[place].case == named || starts || named.parse() == Ok(place + 1)
    };
    let found: Vec<usize> = match named {
        Some(named) => (0..traces.len()).filter(|place| fits(named, *place)).collect(),
        None => (0..traces.len()).collect(),
    };
    if let [one] = found.as_slice() {
        return Ok(*one);
    }
    let line = |place: &usize| {
        let trace = &traces[*place];
        let id = quote(id(*place), 40);
        format!("\n  {}  {}{}", place + 1, trace.case, if id.is_empty() { id } else { format!("  {id}") })
    };
    let listed = if found.is_empty() { (0..traces.len()).collect() } else { found };
    let lines: String = listed.iter().take(LISTED).map(line).collect();
    let more = listed.len().saturating_sub(LISTED);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    Err(Problem::Words(format!(
        "{} has {}: name one, --trace NUMBER|CASE|ID{lines}{more}",
        file.display(),
        plural(traces.len(), "trace")
    )))
}

/// The roles of the tools that a scenario's agent has, and whether it may have others.
fn roles(scenario: &Scenario, catalogues: &Catalogues) -> (Roles, bool) {
    let flow = catalogues.flow(&scenario.flow).filter(|flow| flow.tools.is_some());
    match flow {
        Some(flow) => (flow.roles(), false),
        None => (scenario.roles.as_ref().map(scenario::external::AgentRoles::by_tool).unwrap_or_default(), true),
    }
}

/// Writes the case into the scenario; a scenario with mistakes is left as it was.
fn write(path: &Path, case: &str, here: &Path) -> Result<(), Problem> {
    let before = files::read_to_string(path).map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
    let by_hand =
        |why: text::NoPlace| Problem::Words(format!("{}: {why}; add the case by hand:\n{case}", path.display()));
    let after = text::with_case(&before, case).map_err(by_hand)?;
    let put = |text: &str| files::replace(path, text).map_err(|why| Problem::unwritten(path, &why));
    put(&after)?;
    let report = scenario::load_report(&scenario::find_root(here), &[path.to_owned()], None, &crate::catalogues());
    let mistakes: Vec<_> =
        report.diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error).collect();
    if mistakes.is_empty() {
        return Ok(());
    }
    put(&before)?;
    Err(Problem::Diagnostics(mistakes))
}

/// Imports a recording as the lane of the case.
fn lane(recording: &Path, scenario: &Scenario, given: &Promote, here: &Path) -> Result<(), Problem> {
    let (root, project) = project()?;
    if crate::catalogues().flow(&scenario.flow).is_some_and(|flow| flow.tools.is_some()) {
        let why = "a recording of another tool is the lane of an external agent: the case is written without one";
        return Err(Problem::Words(format!("--recording: {why}")));
    }
    let _alone = recordings::lock("promote")?;
    let redactor = Redactor::new(known_secrets(&project, variables(None)?));
    let folder = root.join(&project.cassettes);
    let target = recordings::Import { folder: &folder, scenario: &scenario.scenario, case: &given.case };
    let (lane, path) = recordings::import(recording, None, target, &redactor)
        .map_err(|why| format!("{}: not imported: {why}; the case is written without a lane", recording.display()))?;
    let shown = path.strip_prefix(here).unwrap_or(&path).display().to_string();
    let said = plural(lane.exchanges.len(), "exchange");
    output::result(&format!("{}: {said} of {} -> {shown}\n", recording.display(), lane.format.name()));
    for refused in &lane.refused {
        let (item, number) = (lane.format.item(), refused.number);
        output::remark(&format!("{}: {item} {number} not imported: {}", recording.display(), refused.why));
    }
    Ok(())
}

/// A text without secrets and line breaks.
fn line(text: &str, most: usize) -> String {
    quote(&secrets::clean(text).split_whitespace().collect::<Vec<_>>().join(" "), most)
}
