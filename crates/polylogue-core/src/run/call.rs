//! Calls of agents: an agent receives a message in its own chat, which continues from call to call, and replies.

use std::sync::Arc;

use super::RunningChat;
use super::give_up::setup_error;
use crate::log::UncheckedTurn;
use crate::transcript::RestingChat;
use crate::{
    Agent, AnyAgent, Body, Chat, ConfigError, Error, Event, Interrupt, JoinHistory, Log, Message, Name,
    Opening, Path, Result, Status, StopReason, Transcript,
};

/// One call of an agent.
#[derive(Clone)]
pub(crate) struct Invocation {
    pub(crate) chat: Arc<Chat>,
    pub(crate) at: Path,
    pub(crate) task: Arc<str>,
    /// The message; `None` to continue the call that was begun.
    pub(crate) message: Option<Message>,
    /// The event after which calls are counted.
    pub(crate) after: Option<u64>,
    /// The index of the call among those, from 0.
    pub(crate) nth: usize,
    /// What is shared of tool calls and values at the caller.
    pub(crate) around: Vec<Arc<Event>>,
}

/// `message` to `agent`. A message of the agent's own counts as said by the caller `by`: else its view would end with
/// its own message.
pub(crate) fn received_from(mut message: Message, agent: &Name, by: &Name) -> Message {
    if message.from == *agent {
        message.from = if by == agent { Name::user() } else { by.clone() };
    }
    message
}

/// A call that has begun.
pub(crate) enum Begun {
    /// It is over already.
    Over(Invoked),
    /// It runs.
    Open(Box<OpenCall>),
}

/// A call that is not over.
pub(crate) struct OpenCall {
    invocation: Invocation,
    chat: RestingChat,
}

/// The result of a call.
pub(crate) struct Invoked {
    pub(crate) result: Result<Message>,
    /// Model calls of this run.
    pub(crate) replies: Vec<Arc<Event>>,
    /// The chat and the first event of a call that failed, if the failure is logged there.
    pub(crate) failed: Option<(Path, u64)>,
    /// Whether it was over before: nothing new happened.
    pub(crate) is_past: bool,
}

impl Invoked {
    /// Whether a person must answer before the call continues.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self.result, Err(Error::Interrupt(Interrupt::Waiting)))
    }
}

impl From<Error> for Invoked {
    fn from(error: Error) -> Self {
        Self { result: Err(error), replies: Vec::new(), failed: None, is_past: false }
    }
}

impl Invocation {
    /// Makes the call, continues it, or returns its earlier result.
    pub(crate) async fn make(self, log: &Log) -> Invoked {
        match self.begin(log).await {
            Begun::Open(call) => call.run(log, None).await,
            Begun::Over(invoked) => invoked,
        }
    }

    /// Begins the call, if it has not begun.
    pub(crate) async fn begin(mut self, log: &Log) -> Begun {
        match self.begun(log).await {
            Ok((chat, Some(result))) => {
                log.put_back_chat(chat);
                Begun::Over(Invoked { result, replies: Vec::new(), failed: None, is_past: true })
            }
            Ok((mut chat, None)) => {
                let began = last_call(&chat.transcript).unwrap_or(0);
                chat.transcript.inherit(std::mem::take(&mut self.around), began);
                Begun::Open(Box::new(OpenCall { invocation: self, chat }))
            }
            Err(error) => Begun::Over(error.into()),
        }
    }

    /// The chat with the call begun, and the result of the call if it is over.
    async fn begun(&mut self, log: &Log) -> Result<(RestingChat, Option<Result<Message>>)> {
        let mut chat = log.take_chat(&self.at).await?;
        // A session has many calls: those before are not read.
        let since = self.after.map_or(0, |after| after + 1);
        let past = self.past(log.buffer.lock().await.since(since));
        if let Some(Some(failure)) = past.get(self.nth) {
            let error = Error::agent(format!("it failed before: {failure}")).within(&self.at);
            return Ok((chat, Some(Err(error))));
        }
        // The transcript does not contain calls that were rolled back.
        self.nth = past.iter().take(self.nth).filter(|failure| failure.is_none()).count();
        match (self.received(&chat.transcript), &self.message) {
            (Some((received, _)), Some(message)) if received != message => {
                Err(ConfigError::CallDiverged { who: self.chat.name().clone() }.into())
            }
            (Some((_, events)), _) => {
                let reply = reply_of(events, self.chat.name());
                Ok((chat, reply))
            }
            (None, None) => Err(Error::Bug(format!("no call of `{}` was begun", self.chat.name()))),
            (None, Some(message)) => {
                if let Some(since) = self.open_before(&chat.transcript) {
                    log.roll_back(&self.at, since).await?;
                    log.catch_up_chat(&mut chat).await?;
                }
                let transcript = &chat.transcript;
                let open = Opening {
                    participants: vec![self.chat.name().clone()],
                    task: Arc::clone(&self.task),
                    ..Opening::default()
                };
                let opened = (!transcript.is_open()).then_some(Body::Opened(open));
                // No one waits for the reply of a turn that a limit of the agent left open.
                let left_open = transcript.current_speakers().next();
                let given_up = left_open.map(|who| Body::Passed { who: who.clone() });
                // An agent that left is back when it is called.
                let who = self.chat.name();
                let back = transcript.left().iter().any(|(gone, _)| gone == who);
                let back = back.then(|| Body::Joined { who: who.clone(), sees: JoinHistory::New });
                let before = opened.into_iter().chain(given_up).chain(back);
                let called = Body::reopened(Some(message.clone()));
                for event in log.append(&self.at, before.chain([called])).await? {
                    chat.add(event).map_err(|flaw| log.invalid(&flaw))?;
                }
                Ok((chat, None))
            }
        }
    }

