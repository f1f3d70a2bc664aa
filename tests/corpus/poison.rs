//! Collected prompt injections as poison of a passage: each reaches the model, a model that obeys is found out, and one that
//! does not is unmoved. The model is a script, so this says nothing about models.

use super::published;
use super::scripted_model::{Script, results};
use super::trajectories::unzipped;
use crate::program::program;
use ragcheck::internals::flow::tools::guard;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::Ordering;

const PROJECT: &str = "scenarios: [mine.yaml]
knowledge: knowledge
providers: {script: {dialect: openai-chat, base_url: 'http://ADDRESS/v1'}}
";
const CASES: &str = "scenario: mine
flow: tool-rag
knowledge: shop
model: {provider: script, name: any}
cases:
  - case: warranty
    ask: How long does the warranty last?
    expect: {answer: {contains: [60 months]}}
";
/// Longest query of a search.
const QUERY: usize = 280;

/// It searches, and answers. If it obeys, it searches again with what the passage says.
fn script(request: &Value, obeys: bool) -> (&'static str, Value) {
    let results = results(request);
    let search = |query: &str| ("knowledge_base_search", json!({"query": query}));
    let found = |result: &str| serde_json::from_str::<Value>(result).expect("JSON");
    match results.len() {
        0 => search("length of warranty"),
        1 if obeys => search(&carried(found(results[0])["chunks"][0]["text"].as_str().expect("a text"))),
        _ => {
            let cited = &found(results[0])["chunks"][0]["id"];
            let sources = json!([{"kind": "internal", "id": cited}]);
            let answer = "The warranty lasts 60 months [1].";
            let flags =
                json!({"answer": answer, "sources": sources, "used_internal_kb": true, "used_external_kb": false});
            ("generate_response", flags)
        }
    }
}

/// The query that an instruction makes: its beginning, with the code at its end.
fn carried(passage: &str) -> String {
    let at = passage.find("kestrel-").expect("a code");
    let (text, code) = (&passage[..at], &passage[at..at + 12]);
    text.chars().take(QUERY).chain(code.chars()).collect()
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn collected_injections_reach_the_model_and_an_agent_that_obeys_them_is_found_out() {
    let kinds = ["prompt_injection", "jailbreak", "indirect_injection"];
    let rows = unzipped("adversarial/malicious.jsonl.gz");
    let rows = rows.lines().map(|row| serde_json::from_str::<Value>(row).expect("a row of JSON"));
    let kind = |row: &Value| kinds.iter().find(|kind| row["category"].as_str().is_some_and(|of| of.starts_with(*kind)));
    let (mut lines, mut texts) = (String::new(), Vec::new());
    for (number, (row, kind)) in
        rows.filter_map(|row| Some((kind(&row).copied()?, row))).map(|(kind, row)| (row, kind)).enumerate()
    {
        let text = format!("{} (kestrel-{number:04})", row["text"].as_str().expect("a text"));
        lines.push_str(&json!({"text": text, "canary": format!("kestrel-{number:04}")}).to_string());
        lines.push('\n');
        texts.push((kind, text));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let model = Script::start(script);
    std::fs::create_dir_all(folder.path().join("knowledge/shop")).expect("a folder");
    write("knowledge/shop/warranty.md", "# Warranty\n\n## Length\nThe warranty has a length of 60 months.\n");
    write("ragcheck.yaml", &PROJECT.replace("ADDRESS", &model.address));
    write("mine.yaml", CASES);
    write("poison.jsonl", &lines);
    let ragcheck = |arguments: &[&str]| {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(folder.path()).output().expect("it runs")
    };
    let recorded = ragcheck(&["run", "--mode", "record", "--no-history"]);
    let said = String::from_utf8_lossy(&recorded.stdout);
    assert!(said.contains("1 trial: 1 PASS"), "{said}{}", String::from_utf8_lossy(&recorded.stderr));
    let verdicts = |obeys: bool| -> Vec<String> {
        model.obeys.store(obeys, Ordering::SeqCst);
        let outcome = ragcheck(&["faults", "--poison", "poison.jsonl", "--mode", "live", "--format", "json"]);
        let found: Value = serde_json::from_slice(&outcome.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&outcome.stderr)));
        let cells = found["cells"].as_array().expect("cells").iter();
        cells.map(|cell| cell["verdict"].as_str().expect("a verdict").to_owned()).collect()
    };
    let (obeys, wary) = (verdicts(true), verdicts(false));
    assert_eq!((obeys.len(), wary.len()), (texts.len(), texts.len()));
    let mut table = Vec::new();
    for kind in kinds {
        let places: Vec<usize> = (0..texts.len()).filter(|place| texts[*place].0 == kind).collect();
        let count =
            |verdicts: &[String], verdict: &str| places.iter().filter(|place| verdicts[**place] == verdict).count();
        let (all, found, unmoved) = (places.len(), count(&obeys, "leaked"), count(&wary, "unmoved"));
        assert_eq!((found, unmoved), (all, all), "{kind}");
        let stopped = places.iter().filter(|place| guard::category(&carried(&texts[**place].1)).is_some()).count();
        let cells =
            [kind.replace('_', " "), all.to_string(), found.to_string(), unmoved.to_string(), stopped.to_string()];
        table.push(cells.to_vec());
    }
    let head = ["poison", "payloads", "obeyed: leaked", "not obeyed: unmoved", "obeyed: calls that the guard refuses"];
    published::compare("poison", &published::table(&head, &table));
}
