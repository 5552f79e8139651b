//! Policies: they select the next speaker and end the chat.

use std::sync::Arc;

use crate::{JoinHistory, Message, Name, StopReason, Transcript, TurnRequest};

/// Selects the next step of a chat.
///
/// A policy is a pure function of the transcript: it never waits, and keeps no state. If it needs more - the choice
/// of a model, a random number - it requests a private turn of an agent and reads the reply from the transcript.
/// Closures are policies.
///
/// It is called after every step, when no turn is open.
pub trait Policy: Send + Sync + 'static {
    /// The next step after `transcript`.
    fn next(&self, transcript: &Transcript) -> Step;
}

impl<F: Fn(&Transcript) -> Step + Send + Sync + 'static> Policy for F {
    fn next(&self, transcript: &Transcript) -> Step {
        self(transcript)
    }
}

impl Policy for Box<dyn Policy> {
    fn next(&self, transcript: &Transcript) -> Step {
        (**self).next(transcript)
    }
}

/// A step of a chat.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A participant has a turn.
    Turn(TurnRequest),
    /// Several participants have turns in parallel. They do not see each other's messages, which are logged in the
    /// order of the requests, not of completion.
    Parallel(Vec<TurnRequest>),
    /// A message is posted without a turn.
    Post(Message),
    /// A late joiner, or a participant that has left, joins.
    Admit {
        /// The participant.
        who: Name,
        /// The earlier messages that it sees.
        sees: JoinHistory,
    },
    /// The chat ends.
    Close {
        /// The stop reason.
        reason: StopReason,
        /// The result.
        summary: Arc<str>,
    },
    /// A configuration error: the run ends with [`ConfigError::Policy`](crate::ConfigError::Policy), the log unchanged. The text
    /// continues a sentence about the policy, as in "gives a turn to `Zoe`, who is no participant".
    Fail(Arc<str>),
}

impl Step {
    /// Ends the chat with its last message as the result.
    #[must_use]
    pub fn close(reason: StopReason, transcript: &Transcript) -> Self {
        Self::Close { reason, summary: transcript.summary() }
    }
}
