//! Service outages. A service failure says nothing about the agent, so the trial ends in ERROR, whether or not the
//! agent handled it.
//!
//! A trial is still judged if the service answered later in the same turn, if the scenario declares the service
//! `optional`, or if the agent or the turn limit cut the call off. Faults of the simulator are part of the case and
//! judged as well: its responses carry a header, and in recordings made before that header existed the simulator is the
//! origin. docs/reference/outages.md lists which failure of which provider counts.

use super::opened::{Opened, Trial};
use super::services::providers;
use crate::flow;
use crate::plan::PlannedTrial;
use crate::platform::distinct::add_distinct;
use crate::settings::OptionalService;
use crate::trace::{Attempt, Reply, Role, Trace, TrialEnd, TrialError, TrialErrorKind, What};
use crate::transport::Service;
use std::collections::{BTreeMap, BTreeSet};

/// Origin of responses by service, from a recording's header; empty for a live trial.
pub(super) type Origin = BTreeMap<String, String>;

/// Name of the simulator in a recording's header.
const SIMULATOR: &str = "simulator";

/// A failed service call that the agent did not cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outage {
    pub(super) service: Service,
    /// The failure, with the HTTP status: `authentication failed (HTTP 401)`.
    pub(super) what: String,
    /// What to do about it.
    remedy: &'static str,
    /// Error text of the service, if known.
    words: String,
    status: Option<u16>,
    cause: String,
}

/// Outages of a trial in trace order, each service of each turn once.
#[derive(Debug, Default, PartialEq, Eq)]
struct FoundOutages {
    /// Outages after which the service did not answer again in the turn.
    lasting: Vec<Outage>,
    /// Outages after which the service answered in the same turn.
    passed: Vec<Outage>,
}

/// Sets the trace to ERROR if a service had a lasting outage, and adds a note for each outage that does not prevent
/// judging. `origin` says who answered, in replays.
pub(super) fn with_outage(trial: Trial<'_>, mut trace: Trace, origin: &Origin) -> Trace {
    if trace.end != TrialEnd::Completed {
        return trace;
    }
    let (opened, planned) = (trial.opened, trial.planned);
    let host =
        |outage: &Outage| host_name(opened, planned, outage.service).unwrap_or_else(|| "an unknown host".to_owned());
    let FoundOutages { lasting, passed } = found(&trace, origin);
    let (judged, ending): (Vec<Outage>, Vec<Outage>) =
        lasting.into_iter().partition(|outage| is_optional(trial, outage.service.as_str()));
    if let Some((first, others)) = ending.split_first() {
        let others = others.iter().filter(|other| other.service != first.service);
        let others =
            others.map(|other| format!("also: `{}`: {} from {}", other.service.as_str(), other.what, host(other)));
        let others: Vec<String> = others.collect::<BTreeSet<_>>().into_iter().collect();
        trace.end = TrialEnd::Error(first.error(&host(first), others));
        return trace;
    }
    let after = passed.iter().map(|outage| (outage, "had an outage and answered later in the turn"));
    let without = judged.iter().map(|outage| (outage, "is optional, and the trial is judged with its outage"));
    let note = |(outage, how): (&Outage, &str)| {
        format!("the service `{}` {how}: {} from {}", outage.service.as_str(), outage.what, host(outage))
    };
    let refused = refused(&trace).into_iter().map(|(service, status)| {
        let host = host_name(opened, planned, service).unwrap_or_else(|| "an unknown host".to_owned());
        let service = service.as_str();
        format!("the service `{service}` refused a request of the agent: HTTP {status} from {host}; is its key right?")
    });
    let notes: Vec<String> = after.chain(without).map(note).chain(refused).collect();
    add_distinct(&mut trace.notes, notes);
    trace
}

/// Outages that end a trial: of services that are not optional, each with its failure.
pub(super) fn ending(trial: Trial<'_>, trace: &Trace, origin: &Origin) -> Vec<(Service, String)> {
    let lasting = found(trace, origin).lasting.into_iter();
    lasting
        .filter(|outage| !is_optional(trial, outage.service.as_str()))
        .map(|outage| (outage.service, outage.what))
        .collect()
}

/// Whether the scenario declares a service optional, by its name in traces.
pub(super) fn is_optional(trial: Trial<'_>, service: &str) -> bool {
    let (opened, planned) = (trial.opened, trial.planned);
    let named = |one: &OptionalService| one.as_str() == service;
    opened.declared(planned).is_some_and(|declared| declared.optional.iter().any(named))
        || opened.agent(planned).is_some_and(|agent| agent.services.is_optional(service))
}

/// Message for a managed retrieval service that refused the key: no other trial of it can run.
pub(super) fn refused_by_managed(opened: &Opened, planned: &PlannedTrial, trace: &Trace) -> Option<String> {
    let found = found(trace, &Origin::new());
    let mut outages = found.lasting.iter();
    let refused = outages.find(|outage| outage.service == Service::ManagedRetrieval && outage.is_refused_key())?;
    Some(refused_key_message(refused.status?, &host_name(opened, planned, refused.service)?))
}

