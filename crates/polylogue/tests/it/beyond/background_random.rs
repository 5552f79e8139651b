//! Background tasks at random: whatever is started, awaited and cancelled when, and wherever the log is cut, each task ends once, no
//! limit is passed and no finished call is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{Act, Chat, Limits, Log, round_robin, sequential};
use polylogue_core::{
    Agent, AnyAgent, AnyModel, AnyStore, BackgroundStart, Body, DeltaSink, Event, LogId, Meta, Model,
    ModelCall, ModelError, Money, Name, Params, Path, Reply, Request, Result, Status, StopReason, Store,
    Timestamp, Turn, Usage,
};
use polylogue_store::Memory;
use polylogue_test::cut::Calls;

use crate::beyond::stage::name;
use crate::common::cents::cents;
use crate::common::{log_of, run_or_resume, until_dead};

/// Numbers that depend on a seed alone.
fn random(seed: u64, of: &str, most: u64) -> u64 {
    // FNV-1a, the same in every run.
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = format!("{seed} {of}").bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    (hash ^ hash >> 29) % most
}

/// A model that takes a while.
struct Slow {
    seed: u64,
}

impl Model for Slow {
    fn name(&self) -> &str {
        "test:slow"
    }

    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        for _ in 0..random(self.seed, &format!("{} {}", request.origin.chat, request.origin.nth), 12) {
            tokio::task::yield_now().await;
        }
        Ok(Reply::new(format!("reply {}", request.origin.chat)))
    }
}

/// Works with one or two model calls, and can start a task itself.
#[derive(Clone)]
struct Worker {
    name: Name,
    seed: u64,
    model: AnyModel,
    depth: u64,
}

impl Agent for Worker {
    fn name(&self) -> &Name {
        &self.name
    }

    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        let depth = self.depth.checked_sub(1).filter(|_| target.starts_with('w'))?;
        Some(AnyAgent::new(Self { name: name(target), depth, ..self.clone() }))
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let at = format!("{} {}", turn.transcript().at(), turn.transcript().turns_begun_by(turn.me()));
        let mut started = Vec::new();
        for nth in 0..random(self.seed, &format!("starts {at}"), 3) {
            if let BackgroundStart::Started(id) = turn.start_background(&format!("w{nth}"), "work", 3).await?
            {
                started.push(id);
            }
        }
        for nth in 0..1 + random(self.seed, &format!("calls {at}"), 2) {
            turn.ask_model(ModelCall::of(&self.model)).await?;
            let id = started.get(usize::try_from(nth).unwrap()).cloned();
            match (id, random(self.seed, &format!("then {at} {nth}"), 4)) {
                (Some(id), 0) => drop(turn.wait_for_background(&id).await?),
                (Some(id), 1) => drop(turn.cancel_background(&id).await?),
                _ => {}
            }
        }
        match random(self.seed, &format!("says {at}"), 5) {
            0 => Ok(Act::Pass),
            _ => Ok(Act::say(format!("done {at}"))),
        }
    }
}

fn chat(seed: u64, model: &AnyModel) -> Chat {
    let worker = |who: &str| Worker { name: name(who), seed, model: model.clone(), depth: 2 };
    let builder =
        Chat::builder("main").participant(worker("Ann")).participant(worker("Bob")).max_background(3);
    match seed % 3 {
        0 => builder.policy(sequential()),
        1 => builder.policy(with_termination(round_robin(), max_turns(3))),
        _ => builder.policy(polylogue::parallel()),
    }
    .build()
    .unwrap()
}

/// Runs from `prefix` to the end, and returns the events and the model calls made.
async fn play(seed: u64, prefix: &[Arc<Event>]) -> (Vec<Arc<Event>>, u64) {
    let (mut log, calls) = (log_of(prefix).await, Calls::default());
    let chat = chat(seed, &calls.through(Slow { seed }));
    let run = run_or_resume(&chat, &mut log, "task").await.unwrap();
    assert!(matches!(run.status, Status::Closed { .. }), "{:?}", run.status);
    assert_eq!(log.reserved(), polylogue_core::Money::default());
    (log.events().await, calls.made())
}

fn replies(events: &[Arc<Event>]) -> u64 {
    events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count() as u64
}

