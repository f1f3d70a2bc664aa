//! The binary: see `ragcheck::cli`.

fn main() {}
