//! What a queue looks like from outside: who works on it, and what waits.

use std::time::Duration;

use super::due::ParkedLog;
use super::features::Features;
use crate::LogId;

/// What a worker says of itself to those who look at the queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerInfo {
    /// What it offers.
    pub offers: Features,
    /// How many logs it runs at the same time.
    pub at_once: u64,
    /// Where others reach it over HTTP; `None` if they cannot.
    pub address: Option<String>,
}

/// A worker that was seen lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWorker {
    /// The process, as [`StoreError::Busy`](crate::StoreError::Busy) names it.
    pub process: String,
    /// Its version of Polylogue.
    pub version: String,
    /// What it said of itself.
    pub info: WorkerInfo,
    /// How long ago its last heartbeat was.
    pub seen: Duration,
    /// How many logs it holds.
    pub held: u64,
}

/// Where a log is in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueState {
    /// A worker must look at it later.
    Timed,
    /// A worker must look at it now.
    Ready,
    /// A process has claimed it, and its lease lasts.
    Held,
    /// A process has claimed it, and its lease has expired.
    Lost,
    /// It failed repeatedly: no worker looks at it before it is handed over again.
    Parked,
}

impl QueueState {
    /// As one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Ready => "ready",
            Self::Held => "held",
            Self::Lost => "lost",
            Self::Parked => "parked",
        }
    }

    /// The state that [`as_str`](Self::as_str) returns this word for.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let all = [Self::Timed, Self::Ready, Self::Held, Self::Lost, Self::Parked];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

/// A log that is not idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedLog {
    /// Its id.
    pub id: LogId,
    /// Where it is.
    pub state: QueueState,
    /// How long it has been due, in milliseconds; negative if it is due later. `None` if it is not due by time.
    pub overdue_ms: Option<i64>,
    /// The process that holds it, or held it last.
    pub holder: Option<String>,
    /// What it needs of a worker.
    pub needs: Features,
    /// How often it was claimed without progress.
    pub tries: u64,
    /// How often it was taken from a worker that had died or was frozen.
    pub takeovers: u64,
    /// Why its last try failed.
    pub why: Option<String>,
}

impl From<ParkedLog> for QueuedLog {
    fn from(ParkedLog { id, holder, tries, why }: ParkedLog) -> Self {
        let (state, needs, tries) = (QueueState::Parked, Features::none(), u64::from(tries));
        Self { id, state, overdue_ms: None, holder: Some(holder), needs, tries, takeovers: 0, why }
    }
}

/// Workers and logs of a queue, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueOverview {
    /// The workers that were seen lately.
    pub workers: Vec<SeenWorker>,
    /// The logs that are not idle: those that have waited longest first.
    pub logs: Vec<QueuedLog>,
}

impl QueueOverview {
    /// What `log` needs and no single worker offers: what the worker lacks that lacks least. `None` if one offers all of it.
    #[must_use]
    pub fn missing(&self, log: &QueuedLog) -> Option<Features> {
        let lacking = self.workers.iter().map(|worker| log.needs.missing_in(&worker.info.offers));
        let least =
            lacking.min_by_key(|missing| missing.words().count()).unwrap_or_else(|| log.needs.clone());
        (!least.is_empty()).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(offers: &str) -> SeenWorker {
        let info = WorkerInfo { offers: Features::parse(offers).unwrap(), ..WorkerInfo::default() };
        let (process, version) = ("process 1 on a".into(), "1".into());
        SeenWorker { process, version, info, seen: Duration::ZERO, held: 0 }
    }

    #[test]
    fn what_no_worker_offers_is_missing() {
        let log = |needs: &str| QueuedLog {
            id: LogId::new("a").unwrap(),
            state: QueueState::Ready,
            overdue_ms: Some(1),
            holder: None,
            needs: Features::parse(needs).unwrap(),
            tries: 0,
            takeovers: 0,
            why: None,
        };
        let none = QueueOverview::default();
        let some = QueueOverview { workers: vec![worker("gpu"), worker("browser x")], logs: Vec::new() };
        let missing = |overview: &QueueOverview, needs: &str| {
            overview.missing(&log(needs)).map(|lacks| lacks.to_string())
        };
        assert_eq!(missing(&none, ""), None);
        assert_eq!(missing(&none, "gpu"), Some("gpu".into()));
        assert_eq!(missing(&some, "gpu"), None);
        // No single one has both.
        assert_eq!(missing(&some, "gpu x"), Some("x".into()));
        assert_eq!(missing(&some, "big gpu"), Some("big".into()));
    }

    #[test]
    fn each_state_is_a_word() {
        for word in ["timed", "ready", "held", "lost", "parked"] {
            assert_eq!(QueueState::of(word).map(QueueState::as_str), Some(word));
        }
        assert_eq!(QueueState::of("idle"), None);
    }
}
