//! A person in the room.

use std::sync::Arc;

use polylogue_core::{Act, Agent, Name, NameError, Result, Turn};

/// A person in the room.
///
/// The run never waits for a person: on their turn it ends with [`Status::Waiting`](polylogue_core::Status), and goes on
/// when the answer is in the log, in this process or another, now or next week. An empty answer passes; `exit`, in any
/// case and with spaces around it, leaves the room.
#[derive(Debug, Clone)]
pub struct Human {
    name: Name,
    description: String,
    question: Arc<str>,
}

impl Human {
    /// A person of this name.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let name = Name::new(name)?;
        let question = format!("{name}, it is your turn. Enter passes, `exit` leaves.").into();
        Ok(Self { name, description: String::new(), question })
    }

    /// Sets who the person is, for whoever chooses the next speaker.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        Self { description: text.into(), ..self }
    }

    /// Sets what the person is asked on their turn; a cue with a prompt of its own asks that.
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
        Ok(match turn.answer() {
            None => Act::Ask(Arc::clone(question)),
            Some(answer) if answer.trim().eq_ignore_ascii_case("exit") => Act::Leave("said `exit`".into()),
            Some(answer) => Act::say(answer),
        })
    }
}
