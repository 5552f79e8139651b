//! What happens at a limit of a whole run: the run ends, or a person is asked to raise it.

use serde::{Deserialize, Serialize};

use super::Allowance;

/// The behavior when a limit of the whole run is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// The run ends.
    #[default]
    Stop,
    /// A person is asked to raise the limit. The run waits for the answer; every answer but yes or an amount ends it.
    Ask,
}

/// The terms on which people are asked to raise limits: how far, and how long. Default: without a ceiling, until they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RaiseTerms {
    /// Totals above which no answer raises a limit: at them the run ends without a question.
    pub ceiling: Allowance,
    /// The time in milliseconds after which no answer counts as no.
    pub timeout_ms: Option<u64>,
}
