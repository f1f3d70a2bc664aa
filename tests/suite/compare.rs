//! Two runs compared: with itself nothing is found, a broken answer is named, a broken suite is a regression.

use super::project::Project;
use std::fs;

const CRITERIA: &str = "about: One criterion.
criteria:
  - id: FIRST
    about: Enough answers come at the first attempt.
    metric: first_attempt_rate(generate_response)
    target: \">= 60%\"
    kind: confidence
";
const RUN: [&str; 4] = ["run", "scenarios/knowledge.yaml", "--criteria", "one.yaml"];

/// The project with one run of its first scenario, and that run's folder.
fn with_a_run() -> (Project, String) {
    let project = Project::shipped();
    project.write("one.yaml", CRITERIA);
    project.run(&RUN).expect_code(0);
    let folder = newest(&project);
    (project, folder)
}

fn newest(project: &Project) -> String {
    let target = fs::canonicalize(project.path("reports/latest")).expect("a run");
    format!("reports/{}", target.file_name().expect("a name").to_string_lossy())
}

/// One repetition of one case answers something else.
fn break_one_answer(project: &Project) {
    let close = "Close the tap, remove the four screws of the lid, and lay membrane and spring in ";
    let before = format!(
        "{{\"answer\":\"In regions with hard water the membrane of a RainGate valve should be descaled once a year. {close}"
    );
    project.edit(
        "fixtures/cassettes/knowledge/descaling/tool-rag.base.1.yaml",
        &format!("{before}citric acid"),
        &format!("{before}lemon juice"),
    );
}

/// Every case asks for what no answer says.
fn break_every_case(project: &Project) {
    let text = project.read("scenarios/knowledge.yaml");
    let text = text.replace("contains: [", "contains: [never said, ").replace(r"\b45\b", r"\b4567\b");
    project.write("scenarios/knowledge.yaml", &text);
}

#[test]
fn a_run_beside_itself_has_no_discordance_and_the_same_bytes_again() {
    let (project, run) = with_a_run();
    let arguments = ["compare", &run, "reports/latest", "--fail-on", "regression"];
    let outcome = project.run(&arguments);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("are the same on both sides"), "{}", outcome.stdout);
    let findings: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains("no case changed")).collect();
    assert_eq!(findings.len(), 4, "FIRST, cases and two of turn time:\n{}", outcome.stdout);
    assert!(!outcome.stdout.contains("inconclusive") && !outcome.stdout.contains("flipped"), "{}", outcome.stdout);
    let files = project.report(&run);
    assert!(files.iter().any(|(name, _)| name == "comparison.html"));
    assert_eq!(project.run(&arguments).stdout, outcome.stdout);
    assert!(project.report(&run) == files, "the same comparison gives other bytes");
}

