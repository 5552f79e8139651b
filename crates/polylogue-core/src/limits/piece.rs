//! The piece of a budget that a process has drawn, where many processes share the budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Allowance, CountedUsage, Reserved, RunReservation};
use crate::{LogId, StoreError};

/// How long a piece counts after the store has confirmed it: less than a lease.
const GUARD: Duration = Duration::from_secs(24);

/// The state of a budget in its store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetStanding {
    /// The limits of the budget; none on time.
    pub limits: Allowance,
    /// The usage that processes have reported.
    pub spent: CountedUsage,
    /// The amount that this process has drawn.
    pub drawn: CountedUsage,
    /// The amount that all other processes have drawn.
    pub others: CountedUsage,
}

/// The amount that a call needs beyond what is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetWants {
    /// The minimum that must be drawn, including what is reserved for calls in flight.
    pub least: CountedUsage,
    /// Whether the upper bound of the call is unknown: all that is left must be drawn, and none by others.
    pub whole: bool,
}

/// The report of a process on a budget, with what it wants of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetDemand {
    /// The usage of logs since the last report, and whether they are closed here.
    pub used: Vec<(LogId, CountedUsage, bool)>,
    /// The amount that is reserved for calls in flight: it stays drawn.
    pub reserved: CountedUsage,
    /// The amount that is wanted besides. Without it, what is not reserved is returned.
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
    /// Whether its limits are to be read again, since others may have raised them.
    pub(super) is_doubtful: bool,
    pub(super) asked: watch::Sender<()>,
    /// Why the store does not answer.
    pub(super) failure: Option<StoreError>,
}

/// The part of a log in what is not reported.
#[derive(Default)]
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

    /// Whether the store was not asked since `since`: others may have raised the limits meanwhile. Then it is asked again.
    pub(super) fn asks_again(&mut self, since: Instant) -> bool {
        let is_old = self.confirmed < since;
        if is_old {
            self.is_doubtful = true;
            self.asked.send_replace(());
        }
        is_old
    }

    /// Whether it has anything to say.
    pub(super) fn is_idle(&self, reserved: CountedUsage) -> bool {
        let is_over = |part: &LogPart| part.handle.strong_count() == 0;
        self.wants.is_none()
            && !self.is_doubtful
            && self.unreported == CountedUsage::default()
            && self.standing.drawn == reserved
            && !self.logs.values().any(is_over)
    }
}
