//! What happened: the entries of a log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::is_label;
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
    /// The chat it happened in.
    #[serde(default, skip_serializing_if = "Path::is_root")]
    pub at: Path,
    /// When it was appended.
    #[serde(rename = "time_ms")]
    pub time: Timestamp,
    /// For how many milliseconds the conversation had run by then, by a clock that only goes forward. The time in which no process
    /// ran it does not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ran_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// A chat began. One event, so that an opening is never half written.
    Opened(Opening),
    /// Turns began: one, or several at the same time. One event, so that it is never half written.
    TurnStarted {
        /// Whose turns, in the order in which what they say enters the log.
        turns: Vec<TurnRequest>,
    },
    /// A model call was finished. Holds the reply, so that a finished call is never issued again.
    ModelReplied(ModelReply),
    /// Model calls without a known usage count at their upper bound. It says nothing to anyone in the chat.
    Charged(Charge),
    /// A model could not do what was asked of it, such as to call tools. Its agent goes on in another way.
    CapabilityMissing {
        /// The agent that asked.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// What it cannot do.
        capability: Capability,
        /// What it, or its server, said.
        why: Arc<str>,
    },
    /// The rest of a reply that was cut off could not be had. There is only what there is.
    ContinuationFailed {
        /// The agent whose reply it is.
        who: Name,
        /// What the model, or its server, said.
        why: Arc<str>,
    },
    /// The program around an agent told its model something, such as what was wrong with its last reply.
    Prompted {
        /// The agent that is told.
        who: Name,
        /// What it is told.
        text: Arc<str>,
    },
    /// What an agent remembers of its turn, in place of all that happens in it, what it then says included.
    Remembered {
        /// The agent.
        who: Name,
        /// What it remembers, in order.
        entries: Vec<HistoryEntry>,
    },
    /// A tool call began.
    ToolCalled {
        /// The agent that calls.
        who: Name,
        /// The call.
        call: Call,
    },
    /// A tool call was finished.
    ToolReturned {
        /// The agent that called.
        who: Name,
        /// The call's `id`.
        id: String,
        /// What came of it.
        outcome: Outcome,
    },
    /// A turn ended with a message. A turn ends with exactly one of `Said`, `Passed`, `Left` and `Stopped`.
    Message(Message),
    /// A turn ended without a message.
    Passed {
        /// Whose turn it was.
        who: Name,
    },
    /// A turn ended with its agent leaving the room.
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
    /// Somebody who was not there from the beginning, or had left, is in the room from now on.
    Joined {
        /// Who.
        who: Name,
        /// What they see of what was said without them.
        sees: JoinHistory,
    },
    /// What was said before is out of sight from now on. It stays in the log.
    Cleared {
        /// Whose turn it happens in.
        who: Name,
        /// Out of whose sight: everybody's, or that of one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<Name>,
        /// So many of the last messages stay in sight. A call and its result count as one.
        keep: usize,
    },
    /// The policy placed a message without a turn.
    Posted(Message),
    /// A person is asked; the answer may come in another process, or another week.
    InputRequired(Question),
    /// A person answered the chat's open question of `to`.
    InputProvided {
        /// The participant that asked.
        to: Name,
        /// What was answered.
        text: Arc<str>,
    },
    /// A turn failed. It stays open: running the chat again tries it again.
    Failed {
        /// Whose turn it was.
        who: Name,
        /// What went wrong.
        error: Failure,
    },
    /// A chat ended.
    Closed {
        /// Why.
        reason: StopReason,
        /// What came of it.
        summary: Arc<str>,
    },
    /// A chat that was closed goes on: under a higher limit, or about something more.
    Reopened {
        /// What is said, if it is about something more. The chat's turns and messages are then counted anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    },
    /// Limits of the conversation changed from outside. It says nothing to anyone in the chat.
    LimitsChanged(LimitOverrides),
    /// What happened in this chat since an event counts as not having happened: a call of an agent that failed, or what is
    /// to be forgotten. The log keeps it, and what it cost was spent.
    RolledBack {
        /// The `seq` of the first event that is undone.
        since: u64,
    },
}

/// Words that an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryEntry {
    /// It was told them.
    Received(Arc<str>),
    /// They are its own.
    Sent(Arc<str>),
}

/// What those who join later see of what was said without them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinHistory {
    /// All that was said to everybody, or to them.
    #[default]
    All,
    /// Only what is said from now on.
    New,
}

/// How a chat begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// The members of the room, in order.
    pub participants: Vec<Name>,
    /// Those who may join later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_joiners: Vec<Name>,
    /// What the chat is about; system texts may quote it.
    pub task: Arc<str>,
    /// What every member is told before all else. It is no message of the room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduction: Option<Arc<str>>,
    /// What is said before the first turn. Empty when nothing is: the policy then begins.
    pub messages: Vec<Message>,
    /// How many of the first messages are those of another conversation, which this one continues. Limits do not count them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inherited: u64,
}

