//! `examples/four-systems`: a built-in flow and the same system outside, written with an official SDK, get the same verdict for
//! every criterion whose evidence traffic or spans show. The tables of `docs/why/inside-and-outside.md` say which these are.
//!
//! The built-in half runs everywhere. The other needs the SDKs, and Node 22.18 or later.

use super::super::project::{Outcome, copy};
use super::{sdk_python, sdks};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A system: its scenario, and the program that its `target.command` begins with.
const SYSTEMS: [(&str, &str); 4] =
    [("tool-rag", UVICORN), ("managed-rag", UVICORN), ("two-stage", NODE), ("react", NODE)];
const UVICORN: &str = ".venv/bin/uvicorn";
const NODE: &str = "node";

/// Verdicts by gate or case, each with its counts, or with the reason why nothing was measured.
type Verdicts = BTreeMap<String, (String, String)>;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/four-systems")
}

/// The rows of the table below the heading that names a system: what it lists, inside, outside, and why it is not measured.
fn table(system: &str) -> Vec<[String; 4]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/why/inside-and-outside.md");
    let text = fs::read_to_string(page).expect("the page");
    let (_, section) = text.split_once(&format!("\n## `{system}`")).expect(system);
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| {
        let cells: Vec<String> = row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        <[String; 4]>::try_from(cells).unwrap_or_else(|cells| panic!("four cells: {cells:?}"))
    };
    rows.map(cells).collect()
}

/// What the table says of all gates and cases, inside (1) or outside (2).
fn stated(system: &str, column: usize) -> Verdicts {
    let rows = table(system);
    let cell = |row: &[String; 4]| {
        let why = if row[column] == "NOT_MEASURED" { row[3].clone() } else { String::new() };
        (row[0].clone(), (row[column].clone(), why))
    };
    let stated: Verdicts = rows.iter().map(cell).collect();
    assert_eq!(stated.len(), rows.len(), "{system}: a row stands twice");
    stated
}

/// Runs one variant of a system's scenario, and reads the verdicts of its gates and cases.
fn run(system: &str, variant: &str, program: &str, env: &str) -> Verdicts {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = format!("scenarios/{system}.yaml");
    for part in ["scenarios", "knowledge", "cassettes", "agents"] {
        copy(&example().join(part), &folder.path().join(part));
    }
    fs::copy(example().join("ragcheck.yaml"), folder.path().join("ragcheck.yaml")).expect("ragcheck.yaml");
    let packages = folder.path().join("agents/node_modules");
    if let Some(sdks) = std::env::var_os("RAGCHECK_SDKS").filter(|_| !packages.exists()) {
        std::os::unix::fs::symlink(Path::new(&sdks).join("node_modules"), packages).expect("their packages");
    }
    let text = fs::read_to_string(folder.path().join(&scenario)).expect(system);
    let (_, begins_with) = SYSTEMS.iter().find(|(name, _)| *name == system).expect(system);
    let (old, new) = (format!("  command: {begins_with} "), format!("  command: {program} "));
    assert!(text.contains(&old), "{system}");
    let text = text.replace(&old, &new).replace("  env: {", &format!("  env: {{{env}"));
    fs::write(folder.path().join(&scenario), text).expect(system);
    let mut command = Command::new(crate::program::program());
    command.args(["run", &scenario, "--variant", variant]).current_dir(folder.path());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let outcome = Outcome::of(command.env("NO_COLOR", "1").env("RAGCHECK_NOW", "2026-12-01T00:00:00Z"));
    let run = fs::read_dir(folder.path().join("reports")).expect("reports").filter_map(Result::ok);
    let run = run.map(|entry| entry.path().join("run.json")).find(|file| file.exists());
    let run = run.unwrap_or_else(|| panic!("no run:\n{}{}", outcome.stdout, outcome.stderr));
    let run: serde_json::Value = serde_json::from_str(&fs::read_to_string(run).expect("run.json")).expect("JSON");
    let gates = run["gates"].as_array().expect("gates").iter();
    let of_gates = gates.map(|gate| {
        let text = |key: &str| gate[key].as_str().expect(key).to_owned();
        let stated = match text("verdict") {
            verdict if verdict == "NOT_MEASURED" => {
                (verdict, text("sentence").replace("nothing measured: ", "").replace('`', ""))
            }
            verdict => (format!("{verdict}, {} of {}", gate["successes"], gate["n"]), String::new()),
        };
        (text("id"), stated)
    });
    let trials = run["trials"].as_array().expect("trials").iter();
    let of_cases = trials.map(|trial| {
        let text = |key: &str| trial[key].as_str().expect(key).to_owned();
        (text("case"), (text("verdict"), String::new()))
    });
    of_gates.chain(of_cases).collect()
}

