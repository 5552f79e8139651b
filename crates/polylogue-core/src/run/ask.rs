//! Calling other agents within a turn.

use std::sync::Arc;

use futures_util::future::join_all;

use super::call::{Begun, Invocation, Invoked, received_from};
use super::in_progress::InProgress;
use crate::log::UncheckedTurn;
use crate::{
    Agent, AnyAgent, Body, Chat, ConfigError, Interrupt, Log, Message, Path, Result, StopReason, Turn,
    TurnRequest,
};

/// A call of another agent, for [`Turn::ask_all`].
#[derive(Debug, Clone)]
pub struct AgentCall {
    label: Arc<str>,
    agent: AnyAgent,
    message: Message,
}

impl AgentCall {
    /// Calls `agent` by its name.
    pub fn of(agent: &(impl Agent + Clone), message: impl Into<Message>) -> Self {
        Self::labeled(agent.name().as_str(), agent, message)
    }

    /// Calls `agent` as `label`; see [`Turn::ask_as`].
    pub fn labeled(
        label: impl Into<Arc<str>>,
        agent: &(impl Agent + Clone),
        message: impl Into<Message>,
    ) -> Self {
        let (label, message) = (label.into(), message.into());
        Self { label, agent: AnyAgent::new(agent.clone()), message }
    }
}

/// Continues the call `again`, which waits for a person, after each answer, until it is over or no other one is in progress.
async fn continued(mut invoked: Invoked, again: &Invocation, log: &Log, in_progress: &InProgress) -> Invoked {
    while invoked.waits() {
        let mut asked = log.open_questions().await;
        asked.retain(|open| open.chat == again.at || open.chat.is_within(&again.at));
        match in_progress.answered(log, &asked).await {
            Ok(Some(_)) => {
                // As in a new run: what was done before is in the log.
                let mut next = again.clone().make(log).await;
                invoked.replies.append(&mut next.replies);
                invoked = Invoked { replies: invoked.replies, ..next };
            }
            Ok(None) => return invoked,
            Err(error) => invoked.result = Err(error),
        }
    }
    in_progress.ends_one();
    invoked
}

impl<'a> Turn<'a> {
    /// Calls another agent and returns its reply. It remembers earlier calls by this agent, in this turn and earlier
    /// ones, and nothing else of the conversation. If it has nothing to say, the message has no parts.
    ///
    /// A message by the called agent itself counts as said by this agent. The events of the call have their own path,
    /// below this agent's. They are logged: a resumed turn receives the same replies.
    ///
    /// # Errors
    /// When the agent fails: [`Error::Within`](crate::Error::Within) names it. When it ends its chat instead of
    /// replying: [`Interrupt::Ended`].
    /// When a person must answer first: [`Interrupt::Waiting`]. Return these, by `?`, so that the turn ends or waits.
    /// When agents are nested too deep, a limit is reached, the run is cancelled, or the log cannot be written.
    ///
    /// If this agent handles the error and continues - with another call, of this agent or of others - the failed
    /// call is final: it is rolled back, and a resumed turn receives the same failure.
    pub async fn ask(
        &mut self,
        agent: &(impl Agent + Clone),
        message: impl Into<Message>,
    ) -> Result<Message> {
        self.make(AgentCall::of(agent, message)).await
    }

    /// Asks like [`ask`](Self::ask), at the path of `label` instead of the agent's name. So agents of the same name can have
    /// separate memories; a label such as `items.0` is for one of many.
    ///
    /// # Errors
    /// When the label is invalid, and as [`ask`](Self::ask).
    pub async fn ask_as(
        &mut self,
        label: &str,
        agent: &(impl Agent + Clone),
        message: impl Into<Message>,
    ) -> Result<Message> {
        self.make(AgentCall::labeled(label, agent, message)).await
    }

