//! Whether a closed conversation would continue if it were reopened.

use std::sync::Arc;

use super::{RunningChat, Wanted};
use crate::log::turns_taken;
use crate::turn::ChatInfo as _;
use crate::{
    Allowance, AllowanceOwner, Body, Chat, Event, LimitOverrides, Limits, Log, Message, Path, Result,
    RunOutcome, StopReason, Transcript,
};

impl Chat {
    /// Returns why the closed conversation in `log` would end again at once if it were reopened under `limits` for `more` than
    /// it has used, as [`Log::reopen_for`] does: its limit was not raised, or its policy has nothing more to do. `None` if it
    /// would continue or has not ended.
    ///
    /// Reads only. Reopening in vain would add an event to the log with every attempt.
    ///
    /// # Errors
    /// When the log is not a valid conversation of this chat.
    pub async fn ends_again(
        &self,
        log: &Log,
        limits: &Limits,
        more: LimitOverrides,
    ) -> Result<Option<StopReason>> {
        let transcript = log.transcript().await?;
        let Some((reason, _)) = transcript.closed() else { return Ok(None) };
        let reason = reason.clone();
        let body = Body::Reopened { message: None, more, sent: false };
        let transcript = reopened(log, transcript, body).await?;
        // A limit of the whole run interrupted a turn.
        if transcript.current_speakers().next().is_some() {
            return Ok(holds_still(self, log, &reason, limits, more).await.then_some(reason));
        }
        let next = next_of(self, log, transcript)?;
        if let Some(Body::Closed { reason, .. }) = next.first() {
            return Ok(Some(reason.clone()));
        }
        let turns = turns_taken(&next);
        let too_many = limits.too_many_turns(log.turns_begun().await, turns);
        let holds = turns > 0 && holds_still(self, log, &reason, limits, more).await;
        Ok(too_many.or(holds.then_some(reason)))
    }

    /// Returns why the closed conversation in `log` would end again at once under `limits` if it were reopened with `message`:
    /// a limit of the whole run is reached, which `limits` do not raise, or leaves too few turns for the next step, or the chat
    /// ends before anyone has a turn, such as when a person who is needed has left. `None` if it would continue or has not
    /// ended. Limits of its chats count from 0 again after a message.
    ///
    /// # Errors
    /// When the log is not a valid conversation of this chat.
    pub async fn ends_again_after_message(
        &self,
        log: &Log,
        limits: &Limits,
        message: &Message,
    ) -> Result<Option<StopReason>> {
        let transcript = log.transcript().await?;
        let Some((reason, _)) = transcript.closed() else { return Ok(None) };
        if !counts_from_0(reason) && holds_still(self, log, reason, limits, LimitOverrides::default()).await {
            return Ok(Some(reason.clone()));
        }
        let transcript = reopened(log, transcript, Body::reopened(Some(message.clone()))).await?;
        let begun = log.turns_begun().await;
        if transcript.current_speakers().next().is_some() {
            return Ok(limits.too_many_turns(begun, 1));
        }
        let next = next_of(self, log, transcript)?;
        Ok(match next.first() {
            Some(Body::Closed { reason, .. }) => Some(reason.clone()),
            // A message or a private turn is followed by a turn at least.
            _ => limits.too_many_turns(begun, turns_taken(&next).max(1)),
        })
    }

    /// Returns whether the closed conversation in `log` continues when it is [resumed](Self::resume), because a message that
    /// was sent before its end has no answer. A run that closes the chat continues it at once: this is for logs that end in
    /// between, such as those of forks.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn has_unanswered_message(&self, log: &Log) -> Result<bool> {
        let running = RunningChat::new(log, log.transcript().await?);
        let closed = running.transcript().closed();
        Ok(closed.is_some_and(|(reason, _)| running.continues_for_sent(self, reason)))
    }
}

