//! One test binary, one file a behaviour.

mod broken;
mod inputs;
mod schemas;
