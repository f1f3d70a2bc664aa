//! Tokens to money, in US dollars.
//!
//! A price is of a provider's model: dollars a million tokens, read, read from the provider's cache and written apart,
//! and dollars a request where a service charges for that. Whatever is not known, tokens or price, makes the cost
//! unknown: it is never taken for nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one model costs, in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens read.
    pub input: f64,
    /// A million tokens read from the provider's cache; without it they cost what others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// A million tokens written.
    pub output: f64,
    /// One request, beside its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<f64>,
}

/// Tokens of one or several exchanges; `None` where a service did not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read, cached ones included.
    pub input: Option<u64>,
    /// Of these, from the provider's cache.
    pub cached: Option<u64>,
    /// Written.
    pub output: Option<u64>,
}

/// Prices by `provider/model`.
pub(crate) type Prices = BTreeMap<String, Price>;

impl Price {
    /// What it is made of, by name.
    pub fn figures(&self) -> [(&'static str, Option<f64>); 4] {
        [("input", Some(self.input)), ("cached", self.cached), ("output", Some(self.output)), ("request", self.request)]
    }

    /// What one request with these tokens costs; `None` when its tokens are not known, or contradict each other. Nothing
    /// said of a cache is no use of it.
    pub fn of(&self, tokens: Tokens) -> Option<f64> {
        let (input, output) = (tokens.input?, tokens.output?);
        let cached = tokens.cached.unwrap_or(0);
        let millionths = input.checked_sub(cached)? as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + output as f64 * self.output;
        Some(millionths / 1e6 + self.request.unwrap_or(0.0))
    }
}

/// Dollars as people read them: cents where there are some, else three digits that count.
pub(crate) fn dollars(amount: f64) -> String {
    if amount >= 0.995 || amount == 0.0 {
        return format!("${amount:.2}");
    }
    let places = (2.0 - amount.log10().floor()).clamp(2.0, 9.0) as usize;
    format!("${amount:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRICE: Price = Price { input: 2.0, cached: Some(0.5), output: 8.0, request: None };

    #[test]
    fn cached_tokens_are_part_of_those_read_and_have_their_own_price() {
        let tokens = Tokens { input: Some(1_000_000), cached: Some(400_000), output: Some(100_000) };
        assert_eq!(PRICE.of(tokens), Some(1.2 + 0.2 + 0.8));
        assert_eq!(Price { cached: None, ..PRICE }.of(tokens), Some(2.8));
        assert_eq!(Price { request: Some(0.005), ..Price::default() }.of(tokens), Some(0.005));
    }

    #[test]
    fn what_a_service_did_not_tell_makes_the_cost_unknown() {
        assert_eq!(PRICE.of(Tokens { input: Some(1), ..Tokens::default() }), None);
        assert_eq!(PRICE.of(Tokens { output: Some(1), ..Tokens::default() }), None);
    }

    #[test]
    fn more_tokens_of_a_cache_than_were_read_make_the_cost_unknown() {
        assert_eq!(PRICE.of(Tokens { input: Some(10), cached: Some(11), output: Some(1) }), None);
    }

    #[test]
    fn dollars_show_what_counts() {
        for (amount, text) in
            [(0.0, "$0.00"), (12.345, "$12.35"), (0.5, "$0.500"), (0.004_321, "$0.00432"), (1e-12, "$0.000000000")]
        {
            assert_eq!(dollars(amount), text);
        }
    }

    proptest! {
        #[test]
        fn a_cache_that_costs_less_never_makes_it_dearer(input in 0_u64..1 << 40, cached in 0_u64..1 << 40, output in 0_u64..1 << 40) {
            let with = PRICE.of(Tokens { input: Some(input), cached: Some(cached), output: Some(output) });
            let without = PRICE.of(Tokens { input: Some(input), cached: None, output: Some(output) });
            prop_assert!(with <= without);
        }
    }
}
