//! Flows have one shape, and none reaches into another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ragcheck::internals::flow::FLOWS;

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)
}

/// Folders below `src/flow` that are no flows in the table: what flows share of tools and turns, and agents that run
/// elsewhere.
const NOT_LISTED: [&str; 3] = ["tools", "turn", "external"];

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        return entries(path).iter().flat_map(|path| files(path)).collect();
    }
    if path.extension().is_some_and(|end| end == "rs") { vec![path.to_owned()] } else { Vec::new() }
}

/// Whether code names `module` in a path that leads to a sibling of its own folder.
fn imports(code: &str, module: &str) -> bool {
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let path = regex::Regex::new(&format!(r"\b(crate::flow|super)::((super|self)::)*{module}\b")).expect("a pattern");
    let used = regex::Regex::new(r"(?s)\buse\s+(crate|super)\b[^;]*;").expect("a pattern");
    let listed = regex::Regex::new(&format!(r"(::|[{{,]\s*){module}\b")).expect("a pattern");
    let flow = |text: &str| !text.contains("crate") || text.contains("flow");
    path.is_match(&code) || used.find_iter(&code).any(|found| flow(found.as_str()) && listed.is_match(found.as_str()))
}

#[test]
fn every_folder_of_a_flow_is_in_the_table_of_flows_and_nothing_else() {
    let folders: BTreeSet<String> =
        entries(&source("flow")).iter().filter(|path| path.is_dir()).map(|path| name(path)).collect();
    let listed: BTreeSet<String> =
        FLOWS.iter().map(|(folder, _)| *folder).chain(NOT_LISTED).map(str::to_owned).collect();
    assert_eq!(folders, listed);
}

#[test]
fn turns_end_with_errors_that_their_flow_declares() {
    let (project, _) = super::project::whole();
    let mut seen = BTreeSet::new();
    for trace in project.traces() {
        let named = trace["lane"]["flow"].as_str().expect("a flow");
        let Some(flow) = ragcheck::internals::flow::by_name(named).filter(|flow| !flow.description().errors.is_empty())
        else {
            continue;
        };
        for event in trace["events"].as_array().expect("events") {
            let Some(kind) = event["what"]["turn_ended"]["outcome"]["failed"]["kind"].as_str() else { continue };
            assert!(flow.description().errors.contains(&kind), "{named} does not declare `{kind}`: {}", trace["trial"]);
            seen.insert(kind.to_owned());
        }
    }
    assert!(seen.len() > 5, "{seen:?}");
}

#[test]
fn every_file_of_a_knowledge_server_is_a_kind_of_server_that_addresses_can_name() {
    let files: BTreeSet<String> = entries(&source("knowledge/server")).iter().map(|path| name(path)).collect();
    let named: BTreeSet<String> =
        ragcheck::internals::catalogues().servers.iter().map(|entry| entry.scheme.replace('-', "_")).collect();
    assert_eq!(files, named.into_iter().chain(["mod".to_owned()]).collect());
}

#[test]
fn every_flow_has_the_same_shape() {
    for (folder, flow) in FLOWS {
        let folder = source("flow").join(folder);
        let of_tools = ["policy.rs", "machine.rs", "prompts.rs", "tools/mod.rs", "prompts"];
        let of_tools = of_tools.iter().filter(|_| !flow.description().tools.is_empty());
        for file in of_tools.chain(&["mod.rs"]) {
            assert!(folder.join(file).exists(), "{} lacks {file}", folder.display());
        }
    }
}

#[test]
fn the_worked_example_of_the_architecture_is_the_code_that_tests_run_and_takes_less_than_100_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("a page");
    let compiled = std::fs::read_to_string(source("flow/mod.rs")).expect("a source file");
    assert!(compiled.contains("#[path = \"../../examples/retrieve_then_read/mod.rs\"]"), "the example is not compiled");
    let (mut lines, files) = (0, entries(&root.join("examples/retrieve_then_read")));
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a text");
        let named = format!("`{}`:\n\n```", file.strip_prefix(root).expect("below the root").display());
        let quoted = architecture.split_once(&named).unwrap_or_else(|| panic!("{} is not quoted", file.display())).1;
        let (_, quoted) = quoted.split_once('\n').expect("the language of the block");
        assert!(quoted.starts_with(&format!("{text}```\n")), "ARCHITECTURE.md quotes another {}", file.display());
        lines += text.lines().count();
    }
    assert!(files.len() == 3 && lines < 100, "{} files, {lines} lines", files.len());
}

#[test]
fn no_flow_imports_another_and_what_they_share_imports_none() {
    let flows: Vec<&str> = FLOWS.iter().map(|(folder, _)| *folder).chain(["external"]).collect();
    let mut trespasses = Vec::new();
    for entry in entries(&source("flow")) {
        for file in files(&entry) {
            let code = std::fs::read_to_string(&file).expect("a source file");
            let others = flows.iter().filter(|flow| **flow != name(&entry));
            trespasses
                .extend(others.filter(|flow| imports(&code, flow)).map(|flow| format!("{}: {flow}", file.display())));
        }
    }
    assert!(trespasses.is_empty(), "{}", trespasses.join("\n"));
}

#[test]
fn an_import_of_a_sibling_would_be_seen_in_every_spelling() {
    for code in [
        "use crate::flow::tool_rag::tools;",
        "use super::super::tool_rag::NAME;",
        "use crate::flow::{AgentContext, tool_rag::NAME};",
        "use super::{\n    context,\n    tool_rag,\n};",
        "use crate::{chat::Role, flow::tool_rag};",
        "fn x() { crate::flow::tool_rag::x() }",
        "fn x() { super::tool_rag::x() }",
    ] {
        assert!(imports(code, "tool_rag"), "{code}");
    }
    for code in
        ["// use super::tool_rag;", "use super::tools;", "let tool_rag = 1;", "use crate::trace::{Role, external};"]
    {
        assert!(!imports(code, "tool_rag") && !imports(code, "external"), "{code}");
    }
}
