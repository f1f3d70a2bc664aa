//! The committed JSON Schemas are those of the types, and what is sound is valid against them: files that people write,
//! and the data of a run folder. `UPDATE=1` renews.

use super::project::{Project, whole};
use crate::program::program;
use ragcheck::internals::cli::schema;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for document in schema::DOCUMENTS.into_iter().chain(schema::PRINTED) {
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
fn the_reference_pages_are_those_of_the_schemas_and_of_the_columns() {
    for document in schema::DOCUMENTS.into_iter().chain(["csv"]) {
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
fn the_page_of_what_a_command_prints_has_its_name() {
    for document in schema::PRINTED {
        let page = schema::page(document).expect("a page");
        assert!(page.starts_with(&format!("# {document} --")), "{document}: {:?}", page.lines().next());
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
    let mut command = std::process::Command::new(program());
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
    let mut command = std::process::Command::new(program());
    let told = super::project::Outcome::of(command.args(["simulate", "values.yaml"]).current_dir(folder.path()));
    told.expect_code(2);
    for words in [
        "values.yaml:1:7", "values.yaml:3:29", "is not a duration", "values.yaml:3:42", "unclosed group",
        "values.yaml:4:60", "between 400 and 599", "or `always`",
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

/// What a command prints as JSON, which has to be valid against the schema of its name, each member of it described.
pub fn printed(project: &Project, arguments: &[&str]) -> Value {
    valid(arguments[0], &project.run(&[arguments, &["--format", "json"]].concat()).stdout)
}

/// That JSON of a document is valid against its schema, and all of it is described there.
pub fn valid(document: &str, text: &str) -> Value {
    let value = serde_json::from_str(text).unwrap_or_else(|why| panic!("{document}: {why}: {text}"));
    if let Some(why) = violations(document, &value, true) {
        panic!("{document}: {why}");
    }
    value
}

/// The violations of a document's schema by a value; with `strict`, members that the schema does not name are
/// violations too.
fn violations(document: &str, value: &Value, strict: bool) -> Option<String> {
    let mut schema: Value = serde_json::from_str(&schema::text(document).expect("a schema")).expect("JSON");
    if strict {
        close(&mut schema);
    }
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    compiler.add_resource("schema://data/", schema).expect("an address");
    let index = compiler.compile("schema://data/", &mut schemas).expect("a schema");
    schemas.validate(value, index).err().map(|error| format!("{error:#}"))
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object) && !members.contains_key("additionalProperties")
            {
                members.insert("additionalProperties".into(), false.into());
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn every_file_of_the_shipped_run_is_valid_against_its_schema_and_every_member_is_in_it() {
    let (project, _) = whole();
    for (document, file) in [("run", "run.json"), ("plan", "plan.json")] {
        assert_eq!(violations(document, &project.latest(file), true), None, "{file}");
    }
    let traces = project.traces();
    assert!(traces.len() > 500, "{}", traces.len());
    let lines: serde_json::Map<String, Value> =
        traces.into_iter().enumerate().map(|(line, trace)| (line.to_string(), trace)).collect();
    let mut schema: Value = serde_json::from_str(&schema::text("events").expect("a schema")).expect("JSON");
    close(&mut schema);
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    compiler.add_resource("schema://trace/", schema).expect("an address");
    let index = compiler.compile("schema://trace/", &mut schemas).expect("a schema");
    for (line, trace) in &lines {
        if let Err(error) = schemas.validate(trace, index) {
            panic!("trace {line}: {error:#}");
        }
    }
}

#[test]
fn an_exit_code_that_a_comparison_decided_is_valid_against_its_schema() {
    let project = Project::shipped();
    let run = ["run", "scenarios/context.yaml", "--no-history"];
    project.run(&run).expect_code(0);
    project.run(&["compare", "reports/latest", "--save", "baseline.json"]).expect_code(0);
    project.run(&[&run[..], &["--baseline", "baseline.json", "--fail-on", "flip"]].concat()).expect_code(0);
    let decided = project.latest("exit-code.json");
    assert_eq!(violations("exit-code", &decided, true), None, "{decided}");
    let mut bent = decided;
    bent["exit_code"] = "0".into();
    assert!(violations("exit-code", &bent, false).is_some());
}

#[test]
fn a_file_with_a_bent_member_is_not_valid_against_its_schema() {
    let (project, _) = whole();
    let bent = |document: &str, value: &Value, pointer: &str, new: Option<Value>| {
        let mut value = value.clone();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let members = value.pointer_mut(parent).and_then(Value::as_object_mut).expect(pointer);
        assert!(members.remove(name).is_some(), "{document}: {pointer}");
        members.extend(new.map(|new| (name.to_owned(), new)));
        assert!(violations(document, &value, false).is_some(), "{document}: {pointer}");
    };
    let (run, plan) = (project.latest("run.json"), project.latest("plan.json"));
    for (pointer, new) in [
        ("/criteria/0/verdict", Some("PASSED".into())),
        ("/criteria/0/interval", Some(json!([0.5, 0.9]))),
        ("/trials/0/retries", Some(json!([0, 0, 0]))),
        ("/trials/0/retries/tool", None),
        ("/transitions/0/taken/0/times", None),
        ("/conclusion", None),
    ] {
        bent("run", &run, pointer, new);
    }
    for (pointer, new) in [
        ("/trials/0/lane/repetition", Some("first".into())),
        ("/scenarios/0/cases/0/case/steps", None),
        ("/machines", Some(json!({"tool-rag": {"initial": "start"}}))),
    ] {
        bent("plan", &plan, pointer, new);
    }
    let trace = project.traces().into_iter().next().expect("a trace");
    for (pointer, new) in [
        ("/events/0/at_us", Some((-1).into())),
        ("/events/0/what", Some(json!({"thought": {}}))),
        ("/end", Some("ended".into())),
        ("/lane", None),
    ] {
        bent("events", &trace, pointer, new);
    }
}

#[test]
fn every_member_of_the_data_of_a_run_is_described_without_words_of_the_code() {
    let code = regex::Regex::new("`([A-Z][a-z]+[A-Z]?[a-z]*|[A-Z]+_[A-Z_]+|[a-z_]+::.*|[A-Z][A-Za-z]+::.*)`")
        .expect("a pattern");
    for document in ["run", "plan", "events", "trace", "exit-code"].into_iter().chain(schema::PRINTED) {
        let schema: Value = serde_json::from_str(&schema::text(document).expect("a schema")).expect("JSON");
        let kinds = schema["$defs"].as_object().into_iter().flatten().map(|(_, kind)| kind);
        let mut members = 0;
        for kind in kinds.chain([&schema]) {
            let alternatives = ["oneOf", "anyOf"].iter().filter_map(|key| kind[*key].as_array()).flatten();
            for kind in alternatives.chain([kind]) {
                for (name, member) in kind["properties"].as_object().into_iter().flatten() {
                    let about = member["description"].as_str().or(kind["description"].as_str()).unwrap_or_default();
                    assert!(!about.is_empty(), "{document}: `{name}` is not described");
                    let allowed = about.contains("`NOT_MEASURED`");
                    assert!(
                        allowed || (!code.is_match(about) && !about.contains("[`")),
                        "{document}: `{name}`: {about}"
                    );
                    members += 1;
                }
            }
        }
        assert!(members >= 2, "{document}: {members}");
    }
}

#[test]
fn what_commands_print_as_json_is_valid_against_their_schemas() {
    let project = Project::starter();
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    project.run(&["run"]).expect_code(1);
    printed(&project, &["check"]);
    assert_eq!(printed(&project, &["list"])[0]["recorded"], true);
    assert!(!printed(&project, &["explain"])["metrics"].to_string().is_empty());
    let shown = printed(&project, &["show", "questions/deposit/tool-rag.strict.1"]);
    assert!(shown["judged"]["failed"][0]["expected"].to_string().contains("90 euros"), "{shown}");
    assert_eq!(printed(&project, &["runs"])[0]["exit_code"], 1);
    assert_eq!(printed(&project, &["compare", "reports/latest"])["variants"].as_array().map(Vec::len), Some(2));
    let sides = ["compare", "reports/latest@strict", "reports/latest@short"];
    assert!(printed(&project, &sides)["rows"].is_array());
    let saved = printed(&project, &["compare", "reports/latest", "--save", "baseline.json"]);
    assert_eq!((&saved["saved"], saved["cases"].as_u64() > Some(0)), (&json!("baseline.json"), true), "{saved}");
    // What is made, found and counted.
    let made = printed(&project, &["init", "made"]);
    assert!(made["written"].to_string().contains("ragcheck.yaml"), "{made}");
    let base = ["knowledge", "stats", "bikes"];
    let stats = printed(&project, &base);
    let (all, documents) = (&stats["passages"], stats["files"].as_array().expect("files"));
    let passages: u64 = documents.iter().filter_map(|one| one["passages"].as_u64()).sum();
    assert!(passages > 0 && all.as_u64() == Some(passages), "{stats}");
    let found = printed(&project, &["knowledge", "search", "bikes", "deposit"]);
    assert!(found[0]["text"].to_string().contains("deposit"), "{found}");
    assert_eq!(&printed(&project, &["knowledge", "index", "bikes"])["passages"], all);
    assert_eq!(printed(&project, &["knowledge", "diff", "bikes"]), json!([]));
    let due = printed(&project, &["cassette", "refresh", "--missed", "--dry-run"]);
    assert!(due["checked"].as_u64() > Some(0) && due["lanes"] == json!([]), "{due}");
    project.write("notes.md", "key: sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD\n");
    assert_eq!(printed(&project, &["cassette", "scan", "notes.md"])["secrets"][0]["line"], 1);
    assert_eq!(printed(&project, &["cassette", "rekey"])["rekeyed"], json!([]));
}
