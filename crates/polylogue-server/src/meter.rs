//! Counts the events of a conversation while it runs, for metrics.

use std::pin::pin;

use polylogue_core::{Event, Status, Store as _, Summary, TotalUsage, Update};
use polylogue_runtime::Conversation;
use tracing::warn;

use crate::conversation::listing;
use crate::tenants::Tenant;
use crate::totals::OTHER;

/// Runs `conversation` and counts its events.
pub(crate) async fn run(tenant: &Tenant, conversation: &Conversation) -> polylogue_runtime::Result<Status> {
    let mut live = conversation.subscribe().await;
    let mut meter = Meter::of(tenant, conversation).await;
    let mut running = pin!(conversation.run());
    let status = loop {
        let update = tokio::select! {
            biased;
            Some(update) = live.next() => update,
            status = &mut running => break status,
        };
        match update {
            Update::Event(event) => meter.take(&event),
            Update::Missed { .. } => meter.catch_up().await,
            _ => {}
        }
    };
    meter.catch_up().await;
    status
}

/// Counts the events of one conversation while it runs.
struct Meter<'m> {
    tenant: &'m Tenant,
    conversation: &'m Conversation,
    team: String,
    /// All events that were counted, now or by an earlier process, without their usage.
    summary: Summary,
    turns: u64,
}

impl<'m> Meter<'m> {
    async fn of(tenant: &'m Tenant, conversation: &'m Conversation) -> Self {
        let events = conversation.events().await;
        let summary = Summary::of(events.iter().map(AsRef::as_ref), true);
        let title = listing(tenant, conversation.id()).await.map(|listing| listing.title).unwrap_or_default();
        let team = tenant.team_of_title(&title).map_or_else(|| OTHER.to_owned(), |(id, _)| id);
        Self { tenant, conversation, team, turns: summary.turns, summary }
    }

    /// Counts what is stored and was not counted yet.
    async fn catch_up(&mut self) {
        let store = self.tenant.runtime.store();
        match store.read(self.conversation.id(), self.summary.events).await {
            Ok(events) => events.iter().for_each(|event| self.take(event)),
            Err(error) => warn!(conversation = %self.conversation.id(), %error, "events are not counted"),
        }
    }

    fn take(&mut self, event: &Event) {
        if event.seq < self.summary.events {
            return;
        }
        self.summary.usage = TotalUsage::default();
        self.summary.add(event, true);
        // The end of an inner chat takes a turn back, which the next turn makes up for: a counter never falls.
        let turns = self.summary.turns.saturating_sub(self.turns);
        self.turns += turns;
        self.tenant.meters.add(&self.team, event, turns, &self.summary.usage);
    }
}
