//! The committed JSON Schemas are those of the types, and what is sound is valid against them. `UPDATE=1` renews.

use ragcheck::internals::cli::schema;
use std::fs;
use std::path::Path;

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for document in schema::DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{document}.json"));
        let now = schema::text(document).expect("a schema");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).expect("the schema");
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, now, "schema/{document}.json is out of date: run the tests once with UPDATE=1");
    }
}

#[test]
fn the_reference_pages_are_those_of_the_schemas() {
    for document in schema::DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/reference/{document}.md"));
        let now = schema::page(document).expect("a page");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).expect("the page");
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(committed, now, "docs/reference/{document}.md is out of date: run the tests once with UPDATE=1");
    }
}

#[test]
fn the_shipped_behaviour_files_are_valid_against_their_schema_and_every_mistake_is_told_at_once() {
    let text = schema::text("behaviour").expect("a schema");
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    compiler.add_resource("schema://behaviour/", serde_json::from_str(&text).expect("JSON")).expect("an address");
    let index = compiler.compile("schema://behaviour/", &mut schemas).expect("a schema");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["fixtures/simulator/fernlight.yaml", "src/cli/starter/project/simulator/behaviour.yaml"] {
        let text = fs::read_to_string(root.join(file)).expect(file);
        let value: serde_json::Value = serde_saphyr::from_str(&text).expect(file);
        if let Err(error) = schemas.validate(&value, index) {
            panic!("{file}: {error:#}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("broken.yaml"),
        "name: broken\nseed: one\nsped: 2\nmodel: {latency: {constant: 1s}, topk: 3}\nsearch: {latency: {constant: 1s}}\n",
    )
    .expect("written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ragcheck"));
    let told = super::project::Outcome::of(command.args(["simulate", "broken.yaml"]).current_dir(folder.path()));
    told.expect_code(2);
    for words in ["broken.yaml:2:", "sped", "topk"] {
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    }
    fs::write(
        folder.path().join("values.yaml"),
        "name: Big Name\nseed: 1\nmodel: {latency: {constant: 1}, recall: ['(']}\nsearch: {latency: {constant: 1s}, failures: [{when: {asks: '(tide'}, \
         status: 200, times: often}]}\n",
    )
    .expect("written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ragcheck"));
    let told = super::project::Outcome::of(command.args(["simulate", "values.yaml"]).current_dir(folder.path()));
    told.expect_code(2);
    for words in [
        "values.yaml:1:7",
        "values.yaml:3:29",
        "no length of time",
        "values.yaml:3:42",
        "unclosed group",
        "values.yaml:4:60",
        "between 400 and 599",
        "or `always`",
    ] {
        assert!(told.stderr.contains(words), "{words}: {}", told.stderr);
    }
}

#[test]
fn a_scenario_that_loads_is_valid_against_its_schema_and_a_misspelt_flow_is_not() {
    let text = schema::text("scenario").expect("a schema");
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    let document = serde_json::from_str(&text).expect("JSON");
    compiler.add_resource("schema://scenario/", document).expect("an address");
    let index = compiler.compile("schema://scenario/", &mut schemas).expect("a schema");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken/project");
    let loaded = ragcheck::internals::scenario::load(&root, &[], None, &ragcheck::internals::catalogues())
        .expect("a sound project");
    let mut scenario = serde_json::to_value(&loaded.scenarios[0].scenario).expect("JSON");
    if let Err(error) = schemas.validate(&scenario, index) {
        panic!("{error:#}");
    }
    scenario["flow"] = "tool-rga".into();
    assert!(schemas.validate(&scenario, index).is_err());
}
