//! Wording of search queries: whether they are made for their index, and differ where they should.
//!
//! | metric | units | a unit holds when |
//! |---|---|---|
//! | `verbatim_query_rate(TOOL)` | calls of the tool with a `query` | (a rate of what is unwanted) the query copies the user's words |
//! | `rewritten_query_rate(TOOL)` | calls of the tool with a `query` after a search of the same turn that ran | its content words are not those of an earlier search |
//! | `distinct_query_rate` | calls of a search service with a `query`, in turns that also searched the knowledge base | its content words are not those of a query for the knowledge base |
//!
//! A query copies the user's words if it has more than four fifths of them in order, a function word among them, or
//! all of them: letter case, punctuation and additions such as "please" do not make it tailored. Calls that were not
//! executed count as well, because the model wrote them; only `rewritten_query_rate` leaves them out, as a refused or
//! failed search may be repeated as it was.

use super::catalogue::Registered;
use super::content_words::{content_words, is_function_word, words};
use super::tools::Tools;
use super::turns::executed;
use super::{Held, Member, Metric, Observation, Seen, TrialView, TurnView, quote};
use crate::settings::catalogue::{Parameter, Units};
use crate::trace::{Role, ToolCalled, ToolOutcome};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::rate("verbatim_query_rate", |asked| {
        QueryWording { wording: Wording::Verbatim, tools: Tools::of(asked) }.metric()
    })
    .about("Calls of the tool whose query copies the user's words, whatever is added; lower is better.")
    .takes(&[Parameter::tool(None)])
    .lower_is_better()
    .counted(Units::Unlimited),
    Registered::rate("rewritten_query_rate", |asked| {
        QueryWording { wording: Wording::Rewritten, tools: Tools::of(asked) }.metric()
    })
    .about("Of the further searches of a turn, those with other content words than the searches before them.")
    .takes(&[Parameter::tool(None)])
    .counted(Units::Unlimited),
    Registered::rate("distinct_query_rate", |_| {
        QueryWording { wording: Wording::Distinct, tools: Tools::Role(Role::External) }.metric()
    })
    .about(
        "Of the queries for a search service, those with other content words than the queries for the knowledge base \
         in their turn.",
    )
    .counted(Units::Unlimited),
];

/// Words of a text that are compared; a query is shorter.
const MOST: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wording {
    Verbatim,
    Rewritten,
    Distinct,
}

#[derive(Debug)]
struct QueryWording {
    wording: Wording,
    /// The tools whose calls count.
    tools: Tools,
}

fn query(call: &ToolCalled) -> Option<&str> {
    call.arguments.get("query").and_then(serde_json::Value::as_str)
}

/// Whether a query copies what the user said.
fn copies(query: &str, said: &str) -> bool {
    let (mut query, mut said) = (words(query), words(said));
    query.truncate(MOST);
    said.truncate(MOST);
    let common = common_in_order(&query, &said);
    let kept = |word: &&String| is_function_word(word);
    !said.is_empty() && (common.len() == said.len() || common.len() * 5 > said.len() * 4 && common.iter().any(kept))
}