/// Each task ends once, after all that it does, and there are never too many.
fn check(events: &[Arc<Event>]) -> u64 {
    let mut open: Vec<Path> = Vec::new();
    let mut cancelled = 0;
    for event in events {
        let is_over = |path: &Path| event.chat == *path || event.chat.is_within(path);
        match &event.body {
            Body::BackgroundStarted(task) => {
                open.push(event.chat.background(&task.who, task.number));
                let here = open.iter().filter(|path| path.ancestors().next().as_ref() == Some(&event.chat));
                assert!(event.chat.is_root() && here.count() <= 3 || !event.chat.is_root(), "{events:#?}");
            }
            Body::BackgroundEnded(end) => {
                let path = event.chat.background(&end.who, end.number);
                assert!(open.contains(&path), "{path} ends twice: {events:#?}");
                open.retain(|other| *other != path && !other.is_within(&path));
                cancelled += u64::from(end.status == polylogue_core::BackgroundStatus::Cancelled);
            }
            Body::Charged(_) => {}
            _ => {
                let task =
                    event.chat.ancestors().chain([event.chat.clone()]).filter(Path::is_background).last();
                assert!(
                    task.is_none_or(|task| open.iter().any(is_over) || open.contains(&task)),
                    "{event:?} comes after its task"
                );
            }
        }
    }
    assert_eq!(open, [], "{events:#?}");
    cancelled
}

#[tokio::test]
async fn every_task_ends_once_wherever_the_log_is_cut() {
    let (mut tasks, mut posted) = (0, 0);
    for seed in 0..18 {
        let (whole, made) = play(seed, &[]).await;
        check(&whole);
        assert!(made >= replies(&whole));
        tasks += whole.iter().filter(|event| matches!(event.body, Body::BackgroundStarted(_))).count();
        posted += whole
            .iter()
            .filter(|event| matches!(&event.body, Body::BackgroundEnded(end) if !end.awaited))
            .count();
        for cut in (1..whole.len()).step_by(4) {
            let (again, made) = play(seed, &whole[..cut]).await;
            assert_eq!(again[..cut], whole[..cut]);
            let (cancelled, needed) = (check(&again), replies(&again) - replies(&whole[..cut]));
            // A call that is aborted when it has just returned is lost.
            assert!(
                made >= needed && made <= needed + cancelled,
                "seed {seed}, cut {cut}: {made} for {needed}"
            );
        }
    }
    assert!(tasks > 25 && posted > 8, "{tasks} tasks, {posted} posted");
}

/// Cents that each call of [`Paid`] takes, which is as much as it may.
const PRICE: u64 = 3;

/// A model that charges each call that it receives, whatever becomes of it.
#[derive(Clone)]
struct Paid {
    slow: Arc<Slow>,
    calls: Arc<AtomicU64>,
}

impl Model for Paid {
    fn name(&self) -> &str {
        "test:paid"
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let usage = Usage { input: Some(1), output: Some(PRICE), ..Usage::default() };
        Ok(Reply { usage, ..self.slow.complete(request, deltas).await? })
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        Some(cents(usage.output?))
    }

    fn max_output(&self, _: &Params) -> Option<u64> {
        Some(PRICE)
    }
}

#[tokio::test]
async fn tasks_at_the_same_time_take_no_more_money_than_the_run_may_wherever_it_dies() {
    let (mut stopped, mut finished, mut deaths) = (0, 0, 0);
    for seed in 0..120 {
        let (store, id) = (AnyStore::new(Memory::new()), LogId::new("test").unwrap());
        let claim = store.create(&id, &Meta::default()).await.unwrap();
        store.release(claim).await.unwrap();
        let (slow, calls) = (Arc::new(Slow { seed }), Arc::new(AtomicU64::new(0)));
        let chat = chat(seed, &AnyModel::new(Paid { slow, calls: Arc::clone(&calls) }));
        let limit = PRICE * (1 + random(seed, "limit", 60));
        for life in 0..200 {
            let log = Log::open(store.clone(), id.clone()).await.unwrap().clock(|| Timestamp(0));
            let mut log = log.limits(Limits { cost: Some(cents(limit)), ..Limits::default() });
            let last = calls.load(Ordering::SeqCst) + 1 + random(seed, &format!("life {life}"), 9);
            let run = run_or_resume(&chat, &mut log, "task");
            let ended = until_dead(run, || calls.load(Ordering::SeqCst) >= last).await;
            let charged = PRICE * calls.load(Ordering::SeqCst);
            assert!(charged <= limit, "seed {seed}: {charged} of {limit} cents");
            let Some(run) = ended else {
                deaths += 1;
                continue;
            };
            let status = run.unwrap().status;
            let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
            assert_eq!(log.reserved(), Money::default(), "seed {seed}");
            stopped += u64::from(matches!(reason, StopReason::Cost { .. }));
            finished += u64::from(!matches!(reason, StopReason::Cost { .. }));
            break;
        }
    }
    assert!(stopped > 20 && finished > 20 && deaths > 100, "{stopped} {finished} {deaths}");
}
