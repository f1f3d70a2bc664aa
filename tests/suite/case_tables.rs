//! Cases from tables: they are the cases that a person would have written, cells are data, and empty ones leave out what
//! they would fill.

use super::project::copy;
use ragcheck::internals::cli::schema;
use ragcheck::internals::plan::{self, Selection};
use ragcheck::internals::scenario::{self, Case, Loaded};
use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "scenario: made\nflow: tool-rag\nknowledge: garden\nmodel: {provider: chat, name: small}\ncases:\n";

/// A copy of `tests/broken/project` with one scenario, `made.yaml`, and these files beside it.
fn project(cases: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken/project"), folder.path());
    let scenarios = folder.path().join("scenarios");
    fs::remove_file(scenarios.join("sound.yaml")).expect("the sound scenario");
    fs::write(scenarios.join("made.yaml"), format!("{HEAD}{cases}")).expect("written");
    for (name, text) in files {
        fs::write(scenarios.join(name), text).expect("written");
    }
    folder
}

fn load(cases: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Loaded) {
    let folder = project(cases, files);
    let loaded = scenario::load(
        folder.path(),
        &[PathBuf::from("scenarios/made.yaml")],
        None,
        &ragcheck::internals::catalogues(),
    );
    (folder, loaded.unwrap_or_else(|told| panic!("{told:#?}")))
}

fn cases(cases: &str, files: &[(&str, &str)]) -> Vec<Case> {
    load(cases, files).1.scenarios.remove(0).scenario.cases
}

const TEMPLATE: &str = r#"
  - table: {file: TABLE, lists: {documents: ;, tags: "|"}}
    case: "q-{{ id }}"
    about: "{{about}}"
    tags: "{{ tags }}"
    repeat: "{{ often }}"
    ask: "{{ question }}"
    expect:
      answer: {contains: ["{{ fact }}", moist], not_contains: ["{{ wrong }}"], cites: "{{ documents }}", refusal: "{{ refuses }}"}
      calls:
        - superset: [{tool: knowledge_base_search, arguments: {top_k: {equals: "{{ top }}"}}}, generate_response]
        - never: {tool: perplexity_search, arguments: {query: {matches: "{{ secret }}"}}}
      within: "{{ limit }}"
"#;

const WRITTEN: &str = r#"
  - case: q-1
    about: 'First, "quoted"'
    tags: [wet, dry]
    repeat: 2
    ask: "Is {{ id }} a column?\n[no, list]: &x"
    expect:
      answer: {contains: ["12", moist], not_contains: ["null"], cites: [compost, "compost#1"], refusal: false}
      calls:
        - superset: [{tool: knowledge_base_search, arguments: {top_k: {equals: 5}}}, generate_response]
        - never: {tool: perplexity_search, arguments: {query: {matches: beer}}}
      within: 10s
  - case: q-2
    ask: Two?
    expect:
      answer: {contains: [moist]}
"#;

#[test]
fn a_table_makes_the_cases_that_a_person_would_have_written() {
    let csv = "id,about,tags,often,question,fact,wrong,documents,refuses,top,secret,limit\n\
        1,\"First, \"\"quoted\"\"\",wet| dry,2,\"Is {{ id }} a column?\r\n[no, list]: &x\",12,null,compost; compost#1;,false,5,beer,10s\r\n\
        2,,,,Two?,,,,,,,\n";
    let jsonl = concat!(
        r#"{"id": 1, "about": "First, \"quoted\"", "tags": ["wet", "dry"], "often": 2, "question": "Is {{ id }} a column?\n[no, list]: &x","#,
        r#" "fact": 12, "wrong": "null", "documents": "compost;compost#1", "refuses": false, "top": 5, "secret": "beer", "limit": "10s"}"#,
        "\n\n",
        r#"{"id": "2", "question": "Two?", "fact": null, "documents": []}"#,
    );
    let written = cases(WRITTEN, &[]);
    for (name, text) in [("t.csv", csv), ("t.jsonl", jsonl)] {
        let made = cases(&TEMPLATE.replace("TABLE", name), &[(name, text)]);
        assert_eq!(made, written, "{name}");
    }
}

