//! `ragcheck simulate`: a model and a search service with declared behaviour, on loopback.

use super::arguments::Simulate;
use super::exit::Exit;
use super::output::{self, Problem};
use crate::clock::RealClock;
use crate::files;
use crate::scenario;
use crate::simulator::{self, Behaviour, BehaviourError};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Serves until it is stopped.
///
/// # Errors
/// When the behaviour cannot be read, or the port is taken.
pub(super) fn run(given: &Simulate) -> Result<Exit, Problem> {
    let behaviour = simulator::load(&given.behaviour).map_err(|error| mistakes(given, error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| format!("no runtime could be started: {why}"))?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, given.port));
        let clock = Arc::new(RealClock::start());
        let (bound, serving) = simulator::serve(behaviour, address, clock)
            .await
            .map_err(|why| format!("port {} of loopback cannot be used: {why}; another simulator may be running there, or name a free port with --port, and in ragcheck.yaml", given.port))?;
        output::remark(&format!("simulating on http://{bound}; Ctrl-C stops it"));
        tokio::select! {
            ended = serving => ended.map_err(|why| Problem::Words(format!("the simulator stopped: {why}")))?,
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(Exit::Passed)
    })
}

/// Every mistake of shape in a behaviour file, with its place; where it has none, the one that was found.
fn mistakes(given: &Simulate, error: BehaviourError) -> Problem {
    let file = given.behaviour.display().to_string();
    let text = match &error {
        BehaviourError::Shape { path, .. } if *path == given.behaviour => files::read_to_string(path).ok(),
        _ => None,
    };
    let found = text.map(|text| scenario::mistakes_of_shape::<Behaviour>(&text, &file)).unwrap_or_default();
    if found.is_empty() { error.into() } else { Problem::Diagnostics(found) }
}
