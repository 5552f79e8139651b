//! Whether a closed conversation would continue if it were reopened.

use std::sync::Arc;

use super::{RunningChat, begins_turn};
use crate::{Body, Chat, Event, Limits, Log, Path, Result, StopReason};

impl Chat {
    /// Why the closed conversation in `log` would end again at once if it were reopened under `limits`: its limit was
    /// not raised, or its policy has nothing more to do. `None` if it would continue or has not ended.
    ///
    /// Reads only. Reopening in vain would add an event to the log with every attempt.
    ///
    /// # Errors
    /// When the log is not a valid conversation of this chat.
    pub async fn ends_again(&self, log: &Log, limits: &Limits) -> Result<Option<StopReason>> {
        let mut transcript = log.transcript().await?;
        let Some((reason, _)) = transcript.closed() else { return Ok(None) };
        let reason = reason.clone();
        let events = log.events().await;
        let Some(last) = events.last() else { return Ok(None) };
        let body = Body::Reopened { message: None };
        let opened =
            Event { seq: last.seq + 1, at: Path::root(), time: last.time, ran_ms: last.ran_ms, body };
        transcript.apply(Arc::new(opened)).map_err(|flaw| log.invalid(&flaw))?;
        let is_someones_turn = transcript.current_speakers().next().is_some();
        let next = match is_someones_turn {
            true => None,
            false => Some(RunningChat::new(log, transcript).wanted(self)?),
        };
        Ok(match next {
            Some(bodies) => match bodies.first() {
                Some(Body::Closed { reason, .. }) => Some(reason.clone()),
                _ if begins_turn(&bodies) => Some(reason).filter(|reason| holds_still(reason, limits)),
                _ => None,
            },
            // A limit of the whole run interrupted a turn.
            None => Some(reason).filter(|reason| holds_still(reason, limits)),
        })
    }
}

/// Whether the limit of the whole run that was reached is still not raised.
fn holds_still(reason: &StopReason, limits: &Limits) -> bool {
    match reason {
        StopReason::Turns { limit } => limits.turns.is_some_and(|now| now <= *limit),
        StopReason::Calls { limit } => limits.max_calls() <= *limit,
        StopReason::Tokens { limit, .. } => limits.tokens.is_some_and(|now| now <= *limit),
        StopReason::Cost { limit, .. } => limits.cost.is_some_and(|now| now <= *limit),
        StopReason::UnknownPrice { .. } => limits.cost.is_some(),
        _ => false,
    }
}
