//! Asking other agents within a turn.

use std::sync::Arc;

use futures_util::future::join_all;

use super::Turn;
use crate::call::{Visit, Visited, told};
use crate::{Agent, AnyAgent, Body, Chat, Error, Event, Message, Name, Part, Path, Result, StopReason};

/// An agent that is to be asked, and what.
#[derive(Debug, Clone)]
pub struct AgentCall {
    label: Arc<str>,
    agent: AnyAgent,
    message: Message,
}

impl AgentCall {
    /// Asks `agent` by its name.
    #[must_use]
    pub fn of(agent: &(impl Agent + Clone), message: impl Into<Message>) -> Self {
        Self::labelled(agent.name().as_str(), agent, message)
    }

    /// Asks `agent` as `label`; see [`Turn::ask_as`].
    #[must_use]
    pub fn labelled(
        label: impl Into<Arc<str>>,
        agent: &(impl Agent + Clone),
        message: impl Into<Message>,
    ) -> Self {
        let (label, message) = (label.into(), message.into());
        Self { label, agent: AnyAgent::new(agent.clone()), message }
    }
}

impl Turn<'_> {
    /// Where words from outside come from that this agent has read by now, here and in chats within its turns: the sources of
    /// outcomes and of messages, the first 8 of them. Empty if it has read none.
    pub async fn outside(&self) -> Vec<Arc<str>> {
        // What came later is in the log already when the turn is resumed.
        let next = self.past.front().map(|event| event.seq);
        self.log.read_by(self.transcript.at(), self.me(), next).await
    }

    /// What this agent is to reply to: what it was called with, or else the last message of somebody else that it sees; in a chat
    /// that tells it something for itself, that. Blank when there is none. What it was [told](Self::prompt) in this turn so far,
    /// such as a reminder, comes after it.
    #[must_use]
    pub fn message(&self) -> Message {
        let mut message = match &self.cue.prompt {
            Some(prompt) => Message::text(Name::user(), Arc::clone(prompt)),
            None => self.last_message().map_or_else(|| Message::from(""), |line| line.message.clone()),
        };
        let told = self.journal.iter().filter_map(|event| match &event.body {
            Body::Prompted { who, text } if who == self.me() => Some(Part::Text(Arc::clone(text))),
            _ => None,
        });
        message.parts.extend(told);
        message
    }

    /// Asks another agent, and returns what it says. It remembers what this agent asked it before, in this turn and in earlier
    /// ones, and nothing else of the conversation. When it has nothing to say, the message has no parts.
    ///
    /// What it said itself, it is told as by this agent. Its events stand in a room of its own, below this agent's. What is asked and answered is in the log: a turn that is
    /// resumed is given the same answers.
    ///
    /// # Errors
    /// When the agent fails: [`Error::Within`] names it. When it ends instead of replying: [`Error::Ended`]. When a person has to
    /// answer first: [`Error::Waiting`]. Pass these on, by `?`: the turn ends, or waits, as it ought to. When agents are nested
    /// too deep, a limit is met, the run is stopped, or the log cannot be written.
    ///
    /// An agent that goes on after an error - with another call, of this agent or of others - has lost the call for good:
    /// it is undone, and a turn that is resumed finds that it failed.
    pub async fn ask(
        &mut self,
        agent: &(impl Agent + Clone),
        message: impl Into<Message>,
    ) -> Result<Message> {
        self.make(AgentCall::of(agent, message)).await
    }

    /// As [`ask`](Self::ask), in the room `label` in place of that of the agent's name. So agents of the same name can each
    /// remember something else; a label such as `items.0` is for one of many.
    ///
    /// # Errors
    /// When the label is illegal, and as [`ask`](Self::ask).
    pub async fn ask_as(
        &mut self,
        label: &str,
        agent: &(impl Agent + Clone),
        message: impl Into<Message>,
    ) -> Result<Message> {
        self.make(AgentCall::labelled(label, agent, message)).await
    }

    /// Asks several agents at the same time, and returns what they say in the order in which they are given here. All of them
    /// are done, or have failed, when this returns.
    ///
    /// # Errors
    /// Of each as of [`ask`](Self::ask); also when two are to be asked in the same room.
    pub async fn ask_all(&mut self, asks: impl IntoIterator<Item = AgentCall>) -> Vec<Result<Message>> {
        if let Err(error) = self.survive().await {
            return asks.into_iter().map(|_| Err(error.clone())).collect();
        }
        let mut rooms: Vec<Path> = Vec::new();
        let mut visit = |asking: AgentCall| {
            let label = Arc::clone(&asking.label);
            let visit = self.visit(asking)?;
            if rooms.contains(&visit.at) {
                return Err(Error::Config(format!(
                    "`{label}` is asked twice at once; give each a label of its own"
                )));
            }
            rooms.push(visit.at.clone());
            Ok(visit)
        };
        let mut visits: Vec<Result<Visit>> = asks.into_iter().map(&mut visit).collect();
        // None of them knows what others do at the same time.
        for visit in visits.iter_mut().flatten() {
            let others: Vec<Path> = rooms.iter().filter(|room| **room != visit.at).cloned().collect();
            visit.around = self.shared(&others);
        }
        let log = self.log;
        let make = async |visit: Result<Visit>| match visit {
            Ok(visit) => visit.make(log).await,
            Err(error) => error.into(),
        };
        let done: Vec<Visited> = join_all(visits.into_iter().map(make)).await;
        done.into_iter().map(|visited| self.take_in(visited)).collect()
    }

    async fn make(&mut self, asking: AgentCall) -> Result<Message> {
        self.survive().await?;
        let mut visit = self.visit(asking)?;
        visit.around = self.shared(&[]);
        let visited = visit.make(self.log).await;
        self.take_in(visited)
    }

    fn visit(&mut self, asking: AgentCall) -> Result<Visit> {
        self.doubt = None;
        let AgentCall { label, agent, message } = asking;
        let at = self.home()?.room(&label)?;
        if at.depth() > self.log.depth() {
            return Err(Error::Limit(StopReason::Depth { limit: self.log.depth() }));
        }
        let nth = self.asked.get(&at).copied().unwrap_or_default();
        self.asked.insert(at.clone(), nth + 1);
        let message = told(message, agent.name(), self.me());
        Ok(Visit {
            room: Chat::room(agent, self.chat.max_equal_calls())?,
            at,
            task: self.transcript.task().into(),
            message: Some(message),
            after: self.begun(),
            nth,
            around: Vec::new(),
        })
    }

    /// Below which the rooms of those stand whom this agent asks.
    fn home(&self) -> Result<Path> {
        let at = self.transcript.at();
        match self.chat.is_room() && !at.is_root() {
            true => Ok(at.clone()),
            false => at.room(self.me().as_str()),
        }
    }

    /// The event with which the turn began.
    fn begun(&self) -> Option<u64> {
        let cued = |body: &Body| matches!(body, Body::TurnStarted { turns } if turns.iter().any(|cue| cue.who == *self.me()));
        self.transcript.events().iter().rfind(|event| cued(&event.body)).map(|event| event.seq)
    }

    fn take_in(&mut self, mut visited: Visited) -> Result<Message> {
        self.within.append(&mut visited.sampled);
        self.in_doubt &= visited.is_past;
        self.failed_within = visited.failed.is_some();
        self.failed.extend(visited.failed);
        visited.result
    }

    /// Undoes calls that failed, once the agent goes on after them: then they have failed for good, and a resumed turn finds
    /// them so. Those with which its turn fails are tried again when the turn is.
    pub(super) async fn survive(&mut self) -> Result<()> {
        for (at, since) in std::mem::take(&mut self.failed) {
            self.log.undo(&at, since).await?;
            let is_there = |other: &Path| *other == at || other.is_within(&at);
            let stays = |event: &Arc<Event>| !is_there(&event.at) || event.seq < since;
            self.within_before.retain(stays);
            self.within.retain(|event| stays(event) || matches!(event.body, Body::ModelReplied(_)));
            let is_undone = |event: &&Arc<Event>| {
                is_there(&event.at) && matches!(event.body, Body::RolledBack { since: from } if from >= since)
            };
            let undone: Vec<_> =
                self.log.look(|events| events.iter().filter(is_undone).cloned().collect()).await;
            self.within.extend(undone);
        }
        Ok(())
    }
}
