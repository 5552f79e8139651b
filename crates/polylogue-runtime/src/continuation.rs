//! What continues a conversation that has ended.

use polylogue::stop::{Counted, LibraryStopReason};
use polylogue_core::{LimitOverrides, Limits, RaisedLimits, StopReason};

/// The way in which a conversation that has ended can be continued.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Continuation {
    /// [Resume](crate::Conversation::resume) it for more of what its limit counts, here as much as the limit.
    More(LimitOverrides),
    /// Send a message: limits of its chats count from 0 again.
    Message,
    /// Resume it with a model whose context window is larger: an agent's history does not fit into that of its model.
    LargerModel {
        /// Whether it needs a message, too.
        message: bool,
    },
}

impl Continuation {
    /// The message that continues any conversation that a message can continue.
    pub const MESSAGE: &str = "Continue.";
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

/// Whether a conversation ended because a history does not fit into the context window of a model.
pub(crate) fn is_of_window(reason: &StopReason) -> bool {
    match reason {
        StopReason::NoOutput { ended } => is_of_window(ended),
        other => matches!(LibraryStopReason::of(other), Some(LibraryStopReason::ContextFull { .. })),
    }
}

/// Whether the number of turns or messages that ended a conversation for `reason` was raised since: its chat may have `raised` ones.
pub(crate) fn is_raised(reason: &StopReason, raised: &RaisedLimits) -> bool {
    if let StopReason::All(reasons) = reason {
        return reasons.iter().any(|reason| is_raised(reason, raised));
    }
    match LibraryStopReason::of(reason) {
        Some(LibraryStopReason::CountReached { count, of: Counted::Turns }) => raised.turns > count,
        Some(LibraryStopReason::CountReached { count, of: Counted::Messages }) => raised.messages > count,
        _ => false,
    }
}

/// Whether `reason` is a condition on tokens or cost, which ends a chat once it has used so much, in a run without `limits` on these:
/// what its next call can take is not known, and may be many times as much. Allowing that much more would be a limit of the run, under
/// which the call is not made.
pub(crate) const fn is_after_a_call(reason: &StopReason, limits: &Limits) -> bool {
    match reason {
        StopReason::Tokens { next: None, .. } => limits.tokens.is_none(),
        StopReason::Cost { next: None, .. } => limits.cost.is_none(),
        _ => false,
    }
}

/// The limits that `reason` names: raising one of them is enough, because all of them had to be reached.
pub(crate) fn limits_of(reason: &StopReason) -> Box<dyn Iterator<Item = LimitOverrides> + '_> {
    let of = LimitOverrides::default();
    let limit = match reason {
        StopReason::All(reasons) => return Box::new(reasons.iter().flat_map(limits_of)),
        StopReason::NoOutput { ended } => return limits_of(ended),
        StopReason::Allowance { limit, .. } => return limits_of(limit),
        other => match LibraryStopReason::of(other) {
            Some(LibraryStopReason::CountReached { count, of: Counted::Turns | Counted::Messages }) => {
                LimitOverrides { turns: Some(count), ..of }
            }
            _ => other.as_limit(),
        },
    };
    Box::new((!limit.is_empty()).then_some(limit).into_iter())
}
