//! The boundaries of ARCHITECTURE.md hold: no module imports one that its row does not name, and none in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The table of ARCHITECTURE.md: module to what it may import; `everything` stands as itself.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let rows = text.split("| module | question | may import |").nth(1).expect("the table of modules");
    rows.lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let allowed = cells[2].split(',').map(str::trim).filter(|name| !name.is_empty()).map(String::from);
            (cells[0].to_owned(), allowed.collect())
        })
        .collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("src") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The module path of a file: `src/flow/tool_rag/mod.rs` is `[flow, tool_rag]`.
fn module(path: &Path) -> Vec<String> {
    let relative = path.strip_prefix(root().join("src")).expect("below src").with_extension("");
    let mut parts: Vec<String> = relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// The top-level modules that `text`, a file of module `here`, names.
fn modules_named(text: &str, here: &[String]) -> BTreeSet<String> {
    // A test module written out ends the code; one in a file of its own, declared at the top, does not.
    let tests = regex::Regex::new(r"#\[cfg\(test\)\]\s*mod \w+ \{").expect("a pattern");
    let code: String = tests
        .split(text)
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let path = regex::Regex::new(r"\b(crate|super)((?:::super)*)::(\{[^;]*\}|[a-z_]+)").expect("a pattern");
    let name = regex::Regex::new(r"^[a-z_]+").expect("a pattern");
    let mut named = BTreeSet::new();
    for found in path.captures_iter(&code) {
        let supers = if &found[1] == "super" { 1 + found[2].matches("super").count() } else { here.len() };
        if here.len() > supers {
            continue;
        }
        let heads = found[3].trim_matches(|letter| letter == '{' || letter == '}');
        let mut depth = 0_i32;
        let mut piece = String::new();
        for letter in heads.chars().chain([',']) {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if let Some(head) = name.find(piece.trim()) {
                        named.insert(head.as_str().to_owned());
                    }
                    piece.clear();
                    continue;
                }
                _ => {}
            }
            piece.push(letter);
        }
    }
    named
}

#[test]
fn no_module_imports_what_the_table_does_not_allow() {
    let table = table();
    assert!(table.len() > 15, "the table of modules was not found whole");
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut trespasses = Vec::new();
    for file in files {
        let here = module(&file);
        let own = here.first().cloned().unwrap_or_default();
        if ["lib", "main", "internals"].contains(&own.as_str()) {
            continue;
        }
        let Some(allowed) = table.get(&own) else {
            trespasses.push(format!("{}: the module `{own}` is not in the table", file.display()));
            continue;
        };
        let text = std::fs::read_to_string(&file).expect("a source file");
        for named in modules_named(&text, &here) {
            if table.contains_key(&named)
                && named != own
                && !allowed.contains(&named)
                && !allowed.contains("everything")
            {
                trespasses.push(format!("{}: `{own}` may not import `{named}`", file.display()));
            }
        }
    }
    assert!(trespasses.is_empty(), "{}", trespasses.join("\n"));
}

/// What each module of the table imports from others.
fn imports(table: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    for file in files {
        let here = module(&file);
        let own = here.first().cloned().unwrap_or_default();
        if !table.contains_key(&own) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source file");
        let others = modules_named(&text, &here).into_iter().filter(|named| table.contains_key(named) && *named != own);
        imports.entry(own.clone()).or_default().extend(others);
    }
    imports
}

#[test]
fn no_files_of_different_modules_import_each_other_in_a_circle() {
    let imports = imports(&table());
    assert_eq!(circle(imports), BTreeMap::new(), "these modules import each other in a circle");
}

