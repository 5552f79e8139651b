//! What workers run, and what waits for them.

use polylogue_core::{LogId, Money, QueueState};
use serde::{Deserialize, Serialize};

/// The queue of a store at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// The workers that were seen lately.
    pub workers: Vec<Worker>,
    /// The budgets that processes share.
    pub budgets: Vec<Budget>,
    /// The first conversations that are not idle: lost ones first, then parked, ready, held and timed ones.
    pub conversations: Vec<Queued>,
    /// How many conversations are in which state, of all that are not idle.
    pub counts: Counts,
    /// For how many seconds the conversation has waited that waits longest for a worker.
    pub overdue_seconds: f64,
    /// How often those that are not idle were taken over from a worker that was lost.
    pub takeovers: u64,
    /// How many events the store lacks that it had acknowledged, because its database failed over to a copy without them.
    pub lost_events: u64,
}

/// How many conversations are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Their processes have died or hang.
    pub lost: u64,
    /// They failed repeatedly.
    pub parked: u64,
    /// They wait for a worker.
    pub ready: u64,
    /// A process runs them.
    pub held: u64,
    /// They continue later.
    pub timed: u64,
}

impl Counts {
    /// How many are in each state.
    #[must_use]
    pub const fn of(&self, state: QueueState) -> u64 {
        match state {
            QueueState::Lost => self.lost,
            QueueState::Parked => self.parked,
            QueueState::Ready => self.ready,
            QueueState::Held => self.held,
            QueueState::Timed => self.timed,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn all(&self) -> u64 {
        QueueState::ALL.into_iter().map(|state| self.of(state)).sum()
    }
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The process, and its machine.
    pub worker: String,
    /// Its version of Polylogue.
    pub version: String,
    /// How many conversations it runs.
    pub held: u64,
    /// How many it runs at most.
    pub at_once: u64,
    /// What it has that conversations may need.
    pub offers: Vec<String>,
    /// Where others reach it; a server tells it to no client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How long ago its last heartbeat was.
    pub seen_ms: u64,
}

/// A budget that processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Its name.
    pub budget: String,
    /// What it allows.
    pub limits: Limits,
    /// What was used of it, as far as it was reported.
    pub used: Usage,
    /// What processes have drawn for their next calls.
    pub drawn: Usage,
    /// How many processes have drawn.
    pub processes: u64,
    /// For how many conversations it has paid.
    pub conversations: u64,
}

/// The limits of a budget; `None`: without a bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Of model calls.
    pub calls: Option<u64>,
    /// Of tokens.
    pub tokens: Option<u64>,
    /// Of money.
    pub cost: Option<Money>,
}

/// Calls, tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Model calls.
    pub calls: u64,
    /// Tokens of input and output.
    pub tokens: u64,
    /// Money.
    pub cost: Money,
}

/// A conversation that is not idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// Its id.
    pub id: LogId,
    /// Where it is.
    #[serde(with = "state")]
    pub state: QueueState,
    /// How long it has been due; negative if it is due later; `None` if it is not due by time.
    pub overdue_ms: Option<i64>,
    /// The process that runs it, or ran it last.
    pub holder: Option<String>,
    /// What it needs of a worker.
    pub needs: Vec<String>,
    /// What it needs and no worker offers, if it waits for a worker.
    pub missing: Vec<String>,
    /// How often it was claimed without progress.
    pub tries: u64,
    /// How often it was taken over from a worker that was lost.
    pub takeovers: u64,
    /// Why its last try failed.
    pub why: Option<String>,
}

/// The state as its word.
mod state {
    use polylogue_core::QueueState;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    // By reference, as serde calls it.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(super) fn serialize<S: Serializer>(state: &QueueState, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(state.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<QueueState, D::Error> {
        let word = String::deserialize(deserializer)?;
        QueueState::of(&word).ok_or_else(|| D::Error::custom(format!("`{word}` is no state of a queue")))
    }
}
