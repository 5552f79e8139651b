//! The cancellation of a run, as its log knows it.

use std::pin::pin;

use futures_util::future::{Either, select};

use super::Log;
use crate::limits::CancelMode;
use crate::{Interrupt, Result};

impl Log {
    /// Waits for `work`, or for an immediate cancellation.
    pub(crate) async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        match select(pin!(work), pin!(self.cancelled(CancelMode::Now))).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(Interrupt::Cancelled.into()),
        }
    }

    /// Waits for a cancellation of at least this mode. A run that only charges lost calls is cancelled from its beginning.
    pub(crate) async fn cancelled(&self, mode: CancelMode) {
        if !self.account.state().only_charges {
            self.cancellation.wait(mode).await;
        }
    }

    fn cancel_mode(&self) -> CancelMode {
        let only_charges = self.account.state().only_charges;
        if only_charges { CancelMode::Now } else { self.cancellation.mode() }
    }

    /// Fails if the run is to stop at once.
    pub(crate) fn check_not_cancelled_now(&self) -> Result<()> {
        if self.cancel_mode() == CancelMode::Now { Err(Interrupt::Cancelled.into()) } else { Ok(()) }
    }

    /// Fails if no further step may begin.
    pub(crate) fn check_not_cancelled(&self) -> Result<()> {
        if self.cancel_mode() >= CancelMode::AfterStep { Err(Interrupt::Cancelled.into()) } else { Ok(()) }
    }
}
