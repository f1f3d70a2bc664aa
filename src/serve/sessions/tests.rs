//! Sessions across processes, tenants, time and hostile ids.

use super::*;
use crate::flow::SessionStore as _;

const HOUR: Duration = Duration::from_hours(1);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

fn sessions(folder: &Path) -> Sessions {
    Sessions::open(&folder.join("sessions"), HOUR, false).expect("opens")
}

fn kind(result: Result<Session, SessionError>) -> String {
    ApiError::from(result.expect_err("is refused")).kind
}

#[test]
fn a_session_is_found_again_by_another_process_and_by_its_own_tenant_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = sessions(folder.path()).mint(Some("north")).expect("minted");
    session.conversation.turns = 3;
    session.save(at(0)).expect("is stored");
    let id = session.id.clone();
    drop(session);
    let sessions = sessions(folder.path());
    let again = sessions.resume(&id, Some("north"), at(60)).expect("is found");
    assert_eq!((again.conversation.turns, again.conversation.session.as_str()), (3, id.as_str()));
    drop(again);
    assert_eq!(
        sessions.resume(&id, None, at(60)).expect("its own tenant").conversation.tenant.as_deref(),
        Some("north")
    );
    assert_eq!(kind(sessions.resume(&id, Some("south"), at(60))), "unknown_session");
}

#[test]
fn what_nobody_was_given_is_unknown_wherever_it_would_lead() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("secret.json"), "{}").expect("written");
    let sessions = sessions(folder.path());
    let minted = sessions.mint(None).expect("minted").id.clone();
    for id in
        ["../secret", "", "s-", &minted.to_uppercase(), &minted, "/etc/passwd", "s-..%2f..%2f..%2f..%2f..%2f..%2fxx"]
    {
        assert_eq!(kind(sessions.resume(id, None, at(0))), "unknown_session", "{id}");
    }
}

#[test]
fn a_turn_under_way_outlasts_the_process_and_ends_with_its_answer_or_its_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = sessions(folder.path()).mint(None).expect("minted");
    session.conversation.turns = 1;
    session.save(at(0)).expect("is stored");
    let id = session.id.clone();
    session.under_way().save(&id, "observing", "half a turn").expect("is stored");
    drop(session);
    let nobodys = sessions(folder.path()).mint(None).expect("minted");
    nobodys.under_way().save(&nobodys.id, "thinking", "a first turn").expect("is stored");
    let again = sessions(folder.path());
    again.forget_expired(at(60)).expect("looks");
    assert_eq!(nobodys.under_way().load(&nobodys.id), Ok(None), "nobody knows its id");
    let session = again.resume(&id, None, at(60)).expect("is found");
    assert_eq!(session.under_way().load(&id), Ok(Some("half a turn".into())));
    session.save(at(60)).expect("is stored");
    assert_eq!(session.under_way().load(&id), Ok(None), "its answer is in the session");
    session.under_way().save(&id, "thinking", "another").expect("is stored");
    let store = session.under_way();
    drop(session);
    assert_eq!(kind(again.resume(&id, None, at(9_999))), "session_expired");
    assert_eq!(store.load(&id), Ok(None), "the session has ended");
}

#[test]
fn a_session_answers_one_question_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = sessions(folder.path());
    let session = sessions.mint(None).expect("minted");
    session.save(at(0)).expect("is stored");
    assert_eq!(kind(sessions.resume(&session.id, None, at(1))), "session_busy");
    let id = session.id.clone();
    drop(session);
    assert!(sessions.resume(&id, None, at(1)).is_ok());
}

