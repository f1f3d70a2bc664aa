//! A reverse proxy on loopback: the base URLs that somebody else's agent is given instead of a provider's.
//!
//! It hears an agent's requests, decides which are handed on (`admission`) and what they ask for (`route`, the table of
//! what is served), and hands them to the transport of the trial that is running; recording, replaying and reaching a
//! provider is that transport's. `vars` stands between the two and takes out the values that the agent generates per run,
//! dates and ids, and puts them back. What stands in the way of an answer is an error in the dialect's shape (`refusal`).
//! Keys that the agent sends go to the provider and into no file. What is refused here is kept for the trial
//! ([`Serving::requests`]), which it ends.
//!
//! `desk` says which trial a request belongs to: one address serves one trial at a time, or several that the agent tells
//! apart by `traceparent`. `mcp` serves the mounts of MCP servers. `telemetry` receives the spans of agents. Nothing here knows a scenario or a cassette.

mod admission;
mod desk;
mod mcp;
mod refusal;
mod route;
mod server;
mod telemetry;
mod vars;

pub(crate) use admission::Refused;
pub(crate) use desk::{Asked, Propagation, Requests, Traced, base_path};
pub(crate) use mcp::ERROR as MCP_ERROR;
pub(crate) use route::{MCP_MOUNT, MODEL_MOUNT, Mount, SEARCH_MOUNT, Serves, is_server_name};
pub(crate) use server::PLACEHOLDER_KEY;
pub use server::Proxy;
pub(crate) use server::{Reports, Serving};
pub(crate) use vars::{Bound, Pattern, Renewed, Unbound, Vars};
