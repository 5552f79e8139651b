//! Parallel agents.

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AgentCall, AnyAgent, Error, Layer, Message, Name, NameError, Part, Result, Turn,
};

use super::{joined, labelled, named};

/// Runs agents at the same time on the same message, or each on its own part of it. The reply has the replies of all,
/// in the order of the agents, unless a function joins them.
#[derive(Clone)]
pub struct Parallel {
    name: Name,
    branches: Vec<Layer>,
    divides: bool,
    join: Option<Arc<JoinFn>>,
}

type JoinFn = dyn Fn(&[(&str, Message)]) -> Vec<Part> + Send + Sync;

impl Parallel {
    /// A parallel agent without branches.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)?, branches: Vec::new(), divides: false, join: None })
    }

    /// Adds a branch.
    #[must_use]
    pub fn with(mut self, agent: impl Agent) -> Self {
        self.branches.push(named(agent));
        self
    }

    /// Adds a branch with a label.
    #[must_use]
    pub fn with_as(mut self, label: &str, agent: impl Agent) -> Self {
        self.branches.push(labelled(label, agent));
        self
    }

    /// Sends each branch one part of the message, in order. There must be as many parts as branches.
    #[must_use]
    pub fn divides(self) -> Self {
        Self { divides: true, ..self }
    }

    /// Sets a function that makes the reply from the labels and replies of the branches. Must be deterministic.
    #[must_use]
    pub fn joins(self, join: impl Fn(&[(&str, Message)]) -> Vec<Part> + Send + Sync + 'static) -> Self {
        Self { join: Some(Arc::new(join)), ..self }
    }

    /// The message for each branch.
    fn shares(&self, message: Message) -> Result<Vec<Message>> {
        if !self.divides {
            return Ok(vec![message; self.branches.len()]);
        }
        let (parts, branches) = (message.parts.len(), self.branches.len());
        if parts != branches {
            let name = &self.name;
            return Err(Error::Agent(format!(
                "`{name}` has {branches} branches for a message of {parts} parts"
            )));
        }
        Ok(divided(message))
    }
}

/// A message for each part.
fn divided(message: Message) -> Vec<Message> {
    let parts = message.parts.clone();
    parts.into_iter().map(|part| Message { parts: vec![part], ..message.clone() }).collect()
}

impl Agent for Parallel {
    fn name(&self) -> &Name {
        &self.name
    }

    fn layers(&self) -> Vec<Layer> {
        self.branches.clone()
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let shares = self.shares(turn.message())?;
        let asks = self.branches.iter().zip(shares);
        let asks: Vec<_> = asks
            .map(|(branch, share)| AgentCall::labelled(Arc::clone(&branch.label), &branch.agent, share))
            .collect();
        let replies = turn.ask_all(asks).await.into_iter().collect::<Result<Vec<_>>>()?;
        let Some(join) = &self.join else { return Ok(Act::Say(joined(&self.name, replies).parts)) };
        let labelled: Vec<_> = self.branches.iter().map(|branch| &*branch.label).zip(replies).collect();
        Ok(Act::Say(join(&labelled)))
    }
}

impl std::fmt::Debug for Parallel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parallel")
            .field("name", &self.name)
            .field("branches", &self.branches)
            .finish_non_exhaustive()
    }
}

/// Maps an agent over the parts of a message at the same time. Each part has its own inner chat, `0`, `1` and so on.
/// The reply has the replies in the order of the parts.
#[derive(Debug, Clone)]
pub struct Warp {
    name: Name,
    agent: AnyAgent,
    at_once: usize,
}

impl Warp {
    /// Default limit on parts processed at the same time.
    pub const DEFAULT_AT_ONCE: usize = 8;

    /// Calls `agent` for each part.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str, agent: impl Agent) -> Result<Self, NameError> {
        let (name, agent) = (Name::new(name)?, AnyAgent::new(agent));
        Ok(Self { name, agent, at_once: Self::DEFAULT_AT_ONCE })
    }

    /// Sets the limit on parts processed at the same time, at least 1.
    #[must_use]
    pub fn at_once(self, parts: usize) -> Self {
        Self { at_once: parts.max(1), ..self }
    }
}

impl Agent for Warp {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let asks: Vec<_> = divided(turn.message())
            .into_iter()
            .enumerate()
            .map(|(nth, part)| AgentCall::labelled(nth.to_string(), &self.agent, part))
            .collect();
        let mut replies = Vec::new();
        for some in asks.chunks(self.at_once) {
            for reply in turn.ask_all(some.to_vec()).await {
                replies.push(reply?);
            }
        }
        Ok(Act::Say(joined(&self.name, replies).parts))
    }
}
