//! An earlier release: a worker that is made of the same parts, except that its store does not know one of the instructions and its event.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use polylogue_core::{
    AnyStore, Body, Event, InboxMessage, Instruction, LogId, RecoveredEvents, Store as _, StoreError,
    StoreWrapper,
};
use polylogue_models::Env;
use polylogue_runtime::database::DatabaseAddress;
use polylogue_runtime::stored::{StoredDocument, StoredTeam};
use polylogue_runtime::worker::{StoredTeams, Worker, WorkerOptions, offered_features};
use polylogue_runtime::{Access, Prepared, RunOptions, Runtime, StoreLocation};
use tokio::signal::unix::{SignalKind, signal};

/// The test that is its process.
pub(crate) const WORKER: &str = "earlier::a_worker_of_an_earlier_release";

/// The store of a release without `polylogue raise`. What it finds of that it reports as what it does not know.
struct EarlierStore(AnyStore);

fn is_unknown(event: &Event) -> bool {
    matches!(event.body, Body::LimitsChanged { .. })
}

fn unknown(id: &LogId, seq: u64) -> StoreError {
    StoreError::UnknownEvent { place: id.to_string(), seq, kind: "limits_changed".into() }
}

fn known(id: &LogId, events: Vec<Event>) -> Result<Vec<Event>, StoreError> {
    let seq = events.iter().find(|event| is_unknown(event)).map(|event| event.seq);
    seq.map_or(Ok(events), |seq| Err(unknown(id, seq)))
}

impl StoreWrapper for EarlierStore {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        known(id, self.0.read(id, from).await?)
    }
    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        known(id, self.0.read_range(id, range).await?)
    }
    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let mut found = self.0.read_intact(id).await?;
        if let Some(at) = found.events.iter().position(is_unknown) {
            found.damage = Some(unknown(id, found.events[at].seq));
            found.events.truncate(at);
        }
        Ok(found)
    }
    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let messages = self.0.inbox(id, after).await?;
        let is_unknown =
            |message: &InboxMessage| matches!(message.instruction, Instruction::RaiseLimits { .. });
        let number = messages.iter().find(|(_, message)| is_unknown(message)).map(|(number, _)| *number);
        let unknown = |number| StoreError::UnknownInstruction {
            place: id.to_string(),
            number,
            kind: "raise_limits".into(),
        };
        number.map_or(Ok(messages), |number| Err(unknown(number)))
    }
}

/// Teams that are allowed nothing but the models of the environment.
struct EarlierTeams;

impl StoredTeams for EarlierTeams {
    fn prepare<'a>(
        &'a self,
        runtime: &'a Runtime,
        _id: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, Result<Prepared, String>> {
        Box::pin(async move { prepared(runtime, document).await.map_err(|error| error.to_string()) })
    }
}

async fn prepared(runtime: &Runtime, document: &StoredDocument) -> polylogue_runtime::Result<Prepared> {
    let StoredTeam { team, digest, .. } = document.team()?;
    let access = Access::new(Env::process(), digest.as_str());
    Prepared::new(runtime.place(), team, digest, access, RunOptions::default()).await
}

/// Drained by `SIGTERM`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is another process: the test of two releases starts it"]
async fn a_worker_of_an_earlier_release() {
    let address = std::env::var("POLYLOGUE_STORE").expect("is started by another test");
    let location = StoreLocation::postgres(DatabaseAddress::parse(&address).unwrap(), "conversations.db");
    let store = AnyStore::new(EarlierStore(location.open_for_worker().unwrap()));
    let runtime = Runtime::with_store(location, store);
    let options = WorkerOptions {
        offers: offered_features(&Env::process(), None, false).unwrap(),
        ..WorkerOptions::default()
    };
    let worker = Worker::new(&runtime, Arc::new(EarlierTeams), options).unwrap();
    let mut drained = signal(SignalKind::terminate()).unwrap();
    let terminated = async {
        drained.recv().await;
    };
    worker.run(terminated).await.unwrap();
}
