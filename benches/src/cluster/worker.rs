//! A worker process: the loop of `polylogue worker` over conversations of two agents whose model waits as a real one does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polylogue::kernel::data::{
    DeltaSink, FinishReason, ModelError, Part, Reply, StoreError, ToolCall, ToolResult, ToolSpec,
};
use polylogue::kernel::limits::Timer;
use polylogue::kernel::log::{self, AnyQueue, AnyStore, Claim, Event, Store as _};
use polylogue::kernel::model::{Model, Request};
use polylogue::kernel::tool::{ToolCx, ToolError};
use polylogue::policies::with_termination;
use polylogue::runs::worker::{Claimed, Pace, Release, Worker, WorkerEvent, WorkerStore, WorkerTime};
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Limits, Log, Tool, round_robin};
use polylogue_postgres::{Address, Postgres};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bare::{SYSTEM, TASK};
use crate::child::answer_lines;
use crate::job::Result;
use crate::meter::Meter;

/// Conversations that a worker runs at once.
pub(super) const PLACES: usize = 64;

/// The least and the longest time of a model call in milliseconds.
pub(super) const LATENCY_MS: (u64, u64) = (500, 2_000);

/// Bytes of a reply.
const REPLY: usize = 1_024;

/// More than a measurement makes.
const MANY: u64 = 10_000_000;

/// What a worker did since it was asked before.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) cpu_us: f64,
    pub(super) wall_us: f64,
    /// Model calls whose replies are stored, with those of tools.
    pub(super) steps: u64,
    /// Conversations that it runs now.
    pub(super) running: usize,
    /// Claims that were lost, and operations and runs that failed.
    pub(super) failures: u64,
    /// The times between a reply and the next call of the same conversation, in microseconds.
    pub(super) between_us: Vec<u32>,
    /// How long each append took, in microseconds.
    pub(super) append_us: Vec<u32>,
}

#[derive(Default)]
struct Counts {
    failures: AtomicU64,
    between_us: Mutex<Vec<u32>>,
    append_us: Mutex<Vec<u32>>,
}

/// A queue that notes how long its appends take.
struct Timed {
    queue: AnyQueue,
    counts: Arc<Counts>,
}

impl log::StoreWrapper for Timed {
    fn inner(&self) -> &AnyStore {
        self.queue.store()
    }

    fn as_queue(&self) -> Option<&dyn log::DynQueue> {
        Some(self)
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> std::result::Result<(), StoreError> {
        let begun = Instant::now();
        self.queue.store().append(claim, batch).await?;
        lock(&self.counts.append_us).push(microseconds(begun));
        Ok(())
    }
}

impl log::QueueWrapper for Timed {}

/// The time since then.
fn microseconds(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX)
}

/// Runs conversations of the database until the input of this process ends; prints [`Figures`] for each line of it.
pub(super) fn work(url: &str, has_latency: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let queue = AnyQueue::new(Postgres::open(Address::parse(url)?)?).ok_or("Postgres is no queue")?;
    let counts = Arc::new(Counts::default());
    let (worker, store) = worker(queue, &counts);
    let (running, counted, mut meter) = (worker.clone(), Arc::clone(&counts), Meter::start());
    let is_over = answer_lines(move || {
        let cost = std::mem::replace(&mut meter, Meter::start()).stop();
        let between_us = std::mem::take(&mut *lock(&counted.between_us));
        let append_us = std::mem::take(&mut *lock(&counted.append_us));
        Figures {
            cpu_us: cost.cpu_us,
            wall_us: cost.wall_us,
            steps: between_us.len() as u64,
            running: running.running(),
            failures: counted.failures.swap(0, Ordering::Relaxed),
            between_us,
            append_us,
        }
    });
    runtime.block_on(async {
        tokio::select! {
            () = worker.run(|claimed| conversation(&store, claimed, &counts, has_latency)) => {}
            _ = is_over => {}
        }
    });
    Ok(())
}

fn worker(queue: AnyQueue, counts: &Arc<Counts>) -> (Worker, WorkerStore) {
    let begun = Instant::now();
    // It is a queue.
    let queue = AnyQueue::new(Timed { queue: queue.clone(), counts: Arc::clone(counts) }).unwrap_or(queue);
    let store =
        WorkerStore::new(queue, WorkerTime::new(move || begun.elapsed(), Timer::new(tokio::time::sleep)));
    let counts = Arc::clone(counts);
    let worker = Worker::new(store.clone()).concurrency(PLACES).pace(Pace::of_process(std::process::id()));
    let worker = worker.observe(move |event| match event {
        WorkerEvent::Claimed(_) | WorkerEvent::Released(..) => {}
        other => {
            counts.failures.fetch_add(1, Ordering::Relaxed);
            eprintln!("a worker: {other:?}");
        }
    });
    (worker, store)
}

async fn conversation(
    store: &WorkerStore,
    claimed: Claimed,
    counts: &Arc<Counts>,
    has_latency: bool,
) -> Release {
    let seed =
        claimed.claim.id.as_str().bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let model = Remote {
        seed,
        has_latency,
        step: AtomicU64::new(0),
        replied: Mutex::default(),
        counts: Arc::clone(counts),
    };
    let chat = match chat(model) {
        Ok(chat) => chat,
        Err(error) => return Release::failed(&error),
    };
    let mut log = match Log::open_claimed(store.store(), claimed.claim.clone()).await {
        Ok(log) => log.limits(Limits { turns: Some(MANY), calls: Some(MANY), ..Limits::default() }),
        Err(error) => return Release::failed(&error),
    }
    .timer(Timer::new(tokio::time::sleep))
    .cancelled_by(claimed.stop.clone());
    let earlier = log.events().await.len();
    let ran = if earlier == 0 { chat.run_in(&mut log, TASK).await } else { chat.resume(&mut log).await };
    let status = ran.map(|run| run.status);
    Release::after(&status, &log.events().await, earlier, claimed.is_draining())
}

