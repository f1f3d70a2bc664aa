//! One test binary: a file a behaviour.

mod agreement;
mod broken;
mod cassette;
mod cli;
mod compare;
mod determinism;
mod external;
mod gates;
mod history;
mod imports;
mod inputs;
mod judge;
mod live;
mod live_equals_replay;
mod main_job;
mod misses;
mod mistakes;
mod no_network;
mod not_measured;
mod project;
mod sample;
mod schemas;
mod secrets;
mod shipped;
mod simulator;
mod until_decided;
