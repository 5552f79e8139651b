//! Participants that join during a chat.

use polylogue::policies::with_late_joiner;
use polylogue::{Policy, Result};
use polylogue_config::{At, Config, NewName};
use polylogue_core::{JoinHistory, Name};

use crate::stop::{self, Stop};
use crate::text::{ConditionText, Listed};

/// A participant that joins during a chat.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "LateJoiner")]
pub struct LateJoiner {
    /// Agent, chat or team that joins. It must not be in `participants`.
    #[key(as = At<NewName<Listed>>)]
    pub who: At<Name>,
    /// Condition under which the participant joins: CEL, or a mapping like `stop`.
    pub when: JoinCondition,
    /// Earlier messages that the participant sees.
    #[key(as = LateHistory, default = JoinHistory::All)]
    pub history: JoinHistory,
}

/// Condition under which a participant joins.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(by_shape)]
pub enum JoinCondition {
    /// A condition in CEL.
    #[key(as = ConditionText)]
    Holds(String),
    /// A mapping like `stop` of a chat.
    Stop(Box<Stop>),
}

/// Earlier messages that a late joiner sees.
#[derive(Config)]
#[config(name = "LateHistory", for = JoinHistory)]
enum LateHistory {
    /// All earlier messages.
    All,
    /// No earlier messages.
    New,
}

impl LateJoiner {
    /// `policy`, with the participant from the time on at which the condition holds.
    pub(super) fn build(&self, policy: Box<dyn Policy>) -> Result<Box<dyn Policy>> {
        let when = match &self.when {
            JoinCondition::Holds(text) => Some(stop::condition(text)?),
            JoinCondition::Stop(stop) => stop.build()?,
        };
        Ok(match when {
            Some(when) => Box::new(with_late_joiner(policy, self.who.value.clone(), when, self.history)),
            None => policy,
        })
    }
}
