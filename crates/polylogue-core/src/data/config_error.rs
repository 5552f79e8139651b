//! Errors in the definition of agents and chats, or in how they are run.

use std::sync::Arc;

use super::name::Name;
use super::path::LabelError;
use super::pattern_error::PatternError;
use super::store_error::LogId;
use super::unknown_name::UnknownName;

/// An error in the definition of agents or of a chat, or in how they are run.
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
    #[error("the log belongs to another chat: `{chat}` has no participant `{unknown}`")]
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
        /// The step that it takes now.
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
    #[error("`{label}` is called twice in parallel")]
    CalledTwice {
        /// The label.
        label: Arc<str>,
    },
    /// Another call of an agent in this log is not over.
    #[error("the conversation `{log}` has an open call")]
    CallNotOver {
        /// The conversation.
        log: LogId,
    },
    /// The call to be resumed is of another agent.
    #[error("the open call in `{log}` belongs to another agent than `{who}`")]
    CallOfAnother {
        /// The conversation.
        log: LogId,
        /// The agent that was to resume it.
        who: Name,
    },
    /// The participant has no open question.
    #[error("`{who}` has no open question")]
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
    /// A pattern, such as a graph, a group or a list of tasks, is invalid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A name that does not exist.
    #[error(transparent)]
    Unknown(Box<UnknownName>),
    /// Something required is missing.
    #[error("{of} has no {what}")]
    Missing {
        /// The item that requires it, such as `` `Ann` ``.
        of: Arc<str>,
        /// The missing setting, such as `model`.
        what: Arc<str>,
        /// How to provide it, if known.
        hint: Option<Arc<str>>,
    },
    /// A setting has an invalid value.
    #[error("{what} is invalid: {why}")]
    Invalid {
        /// The setting, with its value if that is short.
        what: Arc<str>,
        /// The reason.
        why: Arc<str>,
        /// How to fix it, if known.
        hint: Option<Arc<str>>,
    },
    /// A tool cannot be made from its declaration.
    #[error("the {kind} `{name}`: {why}")]
    Declaration {
        /// The kind of declaration: `command`, `call`, `operation`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// An MCP server cannot be used: it cannot be started or reached, or is not declared correctly.
    #[error("the MCP server `{name}` {why}")]
    McpServer {
        /// The name.
        name: String,
        /// The reason, as a predicate: `is disabled`.
        why: String,
    },
    /// A permission was not granted.
    #[error("{wants}, but that is not allowed")]
    NotGranted {
        /// The permission, as users write it: `network`.
        permission: &'static str,
        /// The party, and what it wants to do.
        wants: String,
    },
    /// A model does not support the parameters that an agent sets, as its provider reports.
    #[error("`{model}` does not support what the parameters of `{who}` request")]
    UnsupportedParameters {
        /// The model.
        model: Arc<str>,
        /// The agent.
        who: Name,
    },
}

impl ConfigError {
    /// Creates [`Missing`](Self::Missing) without a hint: `of` has no `what`.
    pub fn missing(of: impl Into<Arc<str>>, what: impl Into<Arc<str>>) -> Self {
        Self::Missing { of: of.into(), what: what.into(), hint: None }
    }

    /// Creates [`Invalid`](Self::Invalid) without a hint.
    pub fn invalid(what: impl Into<Arc<str>>, why: impl Into<Arc<str>>) -> Self {
        Self::Invalid { what: what.into(), why: why.into(), hint: None }
    }

    /// Returns how to fix the error, if that is known.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Pattern(flaw) => return flaw.hint(),
            Self::Unknown(unknown) => return unknown.hint(),
            Self::Missing { hint, .. } | Self::Invalid { hint, .. } => hint.as_deref()?,
            Self::UnsupportedParameters { .. } => "for structured output, use `Assistant::output_schema`",
            Self::NotGranted { permission, .. } => {
                return Some(format!("if you trust it, allow `{permission}`"));
            }
            Self::ReservedName | Self::NameUsedTwice { .. } => "rename the agent",
            Self::NoParticipants { .. } => "add a participant",
            Self::CalledTwice { .. } => "give each call its own label",
            Self::CallNotOver { .. } => "resume it or roll it back first",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl From<UnknownName> for ConfigError {
    fn from(unknown: UnknownName) -> Self {
        Self::Unknown(Box::new(unknown))
    }
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
    /// A reason that the policy itself found: it [failed](crate::Step::Fail).
    #[error("{0}")]
    Failed(Arc<str>),
}

#[cfg(test)]
#[path = "config_error_tests.rs"]
mod tests;
