//! A pipeline of agents.

use polylogue_core::{Act, Agent, Error, Layer, Name, NameError, Result, Turn};

use super::{ask, labelled, named};

/// Runs agents one after the other: each receives the reply of the one before. The last reply is the reply of the
/// pipeline.
#[derive(Debug, Clone)]
pub struct Pipeline {
    name: Name,
    stages: Vec<Layer>,
    exit_at: Option<usize>,
}

impl Pipeline {
    /// A pipeline without stages.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)?, stages: Vec::new(), exit_at: None })
    }

    /// Adds a stage.
    #[must_use]
    pub fn then(mut self, agent: impl Agent) -> Self {
        self.stages.push(named(agent));
        self
    }

    /// Adds a stage with a label, so that agents of the same name have separate memories.
    #[must_use]
    pub fn then_as(mut self, label: &str, agent: impl Agent) -> Self {
        self.stages.push(labelled(label, agent));
        self
    }

    /// Sets the index of the last stage to run, from 0. Default: the last stage. Beyond it, the stages start again: in
    /// a pipeline of two, 2 runs the first, the second, and the first.
    #[must_use]
    pub fn exit_at(self, stage: usize) -> Self {
        Self { exit_at: Some(stage), ..self }
    }
}

impl Agent for Pipeline {
    fn name(&self) -> &Name {
        &self.name
    }

    fn layers(&self) -> Vec<Layer> {
        self.stages.clone()
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        if self.stages.is_empty() {
            return Err(Error::Config(format!("the pipeline `{}` has no stages", self.name)));
        }
        let mut message = turn.message();
        let count = self.exit_at.map_or(self.stages.len(), |last| last.saturating_add(1));
        for stage in self.stages.iter().cycle().take(count) {
            message = ask(turn, stage, message).await?;
        }
        Ok(Act::Say(message.parts))
    }
}
