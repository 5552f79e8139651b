//! A simulated world. Real: the worker, its store with the guard, and the queue in memory. Modeled: conversations, as
//! steps that take a while and messages that are taken; the network; processes that are killed or stand still; clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use polylogue_core::{
    AnyQueue, AnyStore, Body, Claim, Due, DynQueue, Event, Features, Heartbeat, InboxMessage, Instruction,
    LeaseNumber, LogId, MAX_TRIES, Message, Meta, Name, Path, Queue, QueueWrapper, Store, StoreError,
    StoreWrapper, Timestamp,
};
use polylogue_store::Memory;
use tokio::time::{Instant, sleep, sleep_until};

use crate::worker::faults::{Broken, Random};

/// Steps of each conversation, each a call that must not begin again once it has finished.
pub(crate) const STEPS: usize = 4;

#[derive(Clone)]
pub(crate) struct World(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) broken: Broken,
    pub(crate) seed: u64,
    pub(crate) begun: Instant,
    /// Of the database's clock from the true time.
    pub(crate) jump: Arc<AtomicI64>,
    pub(crate) queue: AnyQueue,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    /// The latest claim of each log.
    latest: BTreeMap<LogId, Claim>,
    /// Claims of each log since it progressed.
    since_progress: BTreeMap<LogId, u32>,
    claims: BTreeMap<LogId, u32>,
    finished: BTreeSet<(LogId, usize)>,
    posted_while_held: BTreeSet<u64>,
    deleted: BTreeSet<(LogId, u64)>,
    parked: BTreeSet<LogId>,
    operations: BTreeMap<usize, u64>,
    pub(crate) takeovers: u64,
    pub(crate) refusals: u64,
    pub(crate) violation: Option<(u64, String)>,
    /// What workers did, and when, up to a violation.
    pub(crate) done: Vec<(u64, String)>,
}

