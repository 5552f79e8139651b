//! Brings the messages in the inbox of the store to the conversations that this process runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polylogue_core::{AnyStore, Body, Event, InboxMessage, Log, LogHandle, Store as _, StoreError};
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::Result;

/// How often a running conversation looks into its inbox, where the store does not hear of messages.
const POLL: Duration = Duration::from_millis(200);

/// How much that grows with every running conversation of this process: together they look 500 times a second at most.
const POLL_EACH: Duration = Duration::from_millis(2);

/// How often it looks where the store hears of them: one may be missed.
const LOOK: Duration = Duration::from_secs(5);

/// How many conversations of this process look into their inboxes.
static POLLING: AtomicUsize = AtomicUsize::new(0);

/// Carries out inbox messages in a log that was just opened. Returns whether one of them continues its conversation.
pub(crate) async fn take_in(log: &mut Log, messages: Vec<(u64, InboxMessage)>) -> Result<bool> {
    let before = log.events().await.len();
    log.take_in_inbox(messages).await?;
    let continues = |event: &Arc<Event>| {
        matches!(event.body, Body::Sent(_) | Body::Reopened { .. } | Body::InputProvided { .. })
    };
    Ok(log.events().await.iter().skip(before).any(continues))
}

/// Brings the messages of the inbox of the store to the log that `handle` is of, while it is polled. Returns when there is one that only a
/// later version can carry out.
pub(crate) async fn deliver(store: AnyStore, handle: LogHandle) -> StoreError {
    let _polling = Polling::begin();
    loop {
        match fetch(&store, &handle).await {
            Ok(()) => {}
            Err(unknown @ StoreError::UnknownInstruction { .. }) => return unknown,
            Err(error) => warn!(id = %handle.id(), %error, "the inbox cannot be read"),
        }
        match timeout(LOOK, store.inbox_news(handle.id())).await {
            Ok(Ok(true)) | Err(_) => {}
            Ok(Ok(false) | Err(_)) => {
                let others = u32::try_from(POLLING.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
                sleep(POLL.max(POLL_EACH.saturating_mul(others))).await;
            }
        }
    }
}

/// Brings the messages that are there now.
pub(crate) async fn fetch(store: &AnyStore, handle: &LogHandle) -> Result<(), StoreError> {
    for (number, message) in store.inbox(handle.id(), handle.taken_until().await).await? {
        // The event in the log confirms it.
        drop(handle.deliver(number, message.instruction).await);
    }
    Ok(())
}

struct Polling;

impl Polling {
    fn begin() -> Self {
        POLLING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLING.fetch_sub(1, Ordering::Relaxed);
    }
}
