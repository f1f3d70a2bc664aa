//! Picks the recorded exchange for the next request: first in, first out within a service and a key, in any order across
//! keys. Two services may be sent equal requests.

use super::exchange::Cassette;
use crate::platform::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Exchanges of a lane that have not been used.
#[derive(Debug)]
pub struct Pool {
    /// By service, then by key.
    waiting: Mutex<BTreeMap<String, BTreeMap<String, Vec<usize>>>>,
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
        let mut waiting: BTreeMap<String, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
        for (index, exchange) in cassette.exchanges.iter().enumerate().rev() {
            let keys = waiting.entry(exchange.service.clone()).or_default();
            keys.entry(exchange.key.clone()).or_default().push(index);
        }
        Self { waiting: Mutex::new(waiting) }
    }

    /// Takes an unused exchange of a service with that key: of several the first that `is_exact`, as requests of one key may
    /// differ in what does not count, such as the ids of calls; otherwise the first.
    pub fn take(&self, service: &str, key: &str, is_exact: impl Fn(usize) -> bool) -> Taken {
        let mut waiting = lock(&self.waiting);
        match waiting.get_mut(service).and_then(|keys| keys.get_mut(key)) {
            None => Taken::Unknown,
            Some(left) => {
                let several = left.len() > 1;
                let exact = if several { left.iter().rposition(|index| is_exact(*index)) } else { None };
                let taken = exact.map(|place| left.remove(place)).or_else(|| left.pop());
                taken.map_or(Taken::UsedUp, Taken::Exchange)
            }
        }
    }

    /// Takes the first unused exchange of a service, whatever its key.
    pub fn take_next(&self, service: &str) -> Option<usize> {
        let mut waiting = lock(&self.waiting);
        let keys = waiting.get_mut(service)?.values_mut();
        keys.filter(|left| !left.is_empty()).min_by_key(|left| left.last().copied())?.pop()
    }

    /// Indices of unused exchanges, in order.
    pub fn unused(&self) -> Vec<usize> {
        let waiting = lock(&self.waiting);
        let mut left: Vec<usize> = waiting.values().flat_map(BTreeMap::values).flatten().copied().collect();
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
        assert_eq!(pool.take("model", &key, |_| false), Taken::Exchange(0));
        assert_eq!(pool.take("other", &key, |_| false), Taken::Unknown, "an equal request to another service");
        assert_eq!(pool.take("model", &key, |_| false), Taken::Exchange(2));
        assert_eq!(pool.take("model", &key, |_| false), Taken::UsedUp);
        assert_eq!(pool.take("model", "another", |_| false), Taken::Unknown);
        assert_eq!(pool.unused(), [1]);
        assert_eq!((pool.take_next("other"), pool.take_next("model"), pool.take_next("model")), (None, Some(1), None));
    }

    #[test]
    fn of_requests_that_differ_in_what_does_not_count_each_gets_the_answer_to_its_own() {
        let ask = conversation("p", &[]);
        let exchanges = (0..3).map(|ordinal| exchange(ordinal, &ask, "answer")).collect::<Vec<_>>();
        let key = exchanges[0].key.clone();
        let pool = Pool::new(&Cassette::new(header(), exchanges, BTreeMap::new()));
        assert_eq!(pool.take("model", &key, |index| index == 1), Taken::Exchange(1));
        assert_eq!(pool.take("model", &key, |index| index == 1), Taken::Exchange(0));
        assert_eq!(pool.take("model", &key, |_| false), Taken::Exchange(2));
    }
}
