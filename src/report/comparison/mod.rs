//! Renders a comparison: for a terminal, and as `comparison.csv`, `comparison.html` and `comparison.json`.
//!
//! Differences in settings come before every figure. Files contain no path of this machine, so the same two runs give
//! the same bytes. Commands with paths are printed on the terminal only.

mod beside;
mod csv;
mod divergence;
mod html;
mod taken;
mod terminal;

pub(crate) use beside::{Exchange, exchanges};
pub(in crate::report) use beside::{Stretch, marked};
pub(crate) use csv::columns;
pub(in crate::report) use csv::csv;
pub(in crate::report) use html::{
    Prompt as ShownPrompt, ShownRow, UNDECIDED, decided, prompts as shown_prompts, rows as shown_rows, shows,
};
pub(in crate::report) use taken::taken;
pub(crate) use terminal::terminal;
pub(in crate::report) use terminal::{heads, table};

use crate::compare::{Comparison, Difference};
use crate::platform::secrets;
use crate::report::Pages;
use crate::trace::{COMPARISON_CSV, COMPARISON_HTML, COMPARISON_JSON, seal};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A comparison, and what is shown beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub comparison: &'a Comparison,
    /// Run folders of A and B; `None` for a baseline file.
    pub folders: (Option<&'a Path>, Option<&'a Path>),
    /// Conversations of A and of B as text, by trial.
    pub conversations: (&'a BTreeMap<String, String>, &'a BTreeMap<String, String>),
    /// Pages beside the comparison, to link to.
    pub pages: Pages,
}

/// Files of a comparison: name and bytes.
pub(crate) fn files(shown: &Shown<'_>) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    // Cleaned before it is sealed, because redacting changes the digest.
    let json = serde_json::to_string_pretty(shown.comparison)?;
    let json = seal(&secrets::clean(&json)).0 + "\n";
    Ok(vec![
        (COMPARISON_CSV, csv::csv(std::slice::from_ref(shown.comparison))?),
        (COMPARISON_HTML, html::html(shown)?),
        (COMPARISON_JSON, json.into_bytes()),
    ])
}

/// A difference of settings in one line.
fn differs(row: &Difference, [a, b]: [&str; 2]) -> String {
    let of = if row.scenarios.is_empty() { String::new() } else { format!(" ({})", row.scenarios.join(", ")) };
    format!("{}: {} in {a}, {} in {b}{of}", row.what, row.a, row.b)
}

/// Sentence on which side is better, by how much, and whether this is proven, in the comparison's words.
fn headline(found: &Comparison) -> String {
    let part = if found.a.part.is_empty() && found.b.part.is_empty() { "" } else { "PART: " };
    format!("{part}{}", found.verdict())
}

