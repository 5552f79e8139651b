//! A pool of threads for blocking work.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use polylogue_core::StoreError;
use tokio::sync::oneshot;

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A pool of threads, started on demand, each with its own state.
///
/// The queue is bounded by the callers: each waits for its answer, so there is at most one job per caller.
#[derive(derive_more::Debug)]
#[debug("Workers {{ most: {most:?}, .. }}")]
pub(crate) struct Workers<S> {
    most: usize,
    queue: Arc<Queue<S>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Queue<S> {
    state: Mutex<State<S>>,
    news: Condvar,
}

struct State<S> {
    jobs: VecDeque<Job<S>>,
    idle: usize,
    closed: bool,
}

impl<S: Default + 'static> Workers<S> {
    /// At most `most` threads.
    pub(crate) fn new(most: usize) -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, closed: false };
        let queue = Queue { state: Mutex::new(state), news: Condvar::new() };
        Self { most, queue: Arc::new(queue), threads: Mutex::default() }
    }

    /// Runs `job` on one of the threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut S) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.submit(Box::new(move |state| {
            // Fails only if the caller no longer waits.
            let _ = reply.send(job(state));
        }))?;
        answer.await.unwrap_or_else(|_| Err(gone("a thread of the store stopped in the middle of its work")))
    }

    fn submit(&self, job: Job<S>) -> Result<(), StoreError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.queue.lock();
        if state.idle <= state.jobs.len() && threads.len() < self.most {
            let queue = Arc::clone(&self.queue);
            match Builder::new().name("polylogue-store".into()).spawn(move || queue.work()) {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => return Err(gone(&error.to_string())),
                Err(_) => {} // The threads that are there will come to it.
            }
        }
        state.jobs.push_back(job);
        drop(state);
        self.queue.news.notify_one();
        Ok(())
    }
}

impl<S: Default> Queue<S> {
    fn work(&self) {
        let mut own = S::default();
        while let Some(job) = self.next() {
            // A job that panics fails for its caller; the thread continues with a fresh state.
            if catch_unwind(AssertUnwindSafe(|| job(&mut own))).is_err() {
                own = S::default();
            }
        }
    }

    fn next(&self) -> Option<Job<S>> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

impl<S> Queue<S> {
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Drop for Workers<S> {
    /// Waits for jobs in progress, so that files are closed when the store is dropped.
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.news.notify_all();
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Threads end by themselves; their panics were caught.
            let _ = thread.join();
        }
    }
}

/// The error for a thread that cannot be started.
pub(crate) fn gone(why: &str) -> StoreError {
    StoreError::Io { place: "a thread of the store".into(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_job_fails_alone() {
        let workers = Workers::<u32>::new(1);
        let failed = workers.run(|_| -> Result<(), StoreError> { panic!("on purpose") }).await;
        assert!(matches!(failed, Err(StoreError::Io { .. })), "{failed:?}");
        let counted = workers.run(|count| {
            *count += 1;
            Ok(*count)
        });
        assert_eq!(counted.await, Ok(1));
    }

    #[tokio::test]
    async fn jobs_run_side_by_side() {
        let workers = Workers::<()>::new(2);
        let (there, here) = std::sync::mpsc::channel();
        // The first job can only end if the second one runs meanwhile.
        let first = workers.run(move |()| Ok(here.recv().is_ok()));
        let second = workers.run(move |()| Ok(there.send(()).is_ok()));
        assert_eq!(tokio::join!(first, second), (Ok(true), Ok(true)));
    }
}