    /// Calls several agents in parallel, and returns their replies in the order of the calls, after all of them are
    /// done or have failed. One that waits for a person continues with the answer while another one is in progress.
    ///
    /// # Errors
    /// Each as of [`ask`](Self::ask); also when two have the same label.
    pub async fn ask_all(&mut self, asks: impl IntoIterator<Item = AgentCall>) -> Vec<Result<Message>> {
        if let Err(error) = self.survive().await {
            return asks.into_iter().map(|_| Err(error.clone())).collect();
        }
        let mut paths: Vec<Path> = Vec::new();
        let mut invocation = |asking: AgentCall| {
            let label = Arc::clone(&asking.label);
            let invocation = self.invocation(asking)?;
            if paths.contains(&invocation.at) {
                return Err(ConfigError::CalledTwice { label }.into());
            }
            paths.push(invocation.at.clone());
            Ok(invocation)
        };
        let mut invocations: Vec<Result<Invocation>> = asks.into_iter().map(&mut invocation).collect();
        // None of them sees what the others do in parallel.
        for invocation in invocations.iter_mut().flatten() {
            let others: Vec<Path> = paths.iter().filter(|path| **path != invocation.at).cloned().collect();
            invocation.around = self.shared(&others);
        }
        let is_several = invocations.len() > 1;
        let again =
            |invocation: &Result<Invocation>| invocation.as_ref().ok().filter(|_| is_several).cloned();
        let again: Vec<Option<Invocation>> = invocations.iter().map(again).collect();
        let log = self.log;
        let begin = async |invocation: Result<Invocation>| match invocation {
            Ok(invocation) => invocation.begin(log).await,
            Err(error) => Begun::Over(error.into()),
        };
        let begun = join_all(invocations.into_iter().map(begin)).await;
        let doubt = self.doubt_within(&begun);
        let in_progress = InProgress::new(begun.len());
        let run = |(call, again): (Begun, Option<Invocation>)| {
            let (doubt, in_progress) = (doubt.as_ref().map(UncheckedTurn::another), &in_progress);
            async move {
                let invoked = match call {
                    Begun::Open(call) => call.run(log, doubt).await,
                    Begun::Over(invoked) => invoked,
                };
                match again.filter(|_| invoked.waits()) {
                    // In a box, as that is seldom.
                    Some(again) => Box::pin(continued(invoked, &again, log, in_progress)).await,
                    None => {
                        in_progress.ends_one();
                        invoked
                    }
                }
            }
        };
        let calls: Vec<_> = begun.into_iter().zip(again).map(run).collect();
        drop(doubt);
        let done: Vec<Invoked> = join_all(calls).await;
        done.into_iter().map(|invoked| self.take_in(invoked)).collect()
    }

    async fn make(&mut self, asking: AgentCall) -> Result<Message> {
        self.survive().await?;
        let mut invocation = self.invocation(asking)?;
        invocation.around = self.shared(&[]);
        let invoked = match invocation.begin(self.log).await {
            Begun::Open(call) => call.run(self.log, self.doubt.take()).await,
            Begun::Over(invoked) => invoked,
        };
        self.take_in(invoked)
    }

    /// The doubt about this turn, for the calls in it that are not over.
    fn doubt_within(&mut self, calls: &[Begun]) -> Option<UncheckedTurn<'a>> {
        calls.iter().any(|call| matches!(call, Begun::Open(_))).then(|| self.doubt.take()).flatten()
    }

    fn invocation(&mut self, asking: AgentCall) -> Result<Invocation> {
        let AgentCall { label, agent, message } = asking;
        let at = self.home()?.agent(&label)?;
        if at.depth() > self.log.depth() {
            return Err(Interrupt::Limit(StopReason::Depth { limit: self.log.depth() }).into());
        }
        let nth = self.asked.get(&at).copied().unwrap_or_default();
        self.asked.insert(at.clone(), nth + 1);
        let message = received_from(message, agent.name(), self.me());
        Ok(Invocation {
            chat: Chat::for_calls(agent, self.chat.max_equal_calls())?.into(),
            at,
            task: self.transcript.task().into(),
            message: Some(message),
            after: self.begun(),
            nth,
            around: Vec::new(),
        })
    }

    /// The path below which the agents are called that this agent calls.
    fn home(&self) -> Result<Path> {
        let at = self.transcript.at();
        match self.chat.is_for_calls() && !at.is_root() {
            true => Ok(at.clone()),
            false => Ok(at.agent(self.me().as_str())?),
        }
    }

    /// The event with which the turn began.
    fn begun(&self) -> Option<u64> {
        let is_mine = |request: &TurnRequest| request.who == *self.me();
        let is_start = |body: &Body| matches!(body, Body::TurnStarted { turns } if turns.iter().any(is_mine));
        self.transcript.events().iter().rfind(|event| is_start(&event.body)).map(|event| event.seq)
    }

    fn take_in(&mut self, mut invoked: Invoked) -> Result<Message> {
        self.within.append(&mut invoked.replies);
        self.in_doubt &= invoked.is_past;
        self.failed_within = invoked.failed.is_some();
        self.failed.extend(invoked.failed);
        invoked.result
    }
}