impl World {
    pub(crate) fn new(seed: u64, broken: Broken) -> Self {
        let (begun, jump) = (Instant::now(), Arc::new(AtomicI64::new(0)));
        let clock = Arc::clone(&jump);
        let memory = Memory::with_clock(move || {
            let ms = begun.elapsed().as_millis() as i64 + clock.load(Ordering::Relaxed);
            Timestamp(1_763_712_000_000_u64.saturating_add_signed(ms))
        });
        let queue = AnyQueue::new(memory).unwrap();
        Self(Arc::new(Inner { broken, seed, begun, jump, queue, state: Mutex::default() }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    pub(crate) fn ms(&self) -> u64 {
        self.0.begun.elapsed().as_millis() as u64
    }

    pub(crate) fn violated(&self, what: String) {
        let at = self.ms();
        self.state().violation.get_or_insert((at, what));
    }

    /// Notes what a worker did.
    pub(crate) fn does(&self, worker: usize, what: &str) {
        let at = self.ms();
        let mut state = self.state();
        if state.violation.is_none() {
            state.done.push((at, format!("worker {worker} | {what}")));
        }
    }

    pub(crate) async fn create(&self, id: &LogId) {
        let claim = Store::create(&self.0.queue, id, &Meta::default()).await.unwrap();
        Queue::release_until(&self.0.queue, claim, Due::Now).await.unwrap();
    }

    pub(crate) async fn post(&self, id: &LogId, key: &str) {
        let instruction = Instruction::Send(Message::new(Name::user(), key));
        let message = InboxMessage { key: key.into(), request: None, posted: Timestamp(1), instruction };
        let is_held = Store::holder(&self.0.queue, id).await.unwrap().is_some();
        Store::post(&self.0.queue, id, &message).await.unwrap();
        let mut state = self.state();
        if is_held && let Some(claim) = state.latest.get(id).cloned() {
            state.posted_while_held.insert(claim.fence);
        }
    }

    /// A call begins.
    pub(crate) fn begins(&self, id: &LogId, step: usize, worker: usize) {
        self.does(worker, &format!("begins call {step} of {id}"));
        if self.state().finished.contains(&(id.clone(), step)) {
            self.violated(format!("worker {worker} begins call {step} of {id} again, which has finished"));
        }
    }

    /// Parked logs must have failed often enough; a person has them tried again.
    pub(crate) async fn look_at_parked(&self) {
        let mut parked: Vec<LogId> =
            Queue::parked(&self.0.queue).await.unwrap().into_iter().map(|log| log.id).collect();
        parked.extend(std::mem::take(&mut self.state().parked));
        for id in parked {
            let tries = self.state().since_progress.get(&id).copied().unwrap_or_default();
            if tries < MAX_TRIES {
                self.violated(format!("{id} is parked after {tries} tries without progress"));
            }
            Queue::schedule(&self.0.queue, &id, Due::Now, None).await.unwrap();
            self.state().since_progress.insert(id, 0);
        }
    }

    /// What is missing of a log that should be finished with `messages` messages; `None` if nothing is.
    pub(crate) async fn missing(&self, id: &LogId, messages: usize) -> Option<String> {
        let events = Store::read(&self.0.queue, id, 0).await.unwrap();
        let texts: Vec<String> = events.iter().map(text_of).collect();
        for (at, text) in texts.iter().enumerate() {
            if texts.iter().skip(at + 1).any(|other| other == text) {
                self.violated(format!("{id} has `{text}` twice"));
            }
        }
        (texts.len() < STEPS + messages)
            .then(|| format!("{id} has only {texts:?} of {STEPS} steps and {messages} messages"))
    }
}

fn text_of(event: &Event) -> String {
    match &event.body {
        Body::Message(message) => message.to_text().into_owned(),
        _ => String::new(),
    }
}

pub(crate) fn event(seq: usize, text: &str, inbox: Option<u64>) -> Arc<Event> {
    let body = Body::Message(Message::new(Name::user(), text));
    Arc::new(Event { seq: seq as u64, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox, body })
}

/// The numbers of the steps and messages of a log.
pub(crate) fn done_in(events: &[Event]) -> (usize, BTreeSet<u64>) {
    let steps = events.iter().filter(|event| text_of(event).starts_with("step")).count();
    (steps, events.iter().filter_map(|event| event.inbox).collect())
}

/// The store as one worker reaches it: over a network that is slow and loses requests and replies.
pub(crate) struct Network {
    pub(crate) world: World,
    pub(crate) worker: usize,
    /// Of the worker's clock, where it counts.
    skew: i64,
}

impl Network {
    pub(crate) fn new(world: World, worker: usize) -> Self {
        let skew = if world.0.broken == Broken::WorkersClock { (worker as i64 - 1) * 60_000 } else { 0 };
        Self { world, worker, skew }
    }

    fn inner_queue(&self) -> &AnyQueue {
        &self.world.0.queue
    }

    fn broken(&self) -> Broken {
        self.world.0.broken
    }

    /// The next operation of this worker.
    async fn operation<T>(
        &self,
        statement: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let random = {
            let mut state = self.world.state();
            // Of each worker by itself, so that a fault of one changes little for the others when a world is shrunk.
            let operations = state.operations.entry(self.worker).or_default();
            *operations += 1;
            Random::new(self.world.0.seed ^ (*operations << 20) ^ ((self.worker as u64) << 50))
        };
        self.transmitted(random, statement).await
    }

    /// One operation: a request that may be late or lost, the statement, which is atomic, and a reply that may be late or lost.
    async fn transmitted<T>(
        &self,
        mut random: Random,
        statement: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let is_calm = self.world.ms() > crate::worker::faults::STORMY;
        let lost = || StoreError::Unreachable { place: "the database".into(), why: "simulated".into() };
        sleep(delay(&mut random)).await;
        if !is_calm && random.one_in(50) {
            return Err(lost());
        }
        self.world.0.jump.fetch_add(self.skew, Ordering::Relaxed);
        // The queue in memory never waits.
        let result = statement.await;
        self.world.0.jump.fetch_sub(self.skew, Ordering::Relaxed);
        sleep(delay(&mut random)).await;
        if !is_calm && random.one_in(50) { Err(lost()) } else { result }
    }

    /// The claim that an operation without a fence acts on.
    fn latest(&self, claim: &Claim) -> Claim {
        self.world.state().latest.get(&claim.id).unwrap_or(claim).clone()
    }

    fn progressed(&self, id: &LogId) {
        self.world.state().since_progress.insert(id.clone(), 0);
    }
}

fn delay(random: &mut Random) -> Duration {
    Duration::from_millis(if random.one_in(8) { random.below(4_000) } else { random.below(20) })
}

impl StoreWrapper for Network {
    fn inner(&self) -> &AnyStore {
        self.world.0.queue.store()
    }

    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }

    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        self.operation(Store::read(self.inner(), id, from)).await
    }

    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let messages = async {
            let mut messages = Store::inbox(self.inner(), id, after).await?;
            if self.broken() == Broken::MessageDeletedBeforeAppend {
                messages.retain(|(number, _)| self.world.state().deleted.insert((id.clone(), *number)));
            }
            Ok(messages)
        };
        self.operation(messages).await
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let append = async {
            let latest = self.latest(claim);
            let by = if self.broken() == Broken::AppendWithoutFence { &latest } else { claim };
            let appended = Store::append(self.inner(), by, batch).await;
            let (texts, refused) = (batch.iter().map(|event| text_of(event)), appended.is_err());
            let (texts, but) = (texts.collect::<Vec<_>>().join(", "), if refused { ": refused" } else { "" });
            self.world.does(self.worker, &format!("appends `{texts}` to {}{but}", claim.id));
            if refused {
                self.world.state().refusals += 1;
                return appended;
            }
            if latest.fence != claim.fence {
                let (worker, id) = (self.worker, &claim.id);
                self.world.violated(format!("worker {worker} appends to {id}, which another has claimed"));
            }
            self.progressed(&claim.id);
            for event in batch {
                if let Some(step) = text_of(event).strip_prefix("step ") {
                    self.world.state().finished.insert((claim.id.clone(), step.parse().unwrap()));
                }
            }
            Ok(())
        };
        self.operation(append).await
    }
}

