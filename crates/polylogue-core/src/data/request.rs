//! What a request to a model has besides the conversation: parameters, and the declarations of tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::money::Money;
use super::part::ToolResult;

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
    /// How much a reasoning model reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the provider returns reasoning for people to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Whether the model must call a tool. Only sent with tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may call several tools in one reply. Only sent with tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// How long the provider keeps the beginning of the prompt in its cache, for providers that let callers choose. Default:
    /// as short as the provider has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<CacheLifetime>,
    /// Whether a parameter that the model is known not to accept is an error. Default: it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Further fields, sent to the provider unchanged.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Params {
    /// Limits the reply to at most `most` tokens; `None` if the request allows no more already.
    pub fn with_reply_limit(&self, most: u64) -> Option<Self> {
        let most = u32::try_from(most).ok()?;
        let is_lower = self.max_tokens.is_none_or(|own| own > most);
        is_lower.then(|| Self { max_tokens: Some(most), ..self.clone() })
    }
}

/// How much a reasoning model reasons. Models know some of these levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as possible.
    Minimal,
    /// Little.
    Low,
    /// A medium amount.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
    /// As much as possible.
    Max,
}

impl Effort {
    /// Returns the name of the effort in requests.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// How long a provider keeps a prompt in its cache after the last request that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheLifetime {
    /// Five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour. Writing to the cache costs more: twice the price of input instead of 1.25 times.
    #[serde(rename = "1h")]
    Hour,
    /// Twelve hours. Writing to the cache costs more: 2.5 times the price of input instead of 1.25 times.
    #[serde(rename = "12h")]
    HalfDay,
    /// A day: as long as a provider keeps it.
    #[serde(rename = "24h")]
    Day,
}

impl CacheLifetime {
    /// Whether writing to the cache costs more than for the shortest lifetime.
    pub const fn is_long(self) -> bool {
        matches!(self, Self::Hour | Self::HalfDay)
    }
}

/// Whether the provider returns reasoning for people to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The provider returns none.
    Hidden,
    /// The provider returns a summary.
    Summary,
}

/// Whether the model must call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Any,
    /// The model must call this tool.
    Tool(String),
}

impl Params {
    /// Removes the parameters named `names`.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        for name in names {
            match *name {
                "temperature" => self.temperature = None,
                "top_p" => self.top_p = None,
                "top_k" => self.top_k = None,
                "seed" => self.seed = None,
                "stop" => self.stop = Vec::new(),
                "effort" => self.effort = None,
                "thinking" => self.thinking = None,
                "tool_choice" => self.tool_choice = None,
                "parallel_tool_calls" => self.parallel_tool_calls = None,
                "prompt_cache" => self.prompt_cache = None,
                _ => {}
            }
        }
        self
    }

    /// Returns the names of the parameters that are set, of those that models may not accept.
    pub fn names(&self) -> Vec<&'static str> {
        [
            ("temperature", self.temperature.is_some()),
            ("top_p", self.top_p.is_some()),
            ("top_k", self.top_k.is_some()),
            ("seed", self.seed.is_some()),
            ("stop", !self.stop.is_empty()),
            ("effort", self.effort.is_some()),
            ("thinking", self.thinking.is_some()),
            ("tool_choice", self.tool_choice.is_some()),
            ("parallel_tool_calls", self.parallel_tool_calls.is_some()),
            ("prompt_cache", self.prompt_cache.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_set)| is_set.then_some(name))
        .collect()
    }
}

/// The declaration of a tool for models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name: 1 to 64 ASCII letters, digits, `_` and `-`.
    pub name: String,
    /// The description: what the tool does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// Whether a call that was in flight at a crash can be repeated safely.
    #[serde(default)]
    pub repeatable: bool,
    /// Whether the result ends the agent's turn, without another model call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
    /// The maximum number of bytes of text and data of a result; longer ones are truncated. No part of what models see.
    #[serde(skip, default = "ToolSpec::default_max_bytes")]
    pub max_bytes: usize,
    /// The maximum cost of a call, besides that of models that are called within it. It is reserved before the call. `None`:
    /// nothing is reserved, and what [`ToolResult::with_cost`](crate::ToolResult::with_cost) reports counts afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
}

impl ToolSpec {
    const fn default_max_bytes() -> usize {
        ToolResult::MAX_BYTES
    }

    /// Creates a tool that is not repeated if it was in flight at a crash.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description) = (name.into(), description.into());
        Self {
            name,
            description,
            parameters,
            repeatable: false,
            ends_turn: false,
            max_bytes: ToolResult::MAX_BYTES,
            max_cost: None,
        }
    }

    /// Declares the tool safe to repeat: it only reads, or is idempotent.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Sets the maximum number of bytes of a result, [`ToolResult::MAX_BYTES`] at most. The bound of a run is computed with it.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        Self { max_bytes: bytes.min(ToolResult::MAX_BYTES), ..self }
    }

    /// Declares what a call costs at most. A call that does not report [what it cost](crate::ToolResult::with_cost) counts as much,
    /// also if it fails.
    #[must_use]
    pub fn max_cost(self, cost: Money) -> Self {
        Self { max_cost: Some(cost), ..self }
    }

    /// Makes its result end the turn: the agent says what the model said with the call, or else the result. A
    /// failed call does not end the turn, so that the model can correct it.
    #[must_use]
    pub fn ends_turn(self) -> Self {
        Self { ends_turn: true, ..self }
    }
}
