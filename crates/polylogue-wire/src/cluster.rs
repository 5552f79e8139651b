//! What workers run, and what waits for them.

use polylogue_core::{LogId, Money, QueueState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue of a store at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// The workers that were seen lately.
    pub workers: Vec<Worker>,
    /// The budgets that processes share.
    pub budgets: Vec<Budget>,
    /// The limits of model servers that processes share: first those for which a call waits longest.
    pub rate_limits: Vec<RateLimit>,
    /// The first conversations that are not idle: lost ones first, then parked, ready, held and timed ones.
    pub conversations: Vec<Queued>,
    /// Counts of conversations by state, of all that are not idle.
    pub counts: Counts,
    /// The seconds that the conversation has waited that waits longest for a worker.
    pub overdue_seconds: f64,
    /// How often those that are not idle were taken over from a worker that was lost.
    pub takeovers: u64,
    /// How many events the store lacks that it had acknowledged, because its database failed over to a copy without them.
    pub lost_events: u64,
}

/// Counts of conversations by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Conversations whose processes have died or hang.
    pub lost: u64,
    /// Conversations that failed repeatedly.
    pub parked: u64,
    /// Conversations that wait for a worker.
    pub ready: u64,
    /// Conversations that a process runs.
    pub held: u64,
    /// Conversations that continue later.
    pub timed: u64,
}

impl Counts {
    /// Counts the conversations in each state.
    pub const fn of(&self, state: QueueState) -> u64 {
        match state {
            QueueState::Lost => self.lost,
            QueueState::Parked => self.parked,
            QueueState::Ready => self.ready,
            QueueState::Held => self.held,
            QueueState::Timed => self.timed,
        }
    }

    /// Returns the sum of all.
    pub fn all(&self) -> u64 {
        // A server can send any numbers.
        QueueState::ALL.into_iter().map(|state| self.of(state)).fold(0, u64::saturating_add)
    }
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// The process, and its machine.
    pub worker: String,
    /// The version of Polylogue.
    pub version: String,
    /// The number of conversations that it runs.
    pub held: u64,
    /// The maximum number of conversations that it runs.
    pub at_once: u64,
    /// The features that it offers to conversations.
    pub offers: Vec<String>,
    /// The address at which others reach it; a server shows it to no client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The milliseconds since its last heartbeat.
    pub seen_ms: u64,
}

/// A budget that processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// The name.
    pub budget: String,
    /// The limits.
    pub limits: Limits,
    /// The usage, as far as it was reported.
    pub used: Usage,
    /// The amount that processes have drawn for their next calls.
    pub drawn: Usage,
    /// The number of processes that have drawn.
    pub processes: u64,
    /// The number of conversations that it has paid for.
    pub conversations: u64,
}

/// The limits of a budget; `None`: without a bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The limit on model calls.
    pub calls: Option<u64>,
    /// The limit on tokens.
    pub tokens: Option<u64>,
    /// The limit on money.
    pub cost: Option<Money>,
}

/// Limits that processes share of the models of one name of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateLimit {
    /// The provider.
    pub provider: String,
    /// The model; empty for all of the provider.
    pub model: String,
    /// For how many milliseconds the next call must wait.
    pub wait_ms: u64,
    /// How many requests were begun.
    pub requests: u64,
    /// How often the provider has asked to wait.
    pub refusals: u64,
    /// How many calls may be in flight; 0: without such a limit.
    pub slots: u64,
    /// How many of them are.
    pub slots_taken: u64,
}

/// Calls, tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Model calls.
    pub calls: u64,
    /// Tokens of input and output.
    pub tokens: u64,
    /// Money.
    pub cost: Money,
}

/// A conversation that is not idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    /// The id.
    pub id: LogId,
    /// The state in the queue.
    pub state: QueueState,
    /// The milliseconds for which it has been due; negative if it is due later; `None` if it is not due by time.
    pub overdue_ms: Option<i64>,
    /// The process that runs it, or ran it last.
    pub holder: Option<String>,
    /// The features that it needs of a worker.
    pub needs: Vec<String>,
    /// The features that it needs and no worker offers, if it waits for a worker.
    pub missing: Vec<String>,
    /// How often it was claimed without progress.
    pub tries: u64,
    /// How often it was taken over from a worker that was lost.
    pub takeovers: u64,
    /// Why its last try failed.
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_counts_have_a_sum() {
        let counts = Counts { lost: 1, parked: 2, ready: 3, held: 4, timed: 5 };
        assert_eq!(counts.all(), 15);
        assert_eq!(Counts { held: u64::MAX, ..counts }.all(), u64::MAX);
    }
}
