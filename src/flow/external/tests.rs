//! Turns inferred from the exchanges of an agent, and the requests sent to it.

mod alone;
mod changed;
mod in_text;
mod late;
mod replies;
mod results;
mod spans;
mod two_stages;
mod vectors;

use super::target::Reply;
use super::trace_builder::TraceBuilder;
use super::*;
use crate::flow::digest;
use crate::platform::clock::{Clock, VirtualClock, block_on};
use crate::provider::chat::{Message, Role};
use crate::provider::mcp;
use crate::provider::wire::{Dialect, anthropic_messages, openai_chat, openai_responses, perplexity_agent};
use crate::trace::{Account, ToolOutcome, ToolResult, TurnOutcome, What};
use crate::transport::{HttpRequest, HttpResponse, Passed, Service, Tap, Transport};
use serde_json::{Value, json};
use std::sync::Arc;

struct Plain;

impl Words for Plain {
    fn text(&self, text: &str) -> String {
        text.to_owned()
    }

    fn body(&self, body: &Value) -> Value {
        body.clone()
    }
}

fn roles() -> Roles {
    use crate::trace::Role::{External, Index, Knowledge, Respond};
    let roles = [("look", Knowledge), ("web", External), ("keep", Index), ("say", Respond)];
    roles.map(|(tool, role)| (tool.to_owned(), role)).into()
}

fn passed(service: Service, dialect: &Dialect, asked: Value, status: u16, answered: &Value) -> Passed {
    let request = HttpRequest::new(service, dialect.profile, "POST", "", asked);
    let (body, took) = (bytes::Bytes::from(answered.to_string()), Duration::from_millis(10));
    Passed {
        request,
        result: Ok(HttpResponse { status, headers: Vec::new(), body, took, chunks: Vec::new() }),
        at: None,
    }
}

fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": tool, "arguments": arguments.to_string()}}]})
}

/// A model's exchange: the conversation so far, and the message that it adds.
fn model(conversation: &mut Vec<Value>, said: Value) -> Passed {
    let finish = if said.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    let answer = json!({"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": said}]});
    let asked = json!({"model": "m", "messages": conversation});
    conversation.push(said);
    passed(Service::Model, openai_chat::DIALECT, asked, 200, &answer)
}

fn result(conversation: &mut Vec<Value>, id: &str, content: &Value) {
    conversation.push(json!({"role": "tool", "tool_call_id": id, "content": content.to_string()}));
}

fn search(question: &str, answer: &str) -> Passed {
    let answer = json!({"id": "r", "object": "response", "model": "sonar", "status": "completed", "output": [
        {"type": "search_results", "results": [{"id": 1, "title": "T", "url": "https://a", "snippet": "s"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}]});
    passed(Service::Search, perplexity_agent::DIALECT, json!({"model": "sonar", "input": question}), 200, &answer)
}

/// The events of one turn that ends with an answer.
fn told(exchanges: Vec<Passed>) -> (Vec<What>, TurnOutcome) {
    told_with(exchanges, &json!({"answer": "because"}), None)
}

/// The same for a turn with that reply, whose sources are at that pointer.
fn told_with(exchanges: Vec<Passed>, body: &Value, sources: Option<&str>) -> (Vec<What>, TurnOutcome) {
    let known = [(Role::User, "why?".to_owned())];
    let roles = roles();
    let mut builder = TraceBuilder::new(&roles, &Plain, &known, 0).citing(sources);
    assert!(builder.hear(exchanges).is_none());
    let outcome = builder.end(Reply::Answer { text: "because".into(), body: body.clone() }).expect("a reply");
    (builder.events.into_iter().map(|(_, what)| what).collect(), outcome)
}

fn calls(events: &[What]) -> Vec<&crate::trace::ToolCalled> {
    events.iter().filter_map(|what| if let What::ToolCalled(call) = what { Some(call) } else { None }).collect()
}

#[test]
fn a_whole_turn_is_told_by_the_agents_own_names_with_its_answer_and_sources() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &json!({"query": "cause"})))];
    result(&mut conversation, "1", &json!({"chunks": [{"id": "a#1", "text": "so"}]}));
    exchanges.push(model(&mut conversation, call("2", "web", &json!({"query": "cause now"}))));
    exchanges.push(search("cause now", "Today's cause [1]."));
    result(&mut conversation, "2", &json!({"result_id": "w-7", "answer": "Today's cause [1]."}));
    exchanges.push(model(&mut conversation, call("3", "keep", &json!({"keywords": ["Cause"], "result_id": "w-7"}))));
    result(&mut conversation, "3", &json!({"ok": true}));
    exchanges.push(model(
        &mut conversation,
        call("4", "say", &json!({"answer": "because", "sources": ["a#1", "https://a"]})),
    ));
    let (events, outcome) = told(exchanges);
    let made = calls(&events);
    let names: Vec<&str> = made.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(names, ["look", "web", "keep", "say"]);
    assert!(matches!(&made[0].outcome, ToolOutcome::Ok(ToolResult::Search(found)) if found.hits[0].id == "a#1"));
    let ToolOutcome::Ok(ToolResult::External(found)) = &made[1].outcome else { panic!("{:?}", made[1]) };
    assert_eq!((found.result.as_str(), found.citations[0].url.as_str()), ("w-7", "https://a"));
    assert_eq!((made[1].took_us, made[1].attempts.len()), (10_000, 1));
    assert!(
        matches!(&made[2].outcome, ToolOutcome::Ok(ToolResult::Indexed(passthrough)) if passthrough.result == "w-7")
    );
    let TurnOutcome::Answered(answer) = outcome else { panic!("no answer") };
    assert_eq!((answer.text.as_str(), answer.sources.len()), ("because", 2));
    assert!(answer.used_internal_kb && answer.used_external_kb);
    assert!(!events.iter().any(|what| matches!(what, What::FedBack(_) | What::Retried(_))), "{events:?}");
}

