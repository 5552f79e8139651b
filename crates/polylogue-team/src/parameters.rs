//! How a model writes.

use polylogue_config::Config;
use polylogue_core::Params;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a model writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
pub struct Parameters {
    /// Randomness, from 0.
    #[key(none = "the provider's", range = 0..=100)]
    pub temperature: Option<f64>,
    /// Only the likeliest tokens that together have this probability.
    #[key(none = "the provider's", range = 0..=1)]
    pub top_p: Option<f64>,
    /// Only this many of the likeliest tokens.
    #[key(none = "the provider's", range = 1..=1_000_000)]
    pub top_k: Option<u32>,
    /// Makes the provider's randomness repeatable, where it can.
    #[key(none = "none")]
    pub seed: Option<i64>,
    /// The longest reply, in tokens.
    #[key(none = "the provider's", range = 1..=100_000_000)]
    pub max_tokens: Option<u32>,
    /// How often a text that met the limit on tokens is continued.
    #[key(none = "3, or 0 with `max_tokens`", range = 0..=20)]
    pub max_continuations: Option<u32>,
    /// Texts that end a reply.
    pub stop: Vec<String>,
    /// The JSON Schema that replies must satisfy.
    #[key(none = "none")]
    pub schema: Option<Map<String, Value>>,
    /// Further fields of the request, passed to the provider unchanged.
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
            schema: of.schema.map(Value::Object),
            json: false,
            extra: of.extra,
        }
    }
}
