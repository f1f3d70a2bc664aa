//! Usual keys of the person who runs this: an agent that has one sends it wherever the project file leads its requests,
//! and a stranger's project file may lead them anywhere.

use super::services::usual_variables;
use crate::platform::clock::BoxFuture;
use crate::transport::{HttpRequest, HttpResponse, Service, Target, Transport, TransportError};
use crate::trial::services::{Variables, variable};
use crate::trial::trust::{may_hand_on, usual_keys};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Fewest characters of a key: shorter values occur in other headers.
const SHORTEST: usize = 8;

/// Sends the requests of an agent, but for those with a key that their service may not see.
pub(super) struct Withheld {
    inner: Arc<dyn Transport>,
    keys: Vec<Key>,
}

struct Key {
    service: Service,
    value: String,
    /// Why the service may not see it.
    reason: String,
}

impl Withheld {
    /// A transport over `inner` to these targets; where every usual key that is set may be sent, that is `inner`.
    pub(super) fn over(
        inner: Arc<dyn Transport>,
        targets: &BTreeMap<Service, Target>,
        variables: &Variables,
    ) -> Arc<dyn Transport> {
        let named: Vec<String> = usual_variables().filter_map(|name| std::env::var(name).ok()).collect();
        let set: Vec<(&str, String)> = usual_keys()
            .filter_map(|name| Some((name, variable(variables, name).filter(|value| value.len() >= SHORTEST)?)))
            .collect();
        let of_target = |(service, target): (&Service, &Target)| {
            let refused = |name: &str| may_hand_on(name, &target.base_url, &named).err();
            // One account may have its key in several variables.
            let allowed: BTreeSet<&String> = set
                .iter()
                .filter(|(name, _)| refused(name).is_none())
                .map(|(_, value)| value)
                .chain(&target.key)
                .collect();
            let key = |(name, value): &(&str, String)| {
                let reason = refused(name).filter(|_| !allowed.contains(value))?.to_string();
                Some(Key { service: *service, value: value.clone(), reason })
            };
            set.iter().filter_map(key).collect::<Vec<_>>()
        };
        let keys: Vec<Key> = targets.iter().flat_map(of_target).collect();
        if keys.is_empty() { inner } else { Arc::new(Self { inner, keys }) }
    }
}

impl Transport for Withheld {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let holds = |key: &&Key| {
            let mut texts = request.headers.iter().map(|(_, value)| value).chain([&request.path]);
            key.service == request.service && texts.any(|text| text.contains(&key.value))
        };
        let Some(key) = self.keys.iter().find(holds) else { return self.inner.send(request) };
        let message = format!("its key is not handed on: {}", key.reason);
        Box::pin(std::future::ready(Err(TransportError::Withheld { message })))
    }
}
