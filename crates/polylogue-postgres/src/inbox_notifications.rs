//! Tells a process of inbox messages for the logs that it has claimed. Who posts one notifies the process that has the log, after the commit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::LogId;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::connection::open_with;
use crate::database::{Access, Database};

/// How often it is tried whether notifications arrive, and how long one may take.
const TRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5));

/// The pauses before connecting is tried again, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The beginning of a channel's name; the name of the node follows.
const CHANNEL: &str = "polylogue_inbox_";

/// Not synced: what is lost is found by looking.
const NOTIFY: &str =
    "WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS is_off)
    SELECT pg_notify($1, left(is_off, 0) || $2) FROM unsynced";

/// What is sent to try whether notifications arrive. No log has this name.
const TRIAL: &str = ".";

/// Notifies the process `node` of a message for the log `id`. It is sent before the post returns: a command may end then.
pub(crate) async fn notify(database: &Database, node: &str, id: &str) {
    let channel = format!("{CHANNEL}{node}");
    if database.query_once(Access::Write, NOTIFY, &[&channel, &id]).await.is_err() {
        debug!("a message is not announced");
    }
}

/// Notifications of inbox messages for the logs that this process has claimed.
#[derive(Default)]
pub(crate) struct InboxNotifications {
    /// Of the logs that it has claimed.
    logs: Mutex<HashMap<String, Arc<Notify>>>,
    /// Whether notifications have arrived lately: through some poolers, none do.
    is_connected: AtomicBool,
    /// Wakes all that wait, when the connection is lost.
    disconnected: Notify,
    tried: Notify,
    is_listening: AtomicBool,
}

impl InboxNotifications {
    fn logs(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to listen for messages of a log, before its inbox is read.
    pub(crate) fn add(&self, id: &LogId) {
        self.logs().entry(id.to_string()).or_default();
    }

    /// Stops listening for messages of a log: who waits for one continues.
    pub(crate) fn remove(&self, id: &LogId) {
        self.logs().remove(id.as_str()).iter().for_each(|news| news.notify_one());
    }

    /// Waits for a message for the log. Returns whether notifications arrive, at once if they do not.
    pub(crate) async fn news(&self, id: &LogId) -> bool {
        let disconnected = self.disconnected.notified();
        if !self.is_connected.load(Ordering::Acquire) {
            return false;
        }
        let Some(news) = self.logs().get(id.as_str()).map(Arc::clone) else { return false };
        tokio::select! {
            () = news.notified() => true,
            () = disconnected => false,
        }
    }

    /// Connects for notifications, once, by a task of `runtime`, with which it ends.
    pub(crate) fn listen(self: &Arc<Self>, runtime: &Handle, database: &Arc<Database>, node: &str) {
        if !self.is_listening.swap(true, Ordering::AcqRel) {
            runtime.spawn(listen(Arc::clone(self), Arc::clone(database), node.to_owned()));
        }
    }

    fn heard(&self, payload: &str) {
        match payload {
            TRIAL => self.tried.notify_one(),
            id => self.logs().get(id).iter().for_each(|news| news.notify_one()),
        }
    }

    fn set(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::Release);
        if !is_connected {
            self.disconnected.notify_waiters();
        }
    }
}

/// Listens, and tries whether what is sent arrives: a pooler may give `LISTEN` to any session, and accept it all the same.
async fn listen(notifications: Arc<InboxNotifications>, database: Arc<Database>, node: String) {
    let mut pause = PAUSES.0;
    loop {
        let begun = Instant::now();
        let heard = {
            let notifications = Arc::clone(&notifications);
            Arc::new(move |payload: &str| notifications.heard(payload))
        };
        if let Ok(client) = open_with(database.address(), Some(heard)).await
            && client.batch_execute(&format!("LISTEN \"{CHANNEL}{node}\"")).await.is_ok()
        {
            loop {
                notify(&database, &node, TRIAL).await;
                let arrives =
                    timeout(TRY.1, notifications.tried.notified()).await.is_ok() && !client.is_closed();
                notifications.set(arrives);
                if !arrives {
                    break;
                }
                sleep(TRY.0).await;
            }
        }
        notifications.set(false);
        pause = if begun.elapsed() > PAUSES.1 { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
        sleep(pause).await;
    }
}
