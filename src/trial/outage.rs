//! Outages: a turn that a service ended from outside says nothing about the agent, so its trial is in ERROR.
//!
//! What the flow handled is judged. A fault that the simulator declares is part of the case, and is judged as well:
//! its responses say so in a header, and recordings made before that header was written say that the simulator
//! answered.

use super::TrialRunner;
use super::services::providers;
use crate::flow;
use crate::plan::{PlannedTrial, VariantSettings};
use crate::trace::{
    Attempt, FlowSearch, Reply, Role, ToolCalled, Trace, TrialEnd, TrialError, TrialErrorKind, TurnOutcome, What,
};
use crate::transport::Service;
use std::collections::BTreeMap;

/// Who answered, by service, as a recording's header says it; empty for a live trial.
pub(super) type Origin = BTreeMap<String, String>;

/// As a recording's header names the simulator.
const SIMULATOR: &str = "simulator";

/// A call of a service that failed for a reason that is not the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outage {
    /// The service.
    pub(super) service: Service,
    /// What failed, with the HTTP status: `authentication failed (HTTP 401)`.
    pub(super) what: String,
    /// What to do about it.
    remedy: &'static str,
    /// The service's words, where they are known.
    words: String,
    set_up: bool,
}

impl TrialRunner {
    /// The trace in ERROR when an outage ended a turn, with a note on each that the flow handled; `origin` is who answered,
    /// for a replay.
    pub(super) fn with_outage(&self, trial: &PlannedTrial, mut trace: Trace, origin: &Origin) -> Trace {
        if trace.end != TrialEnd::Completed {
            return trace;
        }
        let host = |outage: &Outage| {
            let host = self.declared(trial).and_then(|declared| self.host(declared, outage.service));
            host.unwrap_or_else(|| "an unknown host".to_owned())
        };
        if let Some(outage) = ended_by(&trace, origin) {
            let host = host(&outage);
            trace.end = TrialEnd::Error(outage.error(&host));
            return trace;
        }
        let handled: Vec<Outage> =
            trace.events.iter().filter_map(|event| outage(&trace, &event.what, origin)).collect();
        for outage in handled {
            let (service, what) = (outage.service.as_str(), &outage.what);
            let note = format!(
                "the service `{service}` had an outage that the agent went on after: {what} from {}",
                host(&outage)
            );
            if !trace.notes.contains(&note) {
                trace.notes.push(note);
            }
        }
        trace
    }

    fn host(&self, declared: &VariantSettings, service: Service) -> Option<String> {
        let project = &self.loaded.project;
        let base_url = match service {
            Service::ManagedRetrieval => {
                &project.managed_retrieval.get(&declared.managed_retrieval.as_ref()?.name)?.base_url
            }
            _ => &project.providers.get(*providers(declared).get(&service)?)?.base_url,
        };
        Some(host_of(base_url).to_owned())
    }
}

impl Outage {
    /// Whether the service was never reached, or refused the key or the account.
    pub(super) fn is_set_up(&self) -> bool {
        self.set_up
    }

    fn error(self, host: &str) -> TrialError {
        let cause = format!("{} from {host}", self.what);
        let message = if self.words.is_empty() { cause.clone() } else { format!("{cause}: {}", self.words) };
        let detail =
            vec![self.remedy.to_owned(), "the trial says nothing about the agent and stays planned".to_owned()];
        TrialError { kind: TrialErrorKind::Provider, message, cause, detail }
    }
}

