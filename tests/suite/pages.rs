//! The pages of the documentation lead to files that are there, and leave out no command.

use super::project::Project;
use std::fs;
use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    let entries = |folder: &Path| {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let docs = entries(&root.join("docs"));
    let shelves = docs.iter().filter(|path| path.is_dir()).flat_map(|shelf| entries(shelf));
    pages.extend(shelves.chain(docs.iter().cloned()).filter(|path| path.extension().is_some_and(|end| end == "md")));
    pages
}

#[test]
fn every_link_between_pages_leads_to_a_file() {
    let link = regex::Regex::new(r"\]\(([A-Za-z0-9_./-]+)(?:#[^)]*)?\)").expect("compiles");
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for found in link.captures_iter(&text) {
            let to = page.parent().expect("a folder").join(&found[1]);
            assert!(to.exists(), "{} links to {}", page.display(), &found[1]);
            links += 1;
        }
    }
    assert!(links > 50, "{links}");
}

#[test]
fn the_index_names_every_page_and_the_page_of_commands_every_command() {
    let read = |name: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name);
    let index = read("docs/README.md");
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let of_shelves = |page: &PathBuf| page.strip_prefix(&docs).ok().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<String> = pages().iter().filter_map(of_shelves).filter(|name| name != "README.md").collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(index.contains(&format!("({name})")), "docs/README.md leaves out {name}");
        assert!(name.contains('/'), "{name} stands on no shelf");
    }
    let commands = read("docs/reference/commands.md");
    let help = Project::shipped().run(&["--help"]);
    let listed =
        help.stdout.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()).expect("commands");
    let names: Vec<&str> = listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(commands.contains(&format!("`ragcheck {name}")), "docs/reference/commands.md leaves out {name}");
    }
}
