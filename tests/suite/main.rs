//! One test binary: a file a behaviour.

mod imports;
