//! State that outlives a turn: a conversation stored and restored between turns, and the notifications of an observer.

use super::*;
use crate::flow::conversation::CONVERSATION_VERSION;
use crate::flow::{Observer, StateError, Status};

fn two_turns() -> Vec<Says> {
    let later = json!({"answer": "As I said.", "used_internal_kb": false, "used_external_kb": true,
                       "sources": [{"kind": "external", "id": PAGE, "title": "Tariffs"}]});
    vec![
        search("battery tariff"),
        outside("tariff 2026"),
        keywords(&GOOD_KEYWORDS),
        responds(both()),
        search("again"),
        responds(later),
    ]
}

/// Plays two turns of one conversation, stored in between by `pass`.
fn lead(pass: impl Fn(ConversationState) -> ConversationState) -> (Vec<ChatRequest>, Vec<Event>) {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let (model, env) = play(two_turns()).environment(&clock);
    let mut conversation = ConversationState::new(0, "main");
    for query in ["Warranty and tariff?", "And the tariff again?"] {
        block_on(&clock, ToolRag.turn(&env, &mut conversation, query)).expect("no deadlock").expect("no abort");
        conversation = pass(conversation);
    }
    let requests = model.requests.lock().expect("not poisoned").clone();
    (requests, env.take_events())
}

#[test]
fn a_conversation_that_was_stored_goes_on_as_if_it_never_had_been() {
    let restored = |conversation: ConversationState| {
        let stored = conversation.to_json();
        assert_eq!(ConversationState::from_json(&stored), Ok(conversation));
        ConversationState::from_json(&stored).expect("is read")
    };
    assert_eq!(lead(restored), lead(|conversation| conversation));
}

#[test]
fn what_an_earlier_turn_received_stays_citable() {
    let (_, events) = lead(|conversation| conversation);
    let answers = events.iter().filter(
        |event| matches!(&event.what, What::TurnEnded(ended) if matches!(ended.outcome, TurnOutcome::Answered(_))),
    );
    assert_eq!(answers.count(), 2);
    // Without the stored state, the page that the second answer cites was never shown.
    let (_, events) = lead(|conversation| {
        let mut forgotten = ConversationState::new(0, "main");
        (forgotten.turns, forgotten.history) = (conversation.turns, conversation.history);
        forgotten
    });
    let refused = events.iter().any(|event| match &event.what {
        What::ToolCalled(called) => {
            matches!(&called.outcome, ToolOutcome::Rejected(why) if why.cause == "unknown_source")
        }
        _ => false,
    });
    assert!(refused);
}

#[test]
fn a_conversation_of_another_flow_is_an_error_that_ends_the_trial_and_not_the_program() {
    let stored = format!(
        r#"{{"version":{CONVERSATION_VERSION},"ordinal":0,"name":"main","session":"main","history":[],"turns":0,
            "flow":{{"name":"another","version":1,"state":{{}}}}}}"#
    );
    let mut conversation = ConversationState::from_json(&stored).expect("is read");
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let (_, env) = play(vec![]).environment(&clock);
    let ended = block_on(&clock, ToolRag.turn(&env, &mut conversation, "Warranty?")).expect("no deadlock");
    let Err(Abort::State(StateError::OtherFlow { found, .. })) = ended else { panic!("{ended:?}") };
    assert_eq!(found, "another");
    assert!(env.take_events().is_empty());
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>, Mutex<Vec<Event>>);

impl Observer for Notes {
    fn notice(&self, status: &Status<'_>) {
        let note = match status {
            Status::ModelAsked { call, .. } => format!("model asked {call}"),
            Status::ToolStarted { tool, .. } => format!("{tool} started"),
            Status::Recorded(event) => {
                self.1.lock().expect("not poisoned").push((*event).clone());
                return;
            }
        };
        self.0.lock().expect("not poisoned").push(note);
    }
}

#[test]
fn an_observer_sees_what_begins_and_everything_that_is_recorded_and_changes_nothing() {
    let run = |observer: Option<Arc<Notes>>| {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let (_, mut env) = play(vec![search("battery warranty"), responds(inside())]).environment(&clock);
        if let Some(observer) = observer {
            env = env.observed_by(observer);
        }
        let mut conversation = ConversationState::new(0, "main");
        block_on(&clock, ToolRag.turn(&env, &mut conversation, "Warranty?")).expect("no deadlock").expect("no abort");
        env.take_events()
    };
    let notes = Arc::new(Notes::default());
    let events = run(Some(Arc::clone(&notes)));
    assert_eq!(events, run(None));
    assert_eq!(*notes.1.lock().expect("not poisoned"), events);
    let begun = ["model asked 0", "knowledge_base_search started", "model asked 1", "generate_response started"];
    assert_eq!(*notes.0.lock().expect("not poisoned"), begun);
}
