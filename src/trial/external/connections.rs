//! Clients of a trial: for the services behind the proxy, and for the agent.

use super::Work;
use super::mcp_sessions::McpSessions;
use super::withheld::Withheld;
use crate::flow::external::{Endpoint, Probe};
use crate::platform::clock::{Clock, RealClock};
use crate::scenario::external::ProbeAfter;
use crate::settings::Auth;
use crate::trace::TrialError;
use crate::transport::{LiveTransport, Service, Target as Address, Transport};
use crate::trial::hold::{HeldLane, held};
use crate::trial::outcome::unusable;
use crate::trial::proxy::{Renewed, Unbound, Vars};
use crate::trial::services::{Keys, LiveAccess, paces_of, targets};
use crate::trial::tariff::tariff_of;
use crate::trial::trust::may_call;
use crate::trial::{SetupError, TrialMode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Header that names the mode of a turn, so that the agent can skip side effects in replays.
const MODE_HEADER: &str = "x-ragcheck-mode";

/// The services behind the proxy, and the recording that answers for those that are held.
type Services = (Arc<dyn Transport>, Option<HeldLane>);

impl TrialMode {
    /// Headers sent to the agent with each turn.
    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Live => &[(MODE_HEADER, "live")],
            Self::Record => &[(MODE_HEADER, "record")],
            Self::Replay => &[(MODE_HEADER, "replay")],
        }
    }
}

impl Work<'_> {
    /// The services behind the proxy, and the recording that answers for held ones. In its answers, today's generated
    /// values replace those of the recording.
    pub(super) fn services(
        &self,
        mode: TrialMode,
        clock: &Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
        vars: &Arc<Vars>,
    ) -> Result<Services, Box<TrialError>> {
        let below: Arc<dyn Transport> = Arc::new(Unbound { inner: transport, vars: Arc::clone(vars) });
        let held = held(self.trial, mode, clock, &below)?;
        let way = match &held {
            Some(lane) => {
                Arc::new(Renewed { inner: lane.transport(), recorded: lane.vars.clone(), vars: Arc::clone(vars) }) as _
            }
            None => below,
        };
        Ok((way, held))
    }

    /// Access to the providers, with the limits of the run; a simulator also gets the seed and the fault.
    pub(super) fn access(&self, seed_and_fault: (u64, Option<&str>)) -> Result<LiveAccess, Box<TrialError>> {
        let (opened, planned, declared) = (self.trial.opened, self.trial.planned, &self.outside.declared);
        let (services, timeout) = (&self.outside.services, *declared.limits.request);
        let mut targets = targets(opened, &services.providers(), timeout, Keys::TheAgents).map_err(unusable)?;
        targets.extend(services.targets(timeout));
        let live = LiveTransport::new(targets.clone(), Arc::new(RealClock::start()))
            .map_err(|why| unusable(SetupError::from(why)))?;
        let live = live.asking_for(declared.asks_for.as_deref());
        let (paces, tariff) = (paces_of(opened, &services.providers()), tariff_of(opened, planned));
        let access = LiveAccess::new(&live, seed_and_fault, paces, &opened.budget, tariff);
        let transport = McpSessions::over(access.transport, services.mcp_servers());
        Ok(LiveAccess { transport: Withheld::over(transport, &targets, &opened.variables), ..access })
    }

    /// Client for the agent at `endpoint`. The session enforces the turn limit and waits the same time again for the
    /// reply.
    pub(super) fn to_agent(
        &self,
        endpoint: &Endpoint,
        mode: TrialMode,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<dyn Transport>, Box<TrialError>> {
        if !self.outside.is_started() {
            may_call(&endpoint.url()).map_err(unusable)?;
        }
        let address = Address {
            base_url: endpoint.origin.clone(),
            key: None,
            auth: Auth::Bearer,
            headers: mode.headers(),
            timeout: self.outside.declared.limits.turn.saturating_mul(3),
            trial_header: false,
        };
        let live = LiveTransport::new(BTreeMap::from([(Service::Agent, address)]), Arc::clone(clock));
        Ok(Arc::new(live.map_err(unusable)?))
    }

    /// How the keyword index is read, if the scenario says so: from the agent or from a service behind the proxy.
    pub(super) fn probe(
        &self,
        port: Option<u16>,
        (mode, clock): (TrialMode, &Arc<dyn Clock>),
        way: &Arc<dyn Transport>,
    ) -> Result<Option<Probe>, Box<TrialError>> {
        let Some((probe, own)) = self.outside.probe(port) else { return Ok(None) };
        let (at, after_trial) = (probe.at.clone(), probe.after == ProbeAfter::Trial);
        Ok(Some(match (own, &probe.service) {
            (Some(endpoint), _) => {
                let way = self.to_agent(&endpoint, mode, clock)?;
                Probe { way, service: Service::Agent, address: endpoint.url(), path: endpoint.path, at, after_trial }
            }
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                let (service, path) = (Service::declared(name), probe.http.clone());
                Probe { way: Arc::clone(way), service, address: format!("{name}{path}"), path, at, after_trial }
            }
        }))
    }
}
