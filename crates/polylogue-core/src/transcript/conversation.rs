//! The conversation in a log: its transcripts and questions; answering, reopening and closing it.

use std::sync::Arc;

use super::raised::{RaisedLimits, Raises};
use super::{OpenTurn, Transcript};
use crate::log::{Pending, RunTotals, Timing};
use crate::{
    Body, ChatLimits, ConfigError, Error, Event, FinishReason, InboxMessage, Instruction, InstructionError,
    LimitOverrides, Limits, Log, Message, Name, OpenQuestion, Part, Path, Question, Responder, Result,
    StopReason, TeamChanged,
};

impl Log {
    /// Returns the transcript of the outermost chat.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn transcript(&self) -> Result<Transcript> {
        self.transcript_of(&Path::root()).await
    }

    /// Returns the transcript of the chat `at`.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn transcript_of(&self, at: &Path) -> Result<Transcript> {
        let buffer = self.buffer.lock().await;
        Transcript::from_events(at, &buffer.events).map_err(|flaw| self.invalid(&flaw))
    }

    pub(crate) fn invalid(&self, flaw: &str) -> Error {
        Error::Bug(format!("the log of `{}` is not a valid conversation: {flaw}", self.id()))
    }

    /// Returns the questions without an answer, with the paths of their chats.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn questions(&self) -> Result<Vec<(Path, Question)>> {
        Ok(Question::with_chats(self.open_questions().await))
    }

    /// Answers the question of `who` in the chat `at`. The answer is in the log when this returns; run the chat again
    /// to continue.
    ///
    /// # Errors
    /// When there is no such question, or the store cannot be written.
    pub async fn answer(&mut self, at: &Path, who: &Name, text: impl Into<Arc<str>>) -> Result<()> {
        self.answer_by(at, who, text, Responder::Unnamed).await
    }

    /// Answers like [`answer`](Self::answer), and says who answered.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_by(
        &mut self,
        at: &Path,
        who: &Name,
        text: impl Into<Arc<str>>,
        by: Responder,
    ) -> Result<()> {
        if !self.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(ConfigError::NothingAsked { who: who.clone() }.into());
        }
        self.append(at, [Body::InputProvided { to: who.clone(), text: text.into(), by }]).await?;
        Ok(())
    }

    /// Gives their [default answers](crate::DefaultAnswer) to the questions whose time is up. Returns how many. A run does so when
    /// it begins.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn answer_expired(&self) -> Result<usize> {
        let now = self.time_now();
        let open = self.open_questions().await;
        let expired: Vec<(Path, Body)> = open
            .into_iter()
            .filter(|open| open.is_up(now))
            .filter_map(OpenQuestion::default_answer)
            .collect();
        let count = expired.len();
        self.append_each(expired).await?;
        Ok(count)
    }

    /// Reopens a closed conversation, for instance under a higher limit. Does nothing if it is not closed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn reopen(&mut self) -> Result<()> {
        self.reopen_for(LimitOverrides::default()).await
    }

    /// Reopens like [`reopen`](Self::reopen): limits of the outermost chat itself - its maximum number of turns, and termination
    /// conditions that count turns, messages, tokens or money - end it only when it has used `more` than now. The same
    /// holds for limits of the chat or of the agent that ended it. Limits of the whole run are those of the log; [`limits_beyond`](Self::limits_beyond) has those to set.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn reopen_for(&mut self, more: LimitOverrides) -> Result<()> {
        if self.is_over().await? {
            self.append(&Path::root(), [Body::Reopened { message: None, more, sent: false }]).await?;
        }
        Ok(())
    }

    /// Returns the limits of the whole run that allow `more` than it has used so far.
    pub async fn limits_beyond(&self, more: LimitOverrides) -> LimitOverrides {
        more.beyond(&self.usage().await, (self.turns().await, self.time_used_ms().await))
    }

    /// Reopens a closed conversation with a new message. Run the chat again to continue.
    ///
    /// # Errors
    /// When the conversation is not closed, or the store cannot be written.
    pub async fn continue_with(&mut self, message: Message) -> Result<()> {
        if !self.is_over().await? {
            return Err(ConfigError::NotOver { log: self.id().clone() }.into());
        }
        self.append(&Path::root(), [Body::reopened(Some(message))]).await?;
        Ok(())
    }

    /// Sends a message into a conversation that is not running: reopens a closed one with it, as
    /// [`continue_with`](Self::continue_with) does, and adds it to any other. Run the chat again to continue.
    ///
    /// # Errors
    /// When the conversation has not begun, or the store cannot be written.
    pub async fn send(&mut self, message: Message) -> Result<()> {
        let body = self.sent_body(message).await?;
        self.append(&Path::root(), [body]).await?;
        Ok(())
    }

    async fn sent_body(&self, message: Message) -> Result<Body> {
        match self.read_chat(&Path::root(), |chat| (chat.is_open(), chat.closed().is_some())).await? {
            (false, _) => Err(ConfigError::NotBegun { log: self.id().clone() }.into()),
            (true, true) => Ok(Body::reopened(Some(message))),
            (true, false) => Ok(Body::Sent(message)),
        }
    }

    /// Carries out the [instructions that were given by a handle](crate::LogHandle::instruct) after the last step of a run. A next
    /// speaker waits for the next run. Returns whether there were any.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn post_inbox(&mut self) -> Result<bool> {
        let (mut is_any, mut later) = (false, Vec::new());
        while let Some(pending) = self.inbox.take(&[Timing::Now, Timing::BetweenSteps, Timing::AtRest]) {
            match &pending.instruction {
                Instruction::Send(message) => self.post_sent(message.clone(), pending).await?,
                Instruction::Answer { .. } => drop(self.post_answer(pending).await?),
                Instruction::NextSpeaker { .. } if self.is_over().await? => {
                    self.refuse(pending, "the conversation has ended").await?;
                }
                Instruction::NextSpeaker { .. } => {
                    later.push(pending);
                    continue;
                }
                _ => self.obey(pending).await?,
            }
            is_any = true;
        }
        later.into_iter().rev().for_each(|pending| self.inbox.put_back(pending));
        Ok(is_any)
    }

    /// Takes in the messages of the inbox of the store that came while no process ran the conversation. A pause and a cancellation
    /// among them are logged, and have no effect on the next run: it is what resumes the conversation.
    ///
    /// # Errors
    /// As [`post_inbox`](Self::post_inbox).
    pub async fn take_in_inbox(&mut self, messages: Vec<(u64, InboxMessage)>) -> Result<()> {
        let handle = self.handle();
        for (number, message) in messages {
            drop(handle.deliver(number, message.instruction).await);
        }
        self.post_inbox().await?;
        self.cancellation().clear();
        self.unpause();
        Ok(())
    }

    async fn is_over(&self) -> Result<bool> {
        self.read_chat(&Path::root(), |chat| chat.closed().is_some()).await
    }

    async fn post_sent(&self, message: Message, pending: Pending) -> Result<()> {
        let body = match self.sent_body(message).await {
            Ok(body) => body,
            Err(error) => {
                pending.confirm(Err(InstructionError::Lost));
                return Err(error);
            }
        };
        self.append_instructed(&Path::root(), pending.number, body).await?;
        pending.confirm(Ok(()));
        Ok(())
    }

    /// Logs that an instruction is not carried out.
    pub(crate) async fn refuse(&self, pending: Pending, why: impl Into<Arc<str>>) -> Result<()> {
        let why = why.into();
        let instruction = Box::new(pending.instruction.clone());
        let body = Body::Refused { instruction, why: Arc::clone(&why) };
        self.append_instructed(&Path::root(), pending.number, body).await?;
        pending.confirm(Err(InstructionError::Refused(why)));
        Ok(())
    }

    /// Closes a conversation in which no call can be lost any more; see [`Chat::close`](crate::Chat::close).
    pub(crate) async fn close(&mut self, by: &str) -> Result<()> {
        let transcript = self.transcript().await?;
        if !transcript.is_open() {
            return Err(ConfigError::NotBegun { log: self.id().clone() }.into());
        }
        if transcript.closed().is_none() {
            let reason = StopReason::Stopped { by: by.to_owned() };
            let summary = transcript.summary();
            let ended = Self::cancelled_tasks(transcript.background_tasks());
            self.append(&Path::root(), ended.into_iter().chain([Body::Closed { reason, summary }])).await?;
        }
        Ok(())
    }

    /// Ends the open turns of the outermost chat, in which no call can be lost any more; see
    /// [`Chat::end_open_turns`](crate::Chat::end_open_turns).
    pub(crate) async fn end_open_turns(&mut self) -> Result<()> {
        let transcript = self.transcript().await?;
        let open = transcript.open_turns();
        if open.is_empty() {
            return Ok(());
        }
        let begun = transcript.events().iter().rev().find_map(|event| match &event.body {
            Body::TurnStarted { turns } => Some((event.seq, turns.len())),
            _ => None,
        });
        if let Some((since, turns)) = begun
            && turns == open.len()
            && open.iter().all(|turn| said(turn).is_none())
        {
            // None of them has ended. Background tasks that were started before continue.
            let earlier = transcript.background_tasks().iter().filter(|entry| entry.seq < since);
            let earlier: Vec<Path> =
                earlier.map(|entry| transcript.path_of_background(&entry.task)).collect();
            return self.roll_back_except(&Path::root(), since, &earlier).await;
        }
        let ended: Vec<Body> = open.iter().map(end_of_turn).collect();
        self.append(&Path::root(), ended).await?;
        Ok(())
    }

    /// Returns whether the process that wrote this log last may have died while a model call was in flight. Such a call is
    /// charged when the conversation is resumed, before anything is sent, and by
    /// [`Chat::charge_lost_calls`](crate::Chat::charge_lost_calls).
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn may_have_lost_calls(&self) -> Result<bool> {
        self.read_chat(&Path::root(), |chat| self.may_have_lost_calls_in(chat)).await
    }

    /// The same of the chat with this transcript.
    pub(crate) fn may_have_lost_calls_in(&self, transcript: &Transcript) -> bool {
        let is_lost = |turn: &OpenTurn| turn.asked.is_none() && self.may_have_lost_call(turn.last);
        // At a limit, all calls are over before a person is asked.
        let asked = transcript.limit_question().map_or(0, |asked| asked.seq);
        let mut open = transcript.open_turns().iter().filter(|turn| turn.last.seq > asked);
        // Where a background task is open, one of its calls may have been in flight.
        let in_background = transcript.open_background().any(|entry| entry.seq < self.inherited);
        transcript.closed().is_none() && (in_background || open.any(is_lost))
    }

    /// Logs that `limits` apply from now on instead of those `before`, for this process and for those that continue the conversation later:
    /// each reads them by [`LimitOverrides::last_of`] and sets them by [`limits`](Self::limits).
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn change_limits(&mut self, limits: LimitOverrides, before: &Limits) -> Result<()> {
        let (more, changes) = (LimitOverrides::default(), before.changes_by(limits));
        let body = Body::LimitsChanged { limits, more, changes, by: None };
        self.append(&Path::root(), [body]).await?;
        Ok(())
    }

    /// The event that allows `more` than was used, of the run and of its outermost chat, as the person `by` wants; else why that raises no
    /// limit.
    pub(crate) async fn raised_by(
        &self,
        more: LimitOverrides,
        by: Option<Arc<str>>,
    ) -> Result<std::result::Result<Body, String>> {
        let of_chat =
            |chat: &Transcript| (ChatLimits::from(*chat.raised()), ChatLimits::from(chat.beyond(&more)));
        let (limits, (raised, own)) = (self.limits_now(), self.read_chat(&Path::root(), of_chat).await?);
        let totals = self.limits_beyond(more).await;
        if let Some(why) = limits.lowered_by(totals, &own) {
            return Ok(Err(why));
        }
        let earlier = self.look(LimitOverrides::last_of).await.unwrap_or_default();
        let of_run = totals.where_limited(&limits).or(earlier);
        let before = Limits { chat: limits.chat.raised_to(&raised), ..limits };
        let after = Limits { chat: before.chat.raised_to(&own), ..of_run.apply_to(before) };
        let changes = before.changes_to(&after);
        if let Some(why) = more.unraised(&changes) {
            return Ok(Err(why));
        }
        Ok(Ok(Body::LimitsChanged { limits: of_run, more: more.of_chat(&limits.chat), changes, by }))
    }

    /// Logs that the conversation continues with another version of its team.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn change_team(&mut self, changed: TeamChanged) -> Result<()> {
        self.append(&Path::root(), [Body::TeamChanged(changed)]).await?;
        Ok(())
    }

    /// Returns whether its conversation has begun.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn has_begun(&self) -> Result<bool> {
        self.read_chat(&Path::root(), Transcript::is_open).await
    }
}

