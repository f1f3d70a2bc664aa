//! One test binary: a file a behaviour.

#![allow(clippy::disallowed_methods, reason = "it makes and reads files of its own")]

mod agreement;
mod answers;
mod bounds;
mod broken;
mod cassette;
mod cli;
mod compare;
mod determinism;
mod durable;
mod external;
mod flow_folders;
mod gates;
mod history;
mod hostile;
mod imports;
mod inputs;
mod judge;
mod keyword_index;
mod keywords;
mod labelled_traces;
mod learning;
mod live;
mod live_equals_replay;
mod local_model;
mod main_job;
mod misses;
mod mistakes;
mod mutations;
mod no_network;
mod not_measured;
mod old_runs;
mod orders;
mod outages;
mod project;
mod recorded_knowledge;
mod registries;
mod sample;
mod schemas;
mod secrets;
mod servers;
mod shipped;
mod simulator;
mod tool_names;
mod until_decided;
