//! Workers of a runtime: how often they read a conversation that they have claimed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use polylogue_core::{
    AnyStore, Due, Event, LogId, LogState, Meta, Queue as _, RecoveredEvents, Store as _, StoreError,
    StoreWrapper,
};
use polylogue_models::Env;
use polylogue_runtime::stored::{StoredDocument, StoredTeam};
use polylogue_runtime::worker::{StoredTeams, Worker, WorkerOptions};
use polylogue_runtime::{Access, ModelOptions, Prepared, RunOptions, Runtime};
use polylogue_store::Memory;

use crate::conversations::world;

const TALK: &str = "
name: talk
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: sequential}
script: [{Ann: one}, {Bob: two}]
";

/// How often logs, their metadata and their teams were read.
#[derive(Default)]
struct Counts {
    logs: AtomicUsize,
    metas: AtomicUsize,
    teams: AtomicUsize,
}

impl Counts {
    fn now(&self) -> [usize; 3] {
        [&self.logs, &self.metas, &self.teams].map(|count| count.load(Ordering::Relaxed))
    }
}

struct Counting(AnyStore, Arc<Counts>);

impl Counting {
    fn count_log(&self) {
        self.1.logs.fetch_add(1, Ordering::Relaxed);
    }
}

impl StoreWrapper for Counting {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        self.count_log();
        self.0.read(id, from).await
    }
    async fn read_range(&self, id: &LogId, range: std::ops::Range<u64>) -> Result<Vec<Event>, StoreError> {
        self.count_log();
        self.0.read_range(id, range).await
    }
    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        self.count_log();
        self.0.read_intact(id).await
    }
    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        self.1.metas.fetch_add(1, Ordering::Relaxed);
        self.0.meta(id).await
    }
}

struct Teams(Arc<Counts>);

impl StoredTeams for Teams {
    fn prepare<'a>(
        &'a self,
        runtime: &'a Runtime,
        _id: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, Result<Prepared, String>> {
        self.0.teams.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let StoredTeam { team, digest, .. } = document.team().map_err(|error| error.to_string())?;
            let access = Access::new(Env::of::<String, String>([]), digest.as_str());
            let models = ModelOptions { offline: true, ..ModelOptions::default() };
            let options = RunOptions { models, ..RunOptions::default() };
            let prepared = Prepared::new(runtime.place(), team, digest, access, options).await;
            prepared.map_err(|error| error.to_string())
        })
    }
}

/// Has a worker run what is due until no worker has to look at the conversation.
async fn work(runtime: &Runtime, id: &LogId, counts: &Arc<Counts>) {
    let teams = Arc::new(Teams(Arc::clone(counts)));
    let worker = Worker::new(runtime, teams, WorkerOptions::default()).unwrap();
    let queue = runtime.queue().unwrap();
    let is_left = async {
        while queue.is_queued(id).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    worker.run(is_left).await.unwrap();
}

#[tokio::test]
async fn a_worker_reads_what_it_has_claimed_once_and_prepares_no_team_for_what_is_over() {
    let world = world(TALK).await;
    let counts = Arc::<Counts>::default();
    let store = AnyStore::new(Counting(Memory::new().into(), Arc::clone(&counts)));
    let runtime = Runtime::with_store(world.runtime.place().clone(), store);
    let conversation = runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    runtime.hand_over(&id, &world.team, None).await.unwrap();
    conversation.release().await.unwrap();
    drop(conversation);
    assert_eq!(counts.now(), [0, 0, 0]);
    work(&runtime, &id, &counts).await;
    assert_eq!(counts.now(), [1, 1, 1]);
    assert_eq!(runtime.listing(&id).await.unwrap().state(), LogState::Done);
    // As if another process had run it after it was due.
    runtime.queue().unwrap().schedule(&id, Due::Now, None).await.unwrap();
    work(&runtime, &id, &counts).await;
    assert_eq!(counts.now(), [2, 2, 1]);
}
