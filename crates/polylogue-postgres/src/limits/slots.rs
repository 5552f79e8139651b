//! Slots: each is a row with a lease, which its holder renews.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use polylogue_core::{LimitScope, Slot, StoreError};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tracing::warn;

use super::inner::{Inner, UNSYNCED};
use crate::database::{Access, Parameter};
use crate::logs::lease_ms;

/// The time between two renewals of all leases.
const RENEWAL: Duration = Duration::from_secs(10);

/// Frees a slot that its caller does not receive.
pub(super) struct Undelivered {
    pub(super) inner: Arc<Inner>,
    pub(super) slot: Option<Slot>,
    pub(super) handle: Handle,
}

impl Undelivered {
    pub(super) fn deliver(mut self) -> Option<Slot> {
        self.slot.take()
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            let inner = Arc::clone(&self.inner);
            self.handle.spawn(async move { inner.free(&slot).await });
        }
    }
}

impl Inner {
    /// Takes a slot, if one is free.
    pub(super) async fn take_slot(&self, scope: &LimitScope, slots: u32) -> Result<Option<Slot>, StoreError> {
        self.make_slots(scope, slots).await?;
        let sql = format!(
            "WITH {UNSYNCED}, free AS (
                SELECT provider, account, slot FROM polylogue.slots
                WHERE provider = $1 AND account = $2 AND $3 = '' AND slot < $4 AND until < clock_timestamp()
                ORDER BY slot LIMIT 1 FOR UPDATE SKIP LOCKED)
            UPDATE polylogue.slots AS s SET holder = $5, ticket = $6, until = clock_timestamp() + $7 * interval '1 millisecond'
            FROM free, unsynced WHERE s.provider = free.provider AND s.account = free.account AND s.slot = free.slot
            RETURNING s.slot"
        );
        let ticket = self.slots.tickets.fetch_add(1, Ordering::Relaxed);
        let limit = i32::try_from(slots).unwrap_or(i32::MAX);
        let more: [&dyn Parameter; 4] = [&limit, &self.node, &ticket, &lease_ms()];
        // Renewed from now on: a repeated statement may have taken two.
        self.slots.held().insert(ticket);
        let rows = self.of_scope(Access::Write, &sql, scope, &more).await;
        let number = match rows.as_deref() {
            Ok([row, ..]) => self.get::<i32>(row, 0).map(|number| u32::try_from(number).ok()),
            Ok([]) => Ok(None),
            Err(error) => Err(error.clone()),
        };
        if !matches!(number, Ok(Some(_))) {
            self.slots.held().remove(&ticket);
        }
        number.map(|number| number.map(|number| Slot { scope: scope.clone(), number, ticket }))
    }

    /// Makes the rows of a server that are missing, once.
    async fn make_slots(&self, scope: &LimitScope, slots: u32) -> Result<(), StoreError> {
        if self.slots.rows().get(scope).is_some_and(|rows| *rows >= slots) {
            return Ok(());
        }
        let sql = "INSERT INTO polylogue.slots(provider, account, slot)
            SELECT $1, $2, slot FROM generate_series(0, $4 - 1) AS slot WHERE $3 = '' ON CONFLICT DO NOTHING";
        let limit = i32::try_from(slots).unwrap_or(i32::MAX);
        self.of_scope(Access::Write, sql, scope, &[&limit]).await?;
        self.slots.rows().insert(scope.clone(), slots);
        Ok(())
    }

    /// Frees a slot. If the database cannot be reached, its lease expires.
    pub(super) async fn free(&self, slot: &Slot) {
        self.slots.held().remove(&slot.ticket);
        let sql = format!(
            "WITH {UNSYNCED} UPDATE polylogue.slots SET until = 'epoch', holder = NULL, ticket = NULL
            FROM unsynced WHERE provider = $1 AND account = $2 AND $3 = '' AND holder = $4 AND ticket = $5"
        );
        let more: [&dyn Parameter; 2] = [&self.node, &slot.ticket];
        if let Err(error) = self.of_scope(Access::Write, &sql, &slot.scope, &more).await {
            warn!(%error, "a slot is free only when its lease expires");
        }
    }

    /// Renews the leases of all slots of this process, until it is dropped.
    pub(super) async fn renew_slots(inner: Weak<Self>) {
        loop {
            sleep(RENEWAL).await;
            let Some(inner) = inner.upgrade() else { return };
            let tickets: Vec<i64> = inner.slots.held().iter().copied().collect();
            if tickets.is_empty() {
                continue;
            }
            let sql = format!(
                "WITH {UNSYNCED} UPDATE polylogue.slots SET until = clock_timestamp() + $3 * interval '1 millisecond'
                FROM unsynced WHERE holder = $1 AND ticket = ANY($2)"
            );
            let parameters: [&dyn Parameter; 3] = [&inner.node, &tickets, &lease_ms()];
            if let Err(error) = inner.database.query(Access::Write, &sql, &parameters).await {
                warn!(%error, "leases of slots were not renewed");
            }
        }
    }
}
