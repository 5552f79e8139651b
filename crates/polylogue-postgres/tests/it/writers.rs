//! Writers of logs of their own, while something happens to the database.

use polylogue_core::{Claim, Meta, Store, StoreError};
use polylogue_postgres::{Address, Postgres};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::{id, some};

/// Processes that append to one log each, as fast as they can, until they are stopped or refused.
pub(crate) struct Writers {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<Written>>,
}

/// What a writer did.
pub(crate) struct Written {
    pub(crate) claim: Claim,
    /// How many events were acknowledged.
    pub(crate) acknowledged: u64,
    /// Why it ended before it was stopped.
    pub(crate) refused: Option<StoreError>,
}

impl Writers {
    /// Of logs `log-0`, `log-1` and so on in the database at `url`; each writer is a store of its own.
    pub(crate) async fn start(url: &str, count: usize) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Vec::new();
        for nth in 0..count {
            let store = Postgres::open(Address::parse(url).unwrap()).unwrap();
            let claim = store.create(&id(&format!("log-{nth}")), &Meta::default()).await.unwrap();
            tasks.push(tokio::spawn(write(store, claim, stopped.clone())));
        }
        Self { stop, tasks }
    }

    /// Stops them, and returns what each did.
    pub(crate) async fn stop(self) -> Vec<Written> {
        // All may have been refused already.
        self.stop.send_replace(true);
        let mut written = Vec::new();
        for task in self.tasks {
            written.push(task.await.unwrap());
        }
        written
    }
}

async fn write(store: Postgres, claim: Claim, stopped: watch::Receiver<bool>) -> Written {
    let mut next = 0;
    let refused = loop {
        if *stopped.borrow() {
            break None;
        }
        if let Err(error) = store.append(&claim, &some(next, next + 2)).await {
            break Some(error);
        }
        next += 2;
    };
    Written { claim, acknowledged: next, refused }
}