#[test]
fn every_permission_of_the_table_is_used() {
    let table = table();
    let imports = imports(&table);
    let unused: Vec<String> = table
        .iter()
        .filter(|(_, allowed)| !allowed.contains("everything"))
        .flat_map(|(module, allowed)| {
            let used = imports.get(module).cloned().unwrap_or_default();
            allowed
                .difference(&used)
                .map(|other| format!("`{module}` may import `{other}` and does not"))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(unused.is_empty(), "take these out of the table in ARCHITECTURE.md:\n{}", unused.join("\n"));
}

#[test]
fn the_front_page_of_the_library_lists_at_most_24_modules_and_each_has_its_row() {
    let text = std::fs::read_to_string(root().join("src/lib.rs")).expect("lib.rs");
    let declared = regex::Regex::new(r"(?m)^(?:pub )?mod (\w+);").expect("a pattern");
    let mut modules: BTreeSet<String> = declared.captures_iter(&text).map(|found| found[1].to_owned()).collect();
    assert!(modules.remove("internals"), "the hidden door of benches and tests");
    assert!(modules.len() <= 24, "{modules:?}");
    assert_eq!(modules, table().into_keys().collect(), "the modules of lib.rs and the rows of ARCHITECTURE.md");
}

#[test]
fn what_judges_reads_no_clock_and_opens_no_file() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let platform =
        regex::Regex::new(r"crate::platform::(?:\{[^}]*)?\b(clock|files|secrets|yaml|loopback)\b").expect("a pattern");
    let judges = ["metric", "gate", "compare"];
    for file in files.iter().filter(|file| judges.contains(&module(file)[0].as_str())) {
        let text = std::fs::read_to_string(file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        assert!(!platform.is_match(code), "{}: of `platform` it may use `bounds` alone", file.display());
    }
    let outside =
        regex::Regex::new(r"crate::platform::(?:\{[^}]*)?\b(clock|files|yaml|loopback)\b").expect("a pattern");
    for file in files.iter().filter(|file| module(file)[0] == "report") {
        let text = std::fs::read_to_string(file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        assert!(!outside.is_match(code), "{}: of `platform` it may use `bounds` and `secrets`", file.display());
    }
}

/// What is left of `imports` when modules that import nothing which is left are taken away, again and again.
fn circle(mut imports: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let before = imports.len();
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        imports.retain(|_, others| others.iter().any(|other| left.contains(other)));
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn a_circle_of_three_would_be_seen() {
    let row = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect());
    let leaf = row("leaf", &[]);
    let round = [row("a", &["b", "leaf"]), row("b", &["c"]), row("c", &["a"])];
    assert_eq!(circle([leaf.clone()].into_iter().chain(round.clone()).collect()).len(), 3);
    assert!(circle([leaf, round[0].clone(), round[1].clone()].into()).is_empty());
}

#[test]
fn a_trespass_would_be_seen_in_every_spelling() {
    let here = ["metric".to_owned(), "latency".to_owned()];
    for text in ["use crate::flow::Flow;", "let x = super::super::flow::by_name();", "use crate::{clock::Clock, flow};"]
    {
        assert!(modules_named(text, &here).contains("flow"), "{text}");
    }
    let below_a_test_file = "#[cfg(test)]\nmod tests;\nuse crate::flow::Flow;";
    assert!(modules_named(below_a_test_file, &here).contains("flow"));
    let within_tests = "fn x() {}\n#[cfg(test)]\nmod tests {\n    use crate::flow::Flow;\n}";
    assert!(modules_named(within_tests, &here).is_empty());
    assert!(modules_named("use super::Metric;\n// use crate::flow;", &here).iter().all(|name| name != "flow"));
}

#[test]
fn no_module_is_a_drawer_for_everything() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let drawers = ["util", "utils", "common", "core", "types", "helpers", "misc"];
    for file in files {
        for part in module(&file) {
            assert!(!drawers.contains(&part.as_str()), "{}", file.display());
        }
    }
}

#[test]
fn no_function_gives_a_bare_text_as_its_error() {
    // A caller cannot tell cases apart in a text, and nobody sees which messages there are.
    let bare = r"Result<(?:[^<>;]|<(?:[^<>;]|<[^<>;]*>)*>)*, (?:String|&'static str|&str)>";
    let bare = regex::Regex::new(bare).expect("a pattern");
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let line = |at: usize| code[..at].matches('\n').count() + 1;
        let all = bare.find_iter(code).map(|one| format!("{}:{}: {}", file.display(), line(one.start()), one.as_str()));
        found.extend(all);
    }
    assert!(found.is_empty(), "give these errors a type of their own (thiserror):\n{}", found.join("\n"));
}

/// The sources of a folder of `src` without test code: module name and text.
fn production(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    sources(&root().join("src").join(folder), &mut files);
    let code = |file: PathBuf| {
        let name = module(&file)[1..].join("::");
        let text = std::fs::read_to_string(&file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        (!name.ends_with("tests")).then(|| (name, lines.join("\n")))
    };
    files.into_iter().filter_map(code).collect()
}

/// The siblings that each file of a folder imports: `use super::NAME` and `super::NAME::` anywhere.
fn sibling_imports(files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty()).collect();
    let direct = regex::Regex::new(r"\bsuper::([a-z_0-9]+)").expect("a pattern");
    let listed = regex::Regex::new(r"\bsuper::\{([^;]*)\};").expect("a pattern");
    let word = regex::Regex::new(r"[A-Za-z_0-9]+").expect("a pattern");
    let of = |text: &str| {
        let direct = direct.captures_iter(text).map(|found| found[1].to_owned());
        let listed = listed.captures_iter(text).map(|found| found[1].to_owned()).collect::<Vec<_>>();
        let listed = listed.iter().flat_map(|list| word.find_iter(list).map(|found| found.as_str().to_owned()));
        direct.chain(listed).filter(|name| names.contains(name.as_str())).collect::<BTreeSet<String>>()
    };
    let files = files.iter().filter(|(name, _)| !name.is_empty());
    files.map(|(name, text)| (name.clone(), of(text).into_iter().filter(|other| other != name).collect())).collect()
}

#[test]
fn no_files_of_the_recordings_and_the_transports_import_each_other_in_a_circle() {
    for folder in ["cassette", "transport"] {
        let imports = sibling_imports(&production(folder));
        assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 5, "{folder}: no imports were found");
        assert_eq!(circle(imports), BTreeMap::new(), "{folder}: these files import each other in a circle");
    }
}