    /// The call that a turn before this one left open when it was given up: no one waits for its reply any more.
    fn open_before(&self, transcript: &Transcript) -> Option<u64> {
        open_call_of(transcript).filter(|seq| self.after.is_some_and(|after| *seq < after))
    }

    /// The calls in `events`, those that count, including those that were rolled back, with the failures of those.
    fn past(&self, events: &[Arc<Event>]) -> Vec<Option<String>> {
        let mut calls: Vec<(u64, Option<String>)> = Vec::new();
        let mut failure = String::new();
        for event in events {
            match &event.body {
                Body::Failed { error, .. } if event.chat == self.at || event.chat.is_within(&self.at) => {
                    failure.clone_from(&error.message);
                }
                Body::RolledBack { since } if event.chat == self.at => {
                    let undone = calls.iter_mut().filter(|(seq, _)| seq >= since);
                    undone.for_each(|(_, why)| *why = Some(failure.clone()));
                }
                _ if event.chat == self.at && is_call(event) => calls.push((event.seq, None)),
                _ => {}
            }
        }
        calls.into_iter().map(|(_, why)| why).collect()
    }

    /// The message of this call, and the events after it in the chat; `None` if it has not begun.
    fn received<'t>(&self, transcript: &'t Transcript) -> Option<(&'t Message, &'t [Arc<Event>])> {
        let events = transcript.events();
        let before = self.after.and_then(|after| events.iter().rposition(|event| event.seq <= after));
        let mut calls = (before.map_or(0, |at| at + 1)..events.len())
            .filter(|&at| events.get(at).is_some_and(|event| is_call(event)));
        let at = calls.nth(self.nth)?;
        let end = calls.next().unwrap_or(events.len());
        let event = events.get(at)?;
        let Body::Reopened { message: Some(message), .. } = &event.body else { return None };
        Some((message, events.get(at + 1..end)?))
    }

    fn result_of(&self, transcript: &Transcript) -> Result<Message> {
        let reply = self.received(transcript).and_then(|(_, events)| reply_of(events, self.chat.name()));
        reply.unwrap_or_else(|| Err(Error::Bug(format!("a call of `{}` has no reply", self.chat.name()))))
    }
}

impl OpenCall {
    /// Runs it to its end. `doubt` lasts until its turns are checked.
    pub(crate) async fn run(self, log: &Log, doubt: Option<UncheckedTurn<'_>>) -> Invoked {
        let Self { invocation, chat } = self;
        let mut running = RunningChat::of(log, chat);
        running.doubt = doubt;
        let status = running.run(&invocation.chat, Opening::default()).await;
        let replies = std::mem::take(&mut running.replies);
        let began = last_call(running.transcript());
        let failed = status.as_ref().err().and(began).map(|seq| (invocation.at.clone(), seq));
        let is_at_rest = match status {
            // The path of a background task is not used again.
            Ok(Status::Closed { .. }) => !invocation.at.is_background(),
            Ok(Status::Waiting(_)) => true,
            _ => false,
        };
        let result = match status {
            Ok(Status::Closed { .. }) => invocation.result_of(running.transcript()),
            Ok(Status::Waiting(_)) => Err(Interrupt::Waiting.into()),
            Ok(Status::Cancelled) => Err(Interrupt::Cancelled.into()),
            Err(error) => Err(error.within(&invocation.at)),
        };
        if is_at_rest {
            // In a box, so that the futures around it stay small.
            Box::pin(running.rest()).await;
        }
        Invoked { result, replies, failed, is_past: false }
    }
}

