//! Models: what is asked of them and what they reply.

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

/// Something that completes conversations: a provider over HTTP, a script, a recording.
///
/// One model value serves any number of conversations at once and holds nothing of any of them.
pub trait Model: Send + Sync + 'static {
    /// Its name as `provider:model`.
    fn name(&self) -> &str;

    /// Replies to `request`, telling `deltas` of the pieces as they arrive.
    ///
    /// The reply is whole: whoever does not care for streaming ignores the deltas.
    ///
    /// # Errors
    /// When there is no reply, after whatever retries the model does by itself.
    fn complete(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send;

    /// What a call that used `usage` costs; `None` when that is unknown.
    fn cost(&self, usage: &Usage) -> Option<Money> {
        let _ = usage;
        None
    }

    /// The longest reply to a request with `params`, in tokens, reasoning included; `None` when no limit is known.
    ///
    /// A call is reserved at this length before it is sent under a limit on money; see [`Bound`](crate::Bound).
    fn max_output(&self, params: &Params) -> Option<u64> {
        params.max_tokens.map(u64::from)
    }

    /// What it is known to be able to do, or not, before it is asked. It is configuration: what turns out in a call is an
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

/// What a model is asked: one agent's view of a conversation, and how to go on from it.
///
/// Borrowed from the view, so that asking costs nothing that grows with the conversation.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Which call of which agent this is.
    pub origin: Origin<'a>,
    /// The system text.
    pub system: Option<&'a str>,
    /// The conversation so far. Never empty, and its last entry is never the agent's own words.
    pub entries: &'a [Entry],
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// Temperature and the like.
    pub params: &'a Params,
    /// Room for what a provider keeps between two requests of one view.
    pub encoded: &'a EncodeCache,
    /// What is reserved for it: a model that tries again says so here. `None` outside of runs.
    pub reserved: Option<&'a Reservation<'a>>,
}

/// Which call of which agent a request is: what scripts and recordings go by.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The chat.
    pub at: &'a Path,
    /// The agent.
    pub who: &'a Name,
    /// How many model calls of this agent came to an end before, in the whole conversation: with a reply, or with a turn
    /// that failed.
    pub nth: u64,
}

/// One entry of a view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Entry {
    /// What the program around the agent tells it within the conversation, where the agent's lens wants this in the
    /// `system` role.
    System {
        /// What it is told; never empty.
        parts: Vec<Part>,
    },
    /// What somebody else said, names already written into it where they are shown.
    User {
        /// What was said; never empty.
        parts: Vec<Part>,
    },
    /// What the agent said itself: text, and calls of tools.
    Assistant {
        /// What it said; never empty, calls last.
        parts: Vec<Part>,
    },
    /// What came of one call of the entry before, in the order of the calls.
    Tool {
        /// The call's `id`.
        id: String,
        /// The tool's name.
        tool: String,
        /// What came of it.
        outcome: Outcome,
    },
}

impl Entry {
    /// Text of somebody else.
    #[must_use]
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self::User { parts: vec![Part::text(text)] }
    }

    /// Text of the agent itself.
    #[must_use]
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self::Assistant { parts: vec![Part::text(text)] }
    }

    /// Its parts.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::System { parts } | Self::User { parts } | Self::Assistant { parts } => parts,
            Self::Tool { outcome, .. } => &outcome.parts,
        }
    }
}

/// How a model is to write. What is `None` is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Params {
    /// Randomness, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Only the likeliest tokens that together have this probability, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Only this many of the likeliest tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Makes the provider's randomness repeatable, where it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The longest reply, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts that end the reply. Where a model writes on behind one, the reply is cut before it, and so are its pieces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The JSON Schema that the reply has to satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Whether the reply has to be JSON, of whatever form. A schema says more, and wins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// Further fields, given to the provider as they are.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// What a model replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Thoughts, text and calls, in order.
    pub parts: Vec<Part>,
    /// Why it stopped.
    pub finish: Finish,
    /// Tokens as the provider counted them.
    #[serde(default)]
    pub usage: Usage,
    /// Whether it came from a cache of replies, so that nobody is to be paid for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

impl Reply {
    /// A reply of one text.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self { parts: vec![Part::text(text)], finish: Finish::Stop, usage: Usage::default(), cached: false }
    }

    /// This reply, which was cut off, and the one that continues it, as one. What they used is that of the second.
    #[must_use]
    pub fn continued(self, rest: Self) -> Self {
        Self { parts: joined(self.parts, &rest.parts), ..rest }
    }

    /// Its text, without thoughts.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, str> {
        plain(&self.parts)
    }

    /// The tools it calls, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        let call = |part: &Part| match part {
            Part::Call(call) => Some(call.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(call).collect()
    }
}

/// The parts of a reply that was cut off, and of the one that continues it: the last text of the one and the first of the other are
/// one text.
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

/// Hears the pieces of a reply as they arrive. They are shown, never stored.
pub trait DeltaSink: Send {
    /// A piece arrived.
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
    /// A piece of a tool call: which call of the reply, its tool's name when it begins, a piece of its arguments.
    Call {
        /// Which call of the reply, from 0.
        index: usize,
        /// The tool's name, with the call's first piece.
        tool: Option<&'a str>,
        /// A piece of the arguments' JSON.
        args: &'a str,
    },
    /// The reply broke off and begins anew: forget the pieces so far.
    Restart,
}

/// Hears nothing.
impl DeltaSink for () {
    fn push(&mut self, _: DeltaRef<'_>) {}
}

/// Room in a view for what a provider wants to keep between two requests, such as the entries it has encoded.
/// It is emptied when entries of the view are dropped, so what it holds is always a prefix.
#[derive(Default)]
pub struct EncodeCache(Mutex<Option<Box<dyn Any + Send>>>);

impl EncodeCache {
    /// Takes out what is there, if it is a `T`.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.and_then(|kept| kept.downcast::<T>().ok()).map(|kept| *kept)
    }

    /// Puts `kept` in place of what is there.
    pub fn put<T: Any + Send>(&self, kept: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(kept));
    }
}

impl fmt::Debug for EncodeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

/// Why a model gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {message}")]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelErrorKind,
    /// The model, as `provider:model`.
    pub model: String,
    /// What happened. Never holds a key.
    pub message: String,
    /// The HTTP status, if one was received.
    pub status: Option<u16>,
    /// The beginning of the body that came with it.
    pub body: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// What kind of failure a model error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The caller's settings are wrong: no key, no such model, a parameter that is refused.
    Config,
    /// The endpoint cannot be reached, or the connection broke.
    Connection,
    /// A time limit was met.
    Timeout,
    /// The provider refused: too many requests, a quota, an error of its own.
    Refused,
    /// The provider's reply cannot be read.
    Protocol,
    /// A script or a recording has no such step.
    Script,
    /// The request breaks an invariant.
    Bug,
    /// The model, or its server, cannot do what was asked of it. Asked in another way, it may.
    Unsupported(Capability),
}

impl ModelError {
    /// An error of `model` with no more than a message.
    #[must_use]
    pub fn new(kind: ModelErrorKind, model: impl Into<String>, message: impl Into<String>) -> Self {
        let (model, message) = (model.into(), message.into());
        Self { kind, model, message, status: None, body: None, hint: None }
    }

    /// The same error with advice.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self.kind {
            ModelErrorKind::Config | ModelErrorKind::Script | ModelErrorKind::Unsupported(_) => Fault::Config,
            ModelErrorKind::Bug => Fault::Bug,
            _ => Fault::Provider,
        }
    }
}
