//! Answers that a person has typed on the screen: their text is on it already, behind the prompt.

use polylogue_core::{Message, Name, Part, Path, Question};

use super::{Last, Renderer, TypedAnswer};

impl Renderer {
    /// Takes note that the person has typed `text` on this screen, as the answer to `question` of the chat `at`. The event
    /// and the message with this text are not shown again.
    pub(crate) fn typed(&mut self, at: &Path, question: &Question, text: &str) {
        self.typed = Some(TypedAnswer {
            at: at.clone(),
            who: question.who.clone(),
            text: text.trim().to_owned(),
            is_approval: question.is_approval(),
        });
        self.pass(at);
    }

    /// Whether `text`, which answers the question to `who` in the chat `at`, is what the person has typed and `who` says.
    pub(crate) fn is_typed_message(&self, at: &Path, who: &Name, text: &str) -> bool {
        self.is_typed_answer(at, who, text) && self.typed.as_ref().is_some_and(|typed| !typed.is_approval)
    }

    /// Whether `text` is the typed answer of `who` in the chat `at`.
    pub(super) fn is_typed_answer(&self, at: &Path, who: &Name, text: &str) -> bool {
        let is_same = |typed: &TypedAnswer| typed.at == *at && typed.who == *who && typed.text == text.trim();
        !text.trim().is_empty() && self.typed.as_ref().is_some_and(is_same)
    }

    /// Whether `message` is the typed answer, and nothing besides.
    pub(super) fn is_typed(&self, at: &Path, message: &Message) -> bool {
        let is_text = message.parts.iter().all(|part| matches!(part, Part::Text(_)));
        is_text && self.is_typed_message(at, &message.from, &message.text())
    }

    /// The conversation has the typed answer.
    pub(super) fn end_typed(&mut self, at: &Path) {
        self.typed = None;
        self.pass(at);
    }

    /// The typed line is on the screen: the next lines are set off from it.
    fn pass(&mut self, at: &Path) {
        self.last = Last::Speech;
        self.depth = at.depth();
    }
}
