//! Replies of models, whole and in streamed pieces.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::digest::{Digest, RequestPrefix};
use super::history_summary::CallPurpose;
use super::money::Money;
use super::name::Name;
use super::part::{FinishReason, Part, ToolCall, text_of};
use super::usage::{CallCost, TotalUsage, Usage};
use super::verbatim::Verbatim;

/// A reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Thoughts, text and calls, in order.
    pub parts: Vec<Part>,
    /// The finish reason.
    pub finish: FinishReason,
    /// Tokens as counted by the provider.
    #[serde(default)]
    pub usage: Usage,
    /// Whether the reply came from a cache of replies and costs nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// What later requests return to the provider unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Arc<Verbatim>>,
    /// The model that replied, if the one that was asked chooses among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Arc<AnsweredBy>>,
}

/// The model that replied, one of several that were to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredBy {
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// The cost of its reply, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CallCost>,
    /// What was wrong with the models before it: their errors, or why they were not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Arc<str>>,
}

impl std::fmt::Display for Reply {
    /// Its text, without reasoning.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

impl Reply {
    /// Creates a reply of one text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let (parts, finish) = (vec![Part::text(text)], FinishReason::Stop);
        Self { parts, finish, usage: Usage::default(), cached: false, verbatim: None, answered_by: None }
    }

    /// Joins this truncated reply with the one that continues it. The usage is that of the second. Nothing stays verbatim.
    #[must_use]
    pub fn continued(self, rest: Self) -> Self {
        Self { parts: joined(self.parts, &rest.parts), verbatim: None, ..rest }
    }

    /// Joins this reply, which its provider [paused](FinishReason::Paused), with the one that resumes it: the parts of both in order,
    /// what is returned verbatim of both, and the usage of both.
    #[must_use]
    pub fn resumed(mut self, rest: Self) -> Self {
        let verbatim = |reply: &mut Self| reply.verbatim.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        let (mut rest, count) = (rest, self.parts.len());
        let both = verbatim(&mut self).followed_by(count, verbatim(&mut rest));
        self.parts.append(&mut rest.parts);
        Self {
            parts: self.parts,
            usage: self.usage.and(rest.usage),
            verbatim: both.some().map(Arc::new),
            ..rest
        }
    }

    /// Returns whether the reply has no tool call but one that its provider could not parse: the model is asked again.
    pub fn is_unparsed(&self) -> bool {
        self.finish.is_unparsed(&self.parts)
    }

    /// Returns the text of the reply, without thoughts.
    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.parts)
    }

    /// Returns the tool calls of the reply, in order.
    pub fn calls(&self) -> Vec<ToolCall> {
        let call = |part: &Part| match part {
            Part::ToolCall(call) => Some(call.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(call).collect()
    }
}

/// The reply of a finished model call, with its usage and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The agent that called the model.
    pub who: Name,
    /// The model that replied, as `provider:model`.
    pub model: Arc<str>,
    /// The model that was requested, if another one replied because it failed, or because its provider chose that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<Arc<str>>,
    /// What was wrong with the models before the one that replied: their errors, or why they were not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Arc<str>>,
    /// Identifies the request.
    pub request: Digest,
    /// Identifies its beginning, if the provider reports the use of its prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<RequestPrefix>,
    /// The content of the reply.
    pub parts: Vec<Part>,
    /// The finish reason.
    pub finish: FinishReason,
    /// Tokens; unknown counts are omitted.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// Money; omitted if a price or a token count is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The cost without the provider's prompt cache; omitted if it was not used, or the cost is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncached_cost: Option<Money>,
    /// Whether the reply came from a cache of replies: usage and cost are then those of the original call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// What later requests return to the provider unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Arc<Verbatim>>,
    /// The output limit of the request, in tokens, if the provider reports more output than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<u64>,
    /// What the call was for.
    #[serde(default, skip_serializing_if = "CallPurpose::is_turn")]
    pub purpose: CallPurpose,
}

impl ModelReply {
    /// Creates the event data of a complete reply with `parts` to the request `request`, whose tokens and cost are not known.
    pub fn new(who: Name, model: impl Into<Arc<str>>, request: Digest, parts: Vec<Part>) -> Self {
        Self {
            who,
            model: model.into(),
            requested_model: None,
            because: None,
            request,
            prefix: None,
            parts,
            finish: FinishReason::Stop,
            usage: Usage::default(),
            cost: None,
            uncached_cost: None,
            cached: false,
            verbatim: None,
            output_limit: None,
            purpose: CallPurpose::Turn,
        }
    }

    /// Returns whether the reply has no tool call but one that its provider could not parse. The model is asked again, and what it has of a text is
    /// not said, unless the last reply that is asked for is such a one, too.
    pub fn is_unparsed(&self) -> bool {
        self.finish.is_unparsed(&self.parts)
    }
}

