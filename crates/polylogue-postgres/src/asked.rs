//! Logs that commands ask a server to continue, by a notification to all servers that listen.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{LogId, StoreError};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;
use tracing::debug;

use crate::address::Address;
use crate::connection::open_with;
use crate::database::{Access, Database};
use crate::logs::fresh_node;

/// The channel of what servers are asked.
const CHANNEL: &str = "polylogue_asked";

/// Held by each connection that hears the channel. It ends with the connection, also when the process dies.
const HEARS: &str = "SELECT pg_advisory_lock_shared(1886350457, 1)";

/// Notifies those that hear the channel, if there are any. Returns a row then.
const ASK: &str = "SELECT pg_notify('polylogue_asked', $1) WHERE EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid = 1886350457 AND objid = 1 AND objsubid = 2)";

/// How often it is checked whether the connection is well, and how long that may take.
const CHECK: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(5));

/// The pauses before connecting is tried again, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Asks the servers that hear it to continue a log. Returns whether there are any.
pub(crate) async fn ask(database: &Database, tenant: &str, id: &LogId) -> Result<bool, StoreError> {
    let payload = serde_json::json!([tenant, id.as_str()]).to_string();
    // Asked twice, a server continues it once.
    let rows = database.query(Access::Write, ASK, &[&payload]).await?;
    Ok(!rows.is_empty())
}

/// Hears which logs other processes [ask](crate::PostgresWatch::ask_server) the servers of a database to continue, of all tenants.
///
/// Nothing is stored: what is asked while no server hears it is not asked later. Through a pooler in transaction mode nothing is heard,
/// and the process that asks knows that.
#[derive(derive_more::Debug)]
#[debug("PostgresAsked {{ .. }}")]
pub struct PostgresAsked {
    asked: UnboundedReceiver<(String, LogId)>,
    listening: AbortHandle,
}

impl PostgresAsked {
    /// Listens to the database at `address` from now on, by a task of the runtime of the caller, until this is dropped. A connection that is
    /// lost is made again.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn listen(address: Address) -> Self {
        let (sender, asked) = unbounded_channel();
        Self { asked, listening: tokio::spawn(listen(address, sender)).abort_handle() }
    }

    /// Waits for the next log that servers are asked to continue. Returns its tenant and its id. Each server receives it: the one that claims the log
    /// continues it.
    pub async fn asked(&mut self) -> (String, LogId) {
        match self.asked.recv().await {
            Some(asked) => asked,
            None => pending().await,
        }
    }
}

impl Drop for PostgresAsked {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// What a connection hears.
struct Heard {
    asked: UnboundedSender<(String, LogId)>,
    /// What is sent to try whether notifications arrive.
    trial: String,
    tried: Notify,
    has_ended: Notify,
}

impl Heard {
    fn note(&self, payload: &str) {
        match payload {
            "" => self.has_ended.notify_one(),
            payload if payload == self.trial => self.tried.notify_one(),
            payload => {
                // Those of other servers, which try it as well, are not JSON.
                if let Ok((tenant, id)) = serde_json::from_str::<(String, String)>(payload)
                    && let Ok(id) = LogId::new(&id)
                {
                    // Fails only when nothing waits for it any more.
                    let _ = self.asked.send((tenant, id));
                }
            }
        }
    }
}

async fn listen(address: Address, asked: UnboundedSender<(String, LogId)>) {
    let mut pause = PAUSES.0;
    loop {
        let (begun, asked) = (Instant::now(), asked.clone());
        let trial = format!(".{}", fresh_node());
        let heard = Heard { asked, trial, tried: Notify::new(), has_ended: Notify::new() };
        if hear(&address, &Arc::new(heard)).await.is_none() {
            debug!("what servers are asked to continue does not arrive here");
        }
        pause = if begun.elapsed() > PAUSES.1 { PAUSES.0 } else { (pause * 2).min(PAUSES.1) };
        sleep(pause).await;
    }
}

/// Hears what is asked until the connection ends. `None` if nothing can be heard.
async fn hear(address: &Address, heard: &Arc<Heard>) -> Option<()> {
    let noting = Arc::clone(heard);
    let client = open_with(address, Some(Arc::new(move |payload: &str| noting.note(payload)))).await.ok()?;
    timeout(CHECK.1, begin(address, &client, heard)).await.ok()??;
    loop {
        tokio::select! {
            () = heard.has_ended.notified() => return Some(()),
            () = sleep(CHECK.0) => {}
        }
        if !matches!(timeout(CHECK.1, client.batch_execute("SELECT 1")).await, Ok(Ok(()))) {
            return Some(());
        }
    }
}

/// Listens, and says so to those who ask, if notifications arrive. They are tried by another connection: a pooler may give `LISTEN` to any session, and
/// accept it all the same.
async fn begin(address: &Address, client: &Client, heard: &Heard) -> Option<()> {
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await.ok()?;
    let other = open_with(address, None).await.ok()?;
    other.batch_execute(&format!("NOTIFY {CHANNEL}, '{}'", heard.trial)).await.ok()?;
    heard.tried.notified().await;
    client.batch_execute(HEARS).await.ok()
}
