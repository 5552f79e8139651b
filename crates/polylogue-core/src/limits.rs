//! What a whole run may consume.

use std::sync::Arc;

use crate::budget::{Amount, Bound, Fit, Holdings};
use crate::event_buffer::Tally;
use crate::{Money, StopReason, TotalUsage};

/// What a whole run may consume, nested chats included. Checked before every turn. Every model call is reserved before it is
/// sent, at the most it can take, so that calls made at the same time cannot pass a limit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Turns of agents in all chats. What is said aside is no turn, and neither is that of a chat within a chat.
    pub turns: Option<u64>,
    /// Model calls over the whole log: every attempt that reaches a server counts, and so do calls that were in flight when a
    /// process died. Nothing: as many as [`calls_each`](Self::calls_each) allows.
    pub calls: Option<u64>,
    /// Model calls, counted in the same way, where [`calls`](Self::calls) sets no limit: of the run of a chat, or of each call
    /// of an agent by [`Log::call`](crate::Log::call). A session, in which agents are called again and again, has no end by it.
    pub calls_each: u64,
    /// Tokens read and written. A call is refused when its upper bound ([`Bound`]) does not fit into what is left.
    pub tokens: Option<u64>,
    /// Money. A call is refused when its upper bound ([`Bound`]) does not fit into what is left.
    pub cost: Option<Money>,
    /// Chats within chats.
    pub depth: usize,
}

impl Default for Limits {
    /// 1,000 model calls of each run of a chat and each call of an agent, chats 8 deep, and any number of turns, tokens and money.
    fn default() -> Self {
        Self { turns: None, calls: None, calls_each: 1_000, tokens: None, cost: None, depth: 8 }
    }
}

/// What is to be reserved for one call, and whether that is possible.
pub(crate) enum Admission {
    /// It is: this much.
    Now(Hold),
    /// Not before another call is settled.
    Later,
    /// A limit does not allow it.
    Never(StopReason),
}

/// What one call has reserved of a run's limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hold {
    pub(crate) calls: u64,
    pub(crate) cost: Amount<Money>,
    pub(crate) tokens: Amount<u64>,
}

/// What calls in flight have reserved of a run's limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reserved {
    calls: u64,
    tokens: Holdings<u64>,
    money: Holdings<Money>,
}

impl Reserved {
    pub(crate) fn add(&mut self, hold: Hold) {
        self.calls += hold.calls;
        self.tokens.add(hold.tokens);
        self.money.add(hold.cost);
    }

    pub(crate) fn remove(&mut self, hold: Hold) {
        self.calls = self.calls.saturating_sub(hold.calls);
        self.tokens.remove(hold.tokens);
        self.money.remove(hold.cost);
    }
}

impl Limits {
    /// The limit of model calls that holds: [`calls`](Self::calls), else [`calls_each`](Self::calls_each).
    #[must_use]
    pub const fn max_calls(&self) -> u64 {
        match self.calls {
            Some(calls) => calls,
            None => self.calls_each,
        }
    }

    /// The model calls that count, of which `before` were made before the outermost call of an agent began.
    const fn calls_of(&self, spent: &TotalUsage, before: u64) -> u64 {
        let calls = spent.counted_calls();
        if self.calls.is_some() { calls } else { calls.saturating_sub(before) }
    }

    /// Whether upper bounds have to be known: they are read off whole requests.
    pub(crate) const fn need_bounds(&self) -> bool {
        self.cost.is_some() || self.tokens.is_some()
    }

    /// Whether `calls` more, of this bound, fit beside what was spent and what is reserved. `before` as in [`calls_of`](Self::calls_of).
    pub(crate) fn admit(
        &self,
        tally: &Tally,
        reserved: &Reserved,
        before: u64,
        (bound, calls): (&Bound, u64),
    ) -> Admission {
        let made = self.calls_of(&tally.spent, before);
        if calls > 0 && made >= self.max_calls() {
            return Admission::Never(StopReason::Calls { limit: self.max_calls() });
        }
        if let Some(reason) = self.met(tally) {
            return Admission::Never(reason);
        }
        if calls > 0 && made + reserved.calls >= self.max_calls() {
            return Admission::Later;
        }
        let mut hold = Hold { calls, ..Hold::default() };
        if let Some(limit) = self.tokens {
            let used = tally.spent.counted_tokens();
            hold.tokens = match reserved.tokens.fit(limit, used, (bound.tokens, bound.least_tokens())) {
                Fit::Now(amount) => amount,
                Fit::Later => return Admission::Later,
                Fit::Never => {
                    let next = Some(bound.least_tokens());
                    return Admission::Never(StopReason::Tokens { limit, used, next });
                }
            };
        }
        if let Some(limit) = self.cost {
            let spent = tally.spent.counted_cost();
            hold.cost = match reserved.money.fit(limit, spent, (bound.cost, bound.least())) {
                Fit::Now(amount) => amount,
                Fit::Later => return Admission::Later,
                Fit::Never => {
                    let next = Some(bound.least());
                    return Admission::Never(StopReason::Cost { limit, spent, next });
                }
            };
        }
        Admission::Now(hold)
    }

    /// The limit on money or tokens that is met, if one is.
    fn met(&self, tally: &Tally) -> Option<StopReason> {
        let spent = &tally.spent;
        if let Some(limit) = self.cost {
            let cost = spent.counted_cost();
            if cost >= limit {
                return Some(StopReason::Cost { limit, spent: cost, next: None });
            }
            if let Some(model) = &tally.unpriced {
                return Some(StopReason::UnknownPrice { model: Arc::clone(model) });
            }
        }
        let (limit, used) = (self.tokens?, spent.counted_tokens());
        (used >= limit).then_some(StopReason::Tokens { limit, used, next: None })
    }

    /// The limit that is passed, if one is: a run that passed one does not end as if it had kept to it.
    pub(crate) fn passed(&self, spent: &TotalUsage, before: u64) -> Option<StopReason> {
        if self.calls_of(spent, before) > self.max_calls() {
            return Some(StopReason::Calls { limit: self.max_calls() });
        }
        let cost = spent.counted_cost();
        if let Some(limit) = self.cost.filter(|limit| cost > *limit) {
            return Some(StopReason::Cost { limit, spent: cost, next: None });
        }
        let used = spent.counted_tokens();
        self.tokens.filter(|limit| used > *limit).map(|limit| StopReason::Tokens { limit, used, next: None })
    }
}
