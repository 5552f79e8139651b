//! A worker whose store is changed by a later version while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use polylogue::runs::worker::{Claimed, Release, Worker, WorkerEvent, WorkerStore, WorkerTime};
use polylogue_core::{
    AnyQueue, AnyStore, Claim, Due, DynQueue, Features, LEASE, LeaseNumber, LogId, Meta, Queue, QueueWrapper,
    Store, StoreError, StoreWrapper, Timer, Timestamp, WorkerInfo,
};
use polylogue_store::Memory;
use tokio::time::{Instant, sleep, timeout};

/// A queue that is changed on demand: then it grants no claims.
struct Changing {
    inner: AnyQueue,
    is_changed: Arc<AtomicBool>,
}

impl Changing {
    fn check(&self) -> Result<(), StoreError> {
        match self.is_changed.load(Ordering::Relaxed) {
            true => Err(StoreError::Newer { place: "here".into(), found: 2, known: 1 }),
            false => Ok(()),
        }
    }
}

impl StoreWrapper for Changing {
    fn inner(&self) -> &AnyStore {
        self.inner.store()
    }
    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }
}

impl QueueWrapper for Changing {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        self.check()?;
        Queue::claim_due(&self.inner, room, offers, except, ended).await
    }
    async fn announce(&self, worker: Option<&WorkerInfo>) -> Result<(), StoreError> {
        self.check()?;
        Queue::announce(&self.inner, worker).await
    }
}

/// One without a free place notices it by a heartbeat, the other one when it asks for more.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_store_a_later_version_has_changed_drops_what_it_runs_and_ends() {
    for at_once in [1, 200] {
        let begun = Instant::now();
        let clock = move || Timestamp(1_763_712_000_000 + begun.elapsed().as_millis() as u64);
        let queue = AnyQueue::new(Memory::with_clock(clock)).unwrap();
        let claim = Store::create(&queue, &LogId::new("a").unwrap(), &Meta::default()).await.unwrap();
        Queue::release_until(&queue, claim, Due::Now).await.unwrap();
        let (is_changed, told) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default());
        let changing = Changing { inner: queue, is_changed: Arc::clone(&is_changed) };
        let time = WorkerTime::new(move || begun.elapsed(), Timer::new(sleep));
        let store = WorkerStore::new(AnyQueue::new(changing).unwrap(), time);
        let heard = Arc::clone(&told);
        let worker = Worker::new(store)
            .concurrency(at_once)
            .observe(move |event: &WorkerEvent| heard.lock().unwrap().push(event.clone()));
        let run = worker.run(|_: Claimed| async {
            is_changed.store(true, Ordering::Relaxed);
            std::future::pending::<Release>().await
        });
        timeout(LEASE / 2, run).await.expect("it ends by itself");
        let told = told.lock().unwrap();
        let is_reason = |event: &WorkerEvent| {
            matches!(event, WorkerEvent::StoreFailed(StoreError::Newer { found: 2, .. }))
        };
        assert!(told.iter().any(is_reason), "{told:?}");
        assert!(told.iter().any(|event| matches!(event, WorkerEvent::Lost(_))), "{told:?}");
    }
}
