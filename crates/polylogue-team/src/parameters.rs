//! How a model writes.

use polylogue_config::{At, Config};
use polylogue_core::Params;
use serde_json::{Map, Value};

/// Sampling parameters of a model.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub struct Parameters {
    /// Sampling temperature, from 0.
    #[key(none = "the provider's default", range = 0..=100)]
    pub temperature: Option<f64>,
    /// Probability mass of most likely tokens to sample from (nucleus sampling).
    #[key(none = "the provider's default", range = 0..=1)]
    pub top_p: Option<f64>,
    /// Number of most likely tokens to sample from.
    #[key(none = "the provider's default", range = 1..=1_000_000)]
    pub top_k: Option<u32>,
    /// Seed for repeatable replies, if the provider supports it.
    #[key(none = "none")]
    pub seed: Option<i64>,
    /// Maximum length of a reply in tokens.
    #[key(none = "the provider's default", range = 1..=100_000_000)]
    pub max_tokens: Option<u32>,
    /// Maximum number of times that a reply cut off at the token limit is continued.
    #[key(none = "3, or 0 with `max_tokens`", range = 0..=20)]
    pub max_continuations: Option<u32>,
    /// Stop sequences that end a reply.
    pub stop: Vec<String>,
    /// JSON Schema that is passed to the provider's structured output.
    #[key(none = "none")]
    pub schema: Option<At<Map<String, Value>>>,
    /// Further fields of the request, which are passed to the provider unchanged.
    pub extra: Map<String, Value>,
}

impl Parameters {
    /// Whether everything is left to the provider.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Parameters> for Params {
    fn from(of: Parameters) -> Self {
        Self {
            temperature: of.temperature,
            top_p: of.top_p,
            top_k: of.top_k,
            seed: of.seed,
            max_tokens: of.max_tokens,
            stop: of.stop,
            schema: of.schema.map(|schema| Value::Object(schema.value)),
            json: false,
            extra: of.extra,
        }
    }
}
