//! Prices of models.

use polylogue_config::{As, Config};
use polylogue_core::{Price, PriceTier};

/// Price of a model.
#[derive(Config)]
#[config(name = "Price", by_shape)]
pub(crate) enum PriceKey {
    /// No cost.
    Free(Free),
    /// US dollars per million tokens.
    Tokens(TokenPrice),
}

/// The word `free`.
#[derive(Config)]
pub(crate) enum Free {
    /// Calls cost nothing.
    Free,
}

/// Price in US dollars per million tokens.
#[derive(Config)]
#[config(for = Price)]
pub(crate) struct TokenPrice {
    /// US dollars per million input tokens.
    #[key(range = 0..=1_000_000)]
    input: f64,
    /// US dollars per million input tokens that the provider read from its prompt cache.
    #[key(none = "the same as `input`", range = 0..=1_000_000)]
    cached: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache.
    #[key(none = "the same as `input`", range = 0..=1_000_000)]
    write: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache for an hour or more.
    #[key(none = "the same as `write`", range = 0..=1_000_000)]
    write_long: Option<f64>,
    /// US dollars per million output tokens.
    #[key(range = 0..=1_000_000)]
    output: f64,
    /// Other prices of all tokens of longer requests.
    #[key(as = Vec<TierPrice>)]
    tiers: Vec<PriceTier>,
}

/// Prices of all tokens of requests with more input tokens than `over`, in US dollars per million tokens.
#[derive(Config)]
#[config(name = "PriceTier", for = PriceTier)]
pub(crate) struct TierPrice {
    /// Number of input tokens that a request must exceed.
    #[key(range = 1..=1_000_000_000)]
    over: u64,
    /// US dollars per million input tokens.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    input: Option<f64>,
    /// US dollars per million input tokens that the provider read from its prompt cache.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    cached: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    write: Option<f64>,
    /// US dollars per million input tokens that the provider writes to its prompt cache for an hour or more.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    write_long: Option<f64>,
    /// US dollars per million output tokens.
    #[key(none = "as in shorter requests", range = 0..=1_000_000)]
    output: Option<f64>,
}

impl As<Price> for PriceKey {
    fn into_value(self) -> Price {
        match self {
            Self::Free(Free::Free) => Price::FREE,
            Self::Tokens(price) => price.into_value(),
        }
    }

    fn from_value(price: &Price) -> Self {
        match *price == Price::FREE {
            true => Self::Free(Free::Free),
            false => Self::Tokens(TokenPrice::from_value(price)),
        }
    }
}
