//! `ragcheck review` in a real browser, by the keyboard alone.

use super::chromium::Chromium;
use crate::review::{Review, graded, rows};
use serde_json::json;

const PHONE: (u32, u32) = (390, 844);
const DESK: (u32, u32) = (1440, 900);

/// Every seventh conversation leaves its user unsatisfied.
fn key(place: usize) -> &'static str {
    if place.is_multiple_of(7) { "n" } else { "y" }
}

/// Waits for a page that takes keys: its script ran, and it was painted, before which a browser drops what is typed.
fn heading(browser: &mut Chromium, words: &str) {
    browser.until(&format!(
        "document.querySelector('h1')?.textContent === {} && document.readyState === 'complete' \
         && performance.getEntriesByType('paint').length > 0",
        json!(words)
    ));
}

/// Rates the conversations from `from` on, up to `to`.
fn rate(browser: &mut Chromium, (from, to): (usize, usize), of: usize) {
    for place in from..=to {
        heading(browser, &format!("Conversation {place} of {of}"));
        browser.press(key(place));
    }
}

#[test]
#[ignore = "needs Chromium"]
fn needs_chromium_forty_conversations_are_rated_by_keyboard_closed_in_the_middle_and_resumed() {
    let project = graded();
    let options = ["--sample", "40", "--disagreements", "6", "--seed", "3"];
    let review = Review::start(&project, &options);
    let of: usize = review.told.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(of >= 40 && review.told.contains("40 of them a random sample"), "{}", review.told);
    let mut browser = Chromium::start();
    browser.open(&review.address, DESK, false);
    rate(&mut browser, (1, 17), of);
    heading(&mut browser, &format!("Conversation 18 of {of}"));
    // Back, and a changed mind; then on with the first that has no rating.
    browser.press("k");
    heading(&mut browser, &format!("Conversation 17 of {of}"));
    browser.press("n");
    heading(&mut browser, &format!("Conversation 18 of {of}"));
    for (key, words) in [("j", "Conversation 19"), ("k", "Conversation 18"), ("k", "Conversation 17")] {
        browser.press(key);
        heading(&mut browser, &format!("{words} of {of}"));
    }
    browser.press("y");
    assert_eq!(browser.complaints(), Vec::<&serde_json::Value>::new(), "the console is silent");
    heading(&mut browser, &format!("Conversation 18 of {of}"));
    assert!(browser.requests().iter().all(|asked| asked.starts_with(&review.address)), "{:?}", browser.requests());
    // Browser and review are both killed in the middle.
    drop(browser);
    drop(review);
    assert_eq!(rows(&project).len(), 17);
    let review = Review::start(&project, &options);
    let mut browser = Chromium::start();
    browser.open(&review.address, PHONE, true);
    rate(&mut browser, (18, of - 1), of);
    // The last one by Tab and Enter.
    heading(&mut browser, &format!("Conversation {of} of {of}"));
    for _ in 0..12 {
        browser.press("Tab");
        if browser.value(&format!("document.activeElement.dataset.key === '{}'", key(of))) == json!(true) {
            break;
        }
    }
    browser.press("Enter");
    heading(&mut browser, &format!("All {of} conversations are rated"));
    assert!(browser.text("document.querySelector('main p').textContent").contains("ragcheck run"));
    let found = rows(&project);
    assert_eq!(found.len(), of, "every conversation has its rating");
    let trials: std::collections::BTreeSet<&String> = found.iter().map(|row| &row[0]).collect();
    assert_eq!(trials.len(), of, "and each once");
    for (place, row) in found.iter().enumerate() {
        assert_eq!(row[1], if key(place + 1) == "y" { "yes" } else { "no" }, "{place}: {row:?}");
    }
    // SC-004 comes from the random sample, and so does the judge's agreement.
    project.edit("ragcheck.yaml", "not_measured_ok: [SC-004]", "ratings: ratings.csv");
    project.run(&["run", "scenarios/external.yaml", "scenarios/keywords.yaml", "--no-history"]);
    let run = project.latest("run.json");
    let row = run["criteria"].as_array().and_then(|rows| rows.iter().find(|row| row["id"] == "SC-004"));
    let row = row.expect("SC-004");
    let satisfied = found.iter().filter(|row| row[2] == "random" && row[1] == "yes").count();
    assert_eq!((row["n"].as_u64(), row["successes"].as_u64()), (Some(40), Some(satisfied as u64)), "{row}");
    let judged = project.run(&["judge", "reports/latest"]);
    assert!(judged.stdout.contains("Beside human ratings of whole trials"), "{}{}", judged.stdout, judged.stderr);
}

#[test]
#[ignore = "needs Chromium; long: .ci/slow"]
fn needs_a_browser_the_review_page_fits_a_phone_and_axe_finds_nothing_serious() {
    let axe = std::env::var("RAGCHECK_AXE").expect("RAGCHECK_AXE names axe.min.js of axe-core");
    let axe = std::fs::read_to_string(&axe).unwrap_or_else(|why| panic!("{axe}: {why}"));
    let project = graded();
    let review = Review::start(&project, &["--sample", "2", "--disagreements", "0"]);
    let mut browser = Chromium::start();
    for page in ["1", "0"] {
        for (size, dark) in [(DESK, false), (DESK, true), (PHONE, false), (PHONE, true)] {
            browser.open(&format!("{}{page}", review.address), size, dark);
            assert_eq!(browser.off_screen(), json!([]), "{page} at {size:?}");
            assert_eq!(browser.serious(&axe), json!([]), "{page} at {size:?}, dark: {dark}");
        }
        if page == "1" {
            browser.open(&review.address, DESK, false);
            rate(&mut browser, (1, 2), 2);
            heading(&mut browser, "All 2 conversations are rated");
        }
    }
}