impl QueueWrapper for Network {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        let ended = match self.broken() {
            Broken::WorkersClock | Broken::DatabasesClock => LeaseNumber::ALL,
            _ => ended,
        };
        let claim = async {
            let mut claims = Queue::claim_due(self.inner_queue(), room, offers, except, ended).await?;
            for claim in &claims {
                self.world.does(self.worker, &format!("claims {}", claim.id));
                let mut state = self.world.state();
                *state.since_progress.entry(claim.id.clone()).or_default() += 1;
                *state.claims.entry(claim.id.clone()).or_default() += 1;
                state.takeovers += u64::from(state.latest.insert(claim.id.clone(), claim.clone()).is_some());
            }
            if self.broken() == Broken::TriesNeverCleared {
                let claims_of = self.world.state().claims.clone();
                let bad: Vec<Claim> =
                    claims.extract_if(.., |claim| claims_of[&claim.id] > MAX_TRIES).collect();
                for claim in bad {
                    self.world.state().parked.insert(claim.id.clone());
                    Queue::release_until(self.inner_queue(), claim, Due::Never).await?;
                }
            }
            Ok(claims)
        };
        self.operation(claim).await
    }

    async fn last_lease(&self) -> Result<LeaseNumber, StoreError> {
        // Not counted, so that how often workers look changes no other operation.
        let random =
            Random::new(self.world.0.seed ^ (self.world.ms() << 20) ^ ((self.worker as u64) << 50) ^ 1);
        self.transmitted(random, Queue::last_lease(self.inner_queue())).await
    }

    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        let release = async {
            let (id, fence) = (claim.id.clone(), claim.fence);
            self.world.does(self.worker, &format!("releases {id} until {due:?}"));
            if self.latest(&claim).fence == fence {
                self.progressed(&id);
            }
            Queue::release_until(self.inner_queue(), claim, due).await?;
            let forgets = match self.broken() {
                Broken::ReleaseForgetsMessages => true,
                Broken::PostForgetsTheHolder => self.world.state().posted_while_held.contains(&fence),
                _ => false,
            };
            if forgets {
                Queue::schedule(self.inner_queue(), &id, due, None).await?;
            }
            Ok(())
        };
        self.operation(release).await
    }

    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        self.operation(Queue::release_failed(self.inner_queue(), claim, due, why)).await
    }

    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        self.operation(Queue::release_to_others(self.inner_queue(), claim, why)).await
    }

    async fn schedule(&self, id: &LogId, due: Due, needs: Option<&Features>) -> Result<(), StoreError> {
        self.operation(Queue::schedule(self.inner_queue(), id, due, needs)).await
    }

    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        self.operation(Queue::heartbeat(self.inner_queue(), claims)).await
    }
}

/// Runs `process`, which stands still until the moment in `frozen_until`: nothing of it is polled.
pub(crate) async fn freezable(process: impl Future<Output = ()>, frozen_until: Arc<Mutex<Instant>>) {
    let mut process = Box::pin(process);
    let mut thaw: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        loop {
            let until = *frozen_until.lock().unwrap();
            if Instant::now() >= until {
                return process.as_mut().poll(cx);
            }
            let timer = thaw.insert(Box::pin(sleep_until(until)));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}
