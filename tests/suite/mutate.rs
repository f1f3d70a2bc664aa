//! `ragcheck mutate`: evidence of a green run is removed or bent, and what notices it is named; a case that asserts nothing is found,
//! and the report shows how each requirement is shown.

use super::project::Project;
use super::schemas::printed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const NOT_EXAMINED: &str = "not examined: ragcheck mutate";

fn mutants(project: &Project, run: &str) -> Value {
    printed(project, &["mutate", run])
}

fn silent(found: &Value, case: &str) -> Vec<(String, String)> {
    let rows = found["silent"].as_array().expect("a list").iter().filter(|row| row["case"] == case);
    let text = |row: &Value, key: &str| row[key].as_str().expect(key).to_owned();
    rows.map(|row| (text(row, "defect"), text(row, "lines"))).collect()
}

#[test]
fn the_shipped_scenarios_notice_defects_of_what_they_are_for_and_the_report_shows_the_requirements() {
    let project = Project::shipped();
    // A requirement that names neither evidence nor a test.
    let named = ", tests: ['flow::template::tests::a_template_that_a_plan_stores_reads_back_as_it_was']";
    project.edit("ragcheck.yaml", named, "");
    let scenarios =
        ["external", "keywords", "react", "react-prompts", "two-stage"].map(|name| format!("scenarios/{name}.yaml"));
    let arguments: Vec<&str> =
        ["run", "--no-history"].into_iter().chain(scenarios.iter().map(String::as_str)).collect();
    project.run(&arguments).expect_code(0);
    let folder = project.newest();
    let evidence =
        |project: &Project| ["plan.json", "traces.jsonl"].map(|file| project.read(&format!("{folder}/{file}")));
    let states = |project: &Project| -> BTreeMap<String, String> {
        let text = project.read(&format!("{folder}/requirements.csv"));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        reader.records().map(|row| row.expect("a row")).map(|row| (row[0].to_owned(), row[3].to_owned())).collect()
    };
    let before = evidence(&project);
    let bytes = project.report(&folder);
    assert!(states(&project).values().all(|state| state == NOT_EXAMINED), "{:?}", states(&project));
    assert!(project.read(&format!("{folder}/index.html")).contains(NOT_EXAMINED));
    let found = mutants(&project, &folder);
    assert!(evidence(&project) == before, "evidence is only read");
    // The report has the states, and the same bytes whichever command makes it.
    let now = states(&project);
    assert_eq!([&now["FR-004"], &now["KL-8.5"]], ["asserted", "recorded only"]);
    assert!(
        project.latest("run.json")["requirements"].as_array().expect("rows").iter().all(|row| row["state"].is_string())
    );
    let page = project.read(&format!("{folder}/index.html"));
    assert!(page.contains("named only, which is not covered") && !page.contains(NOT_EXAMINED));
    let examined = project.report(&folder);
    project.run(&["score", &folder]).expect_code(0);
    assert!(project.report(&folder) == examined, "score makes the same bytes");
    // A file of another plan, and one that was edited, say nothing.
    let file = format!("{folder}/mutants.json");
    let text = project.read(&file);
    for broken in
        [text.replace("named_only", "asserted"), text.replace("\"version\": 1", "\"version\": 99"), "{".into()]
    {
        project.write(&file, &broken);
        project.run(&["score", &folder]).expect_code(0);
        assert!(states(&project).values().all(|state| state == NOT_EXAMINED));
    }
    std::fs::remove_file(project.path(&file)).expect("removed");
    project.run(&["score", &folder]).expect_code(0);
    let without = |files: Vec<(String, Vec<u8>)>| -> Vec<(String, Vec<u8>)> {
        files.into_iter().filter(|(name, _)| name != "own-files.json").collect()
    };
    assert!(without(project.report(&folder)) == without(bytes), "without the file, the report is as before");
    let rows = found["defects"].as_array().expect("rows");
    for row in rows {
        let number = |key: &str| row[key].as_u64().expect(key);
        assert_eq!(number("by_expectations") + number("by_criteria") + number("unnoticed"), number("trials"), "{row}");
        assert!(number("trials") > 0, "{row}");
    }
    let of = |name: &str| rows.iter().find(|row| row["defect"] == name).unwrap_or_else(|| panic!("{name}"));
    for lethal in
        ["search-dropped", "external-dropped", "answer-lost", "error-became-answer", "fact-added", "log-emptied"]
    {
        assert_eq!(of(lethal)["unnoticed"], 0, "{}", of(lethal));
    }
    assert!(of("answer-lost")["by_expectations"] == of("answer-lost")["trials"], "an answer is always expected");
    assert!(of("call-doubled")["unnoticed"].as_u64() > Some(0), "few cases count calls, which is the finding");
    // A requirement is asserted where its cases notice what takes its evidence away.
    let state = |id: &str| {
        let all = found["requirements"].as_array().expect("requirements");
        let one = all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id}"));
        one["state"].as_str().expect("a state").to_owned()
    };
    assert_eq!([state("FR-004"), state("SC-003"), state("TT-5")], ["asserted"; 3].map(str::to_owned));
    assert_eq!([state("KL-8.5"), state("KL-2.2")], ["recorded_only", "tested_outside_runs"].map(str::to_owned));
    // The scenario that covers it did not run.
    assert_eq!(state("NU-4.4"), "named_only");
}

