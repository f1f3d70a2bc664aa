//! The way of every citation from what was retrieved to the answer, and where one is lost, invented or renumbered.
//!
//! A citation passes three stages: a search or the external service *gives* it, the accepted response call *names* it,
//! and the answer *shows* it. Given means in this turn or an earlier one of the conversation: a hit's id, an external
//! result's id, or the URL of one of its citations (a learned entry's too). Numbers in brackets in an answer's text stand for its sources in
//! order; where the words before one are an external result's, the number must still stand for what it stood for there,
//! or the answer must cite the learned entry that was made of that result.

use super::quote;
use crate::trace::{Answer, ExternalResult, ToolCalled, ToolOutcome, ToolResult, Trace, TurnOutcome, What};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Words before a number that must agree for it to be taken for a copied one.
const WORDS: usize = 4;

/// What one answer cites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// For each source of the answer, in order, what gave it first: `search_docs, turn 1`; empty for one that
    /// was never given.
    pub given_by: Vec<String>,
    /// What is wrong, each with the stage where it went wrong, in words.
    pub flaws: Vec<String>,
    /// Whether anything is cited at all.
    pub cites: bool,
}

/// The provenance of every answer of a trace, by conversation and turn.
pub fn provenance(trace: &Trace) -> BTreeMap<(u32, u32), Provenance> {
    let mut found = BTreeMap::new();
    let mut talks: BTreeMap<u32, ConversationView<'_>> = BTreeMap::new();
    let mut externals: Vec<External<'_>> = Vec::new();
    for event in &trace.events {
        let conversation = talks.entry(event.conversation).or_default();
        match &event.what {
            What::TurnStarted { .. } => conversation.named = None,
            What::ToolCalled(called) => {
                if let ToolOutcome::Ok(ToolResult::External(result)) = &called.outcome {
                    externals.push((event.conversation, result));
                }
                conversation.hear(called, event.turn);
            }
            What::TurnEnded(ended) => {
                if let TurnOutcome::Answered(answer) = &ended.outcome {
                    found.insert(
                        (event.conversation, event.turn),
                        conversation.judge(answer, event.conversation, &externals),
                    );
                }
            }
            _ => {}
        }
    }
    found
}

/// An external result, and the conversation that got it.
type External<'t> = (u32, &'t ExternalResult);

/// What one conversation has been given so far, and what its last response call names.
#[derive(Default)]
struct ConversationView<'t> {
    given: BTreeMap<&'t str, String>,
    /// Learned entries: the conversation and the result that each was made of.
    learned: BTreeMap<&'t str, (u32, &'t str)>,
    named: Option<Vec<&'t str>>,
}

impl<'t> ConversationView<'t> {
    fn hear(&mut self, called: &'t ToolCalled, turn: u32) {
        let ToolOutcome::Ok(result) = &called.outcome else { return };
        let by = || format!("{}, turn {}", called.tool, turn + 1);
        match result {
            ToolResult::Search(search) => {
                for hit in &search.hits {
                    let learned = hit.learned.as_ref();
                    let how = || match learned {
                        Some(learned) => format!("{}, learned from {}", by(), learned.result),
                        None => by(),
                    };
                    self.given.entry(&hit.id).or_insert_with(how);
                    for url in learned.iter().flat_map(|learned| &learned.urls) {
                        self.given.entry(url).or_insert_with(how);
                    }
                    if let Some(learned) = learned {
                        self.learned.insert(&hit.id, (learned.conversation, &learned.result));
                    }
                }
            }
            ToolResult::External(found) => {
                self.given.entry(&found.result).or_insert_with(by);
                for (_, url) in &found.citations {
                    self.given.entry(url).or_insert_with(by);
                }
            }
            ToolResult::Responded => {
                let sources = called.arguments.get("sources").and_then(Value::as_array);
                let ids = sources.into_iter().flatten().filter_map(|one| one.get("id")?.as_str());
                self.named = Some(ids.collect());
            }
            ToolResult::Indexed(_) | ToolResult::Other(_) => {}
        }
    }

