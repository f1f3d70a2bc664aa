//! `ragcheck simulate`: a model and a search service with declared behaviour, on loopback.

use super::arguments::Simulate;
use super::exit::Exit;
use super::output::{self, Problem};
use crate::clock::RealClock;
use crate::files;
use crate::scenario::{self, Diagnostic};
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

/// Every mistake in a behaviour file, with its place: those of shape, or those of values where its shape is right.
fn mistakes(given: &Simulate, error: BehaviourError) -> Problem {
    let BehaviourError::Invalid { path, mistakes } = &error else { return error.into() };
    let Ok(text) = files::read_to_string(path) else { return error.into() };
    let file = path.display().to_string();
    if *path == given.behaviour {
        let found = scenario::mistakes_of_shape::<Behaviour>(&text, &file);
        if !found.is_empty() {
            return Problem::Diagnostics(found);
        }
    }
    let told = mistakes.iter().map(|mistake| {
        let message = format!("the behaviour file is not valid: {mistake}");
        let diagnostic = Diagnostic::error("bad-behaviour", &file, message);
        mistake.place.map_or_else(|| diagnostic.clone(), |place| diagnostic.clone().at(&text, place))
    });
    Problem::Diagnostics(told.collect())
}
