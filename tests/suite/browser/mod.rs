//! The pages in a real browser. `needs_chromium…` is the smoke of `.ci/run`; `needs_a_browser…`, with axe-core and a page of
//! 50,000 trials, is in `.ci/slow`.

mod chromium;
mod review;

use super::project::{Project, whole};
use chromium::Chromium;
use serde_json::{Value, json};
use std::path::Path;

const WIDE: (u32, u32) = (1280, 900);
const NARROW: (u32, u32) = (390, 844);

/// The address of a file of the newest run.
fn address(project: &Project, file: &str, fragment: &str) -> String {
    let folder = project.path("reports/latest").canonicalize().expect("a run folder");
    format!("file://{}{fragment}", folder.join(file).display())
}

/// A trial with a violation, and its note.
fn violation(project: &Project) -> (String, String) {
    let run = project.latest("run.json");
    let rows = run["criteria"].as_array().expect("criteria");
    let first = rows.iter().flat_map(|row| row["violations"].as_array().into_iter().flatten()).next().expect("one");
    (first["trial"].as_str().expect("a trial").to_owned(), first["reason"].as_str().expect("a note").to_owned())
}

fn silent(browser: &Chromium) {
    assert_eq!(browser.complaints(), Vec::<&Value>::new(), "the console is silent");
    assert_eq!(browser.requests(), Vec::<&str>::new(), "nothing is asked for");
}

const FOUND: &str = "document.getElementById('found').textContent";

#[test]
#[ignore = "needs Chromium"]
fn needs_chromium_the_report_is_filtered_searched_and_goes_to_where_a_trial_broke() {
    let (project, _) = whole();
    let mut browser = Chromium::start();
    browser.open(&address(project, "index.html", ""), WIDE, false);
    let all = browser.text(FOUND);
    let number: usize = all.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    assert!(number > 300 && all.ends_with(" trials"), "{all}");

    // The filter is in the address, and the address is a filter.
    browser.value("document.querySelector('#chips [data-name=slow]').click()");
    let slow = browser.text(FOUND);
    assert!(slow.contains(" of ") && browser.text("location.hash") == "#trials?slow=1", "{slow}");
    browser.open(&address(project, "index.html", "#trials?slow=1"), WIDE, false);
    assert_eq!(browser.text(FOUND), slow);

    // Whatever stands in the address, the page holds, and typing fast does not make the browser complain.
    for hostile in ["#trials?text=<script>&slow=%zz", "#trials?sort=__proto__", "#trial=%E0%A4%A&event=-1", "#%"] {
        browser.open(&address(project, "index.html", hostile), WIDE, false);
        assert!(browser.value("document.querySelectorAll('#table tbody tr').length >= 0") == json!(true), "{hostile}");
    }
    browser.value("location.hash = '#trials'");
    let typed = "for (let i = 0; i < 300; i++) { filter.elements.text.value = 'a' + i; filter.dispatchEvent(new Event('input')); }";
    browser.value(typed);
    browser.until("location.hash === '#trials?text=a299'");

    // Reasons, questions, answers and documents are searched; what nobody said is not found.
    let (trial, note) = violation(project);
    for (words, what) in [(note.as_str(), "a reason"), ("valve coil", "a question"), ("warranty#4", "a document")] {
        browser.value(&format!("location.hash = '#trials?text=' + encodeURIComponent({})", json!(words)));
        browser.until(&format!("{FOUND}.includes(' of ')"));
        assert!(!browser.text(FOUND).starts_with('0'), "{what}: {words}");
    }
    browser.value("location.hash = '#trials?text=nothingofthekind'");
    browser.until(&format!("{FOUND} === 'No trial matches.'"));

    // A trial opens, and its break is an event with an address of its own.
    browser.value(&format!("location.hash = '#trial=' + {}", json!(trial)));
    browser.until("document.querySelector('#trial .fall') !== null");
    assert_eq!(browser.value("document.querySelectorAll('#trial .here').length > 0"), json!(true));
    // Every message of a request has its text: the prompt, the question, completions and results of tools.
    browser.value(
        "[...document.querySelectorAll('#trial details')].filter((one) => \
         one.querySelector('summary').textContent.endsWith('to the model')).forEach((one) => { one.open = true; })",
    );
    browser.until("document.querySelectorAll('#trial details[open] > ol.attempts > li > b').length > 2");
    let unknown = "[...document.querySelectorAll('#trial details[open] > ol.attempts > li')].filter((one) => \
                   one.textContent.includes('its text is in the recording alone')).map((one) => one.textContent)";
    assert_eq!(browser.value(unknown), json!([]));
    let roles = "[...new Set([...document.querySelectorAll('#trial details[open] > ol.attempts > li > b')].map((one) => \
                 one.textContent))].sort().join(' ')";
    assert_eq!(browser.text(roles), "assistant system tool user");
    browser.value("document.querySelector('.jump.main').click()");
    browser.until("document.querySelector('.aimed') !== null");
    assert!(browser.text("location.hash").contains("&event="));
    let shown = browser.value(
        "(() => { const box = document.querySelector('.aimed').getBoundingClientRect(); \
         return box.top < innerHeight && box.bottom > 0; })()",
    );
    assert_eq!(shown, json!(true), "the event is in view");
    silent(&browser);
}