#[test]
fn a_case_that_asserts_nothing_is_found_with_the_lines_to_add() {
    const CASE: &str = "external/feed-in-tariff";
    let project = Project::shipped();
    let run = |project: &Project| {
        let outcome = project.run(&["run", "scenarios/external.yaml", "--only", "feed-in-tariff", "--no-history"]);
        assert!(outcome.stdout.contains("PASS"), "{}{}", outcome.stdout, outcome.stderr);
        mutants(project, &project.newest())
    };
    let defects = |found: &Value| silent(found, CASE).into_iter().map(|(defect, _)| defect).collect::<Vec<_>>();
    let before = defects(&run(&project));
    for asserted in ["external-dropped", "answer-replaced"] {
        assert!(!before.contains(&asserted.to_owned()), "{asserted}: {before:?}");
    }
    // The same case with an expectation that nearly any answer meets.
    let text = project.read("scenarios/external.yaml");
    let from = text.find("  - case: feed-in-tariff").expect("the case");
    let begin = from + text[from..].find("    expect:").expect("its expectations");
    let end = begin + text[begin..].find("  - case: ").expect("the next case");
    let bare = "    expect: {answer: {not_contains: [no such words]}}\n";
    project.write("scenarios/external.yaml", &format!("{}{bare}{}", &text[..begin], &text[end..]));
    let found = run(&project);
    let after = silent(&found, CASE);
    let lines = |defect: &str| after.iter().find(|(name, _)| name == defect).map(|(_, lines)| lines.as_str());
    for defect in ["external-dropped", "answer-replaced", "number-changed", "citation-shifted", "order-swapped"] {
        assert!(lines(defect).is_some(), "{defect}: {after:?}");
    }
    assert_eq!(lines("external-dropped"), Some("calls: [{superset: [perplexity_search]}]"));
    assert_eq!(lines("answer-lost"), None, "an answer is always expected");
    let human = project.run(&["mutate", &project.newest()]);
    assert!(
        human.stdout.contains("This case asserts nothing about the search service (external-dropped):"),
        "{}",
        human.stdout
    );
}

