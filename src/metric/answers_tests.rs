//! Metrics of answers on scripted traces: evidence, nuggets, refusals, both sources.

use super::Outcome;
use super::sample::{self, Story};
use crate::trace::{ToolOutcome, ToolResult, What};

fn observe(metric: &str, answer: &str, tell: impl Fn(Story) -> Story) -> Vec<String> {
    let cases = format!("[{{case: a, ask: q, expect: {{answer: {answer}}}}}]");
    let words =
        sample::observe(metric, &cases, |story| tell(story.turn("q"))).into_iter().map(|unit| match unit.outcome {
            Outcome::Success => format!("{}: yes", unit.unit),
            _ => format!("{}: {}", unit.unit, unit.note),
        });
    words.collect()
}

const NONE: &str = "{matches: [so]}";

#[test]
fn precision_counts_cited_sources_and_recall_counts_evidence() {
    let evidence = "{evidence: [doc, page#2]}";
    let tell =
        |s: Story| s.search(&["doc#1", "other#1"]).answer("so", &[("internal", "doc#1"), ("internal", "other#1")]);
    let units = ["turn 1, doc#1: yes", "turn 1, other#1: cited, and no evidence"];
    assert_eq!(observe("citation_precision", evidence, tell), units);
    let cited = [("internal", "doc#1"), ("internal", "doc#1"), ("internal", "other#1")];
    let twice = |s: Story| s.search(&["doc#1", "other#1"]).answer("so", &cited);
    assert_eq!(observe("citation_precision", evidence, twice), units, "a source for each of two marks is one");
    assert_eq!(
        observe("citation_recall", evidence, tell),
        ["turn 1, doc: yes", "turn 1, page#2: evidence, and not cited"]
    );
    assert_eq!(observe("citation_recall", evidence, |s| s.fail("timeout")).len(), 2, "no answer cites nothing");
    assert!(observe("citation_precision", evidence, |s| s.fail("timeout")).is_empty());
    assert!(observe("citation_recall", NONE, tell).is_empty(), "no evidence is known");
}

#[test]
fn evidence_that_is_written_twice_counts_once() {
    let tell = |s: Story| s.search(&["doc#1"]).answer("so", &[("internal", "doc#1")]);
    let evidence = "{evidence: [doc#1, 'https://a.example/b', doc#1, 'https://a.example/b/']}";
    let units = ["turn 1, doc#1: yes", "turn 1, https://a.example/b: evidence, and not cited"];
    assert_eq!(observe("citation_recall", evidence, tell), units);
}

#[test]
fn a_nugget_is_held_by_any_of_its_spellings_and_vital_ones_count_alone() {
    let nuggets = "{nuggets: [{any_of: [38 to 46 ohms, 38–46 Ω]}, {any_of: [replace the coil], vital: false}]}";
    let tell = |s: Story| s.answer("It is 38 TO\n46 ohms.", &[]);
    assert_eq!(observe("nugget_recall", nuggets, tell), ["turn 1, 38 to 46 ohms: yes"]);
    let all = observe("nugget_recall(of=all)", nuggets, tell);
    assert_eq!(all[1], "turn 1, replace the coil: not in the answer");
    assert_eq!(
        observe("nugget_recall", nuggets, |s| s.fail("timeout")),
        ["turn 1, 38 to 46 ohms: ended with the error timeout"]
    );
    assert!(observe("nugget_recall", NONE, tell).is_empty());
}

#[test]
fn where_nothing_was_found_an_answer_claims_no_source() {
    let found = |answer, tell: fn(Story) -> Story| observe("refusal_rate", answer, tell);
    assert_eq!(found(NONE, |s| s.search(&[]).answer("I do not know.", &[])), ["turn 1: yes"]);
    let made_up = ["turn 1: does not say that it cannot answer"];
    assert_eq!(found(NONE, |s| s.search(&[]).answer("It is certainly 42 metres.", &[])), made_up);
    let claims = ["turn 1: names or claims a source though nothing was found"];
    assert_eq!(found(NONE, |s| s.search(&[]).answer("so", &[("internal", "doc#1")])), claims);
    assert!(found(NONE, |s| s.search(&["doc#1"]).answer("so", &[])).is_empty(), "something was found");
    assert!(found(NONE, |s| s.answer("so", &[])).is_empty(), "nothing was looked for");
    assert_eq!(found("{refusal: true}", |s| s.search(&["doc#1"]).answer("I do not know.", &[])), ["turn 1: yes"]);
}