#[test]
#[ignore = "needs Chromium"]
fn needs_chromium_what_is_said_of_a_trial_leads_to_the_event_where_it_broke() {
    let (project, _) = whole();
    let mut browser = Chromium::start();
    browser.open(&address(project, "index.html", ""), WIDE, false);
    // Events as the page keeps them: when, conversation, turn, kind, fields.
    let call = |tool: &str, took: u32, outcome: &str| json!([[0, tool, 0, took], null, outcome, "kb", []]);
    let events = json!([
        [0, 0, 0, "c", ["talk", null, null]],
        [0, 0, 0, "u", ["How high is it?"]],
        [0, 0, 0, "m", [[0, "searching", 1_500], true, ["model", "", null]]],
        [1_500, 0, 0, "t", call("kb_search", 12, "search")],
        [1_512, 0, 0, "t", call("web_search", 900, "failed")],
        [2_412, 0, 0, "s", ["searching", "gave_up", "answering"]],
        [2_412, 0, 0, "f", ["response", 0, "free_text", "Call the tool."]],
        [2_412, 0, 0, "r", ["model", 0, 1, "web_search", "timeout", true]],
        [2_412, 0, 0, "t", call("web_search", 5, "other")],
        [2_417, 0, 0, "e", [2_417, true, "80 euros", []]],
        [3_000, 0, 1, "u", ["And then?"]],
        [3_100, 0, 1, "e", [100, false, "Sorry", "timeout"]],
    ]);
    for (label, said, event) in [
        ("turn 1", "answered in plain text; respond needed a reminder", json!(6)),
        ("turn 1, call 2 of web_search", "timeout", json!(8)),
        ("turn 1, retry 1 of web_search", "timeout", json!(7)),
        ("turn 1", "nothing learned from first was found", json!(3)),
        ("turn 1", "slower than 1 s: 2.42 s", json!(2)),
        ("", "turn 1: calls.never: web_search", json!(4)),
        ("turn 1", "moved from `answering` without a move", json!(5)),
        ("", "turn 1: answer.contains: 90 euros", json!(9)),
        ("turn 1", "web_search has no result", json!(4)),
        ("turn 1", "kb_search comes late", json!(3)),
        ("turn 1", "anything else", json!(4)),
        ("turn 2", "anything else", json!(11)),
    ] {
        let found = browser.value(&format!(
            "(() => {{ const story = {{ e: {events}, text: String }}; \
             return breakOf(story, linksOf(story), {}, {}); }})()",
            json!(label),
            json!(said)
        ));
        assert_eq!(found, event, "{label}: {said}");
    }
    let nothing =
        "(() => { const story = { e: [], text: String }; return breakOf(story, linksOf(story), '', 'x'); })()";
    assert_eq!(browser.value(nothing), Value::Null, "nothing happened, nothing broke");
    silent(&browser);
}

#[test]
#[ignore = "needs Chromium"]
fn needs_chromium_the_shipped_report_prints_on_a_dozen_sheets_and_leads_to_pages_beside_it_alone() {
    let (project, _) = whole();
    let mut browser = Chromium::start();
    let page = address(project, "index.html", "");
    browser.open(&page, WIDE, false);
    let sheets = browser.sheets();
    assert!((3..=12).contains(&sheets), "{sheets} sheets");
    // The criteria, which decide, are printed with their figures; nothing is cut at the edge of the paper.
    browser.value("document.querySelectorAll('details').forEach((one) => { one.open = false; })");
    browser.print_layout();
    assert_eq!(browser.off_screen(), json!([]));
    let shown = "document.querySelector('#criteria details.fold tbody').checkVisibility({contentVisibilityAuto: true})";
    assert_eq!(browser.value(shown), json!(true));

    let beside = "[...document.querySelectorAll('.beside')].filter((one) => one.checkVisibility()) \
                  .map((one) => one.getAttribute('href'))";
    browser.open(&page, WIDE, false);
    assert_eq!(browser.value(beside), json!(["../index.html", "../history.html"]));
    for file in ["../index.html", "../history.html"] {
        browser.open(&address(project, file, ""), WIDE, false);
        assert!(browser.text("document.title").starts_with("ragcheck "), "{file}");
    }
    project.write("elsewhere/index.html", &project.read("reports/latest/index.html"));
    browser.open(&format!("file://{}", project.path("elsewhere/index.html").display()), WIDE, false);
    assert_eq!(browser.value(beside), json!([]), "a copy leads nowhere");
    silent(&browser);
}

