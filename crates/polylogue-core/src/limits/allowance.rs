//! Limits of one agent or one chat within a run.

use crate::Money;

/// Limits of one agent or one chat, next to those of the whole run: a call is sent only if it fits into all of them.
/// Default: no limit.
///
/// ```
/// # use polylogue_core::{Allowance, Log, Money, Name};
/// let cheap = Allowance { cost: Some(Money::dollars(0.10)), ..Allowance::default() };
/// let log = Log::in_memory().agent_limits([(Name::new("Ann")?, cheap)]);
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Model calls.
    pub calls: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
    /// Running time in milliseconds: of an agent, that of its turns; of a chat, the time in which it is open. The time in
    /// which people are waited for does not count.
    pub time_ms: Option<u64>,
}

impl From<Money> for Allowance {
    /// A limit on money alone.
    fn from(cost: Money) -> Self {
        Self { cost: Some(cost), ..Self::default() }
    }
}
