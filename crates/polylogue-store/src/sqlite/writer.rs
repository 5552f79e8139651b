//! The writer thread, and how callers share its commits.

use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use polylogue_core::{Claim, StoreError};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender, WeakUnboundedSender};
use tokio::sync::oneshot;

use super::checkpoints::Checkpoints;
use super::process_lock::Place;
use super::transaction::WriteTransaction;
use super::write_error::{WriteError, store_error};
use super::writer_state::WriterState;
use crate::claims::ClaimGuard;
use crate::clock::Clock;
use crate::workers::gone;

/// Maximum number of tasks in one commit, which limits the wait of the first.
const SHARED: usize = 256;

/// While there are releases that could not be written: how often the thread looks for tasks, and after how many looks without one it tries to
/// write them again.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 20;

type Queue = UnboundedSender<Box<dyn Task>>;

/// A handle of the writer thread.
///
/// Its queue is bounded by the callers: each waits for its answer, so there is at most one task per caller.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which writes to the database at `place` through `connection`.
    pub(super) fn start(mut connection: Connection, place: Place, clock: Clock) -> Result<Self, StoreError> {
        let (queue, tasks) = mpsc::unbounded_channel();
        let checkpoints = Checkpoints::replace_automatic(&mut connection, place.clone())
            .map_err(|error| store_error(&place, &error))?;
        let thread = Builder::new()
            .name("polylogue-writer".into())
            .spawn(move || work(connection, WriterState::new(place, clock), checkpoints, tasks))
            .map_err(|error| gone(&error.to_string()))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` and returns when it is committed.
    ///
    /// `work` may be done several times: what it wrote is undone in between.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&WriteTransaction<'_>) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write(work, Vec::new()).await
    }

    /// Runs `work`, which releases a claim, and returns when it is committed. If that fails, the claim is released with a later commit: its
    /// caller does not have it any more.
    pub(super) async fn release(
        &self,
        claim: Claim,
        work: impl Fn(&WriteTransaction<'_>, &Claim) -> Result<(), WriteError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let releases = vec![claim.clone()];
        self.write(move |transaction: &WriteTransaction<'_>| work(transaction, &claim), releases).await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&WriteTransaction<'_>) -> Result<T, WriteError> + Send + 'static,
        releases: Vec<Claim>,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || gone("the thread that writes has stopped");
        let task = Box::new(PendingWrite { work, releases, reply, done: None });
        self.queue.as_ref().ok_or_else(stopped)?.send(task).map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Creates claims.
    pub(super) fn issuer(&self) -> ClaimIssuer {
        ClaimIssuer(self.queue.as_ref().map(UnboundedSender::downgrade))
    }
}

impl Drop for Writer {
    /// Waits for tasks in progress, so that the database is closed and its claims are released when the store is dropped.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Creates claims that can be released. It does not keep the thread alive.
#[derive(Default)]
pub(super) struct ClaimIssuer(Option<WeakUnboundedSender<Box<dyn Task>>>);

impl ClaimIssuer {
    pub(super) fn grant(&self, claim: Claim) -> ClaimGuard {
        let queue = self.0.clone();
        ClaimGuard::new(claim, move |claim| {
            let task = release_of(vec![claim.clone()]);
            if let Some(queue) = queue.and_then(|queue| queue.upgrade()) {
                // Without the thread there are no claims either.
                let _ = queue.send(task);
            }
        })
    }
}

/// A write that releases claims, for which no caller waits.
fn release_of(claims: Vec<Claim>) -> Box<dyn Task> {
    let releases = claims.clone();
    let work = move |transaction: &WriteTransaction<'_>| {
        claims.iter().try_for_each(|claim| transaction.release(claim))
    };
    Box::new(PendingWrite { work, releases, reply: oneshot::channel().0, done: None })
}

/// A write, and the caller that waits for it.
trait Task: Send {
    /// Writes; an error of SQLite invalidates the whole transaction.
    fn write(&mut self, transaction: &WriteTransaction<'_>) -> Result<(), rusqlite::Error>;
    /// The claims that it releases.
    fn releases(&self) -> &[Claim];
    /// Sends the caller the result, or that it could not be committed.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct PendingWrite<T, W> {
    work: W,
    releases: Vec<Claim>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    done: Option<Result<T, StoreError>>,
}

impl<T: Send, W: Fn(&WriteTransaction<'_>) -> Result<T, WriteError> + Send> Task for PendingWrite<T, W> {
    fn write(&mut self, transaction: &WriteTransaction<'_>) -> Result<(), rusqlite::Error> {
        self.done = Some(match (self.work)(transaction) {
            Ok(value) => Ok(value),
            Err(WriteError::Refused(error)) => Err(error),
            Err(WriteError::Failed(error)) => return Err(error),
        });
        Ok(())
    }

    fn releases(&self) -> &[Claim] {
        &self.releases
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.done) {
            (Ok(()), Some(done)) => done,
            (Ok(()), None) => Err(gone("the thread that writes lost a task")),
            (Err(error), _) => Err(error),
        };
        // Fails only if the caller no longer waits.
        let _ = self.reply.send(outcome);
    }
}

fn work(
    mut connection: Connection,
    state: WriterState,
    mut checkpoints: Checkpoints,
    mut tasks: UnboundedReceiver<Box<dyn Task>>,
) {
    while let Some(first) = next(&mut connection, &state, &mut tasks) {
        // First, as the group may claim one of these logs.
        release_left(&mut connection, &state);
        let mut group = vec![first];
        while group.len() < SHARED
            && let Ok(task) = tasks.try_recv()
        {
            group.push(task);
        }
        commit(&mut connection, &state, group);
        checkpoints.committed(&connection);
    }
    state.close(&connection);
    drop(checkpoints);
    // Before the lock goes with the state: closing may write.
    drop(connection);
}

/// The next task. Releases that could not be written are tried again meanwhile.
fn next(
    connection: &mut Connection,
    state: &WriterState,
    tasks: &mut UnboundedReceiver<Box<dyn Task>>,
) -> Option<Box<dyn Task>> {
    let mut looks = 0;
    while state.has_unreleased() {
        match tasks.try_recv() {
            Ok(task) => return Some(task),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => thread::sleep(LOOK),
        }
        looks += 1;
        if looks % LOOKS == 0 {
            release_left(connection, state);
        }
    }
    tasks.blocking_recv()
}

/// Writes the releases that could not be written before.
fn release_left(connection: &mut Connection, state: &WriterState) {
    let left = state.take_unreleased();
    if !left.is_empty() {
        commit(connection, state, vec![release_of(left)]);
    }
}

/// Commits a group of tasks together; if that fails, each separately, so that only faulty ones fail.
fn commit(connection: &mut Connection, state: &WriterState, mut group: Vec<Box<dyn Task>>) {
    if let Err(error) = state.check() {
        return refuse(group, state, &error);
    }
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        // It is not the tasks' fault, and a task by itself would have to wait as long.
        Err(error) => return fail(group, state, &error),
    };
    let written = write(transaction, state, &mut group);
    if written.is_err() {
        state.rolled_back();
    }
    match (written, group.len()) {
        // What was committed to files that were replaced or removed is not stored.
        (Ok(()), _) => match state.check() {
            Ok(()) => {
                state.committed();
                group.into_iter().for_each(|task| task.answer(Ok(())));
            }
            Err(error) => refuse(group, state, &error),
        },
        (Err(error), 1) => fail(group, state, &error),
        (Err(_), _) => group.into_iter().for_each(|task| commit(connection, state, vec![task])),
    }
}

fn write(
    transaction: Transaction<'_>,
    state: &WriterState,
    group: &mut [Box<dyn Task>],
) -> rusqlite::Result<()> {
    state.ends().refresh(&transaction)?;
    for task in group {
        task.write(&WriteTransaction::new(&transaction, state))?;
    }
    transaction.commit()
}

fn fail(group: Vec<Box<dyn Task>>, state: &WriterState, error: &rusqlite::Error) {
    refuse(group, state, &store_error(state.place(), error));
}

fn refuse(group: Vec<Box<dyn Task>>, state: &WriterState, error: &StoreError) {
    for task in group {
        state.keep_unreleased(task.releases());
        task.answer(Err(error.clone()));
    }
}
