//! A reverse proxy on loopback: the base URLs that an external agent is given instead of a provider's.
//!
//! It hands an agent's requests to the transport of the trial that is running, which records them, replays them or sends
//! them to a provider. Keys that the agent sends go to the provider and into no file. Refused requests are kept for the
//! trial ([`Serving::requests`]), which they end. Nothing here knows a scenario or a cassette.
//!
//! | file | holds |
//! |---|---|
//! | `server` | the listener |
//! | `admission` | which requests are forwarded |
//! | `route`, `table` | what a request asks for, and the table of everything that is served |
//! | `desk`, `trace_ids` | which trial a request belongs to: one address serves one trial at a time, or several that the agent tells apart by `traceparent` |
//! | `vars` | takes the values that the agent generates per run, dates and ids, out of requests, and puts them back |
//! | `refusal` | errors in the shape of the client's dialect |
//! | `relayed` | responses: whole ones, and streams as they come |
//! | `mcp` | the mounts of MCP servers |
//! | `telemetry` | the spans of agents |

mod admission;
mod desk;
mod mcp;
mod refusal;
mod relayed;
mod route;
mod server;
mod table;
mod telemetry;
mod trace_ids;
mod vars;

pub(crate) use admission::{Refused, unsent_key};
pub(crate) use desk::{Asked, Requests};
pub(crate) use mcp::ERROR as MCP_ERROR;
pub(crate) use route::{MCP_MOUNT, MODEL_MOUNT, Mount, SEARCH_MOUNT, Serves, is_server_name};
pub use server::Proxy;
pub(crate) use server::{PLACEHOLDER_KEY, Reports, Serving};
pub(crate) use trace_ids::{Propagation, Traced, base_path};
pub(crate) use vars::{AskedBefore, Bound, Pattern, Renewed, Unbound, Vars};