#[test]
#[ignore = "needs Chromium"]
fn needs_chromium_the_command_on_a_page_shows_the_trial_of_its_own_run_though_a_newer_one_passes() {
    let project = Project::shipped();
    let (scenario, right, wrong) = ("scenarios/knowledge.yaml", "contains: [38 to 46 ohms]", "contains: [99 ohms]");
    project.edit(scenario, right, wrong);
    project.run(&["run", scenario]).expect_code(1);
    let page = address(&project, "index.html", "");
    project.edit(scenario, wrong, right);
    project.run(&["run", scenario]);
    let mut browser = Chromium::start();
    browser.open(&page, WIDE, false);
    let shows = "[...document.querySelectorAll('.commands code')].map((one) => one.textContent)\
                 .find((text) => text.startsWith('ragcheck show '))";
    let command = browser.text(shows);
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let shown = project.run(&words);
    shown.expect_code(0);
    assert!(shown.stdout.starts_with("FAIL\n"), "{command}: {}", shown.stdout);
    let trial = words[1].split_once('/').expect("a run and a trial").1;
    assert!(project.run(&["show", trial]).stdout.starts_with("PASS\n"), "the newest run passes");
    silent(&browser);
}

#[test]
#[ignore = "needs Chromium; long: .ci/slow"]
fn needs_a_browser_the_keyboard_alone_searches_opens_walks_and_jumps() {
    let (project, _) = whole();
    let mut browser = Chromium::start();
    browser.open(&address(project, "index.html", ""), WIDE, false);
    browser.press("/");
    browser.until("document.activeElement.name === 'text'");
    let (trial, _) = violation(project);
    browser.write(trial.rsplit_once('/').expect("a lane").0);
    browser.until(&format!("{FOUND}.includes(' of ')"));
    // Behind the search stand the selects, the chips and the headings: the first link of the table is reached by Tab.
    for _ in 0..80 {
        browser.press("Tab");
        if browser.value("document.activeElement.closest('#table tbody') !== null") == json!(true) {
            break;
        }
    }
    browser.press("Enter");
    browser.until("location.hash.startsWith('#trial=') && document.querySelector('#trial .fall') !== null");
    let first = browser.text("location.hash");
    browser.press("j");
    browser.until(&format!("location.hash !== {}", json!(first)));
    browser.until("document.querySelector('#trial .fall') !== null");
    browser.press("k");
    browser.until(&format!("location.hash === {}", json!(first)));
    browser.value(&format!("location.hash = '#trial=' + {}", json!(trial)));
    browser.until("document.querySelector('.jump.main') !== null");
    browser.press("b");
    browser.until("document.activeElement.classList.contains('aimed')");
    silent(&browser);
}

#[test]
#[ignore = "needs Chromium; long: .ci/slow"]
fn needs_a_browser_no_page_reaches_off_screen_and_axe_finds_nothing_serious() {
    let axe = std::env::var("RAGCHECK_AXE").expect("RAGCHECK_AXE names axe.min.js of axe-core");
    let axe = std::fs::read_to_string(&axe).unwrap_or_else(|why| panic!("{axe}: {why}"));
    let project = Project::shipped();
    project.run(&["run"]).expect_code(0);
    project.run(&["compare", "reports/latest", "reports/latest"]);
    project.run(&["compare", "reports/latest", "--variants", "usual,larger"]);
    many_points(&project);
    project.run(&["history", "--html", "reports/history.html"]);
    assert!(project.read("reports/history.html").contains("lasting change"));
    let (trial, _) = violation(&project);
    let mut browser = Chromium::start();
    for (size, dark) in [(WIDE, false), (WIDE, true), (NARROW, false), (NARROW, true)] {
        let trial = format!("#trial={trial}&event=1");
        for (file, fragment) in [
            ("index.html", ""),
            ("index.html", trial.as_str()),
            ("comparison.html", ""),
            ("variants.html", ""),
            ("../history.html", ""),
            ("../index.html", ""),
        ] {
            browser.open(&address(&project, file, fragment), size, dark);
            browser.until("!location.hash.startsWith('#trial=') || document.querySelector('.aimed') !== null");
            browser.value("document.querySelectorAll('details').forEach((one, at) => { one.open = at % 7 === 0; })");
            assert_eq!(browser.off_screen(), json!([]), "{file}{fragment} at {size:?}");
            assert_eq!(browser.serious(&axe), json!([]), "{file}{fragment} at {size:?}, dark: {dark}");
        }
    }
    silent(&browser);
}

