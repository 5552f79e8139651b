//! Who speaks next, and when it is over.

use std::sync::Arc;

use crate::{Cue, Message, Reason, Transcript};

/// Names the next step of a chat.
///
/// A policy is a pure function of the transcript: it never waits, and remembers nothing. One that needs to know more -
/// what a model thinks, what a die shows - cues an agent aside and reads its answer from the transcript. Closures are
/// policies.
///
/// It is asked when no turn is open, after every step.
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
    /// Somebody has a turn.
    Cue(Cue),
    /// Several have their turns at the same time. None hears the others; what they say enters the log in the order of
    /// the cues, whoever is done first.
    Together(Vec<Cue>),
    /// A message is placed without a turn.
    Post(Message),
    /// It is over.
    Close {
        /// Why.
        reason: Reason,
        /// What came of it.
        summary: Arc<str>,
    },
}

impl Step {
    /// It is over, and what came of it is the last message of the room.
    #[must_use]
    pub fn close(reason: Reason, transcript: &Transcript) -> Self {
        Self::Close { reason, summary: transcript.summary() }
    }
}
