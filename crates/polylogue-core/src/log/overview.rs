//! What a queue looks like from outside: who works on it, and what waits.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::due::ParkedLog;
use super::features::Features;
use crate::LogId;

/// The description of a worker in the overview of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerInfo {
    /// The features that it offers.
    pub offers: Features,
    /// The number of logs that it runs at the same time.
    pub at_once: u64,
    /// The address at which others reach it over HTTP; `None` if they cannot.
    pub address: Option<String>,
}

/// A worker that was seen lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWorker {
    /// The process, as [`StoreError::Busy`](crate::StoreError::Busy) names it.
    pub process: String,
    /// The version of Polylogue.
    pub version: String,
    /// The description of the worker.
    pub info: WorkerInfo,
    /// The time since its last heartbeat.
    pub seen: Duration,
    /// The number of logs that it holds.
    pub held: u64,
}

/// The state of a log in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    /// All states, in the order in which they are listed: what needs a person first.
    pub const ALL: [Self; 5] = [Self::Lost, Self::Parked, Self::Ready, Self::Held, Self::Timed];

    /// Returns the state as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Ready => "ready",
            Self::Held => "held",
            Self::Lost => "lost",
            Self::Parked => "parked",
        }
    }

    /// Returns the state that [`as_str`](Self::as_str) returns this word for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A log that is not idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedLog {
    /// The id of the log.
    pub id: LogId,
    /// The state of the log.
    pub state: QueueState,
    /// The time for which it has been due, in milliseconds; negative if it is due later. `None` if it is not due by time.
    pub overdue_ms: Option<i64>,
    /// The process that holds the log, or held it last.
    pub holder: Option<String>,
    /// The features that it needs of a worker.
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

/// Counts of logs by state, for monitoring.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueFigures {
    /// The number of logs in each state, for those that are not idle.
    pub logs: Vec<(QueueState, u64)>,
    /// The number of those whose last try failed, or that the last worker left to others, in each state: [`QueuedLog::why`] says why.
    pub failing: Vec<(QueueState, u64)>,
    /// For how many seconds the first of those has waited that are ready, or whose worker is lost.
    pub overdue_seconds: f64,
    /// How often those that are not idle were taken over from a worker that was lost.
    pub takeovers: u64,
    /// How many events the store lacks that it had acknowledged to processes, because its database failed over to a copy without them. Of all
    /// logs.
    pub lost_events: u64,
    /// How many wait for a worker now, by what they need of it.
    pub waiting: Vec<(Features, u64)>,
}

impl QueueFigures {
    /// Counts a log.
    pub fn add(&mut self, log: &QueuedLog) {
        add_to(&mut self.logs, log.state);
        if log.why.is_some() {
            add_to(&mut self.failing, log.state);
        }
        self.takeovers += log.takeovers;
        let waits = matches!(log.state, QueueState::Ready | QueueState::Lost);
        let waited = log.overdue_ms.filter(|_| waits).and_then(|ms| u64::try_from(ms).ok());
        let Some(waited) = waited else { return };
        self.overdue_seconds = self.overdue_seconds.max(Duration::from_millis(waited).as_secs_f64());
        match self.waiting.iter_mut().find(|(needs, _)| *needs == log.needs) {
            Some((_, count)) => *count += 1,
            None => self.waiting.push((log.needs.clone(), 1)),
        }
    }

    /// Returns how many logs are in this state.
    pub fn count(&self, state: QueueState) -> u64 {
        count_of(&self.logs, state)
    }

    /// Returns how many logs in this state could not be run when they were tried last.
    pub fn count_failing(&self, state: QueueState) -> u64 {
        count_of(&self.failing, state)
    }

    /// Returns how many logs are not idle.
    pub fn all(&self) -> u64 {
        self.logs.iter().map(|(_, count)| *count).sum()
    }
}

fn add_to(counts: &mut Vec<(QueueState, u64)>, state: QueueState) {
    match counts.iter_mut().find(|(of, _)| *of == state) {
        Some((_, count)) => *count += 1,
        None => counts.push((state, 1)),
    }
}

fn count_of(counts: &[(QueueState, u64)], state: QueueState) -> u64 {
    counts.iter().filter(|(of, _)| *of == state).map(|(_, count)| *count).sum()
}

/// Workers and logs of a queue, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueOverview {
    /// The workers that were seen lately.
    pub workers: Vec<SeenWorker>,
    /// The first logs that are not idle, by [state](QueueState::ALL): of each state those that have waited longest first.
    pub logs: Vec<QueuedLog>,
    /// Counts of all logs that are not idle.
    pub figures: QueueFigures,
}

impl QueueOverview {
    /// Creates the overview of all logs that are not idle, in the order of their waits: the first `most` of them are listed,
    /// and all are counted.
    pub fn of_logs(logs: impl IntoIterator<Item = QueuedLog>, most: usize) -> Self {
        let mut figures = QueueFigures::default();
        let mut of_states: [Vec<QueuedLog>; QueueState::ALL.len()] = Default::default();
        for log in logs {
            figures.add(&log);
            let of_state =
                QueueState::ALL.into_iter().zip(&mut of_states).find(|(state, _)| *state == log.state);
            if let Some((_, of_state)) = of_state.filter(|(_, of_state)| of_state.len() < most) {
                of_state.push(log);
            }
        }
        let logs = of_states.into_iter().flatten().take(most).collect();
        Self { workers: Vec::new(), logs, figures }
    }
}

