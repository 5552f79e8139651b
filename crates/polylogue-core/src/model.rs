//! Models: requests and replies.

mod invariants;
mod stops;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::stops::Stopped;
use crate::{
    Call, Capabilities, Capability, Fault, Finish, Money, Name, Outcome, Part, Path, Reservation, ToolSpec,
    Usage, plain,
};

/// A chat model: a provider over HTTP, a script, a recording.
///
/// One model value serves any number of conversations at once and keeps no state of any of them.
pub trait Model: Send + Sync + 'static {
    /// Its name as `provider:model`.
    fn name(&self) -> &str;

    /// Replies to `request`, streaming the pieces to `deltas` as they arrive.
    ///
    /// The reply is complete: callers that do not stream can ignore the deltas.
    ///
    /// # Errors
    /// When there is no reply, after the model's own retries.
    fn complete(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send;

    /// The cost of a call with `usage`; `None` if unknown.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        let _ = usage;
        None
    }

    /// The maximum length of a reply with `params`, in tokens, reasoning included; `None` if no limit is known.
    ///
    /// Under a limit on money, a call is reserved at this length before it is sent; see [`Bound`](crate::Bound).
    fn max_output(&self, params: &Params) -> Option<u64> {
        params.max_tokens.map(u64::from)
    }

    /// The configured capabilities, known before any call. A capability that a call finds missing is an
    /// error of the kind [`ModelErrorKind::Unsupported`].
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

/// Any model. Cloning shares it.
#[derive(Clone)]
pub struct AnyModel(Arc<dyn ErasedModel>);

trait ErasedModel: Send + Sync {
    fn name(&self) -> &str;
    fn complete<'a>(
        &'a self,
        request: &'a Request<'_>,
        deltas: &'a mut dyn DeltaSink,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
    fn cost(&self, usage: &Usage) -> Option<Money>;
    fn max_output(&self, params: &Params) -> Option<u64>;
    fn capabilities(&self) -> Capabilities;
}

impl<M: Model> ErasedModel for M {
    fn name(&self) -> &str {
        Model::name(self)
    }
    fn complete<'a>(
        &'a self,
        request: &'a Request<'_>,
        deltas: &'a mut dyn DeltaSink,
    ) -> Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>> {
        Box::pin(Model::complete(self, request, deltas))
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        Model::cost(self, usage)
    }
    fn max_output(&self, params: &Params) -> Option<u64> {
        Model::max_output(self, params)
    }
    fn capabilities(&self) -> Capabilities {
        Model::capabilities(self)
    }
}

impl AnyModel {
    /// Wraps `model`.
    pub fn new(model: impl Model) -> Self {
        Self(Arc::new(model))
    }
}

impl Model for AnyModel {
    fn name(&self) -> &str {
        self.0.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let stops = &request.params.stop;
        if stops.is_empty() {
            return self.0.complete(request, deltas).await;
        }
        let mut stopped = Stopped::new(stops, deltas);
        let reply = self.0.complete(request, &mut stopped).await?;
        stopped.finish();
        Ok(stops::cut(reply, stops))
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.0.cost(usage)
    }
    fn max_output(&self, params: &Params) -> Option<u64> {
        self.0.max_output(params)
    }
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}

impl fmt::Debug for AnyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyModel").field(&self.0.name()).finish()
    }
}

/// A request to a model: one agent's view of a conversation, with tools and parameters.
///
/// Borrowed from the view, so that its cost does not grow with the conversation.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The position of the call in the conversation.
    pub origin: Origin<'a>,
    /// The system message.
    pub system: Option<&'a str>,
    /// The conversation so far. Never empty, and its last entry is never the agent's own.
    pub entries: &'a [Entry],
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// Temperature and other parameters.
    pub params: &'a Params,
    /// A cache for what a provider has encoded of this view.
    pub encoded: &'a EncodeCache,
    /// The reservation of the call: a model that retries reports it here. `None` outside of runs.
    pub reserved: Option<&'a Reservation<'a>>,
}

/// The position of a request: how scripts and recordings find the reply.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The chat.
    pub at: &'a Path,
    /// The agent.
    pub who: &'a Name,
    /// How many model calls of this agent ended before, in the whole conversation: with a reply, or with a failed
    /// turn.
    pub nth: u64,
}

/// One entry of a view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Entry {
    /// A prompt of the program around the agent within the conversation, if the view options ask for the `system`
    /// role.
    System {
        /// The content; never empty.
        parts: Vec<Part>,
    },
    /// A message of another participant, with its name in the text where names are shown.
    User {
        /// The content; never empty.
        parts: Vec<Part>,
    },
    /// A message of the agent itself: text and tool calls.
    Assistant {
        /// The content; never empty, calls last.
        parts: Vec<Part>,
    },
    /// The result of one call of the entry before, in the order of the calls.
    Tool {
        /// The call's `id`.
        id: String,
        /// The tool's name.
        tool: String,
        /// The result.
        outcome: Outcome,
    },
}