fn host_name(opened: &Opened, planned: &PlannedTrial, service: Service) -> Option<String> {
    let declared = opened.declared(planned)?;
    let asked = || Some(host_of(opened.flow(planned)?.retrieval.base_url(service)?).to_owned());
    let project = &opened.loaded.project;
    if let Some(agent) = opened.agent(planned) {
        return Some(host_of(agent.services.base_url(service.as_str(), project)?).to_owned());
    }
    let provider = || Some(project.providers.get(*providers(declared).get(&service)?)?.base_url.as_str());
    asked().or_else(|| Some(host_of(provider()?).to_owned()))
}

/// Why a run ends after a managed retrieval service refused the key.
pub(super) fn refused_key_message(status: u16, host: &str) -> String {
    format!(
        "the managed retrieval service at {host} refuses the key (HTTP {status}): set a valid one in the variable that its \
         `token` names"
    )
}

impl Outage {
    fn is_refused_key(&self) -> bool {
        self.cause == "auth" && matches!(self.status, Some(401 | 403))
    }

    fn error(&self, host: &str, others: Vec<String>) -> TrialError {
        let cause = format!("{} from {host}", self.what);
        let message = if self.words.is_empty() { cause.clone() } else { format!("{cause}: {}", self.words) };
        let mut detail = vec![self.remedy.to_owned()];
        detail.extend(others);
        detail.push("the trial says nothing about the agent and stays planned".to_owned());
        TrialError { kind: TrialErrorKind::Provider, message, cause, detail }
    }
}

/// Host and port of a base URL, without credentials, path or query.
fn host_of(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Outages of a trial: the last attempt on each service in each turn decides.
fn found(trace: &Trace, origin: &Origin) -> FoundOutages {
    let mut found = FoundOutages::default();
    let mut open: BTreeMap<(u32, u32, Service), Outage> = BTreeMap::new();
    for event in &trace.events {
        for (service, attempt, words) in asked(trace, &event.what) {
            let place = (event.conversation, event.turn, service);
            if let Some(outage) = outage(service, attempt, words, origin) {
                open.entry(place).or_insert(outage);
            } else if attempt.cause.is_none()
                && let Some(outage) = open.remove(&place)
            {
                found.passed.push(outage);
            }
        }
    }
    found.lasting.extend(open.into_values());
    found
}

/// Declared services that refused a request of the agent for its key (401) and answered none later in its turn, with the status.
fn refused(trace: &Trace) -> BTreeMap<Service, u16> {
    let mut open: BTreeMap<(u32, u32, Service), u16> = BTreeMap::new();
    for event in &trace.events {
        for (service, attempt, _) in asked(trace, &event.what) {
            let place = (event.conversation, event.turn, service);
            match attempt.status.filter(|_| matches!(service, Service::Declared(_))) {
                Some(status @ 401) if !attempt.declared_fault => drop(open.insert(place, status)),
                Some(200..=299) => drop(open.remove(&place)),
                _ => {}
            }
        }
    }
    open.into_iter().map(|((.., service), status)| (service, status)).collect()
}

/// Services that an event called, each with its last attempt and the error text.
fn asked<'t>(trace: &Trace, what: &'t What) -> Vec<(Service, &'t Attempt, &'t str)> {
    match what {
        What::ModelCalled(called) => {
            let words = match &called.reply {
                Reply::Failure { message, .. } => message.as_str(),
                Reply::Completion(_) => "",
            };
            let service = called.service.as_deref().map_or(Service::Model, Service::declared);
            called.attempts.last().map(|last| (service, last, words)).into_iter().collect()
        }
        What::ToolCalled(called) => by_service(service_of(trace, &called.tool), &called.attempts),
        What::Searched(search) => by_service(Service::Knowledge, &search.attempts),
        What::Requested(one) => by_service(Service::declared(&one.service), &one.attempts),
        _ => Vec::new(),
    }
}

/// Last attempts of a search by service: `own`, embeddings, and declared services.
fn by_service(own: Service, attempts: &[Attempt]) -> Vec<(Service, &Attempt, &str)> {
    let service = |attempt: &Attempt| match attempt.service.as_deref() {
        None => own,
        Some(name) if name == Service::Embeddings.as_str() => Service::Embeddings,
        Some(name) => Service::declared(name),
    };
    let last: BTreeMap<Service, &Attempt> = attempts.iter().map(|attempt| (service(attempt), attempt)).collect();
    last.into_iter().map(|(service, last)| (service, last, "")).collect()
}

/// Service that a tool calls.
fn service_of(trace: &Trace, tool: &str) -> Service {
    let managed = flow::by_name(&trace.lane.flow).is_some_and(|flow| flow.description().managed_retrieval);
    match trace.role(tool) {
        Role::Knowledge if managed => Service::ManagedRetrieval,
        Role::Knowledge => Service::Knowledge,
        _ => Service::Search,
    }
}

/// Whether the simulator answered for a service; for a knowledge base, this includes its server and its embeddings.
fn is_simulated(service: Service, origin: &Origin) -> bool {
    let by = |service: Service| origin.get(service.as_str()).is_some_and(|who| who == SIMULATOR);
    by(service) || (service == Service::Knowledge && by(Service::Embeddings))
}

