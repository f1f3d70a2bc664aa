//! Whether managed retrieval services take the key, before a model is asked.
//!
//! A flow asks its model first and the service behind it, so a wrong key would be found once for each trial, after the
//! model was paid. The first request of a run is therefore an ask without a question: a service that takes the key
//! refuses it for its content, searches nothing and generates nothing.

use super::cost::tariff;
use super::outage::refused_key;
use super::services::LiveAccess;
use super::{Setup, TrialRunner};
use crate::plan::PlannedTrial;
use crate::platform::clock::RealClock;
use crate::provider::wire::nuclia_ask;
use crate::transport::{Budget, DECLARED_FAULT_HEADER, HttpRequest, LiveTransport, Service};
use std::collections::BTreeSet;
use std::sync::Arc;

impl TrialRunner {
    /// Why none of `trials` can come to anything: the first managed retrieval service that they ask and that refuses the
    /// key (401, 403). Any other answer, and none, decides nothing here. One request a service, without retries.
    pub async fn refused_key(&self, trials: impl Iterator<Item = &PlannedTrial>) -> Option<String> {
        let mut asked = BTreeSet::new();
        for trial in trials {
            let Some(Setup::Flow(setup)) = self.found(trial) else { continue };
            let Some(managed) = setup.asked.managed() else { continue };
            if !asked.insert((managed.base_url.clone(), managed.kb_id.clone())) {
                continue;
            }
            let targets = setup.asked.targets(&self.variables, *setup.declared.limits.request).ok()?;
            let live = LiveTransport::new(targets, Arc::new(RealClock::start())).ok()?;
            let paces = setup.asked.paces(&self.paces).collect();
            let access = LiveAccess::new(&live, (0, None), paces, &Arc::new(Budget::default()), tariff(None));
            let request = HttpRequest {
                service: Service::ManagedRetrieval,
                profile: &nuclia_ask::PROFILE,
                method: "POST",
                path: nuclia_ask::path(&managed.kb_id),
                body: Arc::new(serde_json::json!({})),
                stream: None,
                headers: Vec::new(),
            };
            let Ok(response) = access.transport.send(request).await else { continue };
            let declared = response.header(DECLARED_FAULT_HEADER).is_some();
            if matches!(response.status, 401 | 403) && !declared {
                return Some(refused_key(response.status, managed.host()));
            }
        }
        None
    }
}
