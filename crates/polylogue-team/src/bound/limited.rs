//! Amounts within the limits of the run, of its outermost chat, and of agents.

use std::collections::BTreeMap;

use polylogue::Limits;
use polylogue_core::Allowance;

use super::amount::{Amount, Sum};
use crate::team::Team;

/// Which limits of the run or of its outermost chat an amount reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AtLimit {
    pub(super) cost: bool,
    pub(super) tokens: bool,
}

/// The limits within which a run stays.
pub(super) struct Limited<'l> {
    run: &'l Limits,
    /// Those of the outermost chat: all that happens is within it.
    chat: Allowance,
    /// Those of agents, by name.
    agents: BTreeMap<String, Allowance>,
}

impl<'l> Limited<'l> {
    pub(super) fn of(team: &Team, run: &'l Limits) -> Self {
        let agents = team.agent_limits().into_iter().map(|(name, own)| (name.to_string(), own));
        let chat = team.chat.limits.allowance().unwrap_or_default();
        Self { run, chat, agents: agents.collect() }
    }

    /// The most model calls.
    pub(super) fn calls(&self) -> u128 {
        self.chat.calls.into_iter().fold(self.run.max_calls(), u64::min).into()
    }

    /// `amount` within the limits on tokens and money of the run.
    pub(super) fn of_run(&self, amount: Amount) -> Amount {
        amount.within(self.run.tokens, self.run.cost).within(self.chat.tokens, self.chat.cost)
    }

    /// The limits that `amount`, of a whole run, reaches.
    pub(super) fn reached(&self, amount: &Amount) -> AtLimit {
        let cost = self.run.cost.into_iter().chain(self.chat.cost).min();
        let tokens = self.run.tokens.into_iter().chain(self.chat.tokens).min();
        AtLimit {
            cost: cost.is_some_and(|cost| amount.money() >= u128::from(cost.picodollars)),
            tokens: tokens.is_some_and(|tokens| amount.tokens >= u128::from(tokens)),
        }
    }

    /// `amount`, the total of `sum` in a run, within the limits of `agent`.
    pub(super) fn of_agent(&self, amount: Amount, sum: Sum, agent: &str) -> Amount {
        let Some(own) = self.agents.get(agent) else { return amount };
        let fewest = own.calls.map_or(amount, |calls| amount.min(sum.within(calls.into())));
        fewest.within_own(own)
    }

    /// The `whole` run, no more than its `parts`: what each agent takes in each chat. That is less where agents have limits.
    pub(super) fn of_parts<'p>(
        &self,
        whole: Amount,
        parts: impl Iterator<Item = (&'p str, Amount)>,
    ) -> Amount {
        if self.agents.is_empty() {
            return whole;
        }
        let mut by_agent: BTreeMap<&str, Amount> = BTreeMap::new();
        for (agent, part) in parts {
            let sum = by_agent.entry(agent).or_default();
            *sum = sum.plus(part);
        }
        let limited = |(agent, sum): (&str, Amount)| match self.agents.get(agent) {
            Some(own) => sum.within_own(own),
            None => sum,
        };
        whole.min(by_agent.into_iter().map(limited).fold(Amount::default(), Amount::plus))
    }
}
