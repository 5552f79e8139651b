//! What the server remembers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::returned::{Reasoned, Reasoning};
use super::{Dialect, Received};

/// What the server remembers of the requests it got.
#[derive(Debug, Default)]
pub(super) struct Record {
    requests: Mutex<Vec<Arc<Received>>>,
    violations: Mutex<Vec<String>>,
    /// By the body's fingerprint: a request, and how often it was answered in full.
    answered: Mutex<HashMap<u64, (Arc<Received>, usize)>>,
    /// Reasoning that was sent as a plain text.
    reasoned: Mutex<Reasoned>,
    /// Requests of any kind.
    pub(super) count: AtomicUsize,
    /// Requests for completions.
    pub(super) asked: AtomicUsize,
    pub(super) connections: Gauge,
    pub(super) in_flight: Gauge,
}

impl Record {
    pub(super) fn keep(&self, received: &Arc<Received>) {
        lock(&self.requests).push(Arc::clone(received));
    }

    pub(super) fn requests(&self) -> Vec<Arc<Received>> {
        lock(&self.requests).clone()
    }

    pub(super) fn violation(&self, received: &Received, what: &str) {
        lock(&self.violations).push(format!("request {}: {what}", received.nth));
    }

    pub(super) fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    /// Remembers the reasoning of the reply to `received`, if it has any.
    pub(super) fn reasoned(&self, received: &Received, reasoning: Option<Reasoning>) {
        let Some(reasoning) = reasoning else { return };
        lock(&self.reasoned).sent(received.model(), received.messages(), reasoning);
    }

    /// Checks reasoning that comes back as a plain text. With `is_required`, it must come back with the results of calls.
    pub(super) fn check_reasoning(&self, received: &Received, is_required: bool) -> Result<(), String> {
        match received.dialect() {
            Some(Dialect::ChatCompletions | Dialect::Ollama) => {
                lock(&self.reasoned).check(received.model(), received.messages(), is_required)
            }
            _ => Ok(()),
        }
    }

    /// A complete reply to `received` was written.
    pub(super) fn answered(&self, received: &Arc<Received>) {
        let mut answered = lock(&self.answered);
        answered.entry(received.fingerprint()).or_insert_with(|| (Arc::clone(received), 0)).1 += 1;
    }

    /// The connection was reset behind a reply that was counted: the client did not read it to its end.
    pub(super) fn retract(&self, received: &Received) {
        if let Some((_, times)) = lock(&self.answered).get_mut(&received.fingerprint()) {
            *times = times.saturating_sub(1);
        }
    }

    /// How many replies were sent in full.
    pub(super) fn replies(&self) -> usize {
        lock(&self.answered).values().map(|(_, times)| times).sum()
    }

    /// The bodies that were answered in full more than once, in the order they first came.
    pub(super) fn duplicates(&self) -> Vec<Value> {
        let answered = lock(&self.answered);
        let mut twice: Vec<_> = answered.values().filter(|(_, times)| *times > 1).collect();
        twice.sort_by_key(|(received, _)| received.nth);
        twice.into_iter().map(|(received, _)| received.body.clone()).collect()
    }
}

/// A playbook that panics must not take the record with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many there are of something, and how many there were at most.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    /// One more, until the guard is dropped.
    pub(super) fn enter(&self) -> GaugeGuard<'_> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        GaugeGuard(self)
    }

    pub(super) fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

pub(super) struct GaugeGuard<'a>(&'a Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}
