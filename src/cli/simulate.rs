//! `ragcheck simulate`: serves a model and a search service with declared behaviour on loopback.

use super::arguments::Simulate;
use super::exit::Exit;
use super::output::{self, Problem};
use super::serve::started;
use crate::platform::clock::RealClock;
use crate::platform::files;
use crate::scenario::{self, Diagnostic};
use crate::simulator::{self, Behaviour, BehaviourError};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::runtime::Builder;

/// Serves until stopped.
///
/// # Errors
/// If the behaviour cannot be read, or the port is in use.
pub(super) fn run(given: &Simulate) -> Result<Exit, Problem> {
    let behaviour = simulator::load(&given.behaviour).map_err(|error| mistakes(given, error))?;
    started(&mut Builder::new_multi_thread())?.block_on(async {
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

/// All mistakes in a behaviour file with their positions: of shape and of values.
fn mistakes(given: &Simulate, error: BehaviourError) -> Problem {
    let BehaviourError::Invalid { path, mistakes } = &error else { return error.into() };
    let Ok(text) = files::read_to_string(path) else { return error.into() };
    let file = path.display().to_string();
    let is_main = *path == given.behaviour;
    let mut found = if is_main { scenario::mistakes_of_shape::<Behaviour>(&text, &file) } else { Vec::new() };
    for mistake in mistakes {
        let message = format!("the behaviour file is not valid: {mistake}");
        let mut told = Diagnostic::error("bad-behaviour", &file, message);
        if let Some(place) = mistake.place {
            told = told.in_yaml(&text, place);
        }
        let begin = |one: &Diagnostic| one.place.map(|place| (place.line, place.column));
        match found.iter_mut().find(|known| begin(known) == begin(&told)) {
            // A specific message on a value is better than a wrong type.
            Some(known) if known.code == "wrong-type" && !mistake.to_string().starts_with("expected") => *known = told,
            Some(_) => {}
            None => found.push(told),
        }
    }
    found.sort_by_key(|one| one.place);
    Problem::Diagnostics(found)
}
