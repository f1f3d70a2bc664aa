//! Checks that managed retrieval services accept the key before any model is called.
//!
//! A flow calls its model first and the service afterwards, so a wrong key would be found once per trial, after paying
//! for the model. The first request of a run therefore asks an empty question: a service that accepts the key rejects
//! the content, searches nothing and generates nothing.

use super::opened::Opened;
use super::outage::refused_key_message;
use super::services::LiveAccess;
use super::tariff::tariff;
use crate::plan::PlannedTrial;
use crate::platform::clock::RealClock;
use crate::provider::wire::nuclia_ask;
use crate::transport::{Budget, DECLARED_FAULT_HEADER, HttpRequest, LiveTransport, Service};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The first managed retrieval service of `trials` that refuses the key (401, 403), as the reason why none of them can
/// run. Any other answer, or none, is not conclusive. Sends one request per service, without retries.
pub(super) async fn refused_key(opened: &Opened, trials: impl Iterator<Item = &PlannedTrial>) -> Option<String> {
    let mut asked = BTreeSet::new();
    for trial in trials {
        let Some(setup) = opened.flow(trial) else { continue };
        let Some(managed) = setup.retrieval.managed() else { continue };
        if !asked.insert((managed.base_url.clone(), managed.kb_id.clone())) {
            continue;
        }
        let targets = setup.retrieval.targets(&opened.variables, *setup.declared.limits.request).ok()?;
        let live = LiveTransport::new(targets, Arc::new(RealClock::start())).ok()?;
        let paces = setup.retrieval.paces(&opened.paces).collect();
        let access = LiveAccess::new(&live, (0, None), paces, &Arc::new(Budget::default()), tariff(None));
        let (path, body) = (nuclia_ask::path(&managed.kb_id), serde_json::json!({}));
        let request = HttpRequest::new(Service::ManagedRetrieval, &nuclia_ask::PROFILE, "POST", path, body);
        let Ok(response) = access.transport.send(request).await else { continue };
        let declared = response.header(DECLARED_FAULT_HEADER).is_some();
        if matches!(response.status, 401 | 403) && !declared {
            return Some(refused_key_message(response.status, managed.host()));
        }
    }
    None
}
