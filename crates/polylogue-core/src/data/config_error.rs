//! Errors in the definition of agents and chats, or in how they are run.

use std::sync::Arc;

use super::name::Name;
use super::path::LabelError;
use super::store_error::LogId;

/// What is wrong in the definition of agents or of a chat, or in how they are run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An agent has the name of the author of tasks.
    #[error("`user` is the author of the task; no agent can have this name")]
    ReservedName,
    /// Two agents of a chat have the same name.
    #[error("two agents of `{chat}` are named `{name}`")]
    NameUsedTwice {
        /// The chat.
        chat: Name,
        /// The name.
        name: Name,
    },
    /// A chat has no participants.
    #[error("`{chat}` has no participants")]
    NoParticipants {
        /// The chat.
        chat: Name,
    },
    /// A chat has no policy.
    #[error("`{chat}` has no policy")]
    NoPolicy {
        /// The chat.
        chat: Name,
    },
    /// A policy requested an impossible step.
    #[error("the policy of `{chat}` {step}")]
    Policy {
        /// The chat.
        chat: Name,
        /// The step.
        step: ImpossibleStep,
    },
    /// The log is of another chat.
    #[error("the log is not of `{chat}`: it knows no `{unknown}`")]
    OtherChat {
        /// The chat that was to continue.
        chat: Name,
        /// A participant in the log that the chat does not have.
        unknown: Name,
    },
    /// The log has an open turn of an agent that the chat does not have.
    #[error("it is the turn of `{who}`, who is not a participant of `{chat}`")]
    UnknownParticipant {
        /// The agent.
        who: Name,
        /// The chat.
        chat: Name,
    },
    /// A resumed turn does something else than in the log.
    #[error("`{who}` {does}, but the log has something else (event {event}); has the agent changed since?")]
    TurnDiverged {
        /// The agent.
        who: Name,
        /// What it does now.
        does: &'static str,
        /// The `seq` of the event that the log has.
        event: u64,
    },
    /// A resumed call of an agent has another message than in the log.
    #[error("`{who}` receives another message than before; has its caller changed since?")]
    CallDiverged {
        /// The agent that is called.
        who: Name,
    },
    /// The label of a called agent is invalid.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// Two calls of agents in parallel have the same label.
    #[error("`{label}` is called twice in parallel; give each call its own label")]
    CalledTwice {
        /// The label.
        label: Arc<str>,
    },
    /// Another call of an agent in this log is not over.
    #[error("a call in `{log}` is not over; resume it or undo it first")]
    CallNotOver {
        /// The conversation.
        log: LogId,
    },
    /// The call to be resumed is of another agent.
    #[error("the call in `{log}` that is not over is none of `{who}`")]
    CallOfAnother {
        /// The conversation.
        log: LogId,
        /// The agent that was to resume it.
        who: Name,
    },
    /// The participant has no open question.
    #[error("`{who}` asks nothing")]
    NothingAsked {
        /// The participant.
        who: Name,
    },
    /// A new conversation was to begin in a log that has one.
    #[error("the conversation `{log}` has already begun")]
    BegunAlready {
        /// The conversation.
        log: LogId,
    },
    /// The conversation has not begun.
    #[error("the conversation `{log}` has not begun")]
    NotBegun {
        /// The conversation.
        log: LogId,
    },
    /// The conversation is not closed.
    #[error("the conversation `{log}` is not over")]
    NotOver {
        /// The conversation.
        log: LogId,
    },
    /// What a builder outside the kernel found: of agents, policies, tools, team files.
    #[error("{0}")]
    Custom(String),
}

/// A step of a policy that no chat can make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImpossibleStep {
    /// A step without turns.
    #[error("starts a step without turns")]
    NoTurns,
    /// A turn of an agent that the chat does not have.
    #[error("gives a turn to `{0}`, who is not a participant")]
    UnknownParticipant(Name),
    /// A turn of a late joiner that has not joined.
    #[error("gives a turn to `{0}`, who has not joined")]
    NotJoined(Name),
    /// Two turns of one participant in parallel.
    #[error("gives two turns at once to `{0}`")]
    TwoTurns(Name),
    /// The admission of an agent that is not a late joiner and has not left.
    #[error("admits `{0}`, who is not waiting to join")]
    NotWaiting(Name),
    /// What the policy itself found: it [failed](crate::Step::Fail).
    #[error("{0}")]
    Failed(Arc<str>),
}
