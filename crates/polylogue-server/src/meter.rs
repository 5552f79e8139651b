//! Counts the events of a conversation while it runs, for metrics.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use polylogue_core::{
    AnyStore, Body, Delta, Event, ModelReply, Name, Path, Status, Store as _, Subscription, Summary,
    Timestamp, TotalUsage, Update,
};
use polylogue_runtime::Conversation;
use polylogue_wire::calls::CallStarts;
use tracing::warn;

use crate::conversation::listing;
use crate::running::Runs;
use crate::tenants::Tenant;
use crate::totals::{CallTime, Meters, OTHER};

/// Runs `conversation` of a tenant and counts its events. Those who follow the list hear at once of what was sent to it.
pub(crate) async fn run(tenant: &Tenant, conversation: &Conversation) -> polylogue_runtime::Result<Status> {
    let to = (&tenant.meters, tenant.runtime.store());
    run_noted(to, team_of(tenant, conversation), conversation, Some(&tenant.runs)).await
}

/// Runs `conversation`, which the store has, and counts its events as those of `team`.
pub(crate) async fn run_counted(
    to: (&Meters, &AnyStore),
    team: impl Future<Output = String>,
    conversation: &Conversation,
) -> polylogue_runtime::Result<Status> {
    run_noted(to, team, conversation, None).await
}

async fn run_noted(
    to: (&Meters, &AnyStore),
    team: impl Future<Output = String>,
    conversation: &Conversation,
    runs: Option<&Runs>,
) -> polylogue_runtime::Result<Status> {
    let mut live = conversation.subscribe().await;
    let events = conversation.events().await;
    let mut running = pin!(conversation.run());
    // The first call need not wait until the store says of which team it is.
    let (team, mut status) = match select(running.as_mut(), pin!(team)).await {
        Either::Left((status, team)) => (team.await, Some(status)),
        Either::Right((team, _)) => (team, None),
    };
    let mut meter = Meter { runs, ..Meter::of(to, conversation, &events, team) };
    let status = loop {
        let is_missed = poll_fn(|cx| {
            if status.is_none()
                && let Poll::Ready(ended) = running.as_mut().poll(cx)
            {
                status = Some(ended);
            }
            // All that happens does so while the run is polled: it need not be woken for that.
            let is_missed = meter.take_all(&mut live);
            if is_missed || status.is_some() { Poll::Ready(is_missed) } else { Poll::Pending }
        });
        if is_missed.await {
            meter.catch_up().await;
        }
        if let Some(status) = status.take() {
            break status;
        }
    };
    meter.catch_up().await;
    status
}

/// The id of its team, if that is served.
async fn team_of(tenant: &Tenant, conversation: &Conversation) -> String {
    let team = match listing(tenant, conversation.id()).await {
        Ok(listing) => tenant.team_of(&listing).await.map(|(id, _)| id),
        Err(_) => None,
    };
    team.unwrap_or_else(|| OTHER.to_owned())
}

/// Counts the events of one conversation while it runs.
struct Meter<'m> {
    meters: &'m Meters,
    store: &'m AnyStore,
    conversation: &'m Conversation,
    /// Those that this process runs, where others hear of changes.
    runs: Option<&'m Runs>,
    team: String,
    /// All events that were counted, now or by an earlier process, without their usage.
    summary: Summary,
    turns: u64,
    /// When calls began that are in flight, and when the first piece of each reply came.
    starts: CallStarts,
    first_pieces: HashMap<(Path, Name), Timestamp>,
}

impl<'m> Meter<'m> {
    /// Of one of the `team` that has had these events.
    fn of(
        (meters, store): (&'m Meters, &'m AnyStore),
        conversation: &'m Conversation,
        events: &[Arc<Event>],
        team: String,
    ) -> Self {
        let summary = Summary::of(events.iter().map(AsRef::as_ref), true);
        let mut starts = CallStarts::default();
        for event in events {
            starts.take(event);
        }
        let first_pieces = HashMap::new();
        let (runs, turns) = (None, summary.turns);
        Self { meters, store, conversation, runs, team, turns, summary, starts, first_pieces }
    }

    /// Counts what has come. Returns whether updates were missed.
    fn take_all(&mut self, live: &mut Subscription) -> bool {
        while let Some(update) = live.try_next() {
            match update {
                Update::Event(event) => self.take(&event),
                Update::Delta { chat: at, who, delta } => self.piece(at, who, &delta),
                Update::Missed { .. } => return true,
                _ => {}
            }
        }
        false
    }

    /// Notes when the first piece of a reply comes.
    fn piece(&mut self, at: Path, who: Name, delta: &Delta) {
        if matches!(delta, Delta::Text(_) | Delta::Thought(_) | Delta::Call { .. }) {
            self.first_pieces.entry((at, who)).or_insert_with(Timestamp::now);
        }
    }

    /// How long the model call took whose reply the event is.
    fn time_of(&mut self, event: &Event) -> Option<CallTime> {
        let begun = self.starts.take(event);
        let (Body::ModelReplied(ModelReply { who, .. }) | Body::Failed { who, .. }) = &event.body else {
            return None;
        };
        let first = self.first_pieces.remove(&(event.chat.clone(), who.clone()));
        let begun = begun?;
        let since = |end: Timestamp| Duration::from_millis(end.0.saturating_sub(begun.0));
        // It may be noticed after the reply was stored.
        let first_token = first.map(|first| since(first.min(event.time)));
        Some(CallTime { whole: since(event.time), first_token })
    }

    /// Counts what is stored and was not counted yet.
    async fn catch_up(&mut self) {
        match self.store.read(self.conversation.id(), self.summary.events).await {
            Ok(events) => events.iter().for_each(|event| self.take(event)),
            Err(error) => warn!(conversation = %self.conversation.id(), %error, "events are not counted"),
        }
    }

    fn take(&mut self, event: &Event) {
        if event.seq < self.summary.events {
            return;
        }
        if let Some(runs) = self.runs {
            runs.note_event(self.conversation.id(), event);
        }
        self.summary.usage = TotalUsage::default();
        self.summary.add(event, true);
        // The end of an inner chat takes a turn back, which the next turn makes up for: a counter never falls.
        let turns = self.summary.turns.saturating_sub(self.turns);
        self.turns += turns;
        let time = self.time_of(event);
        self.meters.add(&self.team, event, (turns, &self.summary.usage), time);
    }
}