/// A call of an MCP server's tool, and its result.
fn mcp(tool: &str, arguments: &Value, result: &Value) -> Passed {
    let asked = json!({"method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result});
    let one = passed(Service::declared("tickets"), openai_chat::DIALECT, asked, 200, &answer);
    Passed { request: HttpRequest { profile: &mcp::MCP, ..one.request }, ..one }
}

#[test]
fn a_call_of_an_mcp_servers_tool_is_the_models_call_and_counts_once_whatever_name_a_framework_gives_it() {
    let text = |words: &str| json!({"content": [{"type": "text", "text": words}]});
    let failed = json!({"content": [{"type": "text", "text": "no such order"}], "isError": true});
    for offered in ["refund", "mcp__tickets__refund", "tickets.refund"] {
        let (mut conversation, order) = (vec![json!({"role": "user", "content": "why?"})], json!({"order": 7}));
        let mut exchanges = vec![model(&mut conversation, call("1", offered, &order))];
        exchanges.push(mcp("refund", &order, &failed));
        result(&mut conversation, "1", &json!("I could not do that."));
        exchanges.push(model(&mut conversation, call("2", offered, &order)));
        exchanges.push(mcp("refund", &order, &text("{\"refund\": 5}")));
        exchanges.push(mcp("audit", &json!({}), &text("noted")));
        let (events, _) = told(exchanges);
        let made = calls(&events);
        let names: Vec<&str> = made.iter().map(|call| call.tool.as_str()).collect();
        assert_eq!(names, [offered, "audit", offered], "{events:?}");
        assert!(matches!(&made[0].outcome, ToolOutcome::Failed { message, .. } if message == "no such order"));
        assert!(matches!(&made[1].outcome, ToolOutcome::Ok(ToolResult::Other(_))), "the agent's own: {:?}", made[1]);
        let refunded = ToolOutcome::Ok(ToolResult::other(json!({"refund": 5})));
        assert_eq!(made[2].outcome, refunded, "the model was not asked again, and the server answered");
        assert!(made.iter().all(|call| call.attempts.len() == 1 && call.took_us == 10_000));
    }
}

#[test]
fn passages_of_an_mcp_server_are_read_where_the_agent_shows_its_model_prose() {
    let (mut conversation, query) = (vec![json!({"role": "user", "content": "why?"})], json!({"query": "cause"}));
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &query))];
    exchanges.push(mcp(
        "look",
        &query,
        &json!({"content": [], "structuredContent": {"chunks": [{"id": "a#1", "text": "so"}]}}),
    ));
    result(&mut conversation, "1", &json!("It is so."));
    exchanges.push(model(&mut conversation, call("2", "say", &json!({"answer": "because"}))));
    let (events, _) = told(exchanges);
    let ToolOutcome::Ok(ToolResult::Search(found)) = &calls(&events)[0].outcome else { panic!("{events:?}") };
    assert_eq!(found.hits[0].id, "a#1");
}

