//! `index.html`: the whole report in one file.
//!
//! The template renders the overview; data islands follow. `#data` is JSON with one short row per trial (`<` written as
//! `\u003c`) for the table. `#searchable` is the table's search text, unpacked on the first search. Each `.block` is
//! gzip in base64 with up to 200 conversations, unpacked when one of them is opened; `#texts` has the texts that several blocks use. The script inserts data into the
//! page as text only, never as markup.

mod first_screen;
mod grid;
mod heading;
mod latency;
mod model;
mod requirements;
mod rows;
mod spending;
mod to_do;

use crate::report::page::{self, PageTemplate};
use crate::report::{Format, View};
use crate::trace::INDEX_HTML;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::io::{self, Write};

pub(super) const FORMATS: &[Format] = &[Format { name: "html", file: INDEX_HTML, write }];

const PAGE: PageTemplate = PageTemplate {
    file: INDEX_HTML,
    kind: "report",
    template: include_str!("page.html"),
    style: include_str!("trial.css"),
    script: concat!(
        include_str!("table.js"),
        include_str!("filter.js"),
        include_str!("links.js"),
        include_str!("waterfall.js"),
        include_str!("events.js"),
        include_str!("timeline.js"),
    ),
};
/// Placeholder of the data islands; text cannot contain it, because its `<` would be escaped.
const ISLANDS: &str = "<!--islands-->";

