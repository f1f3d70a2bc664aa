//! The other subcommands, as they are typed: what they print, and that a reader who goes away breaks nothing.

use super::project::{Outcome, Project, few, whole};
use crate::program::program;
use std::fs;
use std::process::Stdio;

const TRIAL: &str = "knowledge/valve-error/tool-rag.base.1";

#[test]
fn help_holds_the_table_of_exit_codes() {
    let (project, _) = few();
    let outcome = project.run(&["--help"]);
    outcome.expect_code(0);
    for code in [
        "0  every required gate passed",
        "1  a required gate failed",
        "2  usage",
        "3  the run is incomplete",
        "4  a required gate is INCONCLUSIVE",
    ] {
        assert!(outcome.stdout.contains(code), "{code}: {}", outcome.stdout);
    }
    assert!(project.run(&["--version"]).stdout.starts_with("ragcheck 0."));
}

#[test]
fn explain_says_what_a_criterion_measures_and_how_it_is_judged() {
    let (project, _) = few();
    let outcome = project.run(&["explain", "SC-002"]);
    outcome.expect_code(0);
    for words in ["first_attempt_rate(respond)", ">= 95%", "Clopper-Pearson", "124"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert!(project.run(&["explain", "latency_p95"]).stdout.contains("latency"));
    let all = project.run(&["explain"]).stdout;
    assert!((1..=8).all(|number| all.contains(&format!("SC-{number:03}"))), "{all}");
    let unknown = project.run(&["explain", "SC-099"]);
    unknown.expect_code(2);
    assert!(unknown.stderr.contains("`SC-099`: did you mean `SC-0"), "{}", unknown.stderr);
}

#[test]
fn show_prints_a_conversation_from_the_newest_run_or_from_a_folder() {
    let (project, _) = few();
    let outcome = project.run(&["show", TRIAL]);
    outcome.expect_code(0);
    for words in [
        "REPLAYED",
        "user: What does error E-17 mean",
        "knowledge_base_search",
        "error-codes#3",
        "38 to 46 ohms",
        "completed after",
    ] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert_eq!(project.run(&["show", &format!("reports/latest/{TRIAL}")]).stdout, outcome.stdout);
    let unknown = project.run(&["show", "knowledge/valve-eror/tool-rag.base.1"]);
    unknown.expect_code(2);
    assert!(unknown.stderr.contains(&format!("did you mean `{TRIAL}`?")), "{}", unknown.stderr);
}

#[test]
fn the_shipped_suite_s_verdict_is_five_lines_that_say_where_to_read_on_and_verbose_prints_every_criterion() {
    let (project, verbose) = whole();
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    super::project::copy(&fs::canonicalize(project.path("reports/latest")).expect("a run"), &run);
    let run = run.to_str().expect("UTF-8");
    let brief = project.run(&["score", run]);
    brief.expect_code(0);
    assert_eq!(brief.stdout.lines().count(), 5, "{}", brief.stdout);
    for words in ["552 trials: 552 PASS", "required gates passed", "(exit code 0)", "--verbose", "\nreport: "] {
        assert!(brief.stdout.contains(words), "{words}: {}", brief.stdout);
    }
    assert!((1..=8).all(|number| verbose.stdout.contains(&format!("SC-{number:03} "))), "{}", verbose.stdout);
}

#[test]
fn each_format_of_a_report_comes_out_whole() {
    let (project, _) = few();
    let report = |arguments: &[&str]| {
        let outcome = project.run(&[&["report", "reports/latest", "--to"], arguments].concat());
        outcome.expect_code(0);
        assert_eq!(outcome.stderr, "");
        outcome.stdout
    };
    assert_eq!(report(&["html"]), project.read("reports/latest/index.html"));
    assert_eq!(report(&["csv"]), project.read("reports/latest/criteria.csv"));
    assert_eq!(report(&["csv", "--rows", "trials"]), project.read("reports/latest/trials.csv"));
    assert_eq!(report(&["json"]), project.read("reports/latest/run.json"));
    let junit = report(&["junit"]);
    assert!(junit.starts_with("<?xml") && junit.trim_end().ends_with("</testsuites>"), "{junit}");
    assert!(junit.matches("<testcase").count() >= 100 + 8, "{} test cases", junit.matches("<testcase").count());
    assert!(!junit.contains("<failure"), "{junit}");
    let markdown = report(&["markdown"]);
    assert!((1..=8).all(|number| markdown.contains(&format!("| SC-{number:03}"))), "{markdown}");
}

#[test]
fn run_and_list_print_json_for_programs() {
    let project = Project::shipped();
    let outcome = project.run(&["run", "--only", "knowledge/*", "--format", "json"]);
    let run: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON and nothing else");
    assert_eq!(run["exit_code"], outcome.code);
    assert_eq!(run["trials"].as_array().map(Vec::len), Some(24));
    let outcome = project.run(&["list", "--format", "json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&outcome.stdout).expect("a JSON list");
    assert!(rows.len() >= 358, "{}", rows.len());
    assert!(rows.iter().all(|row| row["recorded"] == true), "a lane of the shipped suite has no recording");
    assert!(rows.iter().any(|row| row["trial"] == TRIAL));
}

#[test]
fn list_counts_what_would_run() {
    let (project, _) = whole();
    let outcome = project.run(&["list", "scenarios/knowledge.yaml", "--repeat", "2"]);
    outcome.expect_code(0);
    let end = "\n16 trials of 8 cases, 16 turns, 16 recorded\n\
               RECORDED compares the first request of each trial of a built-in flow; `ragcheck run` compares all requests.\n";
    assert!(outcome.stdout.ends_with(end), "{}", outcome.stdout);
}

#[test]
fn an_estimate_counts_requests_by_recordings_and_else_by_limits_and_says_what_could_be_seen() {
    let project = Project::shipped();
    let lane = "fixtures/cassettes/knowledge/valve-error/tool-rag.base.1.yaml";
    let services = |service: &str| project.read(lane).matches(&format!("service: \"{service}\"\n")).count();
    let (model, search) = (services("model"), services("search"));
    assert!(model > 1, "{}", project.read(lane));
    let one = ["list", "scenarios/knowledge.yaml", "--only", "valve-error", "--repeat", "1", "--estimate"];
    let outcome = project.run(&one);
    outcome.expect_code(0);
    let sent = format!("  {model} model and {search} search requests in 1 trial, as in their recordings");
    assert!(outcome.stdout.contains(&sent), "{sent}:\n{}", outcome.stdout);
    assert!(outcome.stdout.contains("money: not measured"), "{}", outcome.stdout);
    assert!(
        outcome.stdout.contains("1 case is too few to show a difference, 6 are needed"),
        "one case shows none: {}",
        outcome.stdout
    );

    let prices = "prices:\n  simulator/fernlight-sim: {input: 1000000, output: 0}\n";
    project.write("ragcheck.yaml", &format!("{}{prices}", project.read("ragcheck.yaml")));
    let priced = project.run(&one);
    let read: u64 = project
        .read(lane)
        .lines()
        .filter_map(|line| line.trim().strip_prefix("prompt_tokens: ")?.parse::<u64>().ok())
        .sum();
    assert!(read > 0 && priced.stdout.contains(&format!("money: about ${read}")), "{read}: {}", priced.stdout);

    std::fs::remove_file(project.path(lane)).expect("removed");
    let outcome = project.run(&["list", "scenarios/knowledge.yaml", "--estimate"]);
    assert!(outcome.stdout.contains("in 1 trial, by the recorded lanes of the same cases"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("(`fixed_suite`, which the criteria are about): a difference of"));

    project.write(
        "mine.yaml",
        "scenario: mine\nflow: tool-rag\nknowledge: fernlight\nlimits: {model_calls: 5}\nmodel: {provider: simulator, name: any}\ncases:\n  - {case: one, ask: q, expect: {answer: {matches: [a]}}}\n",
    );
    let outcome = project.run(&["list", "mine.yaml", "--estimate", "--format", "json"]);
    let told: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(told["estimate"]["bounded"]["model"], 5.0, "{told}");
    assert_eq!(told["trials"].as_array().map(Vec::len), Some(1));
}

#[test]
fn check_finds_the_shipped_project_sound() {
    let (project, _) = whole();
    let outcome = project.run(&["check"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.contains("0 errors, 4 notes"), "{}", outcome.stdout);
    let keys = outcome.stdout.matches("live and recording runs of scenarios/managed-rag").count();
    assert_eq!(keys, 4, "each note names a key that live runs lack: {}", outcome.stdout);
}

#[test]
fn the_schema_command_prints_each_schema() {
    let (project, _) = few();
    for document in ["scenario", "criteria", "project"] {
        let text = ragcheck::internals::cli::schema::text(document).expect("a schema");
        assert_eq!(project.run(&["schema", document]).stdout, text);
    }
}

#[test]
fn knowledge_search_shows_passages_with_their_ids() {
    let (project, _) = few();
    let outcome = project.run(&["knowledge", "search", "fernlight", "ohms of the valve coil", "--top-k", "2"]);
    outcome.expect_code(0);
    assert!(outcome.stdout.starts_with("1. error-codes#3"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\n2. ") && !outcome.stdout.contains("\n3. "), "{}", outcome.stdout);
}

#[test]
fn a_reader_that_goes_away_makes_no_noise_and_has_an_exit_code() {
    let (project, _) = few();
    for (arguments, code) in [
        (&["report", "--to", "html"][..], 5),
        (&["list", "scenarios/knowledge.yaml"], 5),
        (&["score"], 5),
        (&["--help"], 5),
        (&["--version"], 5),
    ] {
        // Gone before the first byte: a reader that leaves later may leave after the last one.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let child = project.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().expect("it runs");
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{arguments:?}");
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_result_that_cannot_be_printed_is_an_exit_code_of_every_subcommand_and_no_panic() {
    // A project of its own: runs and comparisons are written.
    let project = Project::shipped();
    project.run(&["run", "scenarios/knowledge.yaml"]);
    let printing: [&[&str]; 14] = [
        &["check", "scenarios/knowledge.yaml"],
        &["list", "scenarios/knowledge.yaml"],
        &["list", "scenarios/knowledge.yaml", "--format", "json"],
        &["score"],
        &["score", "--format", "json"],
        &["report", "--to", "csv"],
        &["show", TRIAL],
        &["explain", "SC-001"],
        &["schema", "scenario"],
        &["history"],
        &["compare", "reports/latest", "reports/latest"],
        &["knowledge", "search", "fernlight", "valve"],
        &["run", "scenarios/knowledge.yaml", "--only", "descaling"],
        &["cassette", "scan", "scenarios/knowledge.yaml"],
    ];
    for arguments in printing {
        let alone = project.run(arguments);
        assert!(alone.code < 2 && !alone.stdout.is_empty(), "{arguments:?}: {}{}", alone.stdout, alone.stderr);
        // A verdict goes before an output that nobody gets.
        let expected = if alone.code == 0 { 5 } else { alone.code };
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let output = project.command(arguments).stdout(full).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{arguments:?}: {told}");
        assert!(told.contains("error: the result cannot be printed: "), "{arguments:?}: {told}");
        assert!(!told.contains("panicked"), "{arguments:?}: {told}");
        // Nor where errors cannot be told either.
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let status = project.command(arguments).stdout(full()).stderr(full()).status().expect("it runs");
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
    }
}

#[test]
fn commands_work_from_a_folder_inside_the_project() {
    let project = Project::shipped();
    let mut command = project.command(&["run", "--only", "knowledge/firewall"]);
    command.current_dir(project.path("fixtures/knowledge"));
    let outcome = super::project::Outcome::of(&mut command);
    assert!(outcome.stdout.contains("3 trials: 3 PASS"), "{}{}", outcome.stdout, outcome.stderr);
    assert!(project.path(&project.newest()).exists());
    assert!(!project.path("reports/latest").exists(), "a part is not the latest run");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_for_a_stdout_that_is_closed_was_not_printed_and_one_for_nobody_was() {
    let project = Project::starter();
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", line]).current_dir(project.path(".")).env("RAGCHECK", program());
        Outcome::of(&mut command)
    };
    for line in ["$RAGCHECK run >&-", "$RAGCHECK list >&-", "$RAGCHECK report --to json >&-"] {
        let said = shell(line);
        assert_eq!(said.code, 5, "{line}: {}", said.stderr);
        assert!(said.stderr.contains("stdout is closed"), "{line}: {}", said.stderr);
    }
    shell("$RAGCHECK run >/dev/null").expect_code(0);
    shell("$RAGCHECK run <&- >/dev/null 2>&-").expect_code(0);
    // As a program opens it for reading and writing both.
    shell("$RAGCHECK run 1<>/dev/null").expect_code(0);
}
