//! Follows each citation from retrieval to the answer, and reports where one is lost, invented or renumbered.
//!
//! A citation passes three stages: a search or the external service *gives* it, the accepted response call *names*
//! it, and the answer *shows* it. Given means in this turn or an earlier one of the conversation, before the response
//! was called, and of the kind that the answer states: a hit's id, an external result's id, or the URL of one of its
//! citations (a learned entry's too). Numbers in an answer's text (`trace::citations`) refer to its sources in order.
//! Where the words before a number are an external result's, the number must still refer to the same source, or the
//! answer must cite the learned entry made from that result. An id in brackets must be one of the sources. An address
//! must be a source, or appear in the user's input or in the retrieved text, of which a trace keeps passages to 160
//! characters.

use super::quote;
use crate::trace::citations::{Mark, WORDS, addresses, marks, one_spelling};
use crate::trace::{
    Answer, CitedPage, ExternalResult, FlowSearch, ToolCalled, ToolOutcome, ToolResult, Trace, TurnOutcome, What,
};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Citations of one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provenance {
    /// For each source of the answer, in order, what gave it first: `search_docs, turn 1`; empty for a source that
    /// was never given.
    pub given_by: Vec<String>,
    /// Descriptions of flaws, each with its stage.
    pub flaws: Vec<String>,
    /// Whether the answer cites anything.
    pub cites: bool,
}

