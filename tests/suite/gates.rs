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
    let outcome = project.run(&["run", "scenarios/recovery.yaml"]);
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
    let outcome = project.run(&["run", "scenarios/knowledge.yaml"]);
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
    assert!(outcome.stdout.contains("met, not shown, and let through: FIRST"), "{}", outcome.stdout);
}

#[test]
fn before_a_run_check_and_the_estimate_say_what_a_gate_can_show() {
    let project = Project::shipped();
    let criteria = "about: A handful.\ncriteria:\n  - {id: ENDED, about: Queries end with an answer., metric: turn_success_rate, \
                    target: '>= 99%', kind: confidence}\n";
    project.write("few.yaml", criteria);
    let listed = project.run(&["list", "scenarios/knowledge.yaml", "--criteria", "few.yaml", "--estimate"]);
    assert!(listed.expect_code(0).stdout.contains("this gate cannot pass (299 needed)"), "{}", listed.stdout);
    project.edit("few.yaml", ">= 99%", ">= 85%");
    let listed = project.run(&["list", "scenarios/knowledge.yaml", "--criteria", "few.yaml", "--estimate"]);
    assert!(listed.stdout.contains("at a true 94 % this gate passes in "), "{}", listed.stdout);
    // Criteria that were typed decide over the scenarios that were: the note is at their file.
    project.edit("few.yaml", ">= 85%", ">= 99%");
    let checked = project.run(&["check", "scenarios/knowledge.yaml", "--criteria", "few.yaml"]);
    assert!(checked.stdout.contains("ENDED: ") && checked.stdout.contains(" --> few.yaml"), "{}", checked.stdout);
    // A call may come eight times: so few conversations show nothing of a rate per call.
    let calls = "about: Calls.\ncriteria:\n  - {id: CALLS, about: Queries are made., metric: verbatim_query_rate(knowledge), \
                 target: '<= 20%', kind: confidence, per: unit, most: 8}\n";
    project.write("few.yaml", calls);
    let listed = project.run(&["list", "scenarios/knowledge.yaml", "--criteria", "few.yaml", "--estimate"]);
    assert!(listed.stdout.contains("of one unit each: this gate cannot pass ("), "{}", listed.stdout);
    let scenario = project.read("scenarios/knowledge.yaml");
    let gate = "gates:\n  - {id: mine, metric: turn_success_rate, target: '>= 99%', kind: confidence}\n";
    project.write("scenarios/knowledge.yaml", &format!("{scenario}\n{gate}"));
    let checked = project.run(&["check", "scenarios/knowledge.yaml"]);
    assert!(
        checked.stdout.contains("mine: ") && checked.stdout.contains("this gate cannot pass (299 needed)"),
        "{}",
        checked.stdout
    );
}

#[test]
fn gates_of_nothing_take_away_the_gate_on_the_cases_and_nothing_else() {
    let project = Project::shipped();
    project.edit("scenarios/knowledge.yaml", "contains: [38 to 46 ohms]", "contains: [39 to 46 ohms]");
    let criteria = "about: One.\ncriteria:\n  - {id: ENDED, about: Queries end with an answer., metric: turn_success_rate, \
                    target: '>= 50%', kind: confidence}\n";
    project.write("one.yaml", criteria);
    let arguments = ["run", "scenarios/knowledge.yaml", "--criteria", "one.yaml"];
    let outcome = project.run(&arguments);
    assert!(outcome.expect_code(1).stdout.contains("failed: knowledge/cases"), "{}", outcome.stdout);
    let text = project.read("scenarios/knowledge.yaml");
    project.write("scenarios/knowledge.yaml", &format!("{text}gates: []\n"));
    let outcome = project.run(&arguments);
    let said = "1 required gate passed; 3 trials FAIL, and no required gate counts them";
    assert!(outcome.expect_code(0).stdout.contains(said), "{}", outcome.stdout);
    let run = project.latest("run.json");
    assert_eq!(run["gates"].as_array().map(Vec::len), Some(0), "{run}");
    // The case is still seen to fail.
    assert!(
        project
            .read("reports/latest/trials.csv")
            .lines()
            .any(|row| row.contains("valve-error") && row.contains("FAIL"))
    );
}

#[test]
fn check_tells_of_one_long_case_that_takes_most_of_what_a_rate_per_query_can_show() {
    let project = Project::shipped();
    project.write(
        "long.yaml",
        "about: Queries.\ncriteria:\n  - {id: SEARCH, metric: mandatory_call_rate(knowledge), target: '>= 90%', kind: confidence}\n",
    );
    let cases = |turns: u32| {
        let one: String = (0..60)
            .map(|case| {
                format!("  - {{case: c{case}, ask: 'Question {case}?', expect: {{answer: {{contains: [five]}}}}}}\n")
            })
            .collect();
        let asks: Vec<String> = (0..turns).map(|turn| format!("{{ask: 'And {turn}?'}}")).collect();
        let long = format!(
            "  - {{case: long, turns: [{}], expect: {{calls: [{{never: perplexity_search}}]}}}}\n",
            asks.join(", ")
        );
        let head =
            "scenario: long\nflow: tool-rag\nknowledge: fernlight\nmodel: {provider: simulator, name: any}\ncases:\n";
        project.write("scenarios/long.yaml", &format!("{head}{one}{long}"));
        project.run(&["check", "scenarios/long.yaml", "--criteria", "long.yaml"])
    };
    let told = cases(12);
    let all = format!("{}{}", told.stdout, told.stderr);
    assert!(all.contains("the case `long` with its 12 turns takes most of what they can show"), "{all}");
    assert!(all.contains("at least 82.7 %, and 95.1 % without this case"), "{all}");
    assert!(!cases(2).stdout.contains("takes most"), "two turns among sixty take little");
    project.edit("long.yaml", "kind: confidence", "kind: confidence, per: conversation");
    assert!(!cases(12).stdout.contains("takes most"), "conversations count the same");
}
