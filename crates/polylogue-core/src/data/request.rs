//! What a request to a model has besides the conversation: parameters, and the declarations of tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Sampling parameters of a model. `None` leaves the value to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Randomness, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Considers only the likeliest tokens that together have this probability, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Considers only this many of the likeliest tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Makes the provider's randomness repeatable, where supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The maximum length of the reply, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Stop sequences. If a model continues after one, the reply and its deltas are cut before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The JSON Schema of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Whether the reply must be JSON of any form. `schema` takes precedence.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// Further fields, sent to the provider unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The declaration of a tool for models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name: 1 to 64 ASCII letters, digits, `_` and `-`.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// Whether a call that was in flight at a crash can be repeated safely.
    #[serde(default)]
    pub repeatable: bool,
    /// Whether the outcome ends the agent's turn, without another model call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
}

impl ToolSpec {
    /// A tool that is not repeated if it was in flight at a crash.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, parameters, repeatable: false, ends_turn: false }
    }

    /// Declares it safe to repeat: it only reads, or is idempotent.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Makes its outcome end the turn: the agent says what the model said with the call, or else the outcome. A
    /// failed call does not end the turn, so that the model can correct it.
    #[must_use]
    pub fn ends_turn(self) -> Self {
        Self { ends_turn: true, ..self }
    }
}
