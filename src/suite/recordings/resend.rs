//! Sends recorded requests again, as stored, to compare today's answers with the recorded ones.

use crate::cassette::StoredRequest;
use crate::plan::{Plan, PlannedTrial};
use crate::provider::wire::framing::Framing;
use crate::provider::{ended_by, wire};
use crate::transport::{HttpRequest, HttpResponse, Service};
use crate::trial::{Opened, SetupError, model_of, transport};
use futures_util::StreamExt;
use serde_json::Value;
use std::io;

/// One recorded request of a trial.
#[derive(Debug, Clone)]
pub(super) struct Resend {
    /// Index of the trial in the plan.
    pub trial: usize,
    /// Service name in the cassette.
    pub service: String,
    /// Name of the matching profile.
    pub profile: String,
    pub request: StoredRequest,
}

/// Why a recorded request got no answer today; error texts of services are redacted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResendError {
    /// The plan has no such trial.
    #[error("the plan has no such trial")]
    Trial,
    /// The profile is not a dialect.
    #[error("its profile, `{0}`, is not a dialect that can be sent")]
    Profile(String),
    /// The service is neither a model nor a search service.
    #[error("`{0}` is not a service of a scenario")]
    Service(String),
    /// The services do not use this HTTP method.
    #[error("it is a {0} request")]
    Method(String),
    /// The services of the trial cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// No answer arrived.
    #[error("{0}")]
    NoAnswer(String),
    /// The answer is an error response.
    #[error("answered {status}: {text}")]
    Refused { status: u16, text: String },
}

/// Sends all of `requests`, `jobs` at a time. The result of each request is at its index in the list.
///
/// # Errors
/// If the runtime cannot be started.
pub(super) fn send_again(
    opened: &Opened,
    plan: &Plan,
    requests: &[Resend],
    jobs: usize,
) -> io::Result<Vec<Result<HttpResponse, ResendError>>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        let sent = futures_util::stream::iter(requests).map(|request| send(opened, plan, request));
        sent.buffered(jobs.max(1)).collect().await
    }))
}

/// Sends a recorded request to the provider that its trial uses today.
async fn send(opened: &Opened, plan: &Plan, again: &Resend) -> Result<HttpResponse, ResendError> {
    let trial = plan.trials.get(again.trial).ok_or(ResendError::Trial)?;
    let dialect = wire::by_name(&again.profile).ok_or_else(|| ResendError::Profile(again.profile.clone()))?;
    let service = [Service::Model, Service::Search].into_iter().find(|one| one.as_str() == again.service);
    let service = service.ok_or_else(|| ResendError::Service(again.service.clone()))?;
    if again.request.method != "POST" {
        return Err(ResendError::Method(again.request.method.clone()));
    }
    let transport = transport(opened.trial(plan, trial)).ok_or(ResendError::Trial)??;
    let streamed = again.request.body.get("stream") == Some(&Value::Bool(true))
        || again.request.path.contains(":streamGenerateContent");
    let (path, body) = (again.request.path.as_str(), again.request.body.clone());
    let request = HttpRequest::new(service, dialect.profile, "POST", path, body);
    let request = HttpRequest { stream: streamed.then(|| ended_by(dialect)), ..request };
    let redacted = |text: &str| opened.redactor().redact(text).into_owned();
    let response = transport.send(request).await;
    let response = response.map_err(|why| ResendError::NoAnswer(redacted(&why.to_string())))?;
    if response.status >= 400 {
        let text = redacted(&String::from_utf8_lossy(&response.body));
        return Err(ResendError::Refused { status: response.status, text });
    }
    Ok(response)
}

/// Provider and model that a trial's service uses today, as named in prices.
pub(super) fn model_today(opened: &Opened, trial: &PlannedTrial, service: &str) -> String {
    let service = if service == Service::Search.as_str() { Service::Search } else { Service::Model };
    model_of(opened, trial, service).unwrap_or_else(|| "nobody".to_owned())
}

/// Documents of an answer: one, or the events of its stream; `None` if it is neither.
pub(super) fn documents(profile: &str, headers: &[(String, String)], body: &[u8]) -> Option<Vec<Value>> {
    let framing = Framing::of(profile);
    if !framing.is_stream(headers, body) {
        return serde_json::from_slice(body).ok().map(|document| vec![document]);
    }
    let events = framing.read(body).ok()?;
    let data = events.iter().filter(|event| event.data.trim() != "[DONE]");
    data.map(|event| serde_json::from_str(&event.data).ok()).collect()
}