impl Entry {
    /// A text of another participant.
    #[must_use]
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { parts: vec![Part::text(text)] }
    }

    /// A text of the agent itself.
    #[must_use]
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::Assistant { parts: vec![Part::text(text)] }
    }

    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::System { parts } | Self::User { parts } | Self::Assistant { parts } => parts,
            Self::Tool { outcome, .. } => &outcome.parts,
        }
    }
}

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

/// A reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Thoughts, text and calls, in order.
    pub parts: Vec<Part>,
    /// The finish reason.
    pub finish: Finish,
    /// Tokens as counted by the provider.
    #[serde(default)]
    pub usage: Usage,
    /// Whether it came from a cache of replies and costs nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

impl Reply {
    /// A reply of one text.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { parts: vec![Part::text(text)], finish: Finish::Stop, usage: Usage::default(), cached: false }
    }

    /// This truncated reply joined with the one that continues it. The usage is that of the second.
    #[must_use]
    pub fn continued(self, rest: Self) -> Self {
        Self { parts: joined(self.parts, &rest.parts), ..rest }
    }

    /// Its text, without thoughts.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, str> {
        plain(&self.parts)
    }

    /// Its tool calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        let call = |part: &Part| match part {
            Part::Call(call) => Some(call.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(call).collect()
    }
}

/// The parts of a truncated reply and of the one that continues it: the last text of the one and the first of the
/// other become one text.
pub(crate) fn joined(mut before: Vec<Part>, rest: &[Part]) -> Vec<Part> {
    let mut texts = rest.iter().enumerate().filter(|(_, part)| matches!(part, Part::Text(_)));
    let first = texts.next();
    let last = before.iter_mut().rev().find(|part| matches!(part, Part::Text(_)));
    let joint = match (last, first) {
        (Some(Part::Text(last)), Some((at, Part::Text(first)))) => {
            *last = format!("{last}{first}").into();
            Some(at)
        }
        _ => None,
    };
    let others = rest.iter().enumerate().filter(|(at, _)| Some(*at) != joint).map(|(_, part)| part.clone());
    before.extend(others);
    before
}

/// Receives the pieces of a reply as they stream. They are shown, never stored.
pub trait DeltaSink: Send {
    /// Called for each piece.
    fn push(&mut self, delta: DeltaRef<'_>);
}

/// A piece of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaRef<'a> {
    /// A piece of text.
    Text(&'a str),
    /// A piece of reasoning.
    Thought(&'a str),
    /// A piece of a tool call.
    Call {
        /// Which call of the reply, from 0.
        index: usize,
        /// The tool's name, with the call's first piece.
        tool: Option<&'a str>,
        /// A piece of the arguments' JSON.
        args: &'a str,
    },
    /// The reply broke off and starts over: discard the pieces so far.
    Restart,
}

/// Ignores all pieces.
impl DeltaSink for () {
    fn push(&mut self, _: DeltaRef<'_>) {}
}

/// A cache in a view for what a provider keeps between two requests, such as encoded entries. Cleared when entries of
/// the view are dropped, so its content always belongs to a prefix.
#[derive(Default)]
pub struct EncodeCache(Mutex<Option<Box<dyn Any + Send>>>);

impl EncodeCache {
    /// Takes out the content, if it is a `T`.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.and_then(|value| value.downcast::<T>().ok()).map(|value| *value)
    }

    /// Replaces the content.
    pub fn put<T: Any + Send>(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(value));
    }
}

impl fmt::Debug for EncodeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncodeCache")
    }
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {message}")]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ModelErrorKind,
    /// The model, as `provider:model`.
    pub model: String,
    /// The error message. Never contains a key.
    pub message: String,
    /// The HTTP status, if one was received.
    pub status: Option<u16>,
    /// The beginning of the response body.
    pub body: Option<String>,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The kind of a model error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The caller's settings are wrong: no key, unknown model, invalid parameter.
    Config,
    /// The endpoint cannot be reached, or the connection broke.
    Connection,
    /// A timeout.
    Timeout,
    /// The provider refused: rate limit, quota, server error.
    Refused,
    /// The provider's reply cannot be parsed.
    Protocol,
    /// A script or a recording has no such step.
    Script,
    /// The request breaks an invariant: a bug in Polylogue.
    Bug,
    /// The model or its server lacks a capability that the request needs. Another form of request may work.
    Unsupported(Capability),
}

impl ModelError {
    /// An error of `model` with a message only.
    #[must_use]
    pub fn new(kind: ModelErrorKind, model: impl Into<String>, message: impl Into<String>) -> Self {
        let (model, message) = (model.into(), message.into());
        Self { kind, model, message, status: None, body: None, hint: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Who can fix it.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self.kind {
            ModelErrorKind::Config | ModelErrorKind::Script | ModelErrorKind::Unsupported(_) => Fault::Config,
            ModelErrorKind::Bug => Fault::Bug,
            _ => Fault::Provider,
        }
    }
}
