//! The parts of participants that can have only so many of the turns of their chat.

use std::collections::BTreeMap;

use polylogue::{Name, Result};

use super::amount::{Amount, NO_LIMIT};
use super::walk::Walk;
use crate::agent::Agent;
use crate::build::AgentBuilder;

/// The parts of the participants of one chat, while it is walked through.
pub(super) struct Parts<'c> {
    chat: String,
    /// What each took before, and what its most expensive turn takes.
    of: BTreeMap<&'c Name, (Amount, Amount)>,
    /// The most turns of each.
    pub(super) turns: BTreeMap<&'c Name, u128>,
}

impl<'c> Parts<'c> {
    /// Those of `chat`, before its first turn.
    pub(super) fn new(chat: &str) -> Self {
        Self { chat: chat.to_owned(), of: BTreeMap::new(), turns: BTreeMap::new() }
    }
}

/// The most of both, for each participant.
pub(super) fn most_of<'c>(one: &mut BTreeMap<&'c Name, u128>, other: &BTreeMap<&'c Name, u128>) {
    for (who, count) in other {
        let most = one.entry(*who).or_default();
        *most = (*most).max(*count);
    }
}

impl Walk<'_> {
    fn part(&self, chat: &str, who: &Name) -> Amount {
        let key = (chat.to_owned(), who.to_string());
        self.rows.get(&key).map(|row| row.total).unwrap_or_default()
    }

    /// Does `act`, one turn of any of `names`, and notes what it takes of their parts.
    pub(super) fn measured<'c>(
        &mut self,
        parts: &mut Parts<'c>,
        names: &[&'c Name],
        act: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let before: Vec<Amount> = names.iter().map(|who| self.part(&parts.chat, who)).collect();
        act(self)?;
        for (who, before) in names.iter().zip(before) {
            let took = self.part(&parts.chat, who).less(before);
            let (_, most) = parts.of.entry(*who).or_insert((before, Amount::default()));
            *most = most.max(took);
        }
        Ok(())
    }

    /// Limits the parts of participants to the turns that each can have.
    pub(super) fn limit(&mut self, builder: &AgentBuilder<'_>, parts: Parts<'_>) {
        // One that is asked by others has more than its own turns.
        if !builder.team.agents.iter().all(asks_no_one) {
            return;
        }
        for (who, (begun, most)) in parts.of {
            let turns = parts.turns.get(who).copied().unwrap_or(NO_LIMIT);
            if let Some(row) = self.rows.get_mut(&(parts.chat.clone(), who.to_string())) {
                row.total = row.total.min(begun.plus(most.times(turns)));
            }
        }
    }
}

/// Whether `agent` asks no other one within its turns.
fn asks_no_one(agent: &Agent) -> bool {
    agent.model().is_none_or(|keys| keys.agent_tools.is_empty() && keys.reasoning.is_none())
}
