//! What an agent is told, and what it says, changed before it is remembered and after.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyAgent, Layer, Message, Name, Result, Turn};

/// An agent with hooks around it: some change what it is told, some what it says.
///
/// It remembers what it is told as the hooks changed it, and what it says as it said it: what the hooks after it make of that is
/// for the caller. In the [state](crate::session::State) of an agent that asks it as `critic`, what it remembers is under
/// `critic.critic.memory`; `critic.memory` is what was asked of the agent and its hooks together, and what they replied. Nobody's message is changed but the copy that is handed on. Of a kind, hooks run in the order in which
/// they were added.
///
/// # A critic that is told what to do with a draft
/// ```
/// # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
/// use polylogue::hook::Around;
/// use polylogue::{Assistant, Message};
///
/// let mut critic = Around::new(Assistant::new("critic", model)?);
/// let handle = critic.before(|message| match message.from == "writer" {
///     true => Message::text(message.from.clone(), format!("Reflect on this:\n\n{}", message.plain())),
///     false => message,
/// });
/// critic.remove(handle)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Around {
    agent: AnyAgent,
    before: Vec<(Handle, Arc<Hook>)>,
    after: Vec<(Handle, Arc<Hook>)>,
    next: u64,
}

type Hook = dyn Fn(Message) -> Message + Send + Sync;

/// A hook of an [`Around`], to remove it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(u64);

/// There is no such hook, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSuchHook;

impl fmt::Display for NoSuchHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no such hook; it may be removed already")
    }
}

impl std::error::Error for NoSuchHook {}

impl From<NoSuchHook> for polylogue_core::Error {
    fn from(error: NoSuchHook) -> Self {
        Self::Config(error.to_string())
    }
}

impl Around {
    /// `agent`, without hooks.
    #[must_use]
    pub fn new(agent: impl Agent) -> Self {
        Self { agent: AnyAgent::new(agent), before: Vec::new(), after: Vec::new(), next: 0 }
    }

    /// Changes what the agent is told. It has to be the same for the same.
    pub fn before(&mut self, hook: impl Fn(Message) -> Message + Send + Sync + 'static) -> Handle {
        let handle = self.handle();
        self.before.push((handle, Arc::new(hook)));
        handle
    }

    /// Changes what is said, after the agent said it. It has to be the same for the same.
    pub fn after(&mut self, hook: impl Fn(Message) -> Message + Send + Sync + 'static) -> Handle {
        let handle = self.handle();
        self.after.push((handle, Arc::new(hook)));
        handle
    }

    /// Removes a hook.
    ///
    /// # Errors
    /// When it is not there.
    pub fn remove(&mut self, handle: Handle) -> Result<(), NoSuchHook> {
        let count = self.before.len() + self.after.len();
        self.before.retain(|(other, _)| *other != handle);
        self.after.retain(|(other, _)| *other != handle);
        if count == self.before.len() + self.after.len() { Err(NoSuchHook) } else { Ok(()) }
    }

    const fn handle(&mut self) -> Handle {
        self.next += 1;
        Handle(self.next)
    }
}

impl Agent for Around {
    fn name(&self) -> &Name {
        self.agent.name()
    }

    fn description(&self) -> &str {
        Agent::description(&self.agent)
    }

    fn layers(&self) -> Vec<Layer> {
        vec![Layer::of(&self.agent)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let message = self.before.iter().fold(turn.message(), |message, (_, hook)| hook(message));
        let reply = turn.ask(&self.agent, message).await?;
        Ok(Act::Say(self.after.iter().fold(reply, |reply, (_, hook)| hook(reply)).parts))
    }
}

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Around").field("agent", &self.agent).finish_non_exhaustive()
    }
}
