//! Modules that every other module may use: files, secrets, time, YAML, JSON of lenient writers and with numbers as written,
//! limits, placeholders, schemas and loopback addresses.
//!
//! Nothing here knows a trace, a scenario or a service. A module belongs here when modules of several layers need it
//! and it needs none of them.

pub(crate) mod bounds;
pub(crate) mod clock;
pub(crate) mod distinct;
pub(crate) mod distinct_json;
pub(crate) mod files;
pub(crate) mod lenient_json;
pub(crate) mod lock;
pub(crate) mod loopback;
pub(crate) mod numbers;
pub(crate) mod placeholders;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod words;
pub(crate) mod yaml;

pub(crate) use distinct::distinct;
pub(crate) use schema::schema;
pub(crate) use words::words;