impl Transcript {
    /// Returns the limits that a resumption or a person raised.
    pub const fn raised(&self) -> &RaisedLimits {
        &self.raised.limits
    }

    /// The totals that allow `more` than the chat has used; 0 where `more` says nothing.
    pub(crate) fn beyond(&self, more: &LimitOverrides) -> RaisedLimits {
        let mut limits = RaisedLimits::default();
        limits.raise(&self.used(), more);
        limits
    }

    /// What it has used since it was opened last.
    pub(super) const fn used(&self) -> RaisedLimits {
        RaisedLimits {
            turns: self.turns(),
            messages: self.message_count(),
            tokens: self.tokens(),
            cost: self.cost(),
        }
    }

    /// Allows `more` than the chat has used, by the event `seq`, and no less than before.
    pub(super) fn raise_while_open(&mut self, more: &LimitOverrides, seq: u64) {
        if !more.is_empty() {
            let limits = self.raised.limits.at_least(self.beyond(more));
            self.raised = Raises { limits, last: Some(seq) };
        }
    }

    /// The last event that raised limits of the chat itself while it was open.
    pub(crate) const fn last_raise(&self) -> Option<u64> {
        self.raised.last
    }

    /// Takes over what `now`, which is of the same chat, has raised.
    pub(crate) const fn take_raised(&mut self, now: &Self) {
        self.raised = now.raised;
    }
}

