//! Who chooses among proposals.

use std::sync::Arc;

use polylogue_core::Agent;

use super::casting::Casting;
use super::prompts;
use crate::Assistant;
use crate::reason::Best;

/// Who chooses among several proposals for each message of a [`Society`](super::Society), and by what.
///
/// A role is asked for every proposal by itself, so that it needs no provider that gives several. The first whole number in the
/// critic's answer is its choice; an answer that names none of the options is asked for again, and in the end the first option is
/// taken. Blank proposals are none, and of one nobody is asked. Each role has its critic: it remembers what it chose for
/// that role.
#[derive(Debug, Clone)]
pub struct Critic {
    agent: Assistant,
    options: usize,
    criteria: Arc<str>,
    retries: u32,
}

impl Critic {
    /// By what it chooses, unless it is told otherwise: CAMEL's criterion, in other words.
    pub const DEFAULT_CRITERIA: &'static str = "which of them brings the task forward most";

    /// A critic who chooses among so many options, at least 1.
    #[must_use]
    pub fn new(agent: Assistant, options: usize) -> Self {
        let criteria = Self::DEFAULT_CRITERIA.into();
        Self { agent, options: options.max(1), criteria, retries: Best::DEFAULT_RETRIES }
    }

    /// Sets by what it chooses.
    #[must_use]
    pub fn criteria(self, criteria: impl Into<Arc<str>>) -> Self {
        Self { criteria: criteria.into(), ..self }
    }

    /// Sets how often it is asked again when it chooses nothing.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    pub(super) fn with(self, change: impl FnOnce(Assistant) -> Assistant) -> Self {
        Self { agent: change(self.agent), ..self }
    }

    pub(super) const fn agent(&self) -> &Assistant {
        &self.agent
    }

    /// Whether there is anything to choose.
    pub(super) const fn chooses(&self) -> bool {
        self.options > 1
    }

    /// The rules it goes by.
    pub(super) fn rules(&self, casting: &Casting<'_>) -> String {
        prompts::critic(casting, &self.criteria)
    }

    /// The best of what `proposer` says, by a critic with this system text.
    pub(super) fn best(&self, proposer: Assistant, system: String) -> impl Agent + use<> {
        Best::of(self.options, proposer, self.agent.clone().system(system)).retries(self.retries)
    }
}
