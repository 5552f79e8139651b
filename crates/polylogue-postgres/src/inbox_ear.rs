//! Tells a process of inbox messages for the logs that it has claimed. Who posts one notifies the process that has the log, after the commit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::LogId;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;
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
    if database.query_once(Access::Write, NOTIFY, &[(&channel, Type::TEXT), (&id, Type::TEXT)]).await.is_err()
    {
        debug!("a message is not announced");
    }
}

/// What a process hears.
#[derive(Default)]
pub(crate) struct Ear {
    /// Of the logs that it has claimed.
    logs: Mutex<HashMap<String, Arc<Notify>>>,
    /// Whether notifications have arrived lately: through some poolers, none do.
    hears: AtomicBool,
    /// Has all wait no longer, when it hears no more.
    deaf: Notify,
    tried: Notify,
    is_listening: AtomicBool,
}

impl Ear {
    fn logs(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to hear of a log, before its inbox is looked at.
    pub(crate) fn add(&self, id: &LogId) {
        self.logs().entry(id.to_string()).or_default();
    }

    /// Hears no more of a log: who waits for it continues.
    pub(crate) fn remove(&self, id: &LogId) {
        self.logs().remove(id.as_str()).iter().for_each(|news| news.notify_one());
    }

    /// Waits for a message for the log. Returns whether it hears of messages, at once if it does not.
    pub(crate) async fn news(&self, id: &LogId) -> bool {
        let deaf = self.deaf.notified();
        if !self.hears.load(Ordering::Acquire) {
            return false;
        }
        let Some(news) = self.logs().get(id.as_str()).map(Arc::clone) else { return false };
        tokio::select! {
            () = news.notified() => true,
            () = deaf => false,
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

    fn set(&self, hears: bool) {
        self.hears.store(hears, Ordering::Release);
        if !hears {
            self.deaf.notify_waiters();
        }
    }
}

/// Listens, and tries whether what is sent arrives: a pooler may give `LISTEN` to any session, and accept it all the same.
async fn listen(ear: Arc<Ear>, database: Arc<Database>, node: String) {
    let mut pause = PAUSES.0;
    loop {
        let begun = Instant::now();
        let heard = {
            let ear = Arc::clone(&ear);
            Arc::new(move |payload: &str| ear.heard(payload))
        };
        if let Ok(client) = open_with(database.address(), Some(heard)).await
            && client.batch_execute(&format!("LISTEN \"{CHANNEL}{node}\"")).await.is_ok()
        {
            loop {
                notify(&database, &node, TRIAL).await;
                let arrives = timeout(TRY.1, ear.tried.notified()).await.is_ok() && !client.is_closed();
                ear.set(arrives);
                if !arrives {
                    break;
                }
                sleep(TRY.0).await;
            }
        }
        ear.set(false);
        pause = if begun.elapsed() > PAUSES.1 { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
        sleep(pause).await;
    }
}
