//! Converts tokens to US dollars.
//!
//! A price belongs to a provider's model: dollars per million input, cached input and output tokens, and dollars per
//! request where a service charges for that. Unknown tokens or prices make the cost unknown, never 0.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Prices of one model, in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Per million input tokens.
    pub input: f64,
    /// Per million input tokens from the provider's cache. Default: the price of other input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Per million input tokens that are written to the provider's cache. Default: 1.25 times the price of other input tokens,
    /// as Anthropic's for five minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Per million output tokens.
    pub output: f64,
    /// Per request, in addition to its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<f64>,
}

/// Tokens of one or several exchanges; `None` if a service did not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input tokens, cached ones included.
    pub input: Option<u64>,
    /// Input tokens from the provider's cache.
    pub cached: Option<u64>,
    /// Input tokens written to the provider's cache.
    pub written: Option<u64>,
    pub output: Option<u64>,
}

/// Prices by `provider/model`.
pub(crate) type Prices = BTreeMap<String, Price>;

/// The price of a provider's model; also by the name without the date at its end, which answers add:
/// `gpt-4o-mini-2024-07-18`.
pub(crate) fn price_of<'p>(prices: &'p Prices, provider: &str, model: &str) -> Option<&'p Price> {
    let of = |model: &str| prices.get(&format!("{provider}/{model}"));
    let undated = || {
        let parts: Vec<&str> = model.split('-').collect();
        let digits = |part: &&str, length: usize| part.len() == length && part.bytes().all(|one| one.is_ascii_digit());
        let date = match parts.as_slice() {
            [.., year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2) => 3,
            [.., date] if digits(date, 8) || digits(date, 4) => 1,
            _ => return None,
        };
        of(&parts[..parts.len() - date].join("-"))
    };
    of(model).or_else(undated)
}

/// The price of a model of an unknown provider; `None` if providers ask different prices for it.
pub(crate) fn price_of_any<'p>(prices: &'p Prices, model: &str) -> Option<&'p Price> {
    let providers = prices.keys().filter_map(|name| name.split_once('/')).map(|(provider, _)| provider);
    let mut found = providers.filter_map(|provider| price_of(prices, provider, model));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Price of a token written to a cache, relative to an ordinary input token.
const CACHE_WRITE: f64 = 1.25;

impl Price {
    /// Its components, by name.
    pub fn figures(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("input", Some(self.input)),
            ("cached", self.cached),
            ("cache_write", self.cache_write),
            ("output", Some(self.output)),
            ("request", self.request),
        ]
    }

    /// The cost of one request; `None` if its tokens are unknown or contradictory. A missing cache count means that
    /// no cache was used.
    pub fn of(&self, tokens: Tokens) -> Option<f64> {
        let (input, output) = (tokens.input?, tokens.output?);
        let (cached, written) = (tokens.cached.unwrap_or(0), tokens.written.unwrap_or(0));
        let millionths = input.checked_sub(cached)?.checked_sub(written)? as f64 * self.input
            + cached as f64 * self.cached.unwrap_or(self.input)
            + written as f64 * self.cache_write.unwrap_or(CACHE_WRITE * self.input)
            + output as f64 * self.output;
        Some(millionths / 1e6 + self.request.unwrap_or(0.0))
    }
}

/// Formats dollars: cents if the amount has any, otherwise three significant digits.
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

    const PRICE: Price = Price { input: 2.0, cached: Some(0.5), cache_write: None, output: 8.0, request: None };

    #[test]
    fn cached_tokens_are_part_of_those_read_and_have_their_own_price() {
        let tokens = Tokens { input: Some(1_000_000), cached: Some(400_000), written: None, output: Some(100_000) };
        assert_eq!(PRICE.of(tokens), Some(1.2 + 0.2 + 0.8));
        let written = Tokens { written: Some(200_000), ..tokens };
        assert_eq!(PRICE.of(written), Some(0.8 + 0.2 + 0.5 + 0.8));
        assert_eq!(Price { cache_write: Some(4.0), ..PRICE }.of(written), Some(0.8 + 0.2 + 0.8 + 0.8));
        assert_eq!(Price { cached: None, ..PRICE }.of(tokens), Some(2.8));
        assert_eq!(Price { request: Some(0.005), ..Price::default() }.of(tokens), Some(0.005));
    }

    #[test]
    fn a_model_is_priced_by_its_name_with_or_without_the_date_that_answers_add() {
        let prices: Prices =
            ["p/gpt-4o", "p/claude-3-5", "p/gpt-4o-2024-05-13"].map(|name| (name.to_owned(), PRICE)).into();
        let dear = Price { input: 9.0, ..PRICE };
        let prices: Prices = prices.into_iter().chain([("p/gpt-4o-2024-05-13".to_owned(), dear)]).collect();
        for (model, input) in [
            ("gpt-4o", Some(2.0)),
            ("gpt-4o-2024-08-06", Some(2.0)),
            ("gpt-4o-2024-05-13", Some(9.0)),
            ("claude-3-5-20241022", Some(2.0)),
            ("gpt-4o-0613", Some(2.0)),
            ("gpt-4o-mini", None),
            ("gpt-4o-mini-2024-07-18", None),
            ("claude-3", None),
        ] {
            assert_eq!(price_of(&prices, "p", model).map(|price| price.input), input, "{model}");
        }
        assert_eq!(price_of(&prices, "q", "gpt-4o"), None);
    }

    #[test]
    fn what_a_service_did_not_tell_makes_the_cost_unknown() {
        assert_eq!(PRICE.of(Tokens { input: Some(1), ..Tokens::default() }), None);
        assert_eq!(PRICE.of(Tokens { output: Some(1), ..Tokens::default() }), None);
    }

    #[test]
    fn more_tokens_of_a_cache_than_were_read_make_the_cost_unknown() {
        assert_eq!(PRICE.of(Tokens { input: Some(10), cached: Some(11), output: Some(1), ..Tokens::default() }), None);
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
            let with = PRICE.of(Tokens { input: Some(input), cached: Some(cached), output: Some(output), ..Tokens::default() });
            let without = PRICE.of(Tokens { input: Some(input), cached: None, output: Some(output), ..Tokens::default() });
            prop_assert!(with <= without);
        }
    }
}
