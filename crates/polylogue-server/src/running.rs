//! Which conversations a server runs.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use polylogue_core::{Event, Instruction, LogId};
use tokio::sync::{Notify, watch};
use tracing::error;

/// The conversations of one tenant that this process runs.
#[derive(Default)]
pub(crate) struct Runs {
    running: Mutex<HashMap<LogId, Entry>>,
    /// How many generations there were.
    generations: AtomicU64,
    /// Changes when any of them does.
    changes: watch::Sender<()>,
    watched: Arc<Watched>,
}

/// Changes of those that are waited for. A change of one wakes no one who waits for another: ten thousand may.
type Watched = Mutex<HashMap<LogId, watch::Sender<()>>>;

/// A conversation that runs, or waits until it may.
#[derive(Default)]
struct Entry {
    /// Whether it is to be run once more when it has stopped: something was sent to it meanwhile.
    again: bool,
    /// Ends its wait: it is not to run any more.
    unqueued: Arc<Notify>,
    /// The pause or the cancellation for it, as soon as it has been opened.
    halt: Option<Instruction>,
    /// Whether it rests because it is paused.
    rests: bool,
    /// Another one for each run, and whenever someone who does not wait for a response has sent something to it.
    generation: u64,
    /// Whether the client that waited for its response is gone, and it runs for no one else.
    is_abandoned: bool,
    /// Whether it runs because an earlier process was running it, and no one has asked for that since.
    is_adopted: bool,
    /// Whether a task runs it, or is about to. Otherwise a request only reads it or closes it.
    has_task: bool,
    /// Whether it runs for clients that wait for its response, and for no one else.
    is_awaited: bool,
}