#[test]
fn a_reminder_is_feedback_about_the_tool_that_is_still_due_and_only_after_a_slip() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, call("1", "look", &json!({"query": "cause"})))];
    result(&mut conversation, "1", &json!({"chunks": []}));
    conversation.push(json!({"role": "system", "content": "Now use say."}));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "Because."})));
    conversation.push(json!({"role": "system", "content": "First look, then say."}));
    exchanges.push(model(&mut conversation, call("2", "say", &json!({"answer": "because"}))));
    let (events, _) = told(exchanges);
    let fed: Vec<_> = events.iter().filter_map(|w| if let What::FedBack(fed) = w { Some(fed) } else { None }).collect();
    assert_eq!(fed.len(), 1, "what follows a call that worked is guidance");
    assert_eq!((fed[0].tool.as_str(), fed[0].cause.as_str()), ("say", "free_text"));
    let retried = events.iter().find_map(|w| if let What::Retried(retried) = w { Some(retried) } else { None });
    let retried = retried.expect("a retry");
    assert_eq!((retried.account, retried.recovered), (Account::Model, true));
}

#[test]
fn a_request_repeated_after_a_failure_is_one_call_with_two_attempts() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let busy = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}});
    let asked = json!({"model": "m", "messages": conversation});
    let failed = passed(Service::Model, openai_chat::DIALECT, asked, 429, &busy);
    let (events, _) = told(vec![failed, model(&mut conversation, call("1", "say", &json!({"answer": "because"})))]);
    let What::ModelCalled(called) = &events[0] else { panic!("{events:?}") };
    assert_eq!((called.attempts.len(), called.took_us), (2, 20_000));
    assert_eq!(called.attempts[0].cause.as_deref(), Some("rate_limit"));
    assert!(matches!(&events[1], What::Retried(one) if one.account == Account::Transport && one.recovered));
}

#[test]
fn searches_side_by_side_are_told_in_one_order_and_calls_without_a_result_say_so() {
    let story = |first: &str, second: &str| {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let both = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "web", "arguments": "{\"query\":\"a\"}"}},
            {"id": "2", "type": "function", "function": {"name": "web", "arguments": "{\"query\":\"b\"}"}},
            {"id": "3", "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
        told(vec![model(&mut conversation, both), search(first, first), search(second, second)]).0
    };
    assert_eq!(story("a", "b"), story("b", "a"));
    let events = story("a", "b");
    let made = calls(&events);
    assert!(matches!(&made[1].outcome, ToolOutcome::Ok(ToolResult::External(found)) if found.answer == "b"));
    assert!(made[2].outcome.is_unseen(), "{:?}", made[2]);
}

#[test]
fn a_request_for_the_list_of_models_is_no_completion() {
    let mut listed = passed(Service::Model, openai_chat::DIALECT, Value::Null, 200, &json!({"data": []}));
    listed.request.profile = &crate::provider::EXACT;
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let (events, _) = told(vec![listed, model(&mut conversation, json!({"role": "assistant", "content": "so"}))]);
    assert_eq!(events.iter().filter(|what| matches!(what, What::ModelCalled(_))).count(), 1, "{events:?}");
}

#[test]
fn earlier_words_are_found_however_the_agent_wraps_them() {
    let known =
        [(Role::User, "why?".to_owned()), (Role::Assistant, "because".to_owned()), (Role::User, "so?".to_owned())];
    let mut conversation = vec![json!({"role": "user", "content": "Guest: why?\nDesk: because\nGuest: so?"})];
    let exchange = model(&mut conversation, json!({"role": "assistant", "content": "Yes."}));
    let roles = roles();
    let mut builder = TraceBuilder::new(&roles, &Plain, &known, 3);
    builder.hear(vec![exchange]);
    assert_eq!(builder.completions, 4);
    let (_, What::ModelCalled(called)) = builder.events.remove(0) else { panic!("no completion") };
    let wanted: Vec<String> = known.iter().map(|(role, text)| digest(*role, text)).collect();
    assert_eq!(called.shown, wanted);
}

