//! Events: the entries of a log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::name::is_label;
use crate::{
    Call, Capability, Charge, Choice, Failure, LimitOverrides, Message, Money, Name, Outcome, Part,
    StopReason, Usage,
};

/// One entry of a log.
///
/// Written as one flat JSON object: `{"seq":4,"at":"","time_ms":1763712000000,"type":"message","from":...}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its position in the log, counted from 0 without gaps.
    pub seq: u64,
    /// The path of its chat.
    #[serde(default, skip_serializing_if = "Path::is_root")]
    pub at: Path,
    /// The time of day when it was appended.
    #[serde(rename = "time_ms")]
    pub time: Timestamp,
    /// The running time of the conversation by then in milliseconds, by a monotonic clock. The time in which no
    /// process ran it does not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ran_ms: u64,
    /// The content.
    #[serde(flatten)]
    pub body: Body,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The type and content of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// A chat began. One event, so that an opening is never half written.
    Opened(Opening),
    /// Turns began: one, or several in parallel. One event, so that it is never half written.
    TurnStarted {
        /// The requests, in the order in which the messages of the turns are logged.
        turns: Vec<TurnRequest>,
    },
    /// A model call finished. Contains the reply, so that a finished call is never repeated.
    ModelReplied(ModelReply),
    /// Model calls without a known usage count at their upper bound. Agents do not see it.
    Charged(Charge),
    /// A model does not support what was requested, such as tool calls. Its agent continues in another way.
    CapabilityMissing {
        /// The agent that asked.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// The missing capability.
        capability: Capability,
        /// The error message of the model or its server.
        why: Arc<str>,
    },
    /// The rest of a truncated reply could not be requested. The reply stays unchanged.
    ContinuationFailed {
        /// The agent whose reply it is.
        who: Name,
        /// The error message of the model or its server.
        why: Arc<str>,
    },
    /// An agent prompted its own model, such as with what was wrong with its last reply.
    Prompted {
        /// The agent.
        who: Name,
        /// The prompt.
        text: Arc<str>,
    },
    /// What an agent remembers of its turn instead of everything in it, its own message included.
    Remembered {
        /// The agent.
        who: Name,
        /// The messages that it remembers, in order.
        entries: Vec<HistoryEntry>,
    },
    /// A tool call began.
    ToolCalled {
        /// The agent that calls.
        who: Name,
        /// The call.
        call: Call,
    },
    /// A tool call finished.
    ToolReturned {
        /// The agent that called.
        who: Name,
        /// The call's `id`.
        id: String,
        /// The result.
        outcome: Outcome,
    },
    /// A turn ended with a message. A turn ends with exactly one of `Message`, `Passed`, `Left` and `Stopped`.
    Message(Message),
    /// A turn ended without a message.
    Passed {
        /// Whose turn it was.
        who: Name,
    },
    /// A turn ended with its agent leaving the chat.
    Left {
        /// Who left.
        who: Name,
        /// Why.
        why: String,
    },
    /// A turn ended with its agent ending the chat.
    Stopped {
        /// Whose turn it was.
        who: Name,
        /// Why.
        reason: StopReason,
    },
    /// A late joiner, or a participant that had left, joined.
    Joined {
        /// Who.
        who: Name,
        /// The earlier messages that it sees.
        sees: JoinHistory,
    },
    /// Earlier messages were removed from views. They stay in the log.
    Cleared {
        /// The participant in whose turn it happened.
        who: Name,
        /// The participant whose view is cleared; `None` clears the views of all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<Name>,
        /// How many of the last messages stay visible. A call and its result count as one.
        keep: usize,
    },
    /// The policy posted a message without a turn.
    Posted(Message),
    /// A person is asked; the answer may come in another process, or another week.
    InputRequired(Question),
    /// A person answered the chat's open question of `to`.
    InputProvided {
        /// The participant that asked.
        to: Name,
        /// The answer.
        text: Arc<str>,
    },
    /// A turn failed. It stays open and is retried when the chat is run again.
    Failed {
        /// Whose turn it was.
        who: Name,
        /// The error.
        error: Failure,
    },
    /// A chat ended.
    Closed {
        /// The stop reason.
        reason: StopReason,
        /// The result.
        summary: Arc<str>,
    },
    /// A closed chat continues: under a higher limit, or with a new message.
    Reopened {
        /// The new message, if there is one. Turns and messages of the chat are then counted from 0 again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    },
    /// Limits of the conversation were changed from outside. Agents do not see it.
    LimitsChanged(LimitOverrides),
    /// Events of this chat since an event are rolled back: a call of an agent that failed, or what an agent must
    /// forget. They stay in the log, and their cost counts.
    RolledBack {
        /// The `seq` of the first event that is rolled back.
        since: u64,
    },
}

/// A message that an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryEntry {
    /// A message that it received.
    Received(Arc<str>),
    /// A message of its own.
    Sent(Arc<str>),
}

/// Which earlier messages late joiners see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinHistory {
    /// All messages to everyone or to them.
    #[default]
    All,
    /// Only messages from now on.
    New,
}

/// How a chat begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// The participants, in order.
    pub participants: Vec<Name>,
    /// The participants that can join later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_joiners: Vec<Name>,
    /// The task of the chat; system messages can quote it.
    pub task: Arc<str>,
    /// A text that every participant receives before all messages. It is not a message of the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduction: Option<Arc<str>>,
    /// The messages before the first turn. If there are none, the policy begins.
    pub messages: Vec<Message>,
    /// How many of the first messages are inherited from an earlier conversation. Limits do not count them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inherited: u64,
}

/// A request for a turn: who has it, with which prompt, for which audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// The participant.
    pub who: Name,
    /// A prompt for this agent alone, the last message in its view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// The audience of its message.
    #[serde(default, skip_serializing_if = "crate::Audience::is_all")]
    pub to: crate::Audience,
    /// How the participant was selected, if there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Box<Choice>>,
}