impl QueueOverview {
    /// Returns what `log` needs and no single worker offers: what the worker lacks that lacks least. `None` if one offers all
    /// of it.
    pub fn missing(&self, log: &QueuedLog) -> Option<Features> {
        self.missing_of(&log.needs)
    }

    /// Returns the same as [`missing`](Self::missing) for a log that `needs` these features.
    pub fn missing_of(&self, needs: &Features) -> Option<Features> {
        let lacking = self.workers.iter().map(|worker| needs.difference(&worker.info.offers));
        let least = lacking.min_by_key(|missing| missing.words().count()).unwrap_or_else(|| needs.clone());
        (!least.is_empty()).then_some(least)
    }

    /// How many logs wait for a worker though none offers what they need, by that. Without any worker, all that wait.
    pub fn unserved(&self) -> impl Iterator<Item = (&Features, u64)> {
        let waiting = self.figures.waiting.iter();
        let unserved =
            waiting.filter(move |(needs, _)| self.workers.is_empty() || self.missing_of(needs).is_some());
        unserved.map(|(needs, count)| (needs, *count))
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
        let workers = vec![worker("gpu"), worker("browser x")];
        let some = QueueOverview { workers, ..QueueOverview::default() };
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
    fn what_waits_and_is_served_by_no_worker_is_counted_by_its_needs() {
        let log = |needs: &str, state, overdue_ms| QueuedLog {
            id: LogId::new("a").unwrap(),
            state,
            overdue_ms,
            holder: None,
            needs: Features::parse(needs).unwrap(),
            tries: 0,
            takeovers: 0,
            why: None,
        };
        let logs = [
            log("", QueueState::Ready, Some(1)),
            log("gpu", QueueState::Ready, Some(1)),
            log("gpu", QueueState::Lost, Some(1)),
            log("big", QueueState::Lost, Some(1)),
            // No worker looks at these.
            log("gpu", QueueState::Lost, None),
            log("gpu", QueueState::Timed, Some(-1)),
            log("gpu", QueueState::Held, Some(1)),
        ];
        let unserved = |workers: &[&str]| {
            let workers = workers.iter().map(|offers| worker(offers)).collect();
            let overview = QueueOverview { workers, ..QueueOverview::of_logs(logs.clone(), 0) };
            overview.unserved().map(|(needs, count)| format!("{needs} {count}")).collect::<Vec<_>>()
        };
        assert_eq!(unserved(&[]), [" 1", "gpu 2", "big 1"]);
        assert_eq!(unserved(&["browser"]), ["gpu 2", "big 1"]);
        assert_eq!(unserved(&["browser", "gpu"]), ["big 1"]);
        assert_eq!(unserved(&["big gpu"]), [""; 0]);
    }

    #[test]
    fn each_state_is_a_word() {
        for word in ["timed", "ready", "held", "lost", "parked"] {
            assert_eq!(QueueState::of(word).map(QueueState::as_str), Some(word));
        }
        assert_eq!(QueueState::of("idle"), None);
    }

    #[test]
    fn what_needs_a_person_is_listed_first_and_all_are_counted() {
        let log = |id: &str, state, overdue_ms| QueuedLog {
            id: LogId::new(id).unwrap(),
            state,
            overdue_ms,
            holder: None,
            needs: Features::none(),
            tries: 0,
            takeovers: 1,
            why: (state == QueueState::Parked || id == "ready-1").then(|| "no key".into()),
        };
        let logs = [
            log("timed", QueueState::Timed, Some(-5)),
            log("held", QueueState::Held, Some(90_000)),
            log("ready-1", QueueState::Ready, Some(3000)),
            log("parked", QueueState::Parked, None),
            log("ready-2", QueueState::Ready, Some(2000)),
            log("lost", QueueState::Lost, None),
        ];
        let listed = |most| -> Vec<String> {
            let overview = QueueOverview::of_logs(logs.clone(), most);
            assert_eq!((overview.figures.all(), overview.figures.count(QueueState::Ready)), (6, 2));
            assert_eq!((overview.figures.overdue_seconds, overview.figures.takeovers), (3.0, 6));
            let failing = QueueState::ALL.map(|state| overview.figures.count_failing(state));
            assert_eq!(failing, [0, 1, 1, 0, 0], "lost, parked, ready, held, timed");
            overview.logs.iter().map(|log| log.id.to_string()).collect()
        };
        assert_eq!(listed(0), [""; 0]);
        assert_eq!(listed(3), ["lost", "parked", "ready-1"]);
        assert_eq!(listed(100), ["lost", "parked", "ready-1", "ready-2", "held", "timed"]);
    }
}