/// A longest list of words that both texts have in this order.
fn common_in_order<'a>(a: &'a [String], b: &[String]) -> Vec<&'a String> {
    let mut longest = vec![vec![0_usize; b.len() + 1]; a.len() + 1];
    for (i, left) in a.iter().enumerate().rev() {
        for (j, right) in b.iter().enumerate().rev() {
            longest[i][j] =
                if left == right { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut common) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            common.push(&a[i]);
            (i, j) = (i + 1, j + 1);
        } else if longest[i + 1][j] >= longest[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}

/// Whether a call searched, so that its query was tried.
fn ran(call: &ToolCalled) -> bool {
    matches!(call.outcome, ToolOutcome::Ok(_))
}

impl QueryWording {
    fn metric(self) -> Metric {
        let wording = self.wording;
        let knowledge = (wording == Wording::Distinct).then_some(Tools::Role(Role::Knowledge));
        let units = match wording {
            Wording::Verbatim => "calls",
            Wording::Rewritten => "further searches",
            Wording::Distinct => "queries for a search service",
        };
        Metric {
            needs: std::iter::once(self.tools.clone()).chain(knowledge).collect(),
            members: if wording == Wording::Rewritten {
                &[Member::Calls, Member::Arguments, Member::Outcomes]
            } else {
                &[Member::Calls, Member::Arguments]
            },
            reads_outcomes: wording == Wording::Rewritten,
            ..Metric::new(units, move |view| self.observe(view))
        }
    }

    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation> {
        let mut units = Vec::new();
        for turn in view.turns {
            let calls: Vec<&ToolCalled> = turn.calls().collect();
            let mut ordinal = 0;
            for (at, call) in calls.iter().enumerate().filter(|(_, call)| self.tools.has(view.trace, &call.tool)) {
                let Some(now) = query(call) else { continue };
                ordinal += 1;
                if self.wording == Wording::Rewritten && !executed(call) {
                    continue;
                }
                let Some(held) = self.judge(view, turn, now, &calls[..at], &calls) else { continue };
                let unit = format!("{}, call {ordinal} of {}", turn.label(), self.tools.label(view.trace));
                units.push(match (held, self.wording) {
                    (Err(seen), Wording::Verbatim) => Observation::occurrence(unit, seen.words),
                    (Ok(()), Wording::Verbatim) => Observation::failure(unit, ""),
                    (Err(seen), _) => Observation::failure(unit, seen.words),
                    (Ok(()), _) => Observation::success(unit),
                });
            }
        }
        units
    }

    /// What is wrong with the query of a call, given the calls of its turn before it and all of them; `None` for a call
    /// that is no unit.
    fn judge<'a>(
        &self,
        view: &TrialView<'_>,
        turn: &TurnView<'_>,
        query_now: &str,
        before: &[&'a ToolCalled],
        all: &[&'a ToolCalled],
    ) -> Option<Held> {
        let same =
            |call: &&&ToolCalled| query(call).is_some_and(|other| content_words(other) == content_words(query_now));
        let shown = |call: &&ToolCalled| quote(query(call).unwrap_or_default(), 60);
        match self.wording {
            Wording::Verbatim => {
                Some(if copies(query_now, turn.query) { Err(Seen::new("the user's own words")) } else { Ok(()) })
            }
            Wording::Rewritten => {
                let mut tried =
                    before.iter().filter(|call| ran(call) && self.tools.has(view.trace, &call.tool)).peekable();
                tried.peek()?;
                Some(
                    tried
                        .find(same)
                        .map_or(Ok(()), |call| Err(Seen::new(format!("the content of {} again", shown(call))))),
                )
            }
            Wording::Distinct => {
                let is_knowledge = |call: &&&ToolCalled| view.trace.role(&call.tool) == Role::Knowledge;
                let mut searched = all.iter().filter(is_knowledge).filter(|call| query(call).is_some()).peekable();
                searched.peek()?;
                Some(searched.find(same).map_or(Ok(()), |call| {
                    Err(Seen::new(format!("the content of {}, for the knowledge base", shown(call))))
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Outcome;
    use crate::metric::sample::{Story, observe};
    use crate::trace::ToolResult;
    use serde_json::json;

    #[test]
    fn additions_to_the_users_sentence_are_a_copy_and_its_content_words_are_not() {
        let said = "How long is the warranty of the Sprig?";
        for copy in [
            "how long is the warranty of the sprig",
            "Please: how long is the warranty of the Sprig, thanks",
            "search query — How long is the warranty of the Sprig? (2026)",
            "long is the warranty of the Sprig",
            "How long is warranty of the Sprig",
        ] {
            assert!(copies(copy, said), "{copy}");
        }
        for tailored in
            ["warranty Sprig", "Sprig controller warranty length", "", "Sprig the of warranty the is long how"]
        {
            assert!(!copies(tailored, said), "{tailored}");
        }
        assert!(!copies("encarsia dosage tomato whiteflies", "Encarsia dosage for tomato whiteflies?"));
        assert!(copies("Encarsia dosage whiteflies", "Encarsia dosage whiteflies"), "nothing was left out");
        assert!(copies("保証は何年ですか", "保証は何年ですか？") && !copies("保証 期間", "保証は何年ですか？"));
        assert!(!copies("anything", "") && !copies("", ""));
    }

    fn search(story: Story, query: &str) -> Story {
        story.call("knowledge_base_search", json!({ "query": query }), ToolOutcome::Ok(ToolResult::Other(json!(1))))
    }

    fn external(story: Story, query: &str) -> Story {
        story.call("perplexity_search", json!({ "query": query }), ToolOutcome::Ok(ToolResult::Other(json!(1))))
    }

    fn held(metric: &str, tell: impl Fn(Story) -> Story) -> Vec<bool> {
        let units = observe(metric, "[{case: a, ask: q}]", tell);
        units.iter().map(|unit| unit.outcome == Outcome::Success).collect()
    }

    #[test]
    fn a_rewritten_query_has_other_content_words_than_each_search_before_it() {
        let told = |queries: &'static [&str]| {
            held("rewritten_query_rate(knowledge)", move |s| {
                queries.iter().fold(s.turn("q"), |s, query| search(s, query))
            })
        };
        assert!(told(&["Sprig warranty"]).is_empty(), "nothing came before it");
        for again in
            ["sprig warranty please", "Kindly: warranty, Sprig", "Sprigs warranty information", "bitte Sprig warranty"]
        {
            let queries: &'static [&str] = Vec::leak(vec!["Sprig warranty", again]);
            assert_eq!(told(queries), [false], "{again}");
        }
        assert_eq!(told(&["Sprig warranty", "Sprig guarantee", "warranty of the Sprig"]), [true, false]);
        assert_eq!(told(&["Sprig warranty months", "Sprig warranty"]), [true], "a broader query is another one");
        let refused = |s: Story| search(s.turn("q").rejected("knowledge_base_search"), "terms");
        assert!(held("rewritten_query_rate(knowledge)", refused).is_empty(), "a refused search was not tried");
        let down = |s: Story| search(s.turn("q").failed_call("knowledge_base_search"), "terms");
        assert!(held("rewritten_query_rate(knowledge)", down).is_empty(), "neither was one that failed");
    }

    #[test]
    fn the_query_for_the_search_service_is_not_that_for_the_knowledge_base() {
        let both = |knowledge: &'static str, web: &'static str| {
            held("distinct_query_rate", move |s| external(search(s.turn("q"), knowledge), web))
        };
        assert_eq!(both("grid tariff", "grid tariff Norway 2026 regulator"), [true]);
        for same in ["grid tariff", "Tariffs, grid", "please find information about the grid tariff"] {
            assert_eq!(both("grid tariff", same), [false], "{same}");
        }
        let reversed = |s: Story| search(external(s.turn("q"), "grid tariff"), "the grid tariff");
        assert_eq!(held("distinct_query_rate", reversed), [false], "whichever came first");
        assert!(held("distinct_query_rate", |s| external(s.turn("q"), "grid tariff")).is_empty());
    }
}
