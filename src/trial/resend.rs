//! Recorded requests sent once more, as they are stored: for comparing today's answers with those recorded.

use super::TrialRunner;
use crate::cassette::StoredRequest;
use crate::plan::{Plan, PlannedTrial};
use crate::provider::{ended_by, wire};
use crate::transport::{HttpRequest, HttpResponse, Service, sse};
use serde_json::Value;

/// One recorded request of a trial.
#[derive(Debug, Clone)]
pub struct Resend {
    /// The trial's place in the plan.
    pub trial: usize,
    /// The service's name in the cassette.
    pub service: String,
    /// The profile's name.
    pub profile: String,
    /// What was sent.
    pub request: StoredRequest,
}

impl TrialRunner {
    /// Sends a recorded request to the provider that its trial has today.
    ///
    /// # Errors
    /// In words, redacted, when there was no answer or one that refuses.
    pub async fn send_again(&self, plan: &Plan, again: &Resend) -> Result<HttpResponse, String> {
        let trial = plan.trials.get(again.trial).ok_or("the plan has no such trial")?;
        let dialect = wire::Dialect::by_name(&again.profile)
            .ok_or_else(|| format!("its profile, `{}`, is no dialect that can be sent", again.profile))?;
        let service = [Service::Model, Service::Search].into_iter().find(|one| one.as_str() == again.service);
        let service = service.ok_or_else(|| format!("`{}` is no service of a scenario", again.service))?;
        if again.request.method != "POST" {
            return Err(format!("it is a {} request", again.request.method));
        }
        let (_, _, _, transport) = self.prepare(plan, trial).map_err(|finished| match finished.trace.end {
            crate::trace::TrialEnd::Error(problem) => problem.message,
            crate::trace::TrialEnd::Completed => "the trial cannot be prepared".to_owned(),
        })?;
        let streamed = again.request.body.get("stream") == Some(&Value::Bool(true))
            || again.request.path.contains(":streamGenerateContent");
        let request = HttpRequest {
            service,
            profile: dialect.name(),
            method: "POST",
            path: again.request.path.clone(),
            body: again.request.body.clone().into(),
            stream: streamed.then(|| ended_by(dialect)),
            headers: Vec::new(),
        };
        let response =
            transport.send(request).await.map_err(|why| self.redactor().redact(&why.to_string()).into_owned())?;
        if response.status >= 400 {
            let text = String::from_utf8_lossy(&response.body);
            return Err(format!("answered {}: {}", response.status, self.redactor().redact(&text)));
        }
        Ok(response)
    }

    /// The provider and model that a trial's service has today, as prices name it.
    pub fn who(&self, plan: &Plan, trial: &PlannedTrial, service: &str) -> String {
        let service = if service == Service::Search.as_str() { Service::Search } else { Service::Model };
        self.model_of(plan, trial, service).unwrap_or_else(|| "nobody".to_owned())
    }
}

/// The documents of an answer: one, or the events of its stream; `None` when it is neither.
pub fn documents(headers: &[(String, String)], body: &[u8]) -> Option<Vec<Value>> {
    if !sse::is_stream(headers, body) {
        return serde_json::from_slice(body).ok().map(|document| vec![document]);
    }
    let events = sse::read_all(body).ok()?;
    let data = events.iter().filter(|event| event.data.trim() != "[DONE]");
    data.map(|event| serde_json::from_str(&event.data).ok()).collect()
}
