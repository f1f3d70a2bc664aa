//! One test binary, one file a behaviour.

mod broken;
mod schemas;
mod tmp_perf;
