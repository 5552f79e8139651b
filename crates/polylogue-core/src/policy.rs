//! Who speaks next, and when it is over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{JoinHistory, Message, Name, StopReason, Transcript, TurnRequest};

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
    Turn(TurnRequest),
    /// Several have their turns at the same time. None hears the others; what they say enters the log in the order of
    /// the cues, whoever is done first.
    Parallel(Vec<TurnRequest>),
    /// A message is placed without a turn.
    Post(Message),
    /// Somebody who may join later, or has left, joins.
    Admit {
        /// Who.
        who: Name,
        /// What they see of what was said without them.
        sees: JoinHistory,
    },
    /// It is over.
    Close {
        /// Why.
        reason: StopReason,
        /// What came of it.
        summary: Arc<str>,
    },
    /// It cannot go on, because of a mistake of whoever set it up: the run ends with
    /// [`Error::Config`](crate::Error::Config), the log as it was. The text says what the policy does, as in "gives a turn to
    /// `Zoe`, who is no participant".
    Fail(Arc<str>),
}

impl Step {
    /// It is over, and what came of it is the last message of the room.
    #[must_use]
    pub fn close(reason: StopReason, transcript: &Transcript) -> Self {
        Self::Close { reason, summary: transcript.summary() }
    }
}

/// How it came to be somebody's turn: what a log tells of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Who could have been chosen.
    pub of: Vec<Name>,
    /// Who or what chose.
    pub by: Chooser,
    /// What was replied, where somebody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Arc<str>>,
}

/// Who or what chooses among those who could speak.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chooser {
    /// There was nobody else.
    Only,
    /// The order of the members.
    Order,
    /// Chance.
    Chance {
        /// What it was drawn with.
        seed: u64,
    },
    /// A rule: a function, or a condition of a state.
    Rule,
    /// An agent was asked aside.
    Agent(Name),
    /// The last speaker handed over.
    Handoff,
    /// The last speaker asked for tools that this one runs; or this one asked for them, and goes on with what came of it.
    Tools,
    /// Whoever was to choose did not, so the order of the members did.
    Fallback {
        /// What went wrong.
        why: Arc<str>,
    },
}
