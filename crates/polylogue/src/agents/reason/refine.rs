//! A draft improved by criticism.

use polylogue_core::{Act, Agent, AnyAgent, Name, NameError, Result, SubAgent, Turn};

/// One agent writes and another criticizes, for some rounds or until the critic has no objections. The last draft is
/// the message. The same agent can do both.
#[derive(Debug, Clone)]
pub struct Refine {
    name: Name,
    writer: AnyAgent,
    critic: AnyAgent,
    rounds: u32,
    until: Option<String>,
}

impl Refine {
    /// Default number of rounds of criticism.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// Creates an agent named `name` with a writer and a critic.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>, writer: impl Agent, critic: impl Agent) -> Result<Self, NameError> {
        let (writer, critic) = (AnyAgent::new(writer), AnyAgent::new(critic));
        Ok(Self { name: Name::new(name)?, writer, critic, rounds: Self::DEFAULT_ROUNDS, until: None })
    }

    /// Sets the number of rounds of criticism.
    #[must_use]
    pub fn rounds(self, rounds: u32) -> Self {
        Self { rounds, ..self }
    }

    /// Sets the text by which the critic approves a draft.
    #[must_use]
    pub fn until(self, text: impl Into<String>) -> Self {
        Self { until: Some(text.into()), ..self }
    }
}

impl Agent for Refine {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        let mut sub_agents = vec![SubAgent::of(&self.writer)];
        if self.writer.name() != self.critic.name() {
            sub_agents.push(SubAgent::of(&self.critic));
        }
        sub_agents
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let task = turn.message().text().into_owned();
        let mut draft = turn.ask(&self.writer, turn.message()).await?;
        for _ in 0..self.rounds {
            let text = draft.text().into_owned();
            let ask =
                format!("Criticize this, and say how to make it better.\n\nTask: {task}\n\nText:\n{text}");
            let criticism = turn.ask(&self.critic, ask).await?;
            if self.until.as_ref().is_some_and(|until| criticism.text().contains(until)) {
                break;
            }
            draft = turn.ask(&self.writer, criticism).await?;
        }
        Ok(Act::Say(draft.parts))
    }
}