/// Writes `index.html`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let page = page::render(&PAGE, model::page(view))?;
    let (before, after) =
        page.split_once(ISLANDS).ok_or_else(|| io::Error::other("index.html: the template has no place for data"))?;
    out.write_all(before.as_bytes())?;
    let data = rows::data(view)?.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"data\">{data}</script>")?;
    let found = STANDARD.encode(rows::searchable(view)?);
    writeln!(out, "<script type=\"text/plain\" id=\"searchable\">{found}</script>")?;
    let common = STANDARD.encode(view.timelines.common());
    writeln!(out, "<script type=\"text/plain\" id=\"texts\">{common}</script>")?;
    for block in view.timelines.blocks() {
        writeln!(out, "<script type=\"text/plain\" class=\"block\">{}</script>", STANDARD.encode(&block.gzip))?;
    }
    out.write_all(after.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{sample, tests::written};
    use sha2::{Digest as _, Sha256};

    /// The page without its data islands, style and script.
    fn markup(html: &str) -> String {
        let mut out = String::new();
        let mut rest = html;
        while let Some(start) = rest.find("<script").into_iter().chain(rest.find("<style")).min() {
            out.push_str(&rest[..start]);
            let close = if rest[start..].starts_with("<script") { "</script>" } else { "</style>" };
            rest = rest[start..].split_once(close).expect("every script and style ends").1;
        }
        out + rest
    }

    #[test]
    fn hostile_text_is_text_and_never_markup() {
        let html = written(&FORMATS[0], &sample::run(2).view());
        let markup = markup(&html);
        assert!(!markup.contains("<img") && markup.contains("&lt;img"));
        assert!(!markup.contains("onerror=alert(1)>"));
        assert!(!markup.contains('\u{202e}'), "no override turns the page around");
        assert!(markup.contains("{{ 7 * 7 }}"), "templates are not run on data");
        let scripts = 4 + sample::run(2).timelines.blocks().len();
        assert_eq!(html.matches("</script>").count(), scripts);
    }

    #[test]
    fn the_policy_names_the_style_and_the_script_that_are_there_and_nothing_else() {
        let html = written(&FORMATS[0], &sample::run(1).view());
        let inside = |open: &str, close: &str| {
            html.split_once(open).and_then(|(_, rest)| rest.split_once(close)).expect("it is there").0
        };
        for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
            let hash = STANDARD.encode(Sha256::digest(inside(open, close).as_bytes()));
            assert!(html.contains(&format!("'sha256-{hash}'")), "{open}");
        }
        assert!(html.contains("default-src 'none'"));
        let tags: String = markup(&html).split('<').skip(1).filter_map(|part| part.split('>').next()).collect();
        for outside in [" src=", "<link", "<iframe", " style=", " onclick", "url("] {
            assert!(!tags.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_data_of_the_table_parses_and_has_one_row_a_trial() {
        let run = sample::run(3);
        let html = written(&FORMATS[0], &run.view());
        let open = "<script type=\"application/json\" id=\"data\">";
        let data = html.split_once(open).and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0;
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["rows"].as_array().expect("rows").len(), run.evaluation.trials.len());
        let shown: usize =
            data["blocks"].as_array().expect("blocks").iter().map(|b| b.as_array().map_or(0, Vec::len)).sum();
        assert_eq!(shown, run.evaluation.trials.len());
    }

    #[test]
    fn a_run_without_anything_says_so_in_words() {
        let mut run = sample::run(0);
        run.evaluation.criteria.clear();
        run.evaluation.gates.clear();
        run.evaluation.errors.clear();
        run.evaluation.transitions.clear();
        run.evaluation.requirements.clear();
        let html = written(&FORMATS[0], &run.view());
        for words in [
            "No criterion was judged.",
            "No scenario gate besides the criteria.",
            "No turn was timed.",
            "No model answered in any trial.",
            "No transition is declared.",
            "No requirement is listed.",
        ] {
            assert!(html.contains(words), "{words}");
        }
        assert!(!html.contains("What to do</h2>"), "there is nothing to do");
    }

    #[test]
    fn what_to_do_stands_first_with_misses_before_failures_and_the_commands_that_help() {
        let mut run = sample::run(4);
        run.evaluation.errors[0].kind = "cassette miss".to_owned();
        let html = written(&FORMATS[0], &run.view());
        let markup = markup(&html);
        let missed = run.evaluation.errors[0].message.clone();
        let mut last = 0;
        for words in [
            "id=\"what-to-do\"",
            "NOT RECORDED",
            &*missed,
            "ragcheck cassette refresh --missed --dry-run ",
            "ragcheck cassette refresh --missed --yes ",
            "declares no",
            "FAILS",
            "ragcheck show ",
            "ragcheck run ",
            "id=\"criteria\"",
        ] {
            let at = markup[last..].find(words).unwrap_or_else(|| panic!("{words} is missing, or too early")) + last;
            last = at;
        }
        assert!(!markup.contains("OUTAGE"));
    }

    #[test]
    fn the_exit_code_on_the_page_is_that_of_the_run_with_what_decided_it() {
        let run = sample::run(1);
        let decided = crate::report::DecidedExit { exit_code: 0, why: "--fail-on flip: no case fails".into() };
        let html = markup(&written(&FORMATS[0], &View { decided: Some(&decided), ..run.view() }));
        assert!(html.contains("exit code 0") && html.contains("--fail-on flip: no case fails; the criteria alone"));
    }

    #[test]
    fn the_heading_is_the_verdict_and_what_it_leaves_out_is_in_the_fold_on_its_origin() {
        let mut run = sample::run(0);
        run.evaluation.omissions = "; cases left out of: A (4 cases), B (1 case)".to_owned();
        run.evaluation.conclusion = format!("2 required gates passed{}", run.evaluation.omissions);
        let html = written(&FORMATS[0], &run.view());
        let (heading, rest) = html.split_once("</h1>").expect("a heading");
        assert!(heading.contains("<bdi>2 required gates passed</bdi>"));
        let fold = rest.split_once("class=\"fold provenance\"").expect("a fold").1;
        assert!(fold.contains("<p class=\"caveats\"><bdi>cases left out of: A (4 cases), B (1 case)</bdi></p>"));
        (run.evaluation.exit_code, run.evaluation.conclusion) = (1, "failed: A; B".to_owned());
        run.evaluation.omissions.clear();
        let html = written(&FORMATS[0], &run.view());
        assert!(html.contains("<bdi>A; B</bdi>") && !html.contains("class=\"caveats\""));
    }

    #[test]
    fn times_have_bounds_and_stages_and_a_cost_without_a_price_is_not_measured() {
        let mut run = sample::run(2);
        let spending = |html: &str| {
            let (_, section) = html.split_once("id=\"spending\"").expect("a section");
            section.split_once("</section>").expect("an end").0.to_owned()
        };
        let html = written(&FORMATS[0], &run.view());
        for words in ["unbounded", "Without an answer", "Where the time went", "class=\"shares\""] {
            assert!(html.contains(words), "{words}");
        }
        assert!(spending(&html).contains("Not measured: <bdi>the plan does not say which model was asked"));
        run.evaluation.spending.run.cost = Some(1.25);
        assert!(spending(&written(&FORMATS[0], &run.view())).contains("$1.25"));
    }

    #[test]
    fn a_trial_takes_at_most_its_share_of_four_megabytes_beside_its_conversation() {
        let bytes = |copies: usize| {
            let run = sample::run(copies);
            let conversations = run.timelines.blocks().iter().map(|block| block.gzip.len()).sum::<usize>() * 4 / 3;
            (run.evaluation.trials.len(), written(&FORMATS[0], &run.view()).len() - conversations)
        };
        let ((few, small), (many, large)) = (bytes(50), bytes(200));
        assert!(large > small && many > few + 800, "{few} trials, {many} trials");
        let each = (large - small) / (many - few);
        assert!(each <= 260, "{each} bytes a trial");
    }

    #[test]
    #[ignore = "a page of 10,000 trials: .ci/slow"]
    fn ten_thousand_trials_stay_below_four_megabytes() {
        let run = sample::run(1_667);
        assert!(run.evaluation.trials.len() >= 10_000);
        let html = written(&FORMATS[0], &run.view());
        assert!(html.len() < 4_000_000, "{} bytes, {} conversations", html.len(), run.timelines.kept());
        assert!(run.timelines.kept() > 3_000, "only {} conversations fit", run.timelines.kept());
    }
}
