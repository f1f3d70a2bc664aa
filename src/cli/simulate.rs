//! `ragcheck simulate`: a model and a search service with declared behaviour, on loopback.

use super::arguments::Simulate;
use super::exit::Exit;
use super::output::{self, Problem};
use crate::clock::RealClock;
use crate::simulator;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Serves until it is stopped.
///
/// # Errors
/// When the behaviour cannot be read, or the port is taken.
pub(super) fn run(given: &Simulate) -> Result<Exit, Problem> {
    let behaviour = simulator::load(&given.behaviour)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|why| format!("no runtime could be started: {why}"))?;
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, given.port));
        let clock = Arc::new(RealClock::start());
        let (bound, serving) = simulator::serve(behaviour, address, clock)
            .await
            .map_err(|why| format!("port {} of loopback cannot be used: {why}; try --port 0", given.port))?;
        output::remark(&format!("simulating on http://{bound}; Ctrl-C stops it"));
        tokio::select! {
            ended = serving => ended.map_err(|why| Problem::Words(format!("the simulator stopped: {why}")))?,
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(Exit::Passed)
    })
}