#[test]
fn an_unused_session_ends_and_what_was_said_is_gone_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = sessions(folder.path());
    let mut session = sessions.mint(None).expect("minted");
    session
        .conversation
        .history
        .push(crate::provider::chat::Message::text(crate::provider::chat::Role::User, "my secret"));
    session.save(at(0)).expect("is stored");
    let (id, file) = (session.id.clone(), session.file.clone());
    drop(session);
    assert!(sessions.resume(&id, None, at(3600)).is_ok(), "within its life");
    assert_eq!(kind(sessions.resume(&id, None, at(3602))), "session_expired");
    assert_eq!(kind(sessions.resume(&id, None, at(10))), "session_expired", "also when the clock was set back");
    assert!(!std::fs::read_to_string(file).expect("a file").contains("my secret"));
}

#[test]
fn what_was_said_in_expired_sessions_is_gone_when_the_service_starts_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |words: &str, second: i64| {
        let mut session = sessions(folder.path()).mint(None).expect("minted");
        session
            .conversation
            .history
            .push(crate::provider::chat::Message::text(crate::provider::chat::Role::User, words));
        session.save(at(second)).expect("is stored");
        session.file.clone()
    };
    let (old, fresh) = (said("my secret", 0), said("not so old", 3000));
    let sessions = sessions(folder.path());
    std::fs::write(sessions.folder.join("s-broken.json"), "{").expect("written");
    sessions.forget_expired(at(4000)).expect("is done");
    assert!(!std::fs::read_to_string(&old).expect("a file").contains("my secret"));
    assert!(std::fs::read_to_string(&fresh).expect("a file").contains("not so old"));
    let id = old.file_stem().and_then(|name| name.to_str()).expect("an id").to_owned();
    assert_eq!(kind(sessions.resume(&id, None, at(4001))), "session_expired");
}

#[test]
fn a_session_ends_after_two_hundred_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = sessions(folder.path());
    let mut session = sessions.mint(None).expect("minted");
    let id = session.id.clone();
    session.conversation.turns = MOST_TURNS - 1;
    session.save(at(0)).expect("is stored");
    drop(session);
    let mut last = sessions.resume(&id, None, at(1)).expect("has one turn left");
    last.conversation.turns += 1;
    last.save(at(1)).expect("is stored");
    drop(last);
    assert_eq!(kind(sessions.resume(&id, None, at(2))), "session_expired");
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_what_was_said_also_where_others_could_before() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = sessions(folder.path());
    let mode = |file: &Path| std::fs::metadata(file).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&sessions.folder), 0o700);
    let session = sessions.mint(None).expect("minted");
    session.save(at(0)).expect("is stored");
    assert_eq!(mode(&session.file), 0o600);
    std::fs::set_permissions(&session.file, std::fs::Permissions::from_mode(0o644)).expect("is allowed");
    session.save(at(1)).expect("is stored");
    assert_eq!(mode(&session.file), 0o600);
}

#[test]
fn a_session_of_a_newer_build_and_a_broken_one_are_errors_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = sessions(folder.path());
    let session = sessions.mint(None).expect("minted");
    session.save(at(0)).expect("is stored");
    let (id, file) = (session.id.clone(), session.file.clone());
    drop(session);
    let whole = std::fs::read_to_string(&file).expect("a file");
    for broken in
        [whole.replacen("\"version\":1", "\"version\":2", 1), whole[..whole.len() / 2].to_owned(), String::new()]
    {
        std::fs::write(&file, broken).expect("written");
        assert_eq!(kind(sessions.resume(&id, None, at(0))), "session_unavailable");
    }
}

#[test]
fn a_service_for_tests_adopts_the_ids_that_its_callers_choose() {
    let folder = tempfile::tempdir().expect("a folder");
    let sessions = Sessions::open(&folder.path().join("sessions"), HOUR, true).expect("opens");
    let session = sessions.resume("two-stage/a/../../b.1", None, at(0)).expect("is adopted");
    session.save(at(0)).expect("is stored");
    assert!(session.file.starts_with(folder.path().join("sessions")));
    drop(session);
    sessions.clear().expect("is cleared");
    assert_eq!(sessions.resume("two-stage/a/../../b.1", None, at(0)).expect("begins anew").conversation.turns, 0);
}
