//! Runs a simulated world: workers, a script of faults, and what must hold.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue::runs::worker::{Claimed, Pace, Release, Worker, WorkerStore, WorkerTime};
use polylogue_core::{AnyQueue, AnyStore, Claim, Due, Error, Event, LogId, Store as _, Timer};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::worker::faults::{Broken, Fault, Random, STORMY, Script, script};
use crate::worker::world::{Network, STEPS, World, done_in, event, freezable};

const WORKERS: usize = 3;

/// How long everything may take once nothing fails any more.
const CALM: u64 = 450_000;

/// What became of a world.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// When what was violated.
    pub(crate) violation: Option<(u64, String)>,
    pub(crate) takeovers: u64,
    pub(crate) refusals: u64,
    /// What workers did, and when.
    pub(crate) done: Vec<(u64, String)>,
}

/// The logs and faults of the world of a seed.
pub(crate) fn script_of(seed: u64) -> (usize, Script) {
    let logs = 1 + Random::new(!seed).below(2) as usize;
    (logs, script(seed, WORKERS, logs))
}

/// Runs the world of a seed with `script`.
pub(crate) fn run(seed: u64, broken: Broken, logs: usize, script: &Script) -> Verdict {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(seed, broken);
        live(&world, logs, script).await;
        let state = world.state();
        Verdict {
            violation: state.violation.clone(),
            takeovers: state.takeovers,
            refusals: state.refusals,
            done: state.done.clone(),
        }
    })
}

fn log_id(number: usize) -> LogId {
    LogId::new(&format!("log-{number}")).unwrap()
}

async fn live(world: &World, logs: usize, script: &Script) {
    for number in 0..logs {
        world.create(&log_id(number)).await;
    }
    let mut processes: Vec<Process> = (0..WORKERS).map(|worker| Process::start(world, worker, 0)).collect();
    let mut messages: BTreeMap<usize, usize> = BTreeMap::new();
    let mut restarts = 0;
    for (at, fault) in script {
        sleep_until(world.0.begun + Duration::from_millis(*at)).await;
        match fault {
            Fault::Kill(worker) => {
                restarts += 1;
                processes[*worker].task.abort();
                processes[*worker] = Process::start(world, *worker, restarts);
            }
            Fault::Freeze(worker, ms) => {
                *processes[*worker].frozen_until.lock().unwrap() =
                    Instant::now() + Duration::from_millis(*ms);
            }
            Fault::Jump(ms) => {
                world.0.jump.fetch_add(*ms, Ordering::Relaxed);
            }
            Fault::Post(log) => {
                let count = messages.entry(*log).or_default();
                *count += 1;
                world.post(&log_id(*log), &format!("k{count}")).await;
            }
        }
        world.look_at_parked().await;
    }
    sleep_until(world.0.begun + Duration::from_millis(STORMY)).await;
    loop {
        world.look_at_parked().await;
        let mut missing = None;
        for number in 0..logs {
            let count = messages.get(&number).copied().unwrap_or_default();
            missing = missing.or(world.missing(&log_id(number), count).await);
        }
        let Some(missing) = missing else { break };
        if world.state().violation.is_some() {
            break;
        }
        if world.ms() > STORMY + CALM {
            world.violated(missing);
            break;
        }
        sleep(Duration::from_secs(5)).await;
    }
    processes.iter().for_each(|process| process.task.abort());
}

/// The process of a worker.
struct Process {
    task: AbortHandle,
    frozen_until: Arc<Mutex<Instant>>,
}

impl Process {
    fn start(world: &World, number: usize, restarts: u64) -> Self {
        let frozen_until = Arc::new(Mutex::new(Instant::now()));
        let begun = Instant::now();
        let time = WorkerTime::new(move || begun.elapsed(), Timer::new(sleep));
        let network = AnyQueue::new(Network::new(world.clone(), number)).unwrap();
        let store = WorkerStore::new(network, time);
        let seed = world.0.seed.wrapping_add(number as u64 * 1_000 + restarts);
        let pace = Pace::new(Duration::from_secs(1), Duration::from_secs(6), seed);
        let worker = Worker::new(store.clone()).concurrency(2).pace(pace);
        let conversations = Conversations {
            world: world.clone(),
            store: store.store(),
            worker: number,
            random: Mutex::new(Random::new(seed)),
            earlier: Mutex::default(),
        };
        let process = async move {
            // One that was killed takes a while to start again.
            sleep(Duration::from_secs(restarts.min(1) * 3)).await;
            worker.run(|claimed: Claimed| conversations.converse(claimed)).await;
        };
        let task = tokio::spawn(freezable(process, Arc::clone(&frozen_until))).abort_handle();
        Self { task, frozen_until }
    }
}

/// Modeled conversations: steps, each an effect and then its event, and messages that are taken.
struct Conversations {
    world: World,
    store: AnyStore,
    worker: usize,
    random: Mutex<Random>,
    /// What was read of each log last.
    earlier: Mutex<BTreeMap<LogId, Vec<Event>>>,
}

