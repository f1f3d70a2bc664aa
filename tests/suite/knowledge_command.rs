//! `ragcheck knowledge`: what is in a base, what a query finds in it, and what changed since it was indexed.

use super::project::Project;

/// A project with a base of two German documents, whose small words and forms are German where it is so declared.
fn handbook() -> Project {
    let project = Project::shipped();
    project.write(
        "fixtures/knowledge/handbuch/haus.md",
        "# Das Haus\n\nDie Wärmepumpen der Häuser laufen leise.\n\n## Garantie\n\nSie gilt fünf Jahre.\n",
    );
    project.write("fixtures/knowledge/handbuch/zaehler.txt", "Und der Stromzähler zählt den Verbrauch.\n");
    project
}

fn declare(project: &Project, line: &str) {
    project.edit("ragcheck.yaml", "knowledge_bases:\n", &format!("knowledge_bases:\n  {line}\n"));
}

#[test]
fn what_changed_in_a_base_since_it_was_indexed_is_told_passage_by_passage() {
    let project = handbook();
    let diff = || project.run(&["knowledge", "diff", "handbuch"]);
    let never = diff();
    never.expect_code(2);
    assert!(never.stderr.contains("run `ragcheck knowledge index handbuch` first"), "{}", never.stderr);
    let index = project.run(&["knowledge", "index", "handbuch"]);
    assert!(index.stdout.starts_with("handbuch: 3 passages of 2 documents, hash "), "{}", index.stdout);
    let same = diff();
    assert_eq!((same.code, same.stdout.as_str()), (0, ""));
    assert!(same.stderr.contains("nothing changed"), "{}", same.stderr);

    project.edit("fixtures/knowledge/handbuch/haus.md", "fünf Jahre", "zehn Jahre");
    project.write("fixtures/knowledge/handbuch/neu.txt", "Ein neuer Text.\n");
    std::fs::remove_file(project.path("fixtures/knowledge/handbuch/zaehler.txt")).expect("removed");
    assert_eq!(diff().stdout, "changed  haus#2\nadded    neu.txt#1\nremoved  zaehler.txt#1\n");
    project.run(&["knowledge", "index", "handbuch"]).expect_code(0);
    assert_eq!(diff().stdout, "");
}

#[test]
fn stats_list_every_document_with_its_passages() {
    let project = handbook();
    let told = project.run(&["knowledge", "stats", "handbuch"]).stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    assert!(lines[0].starts_with("handbuch: 3 passages of 2 documents, "), "{told}");
    assert!(lines[1].starts_with("  haus.md  2 passages, hash "), "{told}");
    assert!(lines[2].starts_with("  zaehler.txt  1 passages, hash "), "{told}");
}

#[test]
fn a_subfolder_that_is_not_read_is_named_by_stats_index_and_a_search_without_a_result() {
    let project = handbook();
    project.write("fixtures/knowledge/handbuch/garten/teich.md", "# Teich\n\nDer Teich ist tief.\n");
    for command in ["stats", "index"] {
        let told = project.run(&["knowledge", command, "handbuch"]).stdout;
        assert!(told.lines().any(|line| line.starts_with("not read") && line.ends_with(": garten/")), "{told}");
    }
    let search = project.run(&["knowledge", "search", "handbuch", "Teich"]);
    assert!(search.stderr.contains("; not read: garten/"), "{}", search.stderr);
}

#[test]
fn the_language_of_a_base_decides_which_words_are_the_same_and_which_say_nothing() {
    let project = handbook();
    let found = |query: &str| {
        let outcome = project.run(&["knowledge", "search", "handbuch", query]);
        outcome.expect_code(0);
        outcome
            .stdout
            .lines()
            .filter_map(|line| line.split_once(". ")?.1.split_whitespace().next().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert!(found("lange Garantien").is_empty(), "in English no passage has either word");
    declare(&project, "handbuch: {language: german}");
    assert_eq!(found("in den Häusern"), ["haus#1", "haus#2"], "the title counts");
    assert_eq!(found("und der Garantien"), ["haus#2"], "`und` and `der` say nothing");
    project.edit("ragcheck.yaml", "handbuch: {language: german}", "handbuch: {language: none}");
    assert_eq!(found("und"), ["zaehler.txt#1"]);
}

#[test]
fn a_base_on_a_server_without_embeddings_and_an_unknown_language_are_mistakes_at_their_place() {
    let project = handbook();
    declare(&project, "handbuch: {language: klingon}");
    let unknown = project.run(&["check"]);
    unknown.expect_code(2);
    assert!(unknown.stdout.contains("klingon") && unknown.stdout.contains("german"), "{}", unknown.stdout);
    project.edit("ragcheck.yaml", "handbuch: {language: klingon}", "handbuch: {server: chroma://127.0.0.1:8000/h}");
    let blind = project.run(&["check"]);
    blind.expect_code(2);
    assert!(blind.stdout.contains("a server is searched by vectors"), "{}", blind.stdout);
    assert!(blind.stdout.contains("ragcheck.yaml:49:"), "{}", blind.stdout);
}
