//! The events of a log in memory, and figures over them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::accounts::Accounts;
use super::background::OpenTasks;
use super::bound_account::BoundAccount;
use super::clock::Timestamp;
use super::cut_replies::CutReplies;
use super::event::{Body, Event};
use super::inbox::TakenNumbers;
use super::open_question::OpenQuestion;
use super::origins::Origins;
use super::run_time::RunTime;
use super::turns::TurnCount;
use crate::limits::RunUsage;
use crate::{AllowanceOwner, ChargeReason, LimitOverrides, Limits, Name, Path, TotalUsage};

/// The events of a log, and those to be appended next.
#[derive(Default)]
pub(crate) struct EventBuffer {
    /// The events in the store.
    pub(crate) events: Vec<Arc<Event>>,
    /// Events to be appended that are not in the store yet.
    staged: Vec<Arc<Event>>,
    pub(crate) totals: RunTotals,
    /// Whether an append began and its result is unknown: the store may have events that are not here, and must be read again.
    pub(crate) may_lack_events: bool,
}

impl EventBuffer {
    /// The `seq` of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        (self.events.len() + self.staged.len()) as u64
    }

    /// The events in the store from the number `seq` on.
    pub(crate) fn since(&self, seq: u64) -> &[Arc<Event>] {
        let first = self.events.partition_point(|event| event.seq < seq);
        self.events.get(first..).unwrap_or_default()
    }

    /// Makes events from `bodies`, to be appended next.
    pub(crate) fn stage(
        &mut self,
        at: &Path,
        time: (Timestamp, u64),
        bodies: impl IntoIterator<Item = Body>,
    ) -> Vec<Arc<Event>> {
        self.stage_from(at, time, bodies.into_iter().map(|body| (None, body)))
    }

    /// As [`stage`](Self::stage), with the numbers of the inbox messages that the events carry out.
    pub(crate) fn stage_from(
        &mut self,
        at: &Path,
        (time, ran_ms): (Timestamp, u64),
        bodies: impl IntoIterator<Item = (Option<u64>, Body)>,
    ) -> Vec<Arc<Event>> {
        let first = self.next_seq();
        // All of them are marked before the first is added: parallel turns do not see each other.
        let origins = &self.totals.origins;
        let event = |(seq, (inbox, mut body))| {
            origins.mark(at, &mut body);
            Arc::new(Event { seq, chat: at.clone(), time, ran_ms, inbox, body })
        };
        let batch: Vec<Arc<Event>> = (first..).zip(bodies).map(event).collect();
        for event in &batch {
            self.totals.add(event);
            self.staged.push(Arc::clone(event));
        }
        batch
    }

    /// The events to be appended.
    pub(crate) fn staged(&self) -> &[Arc<Event>] {
        &self.staged
    }

    /// The questions without an answer by the events in the store, oldest first. Those of an append that has failed do not count: what
    /// answers them would be stored without them.
    pub(crate) fn open_questions(&self) -> Vec<OpenQuestion> {
        if self.staged.is_empty() {
            self.totals.time.questions().all()
        } else {
            OpenQuestion::of(&self.events)
        }
    }

    /// Marks the staged events as stored, and returns them.
    pub(crate) fn settle(&mut self) -> &[Arc<Event>] {
        let first = self.events.len();
        self.events.append(&mut self.staged);
        self.events.get(first..).unwrap_or_default()
    }

    /// Discards staged events, and adds further events from the store.
    pub(crate) fn take_in(&mut self, more: impl IntoIterator<Item = Event>) {
        self.staged.clear();
        self.events.extend(more.into_iter().map(Arc::new));
        self.count_again();
    }

    /// Sets the limits of an agent or chat.
    pub(crate) fn open_account(&mut self, owner: &AllowanceOwner, limits: Limits) {
        if self.totals.accounts.open(owner, limits) {
            self.count_again();
        }
    }

    /// Sets the limits of those agents and chats that have no account.
    pub(crate) fn open_accounts(&mut self, limits: impl IntoIterator<Item = (AllowanceOwner, Limits)>) {
        let accounts = &mut self.totals.accounts;
        let mut are_new = false;
        for (owner, limits) in limits {
            are_new |= accounts.of(&owner).is_none() && accounts.open(&owner, limits);
        }
        if are_new {
            self.count_again();
        }
    }

    /// The limits of `owner`, by default `own`, if the conversation is reopened for `more`.
    pub(crate) fn limits_of_account(
        &mut self,
        owner: &AllowanceOwner,
        own: Limits,
        more: LimitOverrides,
    ) -> Limits {
        self.open_account(owner, own);
        self.totals.accounts.limits_for(owner, more).unwrap_or(own)
    }

    /// How many model calls count in the events before `first`, by those since.
    pub(crate) fn calls_before(&self, first: u64) -> u64 {
        let mut since = TotalUsage::default();
        self.since(first).iter().chain(&self.staged).for_each(|event| since.add_event(event));
        self.totals.usage.counted_calls().saturating_sub(since.counted_calls())
    }

    /// Counts all events from the first one on.
    fn count_again(&mut self) {
        let accounts = std::mem::take(&mut self.totals.accounts).emptied();
        self.totals = RunTotals { accounts, ..RunTotals::default() };
        self.events.iter().chain(&self.staged).for_each(|event| self.totals.add(event));
    }
}