#[test]
fn what_a_managed_service_answers_from_was_found_whatever_it_lists() {
    let managed = |status: &'static str| {
        move |s: Story| {
            let mut story = s.search(&[]);
            story.each(|what| {
                let What::ToolCalled(called) = what else { return };
                let ToolOutcome::Ok(ToolResult::Search(search)) = &mut called.outcome else { return };
                let answer = serde_json::json!({"status": status, "asked": "q", "text": "so"});
                search.managed = Some(serde_json::from_value(answer).expect("an answer"));
            });
            story.answer("It opens at nine.", &[])
        }
    };
    for (metric, wrong) in [
        ("refusal_rate", "turn 1: does not say that it cannot answer"),
        ("declared_refusal_rate", "turn 1: answers although nothing was found"),
    ] {
        assert!(observe(metric, NONE, managed("success")).is_empty(), "{metric}");
        assert_eq!(observe(metric, NONE, managed("no_answer_found")), [wrong]);
    }
}

#[test]
fn an_answer_from_both_sources_cites_both() {
    const URL: (&str, &str) = ("external", "https://example.org/a");
    let found = |tell: fn(Story) -> Story| observe("combined_sources", NONE, tell);
    assert_eq!(
        found(|s| s.search(&["doc#1"]).external("r").answer("so", &[("internal", "doc#1"), URL])),
        ["turn 1: yes"]
    );
    let lacks = ["turn 1: cites no external source"];
    assert_eq!(found(|s| s.search(&["doc#1"]).external("r").answer("so", &[("internal", "doc#1")])), lacks);
    assert!(found(|s| s.search(&["doc#1"]).answer("so", &[("internal", "doc#1")])).is_empty());
}

/// Adds a turn about valves whose search returned a passage with this excerpt, and an answer about prices.
fn valves(story: Story, excerpt: &str) -> Story {
    let mut story = story.turn("How wide does the roof valve open, and what does Norrin charge?");
    story = story.search(&["doc#1"]).external("r");
    story.each(|what| {
        if let What::ToolCalled(called) = what {
            match &mut called.outcome {
                ToolOutcome::Ok(ToolResult::Search(search)) => excerpt.clone_into(&mut search.hits[0].excerpt),
                ToolOutcome::Ok(ToolResult::External(found)) => {
                    "Norrin charges forty crowns since February.".clone_into(&mut found.answer);
                }
                _ => {}
            }
        }
    });
    story
}

#[test]
fn an_answer_that_names_both_sources_uses_both_in_its_text() {
    const OTHER: &str = "Returned goods are refunded within fourteen days.";
    const BOTH: [(&str, &str); 2] = [("internal", "doc#1"), ("external", "https://example.org/a")];
    const FITS: &str = "The roof valve opens by twelve degrees, wide enough at noon.";
    let found = |excerpt: &'static str, text: &'static str, sources: &'static [(&str, &str)]| {
        let tell = move |story| valves(story, excerpt).answer(text, sources);
        let units = sample::observe("combined_sources", "[{case: a, ask: q}]", tell).into_iter();
        let words = |unit: super::Observation| match unit.outcome {
            Outcome::Success => format!("{}: yes", unit.unit),
            _ => format!("{}: {}", unit.unit, unit.note),
        };
        units.map(words).collect::<Vec<_>>()
    };
    let yes = ["turn 1: yes"];
    assert_eq!(found(FITS, "It opens by twelve degrees. They ask forty crowns since February.", &BOTH), yes);
    assert_eq!(found(FITS, "It opens a little [1]. It costs something [2].", &BOTH), yes, "cited in place");
    let outside = ["turn 1: names an internal source, and its text uses none"];
    assert_eq!(found(FITS, "They ask forty crowns since February.", &BOTH), outside);
    assert_eq!(found(FITS, "They ask forty crowns since February [2].", &BOTH), outside);
    let inside = ["turn 1: names an external source, and its text uses none"];
    assert_eq!(found(FITS, "The roof valve opens by twelve degrees.", &BOTH), inside);
    assert_eq!(found(FITS, "Nobody knows.", &BOTH), ["turn 1: names both sources, and its text uses neither"]);
    assert_eq!(found(FITS, "Forty crowns.", &BOTH[1..]), ["turn 1: cites no internal source"]);
    assert!(found(OTHER, "Forty crowns.", &BOTH[1..]).is_empty(), "a passage on another subject is no evidence");
    assert_eq!(
        found(OTHER, "Forty crowns since February.", &BOTH),
        outside,
        "but an answer that cites it has to use it"
    );
}

#[test]
fn an_answer_whose_citation_was_never_given_fails_its_provenance() {
    let found = |tell: fn(Story) -> Story| observe("citation_provenance", NONE, tell);
    assert_eq!(found(|s| s.search(&["doc#1"]).deliver("so", &[("internal", "doc#1")], 1)), ["turn 1: yes"]);
    let invented = ["turn 1: doc#7 is invented: nothing retrieved gave it"];
    assert_eq!(found(|s| s.search(&["doc#1"]).deliver("so", &[("internal", "doc#7")], 1)), invented);
    assert!(found(|s| s.search(&["doc#1"]).answer("so", &[])).is_empty(), "nothing is cited");
}
