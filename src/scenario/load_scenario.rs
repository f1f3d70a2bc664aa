//! Loads one scenario: reads it, expands its tables into cases, and checks it.

use super::check;
use super::commas::split_numbers;
use super::diagnostic::{Diagnostic, diagnose};
use super::document::Scenario;
use super::lines::case_lines;
use super::load::{CasePlace, LoadedScenario};
use super::repair::{Parsed, parse};
use super::tables::{Around, Tables, document_with_tables, with_tables};
use crate::platform::bounds::Bound;
use crate::settings::catalogue::Catalogues;
use serde_json::json;
use std::collections::BTreeSet;

/// Tools declared by the flows of these scenarios; `None` without a scenario, if one cannot be read, or for an agent
/// whose tools are known only at run time.
pub(super) fn declared_tools<'c>(
    scenarios: &[Option<ParsedScenario>],
    catalogues: &'c Catalogues,
) -> Option<BTreeSet<&'c str>> {
    let mut tools = BTreeSet::new();
    for scenario in scenarios {
        for name in scenario.as_ref()?.0.value.flows() {
            // An unknown flow is a mistake of its scenario and is reported there.
            let Some(flow) = catalogues.flow(name) else { continue };
            tools.extend(flow.tools.as_ref()?.iter().map(|tool| tool.name));
        }
    }
    (!tools.is_empty()).then_some(tools)
}

/// A scenario and the tables that its cases are made from.
pub(super) type ParsedScenario = (Parsed<Scenario>, Tables);

/// Reads a scenario, or its valid parts, with its mistakes.
pub(super) fn parsed_scenario(around: Around<'_>) -> (Option<ParsedScenario>, Vec<Diagnostic>) {
    let Around { path, file, text, .. } = around;
    let mut diagnostics = Vec::new();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let required = [("scenario", json!(stem)), ("flow", json!("tool-rag")), ("cases", json!([]))];
    let names_table = |parsed: &Parsed<Scenario>| parsed.value.cases.iter().any(|case| case.table.is_some());
    let mut tree = document_with_tables(text, false);
    let mut parsed = None;
    if tree.is_none() {
        parsed = parse::<Scenario>(text, file, "cases", &required, &mut diagnostics);
        // The key may be written with escapes.
        tree = parsed.as_ref().filter(|parsed| names_table(parsed)).and_then(|_| document_with_tables(text, true));
    }
    let parsed = match tree {
        Some(tree) => with_tables(&tree, &required, around, &mut diagnostics),
        None => parsed.map(|parsed| (parsed, Tables::default())),
    };
    let cases = parsed.as_ref().map_or(0, |(parsed, _)| parsed.value.cases.len());
    if cases as u64 > Bound::Cases.most() {
        let message = format!("{cases} cases: a scenario has {} at most", Bound::Cases.shown());
        diagnostics.push(Diagnostic::error("too-large", file, message).with_help(Bound::Cases.advice()));
        return (None, diagnostics);
    }
    (parsed, diagnostics)
}

/// Checks a scenario for meaning.
pub(super) fn checked(
    parsed: ParsedScenario,
    text: &str,
    file: &str,
    around: check::Surroundings<'_>,
) -> (LoadedScenario, Vec<Diagnostic>) {
    let (mut parsed, tables) = parsed;
    let kept = parsed.kept(parsed.value.cases.len());
    let (mut mistakes, prompts) = check::scenario(&parsed.value, &kept, around);
    mistakes.extend(split_numbers(text));
    let (mistakes, mut diagnostics) = tables.diagnose(parsed.own(mistakes), file, text);
    diagnostics.extend(diagnose(mistakes, file, text));
    let case_places = case_places(text, &kept, &tables);
    parsed.value.settle_services();
    parsed.value.gates = parsed.value.all_gates(around.catalogues);
    let named = parsed.value.managed_retrieval.as_ref();
    let managed_retrieval =
        named.and_then(|name| Some((name.clone(), around.project.managed_retrieval.get(name)?.clone())));
    let (file, scenario, tables) = (file.to_owned(), parsed.value, tables.files());
    (LoadedScenario { file, scenario, case_places, tables, prompts, managed_retrieval }, diagnostics)
}

/// Positions where the cases with these indices begin.
fn case_places(text: &str, kept: &[usize], tables: &Tables) -> Vec<CasePlace> {
    let of_tables: Vec<Option<(String, u32)>> = tables.places(kept);
    let own: Vec<usize> = kept.iter().zip(&of_tables).filter(|(_, row)| row.is_none()).map(|(kept, _)| *kept).collect();
    let mut lines = case_lines(text, &own).into_iter();
    let place = |row: Option<(String, u32)>| match row {
        Some((table, line)) => CasePlace { table: Some(table), line },
        None => CasePlace { table: None, line: lines.next().unwrap_or(1) },
    };
    of_tables.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Project;
    use super::*;
    use std::path::Path;
    use std::sync::atomic::AtomicU64;

    const SOUND: &str = include_str!("../../tests/broken/project/scenarios/sound.yaml");

    fn examined(text: &str) -> (bool, Vec<Diagnostic>) {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broken/project"));
        let path = root.join("scenarios/sound.yaml");
        let (project, criteria) = (Project { knowledge: "knowledge".into(), ..Project::default() }, BTreeSet::new());
        let work = AtomicU64::new(0);
        let catalogues = crate::catalogues();
        let around = check::Surroundings {
            root,
            path: &path,
            project: &project,
            catalogues: &catalogues,
            criteria: &criteria,
            work: &work,
        };
        let size = AtomicU64::new(0);
        let (parsed, mut diagnostics) =
            parsed_scenario(Around { root, path: &path, file: "scenarios/sound.yaml", text, size: &size });
        let read = parsed.is_some();
        if let Some(parsed) = parsed {
            diagnostics.extend(checked(parsed, text, "scenarios/sound.yaml", around).1);
        }
        (read, diagnostics)
    }

    #[test]
    fn one_mistake_in_one_case_hides_nothing_of_the_others() {
        let text =
            SOUND.replacen("expect:", "expct:", 1).replace("{kind: response_missing}", "{knd: response_missing}");
        let codes: Vec<_> = examined(&text).1.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes.iter().filter(|code| **code == "unknown-key").count(), 2, "{codes:?}");
        assert!(codes.contains(&"unknown-provider"));
    }

    proptest::proptest! {
        #[test]
        fn damaged_files_give_diagnostics_inside_the_file_and_no_panic(
            from in 0..SOUND.len(), length in 0..40_usize, put in "[-a-z:{}\\[\\]&*!|>'\"# \n\t]{0,6}",
        ) {
            let (from, to) = (SOUND.floor_char_boundary(from), SOUND.floor_char_boundary((from + length).min(SOUND.len())));
            let text = format!("{}{put}{}", &SOUND[..from], &SOUND[to..]);
            let (read, diagnostics) = examined(&text);
            proptest::prop_assert!(read || !diagnostics.is_empty());
            for diagnostic in diagnostics {
                let place = diagnostic.place.expect("a place");
                proptest::prop_assert!(place.line >= 1 && place.column >= 1 && place.length >= 1);
                proptest::prop_assert!(place.line as usize <= text.lines().count() + 1);
            }
        }
    }
}