impl Conversations {
    async fn converse(&self, claimed: Claimed) -> Release {
        match self.steps(&claimed.claim).await {
            Ok(due) => Release::Until(due),
            Err(error) => Release::failed(&Error::from(error)),
        }
    }

    async fn steps(&self, claim: &Claim) -> Result<Due, polylogue_core::StoreError> {
        let id = &claim.id;
        let earlier = self.earlier.lock().unwrap().get(id).cloned();
        let mut events = match earlier.filter(|_| self.world.0.broken == Broken::ReadBeforeClaim) {
            Some(events) => events,
            None => self.store.read(id, 0).await?,
        };
        loop {
            self.earlier.lock().unwrap().insert(id.clone(), events.clone());
            let (step, taken) = done_in(&events);
            let inbox = self.store.inbox(id, 0).await?;
            let new: Vec<u64> =
                inbox.iter().map(|(number, _)| *number).filter(|number| !taken.contains(number)).collect();
            for number in new {
                let remembered = (self.world.0.broken != Broken::MessagesNotRemembered).then_some(number);
                let event = event(events.len(), &format!("message {number}"), remembered);
                self.store.append(claim, &[Arc::clone(&event)]).await?;
                events.push((*event).clone());
                if remembered.is_none() {
                    // This run knows, and no later one.
                    return Ok(Due::After(Duration::from_secs(5)));
                }
            }
            if step == STEPS {
                return Ok(Due::Never);
            }
            if self.world.0.broken != Broken::NoGuard {
                self.store.confirm(claim).await?;
            }
            self.world.begins(id, step, self.worker);
            let takes = self.random.lock().unwrap().below(45_000) + 500;
            sleep(Duration::from_millis(takes)).await;
            let event = event(events.len(), &format!("step {step}"), None);
            self.store.append(claim, &[Arc::clone(&event)]).await?;
            events.push((*event).clone());
            if step % 2 == 1 {
                // As one that waits for a person with a default answer.
                self.earlier.lock().unwrap().insert(id.clone(), events);
                return Ok(Due::After(Duration::from_secs(8)));
            }
        }
    }
}

/// The smallest script that is found under which the world still fails: without as many faults as possible, first many at once, and
/// with smaller ones.
pub(crate) fn shrunk(seed: u64, broken: Broken, logs: usize, script: &Script) -> Script {
    let fails = |script: &Script| run(seed, broken, logs, script).violation.is_some();
    let mut script = script.clone();
    while let Some(shorter) = shortened(&script, &fails) {
        script = shorter;
    }
    for at in 0..script.len() {
        while let Some(fault) = script[at].1.smaller() {
            let mut milder = script.clone();
            milder[at].1 = fault;
            if !fails(&milder) {
                break;
            }
            script = milder;
        }
    }
    script
}

/// The script without some of its faults, if it still fails: consecutive ones, many first, or else any two.
fn shortened(script: &Script, fails: &impl Fn(&Script) -> bool) -> Option<Script> {
    let halves =
        std::iter::successors(Some(script.len()), |many| Some(many / 2)).take_while(|many| *many > 0);
    let runs = halves.flat_map(|many| {
        let starts = (0..script.len()).step_by(many);
        starts.map(move |at| [&script[..at], &script[script.len().min(at + many)..]].concat())
    });
    let pairs = (0..script.len()).flat_map(|one| {
        (0..one).map(move |other| {
            let kept = script.iter().enumerate().filter(|(at, _)| *at != one && *at != other);
            kept.map(|(_, fault)| fault.clone()).collect::<Script>()
        })
    });
    runs.chain(pairs).find(fails)
}

/// How much of what workers did is printed.
const DONE: usize = 24;

/// Who did what when in a world that fails: its faults and its violation, and the last of what workers did before it.
pub(crate) fn table(seed: u64, broken: Broken, logs: usize, script: &Script) -> String {
    let verdict = run(seed, broken, logs, script);
    let mut table = format!("seed {seed}, {broken:?}, {logs} logs of {STEPS} steps, {WORKERS} workers\n");
    let _ = writeln!(table, "{:>9} | who      | what", "ms");
    let mut row = |at: u64, what: &str| {
        let _ = writeln!(table, "{at:>9} | {what}");
    };
    let end = verdict.violation.as_ref().map_or(u64::MAX, |(at, _)| *at);
    let faults = script.iter().map(|(at, fault)| (*at, fault.to_string()));
    let mut rows: Vec<(u64, String)> = verdict.done.iter().rev().take(DONE).cloned().collect();
    rows.extend(faults);
    rows.retain(|(at, _)| *at <= end);
    rows.sort_by_key(|(at, _)| *at);
    rows.iter().for_each(|(at, what)| row(*at, what));
    if let Some((at, what)) = &verdict.violation {
        row(*at, &format!("all      | {what}"));
    }
    table
}