#[test]
fn a_turn_is_spelt_as_the_scenario_says_and_what_the_user_says_is_no_template() {
    let endpoint = Endpoint::parse("http://127.0.0.1:8100/chat?x=1").expect("an address");
    assert_eq!((endpoint.origin.as_str(), endpoint.path.as_str()), ("http://127.0.0.1:8100", "/chat?x=1"));
    assert_eq!(Endpoint::parse("http://host").map(|one| one.path).as_deref(), Some("/"));
    for wrong in ["host/chat", "ftp://host/", "http:///chat", "http://a b/"] {
        assert_eq!(Endpoint::parse(wrong), None, "{wrong}");
    }
    let send = json!({"q": "{message} ({variant}, {turn})", "h": "{history}", "n": 3, "kept": "{other}"});
    let target =
        Target { endpoint, send, answer: AnswerAt::Pointer("/a/0".into()), sources: None, headers: Vec::new() };
    let history = [Message::text(Role::User, "before")];
    let (message, conversation, tenant, variant, trial) = ("say {trial}", "c", None, "base", "t");
    let prompts = BTreeMap::from([("system".to_owned(), "Be brief.".to_owned())]);
    let fill = Fill { message, conversation, history: &history, tenant, variant, trial, turn: 2, prompts: &prompts };
    let body = target.request(&fill).body;
    assert_eq!(
        body,
        json!({"q": "say {trial} (base, 2)", "h": [{"role": "user", "content": "before"}], "n": 3, "kept": "{other}"})
            .into()
    );
    let of_ui = Target { send: json!({"messages": "{{ui_messages}}"}), ..target.clone() };
    let said = |id: &str, text: &str| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    let body = json!({"messages": [said("m1", "before"), said("m2", "say {trial}")]});
    assert_eq!(of_ui.request(&fill).body, body.into());
    let of_tenant = Target { send: json!({"tenant": "{tenant}", "who": "user of {tenant}"}), ..target.clone() };
    assert_eq!(of_tenant.request(&fill).body, json!({"tenant": null, "who": "user of "}).into());
    let of_north = Fill { tenant: Some("north"), ..fill };
    assert_eq!(of_tenant.request(&of_north).body, json!({"tenant": "north", "who": "user of north"}).into());
    let response = |status, body: &str| {
        let body = bytes::Bytes::from(body.to_owned());
        Ok(HttpResponse { status, headers: Vec::new(), body, took: Duration::ZERO, chunks: Vec::new() })
    };
    assert!(matches!(target.reply(response(200, r#"{"a":["yes"]}"#)), Reply::Answer { text, .. } if text == "yes"));
    assert!(matches!(target.reply(response(200, "{}")), Reply::Failed("answer_missing", ..)));
    assert!(
        matches!(target.reply(response(500, "oops")), Reply::Failed("agent_error", words, _) if words.contains("oops"))
    );
}

#[test]
fn an_answer_that_holds_the_words_of_an_earlier_one_is_shown_as_itself_alone() {
    let said = [(Role::User, "how much?"), (Role::Assistant, "It is 5."), (Role::User, "sure?")];
    let mut known: Vec<(Role, String)> = said.iter().map(|(role, text)| (*role, (*text).to_owned())).collect();
    known.extend([(Role::Assistant, "Yes. It is 5.".to_owned()), (Role::User, "why?".to_owned())]);
    let spoken = ["how much?", "It is 5.\n\nSources: a#1", "sure?", "Yes. It is 5.\n\nSources: a#1", "why?"];
    let mut conversation: Vec<Value> = spoken
        .iter()
        .zip(&known)
        .map(|(content, (role, _))| json!({"role": role.as_str(), "content": content}))
        .collect();
    let exchange = model(&mut conversation, json!({"role": "assistant", "content": "because"}));
    let roles = roles();
    let mut builder = TraceBuilder::new(&roles, &Plain, &known, 0);
    assert!(builder.hear(vec![exchange]).is_none());
    builder.end(Reply::Answer { text: "because".into(), body: Value::Null }).expect("a reply");
    let shown = builder.events.into_iter().find_map(|(_, what)| match what {
        What::ModelCalled(called) => Some(called.shown),
        _ => None,
    });
    let wanted: Vec<String> = known.iter().map(|(role, text)| digest(*role, text)).collect();
    assert_eq!(shown.expect("a completion"), wanted);
}

/// A request for the vector of a text, and what came of it.
fn vectors(text: &str, status: u16) -> Passed {
    let answer = if status == 200 { json!({"data": [{"index": 0, "embedding": "AAA="}]}) } else { json!({}) };
    let one = passed(Service::Embeddings, openai_chat::DIALECT, json!({"model": "e", "input": text}), status, &answer);
    Passed {
        request: HttpRequest { profile: &crate::provider::wire::embeddings_shapes::OPENAI.profile, ..one.request },
        ..one
    }
}

#[test]
fn requests_stand_where_they_were_sent_unless_the_time_of_one_is_unknown() {
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let first = model(&mut conversation, call("1", "look", &json!({"query": "cause"})));
    result(&mut conversation, "1", &json!({"chunks": [{"id": "a#1", "text": "so"}]}));
    let last = model(&mut conversation, json!({"role": "assistant", "content": "because"}));
    let exchanges = [(5, first), (20, vectors("a", 200)), (22, vectors("b", 200)), (40, last)];
    let sent = exchanges.map(|(ms, one)| Passed { at: Some(Duration::from_millis(ms)), ..one });
    let placed = |exchanges: Vec<Passed>| -> Vec<(u128, u64)> {
        let (known, roles) = ([(Role::User, "why?".to_owned())], roles());
        let mut builder = TraceBuilder::new(&roles, &Plain, &known, 0);
        assert!(builder.hear(exchanges).is_none());
        builder.end(Reply::Answer { text: "because".into(), body: json!({}) }).expect("a reply");
        let took = |what: &What| match what {
            What::ModelCalled(called) => called.took_us,
            What::ToolCalled(called) => called.took_us,
            other => panic!("{other:?}"),
        };
        builder.events.iter().map(|(at, what)| (at.as_millis(), took(what) / 1_000)).collect()
    };
    assert_eq!(placed(sent.to_vec()), [(5, 10), (20, 12), (40, 10)], "the two requests of the call overlap");
    let mut unknown = sent.to_vec();
    unknown[1].at = None;
    assert_eq!(placed(unknown), [(0, 10), (10, 20), (30, 10)]);
}

/// A service that takes its time.
struct Slow(Arc<VirtualClock>);

impl Transport for Slow {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let took = Duration::from_secs(1);
            self.0.sleep(took).await;
            Ok(HttpResponse { status: 200, headers: Vec::new(), body: bytes::Bytes::new(), took, chunks: Vec::new() })
        })
    }
}

struct Real;

impl Pace for Real {
    fn turn(&self, real: Duration, _exchanges: Duration) -> Duration {
        real
    }
}

fn settings() -> Settings {
    let endpoint = Endpoint::parse("http://127.0.0.1:1/chat").expect("an address");
    let answer = AnswerAt::Pointer("/answer".to_owned());
    let (headers, send) = (Vec::new(), Target::usual_body(&answer));
    Settings {
        target: Target { endpoint, headers, send, answer, sources: None },
        reset: None,
        roles: Roles::default(),
        turn: Duration::from_mins(1),
        prompts: BTreeMap::new(),
    }
}

fn session<'a>(settings: &'a Settings, clock: &Arc<VirtualClock>, tap: &Arc<Tap>, silence: Silence) -> Session<'a> {
    Session {
        settings,
        trial: "t",
        variant: "base",
        withhold_history: false,
        keep_replies: false,
        way: Arc::new(Slow(Arc::clone(clock))),
        probe: None,
        life: None,
        tap: Arc::clone(tap),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        silence,
        late_fails: false,
        trace: None,
        pace: &Real,
        words: &Plain,
        telemetry: None,
        chains: Chains::default(),
        tracing: super::Tracing::default(),
        held: BTreeMap::new(),
        events: Vec::new(),
        took: Duration::ZERO,
        completions: 0,
        offered: None,
        parameters: BTreeMap::new(),
    }
}

#[test]
fn after_a_reply_the_silence_is_awaited_only_where_a_request_was_in_progress_or_in_the_first_trial() {
    for (silence, busy, milliseconds) in [
        (Silence::IfBusy, false, 0),
        (Silence::IfBusy, true, 1200),
        (Silence::Always, false, 200),
        (Silence::Always, true, 1200),
        (Silence::Unchecked, false, 0),
        (Silence::Unchecked, true, 1000),
    ] {
        let clock = Arc::new(VirtualClock::at(jiff::Timestamp::UNIX_EPOCH));
        let tap = Arc::new(Tap::new(Arc::new(Slow(Arc::clone(&clock)))));
        let settings = settings();
        let session = session(&settings, &clock, &tap, silence);
        let request = || passed(Service::Model, openai_chat::DIALECT, json!({}), 200, &json!({})).request;
        let asked = async {
            if busy {
                tap.send(request()).await.expect("it began before the reply");
            }
        };
        let both = async { futures_util::join!(asked, session.settled()).1 };
        block_on(&clock, both).expect("no deadlock").expect("settled");
        assert_eq!(clock.now(), Duration::from_millis(milliseconds), "{silence:?}, busy: {busy}");
    }
}
