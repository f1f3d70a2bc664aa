//! Runs the worked example of ARCHITECTURE.md, `examples/retrieve_then_read`, through the frame, and reads its traces
//! with a search that the flow makes itself.

use super::example::{FLOW, RetrieveThenRead};
use super::frame::Agent;
use super::scripted::{self, NoTime, Says, Scripted};
use super::{AgentContext, ConversationState, Flow};
use crate::knowledge::{
    Corpus, Embedded, ForeignFile, KeywordIndex, KnowledgeBase, KnowledgeBases, KnowledgeError, Passage, Search,
};
use crate::platform::clock::{BoxFuture, Clock, VirtualClock, block_on};
use crate::provider::ChatModel;
use crate::provider::chat::ToolChoice;
use crate::settings::{Enforcement, Limits};
use crate::trace::{Event, FlowSearch, ToolOutcome, Trace, What, version_of};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A base that responds after a delay, with a failure or a result.
struct Slow {
    clock: VirtualClock,
    takes: Duration,
    fails: bool,
    found: Embedded,
}

impl KnowledgeBase for Slow {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        Box::pin(async move {
            self.clock.sleep(self.takes).await;
            if self.fails {
                let error = KnowledgeError::Foreign { path: "index".into(), why: ForeignFile::NotSqlite };
                return Search::local(Err(error));
            }
            self.found.search(query, top_k).await
        })
    }

    fn hash(&self) -> String {
        "slow".into()
    }
}

/// Plays one turn with that base and that model. Returns the events and the number of requests to the model.
fn play(takes: u64, fails: bool, model: Vec<Says>) -> (Vec<Event>, Vec<ToolChoice>) {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let model = Scripted::new(&clock, model);
    let text = "The warranty lasts 24 months.".to_owned();
    let passage = Passage { id: "warranty#1".into(), title: "Warranty".into(), text };
    let found = Embedded::open(Corpus::of("desk", vec![passage]), None).expect("opens");
    let base = Slow { clock: clock.clone(), takes: Duration::from_secs(takes), fails, found };
    let env = AgentContext::new(
        Arc::clone(&model) as Arc<dyn ChatModel>,
        None,
        KnowledgeBases::new(vec![("desk".into(), Arc::new(base))]),
        Arc::new(KeywordIndex::in_memory()),
        Arc::new(clock.clone()),
        Arc::new(NoTime),
        Arc::new(scripted::settings(&FLOW, Limits::default(), Enforcement::Feedback)),
    );
    let mut conversation = ConversationState::new(0, "main");
    env.conversation_started(&conversation);
    block_on(&clock, FLOW.turn(&env, &mut conversation, "How long is the warranty?"))
        .expect("no deadlock")
        .expect("ends");
    assert_eq!(conversation.flow_state::<()>(), Ok(()), "nothing is kept beside the history");
    let trace = scripted::trace(&FLOW, env.take_events());
    let departures = FLOW.machine().departures(&trace);
    assert!(departures.is_empty(), "{departures:?}");
    (trace.events, model.requests().into_iter().map(|request| request.tool_choice).collect())
}

fn trace(takes: u64, fails: bool, model: Vec<Says>) -> Trace {
    scripted::trace(&FLOW, play(takes, fails, model).0)
}

fn own_search(events: &[Event]) -> Option<&FlowSearch> {
    events.iter().find_map(|event| if let What::Searched(search) = &event.what { Some(search) } else { None })
}

#[test]
fn every_turn_ends_once_in_its_own_way_and_every_declared_transition_is_taken() {
    let answer = || vec![Says::Text("24 months [1].")];
    let mut taken = BTreeSet::new();
    for (takes, fails, model, end) in [
        (1, false, answer(), "answered"),
        (1, true, answer(), "search_failed"),
        (999, false, answer(), "timeout"),
        (1, false, vec![Says::Late], "timeout"),
        (1, false, vec![Says::Fails], "model_unavailable"),
        (1, false, vec![Says::Text(" ")], "no_answer"),
        (1, false, vec![Says::Refuses], "no_answer"),
    ] {
        let (events, _) = play(takes, fails, model);
        assert_eq!(scripted::ends(&events), [end]);
        taken.extend(scripted::moves(&events).into_iter().cloned().map(|one| (one.from, one.on, one.to)));
    }
    let declared = RetrieveThenRead::MACHINE.machine().transitions.into_iter().map(|row| (row.from, row.on, row.to));
    assert_eq!(taken, declared.collect(), "declared and taken");
}

#[test]
fn the_flow_searches_and_the_model_is_asked_once_without_tools() {
    let (events, asked) = play(1, false, vec![Says::Text("24 months [1].")]);
    assert_eq!(asked, [ToolChoice::None]);
    assert!(scripted::calls(&events).is_empty(), "a search of the flow's own is no call of a tool");
    let search = own_search(&events).expect("a search");
    assert_eq!((search.query.as_str(), search.took_us), ("How long is the warranty?", 1_000_000));
    let stored = serde_json::to_string(&events).expect("is JSON");
    assert_eq!(serde_json::from_str::<Vec<Event>>(&stored).expect("is read"), events);
    assert_eq!((version_of(&events), version_of(&events[..1])), (4, 2), "older builds read what they can");
}

#[test]
fn a_search_that_fails_or_is_cut_off_is_in_the_record() {
    for (takes, fails, words, took_us) in [(1, true, "an SQLite", 1_000_000), (999, false, "time ran out", 120_000_000)]
    {
        let (events, asked) = play(takes, fails, Vec::new());
        assert!(asked.is_empty());
        let search = own_search(&events).expect("a search");
        let ToolOutcome::Failed { message, .. } = &search.outcome else { panic!("{:?}", search.outcome) };
        assert!(message.contains(words), "{message}");
        assert_eq!(search.took_us, took_us);
    }
}

/// Metrics over these traces.
#[cfg(test)]
mod readers {
    use super::*;
    use crate::metric::provenance::provenance;
    use crate::metric::stages::turn_times;

    #[test]
    fn who_reads_traces_finds_what_the_flow_searched() {
        let trace = trace(1, false, vec![Says::Text("24 months [1].")]);
        let hits: Vec<&str> = trace.searches().flat_map(|search| &search.hits).map(|hit| hit.id.as_str()).collect();
        assert_eq!(hits, ["warranty#1"]);
        let times = turn_times(&trace);
        let stages: Vec<(String, u64)> =
            times[0].stages_us.iter().map(|(stage, took)| (stage.as_str().to_owned(), *took)).collect();
        assert!(stages.contains(&("search".to_owned(), 1_000_000)), "{stages:?}");
        let provenance = provenance(&trace);
        let cited = &provenance[&(0, 0)];
        assert_eq!(
            (cited.given_by.as_slice(), cited.flaws.len()),
            (&["search, turn 1".to_owned()][..], 0),
            "{cited:?}"
        );
    }
}
