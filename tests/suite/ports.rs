//! Free ports for what has to know its port before it listens.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 10_000;
/// Ends below those that systems give to outgoing connections: none of these takes a port between its draw and its use.
const COUNT: u16 = 10_000;

/// A port that nothing listens at, and that no other test of this process draws.
pub fn free() -> u16 {
    static DRAWN: AtomicU16 = AtomicU16::new(0);
    // Processes that start one after the other begin far from each other.
    let begin = process::id().wrapping_mul(367) % u32::from(COUNT);
    loop {
        let drawn = u32::from(DRAWN.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from((begin + drawn) % u32::from(COUNT)).expect("below COUNT");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// An address of this machine at such a port.
pub fn free_address() -> String {
    format!("127.0.0.1:{}", free())
}