#[test]
fn the_project_is_sound_and_every_lane_has_its_recording() {
    let checked = ragcheck::internals::cli::check::check(&example(), &[], None, None);
    assert!(checked.diagnostics.is_empty(), "{}", checked.text(false));
    let lanes = |place: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(place).expect("a folder").filter_map(Result::ok).map(|entry| entry.path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect()
    };
    for (system, _) in SYSTEMS {
        let cases = fs::read_dir(example().join("cassettes").join(system)).expect(system).filter_map(Result::ok);
        for case in cases.map(|entry| entry.path()).filter(|path| path.file_name().is_some_and(|name| name != "blobs"))
        {
            let recorded = lanes(&case);
            assert_eq!(recorded.len(), 2, "{}", case.display());
            for lane in recorded {
                let text = fs::read_to_string(&lane).expect("a lane");
                let from = text.split("recorded_from:").nth(1).unwrap_or_default();
                let from = from.lines().skip(1).take_while(|line| line.starts_with("  ")).collect::<Vec<_>>();
                assert!(!from.is_empty() && from.iter().all(|line| line.ends_with("\"simulator\"")), "{from:?}");
            }
        }
    }
}

#[test]
fn what_both_show_is_the_same_and_the_rest_is_listed_with_its_reason() {
    for (system, _) in SYSTEMS {
        for [row, inside, outside, why] in table(system) {
            if outside == "NOT_MEASURED" {
                assert!(!why.is_empty(), "{system} {row}: no reason");
            } else {
                let verdict = |cell: &str| cell.split(',').next().unwrap_or_default().to_owned();
                assert_eq!(verdict(&outside), verdict(&inside), "{system} {row}");
                assert_eq!(outside == inside, why.is_empty(), "{system} {row}: other counts have a reason");
            }
        }
    }
}

#[test]
fn the_built_in_flows_get_the_verdicts_that_the_tables_state() {
    for (system, program) in SYSTEMS {
        assert_eq!(run(system, "inside", program, ""), stated(system, 1), "{system}");
    }
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_the_systems_outside_get_the_verdicts_that_the_tables_state() {
    let (uvicorn, node) = (format!("{} -m uvicorn", sdk_python()), sdks().join("node").display().to_string());
    for (system, program) in SYSTEMS {
        let program = if program == NODE { &node } else { &uvicorn };
        assert_eq!(run(system, "outside", program, ""), stated(system, 2), "{system}");
    }
    // Without its instrumentation, a system says of each criterion that spans show what it lacks and what would show it.
    for (system, program) in [("tool-rag", &uvicorn), ("react", &node)] {
        let (silent, stated) = (run(system, "outside", program, "OTEL_SDK_DISABLED: 'true', "), stated(system, 2));
        let lost: Vec<&String> = silent
            .iter()
            .filter(|(name, (verdict, why))| {
                let known = &stated[*name];
                let is_lost = verdict == "NOT_MEASURED" && known.0 != "NOT_MEASURED";
                // A case that expects what is not shown is an ERROR with the reason, and so is the share of such cases.
                let of_cases = verdict.starts_with("ERROR") && (known.0 == "PASS" || *name == "cases");
                let is_same = (verdict, why) == (&known.0, &known.1) || verdict == "NOT_MEASURED" && !is_lost;
                assert!(is_lost || of_cases || is_same, "{name}: {verdict} {why}, {known:?}");
                assert!(
                    !is_lost || why.contains("spans of its work are missing") && why.contains(" would"),
                    "{name}: {why}"
                );
                is_lost
            })
            .map(|(name, _)| name)
            .collect();
        let all = if system == "react" { vec!["five-steps", "searched"] } else { vec!["SC-001", "SC-002", "SC-006"] };
        assert!(all.iter().all(|one| lost.iter().any(|name| name == one)), "{system}: {lost:?}");
    }
}

#[test]
fn recorded_spans_of_instrumented_systems_agree_with_the_traffic_beside_them() {
    for (system, search, roles) in [
        ("tool-rag", "knowledge_base_search", ["perplexity_search", "index_keywords", "generate_response"]),
        ("react", "search_documents_for_facts", ["assess_search_results", "record_failure_analysis", ""]),
    ] {
        let cases = fs::read_dir(example().join("cassettes").join(system)).expect(system).filter_map(Result::ok);
        for lane in cases.map(|case| case.path().join("external.outside.1.yaml")).filter(|lane| lane.exists()) {
            let text = fs::read_to_string(&lane).expect("a lane");
            let spans = text.split("\nspans:\n").nth(1).unwrap_or_else(|| panic!("no spans: {}", lane.display()));
            let spans: Vec<&str> = spans.lines().take_while(|line| line.starts_with("  ")).collect();
            let lines = |begin: &str| {
                let begins = |line: &&&str| line.trim_start_matches(['-', ' ', '\'', '"']).starts_with(begin);
                spans.iter().filter(begins).count()
            };
            let asked = text.matches("\n    service: \"model\"\n").count();
            assert_eq!(lines("completion"), asked, "{}", lane.display());
            let ran = [&[search], roles.as_slice()].concat();
            let runs: usize =
                ran.iter().filter(|tool| !tool.is_empty()).map(|tool| lines(&format!("tool {tool} "))).sum();
            assert_eq!(lines("tool "), runs, "{}", lane.display());
            assert!(lines("search ") <= lines(&format!("tool {search} ")), "{}", lane.display());
        }
    }
}