/// Figures over a whole run.
#[derive(Default)]
pub(crate) struct RunTotals {
    /// The total usage.
    pub(crate) usage: TotalUsage,
    /// The running time that counts toward limits.
    pub(crate) time: RunTime,
    /// The accounts of agents and chats that have limits of their own.
    pub(crate) accounts: Accounts,
    /// What counts toward the bound of the run.
    pub(crate) bound: BoundAccount,
    /// Replies that limits cut off.
    pub(crate) cut_replies: CutReplies,
    /// Turns of agents in all chats.
    pub(crate) turns: TurnCount,
    /// Finished model calls of each agent.
    pub(crate) calls: BTreeMap<Name, u64>,
    /// Failed turns of each agent, unless their call was never made, and model calls that were refused without failing the turn.
    pub(crate) failures: BTreeMap<Name, u64>,
    /// A model whose cost is unknown.
    pub(crate) unpriced: Option<Arc<str>>,
    /// Agents and tool calls whose usage was unknown, so that their upper bound was charged: their results, which come next, count as priced.
    charged_at_bound: Vec<(Path, Name, Option<Arc<str>>)>,
    /// The last event by which all calls were over: the outermost chat was closed, or a person was asked at a limit.
    pub(crate) closed: Option<u64>,
    /// Who has read content from outside.
    pub(crate) origins: Origins,
    /// The inbox messages that the log has.
    pub(crate) taken: TakenNumbers,
    /// The background tasks that are open.
    pub(crate) background: OpenTasks,
    /// Whether the conversation was paused last.
    pub(crate) is_paused: bool,
    /// The last event that raised limits of the outermost chat itself while it was open.
    pub(crate) last_raise: Option<u64>,
}

impl RunTotals {
    /// Those of `events`, from the first one on.
    pub(crate) fn of(events: &[Arc<Event>]) -> Self {
        let mut totals = Self::default();
        events.iter().for_each(|event| totals.add(event));
        totals
    }

    fn add(&mut self, event: &Event) {
        self.origins.add(event);
        self.usage.add_event(event);
        self.turns.add(event);
        self.background.add(event);
        self.bound.add(event);
        self.cut_replies.add(event);
        event.inbox.into_iter().for_each(|number| self.taken.add(number));
        let unpriced = self.unpriced_in(event);
        let ran = self.time.add(event);
        self.accounts.add(event, unpriced.as_ref(), ran);
        self.unpriced = unpriced.or_else(|| self.unpriced.take());
        match &event.body {
            Body::ModelReplied(reply) => *self.calls.entry(reply.who.clone()).or_default() += 1,
            Body::Charged(charge) if charge.why == ChargeReason::Unreported && charge.cost.is_some() => {
                self.charged_at_bound.push((event.chat.clone(), charge.who.clone(), charge.call.clone()));
            }
            Body::Failed { error, .. } if error.unsent => {}
            Body::Failed { who, .. }
            | Body::CapabilityMissing { who, .. }
            | Body::SealsRefused { who, .. }
            | Body::TooLong { who, .. }
            | Body::ContinuationFailed { who, .. } => *self.failures.entry(who.clone()).or_default() += 1,
            Body::Closed { .. } if event.chat.is_root() => self.closed = Some(event.seq),
            Body::InputRequired(question) if question.is_about_limit() => self.closed = Some(event.seq),
            Body::Paused => self.is_paused = true,
            Body::Resumed => self.is_paused = false,
            Body::LimitsChanged { more, .. } if !more.is_empty() => self.last_raise = Some(event.seq),
            _ => {}
        }
    }

    /// The model that was used at an unknown cost.
    fn unpriced_in(&mut self, event: &Event) -> Option<Arc<str>> {
        match &event.body {
            Body::ModelReplied(reply) => {
                let is_charged = self.take_charge_at_bound(&event.chat, &reply.who, None);
                let is_known = reply.cost.is_some() || reply.cached || is_charged;
                (!is_known).then(|| Arc::clone(&reply.model))
            }
            Body::ToolReturned { who, id, result: outcome } => {
                let is_charged = self.take_charge_at_bound(&event.chat, who, Some(id));
                let unpriced = outcome.used.iter().rfind(|used| used.cost.is_none() && !is_charged);
                unpriced.map(|used| Arc::clone(&used.model))
            }
            _ => None,
        }
    }

    /// What counts toward limits at a running time of `ran_ms`.
    pub(crate) fn used(&self, ran_ms: u64) -> RunUsage<'_> {
        let time_ms = self.time.used_ms().saturating_add(self.time.since_last(ran_ms));
        RunUsage { counted: self.usage.counted(), time_ms, unpriced: self.unpriced.as_ref() }
    }

    /// Whether the upper bound of the reply of `who`, or of the result of its tool call `call`, was charged. It was for one result.
    fn take_charge_at_bound(&mut self, at: &Path, who: &Name, call: Option<&str>) -> bool {
        let is_it = |(path, name, of): &(Path, Name, Option<Arc<str>>)| {
            path == at && name == who && of.as_deref() == call
        };
        let found = self.charged_at_bound.iter().position(is_it);
        found.map(|index| self.charged_at_bound.swap_remove(index)).is_some()
    }

    /// How many model calls of `who` ended, with a reply or with a failed turn.
    pub(crate) fn ended(&self, who: &Name) -> u64 {
        [&self.calls, &self.failures].iter().filter_map(|count| count.get(who)).sum()
    }
}
