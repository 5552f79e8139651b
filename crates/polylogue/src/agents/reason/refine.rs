//! A draft that is made better by criticism.

use polylogue_core::{Act, Agent, AnyAgent, Layer, Name, NameError, Result, Turn};

/// An agent that lets one agent write, and another criticise what it wrote, for some rounds, until there is nothing more to
/// criticise. What was written last is what it says. One agent may be both: then it criticises itself.
#[derive(Debug, Clone)]
pub struct Refine {
    name: Name,
    writer: AnyAgent,
    critic: AnyAgent,
    rounds: u32,
    until: Option<String>,
}

impl Refine {
    /// How many rounds of criticism there are, unless it is told otherwise.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// An agent `name` that writes by one agent and criticises by another.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str, writer: impl Agent, critic: impl Agent) -> Result<Self, NameError> {
        let (writer, critic) = (AnyAgent::new(writer), AnyAgent::new(critic));
        Ok(Self { name: Name::new(name)?, writer, critic, rounds: Self::DEFAULT_ROUNDS, until: None })
    }

    /// Sets how many rounds of criticism there are.
    #[must_use]
    pub fn rounds(self, rounds: u32) -> Self {
        Self { rounds, ..self }
    }

    /// Sets what the critic says when there is nothing more to criticise.
    #[must_use]
    pub fn until(self, text: impl Into<String>) -> Self {
        Self { until: Some(text.into()), ..self }
    }
}

impl Agent for Refine {
    fn name(&self) -> &Name {
        &self.name
    }

    fn layers(&self) -> Vec<Layer> {
        let mut layers = vec![Layer::of(&self.writer)];
        if self.writer.name() != self.critic.name() {
            layers.push(Layer::of(&self.critic));
        }
        layers
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let task = turn.message().plain().into_owned();
        let mut draft = turn.ask(&self.writer, turn.message()).await?;
        for _ in 0..self.rounds {
            let text = draft.plain().into_owned();
            let ask =
                format!("Criticise this, and say how to make it better.\n\nTask: {task}\n\nText:\n{text}");
            let criticism = turn.ask(&self.critic, ask).await?;
            if self.until.as_ref().is_some_and(|until| criticism.plain().contains(until)) {
                break;
            }
            draft = turn.ask(&self.writer, criticism).await?;
        }
        Ok(Act::Say(draft.parts))
    }
}
