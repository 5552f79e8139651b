//! The JSON of the Responses API: one type for whole responses and for the events of streamed ones.
//!
//! Everything is optional, `null` counts as missing, and texts are borrowed from the received bytes.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::wire::lenient::{Arguments, Count, Text};
use crate::wire::object::Object;

/// An event, or a whole response.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    /// The type of an event; a whole response has none.
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(default)]
    pub(super) summary_index: Count,
    #[serde(borrow, default)]
    pub(super) delta: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'a>,
    pub(super) item: Option<Value>,
    pub(super) response: Option<Box<Response>>,
    // The fields of a whole response.
    #[serde(borrow, default)]
    pub(super) object: Text<'a>,
    pub(super) status: Option<String>,
    pub(super) output: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) usage: Object<Box<Tokens>>,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) error: Option<Value>,
    /// Some servers use these instead of `error`.
    pub(super) message: Option<IgnoredAny>,
    pub(super) detail: Option<IgnoredAny>,
}

/// A response within an event: its beginning, or all of it at the end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) status: Option<String>,
    pub(super) output: Option<Vec<Value>>,
    pub(super) usage: Object<Box<Tokens>>,
    pub(super) incomplete_details: Option<Incomplete>,
    pub(super) error: Option<Value>,
}

/// Why a response is incomplete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Incomplete {
    pub(super) reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    input_tokens: Count,
    input_tokens_details: Object<Details>,
    output_tokens: Count,
    output_tokens_details: Object<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
    cache_write_tokens: Count,
    cache_write_tokens_details: Object<Lifetimes>,
    reasoning_tokens: Count,
}

/// Tokens written to a cache, by how long they stay there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lifetimes {
    ttl_12h_tokens: Count,
}

impl Tokens {
    /// The usage. A count of zero for a prompt is unknown, since a prompt is never empty.
    pub(super) fn usage(&self) -> polylogue_core::Usage {
        let Some(input) = self.input_tokens.0.filter(|&tokens| tokens > 0) else {
            return polylogue_core::Usage::default();
        };
        let read = self.input_tokens_details.0.as_ref();
        let lifetimes = read.and_then(|details| details.cache_write_tokens_details.0.as_ref());
        polylogue_core::Usage {
            input: Some(input),
            output: self.output_tokens.0,
            cached: read.and_then(|details| details.cached_tokens.0),
            written: read.and_then(|details| details.cache_write_tokens.0),
            written_long: lifetimes.and_then(|lifetimes| lifetimes.ttl_12h_tokens.0),
            audio: None,
            reasoning: self.output_tokens_details.0.as_ref().and_then(|details| details.reasoning_tokens.0),
        }
    }
}