/// Whose turn it is, and on what terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// Whose turn it is.
    pub who: Name,
    /// Told to this agent alone, as the last thing it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// Who will see what it says.
    #[serde(default, skip_serializing_if = "crate::Audience::is_all")]
    pub to: crate::Audience,
    /// How it came to be this agent's turn, where there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Box<Choice>>,
}

impl TurnRequest {
    /// `who` speaks to the room.
    #[must_use]
    pub const fn to_all(who: Name) -> Self {
        Self { who, prompt: None, to: crate::Audience::All, choice: None }
    }

    /// `who` is asked something, and only the policy sees the answer.
    #[must_use]
    pub fn private(who: Name, prompt: impl Into<Arc<str>>) -> Self {
        Self { who, prompt: Some(prompt.into()), to: crate::Audience::private(), choice: None }
    }

    /// The same cue, and how it came about.
    #[must_use]
    pub fn with_choice(self, choice: Choice) -> Self {
        Self { choice: Some(Box::new(choice)), ..self }
    }
}

/// A finished model call: what was asked of whom, what came back and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The agent that asked.
    pub who: Name,
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// Identifies the request that was answered.
    pub request: Digest,
    /// The reply.
    pub parts: Vec<Part>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Tokens; what is unknown is left out.
    #[serde(default, skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
    /// Money; left out when a price or a token count is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Whether the reply came from a cache of replies: tokens and money are then what it would have taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// It was done, or met a stop word.
    Stop,
    /// It wants tools.
    Calls,
    /// It met the limit on tokens: the reply is cut off.
    Length,
    /// The provider filtered the reply.
    Filter,
    /// The provider did not say.
    Unknown,
}

impl Finish {
    /// Whether the reply is not whole: it met the limit on tokens, or was filtered.
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

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The participant that asks in the person's name.
    pub who: Name,
    /// What is asked.
    pub text: Arc<str>,
    /// The call that waits for approval, if the question asks for one. The text shows its arguments in full; it is displayed
    /// verbatim, never as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
}

impl Question {
    /// A question of `who` that asks for words, not for approval.
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

/// The chat an event happened in: empty for the outermost, `/critic.2` for the second turn of its participant
/// `critic` that is a chat itself, `/critic.2/judge.1` one deeper. A turn that runs a second chat has it at
/// `/critic.2.2`. The room in which an agent is called again and again has no number: `/blogger/writer` is where `blogger`
/// asks its `writer`.
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

    /// The room here of the agent called `label`: a chat that goes on whenever the agent is called. `items.0` is the room
    /// `0` within `items`.
    ///
    /// # Errors
    /// When a piece of the label between dots is empty, or has characters that a [`Name`] cannot have.
    pub fn room(&self, label: &str) -> crate::Result<Self> {
        if !label.split('.').all(is_label) {
            let rule = "must be made of the characters of names, in pieces between dots";
            return Err(crate::Error::Config(format!("the label `{label}` {rule}")));
        }
        Ok(Self(format!("{}/{}", self.0, label.replace('.', "/")).into()))
    }

    /// The `nth` chat, from 0, of those that one turn runs: this path is that of the first.
    #[must_use]
    pub(crate) fn sibling(&self, nth: u64) -> Self {
        if nth == 0 { self.clone() } else { Self(format!("{}.{}", self.0, nth + 1).into()) }
    }

    /// Whether it is the first, or only, chat of a turn, and no room that goes on from turn to turn.
    pub(crate) fn is_first(&self) -> bool {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        last.matches('.').count() == 1
    }

    /// Whether it is within a turn that `who` has in the chat `outer`, or within a room there, which any participant may call.
    pub(crate) fn is_of_turn(&self, outer: &Self, who: &Name) -> bool {
        let Some(rest) = self.0.strip_prefix(&*outer.0).and_then(|rest| rest.strip_prefix('/')) else {
            return false;
        };
        let first = rest.split('/').next().unwrap_or_default();
        first.split_once('.').is_none_or(|(name, _)| name == who.as_str())
    }

    /// Who runs this chat in a turn; `None` for the outermost, and for rooms.
    pub(crate) fn owner(&self) -> Option<Name> {
        let last = self.0.rsplit('/').next().unwrap_or_default();
        Name::new(last.split_once('.')?.0).ok()
    }

    /// Whether it is the outermost chat.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is somewhere within `outer`.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        self.0.strip_prefix(&*outer.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// How deep it is nested: 0 for the outermost.
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
