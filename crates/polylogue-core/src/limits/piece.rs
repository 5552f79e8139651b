//! The piece of a budget that a process has drawn, where many processes share the budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Allowance, CountedUsage, Reserved, RunReservation};
use crate::{LogId, StoreError};

/// How long a piece counts after the store has confirmed it: less than a lease.
const GUARD: Duration = Duration::from_secs(24);

/// A budget as its store has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetStanding {
    /// Its limits; none on time.
    pub limits: Allowance,
    /// What was used, as far as processes have reported it.
    pub spent: CountedUsage,
    /// What this process has drawn.
    pub drawn: CountedUsage,
    /// What all others have drawn.
    pub others: CountedUsage,
}

/// What a call needs that does not fit into what is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetWants {
    /// How much must be drawn, with what is reserved for calls in flight.
    pub least: CountedUsage,
    /// Whether the most that it takes is unknown: all that is left must be drawn, and none by others.
    pub whole: bool,
}

/// What a process reports of a budget, and wants of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetDemand {
    /// What logs have used since the last report, and whether they are closed here.
    pub used: Vec<(LogId, CountedUsage, bool)>,
    /// What is reserved for calls in flight: it stays drawn.
    pub reserved: CountedUsage,
    /// What is wanted besides. Without it, what is not reserved is returned.
    pub wants: Option<BudgetWants>,
}

/// What this process has of a budget.
pub(super) struct Piece {
    pub(super) standing: BudgetStanding,
    /// When the store was asked that has confirmed it.
    pub(super) confirmed: Instant,
    /// What is not reported yet.
    pub(super) unreported: CountedUsage,
    pub(super) logs: BTreeMap<LogId, LogPart>,
    pub(super) wants: Option<BudgetWants>,
    pub(super) asked: watch::Sender<()>,
    /// Why the store does not answer.
    pub(super) failure: Option<StoreError>,
}

/// The part of a log in what is not reported.
pub(super) struct LogPart {
    pub(super) handle: Weak<LogId>,
    pub(super) unreported: CountedUsage,
    /// Whether the store knows that this process runs it, and what it used before.
    pub(super) is_known: bool,
}

impl Piece {
    pub(super) const fn limits(&self) -> Allowance {
        self.standing.limits
    }

    pub(super) fn count(&mut self, log: Option<&Arc<LogId>>, used: CountedUsage) {
        self.unreported += used;
        if let Some(part) = log.and_then(|log| self.logs.get_mut(&**log)) {
            part.unreported += used;
        }
    }

    /// Whether a call is covered by what is drawn, together with those in flight. What is missing is asked for.
    pub(super) fn covers(&mut self, reserved: &Reserved, hold: RunReservation) -> bool {
        let call = CountedUsage { calls: hold.calls, tokens: hold.tokens.most, cost: hold.cost.most };
        let least = reserved.counted() + call;
        let BudgetStanding { limits, drawn, others, .. } = self.standing;
        let whole = hold.cost.whole || hold.tokens.whole;
        let needed = self.unreported + least;
        let fits = (limits.calls.is_none() || needed.calls <= drawn.calls)
            && (limits.tokens.is_none() || needed.tokens <= drawn.tokens)
            && (limits.cost.is_none() || needed.cost <= drawn.cost);
        let is_alone = !whole || others == CountedUsage::default();
        if fits && is_alone && self.confirmed.elapsed() < GUARD {
            return true;
        }
        self.wants = Some(BudgetWants { least, whole });
        self.asked.send_replace(());
        false
    }

    /// Whether it has anything to say.
    pub(super) fn is_idle(&self, reserved: CountedUsage) -> bool {
        let is_over = |part: &LogPart| part.handle.strong_count() == 0;
        self.wants.is_none()
            && self.unreported == CountedUsage::default()
            && self.standing.drawn == reserved
            && !self.logs.values().any(is_over)
    }
}