/// Provenance of every answer of a trace, by conversation and turn.
pub(crate) fn provenance(trace: &Trace) -> BTreeMap<(u32, u32), Provenance> {
    let mut found = BTreeMap::new();
    let mut talks: BTreeMap<u32, ConversationView<'_>> = BTreeMap::new();
    let mut externals: Vec<External<'_>> = Vec::new();
    for event in &trace.events {
        let conversation = talks.entry(event.conversation).or_default();
        match &event.what {
            What::TurnStarted { query } => {
                conversation.responded = false;
                // What arrived too late for the previous turn is available to this one.
                conversation.given.values_mut().for_each(|given| given.late = false);
                conversation.named = None;
                conversation.mention(query);
            }
            What::ToolCalled(ToolCalled { tool, arguments, outcome: ToolOutcome::Ok(result), .. }) => {
                // What a search engine found is not numbered.
                let answered = result.external().filter(|found| found.is_written());
                externals.extend(answered.map(|result| (event.conversation, result)));
                conversation.hear((tool, arguments), result, event.turn);
            }
            What::Searched(FlowSearch { outcome: ToolOutcome::Ok(result), .. }) => {
                conversation.hear((FlowSearch::NAME, &Value::Null), result, event.turn);
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

/// An external result, and the conversation that received it.
type External<'t> = (u32, &'t ExternalResult);

/// Sources given to one conversation so far, and those named by its last response call.
#[derive(Default)]
struct ConversationView<'t> {
    /// By the id in one spelling.
    given: BTreeMap<Cow<'t, str>, Given>,
    /// Addresses in the user's input or in retrieved text.
    mentioned: BTreeSet<String>,
    /// Whether the turn's response call was accepted; later retrieval cannot support the answer.
    responded: bool,
    /// Learned entries: the conversation and result that each was made from.
    learned: BTreeMap<&'t str, (u32, &'t str)>,
    named: Option<Vec<&'t str>>,
}

/// First giver of a source, as text, and its kind: `internal` or `external`.
#[derive(Debug, Clone)]
struct Given {
    by: String,
    kind: &'static str,
    /// Whether it was given after the turn's response call.
    late: bool,
}

impl<'t> ConversationView<'t> {
    fn hear(&mut self, (tool, arguments): (&str, &'t Value), result: &'t ToolResult, turn: u32) {
        let by = || format!("{tool}, turn {}", turn.saturating_add(1));
        match result {
            ToolResult::Search(search) => {
                for hit in &search.hits {
                    let learned = hit.learned.as_ref();
                    let by = || learned.map_or_else(by, |learned| format!("{}, learned from {}", by(), learned.result));
                    self.give(&hit.id, by, "internal");
                    hit.names.iter().for_each(|name| self.give(name, by, "internal"));
                    self.mention(&hit.excerpt);
                    for url in learned.iter().flat_map(|learned| &learned.urls) {
                        self.give(url, by, "external");
                    }
                    if let Some(learned) = learned {
                        self.learned.insert(&hit.id, (learned.conversation, &learned.result));
                    }
                }
            }
            ToolResult::External(found) => {
                self.give(&found.result, by, "external");
                for CitedPage { url, .. } in &found.citations {
                    self.give(url, by, "external");
                }
                self.mention(&found.answer);
            }
            ToolResult::Responded => {
                // A response tool without a sources parameter names none: the answer shows what was stated elsewhere.
                let sources = arguments.get("sources").and_then(Value::as_array);
                let ids = |sources: &'t Vec<Value>| sources.iter().filter_map(|one| one.get("id")?.as_str()).collect();
                self.named = sources.map(ids);
                self.given.values_mut().for_each(|given| given.late = false);
                self.responded = true;
            }
            ToolResult::Indexed(_) | ToolResult::Other(_) => {}
        }
    }

    fn mention(&mut self, text: &str) {
        self.mentioned.extend(addresses(text).iter().map(|address| one_spelling(address).into_owned()));
    }

    fn give(&mut self, id: &'t str, by: impl Fn() -> String, kind: &'static str) {
        let late = self.responded;
        self.given.entry(one_spelling(id)).or_insert_with(|| Given { by: by(), kind, late });
    }

    /// What gave a source to the answer; `None` when it was given too late.
    fn giver(&self, id: &str) -> Option<&Given> {
        self.given.get(one_spelling(id).as_ref()).filter(|given| !given.late)
    }

    fn judge(&self, answer: &Answer, own: u32, externals: &[External<'_>]) -> Provenance {
        let shown: Vec<&str> = answer.sources.iter().map(|source| source.id.as_str()).collect();
        let given_by: Vec<String> =
            shown.iter().map(|id| self.giver(id).map(|given| given.by.clone()).unwrap_or_default()).collect();
        let mut flaws = Vec::new();
        let named: Option<BTreeSet<Cow<'_, str>>> =
            self.named.as_ref().map(|named| named.iter().map(|id| one_spelling(id)).collect());
        for (id, by) in shown.iter().zip(&given_by) {
            let late = named.as_ref().is_some_and(|named| !named.contains(&one_spelling(id)));
            match (by.is_empty(), late) {
                (true, true) => flaws.push(format!("{} is invented after the response call, which lacks it", name(id))),
                (true, false) => flaws.push(format!("{} is invented: nothing retrieved gave it", name(id))),
                (false, true) => flaws.push(format!("{} is added after the response call, which lacks it", name(id))),
                (false, false) => {}
            }
        }
        for source in &answer.sources {
            if let Some(given) = self.giver(&source.id).filter(|given| given.kind != source.kind) {
                flaws.push(format!(
                    "{} is called {}, and is {}",
                    name(&source.id),
                    quote(&source.kind, 20),
                    given.kind
                ));
            }
        }
        let kept: BTreeSet<Cow<'_, str>> = shown.iter().map(|id| one_spelling(id)).collect();
        let mut told = BTreeSet::new();
        for id in self.named.iter().flatten().filter(|id| !kept.contains(&one_spelling(id)) && told.insert(**id)) {
            flaws.push(format!("{} is lost between the response call and the answer", name(id)));
        }
        let marks = marks(&answer.text);
        for mark in &marks {
            flaws.extend(match mark {
                Mark::Number(number, before) => self.renumbered((*number, before), answer, own, externals),
                Mark::Id(id) => (!kept.contains(&one_spelling(id)))
                    .then(|| format!("[{}] is invented: the answer names no such source", name(id))),
                Mark::Address(address) => {
                    let known = kept.contains(&one_spelling(address))
                        || self.giver(address).is_some()
                        || self.mentioned.contains(one_spelling(address).as_ref());
                    (!known).then(|| format!("{} is invented: nothing retrieved gave it", name(address)))
                }
            });
        }
        let mut known = BTreeSet::new();
        flaws.retain(|flaw| known.insert(flaw.clone()));
        let numbered = marks.iter().any(|mark| !matches!(mark, Mark::Address(_)));
        let cites = !shown.is_empty() || !told.is_empty() || numbered || !flaws.is_empty();
        Provenance { given_by, flaws, cites }
    }

    /// Describes the flaw in a number that follows these words, if any.
    fn renumbered(
        &self,
        (number, before): (usize, &[String]),
        answer: &Answer,
        own: u32,
        externals: &[External<'_>],
    ) -> Option<String> {
        let shown: Vec<&str> = answer.sources.iter().map(|source| source.id.as_str()).collect();
        let here = answer.source_of(number).map(|source| source.id.as_str());
        let made_of = |id: &&str| self.learned.get(id).copied();
        let learned: Vec<(u32, &str)> = shown.iter().filter_map(made_of).collect();
        let from = |(conversation, found): &&External<'_>| {
            *conversation == own || self.learned.values().any(|known| *known == (*conversation, found.result.as_str()))
        };
        let same = |url: &str| here.is_some_and(|id| one_spelling(url) == one_spelling(id));
        let mut copies = externals.iter().filter(from).filter_map(|(conversation, found)| {
            let marks = marks(&found.answer);
            let there = marks.iter().filter_map(|mark| match mark {
                Mark::Number(there, words) if words.len() == WORDS && words == before => Some(*there),
                _ => None,
            });
            let means = |there: usize| Some((there, found.citations.get(there.checked_sub(1)?)?.url.as_str()));
            // Of several numbers in one place, the one that this number could derive from.
            let meant: Vec<(usize, &str)> = there.filter_map(means).collect();
            let (number, url) = *meant.iter().find(|(_, url)| same(url)).or(meant.first())?;
            Some((number, url, learned.contains(&(*conversation, found.result.as_str()))))
        });
        // Equal results may have been returned twice: one that the number is kept from is enough.
        let first = copies.next();
        let sound = |(_, url, kept): &(usize, &str, bool)| *kept || same(url);
        let copied = first.into_iter().chain(copies).find(sound).or(first);
        match (copied, here) {
            (Some((_, _, true)), _) | (None, Some(_)) => None,
            (Some((_, meant, _)), Some(here)) if one_spelling(meant) == one_spelling(here) => None,
            (Some((there, meant, _)), _) if !shown.iter().any(|id| one_spelling(id) == one_spelling(meant)) => {
                Some(format!("{} is lost: [{there}] of the external result, which the answer repeats", name(meant)))
            }
            (Some((there, meant, _)), _) => Some(format!(
                "{} is renumbered: [{there}] in the external result, and [{number}] in the answer is another source",
                name(meant)
            )),
            (None, None) if shown.is_empty() => Some(format!("[{number}] is invented: the answer names no source")),
            (None, None) if answer.sources.iter().any(|source| source.number.is_some()) => {
                Some(format!("[{number}] is invented: no source of the answer has this number"))
            }
            (None, None) => Some(format!("[{number}] is invented: the sources of the answer end at {}", shown.len())),
        }
    }
}

fn name(id: &str) -> String {
    quote(id, 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{Story, plan, story};
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
            citations: [("a", URL), ("b", "https://example.org/b")]
                .map(|(title, url)| CitedPage { title: title.into(), url: url.into() })
                .into(),
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
    fn numbers_in_the_text_of_a_search_engine_stand_for_no_page() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let text = "Frost of three degrees is expected tonight [1].";
        let mut trace = given(story(&plan, 0).turn("q")).deliver(text, &[("internal", "doc#1")], 1).done();
        let flaws = |trace: &Trace| provenance(trace).remove(&(0, 0)).expect("an answer").flaws;
        assert!(flaws(&trace)[0].contains("is lost: [1] of the external result"), "{:?}", flaws(&trace));
        for event in &mut trace.events {
            if let What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(ToolResult::External(found)), .. }) =
                &mut event.what
            {
                found.model = ExternalResult::NO_MODEL.to_owned();
            }
        }
        assert_eq!(flaws(&trace), Vec::<String>::new());
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
    fn of_equal_results_the_one_that_the_cited_entry_was_made_of_is_enough() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let text = "Frost of three degrees is expected tonight [1]. It eases by the coming weekend [1].";
        // Two conversations side by side asked the same; the third finds both entries and cites one of them.
        let told = |cited: &str| {
            let story = given(story(&plan, 0).conversation(0, "first").turn("q")).deliver("so", &[], 1);
            let story = given(story.conversation(1, "second").turn("q")).deliver("so", &[], 1);
            let story = story.conversation(2, "third").turn("q").search_with(&[], Some(0), &[]);
            let mut trace = story.deliver(text, &[("internal", cited)], 1).done();
            for event in &mut trace.events {
                let What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(result), .. }) = &mut event.what else {
                    continue;
                };
                match result {
                    ToolResult::External(found) => found.result = "result-1".into(),
                    ToolResult::Search(search) if event.conversation == 2 => {
                        let mut other = search.hits[0].clone();
                        other.id = "learned:other".into();
                        other.learned.as_mut().expect("a learned entry").conversation = 1;
                        search.hits.push(other);
                    }
                    _ => {}
                }
            }
            provenance(&trace).remove(&(2, 0)).expect("an answer").flaws
        };
        assert_eq!((told("learned:1"), told("learned:other")), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_number_stands_for_the_source_that_has_it_where_sources_have_numbers() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let told = |text: &str| {
            let mut story = given(story(&plan, 0).turn("q")).deliver(text, &[("internal", "doc#2")], 1);
            story.each(|what| {
                if let What::TurnEnded(ended) = what
                    && let TurnOutcome::Answered(answer) = &mut ended.outcome
                {
                    answer.sources[0].number = Some(2);
                }
            });
            provenance(&story.done()).remove(&(0, 0)).expect("an answer")
        };
        assert_eq!(told("Own words here [2].").flaws, Vec::<String>::new());
        let found = told("Own words here [1].");
        assert_eq!(found.flaws, ["[1] is invented: no source of the answer has this number"]);
    }

    #[test]
    fn a_number_an_id_or_an_address_without_a_source_is_invented() {
        let found = told("Own words here [7].", &["doc#1"], &[("internal", "doc#1")]);
        assert_eq!(found.flaws, ["[7] is invented: the sources of the answer end at 1"]);
        let found = told("Own words here [7].", &[], &[]);
        assert_eq!((found.cites, found.flaws), (true, vec!["[7] is invented: the answer names no source".to_owned()]));
        let found = told("A link [1](https://x.example).", &["doc#1"], &[("internal", "doc#1")]);
        assert_eq!(found.flaws, ["https://x.example is invented: nothing retrieved gave it"]);
        let found = told("As in [doc#77].", &["doc#1"], &[("internal", "doc#1")]);
        assert_eq!(found.flaws, ["[doc#77] is invented: the answer names no such source"]);
        let found = told(&format!("A page: {URL}."), &["doc#1"], &[("internal", "doc#1")]);
        assert_eq!(found.flaws, Vec::<String>::new(), "the search gave the page");
    }

    #[test]
    fn a_source_is_of_the_kind_that_gave_it_and_was_given_before_the_response() {
        let found = told("so", &["doc#1"], &[("external", "doc#1")]);
        assert_eq!(found.flaws, ["doc#1 is called external, and is internal"]);
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let arguments = json!({"answer": "so", "sources": [{"kind": "internal", "id": "doc#7"}]});
        let late = story(&plan, 0).turn("q").search(&["doc#1"]);
        let late = late.call("generate_response", arguments, ToolOutcome::Ok(ToolResult::Responded));
        let trace = late.search(&["doc#7"]).deliver("so", &[("internal", "doc#7")], 1).done();
        let found = provenance(&trace).remove(&(0, 0)).expect("an answer");
        assert_eq!(found.flaws, ["doc#7 is invented: nothing retrieved gave it"]);
    }
}
