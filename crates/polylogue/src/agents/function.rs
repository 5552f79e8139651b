//! Agents that are functions.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyAgent, Name, NameError, Result, SubAgent, Turn};

/// An agent that is a function of its turn.
///
/// [`new`](Self::new) takes a function that reads the transcript and returns an act. [`calling`](Self::calling) takes
/// an async function that calls other agents: sequences, branches, loops and graphs of agents are ordinary code.
/// When a run is resumed in the middle of its turn, the function runs again from the beginning and gets the same
/// replies, so it must be deterministic.
///
/// # An agent that counts
/// ```
/// use polylogue::{Act, Function};
/// let counter = Function::new("Counter", |turn| Ok(Act::say((turn.transcript().turns() + 1).to_string())))?;
/// # Ok::<(), polylogue::kernel::data::NameError>(())
/// ```
///
/// # A draft, two readers at the same time, an editor who is asked until they are done
/// ```
/// use polylogue::kernel::agent::AnyAgent;
/// use polylogue::kernel::run::AgentCall;
/// use polylogue::{Act, AnyModel, Assistant, Function, Result};
///
/// fn desk(model: &AnyModel) -> Result<Function> {
///     let agent = |who: &str| Ok::<_, polylogue::Error>(AnyAgent::new(Assistant::new(who, model.clone())?));
///     let agents = [agent("writer")?, agent("grammar")?, agent("style")?, agent("editor")?];
///     let [writer, grammar, style, editor] = agents.clone();
///     Ok(Function::calling("desk", agents, move |turn| {
///         let [writer, grammar, style, editor] = [&writer, &grammar, &style, &editor].map(Clone::clone);
///         Box::pin(async move {
///             let draft = turn.ask(&writer, turn.message()).await?;
///             let readers = [AgentCall::of(&grammar, &draft), AgentCall::of(&style, &draft)];
///             let replies: Vec<_> = turn.ask_all(readers).await.into_iter().collect::<Result<_>>()?;
///             let remarks: Vec<_> = replies.iter().map(|reply| reply.text()).collect();
///             let mut text = turn.ask(&editor, remarks.join("\n\n")).await?;
///             for _ in 0..5 {
///                 if text.text().ends_with("DONE") {
///                     break;
///                 }
///                 text = turn.ask(&editor, text).await?;
///             }
///             Ok(Act::Say(text.parts))
///         })
///     })?)
/// }
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct Function {
    name: Name,
    #[debug(skip)]
    sub_agents: Vec<SubAgent>,
    #[debug(skip)]
    act: Arc<ActFn>,
}

type ActFn = dyn for<'a> Fn(&'a mut Turn<'_>) -> ActFuture<'a> + Send + Sync;

/// The return type of the function of [`Function::calling`]: a boxed `async` block.
pub type ActFuture<'a> = Pin<Box<dyn Future<Output = Result<Act>> + Send + 'a>>;

impl Function {
    /// Creates an agent named `name` that runs `act` in its turns.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(
        name: impl AsRef<str>,
        act: impl Fn(&Turn<'_>) -> Result<Act> + Send + Sync + 'static,
    ) -> Result<Self, NameError> {
        Self::calling(name, [], move |turn| Box::pin(ready(act(turn))))
    }

    /// Creates an agent named `name` that runs `act`, which [calls](Turn::ask) `agents` by their names. What each remembers can
    /// be read and reset in a [`Session`](crate::Session).
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn calling(
        name: impl AsRef<str>,
        agents: impl IntoIterator<Item = AnyAgent>,
        act: impl for<'a> Fn(&'a mut Turn<'_>) -> ActFuture<'a> + Send + Sync + 'static,
    ) -> Result<Self, NameError> {
        let sub_agents = agents.into_iter().map(|agent| SubAgent::of(&agent)).collect();
        Ok(Self { name: Name::new(name)?, sub_agents, act: Arc::new(act) })
    }
}

impl Agent for Function {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        self.sub_agents.clone()
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        (self.act)(turn).await
    }
}
