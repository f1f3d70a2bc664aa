//! The command line: one file a subcommand.

pub mod check;
pub mod diagnostic;
pub mod list;
pub mod schema;
