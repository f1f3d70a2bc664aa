//! `comparison.html`: a page without scripts, with the conversations of flipped cases side by side.

use super::beside::{Stretch, marked, sides_of};
use super::divergence::align;
use super::taken::taken;
use super::terminal::{difference, p};
use super::{SAME, Shown, differs, headline};
use crate::compare::{ComparedCriterion, Comparison, Decision, Finding, PairedCase, Passes, Scale, Side};
use crate::gate::note_in_words;
use crate::report::figures::thousands;
use crate::report::{Pages, charts, page};
use crate::trace::{COMPARISON_HTML, INDEX_HTML};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const PAGE: page::PageTemplate = page::PageTemplate {
    file: COMPARISON_HTML,
    kind: "comparison",
    template: include_str!("page.html"),
    style: include_str!("comparison.css"),
    script: "",
};

#[derive(Serialize)]
struct ComparisonPage<'c> {
    outcome: &'static str,
    word: &'static str,
    headline: String,
    /// The conclusion after the headline.
    conclusion: String,
    /// Link to the report of A; empty if it is not beside this folder.
    report_a: String,
    pages: Pages,
    sides: [ShownSide<'c>; 2],
    warnings: &'c [String],
    same: Option<&'static str>,
    differences: Vec<String>,
    prompts: Vec<Prompt>,
    notes: &'c [String],
    rows: Vec<ShownRow<'c>>,
    /// Tokens, cost and times: name, A, B, difference.
    taken: Vec<[String; 4]>,
    paired: Vec<Paired>,
    more_paired: usize,
    worse: usize,
    better: usize,
    /// Number of cases that pass less often, and more often, without a flip.
    less: usize,
    oftener: usize,
    flips: Vec<Flip>,
    more: usize,
}

#[derive(Serialize)]
struct ShownSide<'c> {
    name: &'c str,
    of: &'c Side,
}

/// A prompt that differs.
#[derive(Serialize)]
pub(in crate::report) struct Prompt {
    name: String,
    scenarios: String,
    /// The changed lines on both sides.
    sides: [Vec<Stretch>; 2],
}

/// A row as shown on the page.
#[derive(Serialize)]
pub(in crate::report) struct ShownRow<'c> {
    of: &'c ComparedCriterion,
    a: String,
    b: String,
    difference: String,
    p: String,
    class: &'static str,
    finding: &'static str,
    /// The difference on the axis of its scale; empty if nothing was compared.
    chart: String,
}

/// A case on both sides.
#[derive(Serialize)]
struct Paired {
    case: String,
    variants: String,
    /// Shape and figure of A and of B.
    sides: [(&'static str, String); 2],
    word: &'static str,
    /// Filters that show the row.
    shows: String,
}

/// Maximum number of cases in the paired grid; `comparison.json` has all.
const PAIRED: usize = 300;

#[derive(Serialize)]
struct Flip {
    case: String,
    word: &'static str,
    class: &'static str,
    counts: String,
    why: String,
    /// Common events and their number, and for each side its name, the first differing event, and the rest.
    same: String,
    equal: String,
    sides: Vec<(String, Vec<Stretch>, String)>,
}

/// Renders the page.
pub(super) fn html(shown: &Shown<'_>) -> io::Result<Vec<u8>> {
    Ok(page::render(&PAGE, page(shown))?.into_bytes())
}

fn page<'c>(shown: &Shown<'c>) -> ComparisonPage<'c> {
    let found = shown.comparison;
    let names = found.names();
    let same = found.differences.is_empty() && found.prompts.is_empty();
    let all = || found.flips.iter().chain(&found.changes);
    let flips: Vec<Flip> = all().filter_map(|one| flip(one, names, shown.conversations)).collect();
    let worse = found.flips.iter().filter(|flip| flip.worse).count();
    let less = found.changes.iter().filter(|flip| flip.worse).count();
    let (outcome, word) = decided(found);
    let headline = headline(found);
    // What comes before it are the warnings.
    let verdict = found.verdict();
    let conclusion = found.conclusion.split_once(verdict.as_str()).map_or(&*found.conclusion, |(_, rest)| rest);
    ComparisonPage {
        outcome,
        word,
        conclusion: conclusion.trim_start().to_owned(),
        headline: page::without_word(&headline, UNDECIDED),
        report_a: report_a(shown.folders),
        pages: shown.pages,
        sides: [ShownSide { name: names[0], of: &found.a }, ShownSide { name: names[1], of: &found.b }],
        warnings: &found.warnings,
        same: same.then_some(SAME),
        differences: found.differences.iter().map(|row| differs(row, names)).collect(),
        prompts: prompts(found),
        notes: &found.notes,
        rows: rows(found),
        taken: found.taken.iter().map(taken).collect(),
        paired: found.paired.iter().take(PAIRED).map(paired).collect(),
        more_paired: found.paired.len().saturating_sub(PAIRED),
        worse,
        better: found.flips.len() - worse,
        less,
        oftener: found.changes.len() - less,
        more: all().count() - flips.len(),
        flips,
    }
}

