//! Tool calls within a turn.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::Turn;
use super::calls::{CallStep, StartedCall};
use super::repeats::repeated_calls;
use crate::transcript::in_order;
use crate::{
    AnyTool, Body, Error, Interrupt, Meter, Reservation, Result, StoredResults, ToolCall, ToolCx, ToolResult,
};

/// Does `work` while the others continue, whose results come into `ended`: one of them may be the next to have what `work` waits
/// for, such as the log.
async fn with_others<F: Future + Unpin, T>(
    others: &mut FuturesUnordered<F>,
    ended: &mut VecDeque<F::Output>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    poll_fn(|cx| {
        while let Poll::Ready(Some(result)) = others.poll_next_unpin(cx) {
            ended.push_back(result);
        }
        work.as_mut().poll(cx)
    })
    .await
}

impl Turn<'_> {
    /// Executes tool calls in parallel, and returns their results in the order of the calls. There is always a
    /// result, even if a tool fails, panics or does not exist.
    ///
    /// A call that was in flight at a crash is repeated if its tool is declared repeatable; else its result is
    /// unknown, and the model receives that.
    ///
    /// # Errors
    /// [`Interrupt::Ended`] when this turn has made the same calls with equal results as often in a row as the chat
    /// [allows](crate::ChatBuilder::max_equal_calls): return it, by `?`, and the chat ends. Also when the run is
    /// cancelled or the log cannot be written.
    pub async fn call_tools(&mut self, tools: &[AnyTool], calls: &[ToolCall]) -> Result<Vec<ToolResult>> {
        if let Some(reason) = repeated_calls(&self.journal, calls, self.chat.max_equal_calls()) {
            return Err(Interrupt::Ended { who: self.me().clone(), reason }.into());
        }
        let mut outcomes: Vec<Option<ToolResult>> = vec![None; calls.len()];
        let mut begun = vec![false; calls.len()];
        // Without the results below: parallel calls know nothing of each other, resumed or not.
        let before = self.journal.clone();
        let within = in_order(self.within_before.iter().chain(&self.within));
        self.replay_calls(calls, &mut begun, &mut outcomes);
        let log = self.log;
        let (at, who, transcript) = (self.transcript.at(), self.me(), self.transcript);
        if outcomes.iter().any(Option::is_none) {
            self.charge_lost_by_tools().await?;
            self.doubt = None;
        }
        let meters: Vec<Meter<'_>> = calls.iter().map(|call| Meter::of(log, at, who, &call.id)).collect();
        let context = |meter, id| ToolCx {
            log: log.id(),
            resources: log.resources(),
            chat: at,
            who,
            transcript,
            turn: &before,
            within: &within,
            id,
            meter,
            results: StoredResults::of(log),
        };
        let running = FuturesUnordered::new();
        let mut fresh = Vec::new();
        for ((index, call), meter) in calls.iter().enumerate().zip(&meters) {
            if outcomes.get(index).is_some_and(Option::is_some) {
                continue;
            }
            let was_begun = begun.get(index).copied().unwrap_or(false);
            let started = StartedCall { index, call, tools, cx: context(meter, &call.id), was_begun };
            // It begins when what it costs is reserved.
            if !was_begun && started.max_cost().is_none() {
                fresh.push(started.begins());
            }
            running.push(started.advance(None));
        }
        if !running.is_empty() {
            // Nothing begins that would be aborted at once.
            log.check_not_cancelled_now()?;
        }
        let is_any = !running.is_empty();
        if !fresh.is_empty() {
            self.record(fresh).await?;
        }
        if is_any {
            log.confirm_claim().await?;
        }
        let refused = self.await_calls(running, &mut outcomes).await?;
        // However a tool handles a limit, nothing more is sent.
        log.check_refused()?;
        refused.map_or(Ok(()), Err)?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Awaits calls, and logs what becomes of them. Returns why one was refused, if one was.
    async fn await_calls<'c>(
        &mut self,
        mut running: FuturesUnordered<BoxFuture<'c, (StartedCall<'c>, CallStep<'c>)>>,
        outcomes: &mut [Option<ToolResult>],
    ) -> Result<Option<Error>> {
        let (log, at, who) = (self.log, self.transcript.at(), self.me());
        let (mut refused, mut ended) = (None, VecDeque::new());
        loop {
            let next = match ended.pop_front() {
                Some(next) => Some(next),
                None => log.within_time(at, who, running.next()).await?,
            };
            let Some((started, step)) = next else { break };
            match step {
                CallStep::Reserved(Ok(reserved)) => {
                    let begun = self.record_begun(&started, &reserved);
                    with_others(&mut running, &mut ended, begun).await?;
                    with_others(&mut running, &mut ended, pin!(log.confirm_claim())).await?;
                    running.push(started.advance(Some(reserved)));
                }
                // The others end first. This one has not begun: under a higher limit it is made when the turn continues.
                CallStep::Reserved(Err(error)) => refused = refused.or(Some(error)),
                CallStep::Returned { outcome, reserved } => {
                    let id = started.call.id.clone();
                    let event = Body::ToolReturned { who: who.clone(), id, result: outcome.clone() };
                    with_others(&mut running, &mut ended, self.record([event])).await?;
                    drop(reserved);
                    started.cx.meter.release();
                    outcomes
                        .get_mut(started.index)
                        .into_iter()
                        .for_each(|slot| *slot = Some(outcome.clone()));
                }
            }
        }
        Ok(refused)
    }

    /// Logs that a call begins whose cost is reserved.
    async fn record_begun(&mut self, started: &StartedCall<'_>, reserved: &Reservation<'_>) -> Result<()> {
        // Before the call: what follows an event of a reservation is in flight.
        self.log.stage(self.transcript.at(), [reserved.reserved()]).await?;
        let begins = (!started.was_begun).then(|| started.begins());
        self.record(begins).await
    }

    /// Charges what tools had asked models when an earlier process died.
    async fn charge_lost_by_tools(&mut self) -> Result<()> {
        let (by_tools, others) =
            std::mem::take(&mut self.lost).into_iter().partition(|charge| charge.call.is_some());
        self.lost = others;
        self.log.charge_lost_by_tools(self.transcript.at(), by_tools).await
    }

    /// Takes what the log has of `calls`. Each of them has one beginning and one end: what follows with the id of one that has them
    /// belongs to a later call, whose agent gave it the same id.
    fn replay_calls(&mut self, calls: &[ToolCall], begun: &mut [bool], outcomes: &mut [Option<ToolResult>]) {
        while let Some(event) = self.past.front() {
            let first = |id: &str, is_left: &dyn Fn(usize) -> bool| {
                (0..).zip(calls).find(|(at, call)| call.id == id && is_left(*at)).map(|(at, _)| at)
            };
            let index = match &event.body {
                Body::ToolCalled { call, .. } => first(&call.id, &|at| begun.get(at) == Some(&false)),
                Body::ToolReturned { id, .. } => first(id, &|at| outcomes.get(at) == Some(&None)),
                _ => None,
            };
            let Some(index) = index else { return };
            match (&event.body, begun.get_mut(index), outcomes.get_mut(index)) {
                (Body::ToolReturned { result: outcome, .. }, _, Some(slot)) => *slot = Some(outcome.clone()),
                (_, Some(begun), _) => *begun = true,
                _ => {}
            }
            if let Some(event) = self.past.pop_front() {
                self.replay_event(event);
            }
        }
    }
}
