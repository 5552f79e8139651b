//! The conversation in a log: its transcripts and questions; answering, reopening and closing it.

use std::sync::Arc;

use super::{OpenTurn, Transcript};
use crate::{
    Body, ConfigError, Error, Event, LimitOverrides, Log, Message, Name, Path, Question, Result, StopReason,
};

impl Log {
    /// The transcript of the outermost chat.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn transcript(&self) -> Result<Transcript> {
        self.transcript_of(&Path::root()).await
    }

    /// The transcript of the chat `at`.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn transcript_of(&self, at: &Path) -> Result<Transcript> {
        let buffer = self.buffer.lock().await;
        Transcript::of(at, &buffer.events).map_err(|flaw| self.invalid(&flaw))
    }

    pub(crate) fn invalid(&self, flaw: &str) -> Error {
        Error::Bug(format!("the log of `{}` is not a valid conversation: {flaw}", self.id()))
    }

    /// The questions without an answer, with the paths of their chats.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn questions(&self) -> Result<Vec<(Path, Question)>> {
        Ok(self.look(Question::open_in).await)
    }

    /// Answers the question of `who` in the chat `at`. The answer is in the log when this returns; run the chat again
    /// to continue.
    ///
    /// # Errors
    /// When there is no such question, or the store cannot be written.
    pub async fn answer(&mut self, at: &Path, who: &Name, text: impl Into<Arc<str>>) -> Result<()> {
        if !self.questions().await?.iter().any(|(path, question)| path == at && question.who == *who) {
            return Err(ConfigError::NothingAsked { who: who.clone() }.into());
        }
        self.append(at, [Body::InputProvided { to: who.clone(), text: text.into() }]).await?;
        Ok(())
    }

    /// Reopens a closed conversation, for instance under a higher limit. Does nothing if it is not closed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn reopen(&mut self) -> Result<()> {
        self.reopen_for(LimitOverrides::default()).await
    }

    /// As [`reopen`](Self::reopen): limits of the outermost chat itself - its maximum number of turns, and termination
    /// conditions that count turns, messages, tokens or money - end it only when it has used `more` than now. Limits of the
    /// whole run are those of the log; [`limits_beyond`](Self::limits_beyond) has those to set.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn reopen_for(&mut self, more: LimitOverrides) -> Result<()> {
        if self.transcript().await?.closed().is_some() {
            self.append(&Path::root(), [Body::Reopened { message: None, more }]).await?;
        }
        Ok(())
    }

    /// The limits of the whole run that allow `more` than it has used so far.
    pub async fn limits_beyond(&self, more: LimitOverrides) -> LimitOverrides {
        let (turns, usage) = (self.turns().await, self.usage().await);
        LimitOverrides {
            turns: more.turns.map(|more| turns.saturating_add(more)),
            calls: more.calls.map(|more| usage.counted_calls().saturating_add(more)),
            tokens: more.tokens.map(|more| usage.counted_tokens().saturating_add(more)),
            cost: more.cost.map(|more| usage.counted_cost() + more),
        }
    }

    /// Reopens a closed conversation with a new message. Run the chat again to continue.
    ///
    /// # Errors
    /// When the conversation is not closed, or the store cannot be written.
    pub async fn continue_with(&mut self, message: Message) -> Result<()> {
        if self.transcript().await?.closed().is_none() {
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
        let transcript = self.transcript().await?;
        let body = match transcript.closed() {
            _ if !transcript.is_open() => {
                return Err(ConfigError::NotBegun { log: self.id().clone() }.into());
            }
            Some(_) => Body::reopened(Some(message)),
            None => Body::Sent(message),
        };
        self.append(&Path::root(), [body]).await?;
        Ok(())
    }

    /// Sends the messages that were [sent by a handle](crate::LogHandle::send) after the last step of a run. Returns
    /// whether there were any.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn post_inbox(&mut self) -> Result<bool> {
        let mut is_any = false;
        while let Some(sent) = self.inbox.take_first() {
            self.send(sent.message.clone()).await?;
            sent.confirm();
            is_any = true;
        }
        Ok(is_any)
    }

    /// Closes a conversation from outside, with the stop reason [`Stopped`](crate::StopReason::Stopped) by `by`. Does
    /// nothing if it is closed.
    ///
    /// # Errors
    /// When it has not begun, or the store cannot be written.
    pub async fn close(&mut self, by: &str) -> Result<()> {
        let transcript = self.transcript().await?;
        if !transcript.is_open() {
            return Err(ConfigError::NotBegun { log: self.id().clone() }.into());
        }
        if transcript.closed().is_none() {
            let reason = StopReason::Stopped { by: by.to_owned() };
            let summary = transcript.summary();
            self.append(&Path::root(), [Body::Closed { reason, summary }]).await?;
        }
        Ok(())
    }

    /// Rolls back the open turns of the outermost chat, such as those that were cancelled: they are in no transcript and no view,
    /// and the next run begins new ones. Does nothing if there are none.
    ///
    /// # Errors
    /// When the log is not a valid conversation, or the store cannot be written.
    pub async fn roll_back_open_turns(&mut self) -> Result<()> {
        let transcript = self.transcript().await?;
        let started = |event: &&Arc<Event>| matches!(event.body, Body::TurnStarted { .. });
        let started = transcript.events().iter().rfind(started).map(|event| event.seq);
        if let Some(since) = started.filter(|_| !transcript.open_turns().is_empty()) {
            self.append(&Path::root(), [Body::RolledBack { since }]).await?;
        }
        Ok(())
    }

    /// Whether the process that wrote this log last may have died while a model call was in flight. Such a call is
    /// charged when the conversation is resumed, before anything is sent.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn may_have_lost_calls(&self) -> Result<bool> {
        let transcript = self.transcript().await?;
        let is_lost = |turn: &OpenTurn| turn.asked.is_none() && !turn.settled && turn.last < self.inherited;
        Ok(transcript.closed().is_none() && transcript.open_turns().iter().any(is_lost))
    }

    /// Logs that `limits` apply from now on, for this process and for those that continue the conversation later:
    /// each reads them by [`LimitOverrides::last_of`] and sets them by [`limits`](Self::limits).
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn change_limits(&mut self, limits: LimitOverrides) -> Result<()> {
        self.append(&Path::root(), [Body::LimitsChanged(limits)]).await?;
        Ok(())
    }

    /// Whether its conversation has begun.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn has_begun(&self) -> Result<bool> {
        Ok(self.transcript().await?.is_open())
    }
}

impl LimitOverrides {
    /// The overrides that were logged last in `events`. `None` if the limits were never changed.
    #[must_use]
    pub fn last_of(events: &[Arc<Event>]) -> Option<Self> {
        events.iter().rev().find_map(|event| match &event.body {
            Body::LimitsChanged(limits) => Some(*limits),
            _ => None,
        })
    }
}