/// What the sentence of a comparison begins with if it decides nothing: the badge says why.
pub(in crate::report) const UNDECIDED: &str = "undecided";

/// Colour and word of the decision between the sides.
pub(in crate::report) fn decided(found: &Comparison) -> (&'static str, &'static str) {
    match found.decision() {
        Decision::Worse => ("fail", "Worse"),
        Decision::Better => ("pass", "Better"),
        _ if !found.withheld.is_empty() => ("unmeasured", "Withheld"),
        Decision::NotCompared => ("unmeasured", "Not compared"),
        Decision::Undecided => ("undecided", "Undecided"),
        Decision::NoDifference => ("unmeasured", "No difference"),
    }
}

/// Link to the report of A from the folder of B.
fn report_a((a, b): (Option<&Path>, Option<&Path>)) -> String {
    let Some((a, b)) = a.zip(b) else { return String::new() };
    match a.file_name().and_then(|name| name.to_str()) {
        _ if a == b => INDEX_HTML.to_owned(),
        Some(name) if a.parent() == b.parent() => format!(".{}", page::below(name, INDEX_HTML)),
        _ => String::new(),
    }
}

/// Prompts that differ, both texts beside each other.
pub(in crate::report) fn prompts(found: &Comparison) -> Vec<Prompt> {
    let prompt = |prompt: &crate::compare::PromptChange| {
        let [one, other] = sides_of(&prompt.lines);
        Prompt { name: prompt.name.clone(), scenarios: prompt.scenarios.join(", "), sides: marked(&one, &other) }
    };
    found.prompts.iter().map(prompt).collect()
}

fn paired(one: &PairedCase) -> Paired {
    let shape = |(passed, run): (u64, u64)| match passed {
        0 => "fail",
        _ if passed == run => "pass",
        _ => "undecided",
    };
    let side = |figures: Passes| {
        (
            shape((figures.passed, figures.trials)),
            format!("{}/{}", thousands(figures.passed), thousands(figures.trials)),
        )
    };
    let variants = if one.variant_a == one.variant_b {
        one.variant_a.clone()
    } else {
        format!("{}, {}", one.variant_a, one.variant_b)
    };
    // Cross products compare shares with different denominators exactly.
    let (a, b) = (one.a.passed * one.b.trials, one.b.passed * one.a.trials);
    let word = match b.cmp(&a) {
        std::cmp::Ordering::Less => "worse",
        std::cmp::Ordering::Greater => "better",
        std::cmp::Ordering::Equal => "",
    };
    let (a, b) = (one.a, one.b);
    let shows = shows(&[(a.passed, a.trials), (b.passed, b.trials)]);
    Paired { case: one.case.clone(), variants, sides: [side(a), side(b)], word, shows }
}

/// Sides that can be filtered by "only this one fails".
const FILTERED: usize = 6;

/// Classes of a case by which a page filters it: `different`, `flaky`, and `only-N` where side N alone fails; of trials passed and
/// run of each side.
pub(in crate::report) fn shows(sides: &[(u64, u64)]) -> String {
    let mut classes = Vec::new();
    if sides.windows(2).any(|two| two[0].0 * two[1].1 != two[1].0 * two[0].1) {
        classes.push("different".to_owned());
    }
    if sides.iter().any(|(passed, run)| 0 < *passed && passed < run) {
        classes.push("flaky".to_owned());
    }
    let failing: Vec<usize> = (0..sides.len()).filter(|place| sides[*place].0 < sides[*place].1).collect();
    if let [one] = failing[..]
        && one < FILTERED
    {
        classes.push(format!("only-{}", one + 1));
    }
    classes.join(" ")
}

