//! No module but the flow that owns them knows tools by their names: metrics, stages and states read roles.

use std::fs;
use std::path::{Path, PathBuf};

const NAMES: [&str; 4] = ["knowledge_base_search", "perplexity_search", "index_keywords", "generate_response"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("src") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Tests and the made-up run that tests of reports show are data: they may name any agent's tools.
fn is_data(path: &str) -> bool {
    path.contains("tests") || path.starts_with("src/report/sample/") || path == "src/metric/sample.rs"
}

#[test]
fn no_tool_of_tool_rag_is_named_outside_its_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut read, mut named) = (Vec::new(), 0, Vec::new());
    sources(&root.join("src"), &mut files);
    for file in files {
        let path = file.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
        if path.starts_with("src/flow/tool_rag/") || path == "src/internals.rs" || is_data(&path) {
            continue;
        }
        read += 1;
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in (1..).zip(code.lines()) {
            if NAMES.iter().any(|name| line.contains(name)) {
                named.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(read > 200, "only {read} files were read");
    assert!(named.is_empty(), "{}", named.join("\n"));
}

#[test]
fn what_is_judged_never_says_the_name_of_a_service() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for room in ["trace", "metric", "gate", "compare", "history", "settings/catalogue", "plan"] {
        let (mut files, path) = (Vec::new(), root.join("src").join(room));
        if path.is_dir() {
            sources(&path, &mut files);
        } else {
            files.push(path);
        }
        assert!(!files.is_empty(), "{room}");
        for file in files {
            let shown = file.strip_prefix(root).expect("below the root").to_string_lossy().replace('\\', "/");
            let text = fs::read_to_string(&file).expect("a source file");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            assert!(is_data(&shown) || !code.to_lowercase().contains("perplexity"), "{shown}");
        }
    }
}