/// The event with which the last call began.
fn last_call(transcript: &Transcript) -> Option<u64> {
    transcript.events().iter().rfind(|event| is_call(event)).map(|event| event.seq)
}

/// The event with which the call began that is not over.
fn open_call_of(transcript: &Transcript) -> Option<u64> {
    let is_over = |event: &Event| matches!(event.body, Body::Closed { .. } | Body::RolledBack { .. });
    let last = transcript.events().iter().rfind(|event| is_call(event) || is_over(event))?;
    is_call(last).then_some(last.seq)
}

/// Whether an agent is called.
fn is_call(event: &Event) -> bool {
    matches!(event.body, Body::Reopened { message: Some(_), .. })
}

/// The result of the call that these events follow; `None` if it is not over.
fn reply_of(events: &[Arc<Event>], who: &Name) -> Option<Result<Message>> {
    let closed = events.iter().rposition(|event| matches!(event.body, Body::Closed { .. }))?;
    let ended = |reason: StopReason| Err(Interrupt::Ended { who: who.clone(), reason }.into());
    Some(match &events.get(closed)?.body {
        Body::Closed { reason, .. } if *reason != StopReason::Finished => ended(reason.clone()),
        _ => {
            let said = events.iter().rev().find_map(|event| match &event.body {
                Body::Message(message) => Some(Ok(message.clone())),
                Body::Left { who, why } => {
                    Some(ended(StopReason::Left { who: who.clone(), why: why.clone() }))
                }
                _ => None,
            });
            let nothing = || Message { parts: Vec::new(), ..Message::new(who.clone(), "") };
            said.unwrap_or_else(|| Ok(nothing()))
        }
    })
}

impl Log {
    /// Calls `agent` without a chat around it and returns its reply. The agent remembers what it received and said in
    /// earlier calls in this log. If it has nothing to say, the reply has no parts. Calls in one log run one after
    /// the other; for concurrent calls, use one log each.
    ///
    /// The first agent called in a log speaks at the root; others have their own paths next to it, and remember
    /// nothing of each other.
    ///
    /// A failed call leaves no trace in what agents remember: its events stay in the log, [rolled
    /// back](Body::RolledBack).
    ///
    /// # Errors
    /// When a turn fails, a limit is reached, or the agent [ends](Interrupt::Ended) its chat instead of replying: then
    /// the call is rolled back. [`Interrupt::Waiting`], [`Interrupt::Cancelled`] and errors of the store leave the call
    /// unfinished: [`resume_call`](Self::resume_call) continues it, [`roll_back_call`](Self::roll_back_call) rolls it back, and
    /// no other call can be made before.
    pub async fn call(&self, agent: &(impl Agent + Clone), message: impl Into<Message>) -> Result<Message> {
        let message = received_from(message.into(), agent.name(), &Name::user());
        let _one_at_a_time = self.calls.lock().await;
        self.begin().await?;
        self.check_idle().await?;
        let chat = Chat::for_calls(AnyAgent::new(agent.clone()), Chat::DEFAULT_MAX_EQUAL_CALLS)?.into();
        // The usage of earlier calls is in the log before this one begins.
        self.write_pending().await?;
        let first = {
            let buffer = self.buffer.lock().await;
            self.account.begin_call(buffer.totals.usage.counted_calls());
            buffer.events.len() as u64
        };
        let at = self.path_of(agent.name()).await?;
        let task = message.text().into();
        let invocation = Invocation {
            chat,
            at,
            task,
            message: Some(message),
            after: first.checked_sub(1),
            nth: 0,
            around: Vec::new(),
        };
        let result = invocation.make(self).await.result;
        self.unless_failed(first, result).await
    }

    /// Continues the unfinished call, after a crash, a cancellation or an answer by a person, and gives the
    /// [default answers](crate::DefaultAnswer) to questions whose time is up. Returns `None` if all calls are over.
    ///
    /// # Errors
    /// When it is the call of another agent, and as [`call`](Self::call).
    pub async fn resume_call(&self, agent: &(impl Agent + Clone)) -> Result<Option<Message>> {
        let _one_at_a_time = self.calls.lock().await;
        self.begin().await?;
        let Some((at, first)) = self.open_call().await? else { return Ok(None) };
        let invocation = self.unfinished(agent, at, first).await?;
        self.answer_expired().await?;
        let result = invocation.make(self).await.result;
        self.unless_failed(first, result).await.map(Some)
    }

