//! Stored state: a killed turn continues, a session is read back, a broken store starts afresh, and a long conversation
//! loses only what it may.

use super::*;

const QUESTION: &str = "We decided to use the Sprig. How long is its warranty?";

#[test]
fn a_session_that_was_killed_after_any_change_goes_on_where_it_was_and_comes_to_the_same_end() {
    let undisturbed = play(whole(), &[QUESTION]);
    let saved = undisturbed.store.saved.lock().expect("not poisoned").clone();
    let states: std::collections::BTreeSet<&str> = saved.iter().map(|(state, _)| state.as_str()).collect();
    let all = ["answered", "answering", "ended", "observing", "reflecting", "thinking"];
    assert_eq!(states.into_iter().collect::<Vec<_>>(), all);
    for (at, (state, text)) in saved.iter().enumerate().filter(|(_, (state, _))| state != "ended") {
        let conversation = ConversationState::from_json(text).expect("is read");
        let memory: Memory = conversation.flow_state().expect("its own");
        let asked = memory.under_way.as_ref().expect("a turn under way").model_calls as usize;
        let store = Arc::new(Recording::default());
        store.save("main", state, text).expect("is saved");
        // A new process: only the stored part of the conversation remains.
        let play = Play { store, conversation, ..Play::default() };
        let played = play.of(whole()[asked..].to_vec(), &[QUESTION]);
        assert_eq!(played.outcomes(), undisturbed.outcomes(), "killed after change {at}, in {state}");
        assert_eq!(played.requests.len() + asked, undisturbed.requests.len(), "{at}, {state}: nothing is asked twice");
        let resumed = Logged::Restored { state: Some(state.clone()) };
        assert!(played.log().contains(&&resumed), "{at}, {state}");
        for (request, before) in played.requests.iter().zip(&undisturbed.requests[asked..]) {
            assert_eq!(request.messages, before.messages, "{at}, {state}: the model is shown the same");
        }
        let kept = |conversation: &ConversationState| conversation.flow_state::<Memory>().expect("its own");
        assert_eq!(kept(&played.conversation), kept(&undisturbed.conversation), "{at}, {state}");
        assert_eq!(played.conversation.turns, 1);
    }
}

#[test]
fn another_question_after_a_kill_begins_a_turn_of_its_own() {
    let saved = play(whole(), &[QUESTION]).store.saved.lock().expect("not poisoned")[3].clone();
    let conversation = ConversationState::from_json(&saved.1).expect("is read");
    let store = Arc::new(Recording::default());
    store.save("main", &saved.0, &saved.1).expect("is saved");
    let model = vec![search("warranty", "direct"), grades(&[1, 2], true), Says::Text("24 months [1].")];
    let played = Play { store, conversation, ..Play::default() }.of(model, &["Something else?"]);
    assert_eq!((played.end(), played.conversation.turns), (("24 months [1].", "answered"), 2));
}

#[test]
fn a_stored_session_is_read_back_and_one_that_cannot_be_read_is_begun_anew_with_a_notice() {
    let model = || vec![search("warranty", "direct"), grades(&[1, 2], true), Says::Text("24 months [1].")];
    let first = play(model(), &["We decided to use the Sprig. How long?"]);
    let again = Play { store: Arc::clone(&first.store), conversation: first.conversation.clone(), ..Play::default() };
    let played = again.of(model(), &["And now?"]);
    assert!(played.log().contains(&&Logged::Restored { state: None }));
    assert!(played.shown(0).contains("We decided to use the Sprig."), "{}", played.shown(0));
    for broken in ["", "{", "{\"version\":99}", "null"] {
        let store = Arc::new(Recording::default());
        store.save("main", "ended", broken).expect("is saved");
        let conversation = first.conversation.clone();
        let played = Play { store, conversation, ..Play::default() }.of(model(), &["And now?"]);
        let (text, end) = played.end();
        assert_eq!(end, "answered");
        assert!(text.contains("fresh session"), "{broken}: {text}");
        assert!(!played.shown(0).contains("We decided"), "nothing of the old session is shown");
        assert!(played.log().iter().any(|one| matches!(one, Logged::StartedAfresh { .. })));
    }
}

#[test]
fn a_store_that_takes_nothing_costs_no_answer_and_the_user_is_told() {
    let model = vec![search("warranty", "direct"), grades(&[1, 2], true), Says::Text("24 months [1].")];
    let store = Arc::new(Recording { unusable: true, ..Recording::default() });
    let played = Play { store, ..Play::default() }.of(model, &["How long?"]);
    assert!(played.end().0.contains("cannot be stored"), "{}", played.end().0);
    assert!(!played.log().iter().any(|one| matches!(one, Logged::Persisted { .. })));
}

