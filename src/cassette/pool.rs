//! Picks the recorded exchange for the next request: first in, first out within a key, in any order across keys.

use super::exchange::Cassette;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Exchanges of a lane that have not been used.
#[derive(Debug)]
pub struct Pool {
    waiting: Mutex<BTreeMap<String, Vec<usize>>>,
}

/// Result of looking up a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Index of the exchange, which is now used.
    Exchange(usize),
    /// All exchanges with this key are used.
    UsedUp,
    /// No exchange has this key.
    Unknown,
}

impl Pool {
    /// A pool of all exchanges of a cassette.
    pub fn new(cassette: &Cassette) -> Self {
        let mut waiting: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, exchange) in cassette.exchanges.iter().enumerate().rev() {
            waiting.entry(exchange.key.clone()).or_default().push(index);
        }
        Self { waiting: Mutex::new(waiting) }
    }

    /// Takes the first unused exchange with that key.
    pub fn take(&self, key: &str) -> Taken {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get_mut(key) {
            None => Taken::Unknown,
            Some(left) => left.pop().map_or(Taken::UsedUp, Taken::Exchange),
        }
    }

    /// Indices of unused exchanges, in order.
    pub fn unused(&self) -> Vec<usize> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left: Vec<usize> = waiting.values().flatten().copied().collect();
        left.sort_unstable();
        left
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{conversation, exchange, header};
    use super::*;

    #[test]
    fn equal_requests_get_their_answers_in_the_order_recorded_and_then_none() {
        let (ask, other) = (conversation("p", &[]), conversation("p", &["x"]));
        let exchanges = vec![exchange(0, &ask, "first"), exchange(1, &other, "between"), exchange(2, &ask, "second")];
        let key = exchanges[0].key.clone();
        let pool = Pool::new(&Cassette::new(header(), exchanges, BTreeMap::new()));
        assert_eq!(pool.take(&key), Taken::Exchange(0));
        assert_eq!(pool.take(&key), Taken::Exchange(2));
        assert_eq!(pool.take(&key), Taken::UsedUp);
        assert_eq!(pool.take("another"), Taken::Unknown);
        assert_eq!(pool.unused(), [1]);
    }
}