impl TurnRequest {
    /// A turn of `who` whose message all participants see.
    #[must_use]
    pub const fn to_all(who: Name) -> Self {
        Self { who, prompt: None, to: crate::Audience::All, choice: None }
    }

    /// A private turn: `who` receives `prompt`, and only the policy sees the reply.
    #[must_use]
    pub fn private(who: Name, prompt: impl Into<Arc<str>>) -> Self {
        Self { who, prompt: Some(prompt.into()), to: crate::Audience::private(), choice: None }
    }

    /// The same request, with how the participant was selected.
    #[must_use]
    pub fn with_choice(self, choice: Choice) -> Self {
        Self { choice: Some(Box::new(choice)), ..self }
    }
}

/// The reply of a finished model call, with its usage and cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The agent that called the model.
    pub who: Name,
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// Identifies the request.
    pub request: Digest,
    /// The content of the reply.
    pub parts: Vec<Part>,
    /// The finish reason.
    pub finish: Finish,
    /// Tokens; unknown counts are omitted.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// Money; omitted if a price or a token count is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Whether the reply came from a cache of replies: usage and cost are then those of the original call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// The finish reason of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The reply is complete, or a stop sequence was reached.
    Stop,
    /// It calls tools.
    Calls,
    /// The limit on tokens was reached: the reply is truncated.
    Length,
    /// The provider's content filter removed the rest.
    Filter,
    /// The provider reported no reason.
    Unknown,
}

impl Finish {
    /// Whether the reply is incomplete: truncated at the limit on tokens, or filtered.
    #[must_use]
    pub const fn is_cut(self) -> bool {
        matches!(self, Self::Length | Self::Filter)
    }
}

impl fmt::Display for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "whole",
            Self::Calls => "calls of tools",
            Self::Length => "cut off at the limit on tokens",
            Self::Filter => "cut off by the provider's filter",
            Self::Unknown => "unknown",
        })
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The participant that asks for the person's input.
    pub who: Name,
    /// The text of the question.
    pub text: Arc<str>,
    /// The call that waits for approval, if the question asks for one. The text shows its arguments in full; display
    /// it verbatim, never as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

impl Question {
    /// A question of `who` that asks for text, not for approval.
    #[must_use]
    pub fn new(who: Name, text: impl Into<Arc<str>>) -> Self {
        Self { who, text: text.into(), call: None }
    }

    /// Whether it asks for approval.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        self.call.is_some()
    }
}

/// Identifies a request: the first 16 bytes of the BLAKE3 hash of its content, as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub(crate) [u8; 16]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        number.map(|n| Self(n.to_be_bytes())).ok_or_else(|| format!("`{text}` is no digest of 32 hex digits"))
    }
}

/// Milliseconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// The path of a chat: empty for the outermost, `/critic.2` for the second turn of its participant `critic` that is a
/// chat itself, `/critic.2/judge.1` one level deeper. The second chat that one turn runs is `/critic.2.2`. The chat
/// in which an agent is called again and again has no number: `/blogger/writer` is where `blogger` calls its
/// `writer`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(Arc<str>);

impl Path {
    /// The outermost chat.
    #[must_use]
    pub fn root() -> Self {
        Self("".into())
    }

    /// The chat that `who` runs in its `turn`-th turn here, counted from 1.
    #[must_use]
    pub fn child(&self, who: &Name, turn: u64) -> Self {
        Self(format!("{}/{who}.{turn}", self.0).into())
    }

    /// The path below this one at which the agent with this label is called: its chat continues with every call.
    /// `items.0` is the path `0` within `items`.
    ///
    /// # Errors
    /// When a part of the label between dots is empty, or has characters that a [`Name`] cannot have.
    pub fn room(&self, label: &str) -> crate::Result<Self> {
        if !label.split('.').all(is_label) {
            let rule = "must be made of the characters of names, in parts between dots";
            return Err(crate::Error::Config(format!("the label `{label}` {rule}")));
        }
        Ok(Self(format!("{}/{}", self.0, label.replace('.', "/")).into()))
    }

    /// The `nth` chat, from 0, of those that one turn runs: this path is that of the first.
    #[must_use]
    pub(crate) fn sibling(&self, nth: u64) -> Self {
        if nth == 0 { self.clone() } else { Self(format!("{}.{}", self.0, nth + 1).into()) }
    }

    /// Whether it is the first, or only, chat of a turn, and not one in which an agent is called.
    pub(crate) fn is_first(&self) -> bool {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        last.matches('.').count() == 1
    }

    /// Whether it is within a turn of `who` in the chat `outer`, or within a chat there in which an agent is called.
    pub(crate) fn is_of_turn(&self, outer: &Self, who: &Name) -> bool {
        let Some(rest) = self.0.strip_prefix(&*outer.0).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        let first = rest.split('/').next().unwrap_or_default();
        first.split_once('.').is_none_or(|(name, _)| name == who.as_str())
    }

    /// The participant that runs this chat in a turn; `None` for the outermost and for chats of called agents.
    pub(crate) fn owner(&self) -> Option<Name> {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        Name::new(last.split_once('.')?.0).ok()
    }

    /// Whether it is the outermost chat.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is below `outer`.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        self.0.strip_prefix(&*outer.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The nesting depth: 0 for the outermost.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.matches('/').count()
    }

    /// The chats around it, nearest first, ending with the outermost.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let mut rest: &str = &self.0;
        std::iter::from_fn(move || {
            rest = &rest[..rest.rfind('/')?];
            Some(Self(rest.into()))
        })
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Path {
    fn default() -> Self {
        Self::root()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
