//! Two prompt texts, compared from their recordings: what differs, by how much, and that so few cases leave it undecided.

use super::project::Project;

#[test]
fn two_prompt_texts_are_compared_and_what_is_not_shown_is_called_inconclusive() {
    let project = Project::shipped();
    let criteria = "scenarios/prompt-texts/criteria.yaml";
    project.run(&["run", "scenarios/prompt-texts", "--criteria", criteria, "--no-history"]).expect_code(0);
    let outcome = project.run(&["compare", "reports/latest@shipped", "reports/latest@brief"]);
    outcome.expect_code(0);
    for said in ["DIFFERS prompt `system`", "98.3 % to 83.3 %", "6.7 % to 20.0 %", "inconclusive FIRST"] {
        assert!(outcome.stdout.contains(said), "{said}\n{}", outcome.stdout);
    }
    // The document shows these figures.
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/how-to/compare-prompts.md"))
        .expect("the document");
    assert!(text.contains("| 98.3 % | 83.3 % |") && text.contains("| 6.7 % | 20.0 % |"), "{text}");
}
