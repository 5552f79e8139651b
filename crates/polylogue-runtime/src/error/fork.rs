//! Why a conversation cannot be forked.

use polylogue_core::{GivenApproval, LogId, Name, Path};

/// The reason why a conversation cannot be forked at an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The conversation has no such event.
    #[error("it has {events} event{}", if *.events == 1 { "" } else { "s" })]
    NoEvent {
        /// The number of its events.
        events: u64,
    },
    /// A tool call before the event has its result after it.
    #[error("the call `{tool}` of `{who}` at event {called} has no result before that event")]
    OpenCall {
        /// The agent that calls.
        who: Name,
        /// The tool.
        tool: String,
        /// The event with which the call began.
        called: u64,
        /// The last event before it, before which no call is open.
        before: u64,
        /// The first event after which no call is open any more, if there is one.
        after: Option<u64>,
    },
    /// A person approved a call before the event, and it was made after it: the fork would make the call without a question.
    #[error(
        "the call `{tool}` of `{who}` was approved at event {answered}, and was not made before that event"
    )]
    UnusedApproval {
        /// The agent that calls.
        who: Name,
        /// The tool.
        tool: String,
        /// The event with the question.
        asked: u64,
        /// The event with the answer.
        answered: u64,
    },
    /// The text of a message is to be replaced, and the event is not a message.
    #[error(
        "event {event}{} is not a message, an answer or a task, so its text cannot be replaced",
        of_chat(chat)
    )]
    NoMessage {
        /// The event.
        event: u64,
        /// The path of its chat.
        chat: Path,
    },
    /// The fork is to have another team, which does not have a participant of the copied events.
    #[error("the team `{team}` has no participant `{who}`")]
    NoParticipant {
        /// The participant.
        who: Name,
        /// The team of the fork.
        team: Name,
    },
}

/// ` in the chat `/x.1``; nothing for the outermost chat.
fn of_chat(at: &Path) -> String {
    if at.is_root() { String::new() } else { format!(" in the chat `{at}`") }
}

impl ForkError {
    /// The error for an approval that was not used before the event.
    pub(crate) fn unused(GivenApproval { who, call, asked, answered, .. }: GivenApproval) -> Self {
        Self::UnusedApproval { who, tool: call.tool, asked, answered }
    }

    /// What helps with the conversation `id`.
    pub(super) fn hint(&self, id: &LogId) -> Option<String> {
        match self {
            Self::OpenCall { before, after: Some(after), .. } => {
                Some(format!("fork before event {before}, or after event {after}"))
            }
            Self::OpenCall { before, .. } => Some(format!("fork before event {before}")),
            Self::UnusedApproval { asked, .. } => {
                Some(format!("fork before event {asked}, and the question is asked again"))
            }
            Self::NoMessage { .. } => {
                Some(format!("`polylogue show {id} --json` shows the events with their numbers"))
            }
            Self::NoParticipant { .. } => Some("choose a team with the same participants".into()),
            Self::NoEvent { .. } => None,
        }
    }
}
