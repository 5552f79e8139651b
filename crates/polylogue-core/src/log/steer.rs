//! Instructions that are carried out while a conversation runs: pauses, cancellations, higher limits.

use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use futures_util::future::{Either, select};

use super::{Body, Event, Instruction, Log, Pending, Timing};
use crate::data::text;
use crate::limits::CancelMode;
use crate::{LimitOverrides, Limits, OnLimit, Path, Result};

impl Log {
    /// Appends the event of an instruction, unless the log has it.
    pub(crate) async fn append_instructed(
        &self,
        at: &Path,
        number: Option<u64>,
        body: Body,
    ) -> Result<Vec<Arc<Event>>> {
        let mut buffer = self.ready().await?;
        if number.is_some_and(|number| buffer.totals.taken.contains(number)) {
            // The inbox of the store was read again while it was carried out.
            return Ok(Vec::new());
        }
        let batch = buffer.stage_from(at, self.now(), [(number, body)]);
        self.settle(&mut buffer).await?;
        Ok(batch)
    }

    /// The limits that apply now.
    pub(crate) fn limits_now(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out instructions that need not wait for a step, next to the run, until it is `over`. One that is being carried out by
    /// then is completed: it may hold the lock of the log's buffer, and would keep it if it were polled no more.
    pub(crate) async fn obey_until<T>(&self, over: impl Future<Output = T> + Unpin) {
        let mut over = over;
        while let Either::Right(_) = select(&mut over, pin!(self.inbox.changed(&[Timing::Now]))).await {
            // When the log cannot be written, its run notices that, too; the sender learns that it was lost.
            let _ = self.obey_waiting().await;
        }
    }

    /// Carries out the instructions that wait and need not wait for a step.
    pub(crate) async fn obey_waiting(&self) -> Result<()> {
        while let Some(pending) = self.inbox.take(&[Timing::Now]) {
            Box::pin(self.obey(pending)).await?;
        }
        Ok(())
    }

    /// Carries out an instruction that no turn depends on: appends its event, and then does what it says.
    pub(crate) async fn obey(&self, pending: Pending) -> Result<()> {
        let body = match &pending.instruction {
            Instruction::RaiseLimits { more, by } => match self.raised_by(*more, by.clone()).await? {
                Ok(body) => body,
                Err(why) => return self.refuse(pending, why).await,
            },
            Instruction::RaiseAgentLimits { who, more, by } => {
                match self.agent_raised_by(who, *more, by.clone()).await {
                    Ok(body) => body,
                    Err(why) => return self.refuse(pending, why).await,
                }
            }
            Instruction::RaiseChatLimits { chat, more, by } => {
                match self.chat_raised_by(chat, *more, by.clone()).await {
                    Ok(body) => body,
                    Err(why) => return self.refuse(pending, why).await,
                }
            }
            Instruction::ChangeTitle { title } => Body::TitleChanged { title: in_one_line(title) },
            Instruction::ClientDisconnected { received } => {
                Body::ClientDisconnected { received: Arc::clone(received) }
            }
            Instruction::Pause => Body::Paused,
            Instruction::Resume => Body::Resumed,
            Instruction::Cancel { now } => Body::Cancelled { now: *now },
            Instruction::Send(_) | Instruction::Answer { .. } | Instruction::NextSpeaker { .. } => {
                return Ok(());
            }
        };
        let appended = self.append_instructed(&Path::root(), pending.number, body.clone()).await?;
        if appended.is_empty() {
            // It was carried out before, and later instructions may have changed what it did.
            pending.confirm(Ok(()));
            return Ok(());
        }
        match body {
            Body::LimitsChanged { limits, .. } => {
                self.set_limits(limits);
                self.answer_about_limit(limits.on_limit.unwrap_or(OnLimit::Ask)).await?;
            }
            Body::OwnLimitsRaised { .. } => {
                // Calls that wait for others to be settled may fit now.
                self.account.changed.send_replace(());
                self.answer_about_limit(OnLimit::Ask).await?;
            }
            Body::Paused => self.set_paused(true),
            Body::Resumed => self.set_paused(false),
            Body::Cancelled { now: true } => self.cancellation.cancel_now(),
            Body::Cancelled { now: false } => self.cancellation.cancel_after_step(),
            _ => {}
        }
        pending.confirm(Ok(()));
        Ok(())
    }

    /// Ends a pause of this process, without an event.
    pub(crate) fn unpause(&self) {
        self.set_paused(false);
    }

    pub(crate) fn set_limits(&self, limits: LimitOverrides) {
        let mut now = self.limits.write().unwrap_or_else(PoisonError::into_inner);
        *now = limits.apply_to(*now);
        drop(now);
        // Calls that wait for others to be settled may fit now.
        self.account.changed.send_replace(());
    }

    fn set_paused(&self, paused: bool) {
        let (time, _) = self.now();
        if paused {
            self.running.stop(time);
        } else if !self.pause.is_held() {
            self.running.start(time);
        }
        self.pause.set(paused);
    }

    /// Whether no step may begin, because the conversation is paused in this process, or was and is held.
    pub(crate) fn is_at_pause(&self) -> bool {
        self.pause.is_in_effect()
    }

    /// Logs that the conversation continues, if it was paused in an earlier process: running it resumes it, but charging lost calls does not.
    pub(crate) async fn resume_paused(&self) -> Result<()> {
        if self.account.state().only_charges {
            return Ok(());
        }
        if self.buffer.lock().await.totals.is_paused && !self.pause.is_paused() {
            Box::pin(self.append(&Path::root(), [Body::Resumed])).await?;
        }
        Ok(())
    }

    /// Waits until steps of the chat `at` may begin, the conversation is cancelled, or instructions wait that are carried out between two of
    /// its steps: only the outermost chat takes any.
    pub(crate) async fn pause_ended(&self, at: &Path) -> Result<()> {
        if !self.is_at_pause() {
            return Ok(());
        }
        // Nothing is left unwritten for that long.
        self.flush().await?;
        self.running.stop(self.time_now());
        let ended = pin!(self.pause.ended());
        let cancelled = pin!(self.cancelled(CancelMode::AfterStep));
        let instructed = pin!(async {
            match at.is_root() {
                true => self.inbox.changed(&[Timing::BetweenSteps]).await,
                false => pending().await,
            }
        });
        let others = pin!(async {
            match select(cancelled, instructed).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        });
        let _ = select(ended, others).await;
        if !self.pause.is_paused() {
            self.running.start(self.time_now());
        }
        Ok(())
    }
}

/// A title as lists show it.
fn in_one_line(title: &str) -> Arc<str> {
    text::one_line(title).chars().take(Instruction::TITLE_CHARS).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// The inbox of the store is read while its messages are carried out, so that one may come again when the log already has it.
    #[test]
    fn a_message_that_the_log_has_changes_nothing() {
        let log = Log::in_memory().limits(Limits { turns: Some(1), ..Limits::default() });
        let more = |turns| LimitOverrides { turns: Some(turns), ..LimitOverrides::default() };
        let raise = |turns| Instruction::RaiseLimits { more: more(turns), by: None };
        let obey = |number, instruction| {
            let confirmation = log.inbox.push_message(number, instruction).unwrap();
            log.obey_waiting().now_or_never().unwrap().unwrap();
            assert_eq!(confirmation.confirmed().now_or_never(), Some(Ok(())));
        };
        obey(1, Instruction::Pause);
        obey(2, raise(5));
        let (first, count) = (log.limits_now(), log.events().now_or_never().unwrap().len());
        assert!(log.is_at_pause() && count == 2);
        obey(1, Instruction::Pause);
        obey(2, raise(7));
        assert!(log.is_at_pause() && log.limits_now() == first, "as the log says");
        obey(3, Instruction::Resume);
        obey(1, Instruction::Pause);
        assert!(!log.is_at_pause(), "it was resumed after that");
        assert_eq!(log.events().now_or_never().unwrap().len(), count + 1);
    }
}
