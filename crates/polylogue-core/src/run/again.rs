//! Whether a closed conversation would continue if it were reopened.

use std::sync::Arc;

use super::RunningChat;
use crate::log::turns_begun;
use crate::{Body, Chat, Event, LimitOverrides, Limits, Log, Path, Result, StopReason};

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
        let mut transcript = log.transcript().await?;
        let Some((reason, _)) = transcript.closed() else { return Ok(None) };
        let reason = reason.clone();
        let events = log.events().await;
        let Some(last) = events.last() else { return Ok(None) };
        let body = Body::Reopened { message: None, more };
        let opened =
            Event { seq: last.seq + 1, at: Path::root(), time: last.time, ran_ms: last.ran_ms, body };
        transcript.apply(Arc::new(opened)).map_err(|flaw| log.invalid(&flaw))?;
        // A limit of the whole run interrupted a turn.
        if transcript.current_speakers().next().is_some() {
            return Ok(Some(reason).filter(|reason| holds_still(reason, limits)));
        }
        let next = RunningChat::new(log, transcript).wanted(self)?;
        if let Some(Body::Closed { reason, .. }) = next.first() {
            return Ok(Some(reason.clone()));
        }
        let turns = turns_begun(&next);
        let too_many = limits.too_many_turns(log.turns_begun().await, turns);
        Ok(too_many.or(Some(reason).filter(|reason| turns > 0 && holds_still(reason, limits))))
    }

    /// The limit of the whole run under which the closed conversation in `log` could not continue, not even with another message:
    /// it is reached, and `limits` do not raise it. Limits of its chats count from 0 again after a message.
    ///
    /// # Errors
    /// When the log is not a valid conversation of this chat.
    pub async fn takes_no_message(&self, log: &Log, limits: &Limits) -> Result<Option<StopReason>> {
        let transcript = log.transcript().await?;
        let Some((reason, _)) = transcript.closed() else { return Ok(None) };
        let too_many = limits.too_many_turns(log.turns_begun().await, 1);
        Ok(too_many.or_else(|| Some(reason.clone()).filter(|reason| holds_still(reason, limits))))
    }
}

/// Whether the limit of the whole run that was reached is still not raised.
fn holds_still(reason: &StopReason, limits: &Limits) -> bool {
    match reason {
        StopReason::Turns { limit, .. } => limits.turns.is_some_and(|now| now <= *limit),
        StopReason::Calls { limit } => limits.max_calls() <= *limit,
        StopReason::Tokens { limit, .. } => limits.tokens.is_some_and(|now| now <= *limit),
        StopReason::Cost { limit, .. } => limits.cost.is_some_and(|now| now <= *limit),
        StopReason::UnknownPrice { .. } => limits.cost.is_some(),
        _ => false,
    }
}
