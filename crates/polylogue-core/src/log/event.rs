//! Events: the entries of a log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::inbox::Instruction;
use super::meta::TeamChanged;
use super::question::{Question, Responder};
use super::request::TurnRequest;
use crate::{
    AllowanceOwner, BackgroundResult, BackgroundTask, Capability, Charge, Compacted, Failure, LimitOverrides,
    Message, ModelReply, Name, OutputLimit, Part, Path, StopReason, ToolCall, ToolResult,
};

/// One entry of a log.
///
/// Written as one flat JSON object: `{"seq":4,"chat":"","time_ms":1763712000000,"type":"message","from":...}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its position in the log, counted from 0 without gaps.
    pub seq: u64,
    /// The path of its chat.
    #[serde(default, skip_serializing_if = "Path::is_root")]
    pub chat: Path,
    /// The time of day when it was appended.
    #[serde(rename = "time_ms")]
    pub time: Timestamp,
    /// The running time of the conversation by then in milliseconds, by a monotonic clock. The time in which no
    /// process ran it does not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ran_ms: u64,
    /// The number of the [inbox message](crate::InboxMessage) that it carries out or refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<u64>,
    /// The content.
    #[serde(flatten)]
    pub body: Body,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
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
    /// Model calls that are in no `model_replied` count: at their upper bound, or with the usage of a reply that was discarded. Agents do
    /// not see it.
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
    /// A provider refused the seals of earlier replies. The agent's view is sent without them from here on.
    SealsRefused {
        /// The agent that asked.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// The error message of the model or its server.
        why: Arc<str>,
    },
    /// Parameters were left out of a request, because its model is known not to accept them, or its output limit leaves no room for them.
    /// Logged once for each agent and model.
    ParametersIgnored {
        /// The agent that asked.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// The names of the parameters.
        parameters: Vec<Arc<str>>,
        /// The output limit in tokens that leaves no room for reasoning, if that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_limit: Option<u32>,
    },
    /// The output limit of the next model call was lowered to what is left of a limit on tokens or money.
    OutputLimited(OutputLimit),
    /// A provider refused a request because it is longer than the context window of its model, or the window was full
    /// before the reply was complete: that reply is discarded. The agent's history is compacted, and the request is sent
    /// again; where that is not possible, the agent ends its chat.
    TooLong {
        /// The agent that asked.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// The tokens of the request, if the provider says them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u32>,
        /// The limit, if the provider says it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The error message of the model or its server.
        why: Arc<str>,
    },
    /// The older part of an agent's history was replaced by a summary, in its own view.
    Compacted(Compacted),
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
        call: ToolCall,
    },
    /// A tool call finished.
    ToolReturned {
        /// The agent that called.
        who: Name,
        /// The call's `id`.
        id: String,
        /// The result.
        result: ToolResult,
    },
    /// An agent started a background task in its turn.
    BackgroundStarted(BackgroundTask),
    /// A background task ended: posted between two steps of the chat of the agent that started it, or awaited in its turn.
    BackgroundEnded(BackgroundResult),
    /// A turn ended with a message. A turn ends with exactly one of `Message`, `Passed`, `Left` and `Stopped`.
    Message(Message),
    /// A turn ended without a message.
    Passed {
        /// The agent whose turn it was.
        who: Name,
    },
    /// A turn ended with its agent leaving the chat.
    Left {
        /// The agent that left.
        who: Name,
        /// The reason.
        why: String,
    },
    /// A turn ended with its agent ending the chat.
    Stopped {
        /// The agent whose turn it was.
        who: Name,
        /// The stop reason.
        reason: StopReason,
    },
    /// A late joiner, or a participant that had left, joined.
    Joined {
        /// The participant.
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
    /// A message was sent into the conversation from outside. Agents see it from their next turn on: in a turn that is
    /// open, it has no effect before the turn ends. If the chat then closes without a public turn, it is reopened.
    Sent(Message),
    /// A person is asked; the answer may come in another process, or another week.
    InputRequired(Question),
    /// A person answered the chat's open question of `to`.
    InputProvided {
        /// The participant that asked.
        to: Name,
        /// The answer.
        text: Arc<str>,
        /// Who answered.
        #[serde(default, skip_serializing_if = "Responder::is_unnamed")]
        by: Responder,
    },
    /// A turn failed. It stays open and is retried when the chat is run again.
    Failed {
        /// The agent whose turn it was.
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
    /// A closed chat continues: under a higher limit, with a new message, or for one that was sent before it closed.
    Reopened {
        /// The new message, if there is one. Turns, messages, tokens and money of the chat are then counted from 0 again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// Without a message: what the chat may use beyond what it has used, whatever its own limits.
        #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
        more: LimitOverrides,
        /// Whether it continues for the last message that was sent before it closed, because no public turn has begun since: as if that
        /// message were the new one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sent: bool,
    },
    /// Limits of the conversation were changed from outside. Agents do not see it.
    LimitsChanged {
        /// The limits of the run that were changed.
        limits: LimitOverrides,
        /// What the outermost chat may use beyond what it has used, whatever its own limits.
        #[serde(default, skip_serializing_if = "LimitOverrides::is_empty")]
        more: LimitOverrides,
        /// What was raised, in words: each limit with its values before and now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<Arc<str>>,
        /// The name of the person who raised them, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// Limits of one agent, in the whole conversation, or of one run of a chat were raised, from outside or because a person was asked.
    /// Agents do not see it.
    OwnLimitsRaised {
        /// The agent or the chat.
        of: AllowanceOwner,
        /// What it may use beyond what it has used, whatever its own limits: calls, tokens, money and time.
        more: LimitOverrides,
        /// What was raised, in words: each limit with its values before and now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<Arc<str>>,
        /// The name of the person who raised them, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
    },
    /// The conversation was given a title of its own, from outside. Agents do not see it.
    TitleChanged {
        /// The title, [`Instruction::TITLE_CHARS`](crate::Instruction::TITLE_CHARS) at most. Empty: it has none any more.
        title: Arc<str>,
    },
    /// A client that received a response of the conversation, such as one of chat completions, disconnected before its end. Agents do not
    /// see it.
    ClientDisconnected {
        /// The text that it was sent until then. It may have received less. Empty: none.
        received: Arc<str>,
    },
    /// The conversation continues with another version of its team. Agents do not see it.
    TeamChanged(TeamChanged),
    /// The next speaker was chosen from outside: the next public turn is theirs.
    NextSpeaker {
        /// The participant.
        who: Name,
    },
    /// The conversation was paused from outside: open turns end, and no other begins. Agents do not see it.
    Paused,
    /// The paused conversation continues. Agents do not see it.
    Resumed,
    /// The run was cancelled from outside; running the conversation again continues it. Agents do not see it.
    Cancelled {
        /// Whether calls in flight were aborted.
        now: bool,
    },
    /// An instruction from outside was not carried out. Agents do not see it.
    Refused {
        /// The instruction.
        instruction: Box<Instruction>,
        /// The reason.
        why: Arc<str>,
    },
    /// A model call was aborted from outside while its reply arrived. The turn stays open and is retried when the chat is run
    /// again; the text counts as said only when the turn is [given up](crate::Chat::end_open_turns).
    ReplyInterrupted {
        /// The agent that asked.
        who: Name,
        /// The model, as `provider:model`.
        model: Arc<str>,
        /// The text that had arrived.
        text: Arc<str>,
    },
    /// Events of this chat since an event are rolled back: a call of an agent that failed, or what an agent must
    /// forget. They stay in the log, and their cost counts.
    RolledBack {
        /// The `seq` of the first event that is rolled back.
        since: u64,
    },
}

impl Body {
    /// Returns whether this version knows events of this type, such as `message`.
    pub fn has_type(name: &str) -> bool {
        // Of a known type, a field is missing or nothing; of another one, the type itself is wrong.
        let read = serde_json::from_value::<Self>(serde_json::json!({ "type": name }));
        read.err().is_none_or(|error| !error.to_string().starts_with("unknown variant"))
    }

    /// Returns whether the event concerns the run and nothing that is said or done in a chat.
    pub const fn is_of_run(&self) -> bool {
        matches!(
            self,
            Self::LimitsChanged { .. }
                | Self::OwnLimitsRaised { .. }
                | Self::TitleChanged { .. }
                | Self::ClientDisconnected { .. }
                | Self::TeamChanged(_)
                | Self::Paused
                | Self::Resumed
                | Self::Cancelled { .. }
                | Self::Refused { .. }
        )
    }

    /// Returns whether the event only says that a request is sent again in another form: agents need not do anything different.
    pub const fn is_of_form(&self) -> bool {
        match self {
            Self::ReplyInterrupted { .. } => true,
            Self::CapabilityMissing { capability, .. } => capability.is_of_form(),
            Self::SealsRefused { .. } | Self::ParametersIgnored { .. } | Self::OutputLimited(_) => true,
            _ => false,
        }
    }

    /// Returns whether the event belongs to a compaction of an agent's history, which precedes a model call.
    pub const fn is_of_compaction(&self) -> bool {
        match self {
            Self::TooLong { .. } | Self::Compacted(_) => true,
            Self::ModelReplied(reply) => !reply.purpose.is_turn(),
            _ => false,
        }
    }

    /// Creates the event that a closed chat continues, with `message` if there is one, under its limits.
    pub fn reopened(message: Option<Message>) -> Self {
        Self::Reopened { message, more: LimitOverrides::default(), sent: false }
    }

    /// A closed chat continues for the last message that was sent before.
    pub(crate) fn reopened_for_sent() -> Self {
        Self::Reopened { message: None, more: LimitOverrides::default(), sent: true }
    }
}

/// A message that an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryEntry {
    /// A message that it received.
    Received(Arc<str>),
    /// Its own message.
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

impl Opening {
    /// Adds parts to the last message of the user; without one, as a message of their own.
    pub(crate) fn attach(&mut self, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        match self.messages.iter_mut().rfind(|message| message.from == Name::user()) {
            Some(message) => message.parts.extend(parts),
            None => self.messages.push(Message { parts, ..Message::new(Name::user(), "") }),
        }
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
