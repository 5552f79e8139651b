//! How large requests can be after a number of calls.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::Name;

use super::amount::{Amount, NO_LIMIT, Sum};
use super::case::Case;
use super::paths::Order;
use super::scene::Free;
use super::speaker::Speaker;
use super::walk::Walk;
use crate::agent::Agent;
use crate::pattern::Pattern;
use crate::team::Team;

/// Ranges of calls that are computed by the last one of each.
const RANGES: u128 = 125;

/// How large the requests of a run can be after a number of calls: the history that they share is what these calls added, and what was
/// added without any.
pub(super) struct Reach {
    case: Case,
    /// Bytes of histories that take no call: the opening, names, and prompts.
    first: u128,
    /// The same of turns of people and programs: in all, and before each call.
    turns: u128,
    each: u128,
}

impl Reach {
    /// Of a run of `team` after `walk`. Only for a team that is one chat, in which each message is in a history once.
    pub(super) fn of(team: &Team, walk: &Walk<'_>) -> Option<Self> {
        let Free { prompts, turns, turn } = walk.free;
        let first = walk.opening.unwrap_or_default().saturating_add(prompts);
        let each = most_silent(team).map_or(NO_LIMIT, |count| turn.saturating_mul(count));
        is_plain(team).then_some(Self { case: walk.case, first, turns, each })
    }

    /// The total of `sum` when no more than `calls` calls are made, with requests of any of `speakers` and histories that grow as those of
    /// the `whole` run.
    pub(super) fn within<'s>(
        &self,
        sum: Sum,
        whole: Sum,
        calls: u128,
        speakers: &(impl Iterator<Item = &'s Speaker> + Clone),
    ) -> Amount {
        let range = calls.div_ceil(RANGES).max(1);
        let (mut total, mut done) = (Amount::default(), 0);
        while done < calls {
            let count = range.min(calls - done);
            done += count;
            let said = self.turns.min(self.each.saturating_mul(done));
            let history =
                self.first.saturating_add(said).saturating_add(whole.growth.saturating_mul(done - 1));
            let context = history.saturating_add(whole.base);
            let mut all = speakers.clone().map(|speaker| speaker.call_before_compaction(self.case, context));
            // Where a history may have been compacted, the largest call is all that is known.
            let call = all.try_fold(Amount::default(), |most, call| Some(most.max(call?)));
            total = total.plus(call.map_or(sum.largest, |call| call.min(sum.largest)).times(count));
        }
        // What tools spend does not depend on the length of requests.
        sum.within(calls).min(Amount { calls, tools: NO_LIMIT, ..total })
    }
}

/// Whether all calls of the team are turns of one chat, without agents that repeat what others say.
fn is_plain(team: &Team) -> bool {
    let is_plain = |agent: &Agent| {
        let keys = agent.model();
        agent.nested_chats.is_empty()
            && agent.runs_output_blocks.is_none()
            && agent.memory().is_none()
            && keys.is_none_or(|keys| keys.agent_tools.is_empty() && keys.reasoning.is_none())
    };
    let is_turns = match &team.chat.pattern {
        Pattern::RoundRobin
        | Pattern::Sequential
        | Pattern::Parallel
        | Pattern::Group(_)
        | Pattern::StateMachine(_)
        | Pattern::Handoffs(_)
        | Pattern::Graph(_)
        | Pattern::Dag(_) => true,
        // A critic reads each proposal several times.
        Pattern::RolePlay(role_play) => role_play.critic.is_none(),
        _ => false,
    };
    is_turns && team.chats.is_empty() && team.teams.is_empty() && team.agents.iter().all(is_plain)
}

/// The most turns in a row that take no model call, if that is known from the order of the participants.
fn most_silent(team: &Team) -> Option<u128> {
    let chat = &team.chat;
    if !chat.late_joiners.is_empty() || !chat.background.participants.is_empty() {
        return None;
    }
    let next: BTreeMap<&Name, Vec<&Name>> = match &chat.pattern {
        Pattern::RoundRobin => {
            let everyone = || chat.everyone().map(|name| &name.value);
            everyone().zip(everyone().cycle().skip(1)).map(|(who, then)| (who, vec![then])).collect()
        }
        Pattern::StateMachine(states) => {
            states.after.iter().map(|(who, then)| (&who.value, then.targets())).collect()
        }
        _ => {
            let order = Order::of(team, chat)?;
            let names = chat.everyone().map(|name| &name.value);
            names.map(|who| (who, order.after(0, who))).collect()
        }
    };
    let is_silent = |who: &Name| {
        let agent = team.agents.iter().find(|agent| agent.name == *who);
        !agent.is_some_and(|agent| agent.model().is_some() && !agent.is_layered())
    };
    let names = chat.everyone().map(|name| &name.value);
    let mut silent: BTreeSet<&Name> = names.filter(|who| is_silent(who)).collect();
    // Each round ends with those that no silent one follows any more; a circle of them has no end.
    for rounds in 0..=silent.len() as u128 {
        if silent.is_empty() {
            return Some(rounds);
        }
        let leads =
            |who: &&Name| next.get(who).is_some_and(|then| then.iter().any(|then| silent.contains(then)));
        silent = silent.iter().copied().filter(leads).collect();
    }
    None
}