/// Puts 40 points of one series, with a step and a pause, and two of another into the project's history.
fn many_points(project: &Project) {
    project.run(&["history", "add"]).expect_code(0);
    let text = project.read("history.jsonl");
    let first: Value = serde_json::from_str(text.lines().next().expect("a point")).expect("JSON");
    let point = |number: u64| {
        let mut point = first.clone();
        point.as_object_mut().expect("a point").remove("digest");
        let day = 1 + number % 28;
        let year = if number < 20 { 2025 } else { 2026 };
        point["id"] = json!(format!("{number:016x}"));
        point["at"] = json!(format!("{year}-{:02}-{day:02}T08:00:00Z", 2 + number / 28));
        for (place, rate) in point["rates"].as_array_mut().expect("rates").iter_mut().enumerate() {
            let n = rate["n"].as_u64().expect("a number");
            let lost = n / 10 + (number * 7 + place as u64) % 3 + if number >= 25 { n / 3 } else { 0 };
            rate["successes"] = json!(n.saturating_sub(lost));
        }
        if number >= 40 {
            point["conditions"]["cases"] = json!("other");
        }
        format!("{point}\n")
    };
    project.write("history.jsonl", &(0..42).map(point).collect::<String>());
}

const OPEN: &str = "document.querySelector('#gates details.fold').open";

#[test]
#[ignore = "needs Chromium; long: .ci/slow"]
fn needs_a_browser_gates_that_pass_are_folded_and_links_keys_and_paper_open_them() {
    let (project, _) = whole();
    let mut browser = Chromium::start();
    browser.open(&address(project, "index.html", ""), WIDE, false);
    assert!(
        browser.text("document.querySelector('#gates details.fold > summary').textContent").ends_with("gates pass")
    );
    assert_eq!(browser.value(OPEN), json!(false));
    let folded = browser.text("document.querySelector('#gates details.fold tbody').id");
    browser.open(&address(project, "index.html", &format!("#{folded}")), WIDE, false);
    browser.until(OPEN);
    let shown = format!(
        "(() => {{ const box = document.getElementById('{folded}').getBoundingClientRect(); \
         return box.height > 0 && box.top >= 0 && box.top < innerHeight; }})()"
    );
    browser.until(&shown);
    browser.value("location.hash = '#gates'");
    browser.value("document.querySelector('#gates details.fold').open = false");
    browser.press("o");
    browser.until(OPEN);
    browser.press("o");
    browser.until(&format!("!{OPEN}"));
    silent(&browser);
}

/// `RAGCHECK_LARGE_REPORT` is the page of 50,000 trials that `.ci/slow` makes.
#[test]
#[ignore = "needs Chromium; long: .ci/slow"]
fn needs_a_browser_fifty_thousand_trials_open_and_filter_while_one_waits() {
    let page = std::env::var("RAGCHECK_LARGE_REPORT").expect("RAGCHECK_LARGE_REPORT names a page of 50,000 trials");
    let page = Path::new(&page).canonicalize().expect("the page");
    let mut browser = Chromium::start();
    // The best of some, for other work of the machine is no property of the page.
    let mut opened = f64::INFINITY;
    for _ in 0..5 {
        browser.open(&format!("file://{}", page.display()), WIDE, false);
        browser.until("performance.getEntriesByType('navigation')[0].loadEventEnd > 0");
        assert!(browser.text(FOUND).starts_with("50,000"), "{}", browser.text(FOUND));
        let took = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
        opened = opened.min(took.as_f64().expect("milliseconds"));
    }
    // What is searched is unpacked and prepared while nobody waits; the first search is timed like any other.
    browser.until("searchable !== null && searchable.length === trials.length && prepared === trials.length");
    let first = browser.value(
        "(() => { const { text } = filter.elements; const from = performance.now(); text.value = 'deposit'; \
         filter.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - from; })()",
    );
    let first = first.as_f64().expect("milliseconds");
    let mut filtered = 0.0_f64;
    for change in ["text.value = 'heat'", "text.value = 'heat pump 7'", "text.value = ''", "scenario.selectedIndex = 1"]
    {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let took = browser.value(&format!(
                "(() => {{ const {{ text, scenario }} = filter.elements; text.value = ''; scenario.selectedIndex = 0; \
                 filter.dispatchEvent(new Event('input')); const from = performance.now(); {change}; \
                 filter.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - from; }})()"
            ));
            best = best.min(took.as_f64().expect("milliseconds"));
        }
        filtered = filtered.max(best);
    }
    println!("50,000 trials: opened in {opened:.0} ms, first search {first:.0} ms, filtered in {filtered:.0} ms");
    assert!(
        opened < 1_500.0 && first < 100.0 && filtered < 100.0,
        "opened {opened:.0}, first {first:.0}, filtered {filtered:.0} ms"
    );
}
