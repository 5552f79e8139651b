//! How a model writes.

use polylogue_config::{At, Config};
use polylogue_core::{CacheLifetime, Effort, Params, Thinking, ToolChoice};
use serde_json::{Map, Value};

use crate::text::Schema;

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
    pub schema: Option<At<Schema>>,
    /// How much a reasoning model reasons.
    #[key(as = Option<EffortWord>, none = "the provider's default")]
    pub effort: Option<Effort>,
    /// Whether the provider returns reasoning for people to read.
    #[key(as = Option<ThinkingWord>, none = "the provider's default")]
    pub thinking: Option<Thinking>,
    /// Whether the model must call a tool.
    #[key(as = Option<ToolChoiceKey>, none = "the model decides")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may call several tools in one reply.
    #[key(none = "the provider's default")]
    pub parallel_tool_calls: Option<bool>,
    /// How long the provider keeps the beginning of the prompt in its cache. `1h` is for Claude and agents that wait
    /// longer than five minutes between calls: writing to the cache then costs twice the price of input instead of 1.25
    /// times. `24h` is for models at OpenAI up to `gpt-5.5`, and costs nothing; `12h` is for later ones, by Responses, and keeps the system message: writing it then
    /// costs 2.5 times the price of input instead of 1.25 times.
    #[key(as = Option<CacheWord>, none = "as short as the provider keeps it")]
    pub prompt_cache: Option<CacheLifetime>,
    /// Whether a parameter that the model is known not to accept is an error. Otherwise it is left out, and the log says so.
    #[key(default = false)]
    pub strict: bool,
    /// Further fields of the request, which are passed to the provider unchanged. Addresses in them, and tools of the provider,
    /// must also be allowed on the command line.
    pub extra: Map<String, Value>,
}

/// How much a model reasons.
#[derive(Config)]
#[config(name = "Effort", for = Effort)]
enum EffortWord {
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
    #[config(name = "xhigh")]
    XHigh,
    /// As much as possible.
    Max,
}

/// Whether the provider returns reasoning.
#[derive(Config)]
#[config(name = "Thinking", for = Thinking)]
enum ThinkingWord {
    /// It returns none.
    Hidden,
    /// It returns a summary.
    Summary,
}

/// How long the provider keeps the prompt in its cache.
#[derive(Config)]
#[config(name = "PromptCache", for = CacheLifetime)]
enum CacheWord {
    /// Five minutes.
    #[config(name = "5m")]
    FiveMinutes,
    /// An hour.
    #[config(name = "1h")]
    Hour,
    /// Twelve hours.
    #[config(name = "12h")]
    HalfDay,
    /// A day.
    #[config(name = "24h")]
    Day,
}

/// Whether the model must call a tool.
#[derive(Config)]
#[config(name = "ToolChoice", for = ToolChoice)]
enum ToolChoiceKey {
    /// The model decides.
    Auto,
    /// It must not call a tool.
    None,
    /// It must call a tool.
    Any,
    /// It must call the tool of this name.
    Tool(String),
}

impl Parameters {
    /// Returns whether everything is left to the provider.
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
            schema: of.schema.map(|schema| Value::Object(schema.value.0)),
            json: false,
            effort: of.effort,
            thinking: of.thinking,
            tool_choice: of.tool_choice,
            parallel_tool_calls: of.parallel_tool_calls,
            prompt_cache: of.prompt_cache,
            strict: of.strict,
            extra: of.extra,
        }
    }
}
