//! Requests for turns, and how their participants were selected.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Audience, Name};

/// A request for a turn: who has it, with which prompt, for which audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// The participant.
    pub who: Name,
    /// A prompt for this agent alone, the last message in its view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// The audience of its message.
    #[serde(default, skip_serializing_if = "Audience::is_all")]
    pub to: Audience,
    /// How the participant was selected, if there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Box<Choice>>,
}

impl TurnRequest {
    /// Creates a request for a turn of `who` whose message all participants see.
    pub const fn to_all(who: Name) -> Self {
        Self { who, prompt: None, to: Audience::All, choice: None }
    }

    /// Creates a request for a private turn: `who` receives `prompt`, and only the policy sees the reply.
    pub fn private(who: Name, prompt: impl Into<Arc<str>>) -> Self {
        Self { who, prompt: Some(prompt.into()), to: Audience::private(), choice: None }
    }

    /// Whether the participant selects the next speaker in this private turn: the candidates are known, and the choice is not made yet.
    pub(crate) fn selects(&self) -> bool {
        let by = self.choice.as_ref().map(|choice| &choice.by);
        self.to.is_private() && matches!(by, Some(Chooser::Agent(who)) if *who == self.who)
    }

    /// Adds how the participant was selected.
    #[must_use]
    pub fn with_choice(self, choice: Choice) -> Self {
        Self { choice: Some(Box::new(choice)), ..self }
    }
}

/// How the next speaker was selected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The candidates.
    pub of: Vec<Name>,
    /// The selector.
    pub by: Chooser,
    /// The selector's reply, if an agent was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Arc<str>>,
}

/// The selector of the next speaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chooser {
    /// There was only one candidate.
    Only,
    /// The order of the participants.
    Order,
    /// A random choice.
    Chance {
        /// The seed.
        seed: u64,
    },
    /// A rule: a function, or a condition of a state.
    Rule,
    /// A person or a program, from outside of the chat.
    User,
    /// An agent, in a private turn.
    Agent(Name),
    /// A handoff by the last speaker.
    Handoff,
    /// The result of a background task, which this participant started and has not seen.
    Background,
    /// Tool calls: this participant executes those of the last speaker, or continues with their results.
    Tools,
    /// The order of the participants, because the selector failed.
    Fallback {
        /// The failure.
        why: Arc<str>,
    },
}
