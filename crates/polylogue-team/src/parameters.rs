//! How a model writes.

use polylogue_core::Params;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a model writes. What is left out is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// Randomness, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub temperature: Option<f64>,
    /// Only the likeliest tokens that together have this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Only this many of the likeliest tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub top_k: Option<u32>,
    /// Makes the provider's randomness repeatable, where it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The longest reply, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub max_tokens: Option<u32>,
    /// How often a text that met the limit on tokens is continued. Default: 3, and 0 where `max_tokens` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 20))]
    pub max_continuations: Option<u32>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The JSON Schema that replies have to satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// Further fields, given to the provider as they are.
    #[serde(skip_serializing_if = "Map::is_empty")]
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