/// What participants see at the end of a message that was cut off.
const CUT_OFF: &str = "[cut off by the user]";

/// What the agent of an open turn said last in it, if nothing followed: a whole reply, or as much as had arrived of one that was aborted.
fn said(turn: &OpenTurn) -> Option<Vec<Part>> {
    let parts = match &turn.events.last()?.body {
        Body::ReplyInterrupted { text, .. } => {
            return Some(vec![
                Part::Text(Arc::clone(text)),
                Part::text(CUT_OFF),
                Part::Cut(FinishReason::Interrupted),
            ]);
        }
        Body::ModelReplied(reply) if reply.purpose.is_turn() && reply.finish == FinishReason::Stop => {
            &reply.parts
        }
        _ => return None,
    };
    let is_text = parts.iter().any(|part| matches!(part, Part::Text(_)) && !part.is_blank());
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    (is_text && !calls).then(|| parts.clone())
}

fn end_of_turn(turn: &OpenTurn) -> Body {
    let who = turn.request.who.clone();
    match said(turn) {
        Some(parts) => {
            Body::Message(Message { from: who, to: turn.request.to.clone(), parts, outside: Vec::new() })
        }
        None => Body::Passed { who },
    }
}

impl LimitOverrides {
    /// Returns the overrides that were logged last in `events`. `None` if the limits were never changed.
    pub fn last_of(events: &[Arc<Event>]) -> Option<Self> {
        events.iter().rev().find_map(|event| match &event.body {
            Body::LimitsChanged { limits, .. } => Some(*limits),
            _ => None,
        })
    }

    /// Returns how much more the overrides that were logged last in `events` allowed: than the limit about which a person was asked, else
    /// than what had been used until then, for which [`Log::limits_beyond`] was asked. Empty if the limits were never changed.
    pub fn last_allowed(events: &[Arc<Event>]) -> Self {
        let changed = |event: &Arc<Event>| matches!(event.body, Body::LimitsChanged { .. });
        let before = events.get(..events.iter().rposition(changed).unwrap_or(0)).unwrap_or_default();
        let Some(totals) = Self::last_of(events) else { return Self::default() };
        let RunTotals { turns, usage, time, accounts, .. } = RunTotals::of(before);
        let agreed = accounts.agreed_of_run().map(|reached| totals.above(reached.limit()));
        agreed.unwrap_or_default().or(totals.less(&usage, (turns.ended, time.used_ms())))
    }
}
