//! What every other module may use: files, secrets, time, YAML, limits and loopback addresses.
//!
//! Nothing here knows a trace, a scenario or a service. A module belongs here when modules of several layers need it
//! and it needs none of them.

pub mod bounds;
pub mod clock;
pub mod files;
pub mod loopback;
pub mod secrets;
pub mod yaml;
