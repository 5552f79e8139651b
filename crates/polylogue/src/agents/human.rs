//! A person as a participant.

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnswerChoice, AnswerEffect, InputRequest, Name, NameError, QuestionKind, Result, Turn,
};

/// A person as a participant.
///
/// The run never blocks on a person: in their turn it ends with [`Status::Waiting`](polylogue_core::Status) when no
/// other turn is in progress, and continues once the answer is in the log, in any process, at any later time. An empty
/// answer passes; `exit`, in any case and with surrounding spaces, leaves the chat.
///
/// ```
/// use polylogue::{Chat, Human, Log, sequential};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let chat = Chat::builder("desk").participant(Human::new("Ann")?).policy(sequential()).build()?;
/// let mut log = Log::in_memory();
/// let result = chat.run_in(&mut log, "Is the invoice correct?").await?;
/// for (at, question) in result.questions() {
///     log.answer(at, &question.who, "Yes.").await?;
/// }
/// assert_eq!(chat.resume(&mut log).await?.text(), "Yes.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Human {
    name: Name,
    description: String,
    question: Arc<str>,
}

impl Human {
    /// Creates a participant named `name` who is a person.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = Name::new(name)?;
        let question = format!("{name}, it is your turn.").into();
        Ok(Self { name, description: String::new(), question })
    }

    /// Sets the description of the person, which speaker selection reads.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        Self { description: text.into(), ..self }
    }

    /// Sets the question in their turns. A turn request with a prompt asks that instead.
    #[must_use]
    pub fn question(self, text: impl Into<Arc<str>>) -> Self {
        Self { question: text.into(), ..self }
    }
}

impl Agent for Human {
    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let question = turn.request().prompt.as_ref().unwrap_or(&self.question);
        let choices =
            || [AnswerChoice::new("", AnswerEffect::Pass), AnswerChoice::new("exit", AnswerEffect::Leave)];
        Ok(match turn.answer() {
            None => Act::Ask(InputRequest::new(Arc::clone(question), QuestionKind::Turn, choices())),
            Some(answer) if answer.trim().eq_ignore_ascii_case("exit") => Act::Leave("said `exit`".into()),
            Some(answer) => Act::say(answer),
        })
    }
}