#[test]
fn an_entry_of_expect_that_loses_a_key_goes_as_a_whole_and_a_turn_whose_cells_are_empty_too() {
    let template = r#"
  - table: t.csv
    case: "{{ id }}"
    turns:
      - ask: "{{ first }}"
        expect: {answer: {nuggets: [{any_of: ["{{ fact }}", "{{ other }}"]}, {any_of: ["{{ last }}"]}], contains: [heap]}}
      - ask: "{{ second }}"
        expect: {answer: {contains: ["{{ answer }}"]}}
"#;
    let csv = "id,first,fact,other,last,second,answer\na,One?,1,,,,\nb,One?,,,3,Two?,two\n";
    let written = "
  - case: a
    turns:
      - ask: One?
        expect: {answer: {nuggets: [{any_of: ['1']}], contains: [heap]}}
  - case: b
    turns:
      - ask: One?
        expect: {answer: {nuggets: [{any_of: ['3']}], contains: [heap]}}
      - ask: Two?
        expect: {answer: {contains: [two]}}
";
    assert_eq!(cases(template, &[("t.csv", csv)]), cases(written, &[]));
}

#[test]
fn values_of_json_lines_may_be_whole_expectations_and_are_held_against_the_schema() {
    let template = "\n  - {table: t.jsonl, case: \"{{ id }}\", ask: \"{{ ask }}\", expect: \"{{ expect }}\"}\n";
    let made =
        cases(template, &[("t.jsonl", "{\"id\": \"a\", \"ask\": \"One?\", \"expect\": {\"within\": \"10s\"}}\n")]);
    assert_eq!(made, cases("\n  - {case: a, ask: One?, expect: {within: 10s}}\n", &[]));
    let folder =
        project(template, &[("t.jsonl", "{\"id\": \"a\", \"ask\": \"One?\", \"expect\": {\"wthin\": \"10s\"}}\n")]);
    let told = ragcheck::internals::cli::check::check(folder.path(), &[], None, None).text(false);
    assert!(told.contains("unknown key `wthin`") && told.contains("made.yaml:7:66"), "{told}");
}

#[test]
fn cases_of_tables_and_of_the_file_stand_in_its_order_with_their_places_and_braces_elsewhere_stay() {
    let (folder, loaded) = load(
        "  - {case: first, ask: 'What is {{ id }}, and {message}?', expect: {within: 10s}}\n  - table: t.csv\n    case: \"{{ id }}\"\n    ask: \"{{ q }}\"\n    \
         expect: {within: 10s}\n  - {case: last, ask: Last?, expect: {within: 10s}}\n",
        &[("t.csv", "id,q\nb,\"One\ntwo\"\nc,Three\n")],
    );
    let plan = plan::build(&loaded, &Selection::default(), 1).expect("a plan");
    let places: Vec<(&str, Option<&str>, u32)> = plan.scenarios[0]
        .cases
        .iter()
        .map(|planned| (planned.case.case.as_str(), planned.table.as_deref(), planned.line))
        .collect();
    let table = Some("scenarios/t.csv");
    assert_eq!(places, [("first", None, 6), ("b", table, 2), ("c", table, 4), ("last", None, 11)]);
    assert_eq!(loaded.scenarios[0].scenario.cases[0].ask.as_deref(), Some("What is {{ id }}, and {message}?"));
    assert_eq!(loaded.scenarios[0].tables.iter().collect::<Vec<_>>(), ["scenarios/t.csv"]);
    drop(folder);
}

