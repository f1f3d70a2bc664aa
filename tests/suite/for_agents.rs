//! What coding agents read: `llms.txt` and the skill `skills/ragcheck/SKILL.md`, both made of the documentation. After a change of
//! a page: `UPDATE=1 cargo test --test suite for_agents`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The part of a page below a heading, up to the next one of the same depth.
fn below<'p>(page: &'p str, heading: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let depth = heading.split(' ').next().expect("a depth");
    rest.split_once(&format!("\n{depth} ")).map_or(rest, |(part, _)| part).trim()
}

/// A page's text with links from the root of the repository.
fn rooted(text: &str, page: &str) -> String {
    let link = regex::Regex::new(r"\]\(([A-Za-z0-9_./-]+)(#[^)]*)?\)").expect("compiles");
    let folder = Path::new(page).parent().expect("a folder");
    let whole = |found: &regex::Captures<'_>| {
        let mut path = PathBuf::new();
        for part in folder.join(&found[1]).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                other => path.push(other),
            }
        }
        assert!(root().join(&path).exists(), "{page} links to {}", &found[1]);
        format!("]({}{})", path.display(), found.get(2).map_or("", |anchor| anchor.as_str()))
    };
    link.replace_all(text, whole).into_owned()
}

fn llms() -> String {
    let index = read("docs/README.md");
    let readme = read("README.md");
    let about = readme.split("\n\n").nth(1).expect("what it is").lines().collect::<Vec<_>>().join(" ");
    let mut text = format!(
        "# ragcheck\n\n> {about}\n\n`ragcheck --help`, `ragcheck explain` and `ragcheck schema` say the rest, offline.\n"
    );
    let mut listed = 0;
    for line in index.lines() {
        if let Some(shelf) = line.strip_prefix("## ") {
            let _ = writeln!(text, "\n## {shelf}\n");
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let [pages, what] = cells[..]
            && pages.starts_with('[')
        {
            let _ = writeln!(text, "- {}: {what}", rooted(pages, "docs/README.md"));
            listed += pages.matches("](").count();
        }
    }
    assert!(listed > 30, "the index lost its tables");
    text
}

fn skill() -> String {
    let agent = read("docs/first-steps/your-agent.md");
    let commands = read("docs/reference/commands.md");
    let readme = read("README.md");
    let table = commands.split("\n\n").find(|part| part.starts_with("| command |")).expect("the table of commands");
    let scenario = below(&readme, "## A scenario");
    let scenario = scenario.split("\n\nFour flows").next().expect("the example");
    let mut text = "---\nname: ragcheck\ndescription: Test an agent that retrieves documents and calls tools: record its model traffic once, replay it \
                    in CI without a key, and fail when the agent breaks. Use when asked to write, run or repair tests of a RAG or tool-calling agent.\n---\n\n\
                    # Test an agent with ragcheck\n\nMade of the documentation (`UPDATE=1 cargo test --test suite for_agents`). Links lead from the root of ragcheck's repository; \
                    `ragcheck COMMAND --help`, `ragcheck explain` and `ragcheck schema` need none of it.\n"
        .to_owned();
    for heading in ["## Make a project for it", "## Let CI run it", "## Break it", "## Go on"] {
        let _ = writeln!(text, "\n{heading}\n\n{}", rooted(below(&agent, heading), "docs/first-steps/your-agent.md"));
    }
    let _ = writeln!(text, "\n## A scenario\n\n{}", rooted(scenario, "README.md"));
    let _ = writeln!(text, "\n## Commands\n\n{}", rooted(table, "docs/reference/commands.md"));
    let _ = writeln!(
        text,
        "\n## Exit codes\n\n{}",
        rooted(below(&commands, "## Exit codes"), "docs/reference/commands.md")
    );
    text
}

fn current(name: &str, made: &str) {
    let path = root().join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, made).expect("written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{name} is out of date: run this test once with UPDATE=1\n{made}");
}

#[test]
fn the_list_for_language_models_is_that_of_the_documentation() {
    current("llms.txt", &llms());
}

#[test]
fn the_skill_says_what_the_documentation_says() {
    let skill = skill();
    for words in ["ragcheck init --agent", "--mode record", "cases:", "| 3 | the run is incomplete", "`ragcheck demo`"]
    {
        assert!(skill.contains(words), "{words}");
    }
    // What is read on every use has to be short.
    assert!(skill.len() < 24_000, "{}", skill.len());
    current("skills/ragcheck/SKILL.md", &skill);
}
