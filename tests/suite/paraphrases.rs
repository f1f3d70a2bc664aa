//! What was learned is found again by questions that a language model worded, and the document shows the figures.

use super::project::Project;

#[test]
fn what_was_learned_is_found_by_paraphrases_of_a_language_model_as_often_as_the_document_says() {
    let project = Project::shipped();
    let criteria = "scenarios/paraphrases/criteria.yaml";
    let outcome = project.run(&["run", "scenarios/paraphrases", "--criteria", criteria, "--no-history"]);
    outcome.expect_code(0);
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/how-to/knowledge-bases.md"))
        .expect("the document");
    for (shown, told) in [
        ("66/69 = 95.7 %", "66 found"),
        ("≥ 85.6 %", "at least 85.6 %"),
        ("per labelled query 0.0 %", "none was harmed"),
    ] {
        assert!(outcome.stdout.contains(shown), "{shown}\n{}", outcome.stdout);
        assert!(text.contains(told), "{told}");
    }
}