#[test]
fn a_long_conversation_is_compacted_in_time_and_decisions_preferences_and_lessons_stay() {
    let long = "24 months [1]. A sentence about it that is long and says the same in other words, again and again. ";
    let long: &'static str = Box::leak(long.repeat(25).into_boxed_str());
    let turn = || [search("warranty months", "direct"), grades(&[1, 2, 3], true), Says::Text(long)];
    let mut model = whole();
    (0..6).for_each(|_| model.extend(turn()));
    let questions =
        ["We decided to use the Sprig. From now on answer in detail. How long is its warranty?", "Two?", "Three?"];
    let questions: Vec<&str> = questions.into_iter().chain(["Four?", "Five?", "Six?", "Seven?"]).collect();
    let limits = Limits { model_calls: 30, window: Some(5_000), ..Limits::default() };
    let played = Play { limits, ..Play::default() }.of(model, &questions);
    let compactions: Vec<(u64, u64, bool, usize)> = played
        .log()
        .into_iter()
        .filter_map(|one| match one {
            Logged::Compacted { before, after, done, keeps } => Some((*before, *after, *done, keeps.len())),
            _ => None,
        })
        .collect();
    assert!(!compactions.is_empty(), "it came to a compaction");
    for (before, after, done, keeps) in compactions {
        assert!(done && before >= 4_000 && after * 5 <= before * 4, "{before} -> {after}");
        assert_eq!(keeps, 3, "a decision, a preference and a lesson");
    }
    let last = played.shown(played.requests.len() - 1);
    for kept in ["We decided to use the Sprig.", "From now on answer in detail.", "Leave the frost out."] {
        assert!(last.contains(kept), "{kept}: {last}");
    }
    assert!(last.contains("Summary of the earlier conversation:"), "{last}");
}

#[test]
fn a_context_that_cannot_be_made_shorter_is_said_to_be_full_and_ends_by_the_budget() {
    let limits = Limits { model_calls: 30, window: Some(900), ..Limits::default() };
    let played = Play { limits, ..Play::default() }.of(vec![], &["How long is the warranty?"]);
    let (text, end) = played.end();
    assert_eq!((end, played.requests.len()), ("budget_used_up", 0));
    assert!(text.contains("could not be made shorter"), "{text}");
    assert!(played.log().iter().any(|one| matches!(one, Logged::Compacted { done: false, .. })));
}

#[test]
fn a_history_that_could_not_be_made_shorter_is_not_tried_again_before_it_has_grown() {
    let step = |query: &str| [search(query, "direct"), grades(&[1, 2, 3], false)];
    let model = || {
        let first = [search("warranty months", "direct"), grades(&[1, 2], true), Says::Text("24 months [1].")];
        let last = [search("lasts", "direct"), grades(&[1, 2], true), Says::Text("24 months [1].")];
        let steps = ["warranty", "months", "warranty part"].into_iter().flat_map(step);
        first.into_iter().chain(steps).chain(last).collect()
    };
    let mut went_on = 0;
    // The question fills the window at the first or a later request, and the history is short.
    for length in (9_000..18_000).step_by(300) {
        let question = "w ".repeat(length / 2);
        let limits = Limits { model_calls: 30, window: Some(8_000), ..Limits::default() };
        let played = Play { limits, ..Play::default() }.of(model(), &["One?", &question]);
        let is_try = |event: &Recorded| matches!(event.what, What::Logged(Logged::Compacted { done: false, .. }));
        let tries = played.events.iter().filter(|event| is_try(event)).count();
        assert!(tries <= 1, "{tries} tries for one history, {length} bytes");
        let after = played.events.iter().skip_while(|event| !is_try(event));
        went_on += usize::from(after.filter(|event| matches!(event.what, What::ModelCalled(_))).count() >= 2);
    }
    assert!(went_on > 0, "some turn went on with a context that could not be made shorter");
}

#[test]
fn the_end_of_a_session_removes_it_from_the_store() {
    let played = play(whole(), &[QUESTION]);
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let settings = scripted::settings(&FLOW, Limits::default(), Enforcement::Feedback);
    let model = Scripted::loose(&clock, Vec::new());
    let mut env = AgentContext::new(
        model,
        None,
        base(0),
        Arc::new(KeywordIndex::in_memory()),
        Arc::new(clock),
        Arc::new(NoTime),
        Arc::new(settings),
    );
    env.sessions = Arc::clone(&played.store) as Arc<dyn SessionStore>;
    assert!(played.store.load("main").expect("loads").is_some());
    FLOW.session_ended(&env, &played.conversation);
    assert_eq!(played.store.load("main"), Ok(None));
    assert!(matches!(env.take_events()[0].what, What::Logged(Logged::Cleared)));
}
