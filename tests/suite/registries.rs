//! The tables that ARCHITECTURE.md, "To add a …", names: each holds the files of its folder and nothing else, so that what
//! nobody listed fails here and is not silently left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A table and the folder that it lists.
struct Registry {
    /// What it holds, in the singular.
    of: &'static str,
    /// The folder of its files, below `src`.
    folder: &'static str,
    /// The file with the table, below `src`.
    table: &'static str,
    /// The macro that the table is.
    list: &'static str,
    /// What is written in a file of its kind, and in no other of that folder.
    mark: &'static str,
    /// How many there were when this was written.
    at_least: usize,
}

const REGISTRIES: [Registry; 4] = [
    Registry { of: "flow", folder: "flow", table: "flow/mod.rs", list: "flows", mark: "impl Agent for", at_least: 1 },
    Registry {
        of: "dialect",
        folder: "provider/wire",
        table: "provider/wire/mod.rs",
        list: "dialects",
        mark: "const DIALECT: &Dialect",
        at_least: 6,
    },
    Registry {
        of: "metric",
        folder: "metric",
        table: "metric/mod.rs",
        list: "metrics",
        mark: "const ENTRIES: &[Registered]",
        at_least: 20,
    },
    Registry {
        of: "report format",
        folder: "report/formats",
        table: "report/formats/mod.rs",
        list: "formats",
        mark: "const FORMATS: &[Format]",
        at_least: 6,
    },
];

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)
}

/// The modules of a folder with their text: files, and folders by their `mod.rs`; no tests, not the folder's own.
fn modules(folder: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(source(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let module = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let file = if path.is_dir() { path.join("mod.rs") } else { path };
        let text = fs::read_to_string(file).ok()?;
        (name != "mod" && !name.ends_with("tests")).then_some((name, text))
    };
    entries.filter_map(|entry| module(entry.expect("an entry").path())).collect()
}

/// The names in the table of a macro: what is between its braces, without commas, comments and attributes.
fn listed(text: &str, list: &str) -> Vec<String> {
    let table = text.split_once(&format!("\n{list}! {{")).expect("a table").1.split_once('}').expect("its end").0;
    let names =
        table.lines().filter(|line| !line.trim_start().starts_with(['/', '#'])).flat_map(|line| line.split(','));
    names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// What is in a folder and not in its table, in the table and not in its folder, or in the table twice.
fn mistakes(registry: &Registry, modules: &[(String, String)], table: &str) -> Vec<String> {
    let Registry { of, folder, table: file, list, mark, .. } = registry;
    let listed = listed(table, list);
    let names: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let found: BTreeSet<&str> =
        modules.iter().filter(|(_, text)| text.contains(mark)).map(|(name, _)| name.as_str()).collect();
    let missing = found.difference(&names).map(|name| format!("src/{folder}/{name} is a {of} that `{list}!` lacks"));
    let empty = names.difference(&found).map(|name| format!("`{list}!` in src/{file} lists {name}, which is no {of}"));
    let twice = (names.len() < listed.len()).then(|| format!("`{list}!` in src/{file} names one twice"));
    missing.chain(empty).chain(twice).collect()
}

#[test]
fn every_table_holds_the_files_of_its_folder_and_nothing_else() {
    for registry in REGISTRIES {
        let (modules, table) = (modules(registry.folder), fs::read_to_string(source(registry.table)).expect("a table"));
        let found = mistakes(&registry, &modules, &table);
        assert!(found.is_empty(), "{}", found.join("\n"));
        let length = listed(&table, registry.list).len();
        assert!(length >= registry.at_least, "only {length} of the kind {} are listed", registry.of);
    }
}

#[test]
fn a_file_that_its_table_does_not_name_is_found_and_so_is_a_name_without_a_file() {
    for registry in REGISTRIES {
        let table = fs::read_to_string(source(registry.table)).expect("a table");
        let modules = modules(registry.folder);
        let mut more = modules.clone();
        more.push(("of_tomorrow".to_owned(), format!("{} Tomorrow {{}}", registry.mark)));
        let found = mistakes(&registry, &more, &table);
        assert!(found.len() == 1 && found[0].contains("of_tomorrow is a"), "{found:?}");
        for (name, _) in modules.iter().filter(|(_, text)| text.contains(registry.mark)) {
            let left: Vec<_> = modules.iter().filter(|(other, _)| other != name).cloned().collect();
            let found = mistakes(&registry, &left, &table);
            assert!(found.len() == 1 && found[0].contains(&format!("lists {name},")), "{found:?}");
        }
        let added = table.replacen(&format!("\n{}! {{", registry.list), &format!("\n{}! {{ gone,", registry.list), 1);
        let found = mistakes(&registry, &modules, &added);
        assert!(found.len() == 1 && found[0].contains("lists gone,"), "{found:?}");
    }
}

#[test]
fn every_module_is_declared_by_a_plain_line_so_that_cargo_fmt_sees_it() {
    fn files(path: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }
    let sources: Vec<PathBuf> =
        files(&source("")).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    assert!(sources.len() > 300, "only {} files were read", sources.len());
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source file");
        assert!(!text.contains("mod $"), "{} declares modules by a macro", path.display());
    }
    for registry in REGISTRIES {
        let table = fs::read_to_string(source(registry.table)).expect("a table");
        for name in listed(&table, registry.list) {
            assert!(table.contains(&format!("mod {name};\n")), "src/{} has no line `mod {name};`", registry.table);
        }
    }
}

#[test]
fn no_name_of_a_metric_or_a_dialect_stands_in_the_catalogue_of_its_kind() {
    for (catalogue, folder, mark) in [
        ("metric/catalogue.rs", "metric", "const ENTRIES: &[Registered]"),
        ("settings/catalogue/dialect.rs", "provider/wire", "const DIALECT: &Dialect"),
        ("settings/provider.rs", "provider/wire", "const DIALECT: &Dialect"),
    ] {
        let text = fs::read_to_string(source(catalogue)).expect("a catalogue");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for (name, _) in modules(folder).iter().filter(|(_, text)| text.contains(mark)) {
            let spelt = name.replace('_', "-");
            assert!(!code.contains(&format!("{name}::")), "{catalogue} names {name} once more");
            assert!(!code.contains(&format!("\"{spelt}\"")), "{catalogue} names {spelt} once more");
        }
    }
}
