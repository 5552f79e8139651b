//! Output limits of model calls that were lowered to what was left.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::stop_reason::StopReason;

/// A model call whose output limit was lowered, because the longest reply would not have fit into what was left of a limit on
/// tokens or money. A reply that this cuts off ends the run at that limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputLimit {
    /// The agent that asks.
    pub who: Name,
    /// The model, as `provider:model`.
    pub model: Arc<str>,
    /// The most tokens of the reply, reasoning included.
    pub tokens: u64,
    /// The limit, with what of it was used, and what the call could have taken without this.
    pub of: StopReason,
}

impl fmt::Display for OutputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens: no more is left of ", self.tokens)?;
        limit(&self.of, f)
    }
}

fn limit(reason: &StopReason, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match reason {
        StopReason::Tokens { limit, .. } => write!(f, "the limit of {limit} tokens"),
        StopReason::Cost { limit, .. } => write!(f, "the limit of {limit}"),
        StopReason::Allowance { of, limit: reached } => {
            limit(reached, f)?;
            write!(f, " of {of}")
        }
        other => write!(f, "{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllowanceOwner, Money};

    #[test]
    fn the_limit_is_named_with_its_owner() {
        let cost = StopReason::Cost {
            limit: Money::dollars(0.5),
            spent: Money::dollars(0.4),
            next: Some(Money::dollars(0.2)),
            cut: None,
        };
        let owner = AllowanceOwner::Agent(Name::new("Ann").unwrap());
        let of = StopReason::Allowance { of: owner, limit: Box::new(cost) };
        let who = Name::new("Ann").unwrap();
        let limit = OutputLimit { who, model: "test:m".into(), tokens: 312, of };
        assert_eq!(limit.to_string(), "312 tokens: no more is left of the limit of $0.50 of the agent `Ann`");
    }
}
