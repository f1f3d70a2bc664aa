//! The report in a real browser: Chromium without a window opens it, filters it by its address, and opens a trial.

use super::project::{Project, whole};
use std::process::Command;

/// The page as the browser has it once its script ran, with the `fragment` of its address.
fn opened(project: &Project, fragment: &str) -> String {
    let browser = std::env::var("RAGCHECK_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    let page = project.path("reports/latest").canonicalize().expect("a run folder").join("index.html");
    let address = format!("file://{}{fragment}", page.display());
    let profile = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(&browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg(address);
    let output = command.output().unwrap_or_else(|why| panic!("{browser}: {why}"));
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("</html>"), "{}", String::from_utf8_lossy(&output.stderr));
    page
}

/// How many trials the table says that it shows.
fn found(page: &str) -> String {
    let text = page.split("id=\"found\"").nth(1).and_then(|rest| rest.split('>').nth(1)).expect("the number found");
    text.split('<').next().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "needs Chromium"]
fn needs_chromium_the_report_is_filtered_by_its_address_and_opens_a_trial() {
    let (project, _) = whole();
    let all = found(&opened(project, ""));
    let number: usize = all.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(number > 300 && all.ends_with(" trials"), "{all}");

    let failing = project.latest("run.json");
    let rows = failing["criteria"].as_array().expect("criteria");
    let violation = rows.iter().flat_map(|row| row["violations"].as_array().into_iter().flatten()).next().expect("one");
    let trial = violation["trial"].as_str().expect("a trial");
    let note = violation["note"].as_str().expect("a reason").split(' ').next().expect("a word");
    let by_reason = found(&opened(project, &format!("#trials?text={note}")));
    assert!(by_reason.contains(" of ") && !by_reason.starts_with("No "), "{note}: {by_reason}");
    let by_question = found(&opened(project, "#trials?text=valve+coil"));
    assert!(by_question.contains(" of "), "{by_question}");
    assert_eq!(found(&opened(project, "#trials?text=nothingofthekind")), "No trial matches.");

    let page = opened(project, &format!("#trial={trial}"));
    assert!(page.contains("Copy re-run command") && page.contains("class=\"turn"), "the trial {trial} is not shown");
}