fn outage(service: Service, last: &Attempt, words: &str, origin: &Origin) -> Option<Outage> {
    if last.declared_fault || is_simulated(service, origin) {
        return None;
    }
    let (what, remedy) = external_cause(last)?;
    let what = last.status.map_or_else(|| what.to_owned(), |status| format!("{what} (HTTP {status})"));
    let cause = last.cause.clone().unwrap_or_default();
    Some(Outage { service, what, remedy, words: words.to_owned(), status: last.status, cause })
}

/// Label and remedy for an attempt that failed for an external reason; `None` if it succeeded or the request's content
/// is the cause.
pub(super) fn external_cause(attempt: &Attempt) -> Option<(&'static str, &'static str)> {
    let cause = attempt.cause.as_deref()?;
    Some(match (cause, attempt.status) {
        ("auth", Some(400)) => (
            "the key, the account or its country is refused",
            "set a valid key, and enable billing for its project where the provider's free tier is not offered",
        ),
        ("auth", _) => (
            "authentication failed",
            "set a valid key in the variable that the provider's `key` names, and see that it may use this model",
        ),
        ("quota", _) => ("the account's budget is used up", "pay, or raise the account's limit at the provider"),
        ("rate_limit", _) => (
            "too many requests",
            "use fewer --jobs, or declare the provider's limits (`concurrency`, `requests_per_minute`)",
        ),
        ("overloaded", _) => ("the service is overloaded", "run again later, with fewer --jobs"),
        ("server_error", _) => ("the service failed", "run again when the service works"),
        ("connection", _) => (
            "no connection, or a broken one",
            "see that the service runs, and that `base_url`, certificate and network are right",
        ),
        ("timeout", _) => ("no answer in time", "run again when the service answers, or raise `limits.request`"),
        ("html_page", _) => (
            "a page for people instead of an answer",
            "see that `base_url` is the API's, and that no login page or proxy stands before it",
        ),
        ("bad_request", Some(404 | 405 | 410 | 451)) => {
            ("not found, or not available", "see that `base_url` and the model's name are right")
        }
        ("no_model", _) => ("no such model", "see that the model's name is right: the provider may have retired it"),
        ("bad_request", Some(409 | 425)) => ("the service was not ready", "run again when the service works"),
        ("bad_request" | "malformed", Some(300..=399 | 407)) => {
            ("a redirect or a proxy's refusal", "see that `base_url` is the API's own address")
        }
        ("malformed", _) => (
            "an answer that cannot be read",
            "see that `base_url` and `dialect` are right, and run again when the service answers whole",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};
    use crate::trace::{FlowSearch, ToolOutcome};

    fn attempt(cause: &str, status: Option<u16>) -> Attempt {
        Attempt {
            service: None,
            status,
            cause: Some(cause.into()),
            took_us: 1,
            wait_us: None,
            declared_fault: false,
            held: None,
            vectors: None,
        }
    }

    #[test]
    fn what_comes_from_outside_is_told_from_what_the_request_caused() {
        for (cause, status) in [
            ("auth", Some(401)),
            ("auth", Some(403)),
            ("bad_request", Some(404)),
            ("rate_limit", Some(429)),
            ("quota", Some(402)),
            ("server_error", Some(500)),
            ("overloaded", Some(529)),
            ("connection", None),
            ("html_page", Some(200)),
            ("timeout", None),
            ("timeout", Some(408)),
            ("bad_request", Some(425)),
            ("malformed", Some(200)),
            ("malformed", None),
            ("auth", Some(400)),
            ("server_error", Some(424)),
            ("overloaded", Some(498)),
            ("no_model", Some(400)),
        ] {
            assert!(external_cause(&attempt(cause, status)).is_some(), "{cause} {status:?}");
        }
        for (cause, status) in [
            ("bad_request", Some(400)),
            ("bad_request", Some(413)),
            ("bad_request", Some(422)),
            ("context_length", Some(400)),
            ("bad_request", None),
        ] {
            assert_eq!(external_cause(&attempt(cause, status)), None, "{cause} {status:?}");
        }
    }

    #[test]
    fn a_search_of_the_flows_own_that_its_server_refused_is_an_outage_of_the_knowledge_base() {
        let trace = story(&plan("[{case: a, ask: q}]", "[]", 1), 0).turn("q").done();
        let outcome = ToolOutcome::Failed { message: "503".into(), retryable: true };
        let attempts = vec![attempt("server_error", Some(503))];
        let search = What::Searched(FlowSearch { query: "q".into(), outcome, took_us: 1, attempts });
        let (service, last, words) = asked(&trace, &search)[0];
        let found = outage(service, last, words, &Origin::new()).expect("an outage");
        assert_eq!((found.service, found.what.as_str()), (Service::Knowledge, "the service failed (HTTP 503)"));
    }

    #[test]
    fn a_host_is_told_without_user_path_and_query() {
        assert_eq!(host_of("https://me:secret@api.example:8443/v1?key=x"), "api.example:8443");
        assert_eq!(host_of("http://127.0.0.1:8091"), "127.0.0.1:8091");
    }
}
