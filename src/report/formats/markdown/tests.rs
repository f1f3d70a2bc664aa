//! The report for pull requests.

use super::*;
use crate::compare::{compare, sample::summary};
use crate::report::{DecidedExit, sample, tests::written};

#[test]
fn no_markup_mention_or_link_survives() {
    let shown = escaped("<img src=x>|`a`\n@root see #12 and https://evil.example www.evil.example [x](y)");
    assert!(!shown.contains('<') && !shown.contains('\n'));
    for live in ["@root", "#12", "://", "www.e", " [", "](", " |"] {
        assert!(!shown.contains(live), "{live} in {shown}");
    }
}

#[test]
fn each_failing_case_is_a_row_with_its_trials_and_the_commands_that_reproduce_it_follow() {
    let text = written(&FORMATS[0], &sample::run(30).view());
    assert!(text.contains("| **FAILS** | heat-pumps/skips-the-manual | 30 |"), "{text}");
    assert!(text.contains("```sh\nragcheck ") && text.contains("\nragcheck show "), "{text}");
    assert!(!text.contains("against the base"), "nothing was compared: {text}");
}

#[test]
fn at_most_twenty_five_lines_stand_before_the_folds_and_no_failed_criterion_is_left_out_for_cases() {
    let mut run = sample::run(40);
    let group = run.evaluation.errors[0].clone();
    for kind in ["cassette miss", "provider error", "lane missing"] {
        run.evaluation.errors.push(crate::gate::ErrorGroup { kind: kind.to_owned(), ..group.clone() });
    }
    let found = regression("a prompt");
    let decided = DecidedExit { exit_code: 3, why: "trials could not be run".into() };
    let failed = run.evaluation.criteria.iter().find(|row| row.verdict == Verdict::Fail && row.required);
    let name = escaped(&failed.expect("one fails").key());
    for view in [View { comparison: Some(&found), decided: Some(&decided), ..run.view() }, run.view()] {
        let text = written(&FORMATS[0], &view);
        let first = text.split("<details>").next().expect("a beginning");
        assert!(first.lines().count() <= FIRST, "{}:\n{first}", first.lines().count());
        assert!(first.contains("ragcheck cassette refresh --missed --yes"), "{first}");
        assert!(text.contains(&format!("| {name}, ")), "with what it requires: {text}");
    }
    run.evaluation.errors.clear();
    let text = written(&FORMATS[0], &run.view());
    let first = text.split("<details>").next().expect("a beginning");
    assert!(first.contains(&format!("| **FAILS** | {name}, ")), "{first}");
}

#[test]
fn rows_beyond_twenty_are_counted() {
    let mut out = String::new();
    list(&mut out, LISTED, (0..LISTED + 7).map(|row| row.to_string()));
    assert_eq!(out.lines().count(), LISTED + 2);
    assert!(out.ends_with("\n\nand 7 more\n"), "{out}");
}

#[test]
fn what_changed_comes_first_with_tokens_money_and_p95_of_the_base_and_of_now() {
    let run = sample::run(1);
    let found = regression("```\n::stop-commands::x\n@everyone");
    let text = written(&FORMATS[0], &View { comparison: Some(&found), ..run.view() });
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in {text}"));
    assert!(at("Against the base: ") < at("| **REGRESSED** | cases |") && at("REGRESSED") < at("Criteria: "));
    assert!(at("| **REGRESSED**") < at("What changed against the base"));
    at("| | base | now | difference |");
    at("| input tokens | 1,000 | 1,200 | +200, +20.0 % |");
    at("| cost | \\$2.50 | \\$2.50 | the same |");
    at("| turn p95 of tool-rag.base | 1.00 s | 1.00 s | the same |");
    at("````diff\n@@");
}

#[test]
fn the_whole_fits_into_a_comment_however_long_the_texts_and_ends_no_block_early() {
    let mut run = sample::run(40);
    let long = "&[@everyone](https://x.example) ```\n".repeat(400);
    for error in 0..500 {
        let trials = vec![format!("{long}{error}")];
        run.evaluation.errors.push(crate::gate::ErrorGroup {
            kind: long.clone(),
            message: long.clone(),
            detail: vec![long.clone(); 9],
            trials,
        });
    }
    run.evaluation.notes = vec![long.clone(); 300];
    run.evaluation.evidence = vec![long.clone(); 300];
    let found = regression(&long);
    let text = written(&FORMATS[0], &View { comparison: Some(&found), ..run.view() });
    assert!(text.len() < 65_536, "{}", text.len());
    assert!(text.contains("**REGRESSED**") && text.contains("\nand 5"), "{text}");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
}

/// Ten cases that passed and fail now, with a prompt of these words and more expensive tokens.
fn regression(prompt: &str) -> Comparison {
    let names: Vec<String> = (0..10).map(|case| format!("c{case}")).collect();
    let rows = |passed| names.iter().map(|name| (name.as_str(), passed, 1)).collect::<Vec<_>>();
    let (mut a, mut b) = (summary("a", &rows(1)), summary("b", &rows(0)));
    for side in [&mut a, &mut b] {
        side.settings[0].recorded_from = ["acme m".to_owned()].into();
    }
    b.settings[0].prompts.insert("system".into(), prompt.into());
    b.cases[0].usage.as_mut().expect("kept").input_tokens = Some(300);
    compare(&a, &b, 0.02).expect("comparable")
}

#[test]
fn the_heading_is_the_exit_code_of_the_run_with_what_decided_it() {
    let run = sample::run(1);
    let alone = run.evaluation.exit_code;
    assert!(written(&FORMATS[0], &run.view()).starts_with(&format!("### ragcheck: exit code {alone}\n\n")));
    let decided = DecidedExit { exit_code: 0, why: "--fail-on flip: no case fails that passed".into() };
    let text = written(&FORMATS[0], &View { decided: Some(&decided), ..run.view() });
    let begins =
        "### ragcheck: exit code 0\n\n--fail-on flip: no case fails that passed; the criteria alone: exit code";
    assert!(text.starts_with(&format!("{begins} {alone}\n\n")), "{text}");
}

#[test]
fn tokens_are_told_and_a_cost_without_a_price_is_not_measured() {
    let mut run = sample::run(2);
    let text = written(&FORMATS[0], &run.view());
    assert!(text.contains("input tokens") && text.contains("cost NOT\\_MEASURED: the plan does not say"), "{text}");
    run.evaluation.spending.run.output_tokens = None;
    let text = written(&FORMATS[0], &run.view());
    assert!(text.contains("- Tokens and cost: not measured: the plan does not say"), "{text}");
}

#[test]
fn each_criterion_is_one_row_of_the_table() {
    let run = sample::run(1);
    let text = written(&FORMATS[0], &run.view());
    let failing_gates = run.evaluation.gates.iter().filter(|gate| gate.verdict != Verdict::Pass).count();
    let marked = |line: &&str| ["✅", "❌", "❔", "⚪", "⚠️"].iter().any(|mark| line.starts_with(&format!("| {mark}")));
    let rows = text.lines().filter(marked).count();
    assert_eq!(rows, run.evaluation.criteria.len() + failing_gates);
}
