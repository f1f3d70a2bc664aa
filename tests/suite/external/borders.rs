//! What is refused here, asked elsewhere, not asked or not shown is no verdict on the agent.

use super::Stage;
use super::agent::ServiceSettings;
use super::desk::{Desk, Kind, plain};

/// What is asked, as it is named, and the words that tell it.
const REFUSED: [(Kind, &str); 9] = [
    (
        Kind::Assistants,
        "your agent asked POST /model/v1/assistants, which is not served; served: POST /model/v1/chat/completions",
    ),
    (Kind::Batches, "your agent asked POST /model/v1/messages/batches, which is not served"),
    (Kind::Predict, "your agent asked POST /model/v1beta/models/g:predict, which is not served"),
    (Kind::Signed, "your agent asked POST /model/model/m%3A0/converse, which is signed by AWS (SigV4)"),
    (Kind::Origin, "your agent asked POST /model/v1/chat/completions, with an `Origin` header"),
    (Kind::Host, "your agent asked POST /model/v1/chat/completions, and requests to the host name `llm-gateway:9321`"),
    (
        Kind::Tls,
        "your agent opened a TLS connection to the proxy, which speaks plain HTTP: its base URL must begin with",
    ),
    (Kind::NoHttp, "your agent sent the proxy something that is no HTTP/1.1 request"),
    (Kind::NotJson, "your agent asked POST /model/v1/chat/completions, whose body is not JSON"),
];

#[test]
fn what_the_proxy_refuses_makes_the_trial_an_error_that_names_the_request_and_nothing_is_recorded() {
    for (kind, words) in REFUSED {
        let desk = Desk::set(kind, "", "");
        desk.is_an_error(&desk.run("live"), words);
        desk.is_an_error(&desk.run("record"), words);
        assert!(!desk.project.path("cassettes/desk").exists(), "{kind:?} was recorded");
    }
}

#[test]
fn a_refusal_in_replay_is_an_error_too_whatever_else_went_wrong() {
    let mut desk = Desk::set(Kind::Chat, "", "");
    desk.passes_recorded_and_replayed();
    desk.becomes(Kind::Assistants);
    desk.is_an_error(&desk.run("replay"), "your agent asked POST /model/v1/assistants, which is not served");
    // Beside a completion that is answered, without the query that may hold a key.
    desk.becomes(Kind::Speech);
    let outcome = desk.run("replay");
    desk.is_an_error(&outcome, "your agent asked POST /model/v1/audio/speech, which is not served; served: ");
    assert!(!outcome.stdout.contains("s3cret"), "{}", outcome.stdout);
}

#[test]
fn a_path_that_may_be_refused_is_a_note() {
    for path in ["/model/v1/audio/speech", "/model/v1/audio/*"] {
        let desk = Desk::set(Kind::Speech, &format!(", may_refuse: ['{path}']"), "");
        let outcome = desk.run("live");
        outcome.expect_code(0);
        let note = "your agent asked POST /model/v1/audio/speech, which is not served";
        assert!(plain(&outcome.stdout).contains(note), "{}", outcome.stdout);
        assert!(desk.project.traces()[0]["notes"][0].as_str().is_some_and(|told| told.contains(note)));
    }
    let other = Desk::set(Kind::Speech, ", may_refuse: [/model/v1/audio/other]", "");
    other.run("live").expect_code(3);
}

#[test]
fn a_trailing_slash_and_the_list_of_models_are_served_and_recorded() {
    for kind in [Kind::Slash, Kind::Models, Kind::Chat] {
        let mut desk = Desk::set(kind, "", "");
        desk.passes_recorded_and_replayed();
        assert!(desk.project.traces()[0].to_string().contains("(200)"), "{kind:?}: {}", desk.project.traces()[0]);
        let lane = desk.project.read("cassettes/desk/helmet/external.base.1.yaml");
        assert_eq!(lane.contains("method: \"GET\""), kind == Kind::Models, "{lane}");
        let calls = desk.project.latest("run.json")["trials"][0]["model_calls"].clone();
        assert_eq!(calls, u64::from(kind != Kind::Models), "a list of models is no completion");
    }
}

#[test]
fn anthropics_client_finds_the_list_of_models_below_a_base_url_without_a_version() {
    let mut desk = Desk::set(Kind::ModelsOfAnthropic, "", "");
    desk.project.edit("ragcheck.yaml", "/v1'", "'");
    desk.passes_recorded_and_replayed();
    let trace = &desk.project.traces()[0];
    assert!(trace.to_string().contains("(200)"), "{trace}");
    let lane = desk.project.read("cassettes/desk/helmet/external.base.1.yaml");
    assert!(lane.contains("path: \"/v1/models\""), "{lane}");
}