impl TotalUsage {
    /// Adds a call.
    pub fn add(&mut self, reply: &ModelReply) {
        self.add_call(&reply.usage, reply.cost, reply.cached);
        if !reply.cached {
            self.prompt_cache.add(&reply.usage, reply.cost, reply.uncached_cost);
        }
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
    /// Receives the next piece.
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
        /// The index of the call in the reply, from 0.
        index: usize,
        /// The tool's name, with the call's first piece.
        tool: Option<&'a str>,
        /// A piece of the arguments' JSON.
        args: &'a str,
    },
    /// The reply broke off and starts over: discard the pieces so far.
    Restart,
    /// An attempt failed, and the call is retried after a wait.
    Retry {
        /// The cause in a few words, such as `429 from` and the provider.
        cause: &'a str,
        /// The number of the retry that follows, from 1.
        retry: u32,
        /// The maximum number of retries.
        retries: u32,
        /// The wait before it.
        wait: Duration,
    },
    /// The call failed, and another model is asked. What streamed before is discarded.
    Fallback {
        /// The cause in a few words.
        cause: &'a str,
        /// The model that is asked now, as `provider:model`.
        model: &'a str,
    },
}

impl DeltaRef<'_> {
    /// Adds this piece to the `pieces` of its reply so far. Pieces of one kind are joined, so that they are few, however long the reply is;
    /// what does not count any more is removed.
    ///
    /// ```
    /// use polylogue_core::{Delta, DeltaRef};
    ///
    /// let mut pieces = Vec::new();
    /// for piece in ["wrong", "one ", "two"] {
    ///     DeltaRef::Text(piece).join_to(&mut pieces);
    ///     if piece == "wrong" {
    ///         DeltaRef::Restart.join_to(&mut pieces);
    ///     }
    /// }
    /// assert_eq!(pieces, [Delta::Text("one two".into())]);
    /// ```
    pub fn join_to(self, pieces: &mut Vec<Delta>) {
        if matches!(self, Self::Restart | Self::Retry { .. } | Self::Fallback { .. }) {
            pieces.clear();
        }
        match (pieces.last_mut(), self) {
            (_, Self::Restart) => {}
            (Some(Delta::Text(text)), Self::Text(more)) => text.push_str(more),
            (Some(Delta::Thought(text)), Self::Thought(more)) => text.push_str(more),
            (Some(Delta::Call { index, args, .. }), Self::Call { index: same, tool: None, args: more })
                if *index == same =>
            {
                args.push_str(more);
            }
            (_, delta) => pieces.push(delta.into()),
        }
    }
}

impl<'a> From<&'a Delta> for DeltaRef<'a> {
    fn from(delta: &'a Delta) -> Self {
        match delta {
            Delta::Text(text) => Self::Text(text),
            Delta::Thought(text) => Self::Thought(text),
            Delta::Call { index, tool, args } => Self::Call { index: *index, tool: tool.as_deref(), args },
            Delta::Restart => Self::Restart,
            Delta::Retry { cause, retry, retries, wait } => {
                Self::Retry { cause, retry: *retry, retries: *retries, wait: *wait }
            }
            Delta::Fallback { cause, model } => Self::Fallback { cause, model },
        }
    }
}

/// Pushes the parts of a complete reply: texts, reasoning and tool calls, each in one piece.
pub fn push_parts(parts: &[Part], deltas: &mut dyn DeltaSink) {
    let mut index = 0;
    for part in parts {
        match part {
            Part::Text(text) if !text.is_empty() => deltas.push(DeltaRef::Text(text)),
            Part::Thought(text) if !text.is_empty() => deltas.push(DeltaRef::Thought(text)),
            Part::ToolCall(call) => {
                let args = call.args.to_string();
                deltas.push(DeltaRef::Call { index, tool: Some(&call.tool), args: &args });
                index += 1;
            }
            _ => {}
        }
    }
}

/// Ignores all pieces.
impl DeltaSink for () {
    fn push(&mut self, _: DeltaRef<'_>) {}
}

/// A piece of a reply: an owned [`DeltaRef`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// A piece of text.
    Text(String),
    /// A piece of reasoning.
    Thought(String),
    /// A piece of a tool call.
    Call {
        /// The index of the call in the reply, from 0.
        index: usize,
        /// The tool's name, with the call's first piece.
        tool: Option<String>,
        /// A piece of the arguments' JSON.
        args: String,
    },
    /// The reply broke off and starts over: discard the pieces so far.
    Restart,
    /// An attempt failed, and the call is retried after a wait.
    Retry {
        /// The cause in a few words, such as `429 from` and the provider.
        cause: String,
        /// The number of the retry that follows, from 1.
        retry: u32,
        /// The maximum number of retries.
        retries: u32,
        /// The wait before it.
        wait: Duration,
    },
    /// The call failed, and another model is asked. What streamed before is discarded.
    Fallback {
        /// The cause in a few words.
        cause: String,
        /// The model that is asked now, as `provider:model`.
        model: String,
    },
}

impl From<DeltaRef<'_>> for Delta {
    fn from(delta: DeltaRef<'_>) -> Self {
        match delta {
            DeltaRef::Text(text) => Self::Text(text.to_owned()),
            DeltaRef::Thought(text) => Self::Thought(text.to_owned()),
            DeltaRef::Call { index, tool, args } => {
                Self::Call { index, tool: tool.map(str::to_owned), args: args.to_owned() }
            }
            DeltaRef::Restart => Self::Restart,
            DeltaRef::Retry { cause, retry, retries, wait } => {
                Self::Retry { cause: cause.to_owned(), retry, retries, wait }
            }
            DeltaRef::Fallback { cause, model } => {
                Self::Fallback { cause: cause.to_owned(), model: model.to_owned() }
            }
        }
    }
}
