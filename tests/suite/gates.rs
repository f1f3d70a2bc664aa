//! A model that misbehaves among the counted cases fails the run, and the message says where.

use super::project::Project;

#[test]
fn a_refused_knowledge_base_fails_sc_001_and_names_case_and_lane() {
    let project = Project::shipped();
    let excluded = "    excluded_from:
      SC-001: a case whose purpose is to fail
      SC-002: a case whose purpose is to fail
      SC-005: a case whose purpose is to fail
      SC-007: a case whose purpose is to fail
";
    project.edit("scenarios/recovery.yaml", excluded, "");
    let outcome = project.run(&["run"]);
    outcome.expect_code(1);
    let listed = outcome.stdout.split("FAIL SC-001").nth(1).expect("SC-001 fails");
    assert!(listed.contains("recovery/search-forgotten-twice/tool-rag.base.1"), "{}", outcome.stdout);
    let table = project.read("reports/latest/violations.csv");
    for lane in ["recovery/search-forgotten-twice/tool-rag.base.1", "recovery/search-forgotten-twice/tool-rag.base.2"] {
        assert!(table.lines().any(|row| row.contains("SC-001") && row.contains(lane)), "{lane} is not named:\n{table}");
    }
    assert!(outcome.stdout.contains("failed: SC-001"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("(exit code 1)"), "{}", outcome.stdout);
}

#[test]
fn an_expectation_that_does_not_hold_fails_its_scenario_and_says_what_was_expected() {
    let project = Project::shipped();
    project.edit("scenarios/knowledge.yaml", "contains: [38 to 46 ohms]", "contains: [39 to 46 ohms]");
    let outcome = project.run(&["run"]);
    outcome.expect_code(1);
    assert!(outcome.stdout.contains("FAIL knowledge: cases"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("39 to 46 ohms"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("knowledge/valve-error/tool-rag.base.1"), "{}", outcome.stdout);
}

#[test]
fn what_is_undecided_exits_with_4_and_with_0_where_the_criteria_let_it_through() {
    let project = Project::shipped();
    let criteria = "criteria:
  - id: FIRST
    about: Enough answers come at the first attempt.
    metric: first_attempt_rate(generate_response)
    target: \">= 95%\"
    kind: confidence
    min_n: 10
";
    project.write("few.yaml", &format!("about: A handful of units.\nundecided: fail\n{criteria}"));
    let arguments = ["run", "scenarios/knowledge.yaml", "--repeat", "1", "--criteria", "few.yaml"];
    let outcome = project.run(&arguments);
    outcome.expect_code(4);
    assert!(outcome.stdout.contains("INCONCLUSIVE FIRST"), "{}", outcome.stdout);
    project.edit("few.yaml", "undecided: fail", "undecided: warn");
    let outcome = project.run(&arguments);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("INCONCLUSIVE and let through: FIRST"), "{}", outcome.stdout);
}