#[test]
fn a_containers_service_name_is_allowed_by_its_name() {
    let mut desk = Desk::set(Kind::Host, "", "proxy_hosts: [llm-gateway]\n");
    desk.passes_recorded_and_replayed();
    let other = Desk::set(Kind::Host, "", "proxy_hosts: [gateway]\n");
    other.run("live").expect_code(3);
}

#[test]
fn an_agent_that_asks_nothing_is_an_error_live_and_recording_unless_its_case_says_so() {
    for kind in [Kind::Nothing, Kind::Beside] {
        for mode in ["live", "record"] {
            let desk = Desk::set(kind, "", "");
            let outcome = desk.run(mode);
            desk.is_an_error(
                &outcome,
                "no request came: the agent asked nothing here; is its base URL http://127.0.0.1:",
            );
            assert!(!desk.project.path("cassettes/desk").exists(), "{kind:?} was recorded");
        }
    }
    let mut silent = Desk::set(Kind::Nothing, "", "");
    silent.project.edit("desk.yaml", "case: helmet,", "case: helmet, asks_nothing: true,");
    silent.passes_recorded_and_replayed();
}

#[test]
fn a_case_that_asks_nothing_fails_where_the_agent_asks() {
    let desk = Desk::set(Kind::Chat, "", "");
    desk.project.edit("desk.yaml", "case: helmet,", "case: helmet, asks_nothing: true,");
    let outcome = desk.run("live");
    outcome.expect_code(1);
    assert!(plain(&outcome.stdout).contains("it asked its model: 1 completion"), "{}", outcome.stdout);
}

#[test]
fn a_replay_in_which_the_agent_asks_beside_the_proxy_is_an_error_that_counts_what_was_recorded() {
    let desk = Desk::set(Kind::Chat, "", "");
    desk.run("record").expect_code(0);
    desk.becomes(Kind::Beside);
    let words = "no request came to the proxy; 1 recorded exchange was not asked for: does the agent still go to the provider itself?";
    desk.is_an_error(&desk.run("replay"), words);
}

#[test]
fn an_agent_that_lists_models_here_and_asks_its_model_elsewhere_is_an_error_in_replay_and_noted_in_recording() {
    let desk = Desk::set(Kind::ModelsBeside, "", "");
    let outcome = desk.run("record");
    outcome.expect_code(0);
    let note = "no request for a completion came: if the agent asks its model elsewhere, a replay does not repeat that";
    assert!(plain(&outcome.stdout).contains(note), "{}", outcome.stdout);
    assert_eq!(desk.project.traces()[0]["notes"][0], note);

    let desk = Desk::set(Kind::ModelsThenChat, "", "");
    desk.run("record").expect_code(0);
    desk.becomes(Kind::ModelsBeside);
    let words = "no request for a completion came to the proxy; 1 recorded completion was not asked for: does the agent still go to its model itself?";
    desk.is_an_error(&desk.run("replay"), words);
}

#[test]
fn a_replay_notes_that_its_answers_are_of_another_provider() {
    let desk = Desk::set(Kind::Chat, "", "");
    let settings = desk.project.read("ragcheck.yaml");
    desk.project.write("ragcheck.yaml", &(settings.clone() + settings.lines().last().expect("a provider") + "\n"));
    desk.project.edit("ragcheck.yaml", "  fake: {", "  other: {");
    desk.run("record").expect_code(0);
    desk.project.edit("desk.yaml", "provider: fake", "provider: other");
    let outcome = desk.run("replay");
    outcome.expect_code(0);
    let note = "the answers of `model` were recorded from `fake`, and the scenario names `other` now";
    assert!(plain(&outcome.stdout).contains(note), "{}", outcome.stdout);
}

#[test]
fn a_two_stage_agent_is_judged_by_its_prompt_and_the_sources_of_its_reply() {
    let lines = "roles: {knowledge: retrieve_documents}\n";
    let gates = "gates:\n  - {id: forced, metric: forced_retrieval_rate, target: '= 100%', kind: point}\n  \
                 - {id: called, metric: mandatory_call_rate(knowledge), target: '= 100%', kind: point}\n  \
                 - {id: given, metric: citation_provenance, target: '= 100%', kind: point}\n  \
                 - {id: valid, metric: citation_validity, target: '= 100%', kind: point}\n";
    let expected = "answer: {contains: [helmet], cites: [manual]}, sources: {internal: true, external: false, at_least: 1}, \
                    calls: [{exact: [retrieve_documents]}]";
    let mut desk = Desk::set(Kind::TwoStage, "", &format!("{lines}{gates}"));
    desk.project.edit("desk.yaml", "answer: {contains: [helmet]}", expected);
    desk.passes_recorded_and_replayed();
    let run = desk.project.latest("run.json");
    for id in ["forced", "called", "given", "valid"] {
        let row = run["gates"].as_array().expect("rows").iter().find(|row| row["id"] == id).expect(id);
        assert_eq!((row["verdict"].as_str(), row["n"].as_u64()), (Some("PASS"), Some(1)), "{row}");
    }
    let trace = &desk.project.traces()[0];
    let call = &super::events(trace, "tool_called")[0];
    assert_eq!(call["outcome"]["ok"]["search"]["hits"][0]["id"], "manual#4", "{trace}");
}