/// Rows of the page, each with a chart.
pub(in crate::report) fn rows<'c>(found: &'c Comparison) -> Vec<ShownRow<'c>> {
    let reach = |scale: Scale| {
        let own = found.rows.iter().filter(|row| row.scale == scale);
        charts::reach(own.flat_map(|row| {
            row.difference.into_iter().chain(row.interval.into_iter().flat_map(|span| [span.low, span.high]))
        }))
    };
    let (rates, times) = (reach(Scale::Rate), reach(Scale::Time));
    let with_chart = |one: &'c ComparedCriterion| {
        let (reach, margin) = match one.scale {
            Scale::Rate => (rates, found.margin),
            Scale::Time => (times, crate::compare::TIME_MARGIN),
        };
        let shown = row(one);
        let chart = one.difference.map(|difference| {
            charts::forest(difference, one.interval.map(|span| (span.low, span.high)), margin, reach, shown.class)
        });
        ShownRow { chart: chart.unwrap_or_default(), ..shown }
    };
    found.rows.iter().map(with_chart).collect()
}

/// A row without its chart.
fn row(row: &ComparedCriterion) -> ShownRow<'_> {
    let level = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| row.scale.shown(value));
    ShownRow {
        of: row,
        a: level(row.a),
        b: level(row.b),
        difference: difference(row),
        p: row.p_adjusted.map_or_else(|| "–".into(), p),
        class: match row.finding {
            Finding::Better => "pass",
            Finding::Worse => "fail",
            Finding::Undecided => "undecided",
            _ => "unmeasured",
        },
        finding: row.finding.as_str(),
        chart: String::new(),
    }
}

/// A flip with its conversations; `None` if neither side has them and the list would only repeat the count.
fn flip(
    flip: &crate::compare::Flip,
    [ours, theirs]: [&str; 2],
    conversations: (&BTreeMap<String, String>, &BTreeMap<String, String>),
) -> Option<Flip> {
    let of = |trial: &Option<String>, known: &BTreeMap<String, String>, side: &str| {
        let text = trial.as_ref().and_then(|trial| known.get(trial)).cloned();
        let name = trial.clone().unwrap_or_default();
        text.map(|text| (format!("{side}: {name}"), text))
    };
    let (a, b) = (of(&flip.trial_a, conversations.0, ours), of(&flip.trial_b, conversations.1, theirs));
    let (same, sides) = match (a, b) {
        (Some((ours, a)), Some((theirs, b))) => {
            let found = align(&a, &b);
            let [(first, rest), (other_first, other_rest)] = found.sides;
            let [first, other_first] = marked(&first, &other_first);
            (found.same, vec![(ours, first, rest), (theirs, other_first, other_rest)])
        }
        // If only one side has a conversation (the other is a baseline), all of it.
        (one, other) => {
            let alone = one.into_iter().chain(other).map(|(name, text)| (name, Vec::new(), text));
            (Vec::new(), alone.collect())
        }
    };
    (!sides.is_empty()).then(|| Flip {
        case: flip.case.clone(),
        word: if flip.worse { "worse" } else { "better" },
        class: if flip.worse { "fail" } else { "pass" },
        counts: flip.counts(),
        why: note_in_words(&flip.why),
        equal: crate::trace::text::plural(same.len(), "event"),
        same: same.join("\n"),
        sides,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> String {
        let found = super::super::tests::worse();
        let trial = "s/c5/tool-rag.base.1".to_owned();
        let (ours, theirs) = (
            BTreeMap::from([(trial.clone(), "user: <img src=x onerror=alert(1)>".to_owned())]),
            BTreeMap::from([(trial, "user: hello {{ 7 * 7 }}\u{1b}".to_owned())]),
        );
        let shown = Shown {
            comparison: &found,
            folders: (None, None),
            conversations: (&ours, &theirs),
            pages: Pages::default(),
        };
        String::from_utf8(html(&shown).expect("a page")).expect("UTF-8")
    }

    #[test]
    fn hostile_text_is_text_and_the_page_runs_nothing() {
        let page = made();
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{1b}'));
        assert!(page.contains("{{ 7 * 7 }}"), "templates are not run on data");
        assert!(page.contains("default-src 'none'") && !page.contains("script-src"));
    }

    #[test]
    fn both_conversations_stand_side_by_side_and_the_others_are_counted() {
        let page = made();
        assert_eq!(page.matches("<pre class=\"talk\"").count(), 2);
        assert!(page.contains("7 more"), "eight flipped, one has conversations");
    }
}