/// Two agents who speak in turn, and look something up in one of three steps.
fn chat(model: Remote) -> polylogue::Result<Chat> {
    let model = AnyModel::new(model);
    let mut chat = Chat::builder("pair");
    for name in ["Ann", "Bob"] {
        let spec = ToolSpec::new("look_up", "Looks something up.", json!({"type": "object"})).repeatable();
        chat = chat.participant(Assistant::new(name, model.clone())?.system(SYSTEM).tool(LookUp(spec)));
    }
    chat.policy(with_termination(round_robin(), max_turns(MANY))).max_turns(MANY + 1).build()
}

/// A model that is waited for.
struct Remote {
    seed: u64,
    has_latency: bool,
    step: AtomicU64,
    /// When it replied last.
    replied: Mutex<Option<Instant>>,
    counts: Arc<Counts>,
}

impl Model for Remote {
    fn name(&self) -> &str {
        "bench:remote"
    }

    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        if let Some(replied) = lock(&self.replied).take() {
            lock(&self.counts.between_us).push(microseconds(replied));
        }
        let step = self.step.fetch_add(1, Ordering::Relaxed);
        if self.has_latency {
            tokio::time::sleep(latency(self.seed, step)).await;
        } else {
            tokio::task::yield_now().await;
        }
        *lock(&self.replied) = Some(Instant::now());
        Ok(reply(step))
    }
}

/// Uniform between the bounds, and always the same for the same step.
fn latency(seed: u64, step: u64) -> Duration {
    // SplitMix64.
    let mixed = seed.wrapping_add(step.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let (least, longest) = LATENCY_MS;
    Duration::from_millis(least + (mixed ^ (mixed >> 31)) % (longest - least + 1))
}

/// A text, and a tool call in one of three.
fn reply(step: u64) -> Reply {
    let text = format!("step {step}: {}", "what is said ".repeat(REPLY / 13));
    if !step.is_multiple_of(3) {
        return Reply::new(text);
    }
    let call = ToolCall { id: format!("call_{step}"), tool: "look_up".into(), args: json!({"step": step}) };
    Reply {
        finish: FinishReason::Calls,
        parts: vec![Part::text(text), Part::ToolCall(call)],
        ..Reply::new("")
    }
}

struct LookUp(ToolSpec);

impl Tool for LookUp {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> std::result::Result<ToolResult, ToolError> {
        Ok(ToolResult::done(format!("found {args}")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use polylogue::kernel::data::LogId;
    use polylogue::kernel::log::{Body, Due, Meta, Queue as _};
    use polylogue_store::Memory;

    use super::*;

    #[test]
    fn latencies_are_uniform_between_their_bounds_and_by_seed() {
        let ms: Vec<u64> = (0..30_000).map(|step| latency(7, step).as_millis().try_into().unwrap()).collect();
        assert!(ms.iter().all(|ms| (LATENCY_MS.0..=LATENCY_MS.1).contains(ms)));
        let mean = ms.iter().sum::<u64>() / ms.len() as u64;
        assert!((1_240..=1_260).contains(&mean), "{mean}");
        let first_half = ms.iter().filter(|ms| **ms < 1_250).count();
        assert!((14_500..=15_500).contains(&first_half), "{first_half}");
        assert_eq!(latency(7, 3), latency(7, 3));
        assert!((0..10).any(|step| latency(7, step) != latency(8, step)));
    }

    #[tokio::test]
    async fn a_conversation_stores_texts_of_1_kib_and_calls_a_tool_in_one_of_three_steps() {
        let queue = AnyQueue::new(Memory::new()).unwrap();
        let id = LogId::new("c-1").unwrap();
        let claim = queue.create(&id, &Meta::default()).await.unwrap();
        queue.release_until(claim, Due::Now).await.unwrap();
        let counts = Arc::new(Counts::default());
        let (worker, store) = worker(queue.clone(), &counts);
        let enough = async {
            while lock(&counts.between_us).len() < 300 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = worker.run(|claimed| conversation(&store, claimed, &counts, false)) => {}
            () = enough => {}
        }
        let events = queue.store().read(&id, 0).await.unwrap();
        let count = |is: fn(&Body) -> bool| events.iter().filter(|event| is(&event.body)).count();
        let (replies, calls) = (
            count(|body| matches!(body, Body::ModelReplied(_))),
            count(|body| matches!(body, Body::ToolReturned { .. })),
        );
        assert!(replies >= 300 && calls.abs_diff(replies / 3) <= 1, "{replies} replies, {calls} calls");
        let said = events.iter().filter_map(|event| match &event.body {
            Body::Message(message) if message.from.as_str() != "user" => Some(message.text().len()),
            _ => None,
        });
        let lengths: Vec<usize> = said.skip(1).collect();
        assert!(
            !lengths.is_empty() && lengths.iter().all(|length| length.abs_diff(REPLY) < 40),
            "{lengths:?}"
        );
        assert_eq!(counts.failures.load(Ordering::Relaxed), 0);
        let appends = lock(&counts.append_us).len();
        assert!(appends >= replies, "{appends} appends were timed");
    }
}
