//! What an agent does with its turn.

use std::sync::Arc;

use crate::{AnswerChoice, DefaultAnswer, Name, Part, Question, QuestionKind, StopReason, ToolCall};

/// The action of an agent in its turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// Says something to the audience of its turn request.
    Say(Vec<Part>),
    /// Asks the person it stands for. The question is in the log at once. An answer that comes while other turns of the step are in
    /// progress continues the turn; when none is any more, the run ends as [waiting](crate::Status::Waiting), and the next one continues
    /// the turn.
    Ask(InputRequest),
    /// Waits for the answer to a question that was asked in a chat within its turn.
    Wait,
    /// Leaves the chat for the given reason.
    Leave(String),
    /// Ends the chat. After that only private turns follow, such as one that writes a summary.
    Stop(StopReason),
    /// The agent has nothing to say.
    Pass,
}

impl Act {
    /// Says a text; a blank one is a pass.
    pub fn say(text: impl Into<Arc<str>>) -> Self {
        let part = Part::text(text);
        if part.is_blank() { Self::Pass } else { Self::Say(vec![part]) }
    }
}

/// What an agent [asks](Act::Ask) the person it stands for: a [`Question`] as data, without words for the keys of a terminal or the
/// buttons of a page.
///
/// ```
/// use polylogue_core::{Act, AnswerChoice, AnswerEffect, InputRequest, QuestionKind};
///
/// let any_text = Act::Ask("Which color?".into());
/// let choices = [AnswerChoice::new("", AnswerEffect::Pass)];
/// let message = Act::Ask(InputRequest::new("Your turn.", QuestionKind::Turn, choices));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// The text.
    pub text: Arc<str>,
    /// The kind.
    pub kind: QuestionKind,
    /// The answers that have an effect of their own.
    pub choices: Vec<AnswerChoice>,
    /// The call that is made after approval, if it asks for one. The text shows its arguments in full.
    pub call: Option<Box<ToolCall>>,
    /// The answer that counts by default after a time.
    pub default: Option<DefaultAnswer>,
}

impl InputRequest {
    /// Creates a request for no approval, which waits without a limit.
    pub fn new(text: impl Into<Arc<str>>, kind: QuestionKind, choices: impl Into<Vec<AnswerChoice>>) -> Self {
        Self { text: text.into(), kind, choices: choices.into(), call: None, default: None }
    }

    /// The question of `who`.
    pub(crate) fn of(self, who: Name) -> Question {
        let Self { text, kind, choices, call, default } = self;
        Question { kind, choices, call: call.map(|call| *call), default, ..Question::new(who, text) }
    }
}

impl From<Arc<str>> for InputRequest {
    /// A request for any text.
    fn from(text: Arc<str>) -> Self {
        Self::new(text, QuestionKind::Text, Vec::new())
    }
}

impl From<String> for InputRequest {
    /// A request for any text.
    fn from(text: String) -> Self {
        Self::new(text, QuestionKind::Text, Vec::new())
    }
}

impl From<&str> for InputRequest {
    /// A request for any text.
    fn from(text: &str) -> Self {
        Self::new(text, QuestionKind::Text, Vec::new())
    }
}
