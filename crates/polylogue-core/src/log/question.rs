//! Questions to people, and their answers.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LimitRaise, Name, ToolCall};

/// A question to a person, as data. Its text does not say what can be answered: each program that shows it has its own words and
/// keys for that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The participant that asks for the person's input.
    pub who: Name,
    /// The text of the question.
    pub text: Arc<str>,
    /// The kind.
    #[serde(default, skip_serializing_if = "QuestionKind::is_text")]
    pub kind: QuestionKind,
    /// The answers that have an effect of their own. The kind says what other answers are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<AnswerChoice>,
    /// The call that waits for approval, if the question asks for one. The text shows its arguments in full; display
    /// it verbatim, never as Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCall>,
    /// What counts as the answer when there is none in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
    /// The limit of the run, of an agent or of a chat that the question asks to raise. Such a question belongs to no turn; it is asked in
    /// the name of the outermost chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<LimitRaise>>,
}

/// What a question asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Any text.
    #[default]
    Text,
    /// The message of a person in their turn.
    Turn,
    /// Who speaks next: one of the choices, or a name.
    Speaker,
    /// A reply in the name of an agent.
    Reply,
    /// Whether a call may run. Another answer is a JSON object with other arguments.
    Approval,
    /// Whether code in a message may run. Another answer is other code in a fenced block.
    CodeApproval,
    /// Whether a limit is raised. Another answer is how much more, in the unit of the limit.
    Limit,
}

impl QuestionKind {
    /// Returns whether the question asks for any text.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }
}

/// An answer to a question that has an effect of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerChoice {
    /// The answer.
    pub answer: Arc<str>,
    /// The effect.
    pub effect: AnswerEffect,
    /// The name of what the answer selects or ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
}

/// The effect of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEffect {
    /// What the question shows runs.
    Approve,
    /// It does not run.
    Reject,
    /// The limit is raised by as much as the question says.
    Raise,
    /// The person says nothing in this turn.
    Pass,
    /// The person leaves the chat.
    Leave,
    /// The participant with the label speaks next.
    Select,
    /// The next participant in order speaks.
    Next,
    /// The agent sends no message.
    NoMessage,
    /// The agent replies by itself.
    AutomaticReply,
    /// The conversation ends, or what the label names.
    End,
}

impl AnswerChoice {
    /// Creates a choice without a label.
    pub fn new(answer: impl Into<Arc<str>>, effect: AnswerEffect) -> Self {
        Self { answer: answer.into(), effect, label: None }
    }

    /// Sets the name of what the answer selects or ends.
    #[must_use]
    pub fn label(self, label: impl Into<Arc<str>>) -> Self {
        Self { label: Some(label.into()), ..self }
    }
}

/// The answer that counts when a person has not answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    pub fn person(name: Option<Arc<str>>) -> Self {
        name.map_or(Self::Unnamed, Self::Person)
    }

    /// Returns whether the responder is a person whose name is not known.
    pub const fn is_unnamed(&self) -> bool {
        matches!(self, Self::Unnamed)
    }
}

impl Question {
    /// Creates a question of `who` that asks for text, not for approval.
    pub fn new(who: Name, text: impl Into<Arc<str>>) -> Self {
        let (kind, choices) = (QuestionKind::Text, Vec::new());
        Self { who, text: text.into(), kind, choices, call: None, default: None, limit: None }
    }

    /// A question of `who` that asks to raise a limit.
    pub(crate) fn about_limit(who: Name, raise: LimitRaise) -> Self {
        let text = raise.text();
        let no = AnswerChoice::new("no", AnswerEffect::End).label(raise.ends());
        let choices = vec![AnswerChoice::new("yes", AnswerEffect::Raise), no];
        Self { kind: QuestionKind::Limit, choices, limit: Some(Box::new(raise)), ..Self::new(who, text) }
    }

    /// Returns whether the question asks for approval.
    pub const fn is_approval(&self) -> bool {
        self.call.is_some()
    }

    /// Returns whether the question asks to raise a limit.
    pub const fn is_about_limit(&self) -> bool {
        self.limit.is_some()
    }
}