/// Host and port of a base URL, without what may be secret in it.
fn host_of(base_url: &str) -> &str {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The outage that ended a turn of a trial: the turn failed, and the last thing that it asked a service was answered
/// by an outage. A turn that ran out of its own time failed by itself, unless what it waited for was refused already.
fn ended_by(trace: &Trace, origin: &Origin) -> Option<Outage> {
    let mut last: BTreeMap<(u32, u32), Option<Outage>> = BTreeMap::new();
    for event in &trace.events {
        let turn = (event.conversation, event.turn);
        match &event.what {
            What::ModelCalled(_) => {
                last.insert(turn, outage(trace, &event.what, origin));
            }
            What::ToolCalled(ToolCalled { attempts, .. }) | What::Searched(FlowSearch { attempts, .. })
                if !attempts.is_empty() =>
            {
                last.insert(turn, outage(trace, &event.what, origin));
            }
            What::TurnEnded(ended) if matches!(ended.outcome, TurnOutcome::Failed { .. }) => {
                if let Some(found) = last.remove(&turn).flatten() {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

/// Every call of a service that an outage ended, whatever the flow made of it.
pub(super) fn outages(trace: &Trace) -> impl Iterator<Item = Outage> + '_ {
    trace.events.iter().filter_map(|event| outage(trace, &event.what, &Origin::new()))
}

/// The service that a tool asks.
fn service_of(trace: &Trace, tool: &str) -> Service {
    let managed = flow::by_name(&trace.lane.flow).is_some_and(|flow| flow.description().managed_retrieval);
    match trace.role(tool) {
        Role::Knowledge if managed => Service::ManagedRetrieval,
        Role::Knowledge => Service::Knowledge,
        _ => Service::Search,
    }
}

/// Whether the simulator answered for a service; of a knowledge base, that may be its server or its embeddings.
fn is_simulated(service: Service, origin: &Origin) -> bool {
    let by = |service: Service| origin.get(service.as_str()).is_some_and(|who| who == SIMULATOR);
    by(service) || (service == Service::Knowledge && by(Service::Embeddings))
}

fn outage(trace: &Trace, what: &What, origin: &Origin) -> Option<Outage> {
    let (service, attempts, words) = match what {
        What::ModelCalled(called) => match &called.reply {
            Reply::Failure { message, .. } => (Service::Model, &called.attempts, message.clone()),
            Reply::Completion(_) => return None,
        },
        What::ToolCalled(called) => (service_of(trace, &called.tool), &called.attempts, String::new()),
        What::Searched(search) => (Service::Knowledge, &search.attempts, String::new()),
        _ => return None,
    };
    let simulated = is_simulated(service, origin);
    let last = attempts.last().filter(|last| !last.declared_fault && !simulated)?;
    let (what, remedy) = told(last)?;
    let what = last.status.map_or_else(|| what.to_owned(), |status| format!("{what} (HTTP {status})"));
    let set_up = last.cause.as_deref().is_some_and(|cause| matches!(cause, "connection" | "auth" | "quota"));
    Some(Outage { service, what, remedy, words, set_up })
}

/// What an attempt that failed from outside is called, and what to do; `None` where it worked, or where the request's
/// content is the reason.
fn told(attempt: &Attempt) -> Option<(&'static str, &'static str)> {
    let cause = attempt.cause.as_deref()?;
    Some(match (cause, attempt.status) {
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
    use crate::trace::ToolOutcome;

    fn attempt(cause: &str, status: Option<u16>) -> Attempt {
        Attempt { status, cause: Some(cause.into()), took_us: 1, wait_us: None, declared_fault: false }
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
        ] {
            assert!(told(&attempt(cause, status)).is_some(), "{cause} {status:?}");
        }
        for (cause, status) in [("bad_request", Some(400)), ("context_length", Some(400)), ("bad_request", None)] {
            assert_eq!(told(&attempt(cause, status)), None, "{cause} {status:?}");
        }
    }

    #[test]
    fn a_search_of_the_flows_own_that_its_server_refused_is_an_outage_of_the_knowledge_base() {
        let trace = story(&plan("[{case: a, ask: q}]", "[]", 1), 0).turn("q").done();
        let outcome = ToolOutcome::Failed { message: "503".into(), retryable: true };
        let attempts = vec![attempt("server_error", Some(503))];
        let search = What::Searched(FlowSearch { query: "q".into(), outcome, took_us: 1, attempts });
        let found = outage(&trace, &search, &Origin::new()).expect("an outage");
        assert_eq!((found.service, found.what.as_str()), (Service::Knowledge, "the service failed (HTTP 503)"));
    }

    #[test]
    fn a_host_is_told_without_user_path_and_query() {
        assert_eq!(host_of("https://me:secret@api.example:8443/v1?key=x"), "api.example:8443");
        assert_eq!(host_of("http://127.0.0.1:8091"), "127.0.0.1:8091");
    }
}