#[test]
fn one_broken_answer_is_a_flip_that_can_be_looked_at_and_decides_nothing() {
    let (project, before) = with_a_run();
    break_one_answer(&project);
    project.run(&RUN).expect_code(1);
    let after = newest(&project);
    assert_ne!(before, after);
    let outcome = project.run(&["compare", &before, &after, "--fail-on", "regression"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("Cases that pass less or more often: 1 worse, 0 better"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("knowledge/descaling (base): 3/3 passed, then 2/3"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("would have been seen"), "{}", outcome.stdout);
    let commands: Vec<&str> =
        outcome.stdout.lines().filter_map(|line| line.trim().strip_prefix("ragcheck show ")).collect();
    assert_eq!(commands.len(), 2, "{}", outcome.stdout);
    for (command, words) in commands.iter().zip(["citric acid", "lemon juice"]) {
        let shown = project.run(&["show", command]);
        assert!(shown.expect_code(0).stdout.contains(words), "{command}");
    }
    let page = project.read(&format!("{after}/comparison.html"));
    assert!(page.contains("lemon juice") && page.contains("citric acid"), "both conversations stand on the page");
    let rows = project.read(&format!("{after}/comparison.csv"));
    assert!(rows.lines().any(|row| row.starts_with("cases,") && row.contains(",inconclusive,")), "{rows}");
}

#[test]
fn a_broken_suite_is_a_regression_against_a_saved_baseline() {
    let (project, run) = with_a_run();
    project.run(&["compare", &run, "--save", "baseline.json"]).expect_code(0);
    let saved = project.read("baseline.json");
    assert!(saved.len() < 20_000 && saved.lines().filter(|line| line.contains("\"case\"")).count() == 8, "{saved}");
    break_every_case(&project);
    let arguments = [&RUN[..], &["--baseline", "baseline.json", "--fail-on", "regression"]].concat();
    let outcome = project.run(&arguments);
    outcome.expect_code(1);
    let worse = newest(&project);
    let [base, now] = [&run, &worse].map(|folder| folder.trim_start_matches("reports/"));
    // The sentence is wrapped.
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("{now} is worse than {base} in cases -100.0 points")), "{said}");
    let page = project.read(&format!("{worse}/comparison.html"));
    assert!(page.contains(&format!("{now} is worse than {base} in cases -100.0 points")), "the page says the same");
    let compared = |more: &[&str]| project.run(&[&["compare", "baseline.json", &worse], more].concat());
    compared(&[]).expect_code(0);
    compared(&["--fail-on", "regression"]).expect_code(1);
    let json: serde_json::Value = serde_json::from_str(&compared(&["--format", "json"]).stdout).expect("JSON");
    assert_eq!((json["regression"].as_bool(), json["flips"].as_array().map(Vec::len)), (Some(true), Some(8)));
    let better = project.run(&["compare", &worse, "baseline.json", "--fail-on", "regression"]);
    assert!(
        better.expect_code(0).stdout.contains(&format!("{base} is better than {now} in cases")),
        "{}",
        better.stdout
    );
    assert!(json["conclusion"].as_str().is_some_and(|words| words.starts_with(&format!("{now} is worse than {base}"))));
}

#[test]
fn the_report_links_to_a_comparison_that_lies_beside_it_and_to_no_other() {
    let (project, first) = with_a_run();
    let link = "href=\"comparison.html\"";
    assert!(!project.read("reports/latest/index.html").contains(link));
    project.run(&["compare", &first, "reports/latest"]).expect_code(0);
    assert!(project.read("reports/latest/index.html").contains(link));
    project.run(&["score"]);
    assert!(project.read("reports/latest/index.html").contains(link), "made again, it still lies there");
}

#[test]
fn what_cannot_be_compared_is_refused_in_words() {
    let (project, run) = with_a_run();
    for (a, b, words) in [
        (run.as_str(), "reports/none", "neither a run folder"),
        (run.as_str(), "reports/latest@terse", "it has base"),
        ("ragcheck.yaml", run.as_str(), "not a baseline"),
    ] {
        let outcome = project.run(&["compare", a, b]);
        assert!(outcome.expect_code(2).stderr.contains(words), "{}", outcome.stderr);
    }
    project.run(&["compare", &run, "--save", "live.json"]).expect_code(0);
    project.write("live.json", &project.read("live.json").replace("REPLAYED", "LIVE"));
    let outcome = project.run(&["compare", "live.json", &run]);
    assert!(outcome.expect_code(2).stderr.contains("is LIVE and"), "{}", outcome.stderr);
    let outcome = project.run(&["run", "--fail-on", "regression"]);
    assert!(outcome.expect_code(2).stderr.contains("--fail-on needs --baseline"), "{}", outcome.stderr);
}

#[test]
fn a_baseline_without_figures_shows_no_absence_of_a_regression_and_one_that_was_edited_decides_nothing_and_is_named() {
    let (project, run) = with_a_run();
    project.run(&["compare", &run, "--save", "baseline.json"]).expect_code(0);
    let gated = ["compare", "baseline.json", &run, "--fail-on", "regression"];
    assert!(!project.run(&gated).expect_code(0).stderr.contains("EDITED"));
    let mut baseline: serde_json::Value = serde_json::from_str(&project.read("baseline.json")).expect("JSON");
    baseline["criteria"] = serde_json::json!([]);
    project.write("baseline.json", &baseline.to_string());
    let without = "baseline.json has no digest: an older ragcheck saved it, or it was EDITED BY HAND";
    for doubt in ["baseline.json was EDITED BY HAND after it was saved", without] {
        let refused = project.run(&gated);
        refused.expect_code(2);
        assert!(refused.stderr.contains(&format!("--fail-on: {doubt}")), "{}", refused.stderr);
        let files = ["--report", "markdown=now.md,annotations=now.txt"];
        let compared = [&RUN[..], &["--baseline", "baseline.json"], &files].concat();
        project.run(&[&compared[..], &["--fail-on", "flip"]].concat()).expect_code(2);
        assert!(!project.path("now.md").exists(), "it is refused before anything runs");
        let told = project.run(&compared);
        told.expect_code(0);
        assert!(told.stdout.contains(&format!("WARNING {doubt}")), "{}", told.stdout);
        let latest = |file: &str| project.read(&format!("reports/latest/{file}"));
        let markdown = project.run(&["report", "--to", "markdown"]).stdout;
        let summary = project.read("now.md");
        for text in
            [&summary, &markdown, &project.read("now.txt"), &latest("comparison.html"), &latest("comparison.json")]
        {
            assert!(text.contains(doubt), "{text}");
        }
        let first = summary.split("<details>").next().expect("its beginning");
        assert!(first.contains(doubt), "a reviewer reads it without unfolding: {first}");
        for file in ["now.md", "now.txt"] {
            fs::remove_file(project.path(file)).expect("written");
        }
        baseline.as_object_mut().expect("an object").remove("digest");
        project.write("baseline.json", &baseline.to_string());
    }
    project.write("baseline.json", &(ragcheck::internals::trace::seal(&baseline.to_string()).0 + "\n"));
    let blind = project.run(&gated);
    blind.expect_code(3);
    assert!(blind.stdout.contains("nothing that is required was compared"), "{}", blind.stdout);
}

#[test]
fn a_case_that_passed_and_fails_now_is_a_flip_that_alone_decides() {
    let project = Project::shipped();
    let scenario = "scenarios/knowledge.yaml";
    project.run(&["run", scenario]);
    project.run(&["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    let all = "--criteria=scenarios/success-criteria.yaml";
    let gated = ["run", scenario, all, "--baseline", "base.json", "--fail-on", "flip"];
    // The criteria cannot pass on one scenario; nothing changed, so that this does not matter.
    assert_ne!(project.run(&gated[..5]).code, 0);
    project.run(&gated).expect_code(0);
    project.edit(scenario, "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    let flipped = project.run(&gated);
    flipped.expect_code(1);
    assert!(flipped.stdout.contains("worse knowledge/valve-error"), "{}", flipped.stdout);
}

#[test]
fn a_report_of_a_run_with_a_baseline_is_headed_by_the_exit_code_of_the_process() {
    let project = Project::starter();
    project.run(&["run"]).expect_code(0);
    project.run(&["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    let headed = |arguments: &[&str], code: i32| {
        let arguments = [&["run", "--report", "markdown=now.md"], arguments].concat();
        project.run(&arguments).expect_code(code);
        let begins = format!("### ragcheck: exit code {code}\n");
        let later = project.run(&["report", "--to", "markdown"]);
        assert!(project.read("now.md").starts_with(&begins) && later.stdout.starts_with(&begins), "{}", later.stdout);
    };
    headed(&["--baseline", "base.json", "--fail-on", "regression"], 0);
    headed(&["--baseline", "base.json", "--fail-on", "flip"], 0);
    project.edit("scenarios/questions.yaml", "80 euros", "90 euros");
    headed(&["--baseline", "base.json", "--fail-on", "flip"], 1);
    project.run(&["compare", "reports/latest", "--save", "base.json"]).expect_code(0);
    headed(&["--baseline", "base.json", "--fail-on", "flip"], 0);
    headed(&["--baseline", "base.json"], 1);
    let (one, other) = (project.read("base.json"), "\"case\": \"questions/");
    project.write("base.json", &one.replace(other, "\"case\": \"elsewhere/"));
    let nothing = project.run(&["run", "--baseline", "base.json", "--fail-on", "flip"]);
    let later = project.run(&["report", "--to", "markdown"]).stdout;
    assert!(later.starts_with(&format!("### ragcheck: exit code {}\n", nothing.code)), "{} {later}", nothing.stderr);
}

#[test]
fn too_few_cases_for_a_regression_are_a_usage_error_that_says_how_many_would_do() {
    let project = Project::shipped();
    project.write("one.yaml", CRITERIA);
    let one = [&RUN[..], &["--only", "valve-error"]].concat();
    // A part of a run is not the newest run: its folder is told in a file.
    let made = |more: &[&str]| {
        project.run(&[&one[..], &["--folder-file=folder.txt"], more].concat()).expect_code(0);
        project.read("folder.txt").trim().to_owned()
    };
    let run = made(&[]);
    let refused = project.run(&["compare", &run, &run, "--fail-on", "regression"]);
    let why = "no regression can be shown: 1 case compared, and with 2 required criteria at least 7 are needed";
    assert!(refused.expect_code(2).stderr.contains(why), "{}", refused.stderr);
    project.run(&["compare", &run, &run]).expect_code(0);
    project.run(&["compare", &run, &run, "--fail-on", "flip"]).expect_code(0);

    // Before a run it costs nothing to say so.
    let early = project.run(&[&one[..], &["--baseline", &run, "--fail-on", "regression"]].concat());
    assert!(early.expect_code(2).stderr.contains("fewer than 6 can show no regression"), "{}", early.stderr);
    let once = made(&["--repeat", "1"]);
    let refused = project.run(&[&one[..], &["--mode", "live", "--baseline", &once, "--fail-on", "flip"]].concat());
    assert!(
        refused.expect_code(2).stderr.contains("needs 3 repetitions of each case on both sides"),
        "{}",
        refused.stderr
    );
}

#[test]
fn one_comparison_has_one_sentence_whichever_command_makes_it() {
    use serde_json::Value;
    let project = Project::shipped();
    let folder = "scenarios/four-agents";
    let criteria = format!("{folder}/criteria.yaml");
    let _ = project.run(&["run", folder, "--criteria", &criteria, "--no-history"]);
    let read = |arguments: &[&str]| -> Value {
        let outcome = project.run(&[arguments, &["--format", "json"]].concat());
        serde_json::from_str(&outcome.expect_code(0).stdout).expect("JSON")
    };
    let all = read(&["compare", "reports/latest"]);
    let run = newest(&project);
    let (react, tool) = (format!("{run}@react"), format!("{run}@tool-rag"));
    let pair = read(&["compare", &react, &tool]);
    let named = read(&["compare", "reports/latest", "--variants", "react,tool-rag"]);
    let of = |found: &Value, end: &str| found["label"].as_str().is_some_and(|label| label.ends_with(end));
    let among = all["pairs"].as_array().expect("pairs").iter();
    let among = among.clone().find(|one| of(&one["a"], "@react") && of(&one["b"], "@tool-rag")).expect("the pair");
    for key in ["rows", "flips", "changes", "conclusion"] {
        assert_eq!(pair[key], among[key], "{key}");
        assert_eq!(named["pairs"][0][key], among[key], "{key}");
    }
    // A saved baseline and `run --baseline` say what `compare A B` says.
    project.run(&["compare", &run, "--save", "base.json"]).expect_code(0);
    let direct = read(&["compare", "base.json", &run]);
    let _ = project.run(&["run", folder, "--criteria", &criteria, "--no-history", "--baseline", "base.json"]);
    let written = project.latest("comparison.json");
    for key in ["rows", "flips", "conclusion"] {
        assert_eq!(direct[key], written[key], "{key}");
    }
}

#[test]
fn conversations_that_were_exported_without_answers_have_not_failed() {
    let project = Project::starter();
    let log = |answered: &dyn Fn(usize) -> bool| -> String {
        let line = |case: usize| {
            let answer = if answered(case) { r#", "answer": {"text": "So."}"# } else { "" };
            let turn = format!(r#"{{"message": "question {case}", "calls": [], "took_ms": 500{answer}}}"#);
            format!("{{\"case\": \"c{case}\", \"conversations\": [{{\"turns\": [{turn}]}}]}}\n")
        };
        (0..12).map(line).collect()
    };
    let scored = |answered: &dyn Fn(usize) -> bool| {
        project.write("log.jsonl", &log(answered));
        project.run(&["score", "--import", "log.jsonl"]);
        project.newest()
    };
    let (whole, bare, part) = (scored(&|_| true), scored(&|_| false), scored(&|case| case > 0));
    let outcome = project.run(&["compare", &whole, &bare, "--fail-on", "flip"]);
    outcome.expect_code(3);
    assert!(!outcome.stdout.contains("no answer"), "no answer is known to be missing: {}", outcome.stdout);
    let outcome = project.run(&["compare", &whole, &part, "--fail-on", "flip"]);
    outcome.expect_code(0);
    let said = outcome.stdout.split_whitespace().collect::<Vec<_>>().join(" ") + &outcome.stderr;
    assert!(said.contains("has no result of 1 case of the other side: log/c0"), "{said}");
    assert!(!said.contains("in ERROR") && !said.contains("could not be run"), "{said}");
}
