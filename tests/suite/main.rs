//! One test binary: a file a behaviour.

mod agreement;
mod broken;
mod imports;
mod inputs;
mod schemas;
mod shipped;