#[test]
fn a_circle_of_siblings_would_be_seen_in_every_spelling() {
    let files =
        [("a", "use super::b::X;"), ("b", "use super::{c::Y, d};"), ("c", "fn f() { super::a::g() }"), ("d", "")];
    let files: Vec<(String, String)> = files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    assert_eq!(circle(sibling_imports(&files)).into_keys().collect::<Vec<_>>(), ["a", "b", "c"]);
}

/// Words of the recordings' own format, of messages and of other formats, by file, that a dialect uses too.
const OWN_WORDS: [(&str, &[&str]); 9] = [
    ("", &["model"]),
    ("body", &["text"]),
    ("delta", &["conversation", "messages"]),
    ("difference", &["id", "input", "text"]),
    ("format", &["model", "system", "tools"]),
    ("foreign::har", &["content", "name", "text"]),
    ("foreign::vcr_py", &["content"]),
    ("minted", &["id"]),
    ("sse", &["id"]),
];

/// The members that the layouts of dialects name.
fn dialect_members() -> BTreeSet<String> {
    let mut members = BTreeSet::new();
    let mut files = production("provider/wire");
    files.extend(production("provider").into_iter().filter(|(name, _)| name == "json_service"));
    let layout = regex::Regex::new(r"(?s)static \w+: Layout =\s*Layout \{(.*?)\n?\};?\n").expect("a pattern");
    let quoted = regex::Regex::new(r#""([^"]+)""#).expect("a pattern");
    let mut layouts = 0;
    for (_, text) in &files {
        for found in layout.captures_iter(text) {
            layouts += 1;
            for pointer in quoted.captures_iter(&found[1]) {
                members
                    .extend(pointer[1].split('/').filter(|part| !part.is_empty() && *part != "*").map(str::to_owned));
            }
        }
    }
    assert!(layouts >= 6, "only {layouts} layouts were found");
    members
}

#[test]
fn no_recording_and_no_transport_spells_a_member_of_a_dialect() {
    let members = dialect_members();
    for known in ["messages", "tool_calls", "contents", "systemInstruction", "tool_use", "input", "instructions"] {
        assert!(members.contains(known), "{known}: {members:?}");
    }
    let quoted = regex::Regex::new(r#""([A-Za-z_/]+)""#).expect("a pattern");
    let mut found = Vec::new();
    let mut own: BTreeSet<(&str, &str)> =
        OWN_WORDS.iter().flat_map(|(file, words)| words.iter().map(move |word| (*file, *word))).collect();
    for (file, text) in ["cassette", "transport"].into_iter().flat_map(production) {
        for word in quoted.captures_iter(&text).map(|found| found[1].to_owned()) {
            let permitted = OWN_WORDS.iter().find(|(name, words)| *name == file && words.contains(&word.as_str()));
            if permitted.is_some() {
                own.retain(|one| *one != (file.as_str(), word.as_str()));
            } else if word.split('/').any(|part| members.contains(part)) {
                found.push(format!("{file}: {word:?}"));
            }
        }
    }
    assert!(found.is_empty(), "these belong into the layout of a dialect:\n{}", found.join("\n"));
    assert!(own.is_empty(), "take these out of OWN_WORDS: {own:?}");
}