    fn judge(&self, answer: &Answer, own: u32, externals: &[External<'_>]) -> Provenance {
        let shown: Vec<&str> = answer.sources.iter().map(|source| source.id.as_str()).collect();
        let given_by: Vec<String> = shown.iter().map(|id| self.given.get(id).cloned().unwrap_or_default()).collect();
        let mut flaws = Vec::new();
        let named: Option<BTreeSet<String>> =
            self.named.as_ref().map(|named| named.iter().map(|id| plain(id)).collect());
        for (id, by) in shown.iter().zip(&given_by) {
            let late = named.as_ref().is_some_and(|named| !named.contains(&plain(id)));
            match (by.is_empty(), late) {
                (true, true) => flaws.push(format!("{} is invented after the response call, which lacks it", name(id))),
                (true, false) => flaws.push(format!("{} is invented: nothing retrieved gave it", name(id))),
                (false, true) => flaws.push(format!("{} is added after the response call, which lacks it", name(id))),
                (false, false) => {}
            }
        }
        let kept: BTreeSet<String> = shown.iter().map(|id| plain(id)).collect();
        let mut told = BTreeSet::new();
        for id in self.named.iter().flatten().filter(|id| !kept.contains(&plain(id)) && told.insert(**id)) {
            flaws.push(format!("{} is lost between the response call and the answer", name(id)));
        }
        let numbers = markers(&answer.text);
        for (number, before) in &numbers {
            flaws.extend(self.renumbered((*number, before), &shown, own, externals));
        }
        let mut known = BTreeSet::new();
        flaws.retain(|flaw| known.insert(flaw.clone()));
        let cites = !shown.is_empty() || !told.is_empty() || (!numbers.is_empty() && !flaws.is_empty());
        Provenance { given_by, flaws, cites }
    }

    /// What is wrong with a number in the text that has these words before it.
    fn renumbered(
        &self,
        (number, before): (usize, &[String]),
        shown: &[&str],
        own: u32,
        externals: &[External<'_>],
    ) -> Option<String> {
        let here = shown.get(number - 1).copied();
        let made_of = |id: &&str| self.learned.get(id).copied();
        let learned: Vec<(u32, &str)> = shown.iter().filter_map(made_of).collect();
        let from = |(conversation, found): &&External<'_>| {
            *conversation == own || self.learned.values().any(|known| *known == (*conversation, found.result.as_str()))
        };
        let copied = externals.iter().filter(from).find_map(|(conversation, found)| {
            let there = markers(&found.answer);
            let number = there.iter().find(|(_, words)| words.len() == WORDS && words == before)?.0;
            let kept = learned.contains(&(*conversation, found.result.as_str()));
            found.citations.get(number - 1).map(|(_, url)| (number, url.as_str(), kept))
        });
        match (copied, here) {
            (Some((_, _, true)), _) => None,
            (Some((_, meant, _)), Some(here)) if plain(meant) == plain(here) => None,
            (Some((there, meant, _)), _) if !shown.iter().any(|id| plain(id) == plain(meant)) => {
                Some(format!("{} is lost: [{there}] of the external result, which the answer repeats", name(meant)))
            }
            (Some((there, meant, _)), _) => Some(format!(
                "{} is renumbered: [{there}] in the external result, and [{number}] in the answer is another source",
                name(meant)
            )),
            // An answer without sources may well hold a number in brackets that is no citation.
            (None, None) if !shown.is_empty() => {
                Some(format!("[{number}] is invented: the sources of the answer end at {}", shown.len()))
            }
            _ => None,
        }
    }
}

fn name(id: &str) -> String {
    quote(id, 80)
}

/// An id without what cleaning text may change.
fn plain(id: &str) -> String {
    id.chars().filter(|letter| !letter.is_control() && !letter.is_whitespace()).collect()
}

/// Numbers in brackets, `[1]`, each with the words before it, lower case, at most [`WORDS`]; a link's text is none.
fn markers(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find('[').map(|at| from + at) {
        let rest = &text[open + 1..];
        from = open + 1;
        let Some((inside, after)) = rest.split_once(']') else { break };
        let number = inside.parse::<usize>().ok().filter(|number| (1..=999).contains(number));
        if let Some(number) = number.filter(|_| !after.starts_with('(')) {
            let words: Vec<String> = text[..open]
                .rsplit(|letter: char| !letter.is_alphanumeric())
                .filter(|word| !word.is_empty() && word.parse::<usize>().is_err())
                .take(WORDS)
                .map(str::to_lowercase)
                .collect();
            found.push((number, words));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{Story, plan, story};
    use proptest::prelude::*;
    use serde_json::json;

    const URL: &str = "https://example.org/a";

    /// The response call names `named`; the answer shows `shown`.
    fn told(text: &str, named: &[&str], shown: &[(&str, &str)]) -> Provenance {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let sources: Vec<_> = named.iter().map(|id| json!({"kind": "internal", "id": id})).collect();
        let responded = ToolOutcome::Ok(ToolResult::Responded);
        let trace = given(story(&plan, 0).turn("q"))
            .call("generate_response", json!({"answer": text, "sources": sources}), responded)
            .deliver(text, shown, 1)
            .done();
        provenance(&trace).remove(&(0, 0)).expect("an answer")
    }

    fn given(story: Story) -> Story {
        let mut story = story.search(&["doc#1", "doc#2"]);
        let found = ExternalResult {
            input_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            result: "r1".into(),
            query: "w".into(),
            answer: "Frost of three degrees is expected tonight [1]. It eases by the coming weekend [2].".into(),
            citations: vec![("a".into(), URL.into()), ("b".into(), "https://example.org/b".into())],
            model: "s".into(),
        };
        story = story.call("perplexity_search", json!({}), ToolOutcome::Ok(ToolResult::External(found)));
        story
    }

    #[test]
    fn what_was_given_named_and_shown_is_sound_and_says_what_gave_it() {
        let found = told("so", &["doc#1", URL], &[("internal", "doc#1"), ("external", URL)]);
        assert_eq!(found.flaws, Vec::<String>::new());
        assert_eq!(found.given_by, ["knowledge_base_search, turn 1", "perplexity_search, turn 1"]);
    }

    #[test]
    fn a_citation_that_nothing_gave_is_invented() {
        let found = told("so", &["doc#9"], &[("internal", "doc#9")]);
        assert_eq!(found.flaws, ["doc#9 is invented: nothing retrieved gave it"]);
        let found = told("so", &[], &[("internal", "doc#9"), ("internal", "doc#1")]);
        assert!(found.flaws[0].contains("doc#9 is invented after the response call"), "{found:?}");
        assert!(found.flaws[1].contains("doc#1 is added after the response call"), "{found:?}");
    }

    #[test]
    fn a_citation_that_the_call_names_and_the_answer_lacks_is_lost() {
        let found = told("so", &["doc#1", "doc#2", "doc#2"], &[("internal", "doc#1")]);
        assert_eq!(found.flaws, ["doc#2 is lost between the response call and the answer"]);
        assert!(told("so", &["doc#1"], &[]).cites, "an answer that lost all it cited still has a unit");
    }

    #[test]
    fn a_copied_number_must_stand_for_what_it_stood_for() {
        let both = [("internal", "doc#1"), ("external", URL)];
        let sentence = |number: u8| format!("Frost of three degrees is expected tonight [{number}].");
        assert_eq!(told(&sentence(2), &["doc#1", URL], &both).flaws, Vec::<String>::new());
        let found = told(&sentence(1), &["doc#1", URL], &both);
        assert!(found.flaws[0].contains("is renumbered: [1] in the external result"), "{found:?}");
        let found = told(&sentence(1), &["doc#1"], &both[..1]);
        assert!(found.flaws[0].contains("is lost: [1] of the external result"), "{found:?}");
    }

    #[test]
    fn a_learned_entry_keeps_the_citations_of_the_result_that_it_was_made_of() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let text = "Frost of three degrees is expected tonight [1]. It eases by the coming weekend [2].";
        let told = |shown: &str| {
            let story = given(story(&plan, 0).conversation(0, "first").turn("q"));
            let story = story.deliver("so", &[], 1).conversation(1, "second").turn("q");
            let trace = story.search_with(&["doc#1"], Some(0), &["doc#1"]).deliver(text, &[("internal", shown)], 1);
            let mut trace = trace.done();
            for event in &mut trace.events {
                if let What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::External(found)), .. }) =
                    &mut event.what
                {
                    found.result = "result-1".into();
                }
            }
            provenance(&trace).remove(&(1, 0)).expect("an answer")
        };
        assert_eq!(told("learned:1").flaws, Vec::<String>::new());
        assert!(told("doc#1").flaws[0].contains("is lost: [1]"), "{:?}", told("doc#1"));
    }

    #[test]
    fn a_number_without_a_source_is_invented_unless_nothing_is_cited() {
        let found = told("Own words here [7].", &["doc#1"], &[("internal", "doc#1")]);
        assert_eq!(found.flaws, ["[7] is invented: the sources of the answer end at 1"]);
        assert!(!told("Own words here [7].", &[], &[]).cites);
        assert_eq!(told("A link [1](https://x).", &["doc#1"], &[("internal", "doc#1")]).flaws, Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn any_text_has_markers_or_none_and_nothing_panics(text in "[\\[\\]0-9a-zé ü(]{0,60}") {
            prop_assert!(markers(&text).iter().all(|(number, words)| *number > 0 && words.len() <= WORDS));
        }
    }
}
