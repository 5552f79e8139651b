//! The usage of models that tools call themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::reservation::AttemptReservation;
use super::{Reservation, ReservationRequest};
use crate::{Bound, CountedUsage, Error, Log, Money, Name, Path, Result, ToolResult, ToolUsage, TotalUsage};

/// Reserves and counts the usage of a model that a tool calls itself, such as an embedding model: like model calls of
/// agents, all of it is reserved before anything is sent. It does not count as a model call of the run.
///
/// ```
/// # async fn example(cx: &polylogue_core::ToolCx<'_>, used: polylogue_core::ToolUsage) -> polylogue_core::Result<()> {
/// use polylogue_core::{Bound, Money};
/// let bound = Bound::of_texts(&["a text".to_owned()], |_| Some(Money::dollars(0.0001)));
/// let reserved = cx.meter.reserve("provider:vectors", bound).await?;
/// // Call the model, and report its usage in `ToolResult::used`, too.
/// cx.meter.settle(reserved, &used);
/// # Ok(())
/// # }
/// ```
#[derive(derive_more::Debug)]
#[debug("Meter {{ is_limited: {:?} }}", self.run.is_some())]
pub struct Meter<'a> {
    run: Option<Run<'a>>,
    state: Mutex<State>,
}

struct Run<'a> {
    log: &'a Log,
    at: &'a Path,
    who: &'a Name,
    /// The id of the tool call.
    call: &'a str,
}

#[derive(Default)]
struct State {
    is_used: bool,
    /// The reservation that is released once the result of the call is in the log.
    settled: Option<AttemptReservation>,
}

impl<'a> Meter<'a> {
    /// Creates a meter that counts nothing, for use outside of runs.
    pub const fn unlimited() -> Self {
        Self { run: None, state: Mutex::new(State { is_used: false, settled: None }) }
    }

    pub(crate) const fn of(log: &'a Log, at: &'a Path, who: &'a Name, call: &'a str) -> Self {
        let run = Some(Run { log, at, who, call });
        Self { run, state: Mutex::new(State { is_used: false, settled: None }) }
    }

    /// Reserves all calls of `model` by this tool call, once. A reservation that is dropped without being
    /// [settled](Self::settle) counts at its upper bound.
    ///
    /// # Errors
    /// When it does not fit into a limit: the run then ends at that limit. When it is called twice.
    pub async fn reserve(&self, model: &str, bound: Bound) -> Result<Option<Reservation<'a>>> {
        let Some(Run { log, at, who, call }) = self.run else { return Ok(None) };
        if std::mem::replace(&mut self.state().is_used, true) {
            return Err(Error::Bug("a tool reserves more than once in a call".into()));
        }
        let (call, lowering) = (Some(call), None);
        let asked = ReservationRequest { at, who, model, bound, is_cached: false, calls: 0, call, lowering };
        let (reservation, _) = log.reserve(asked).await?;
        reservation.note().await?;
        Ok(Some(reservation))
    }

    /// Reserves what a call of the tool `name` itself costs at most. The caller logs what [`Reservation::reserved`] returns.
    pub(crate) async fn reserve_own(&self, name: &str, most: Money) -> Result<Option<Reservation<'a>>> {
        let Some(Run { log, at, who, call }) = self.run else { return Ok(None) };
        let (model, call) = (ToolUsage::of_tool(name, most).model, Some(call));
        let bound = Bound { tokens: Some(0), input: 0, cost: Some(most), least_cost: Some(most) };
        let (model, lowering) = (&*model, None);
        let asked = ReservationRequest { at, who, model, bound, is_cached: false, calls: 0, call, lowering };
        Ok(Some(log.reserve(asked).await?.0))
    }

    /// Settles what a call itself cost, whose reservation is `reserved` if it has one: until that is dropped, it stays reserved in
    /// the limits of the run. `outcome` has all that the call used.
    pub(crate) fn settle_own(&self, reserved: Option<&Reservation<'a>>, outcome: &ToolResult) {
        let own = outcome.own_cost();
        match (reserved, own) {
            (Some(reserved), own) => reserved.own_cost(own.unwrap_or_default()),
            (None, Some(own)) => self.spend(own.into()),
            (None, None) => {}
        }
        if !self.state().is_used {
            // Nothing was reserved for models that the tool called.
            let models = outcome.used.iter().filter(|used| !used.is_of_tool());
            let mut total = TotalUsage::default();
            models.for_each(|used| total.add_tool(used));
            self.spend(total.counted());
        }
    }

    /// Counts in the budgets that the run shares what was used without a reservation.
    fn spend(&self, used: CountedUsage) {
        self.run.iter().for_each(|run| run.log.budgets.spend(used));
    }

    /// Settles a reservation with the real usage.
    pub fn settle(&self, reserved: Option<Reservation<'a>>, used: &ToolUsage) {
        if let Some(reserved) = reserved {
            self.state().settled = reserved.used(&used.usage, used.cost);
        }
    }

    /// Releases the reservation: the usage is in the log.
    pub(crate) fn release(&self) {
        if let (Some(hold), Some(run)) = (self.state().settled.take(), &self.run) {
            run.log.free(&hold);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Meter<'_> {
    /// A cancelled call has no result: the tool's own reservation counted its usage.
    fn drop(&mut self) {
        self.release();
    }
}
