//! Announces new events to processes that follow logs and cannot reach the one that runs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::debug;

use crate::database::{Access, Database};

/// At most one announcement in this time: a notification takes a lock of the whole server.
const PAUSE: Duration = Duration::from_millis(25);

/// The channel of announcements. They say nothing but that there is something to look at, and their commits are not synced.
pub(crate) const CHANNEL: &str = "polylogue_events";

const ANNOUNCE: &str =
    "WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_off)
    SELECT pg_notify('polylogue_events', left(is_off, 0)) FROM unsynced";

/// Whether new events of watched logs are to be announced.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    has_events: AtomicBool,
    is_announcing: AtomicBool,
}

impl Announcements {
    /// Notes whether the log of an append that was kept is watched.
    pub(crate) fn note(&self, is_watched: bool) {
        self.has_events.fetch_or(is_watched, Ordering::AcqRel);
    }

    /// Announces what was noted, after the append and not within it: nothing waits for it. One that is lost is made up for by polling.
    pub(crate) fn announce(self: &Arc<Self>, database: &Arc<Database>) {
        if !self.has_events.load(Ordering::Acquire) || self.is_announcing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (announcements, database) = (Arc::clone(self), Arc::clone(database));
        tokio::spawn(async move {
            while announcements.has_events.swap(false, Ordering::AcqRel) {
                if database.query_once(Access::Write, ANNOUNCE, &[]).await.is_err() {
                    debug!("new events are not announced");
                }
                tokio::time::sleep(PAUSE).await;
            }
            announcements.is_announcing.store(false, Ordering::Release);
            // Noted since the last look.
            announcements.announce(&database);
        });
    }
}
