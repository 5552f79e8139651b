//! Agents: the participants of a chat.

use std::pin::Pin;
use std::sync::Arc;

use crate::{Act, Name, Result, Turn};

/// A participant: a model, a person, a function, or a whole chat.
///
/// An agent is configuration and keeps no state of a conversation: one value serves any number of conversations at
/// once.
///
/// On its turn it reads the transcript and acts. When a run is resumed in the middle of a turn, or when a person has
/// answered what the agent asked in it, `act` runs again from the beginning, and everything that [`Turn`] did before is
/// returned from the log instead of being repeated. So `act` must be deterministic: whatever else it needs - the time, a
/// random number, a file - must come from the turn or from a tool.
///
/// # Example: an agent that counts its turns
/// ```
/// use polylogue_core::{Act, Agent, Name, Result, Turn};
///
/// struct Counter {
///     name: Name,
/// }
///
/// impl Agent for Counter {
///     fn name(&self) -> &Name {
///         &self.name
///     }
///
///     async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
///         // The count is read from the transcript, because an agent keeps no state.
///         let before = turn.transcript().turns_of(&self.name);
///         Ok(Act::say(format!("This is my turn number {}.", before + 1)))
///     }
/// }
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Returns the agent's name, under which it speaks.
    fn name(&self) -> &Name;

    /// Describes what the agent is good at, for selectors of the next speaker.
    fn description(&self) -> &str {
        ""
    }

    /// Returns the agents that it [calls](Turn::ask) in its turns, in order. Sessions read, load and reset their memory by this
    /// list. Default: none.
    fn sub_agents(&self) -> Vec<SubAgent> {
        Vec::new()
    }

    /// Returns the agent that runs the background tasks that this agent [starts](Turn::start_background) under the name `target`.
    /// Called again when a run is resumed, so the result must not depend on the conversation. A wrapper of another agent must
    /// forward this method to it. Default: `None`, so that such tasks are refused.
    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        let _ = target;
        None
    }

    /// Takes its turn.
    ///
    /// # Errors
    /// The turn stays open and is retried when the chat is run again.
    fn act(&self, turn: &mut Turn<'_>) -> impl Future<Output = Result<Act>> + Send
    where
        Self: Sized;
}

/// An agent that another agent calls in its turns, and its label there.
#[derive(Debug, Clone)]
pub struct SubAgent {
    /// The label: the agent's name, or the one that [`Turn::ask_as`] calls it with.
    pub label: Arc<str>,
    /// The agent.
    pub agent: AnyAgent,
}

impl SubAgent {
    /// Creates the sub-agent `agent`, which is called by its name.
    pub fn of(agent: &(impl Agent + Clone)) -> Self {
        Self { label: agent.name().as_str().into(), agent: AnyAgent::new(agent.clone()) }
    }

    /// Creates the sub-agent `agent`, which is called as `label`.
    pub fn labeled(label: impl Into<Arc<str>>, agent: &(impl Agent + Clone)) -> Self {
        Self { label: label.into(), ..Self::of(agent) }
    }
}

/// Any agent. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyAgent({:?})", self.0.name())]
pub struct AnyAgent(Arc<dyn ErasedAgent>);

/// [`Agent`] as an object: its futures are boxed.
trait ErasedAgent: Agent {
    fn boxed<'a>(&'a self, turn: &'a mut Turn<'_>) -> Pin<Box<dyn Future<Output = Result<Act>> + Send + 'a>>;
}

impl<A: Agent> ErasedAgent for A {
    fn boxed<'a>(&'a self, turn: &'a mut Turn<'_>) -> Pin<Box<dyn Future<Output = Result<Act>> + Send + 'a>> {
        Box::pin(self.act(turn))
    }
}

impl AnyAgent {
    /// Wraps `agent`.
    pub fn new(agent: impl Agent) -> Self {
        Self(Arc::new(agent))
    }
}

impl Agent for AnyAgent {
    fn name(&self) -> &Name {
        self.0.name()
    }
    fn description(&self) -> &str {
        self.0.description()
    }
    fn sub_agents(&self) -> Vec<SubAgent> {
        self.0.sub_agents()
    }
    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        self.0.background_agent(target)
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        self.0.boxed(turn).await
    }
}
