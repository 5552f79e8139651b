//! The cancellation of a run, as its log knows it.

use std::pin::pin;

use futures_util::future::{Either, select};

use super::Log;
use crate::limits::CancelMode;
use crate::{Interrupt, Result};

impl Log {
    /// Waits for `work`, or for an immediate cancellation.
    pub(crate) async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        match select(pin!(work), pin!(self.cancellation.wait(CancelMode::Now))).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(Interrupt::Cancelled.into()),
        }
    }

    /// Waits for a cancellation of at least this mode.
    pub(crate) async fn cancelled(&self, mode: CancelMode) {
        self.cancellation.wait(mode).await;
    }

    /// Fails if the run is to stop at once.
    pub(crate) fn check_not_cancelled_now(&self) -> Result<()> {
        if self.cancellation.mode() == CancelMode::Now { Err(Interrupt::Cancelled.into()) } else { Ok(()) }
    }

    /// Fails if no further step may begin.
    pub(crate) fn check_not_cancelled(&self) -> Result<()> {
        if self.cancellation.mode() >= CancelMode::AfterStep {
            Err(Interrupt::Cancelled.into())
        } else {
            Ok(())
        }
    }
}
