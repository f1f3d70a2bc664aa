//! The program that the tests start.

use std::sync::OnceLock;

/// The one that Cargo built for these tests, or the one that `RAGCHECK_TEST_PROGRAM` names: an optimised one takes a fifth
/// of the time.
pub fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let named = std::env::var("RAGCHECK_TEST_PROGRAM").ok().filter(|path| !path.is_empty());
        named.unwrap_or_else(|| env!("CARGO_BIN_EXE_ragcheck").to_owned())
    })
}
