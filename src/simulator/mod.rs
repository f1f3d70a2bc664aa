//! A server on loopback that simulates a chat model, a search service and a managed retrieval service by declared
//! behaviour: for trials without keys, for recordings, for load tests.
//!
//! `load` reads a [`Behaviour`] file, [`serve`] runs it. Its answers depend only on the request, the trial's seed,
//! the fault that its case declares and the behaviour's seed, so a lane gets the same answers in any order. Every
//! response carries the header `x-ragcheck-simulator`, which marks recordings as simulated. Nothing here knows the
//! flow: it sees messages.

mod aliases;
mod api;
mod behaviour;
mod compose;
mod dice;
mod embed;
mod habit;
mod judge;
mod load;
mod managed;
mod mistake;
mod model;
mod perplexity;
mod reason_act;
mod required;
mod roles;
mod search;
mod sentences;
mod server;
mod situation;
mod structured;

pub use behaviour::Behaviour;
pub(crate) use behaviour::schema;
pub use load::load;
pub(crate) use load::parse;
pub use mistake::BehaviourError;
pub(crate) use roles::{Proposed, roles};
pub(crate) use server::serve;

#[cfg(test)]
mod tests;
