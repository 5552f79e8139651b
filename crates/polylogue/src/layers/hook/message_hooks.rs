//! Hooks on the messages that an agent receives and sends.

use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyAgent, Message, Result, SubAgent, Turn, UnknownName};

/// An agent with hooks: some change what it receives, others what it replies.
///
/// The agent remembers its input after the `before` hooks and its replies before the `after` hooks, which are for the
/// caller. In the [state](crate::agents::session::State) of an agent that asks it as `critic`, its memory is under
/// `critic.critic.memory`; `critic.memory` has the input and replies outside the hooks. Hooks change only the copy that
/// is passed on. Hooks of a kind run in the order in which they were added.
///
/// # A critic with instructions for a draft
/// ```
/// # fn example(model: polylogue_core::AnyModel) -> polylogue_core::Result<()> {
/// use polylogue::layers::hook::MessageHooks;
/// use polylogue::{Assistant, Message};
///
/// let mut critic = MessageHooks::new(Assistant::new("critic", model)?);
/// let handle = critic.before(|message| match message.from == "writer" {
///     true => Message::new(message.from.clone(), format!("Reflect on this:\n\n{}", message.text())),
///     false => message,
/// });
/// critic.remove(handle)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct MessageHooks {
    agent: AnyAgent,
    #[debug(skip)]
    before: Vec<(HookId, Arc<Hook>)>,
    #[debug(skip)]
    after: Vec<(HookId, Arc<Hook>)>,
    next: u64,
}

type Hook = dyn Fn(Message) -> Message + Send + Sync;

/// A hook of [`MessageHooks`], for removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookId(u64);

impl MessageHooks {
    /// Wraps `agent`, without hooks.
    pub fn new(agent: impl Agent) -> Self {
        Self { agent: AnyAgent::new(agent), before: Vec::new(), after: Vec::new(), next: 0 }
    }

    /// Adds a hook on what the agent receives. Must be deterministic.
    pub fn before(&mut self, hook: impl Fn(Message) -> Message + Send + Sync + 'static) -> HookId {
        let handle = self.handle();
        self.before.push((handle, Arc::new(hook)));
        handle
    }

    /// Adds a hook on what the agent replies. Must be deterministic.
    pub fn after(&mut self, hook: impl Fn(Message) -> Message + Send + Sync + 'static) -> HookId {
        let handle = self.handle();
        self.after.push((handle, Arc::new(hook)));
        handle
    }

    /// Removes a hook.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn remove(&mut self, handle: HookId) -> Result<()> {
        let count = self.before.len() + self.after.len();
        self.before.retain(|(other, _)| *other != handle);
        self.after.retain(|(other, _)| *other != handle);
        if count > self.before.len() + self.after.len() {
            return Ok(());
        }
        let place = format!("of `{}`; it may already be removed", self.agent.name());
        Err(UnknownName::new("hook", handle.0).within(place).into())
    }

    const fn handle(&mut self) -> HookId {
        self.next += 1;
        HookId(self.next)
    }
}

impl Agent for MessageHooks {
    forward_agent!(agent: name, description);

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.agent)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let message = self.before.iter().fold(turn.message(), |message, (_, hook)| hook(message));
        let reply = turn.ask(&self.agent, message).await?;
        Ok(Act::Say(self.after.iter().fold(reply, |reply, (_, hook)| hook(reply)).parts))
    }
}
