//! What continues a conversation that has ended.

use std::sync::Arc;

use polylogue::stop::{Counted, Reason};
use polylogue_core::{Event, LimitOverrides, Money, StopReason};

/// What continues a conversation that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Continuation {
    /// To [resume](crate::Conversation::resume) it for more of what its limit counts, here as much as the limit.
    More(LimitOverrides),
    /// A message: limits of its chats count from 0 again.
    Message,
}

impl Continuation {
    /// A message that continues any conversation which a message continues.
    pub const MESSAGE: &str = "Continue.";
}

/// `limit`, with as much of what it counts as `events` last allowed beyond what had been used.
pub(crate) fn raised_last(events: &[Arc<Event>], limit: LimitOverrides) -> LimitOverrides {
    let last = LimitOverrides::last_allowed(events);
    LimitOverrides {
        turns: limit.turns.map(|limit| last.turns.filter(|turns| *turns > 0).unwrap_or(limit)),
        calls: limit.calls.map(|limit| last.calls.filter(|calls| *calls > 0).unwrap_or(limit)),
        tokens: limit.tokens.map(|limit| last.tokens.filter(|tokens| *tokens > 0).unwrap_or(limit)),
        time_ms: limit.time_ms.map(|limit| last.time_ms.filter(|time| *time > 0).unwrap_or(limit)),
        cost: limit.cost.map(|limit| last.cost.filter(|cost| *cost > Money::default()).unwrap_or(limit)),
    }
}

/// Whether allowing `more` raises a limit that ended a conversation for `reason`.
pub(crate) fn raises(reason: &StopReason, more: &LimitOverrides) -> bool {
    let is_raised = |limits: LimitOverrides| {
        limits.turns.and(more.turns).is_some()
            || limits.calls.and(more.calls).is_some()
            || limits.tokens.and(more.tokens).is_some()
            || limits.cost.and(more.cost).is_some()
            || limits.time_ms.and(more.time_ms).is_some()
    };
    limits_of(reason).any(is_raised)
}

/// The limits that `reason` names: raising one of them is enough, because all of them had to be reached.
pub(crate) fn limits_of(reason: &StopReason) -> Box<dyn Iterator<Item = LimitOverrides> + '_> {
    let of = LimitOverrides::default();
    let limit = match reason {
        StopReason::All(reasons) => return Box::new(reasons.iter().flat_map(limits_of)),
        StopReason::NoOutput { ended } => return limits_of(ended),
        StopReason::Allowance { limit, .. } => return limits_of(limit),
        // As many as the next step needs do not grow with a limit that was tried.
        StopReason::Turns { limit, next } => LimitOverrides { turns: next.or(Some(*limit)), ..of },
        StopReason::Calls { limit } => LimitOverrides { calls: Some(*limit), ..of },
        StopReason::Time { limit_ms, .. } => LimitOverrides { time_ms: Some(*limit_ms), ..of },
        StopReason::Tokens { limit, next, .. } => {
            LimitOverrides { tokens: Some(next.unwrap_or(0).max(*limit)), ..of }
        }
        StopReason::Cost { limit, next, .. } => {
            LimitOverrides { cost: Some(next.unwrap_or_default().max(*limit)), ..of }
        }
        other => match Reason::of(other) {
            Some(Reason::CountReached { count, of: Counted::Turns | Counted::Messages }) => {
                LimitOverrides { turns: Some(count), ..of }
            }
            _ => of,
        },
    };
    Box::new((!limit.is_empty()).then_some(limit).into_iter())
}