#[test]
fn a_key_spelt_with_escapes_is_a_table_too_and_no_case_is_run_as_its_template() {
    let made = cases(
        "  - {\"t\\x61ble\": t.csv, case: \"{{ id }}\", ask: \"{{ id }}?\", expect: {within: 10s}}\n",
        &[("t.csv", "id\na\nb\n")],
    );
    assert_eq!(made.iter().map(|case| case.case.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_case_that_multiplies_its_table_is_refused_before_it_fills_the_memory() {
    let cells = "\"{{ big }}\", ".repeat(2_000);
    let template = format!(
        "  - {{table: t.csv, case: \"{{{{ id }}}}\", ask: One?, expect: {{answer: {{contains: [{cells}]}}}}}}\n"
    );
    let folder = project(&template, &[("t.csv", &format!("id,big\na,{}\n", "x".repeat(100_000)))]);
    let told = ragcheck::internals::cli::check::check(folder.path(), &[], None, None).text(false);
    assert!(told.contains("larger than 16 MiB together") && told.contains("--limit scenarios-size=32MiB"), "{told}");
    let rows: Vec<String> = (0..10_001).map(|row| format!("r{row}")).collect();
    let folder = project(
        "  - {table: t.csv, case: \"{{ id }}\", ask: One?, expect: {within: 10s}}\n",
        &[("t.csv", &format!("id\n{}\n", rows.join("\n")))],
    );
    let told = ragcheck::internals::cli::check::check(folder.path(), &[], None, None).text(false);
    assert!(told.contains("more than 10000 cases") && told.contains("--limit cases=20000"), "{told}");
    let folder = project(
        "  - {table: t.csv, case: \"{{ id }}\", ask: One?, expect: {within: 10s}}\n",
        &[("t.csv", &format!("id,q\na,{}\n", "x".repeat(5 << 20)))],
    );
    let told = ragcheck::internals::cli::check::check(folder.path(), &[], None, None).text(false);
    assert!(told.contains("larger than 4 MiB"), "{told}");
}

#[test]
fn of_ten_thousand_wrong_rows_a_hundred_are_listed_and_a_mistake_of_the_template_once() {
    let rows: Vec<String> = (0..9_000).map(|row| format!("R{row},(")).collect();
    let folder = project(
        "  - {table: t.csv, case: \"{{ id }}\", ask: One?, expect: {answer: {matches: [\"{{ q }}\", \"a)\"]}}}\n",
        &[("t.csv", &format!("id,q\n{}\n", rows.join("\n")))],
    );
    let checked = ragcheck::internals::cli::check::check(folder.path(), &[], None, None);
    let in_table = checked.diagnostics.iter().filter(|one| one.file.ends_with("t.csv")).count();
    let in_scenario = checked
        .diagnostics
        .iter()
        .filter(|one| one.message == "not a regular expression" && one.file.ends_with("made.yaml"))
        .count();
    assert!(in_table <= 102 && checked.text(false).contains("more mistakes from here on"), "{in_table}");
    assert_eq!(in_scenario, 1);
}

#[test]
fn the_shipped_table_is_sound_and_replays() {
    let project = super::project::Project::shipped();
    let criteria = "scenarios/case-table/criteria.yaml";
    let checked = project.run(&["check", "scenarios/case-table", "--criteria", criteria]);
    assert!(checked.stdout.starts_with("0 errors, 0 notes"), "{}", checked.stdout);
    project.run(&["run", "scenarios/case-table", "--criteria", criteria, "--no-history"]).expect_code(0);
}

#[test]
fn a_template_with_columns_for_numbers_and_lists_is_valid_against_the_schema_for_editors() {
    let text = schema::text("scenario").expect("a schema");
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    let document = serde_json::from_str(&text).expect("JSON");
    compiler.add_resource("schema://scenario/", document).expect("an address");
    let index = compiler.compile("schema://scenario/", &mut schemas).expect("a schema");
    let valid = |text: &str| {
        let value: serde_json::Value = serde_saphyr::from_str(text).expect("YAML");
        schemas.validate(&value, index).map_err(|error| format!("{error:#}"))
    };
    let template = format!("{HEAD}{}", TEMPLATE.replace("TABLE", "t.csv"));
    valid(&template).expect("a valid template");
    assert!(valid(&template.replace("\"{{ often }}\"", "often")).is_err());
    assert!(valid(&template.replace("    within:", "    wthin:")).is_err());
}