impl Runs {
    fn running(&self) -> MutexGuard<'_, HashMap<LogId, Entry>> {
        locked(&self.running)
    }

    /// Whether this process runs it, or is about to.
    pub(crate) fn is_running(&self, id: &LogId) -> bool {
        self.running().contains_key(id)
    }

    /// Notes that a task is about to run it, until that [leaves](Self::leave) it. `is_awaited`: for clients that wait for its response, and
    /// for no one else.
    pub(crate) fn note_task(&self, id: &LogId, is_awaited: bool) {
        if let Some(entry) = self.running().get_mut(id) {
            (entry.has_task, entry.is_awaited) = (true, is_awaited);
        }
    }

    /// Whether a task runs it, or is about to. A task that has ended the conversation can still write to the log: it lifts a limit on the
    /// length of replies, which was for the response that has ended.
    pub(crate) fn has_task(&self, id: &LogId) -> bool {
        self.running().get(id).is_some_and(|entry| entry.has_task)
    }

    /// Whether this process runs it for clients that wait for its response, and for no one else: those that an earlier process had, if that
    /// was running it.
    pub(crate) fn is_awaited(&self, id: &LogId) -> bool {
        self.running().get(id).is_some_and(|entry| entry.is_awaited)
    }

    /// How many run.
    pub(crate) fn count(&self) -> usize {
        self.running().len()
    }

    /// Those that run.
    pub(crate) fn ids(&self) -> Vec<LogId> {
        self.running().keys().cloned().collect()
    }

    /// Changes when any conversation is opened or has stopped running, or something was sent to it.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Changes when this conversation is opened or has stopped running, or something was sent to it.
    pub(crate) fn changes_of(&self, id: &LogId) -> Changes {
        let changes = locked(&self.watched).entry(id.clone()).or_default().subscribe();
        Changes { id: id.clone(), changes, watched: Arc::clone(&self.watched) }
    }

    /// Takes the right to run it. If it runs already, it is run once more when it has stopped.
    pub(crate) fn enter(&self, id: &LogId) -> bool {
        let mut running = self.running();
        match running.get_mut(id) {
            Some(entry) => {
                entry.again = true;
                // It is resumed.
                entry.halt.take_if(|halt| *halt == Instruction::Pause);
                false
            }
            None => self.insert(&mut running, id),
        }
    }

    /// Takes the right to run it, unless it runs already.
    pub(crate) fn enter_new(&self, id: &LogId) -> bool {
        let mut running = self.running();
        let is_free = !running.contains_key(id);
        is_free && self.insert(&mut running, id)
    }

    /// Adds one that does not run.
    fn insert(&self, running: &mut HashMap<LogId, Entry>, id: &LogId) -> bool {
        let generation = self.next_generation();
        running.insert(id.clone(), Entry { generation, ..Entry::default() }).is_none()
    }

    fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that it also runs for someone who does not wait for a response.
    pub(crate) fn renew(&self, id: &LogId) {
        if let Some(entry) = self.running().get_mut(id) {
            entry.generation = self.next_generation();
            (entry.is_abandoned, entry.is_adopted, entry.is_awaited) = (false, false, false);
        }
    }

    /// Notes that it runs because an earlier process was running it: the log says for whom.
    pub(crate) fn adopt(&self, id: &LogId) {
        if let Some(entry) = self.running().get_mut(id) {
            entry.is_adopted = true;
        }
    }

    /// Whether this process runs it because an earlier one did, and no one has asked for that since.
    pub(crate) fn is_adopted(&self, id: &LogId) -> bool {
        self.running().get(id).is_some_and(|entry| entry.is_adopted)
    }

    /// Notes that no client waits for its response any more, if it still is the run of this generation.
    pub(crate) fn abandon(&self, id: &LogId, generation: u64) {
        if let Some(entry) = self.running().get_mut(id).filter(|entry| entry.generation == generation) {
            entry.is_abandoned = true;
        }
    }

    /// Notes that a client waits for its response.
    pub(crate) fn attend(&self, id: &LogId) {
        if let Some(entry) = self.running().get_mut(id) {
            (entry.is_abandoned, entry.is_adopted) = (false, false);
        }
    }

    /// Whether this process runs it, for a client that is gone, and for no one else.
    pub(crate) fn is_abandoned(&self, id: &LogId) -> bool {
        self.running().get(id).is_some_and(|entry| entry.is_abandoned)
    }

    /// Tells whether it still runs for the same clients. `None` if this process does not run it.
    pub(crate) fn generation(&self, id: &LogId) -> Option<u64> {
        self.running().get(id).map(|entry| entry.generation)
    }

    /// Completes an `operation` that has the right to run the conversation. If it panics, the right is given up: else nothing could run the
    /// conversation before a restart, and a server that stops would wait for it.
    pub(crate) fn hold<T>(&self, id: &LogId, operation: impl Future<Output = T>) -> impl Future<Output = T> {
        // In a box: operations are large, and are held within others.
        let operation = AssertUnwindSafe(Box::pin(operation)).catch_unwind();
        async move {
            match operation.await {
                Ok(done) => done,
                Err(panic) => {
                    error!(conversation = %id, "a mistake in the server has interrupted a conversation");
                    self.running().remove(id);
                    self.note_change(id);
                    resume_unwind(panic)
                }
            }
        }
    }

    /// Returns whether it is to be run once more; if not, gives up the right to run it.
    pub(crate) fn leave(&self, id: &LogId) -> bool {
        self.leave_with_halt(id).0
    }

    /// Returns what [`leave`](Self::leave) does, with the [`halt`](Self::halt) that no one has taken, unless it is to be run once more.
    pub(crate) fn leave_with_halt(&self, id: &LogId) -> (bool, Option<Instruction>) {
        let mut running = self.running();
        let left = match running.get_mut(id) {
            Some(entry) if entry.again => {
                // What ended an earlier wait does not end the next one.
                let Entry { generation, is_abandoned, is_adopted, has_task, is_awaited, .. } = *entry;
                let kept =
                    Entry { generation, is_abandoned, is_adopted, has_task, is_awaited, ..Entry::default() };
                *entry = kept;
                (true, None)
            }
            _ => (false, running.remove(id).and_then(|entry| entry.halt)),
        };
        drop(running);
        self.note_change(id);
        left
    }

    /// Resolves when it is not to wait any longer until it may run.
    pub(crate) async fn unqueued(&self, id: &LogId) {
        let unqueued = self.running().get(id).map(|entry| Arc::clone(&entry.unqueued));
        match unqueued {
            Some(unqueued) => unqueued.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Has one halt by a pause or a cancellation. If it waits until it may run, its wait ends. If it is about to be opened,
    /// [`take_halt`](Self::take_halt) has the instruction then. It is not run once more for what was sent to it until now. Returns
    /// whether this process runs it.
    pub(crate) fn halt(&self, id: &LogId, instruction: Instruction) -> bool {
        let mut running = self.running();
        let Some(entry) = running.get_mut(id) else { return false };
        entry.again = false;
        entry.unqueued.notify_one();
        // One that was stopped is not only paused.
        if !matches!((&entry.halt, &instruction), (Some(Instruction::Cancel { .. }), Instruction::Pause)) {
            entry.halt = Some(instruction);
        }
        true
    }

    /// Takes the instruction by which it is to [halt](Self::halt), for the first caller that has it open.
    pub(crate) fn take_halt(&self, id: &LogId) -> Option<Instruction> {
        self.running().get_mut(id)?.halt.take()
    }

    /// Notes whether a conversation that this process runs rests, because it is paused.
    pub(crate) fn set_resting(&self, id: &LogId, rests: bool) {
        if let Some(entry) = self.running().get_mut(id) {
            entry.rests = rests;
        }
        self.note_change(id);
    }

    /// Whether this process runs it, and it rests, because it is paused.
    pub(crate) fn rests(&self, id: &LogId) -> bool {
        self.running().get(id).is_some_and(|entry| entry.rests)
    }

    /// Notes an event of a conversation that this process runs: one that carries out what someone has sent is a change.
    pub(crate) fn note_event(&self, id: &LogId, event: &Event) {
        if event.inbox.is_some() {
            self.note_change(id);
        }
    }

    /// Tells those who wait for it that a conversation was opened or has stopped running, or that something was sent to it.
    pub(crate) fn note_change(&self, id: &LogId) {
        self.changes.send_replace(());
        if let Some(changes) = locked(&self.watched).get(id) {
            changes.send_replace(());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a conversation is opened or has stopped running, or something was sent to it.
pub(crate) struct Changes {
    id: LogId,
    changes: watch::Receiver<()>,
    watched: Arc<Watched>,
}

impl Changes {
    /// Resolves at the next change that was not waited for yet.
    pub(crate) async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Changes until now are not waited for.
    pub(crate) fn mark_unchanged(&mut self) {
        self.changes.mark_unchanged();
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let mut watched = locked(&self.watched);
        // This one is still counted.
        if watched.get(&self.id).is_some_and(|changes| changes.receiver_count() <= 1) {
            watched.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Body, Path, Timestamp};

    use super::*;

    fn stop() -> Instruction {
        Instruction::Cancel { now: true }
    }

    #[test]
    fn what_comes_while_it_runs_runs_it_once_more() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        assert!(runs.enter(&id));
        assert!(!runs.enter(&id) && !runs.enter(&id));
        assert!(runs.leave(&id), "once more");
        assert!(runs.is_running(&id));
        assert!(!runs.leave(&id));
        assert_eq!(runs.count(), 0);
    }

    #[tokio::test]
    async fn one_that_is_stopped_is_not_run_once_more_for_what_came_before() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        assert!(runs.enter(&id) && !runs.enter(&id));
        assert!(runs.halt(&id, stop()));
        assert!(!runs.enter(&id), "this came later");
        assert!(runs.leave(&id));
        assert!(runs.unqueued(&id).now_or_never().is_none(), "it was stopped in an earlier run");
        assert_eq!(runs.take_halt(&id), None);
        runs.halt(&id, stop());
        runs.unqueued(&id).await;
        assert!(!runs.leave(&id));
        assert!(!runs.halt(&id, stop()), "it does not run");
    }

    #[tokio::test]
    async fn a_panic_gives_up_the_right_to_run() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        assert!(runs.enter(&id));
        assert_eq!(runs.hold(&id, async { 1 }).await, 1);
        assert!(runs.is_running(&id) && !runs.enter(&id), "something is sent to it");
        let changes = runs.changes();
        let panics = runs.hold::<()>(&id, async { panic!("the mistake of a test") });
        assert!(AssertUnwindSafe(panics).catch_unwind().await.is_err());
        assert!(!runs.is_running(&id) && changes.has_changed().unwrap());
        assert!(runs.enter(&id) && !runs.leave(&id), "it can run again");
    }

    #[test]
    fn a_stop_that_no_run_has_taken_is_left_to_who_leaves_it() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        assert!(runs.enter(&id) && runs.halt(&id, stop()));
        assert_eq!(runs.leave_with_halt(&id), (false, Some(stop())));
        assert!(runs.enter(&id));
        assert_eq!(runs.leave_with_halt(&id), (false, None));
    }

    #[test]
    fn a_generation_is_that_of_a_run_until_others_send_something_to_it() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        assert_eq!(runs.generation(&id), None);
        runs.enter(&id);
        let first = runs.generation(&id);
        runs.enter(&id);
        assert!(runs.leave(&id));
        assert_eq!(runs.generation(&id), first, "it runs once more");
        runs.renew(&id);
        let second = runs.generation(&id);
        assert_ne!(second, first);
        assert!(!runs.leave(&id));
        runs.enter(&id);
        assert!(![first, second].contains(&runs.generation(&id)));
    }

    #[test]
    fn one_is_abandoned_until_a_client_waits_for_it_or_others_send_something_to_it() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        runs.enter(&id);
        let generation = runs.generation(&id).unwrap();
        assert!(!runs.is_abandoned(&id), "someone has begun it");
        let abandon = || runs.abandon(&id, generation);
        abandon();
        assert!(runs.is_abandoned(&id));
        runs.enter(&id);
        assert!(runs.leave(&id) && runs.is_abandoned(&id), "it runs once more");
        runs.attend(&id);
        assert!(!runs.is_abandoned(&id));
        abandon();
        runs.renew(&id);
        assert!(!runs.is_abandoned(&id));
        abandon();
        assert!(!runs.is_abandoned(&id), "it is not the run of that client any more");
        assert!(!runs.leave(&id) && !runs.is_abandoned(&id));
    }

    #[test]
    fn one_of_an_earlier_process_is_adopted_until_someone_asks_for_it() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        runs.adopt(&id);
        runs.enter(&id);
        assert!(!runs.is_adopted(&id), "it did not run yet");
        for ask in [Runs::attend, Runs::renew] {
            runs.adopt(&id);
            assert!(runs.is_adopted(&id));
            ask(&runs, &id);
            assert!(!runs.is_adopted(&id));
        }
    }

    #[test]
    fn one_has_a_task_from_its_beginning_until_that_leaves_it() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        runs.note_task(&id, true);
        assert!(runs.enter(&id) && !runs.has_task(&id), "a request reads it");
        assert!(!runs.leave(&id));
        assert!(runs.enter(&id));
        runs.note_task(&id, true);
        assert!(!runs.enter(&id) && runs.leave(&id) && runs.has_task(&id), "it runs once more");
        assert!(runs.is_awaited(&id));
        runs.renew(&id);
        assert!(runs.has_task(&id) && !runs.is_awaited(&id), "it runs for others, too");
        assert!(!runs.leave(&id) && !runs.has_task(&id));
    }

    #[test]
    fn one_that_is_about_to_be_opened_halts_then_and_a_pause_keeps_a_stop() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        assert!(runs.enter(&id));
        runs.halt(&id, Instruction::Pause);
        runs.halt(&id, stop());
        runs.halt(&id, Instruction::Pause);
        assert_eq!(runs.take_halt(&id), Some(stop()));
        assert_eq!(runs.take_halt(&id), None, "once");
        runs.halt(&id, Instruction::Pause);
        assert!(!runs.enter(&id));
        assert_eq!(runs.take_halt(&id), None, "it was resumed");
    }

    #[test]
    fn what_was_sent_is_a_change_at_its_event() {
        let (runs, id) = (Runs::default(), LogId::new("a").unwrap());
        let changes = runs.changes();
        let event = |inbox| Event {
            seq: 3,
            chat: Path::root(),
            time: Timestamp(1),
            ran_ms: 0,
            inbox,
            body: Body::Paused,
        };
        runs.note_event(&id, &event(None));
        assert!(!changes.has_changed().unwrap());
        runs.note_event(&id, &event(Some(1)));
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn a_change_wakes_those_who_wait_for_this_conversation() {
        let (runs, [a, b]) = (Runs::default(), ["a", "b"].map(|id| LogId::new(id).unwrap()));
        let (mut any, mut of_a, of_b) = (runs.changes(), runs.changes_of(&a), runs.changes_of(&b));
        assert!(runs.enter(&a) && !runs.leave(&a));
        let woken = |changes: &Changes| changes.changes.has_changed().unwrap();
        assert!(any.has_changed().unwrap() && woken(&of_a) && !woken(&of_b));
        any.mark_unchanged();
        of_a.mark_unchanged();
        let also = runs.changes_of(&a);
        runs.note_change(&a);
        assert!(any.has_changed().unwrap() && woken(&of_a) && woken(&also) && !woken(&of_b));
        drop((of_a, of_b));
        assert_eq!(locked(&runs.watched).keys().collect::<Vec<_>>(), [&a], "the other one is not waited for");
        drop(also);
        assert!(locked(&runs.watched).is_empty());
    }
}