    /// Rolls back the unfinished call, which is one of `agent`. Returns whether there was one. A model call that may have been in flight
    /// when an earlier process died is charged before, at its reservation.
    ///
    /// # Errors
    /// When it is the call of another agent, or the log cannot be written.
    pub async fn roll_back_call(&self, agent: &(impl Agent + Clone)) -> Result<bool> {
        let _one_at_a_time = self.calls.lock().await;
        self.begin().await?;
        let Some((at, first)) = self.open_call().await? else { return Ok(false) };
        let may_have_lost = self.read_chat(&at, |chat| self.may_have_lost_calls_in(chat)).await?;
        let invocation = self.unfinished(agent, at, first).await?;
        if may_have_lost {
            let _only_charges = self.only_charges();
            invocation.make(self).await.result.map(drop).or_else(setup_error)?;
        }
        self.roll_back(&Path::root(), first).await?;
        Ok(true)
    }

    /// The unfinished call at `at`, which is to be one of `agent` and began with the event `first`.
    async fn unfinished(&self, agent: &(impl Agent + Clone), at: Path, first: u64) -> Result<Invocation> {
        if at != self.path_of(agent.name()).await? {
            let (log, who) = (self.id().clone(), agent.name().clone());
            return Err(ConfigError::CallOfAnother { log, who }.into());
        }
        self.count_from(first).await;
        Ok(Invocation {
            chat: Chat::for_calls(AnyAgent::new(agent.clone()), Chat::DEFAULT_MAX_EQUAL_CALLS)?.into(),
            at,
            task: "".into(),
            message: None,
            after: first.checked_sub(1),
            nth: 0,
            around: Vec::new(),
        })
    }

    /// Replaces what agents remember in the chats at these paths: earlier events there are rolled back, and the
    /// messages count as said there instead. Each path belongs to the agent named with it. A chat without memory is
    /// not opened, except the outermost.
    ///
    /// # Errors
    /// When a call is not over, or the log cannot be written. Then nothing changes.
    pub async fn set_memories(
        &self,
        paths: impl IntoIterator<Item = (Path, Name, Vec<Message>)> + Send,
    ) -> Result<()> {
        let _one_at_a_time = self.calls.lock().await;
        self.begin().await?;
        self.check_idle().await?;
        let mut bodies = Vec::new();
        for (at, who, messages) in paths {
            let transcript = self.transcript_of(&at).await?;
            let opened = transcript.events().iter().find(|event| matches!(event.body, Body::Opened(_)));
            match opened.map(|event| event.seq + 1) {
                Some(since) if transcript.events().last().is_some_and(|last| last.seq >= since) => {
                    bodies.push((at.clone(), Body::RolledBack { since }));
                }
                None if at.is_root() || !messages.is_empty() => {
                    let opening = Opening { participants: vec![who], ..Opening::default() };
                    bodies.push((at.clone(), Body::Opened(opening)));
                }
                _ => {}
            }
            bodies.extend(messages.into_iter().map(|message| (at.clone(), Body::Posted(message))));
        }
        self.append_each(bodies).await
    }

    /// Counts model calls for the call whose first event is `first`.
    async fn count_from(&self, first: u64) {
        let before = self.buffer.lock().await.calls_before(first);
        self.account.begin_call(before);
    }

    async fn check_idle(&self) -> Result<()> {
        match self.open_call().await? {
            None => Ok(()),
            Some(_) => Err(ConfigError::CallNotOver { log: self.id().clone() }.into()),
        }
    }

    /// Rolls back a call that failed permanently.
    async fn unless_failed(&self, first: u64, result: Result<Message>) -> Result<Message> {
        if let Err(error) = &result
            && !matches!(error, Error::Interrupt(Interrupt::Waiting | Interrupt::Cancelled) | Error::Store(_))
        {
            self.roll_back(&Path::root(), first).await?;
        }
        result
    }

    /// Returns the path at which `who` is called: the root for the agent that was called first.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn path_of(&self, who: &Name) -> Result<Path> {
        let opened = |event: &Arc<Event>| match &event.body {
            Body::Opened(opening) if event.chat.is_root() => Some(opening.participants.clone()),
            _ => None,
        };
        match self.look(|events| events.iter().find_map(opened)).await {
            Some(with) if with != [who.clone()] => Ok(Path::root().agent(who.as_str())?),
            _ => Ok(Path::root()),
        }
    }

    /// The path of the call that is not over, and its first event.
    async fn open_call(&self) -> Result<Option<(Path, u64)>> {
        let outermost = |event: &&Arc<Event>| event.chat.is_outermost();
        let last = self.look(|events| events.iter().rev().find(outermost).cloned()).await;
        let Some(last) =
            last.filter(|event| !matches!(event.body, Body::Closed { .. } | Body::RolledBack { .. }))
        else {
            return Ok(None);
        };
        let at = last.chat.clone();
        let open = self.read_chat(&at, open_call_of).await?;
        Ok(open.map(|seq| (at, seq)))
    }
}