#[test]
fn what_a_two_stage_agent_does_not_show_is_not_measured_and_never_fails() {
    let lines = "roles: {knowledge: retrieve_documents}\n";
    let gates = "gates:\n  - {id: forced, metric: forced_retrieval_rate, target: '= 100%', kind: point}\n  \
                 - {id: called, metric: mandatory_call_rate(knowledge), target: '= 100%', kind: point}\n  \
                 - {id: first, metric: first_attempt_rate(knowledge), target: '= 100%', kind: point}\n  \
                 - {id: given, metric: citation_provenance, target: '= 100%', kind: point}\n";
    let desk = Desk::set(Kind::Silent, "", &format!("{lines}{gates}"));
    let outcome = desk.run("live");
    assert!(!outcome.stdout.contains("FAIL"), "{}", outcome.stdout);
    let run = desk.project.latest("run.json");
    for id in ["forced", "called", "first", "given"] {
        let row = run["gates"].as_array().expect("rows").iter().find(|row| row["id"] == id).expect(id);
        assert_eq!(row["verdict"], "NOT_MEASURED", "{row}");
        let why =
            if id == "given" { "by which names" } else { "no later message shows a result of retrieve_documents" };
        assert!(row.to_string().contains(why), "{row}");
    }
    // What a case expects of it cannot be told either.
    for expected in
        ["cites: [manual]}, sources: {internal: true", "contains: [helmet]}, calls: [{superset: [retrieve_documents]}]"]
    {
        let desk = Desk::set(Kind::Silent, "", lines);
        let close = if expected.contains("sources") { "}" } else { "" };
        desk.project.edit("desk.yaml", "answer: {contains: [helmet]}", &format!("answer: {{{expected}{close}"));
        let outcome = desk.run("live");
        outcome.expect_code(3);
        assert!(outcome.stdout.contains("not measured") && !outcome.stdout.contains("FAIL"), "{}", outcome.stdout);
    }
    // A call is a call, whatever came of it.
    let never = Desk::set(Kind::Silent, "", lines);
    never.project.edit("desk.yaml", "answer: {contains: [helmet]}", "calls: [{never: retrieve_documents}]");
    never.run("live").expect_code(1);
}

#[test]
fn a_tool_that_was_offered_and_not_called_did_not_run() {
    let stage = Stage::set();
    let _agent = stage.agent(ServiceSettings::default(), "");
    let declared = "services: {shelf: {http: 'http://127.0.0.1:9', optional: true}}\ncases:";
    stage.project.edit("agent.yaml", "cases:", declared);
    stage.run(&["--mode", "record", "--only", "warranty"]);
    let replayed = stage.run(&["--only", "warranty"]);
    let told = "a replay answers for model, search service and declared services (shelf) alone; beside that, the agent's own \
                tools ran for real, except those of recorded MCP servers: final_answer, search_docs. Each turn";
    assert!(plain(&replayed.stderr).contains(told), "{}", replayed.stderr);
}

#[test]
fn each_turn_says_in_which_mode_it_runs_and_the_first_replay_names_the_tools_that_act() {
    let lines = "roles: {knowledge: retrieve_documents}\n";
    let desk = Desk::set(Kind::TwoStage, "", lines);
    desk.run("live").expect_code(0);
    assert_eq!(desk.modes(), ["live"]);
    let recorded = desk.run("record");
    assert_eq!(desk.modes(), ["record", "replay"], "what was recorded is replayed at once");
    let first = desk.run("replay");
    assert_eq!(desk.modes(), ["replay"]);
    let told = "the agent's own tools ran for real, except those of recorded MCP servers: retrieve_documents";
    assert!(
        plain(&first.stderr).contains(told) && plain(&first.stderr).contains("x-ragcheck-mode: replay"),
        "{}",
        first.stderr
    );
    for other in [recorded, desk.run("replay")] {
        assert!(!plain(&other.stderr).contains(told), "{}", other.stderr);
    }
}
