//! Limits on running time: calls in flight end at them.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::Log;
use crate::{Error, Interrupt, Name, Path, Result, StopReason, Timer};

impl Log {
    /// Sets the timer of limits on running time: model and tool calls in flight are then aborted when one is reached, and
    /// what had arrived of a reply is kept. Default: such limits are checked between calls.
    #[must_use]
    pub fn timer(mut self, timer: Timer) -> Self {
        self.timer = Some(timer);
        self
    }

    /// Returns the running time that counts toward limits, in milliseconds: without the time in which people were waited for.
    pub async fn time_used_ms(&self) -> u64 {
        let ran = self.now().1;
        let time = self.buffer.lock().await.totals.time.clone();
        let since = if time.waits() { 0 } else { time.since_last(ran) };
        time.used_ms().saturating_add(since)
    }

    /// Begins a run: the time since the last event, in which none was under way, does not count.
    pub(super) fn skip_idle_time(&self, last_ms: u64) {
        self.running.skip_to(last_ms, self.time_now());
    }

    /// Waits for `work` of `who` in the chat `at`, until an immediate cancellation or the end of the time of a limit.
    pub(crate) async fn within_time<T>(
        &self,
        at: &Path,
        who: &Name,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        let work = pin!(self.unless_cancelled(work));
        let Some(timer) = self.timer.as_ref().filter(|_| self.is_timed()) else { return work.await };
        match select(work, pin!(self.time_is_up(timer, at, who))).await {
            Either::Left((done, _)) => done,
            Either::Right((error, _)) => Err(error),
        }
    }

    async fn time_is_up(&self, timer: &Timer, at: &Path, who: &Name) -> Error {
        loop {
            match self.time_left(at, who).await {
                // Without a limit any more.
                Ok(None) => std::future::pending().await,
                // The clock can stop: in a pause.
                Ok(Some(left)) => timer.wait(Duration::from_millis(left.max(1))).await,
                Err(error) => return error,
            }
        }
    }

    /// How many milliseconds are left for calls of `who` in the chat `at`.
    async fn time_left(&self, at: &Path, who: &Name) -> Result<Option<u64>> {
        let buffer = self.buffer.lock().await;
        let (totals, limits, ran) = (&buffer.totals, self.limits_now(), self.now().1);
        let mut left = None;
        let mut lower = |limit: Option<u64>, used: u64| {
            let rest = limit.map(|limit| limit.saturating_sub(used));
            left = [left, rest].into_iter().flatten().min();
        };
        for (_, of) in totals.accounts.paying(at, who) {
            let (used, limits) = (of.used(totals.time.since_last(ran)), of.limits());
            if let Some(reason) = limits.time_reached(used.time_ms) {
                return Err(Interrupt::Limit(of.refusal(reason)).into());
            }
            lower(limits.time_ms, used.time_ms);
        }
        let used = totals.used(ran).time_ms;
        if let Some(reason) = limits.time_reached(used) {
            return Err(self.run_refused(reason));
        }
        lower(limits.time_ms, used);
        if let Some(reason) = self.budgets.time_reached() {
            return Err(self.run_refused(reason));
        }
        self.budgets.times().for_each(|(limit, used)| lower(limit, used));
        Ok(left)
    }

    /// Ends the run at a limit, however an agent handles the error.
    fn run_refused(&self, reason: StopReason) -> Error {
        self.account.state().refused = Some(reason.clone());
        Interrupt::Limit(reason).into()
    }

    /// Fails if the time of the run, or of the chat `at` or one around it, is up.
    pub(crate) async fn check_time(&self, at: &Path) -> Result<()> {
        if !self.is_timed() {
            return Ok(());
        }
        let buffer = self.buffer.lock().await;
        let (totals, ran) = (&buffer.totals, self.now().1);
        for of in totals.accounts.around(at) {
            if let Some(reason) = of.limits().time_reached(of.used(totals.time.since_last(ran)).time_ms) {
                return Err(Interrupt::Limit(of.refusal(reason)).into());
            }
        }
        let of_run = self.limits_now().time_reached(totals.used(ran).time_ms);
        match of_run.or_else(|| self.budgets.time_reached()) {
            Some(reason) => Err(self.run_refused(reason)),
            None => Ok(()),
        }
    }

    fn is_timed(&self) -> bool {
        self.budgets.is_timed() || self.limits_now().time_ms.is_some() || self.account.state().is_timed
    }
}
