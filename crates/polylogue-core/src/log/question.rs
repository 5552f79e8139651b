//! Questions to people, and their answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Call, LimitRaise, Name};

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
    /// What counts as the answer when there is none in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
    /// The limit of the run, of an agent or of a chat that the question asks to raise. Such a question belongs to no turn; it is asked in
    /// the name of the outermost chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<LimitRaise>>,
}

/// The answer that counts when a person has not answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultAnswer {
    /// The time limit in milliseconds of wall-clock time, from when the question was asked: it passes also while no process
    /// runs the conversation.
    pub after_ms: u64,
    /// The answer.
    pub text: Arc<str>,
}

/// The person or program that answered a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Responder {
    /// A person whose name is not known.
    #[default]
    Unnamed,
    /// A person of this name.
    Person(Arc<str>),
    /// No person, in time: it is the default answer of the question.
    Timeout,
}

impl Responder {
    /// Returns a responder that is a person, by name if it is known.
    #[must_use]
    pub fn person(name: Option<Arc<str>>) -> Self {
        name.map_or(Self::Unnamed, Self::Person)
    }

    /// Returns whether it is a person whose name is not known.
    #[must_use]
    pub const fn is_unnamed(&self) -> bool {
        matches!(self, Self::Unnamed)
    }
}

impl Question {
    /// Creates a question of `who` that asks for text, not for approval.
    #[must_use]
    pub fn new(who: Name, text: impl Into<Arc<str>>) -> Self {
        Self { who, text: text.into(), call: None, default: None, limit: None }
    }

    /// A question of `who` that asks to raise a limit.
    pub(crate) fn about_limit(who: Name, raise: LimitRaise) -> Self {
        let text = raise.text();
        Self { limit: Some(Box::new(raise)), ..Self::new(who, text) }
    }

    /// Returns whether it asks for approval.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        self.call.is_some()
    }

    /// Returns whether it asks to raise a limit.
    #[must_use]
    pub const fn is_about_limit(&self) -> bool {
        self.limit.is_some()
    }
}