impl RunningChat<'_> {
    /// Whether the chat, which ends or has ended for `reason`, continues for a message that was sent from outside, since no public
    /// turn has begun after it: as a message that is sent now would continue it.
    pub(super) fn continues_for_sent(&self, chat: &Chat, reason: &StopReason) -> bool {
        let (log, transcript) = (self.log, &self.transcript);
        let Some(last) = transcript.events().last().filter(|_| transcript.has_unanswered()) else {
            return false;
        };
        let is_given_up = transcript.ended_by().is_some() && reason.outcome() != RunOutcome::Done;
        if chat.is_for_calls() || is_given_up || !takes_more(reason) {
            return false;
        }
        let ends_for = |next: &[Body]| match next {
            [Body::Closed { reason, .. }] => Some(reason.clone()),
            _ => None,
        };
        // A message can be what ends the chat, such as by a word of a termination condition.
        let without = next_of(chat, log, transcript.without_unanswered());
        let again = after(log, transcript.clone(), last, Body::reopened_for_sent());
        let next = again.and_then(|transcript| next_of(chat, log, transcript));
        without.is_ok_and(|without| ends_for(&without).as_ref() == Some(reason))
            && next.is_ok_and(|next| ends_for(&next).is_none())
    }
}

/// Whether a chat that has ended for `reason` takes more turns for a message: not at limits on time, tokens and money, or after it was
/// stopped.
fn takes_more(reason: &StopReason) -> bool {
    match reason {
        StopReason::Finished | StopReason::Turns { .. } | StopReason::LoopDetected { .. } => true,
        StopReason::NoOutput { ended } => takes_more(ended),
        StopReason::All(reasons) => reasons.iter().all(takes_more),
        // A termination condition on time has the code of the limit.
        StopReason::Other(other) => match other.outcome {
            RunOutcome::Done => true,
            RunOutcome::Limit => reason.code() != "time",
            _ => false,
        },
        _ => false,
    }
}

/// The events of the next step; none if background tasks are waited for.
fn next_of(chat: &Chat, log: &Log, transcript: Transcript) -> Result<Vec<Body>> {
    Ok(match RunningChat::new(log, transcript).wanted(chat)? {
        Wanted::Step(bodies) => bodies,
        Wanted::Wait => Vec::new(),
    })
}

/// `transcript`, which is that of `log`, after the event that would reopen it.
async fn reopened(log: &Log, transcript: Transcript, body: Body) -> Result<Transcript> {
    match log.events().await.last() {
        Some(last) => after(log, transcript, last, body),
        None => Ok(transcript),
    }
}

/// `transcript` after the event of `body`, which follows `last`.
fn after(log: &Log, mut transcript: Transcript, last: &Event, body: Body) -> Result<Transcript> {
    let (seq, at) = (last.seq + 1, Path::root());
    let event = Event { seq, chat: at, time: last.time, ran_ms: last.ran_ms, inbox: None, body };
    transcript.apply(Arc::new(event)).map_err(|flaw| log.invalid(&flaw))?;
    Ok(transcript)
}

/// Whether `reason` is a limit of the outermost chat itself, which counts from 0 after a message, and the step that did not fit then
/// does.
fn counts_from_0(reason: &StopReason) -> bool {
    let StopReason::Allowance { of: AllowanceOwner::Chat { path: at, .. }, limit } = reason else {
        return false;
    };
    let fits = match **limit {
        StopReason::Calls { .. } | StopReason::Time { .. } => true,
        StopReason::Tokens { limit, next, .. } => next <= Some(limit),
        StopReason::Cost { limit, next, .. } => next <= Some(limit),
        _ => false,
    };
    at.is_root() && fits
}

/// Whether the limit that was reached is not raised by allowing `more`: that of the whole run, of `chat`, or of an agent.
async fn holds_still(
    chat: &Chat,
    log: &Log,
    reason: &StopReason,
    limits: &Limits,
    more: LimitOverrides,
) -> bool {
    let StopReason::Allowance { of, limit } = reason else { return limits.holds(reason) };
    let own = match of {
        AllowanceOwner::Agent(name) => log.limits_of_agent(name),
        AllowanceOwner::Chat { path: at, .. } => {
            chat.setup.allowance.filter(|_| at.is_root()).map(Allowance::limits)
        }
        AllowanceOwner::Shared(_) => return log.budgets.holds(reason),
    };
    match own {
        Some(own) => log.limits_of_owner(of, own, more).await.holds(limit),
        None => false,
    }
}