/// Text shown if no setting differs.
const SAME: &str = "Mode, source, model, knowledge, enforcement and prompts are the same on both sides.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::sample::summary;
    use crate::compare::{Setting, compare};

    /// A run of ten cases compared with one in which eight of them fail, with another model and a hostile prompt.
    pub(super) fn worse() -> Comparison {
        let names: Vec<String> = (0..10).map(|index| format!("c{index}")).collect();
        let run = |label: &str, passed: &dyn Fn(usize) -> u64| {
            let rows: Vec<_> = names.iter().enumerate().map(|(i, name)| (name.as_str(), passed(i), 1)).collect();
            summary(label, &rows)
        };
        let (mut a, mut b) = (run("a", &|_| 1), run("b", &|index| u64::from(index < 2)));
        for side in [&mut a, &mut b] {
            side.settings[0].recorded_from = ["acme m".to_owned()].into();
        }
        let setting: &mut Setting = &mut b.settings[0];
        setting.models = ["sim-2".to_owned()].into();
        setting.prompts.insert("system".into(), "<script>alert(1)</script>\u{1b}[31m\n".into());
        b.cases[5].trials_run[0].why = "=cmd()<b>\u{202e}".into();
        compare(&a, &b, 0.02).expect("comparable")
    }

    #[test]
    fn what_differs_stands_above_every_figure_in_each_report() {
        let mut found = worse();
        found.warnings = vec!["b was stopped early".into()];
        let none = BTreeMap::new();
        let shown =
            Shown { comparison: &found, folders: (None, None), conversations: (&none, &none), pages: Pages::default() };
        let page = String::from_utf8(files(&shown).expect("files")[1].1.clone()).expect("UTF-8");
        for text in [terminal(&shown, 110, false), page] {
            let named = text.find("sim-1 in a").unwrap_or_else(|| panic!("{text}"));
            let figure = text.find("100.0 %").unwrap_or_else(|| panic!("{text}"));
            assert!(named < figure, "{text}");
        }
    }

    #[test]
    fn a_side_that_is_a_part_is_called_one_in_each_report_and_a_whole_one_is_not() {
        let none = BTreeMap::new();
        let reports = |part: &str| {
            let mut b = summary("b", &[("c0", 1, 1)]);
            b.part = part.to_owned();
            let found = compare(&summary("a", &[("c0", 1, 1)]), &b, 0.02).expect("comparable");
            let shown = Shown {
                comparison: &found,
                folders: (None, None),
                conversations: (&none, &none),
                pages: Pages::default(),
            };
            let written = files(&shown).expect("files").into_iter().map(|(_, bytes)| bytes);
            let written: Vec<String> = written.map(|bytes| String::from_utf8(bytes).expect("UTF-8")).collect();
            [written, vec![terminal(&shown, 160, false)]].concat()
        };
        for report in reports("1 of 7 trials not run") {
            assert!(report.contains("1 of 7 trials not run") && report.to_lowercase().contains("part"), "{report}");
        }
        for report in reports("") {
            assert!(!report.contains("PART") && !report.contains("not run"), "{report}");
        }
        assert!(reports("1 of 7 trials not run")[3].contains("b: PART (1 of 7 trials not run): REPLAYED"));
    }

    #[test]
    fn the_first_line_says_who_is_better_by_how_much_and_whether_it_is_proven() {
        let found = worse();
        let said = headline(&found);
        assert!(said.starts_with("b is worse than a in cases -80.0 points ["), "{said}");
        assert!(found.conclusion.starts_with(&said), "the page says what the terminal says: {}", found.conclusion);
        let same = compare(&summary("a", &[("c0", 1, 1)]), &summary("b", &[("c0", 1, 1)]), 0.02).expect("comparable");
        assert_eq!(
            headline(&same),
            "undecided between a and b: 1 case is too few to show a difference in 1 required criterion, at least 6 are needed"
        );
        let mut explored = worse();
        explored.rows.iter_mut().for_each(|row| row.gated = false);
        assert!(
            headline(&explored).contains("; not required and worse: cases -80.0 points"),
            "{}",
            headline(&explored)
        );
    }

    #[test]
    fn every_case_on_both_sides_is_in_the_grid_and_the_worse_ones_come_first() {
        let found = worse();
        assert_eq!(found.paired.len(), 10);
        assert!(found.paired[..8].iter().all(|one| one.b.passed < one.a.passed), "{:?}", found.paired);
        let none = BTreeMap::new();
        let shown =
            Shown { comparison: &found, folders: (None, None), conversations: (&none, &none), pages: Pages::default() };
        let page = String::from_utf8(files(&shown).expect("files")[1].1.clone()).expect("UTF-8");
        assert_eq!(page.matches("<tr class=\"paired").count(), 10, "{page}");
        assert!(page.contains("class=\"forest fail\""), "{page}");
    }

    #[test]
    fn the_same_comparison_gives_the_same_bytes() {
        let conversations: BTreeMap<_, _> = [("s/c2/tool-rag.base.1".to_owned(), "user: q\n".to_owned())].into();
        let made = || {
            let found = worse();
            files(&Shown {
                comparison: &found,
                folders: (None, None),
                conversations: (&conversations, &conversations),
                pages: Pages::default(),
            })
            .expect("files")
        };
        assert_eq!(made(), made());
    }
}
