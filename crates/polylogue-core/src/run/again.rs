//! Whether a closed conversation would continue if it were reopened.

use std::sync::Arc;

use super::{RunningChat, Wanted};
use crate::log::turns_begun;
use crate::{
    Allowance, AllowanceOwner, Body, Chat, Event, LimitOverrides, Limits, Log, Message, Path, Result,
    StopReason, Transcript,
};

impl Chat {
    /// Why the closed conversation in `log` would end again at once if it were reopened under `limits` for `more` than it has
    /// used, as [`Log::reopen_for`] does: its limit was not raised, or its policy has nothing more to do. `None` if it would
    /// continue or has not ended.
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
        let transcript = reopened(log, transcript, Body::Reopened { message: None, more }).await?;
        // A limit of the whole run interrupted a turn.
        if transcript.current_speakers().next().is_some() {
            return Ok(holds_still(self, log, &reason, limits, more).await.then_some(reason));
        }
        let next = next_of(self, log, transcript)?;
        if let Some(Body::Closed { reason, .. }) = next.first() {
            return Ok(Some(reason.clone()));
        }
        let turns = turns_begun(&next);
        let too_many = limits.too_many_turns(log.turns_begun().await, turns);
        let holds = turns > 0 && holds_still(self, log, &reason, limits, more).await;
        Ok(too_many.or(holds.then_some(reason)))
    }

    /// Why the closed conversation in `log` would end again at once under `limits` if it were reopened with `message`: a limit of
    /// the whole run is reached, which `limits` do not raise, or leaves too few turns for the next step, or the chat ends before
    /// anyone has a turn, such as when a person who is needed has left. `None` if it would continue or has not ended. Limits of its
    /// chats count from 0 again after a message.
    ///
    /// # Errors
    /// When the log is not a valid conversation of this chat.
    pub async fn takes_no_message(
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
            _ => limits.too_many_turns(begun, turns_begun(&next).max(1)),
        })
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
async fn reopened(log: &Log, mut transcript: Transcript, body: Body) -> Result<Transcript> {
    if let Some(last) = log.events().await.last() {
        let (seq, at) = (last.seq + 1, Path::root());
        let event = Event { seq, at, time: last.time, ran_ms: last.ran_ms, inbox: None, body };
        transcript.apply(Arc::new(event)).map_err(|flaw| log.invalid(&flaw))?;
    }
    Ok(transcript)
}

/// Whether `reason` is a limit of the outermost chat itself, which counts from 0 after a message, and the step that did not fit then
/// does.
fn counts_from_0(reason: &StopReason) -> bool {
    let StopReason::Allowance { of: AllowanceOwner::Chat { at, .. }, limit } = reason else { return false };
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
        AllowanceOwner::Chat { at, .. } => {
            chat.setup.allowance.filter(|_| at.is_root()).map(Allowance::limits)
        }
        AllowanceOwner::Shared(_) => return log.budgets.holds(reason),
    };
    match own {
        Some(own) => log.limits_of_owner(of, own, more).await.holds(limit),
        None => false,
    }
}