#[test]
fn whole_lines_that_are_proposed_hold_on_the_run_that_they_were_made_of() {
    let project = Project::starter();
    let run = |project: &Project| project.run(&["run", "--no-history"]);
    run(&project).expect_code(0);
    let found = mutants(&project, &project.newest());
    let silent = found["silent"].as_array().expect("a list");
    // One of the two variants tries again, so the line of a case holds in some of its trials.
    let lines = |defect: &str| silent.iter().find(|row| row["defect"] == defect).map(|row| row["lines"].clone());
    assert_eq!(lines("retries-in-vain"), Some(Value::from("")));
    let human = project.run(&["mutate", &project.newest(), "--all"]);
    assert!(human.stdout.contains("no line holds in all"), "{}", human.stdout);
    let scenario = "scenarios/questions.yaml";
    let sound = project.read(scenario);
    let whole = |row: &&Value| {
        let lines = row["lines"].as_str().expect("lines");
        !lines.is_empty()
            && !lines
                .split(|one: char| !one.is_alphanumeric())
                .any(|word| word == word.to_uppercase() && word != word.to_lowercase())
    };
    let mut tried = 0;
    for row in silent.iter().filter(whole) {
        let text = |key: &str| row[key].as_str().expect(key);
        let case = text("case").rsplit('/').next().expect("a case");
        let begin = sound.find(&format!("  - case: {case}\n")).expect("the case");
        let block =
            sound[begin..].find("    expect:\n").map(|at| begin + at + "    expect:\n".len()).expect("its block");
        let (name, _) = text("lines").split_once(':').expect("a key");
        // A key that is there already would be there twice.
        let end = sound[block..].find("  - case:").map_or(sound.len(), |at| block + at);
        if sound[block..end].contains(&format!("      {name}:")) {
            continue;
        }
        project.write(scenario, &format!("{}      {}\n{}", &sound[..block], text("lines"), &sound[block..]));
        let outcome = run(&project);
        assert_eq!(outcome.code, 0, "{case}: {}: {}{}", text("lines"), outcome.stdout, outcome.stderr);
        tried += 1;
    }
    assert!(tried > 0, "{silent:?}");
}

/// The text of the file that holds a test, by its path in this binary or in the library.
fn text_of(modules: &[&str], test: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inline = modules.strip_suffix(&["tests"]).unwrap_or(modules);
    let stems = [modules, inline].map(|path| path.join("/"));
    let places = ["tests/suite", "src"]
        .into_iter()
        .flat_map(|folder| stems.iter().map(move |stem| root.join(folder).join(stem)));
    let files = places.flat_map(|stem| [stem.with_extension("rs"), stem.join("mod.rs")]);
    files.filter_map(|file| std::fs::read_to_string(file).ok()).find(|text| text.contains(&format!("fn {test}(")))
}

#[test]
fn each_test_that_a_requirement_names_exists_and_each_defect_too() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ragcheck.yaml")).expect("the project");
    let project: Value = serde_saphyr::from_str(&text).expect("YAML");
    let requirements = project["requirements"].as_object().expect("requirements");
    let defects =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite/mutation/defects/mod.rs"))
            .expect("the table");
    let mut tests = 0;
    for (id, requirement) in requirements {
        let names =
            |key: &str| requirement[key].as_array().into_iter().flatten().map(|name| name.as_str().expect("a name"));
        for name in names("tests") {
            let path: Vec<&str> = name.split("::").collect();
            let (test, modules) = path.split_last().expect("a name");
            let text = text_of(modules, test).unwrap_or_else(|| panic!("{id}: there is no test {name}"));
            let at = text.find(&format!("fn {test}(")).expect("found before");
            let attributes: Vec<&str> = text[..at].lines().rev().take(4).collect();
            assert!(
                attributes.iter().any(|line| line.contains("test]") || line.contains("::test(")),
                "{id}: {name} is no test: {attributes:?}"
            );
            assert!(!attributes.iter().any(|line| line.contains("#[ignore")), "{id}: {name} does not always run");
            tests += 1;
        }
        for name in names("evidence") {
            assert!(defects.contains(&format!("\"{name}\",")), "{id}: no defect is called {name}");
        }
    }
    assert!(tests > 20, "{tests}");
}
