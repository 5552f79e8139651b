//! Tool calls within a turn.

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::Turn;
use super::calls::outcome_of;
use super::repeats::repeated_calls;
use crate::transcript::in_order;
use crate::{AnyTool, Body, Call, Interrupt, Meter, Outcome, Result, Results, Tool, ToolCx};

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
    pub async fn call(&mut self, tools: &[AnyTool], calls: &[Call]) -> Result<Vec<Outcome>> {
        if let Some(reason) = repeated_calls(&self.journal, calls, self.chat.max_equal_calls()) {
            return Err(Interrupt::Ended { who: self.me().clone(), reason }.into());
        }
        let mut outcomes: Vec<Option<Outcome>> = vec![None; calls.len()];
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
        let mut running = FuturesUnordered::new();
        let mut fresh = Vec::new();
        for ((index, call), meter) in calls.iter().enumerate().zip(&meters) {
            if outcomes.get(index).is_some_and(Option::is_some) {
                continue;
            }
            let was_begun = begun.get(index).copied().unwrap_or(false);
            if !was_begun {
                fresh.push(Body::ToolCalled { who: who.clone(), call: call.clone() });
            }
            let tool = tools.iter().find(|tool| tool.spec().name == call.tool);
            // A call that never ran - unknown tool, invalid arguments - is safe to decide again.
            let runs = tool.filter(|_| call.args.is_object());
            let unknown = was_begun && runs.is_some_and(|tool| !tool.spec().repeatable);
            let (id, resources) = (&call.id, log.resources());
            let cx = ToolCx {
                log: log.id(),
                resources,
                at,
                who,
                transcript,
                turn: &before,
                within: &within,
                id,
                meter,
                results: Results::of(log),
            };
            running.push(async move {
                let outcome =
                    if unknown { Outcome::unknown() } else { outcome_of(tool, tools, call, &cx).await };
                (index, outcome)
            });
        }
        if !running.is_empty() {
            // Nothing begins that would be aborted at once.
            log.check_not_cancelled_now()?;
        }
        if !fresh.is_empty() {
            self.record(fresh).await?;
        }
        while let Some((index, outcome)) = log.within_time(at, who, running.next()).await? {
            let id = calls.get(index).map(|call| call.id.clone()).unwrap_or_default();
            self.record([Body::ToolReturned { who: who.clone(), id, outcome: outcome.clone() }]).await?;
            meters.get(index).into_iter().for_each(Meter::release);
            if let Some(slot) = outcomes.get_mut(index) {
                *slot = Some(outcome);
            }
        }
        // However a tool handles a limit, nothing more is sent.
        log.check_refused()?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Charges what tools had asked models when an earlier process died.
    async fn charge_lost_by_tools(&mut self) -> Result<()> {
        let (by_tools, others) =
            std::mem::take(&mut self.lost).into_iter().partition(|charge| charge.call.is_some());
        self.lost = others;
        self.log.charge_lost_by_tools(self.transcript.at(), by_tools).await
    }

    fn replay_calls(&mut self, calls: &[Call], begun: &mut [bool], outcomes: &mut [Option<Outcome>]) {
        while let Some(event) = self.past.front() {
            let id = match &event.body {
                Body::ToolCalled { call, .. } => &call.id,
                Body::ToolReturned { id, .. } => id,
                _ => return,
            };
            let Some(index) = calls.iter().position(|call| call.id == *id) else { return };
            match (&event.body, begun.get_mut(index), outcomes.get_mut(index)) {
                (Body::ToolReturned { outcome, .. }, _, Some(slot)) => *slot = Some(outcome.clone()),
                (_, Some(begun), _) => *begun = true,
                _ => {}
            }
            if let Some(event) = self.past.pop_front() {
                self.replay_event(event);
            }
        }
    }
}
