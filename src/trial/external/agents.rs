//! Places in which trials of external agents run: who may run now, and through which proxy the agent sends requests.
//!
//! There is one place, because the agent is started before the run and knows one proxy. Where each worker has its own
//! agent process, each has its own place: process, port and proxy belong to it.

use crate::trace::{TrialError, TrialErrorKind};
use crate::trial::outcome::error;
use crate::trial::proxy::Proxy;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Proxies by address, opened on first use.
type Proxies = BTreeMap<SocketAddr, Arc<Proxy>>;

/// The places of a plan's external agents.
#[derive(Default)]
pub(crate) struct Agents {
    free: Arc<Mutex<()>>,
    proxies: Arc<Mutex<Proxies>>,
}

/// A place for one trial; it is free again when this is dropped.
pub(crate) struct Place {
    _taken: OwnedMutexGuard<()>,
    proxies: Arc<Mutex<Proxies>>,
}

impl Agents {
    /// Waits until a place is free; first come, first served.
    pub(crate) async fn place(&self) -> Place {
        Place { _taken: Arc::clone(&self.free).lock_owned().await, proxies: Arc::clone(&self.proxies) }
    }
}

impl Place {
    /// The proxy at that address.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub(super) async fn proxy(&self, address: SocketAddr) -> Result<Arc<Proxy>, Box<TrialError>> {
        let mut proxies = self.proxies.lock().await;
        if let Some(proxy) = proxies.get(&address) {
            return Ok(Arc::clone(proxy));
        }
        let opened = Proxy::open(address).await.map_err(|why| {
            let message = format!("the proxy cannot listen at {address}: {why}");
            let detail = "stop what listens there, or write another address in `proxy` and in the agent's settings";
            error(TrialErrorKind::Provider, &message, vec![detail.to_owned()])
        })?;
        let opened = Arc::new(opened);
        proxies.insert(address, Arc::clone(&opened));
        Ok(opened)
    }
}
