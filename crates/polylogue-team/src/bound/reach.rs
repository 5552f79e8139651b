//! How large requests can be after a number of calls.

use super::amount::{Amount, Sum};
use super::case::Case;
use super::speaker::Speaker;
use super::walk::Walk;
use crate::agent::Agent;
use crate::team::Team;

/// Ranges of calls that are computed by the last one of each.
const RANGES: u128 = 125;

/// How large the requests of a run can be after a number of calls: the history that they share is what these calls added, and what was
/// added without any.
pub(super) struct Reach {
    case: Case,
    /// Bytes of histories that take no call: the opening, names, and what people and programs say.
    first: u128,
}

impl Reach {
    /// Of a run of `team` after `walk`. Only for a team that is one chat, in which each message is in a history once.
    pub(super) fn of(team: &Team, walk: &Walk<'_>) -> Option<Self> {
        let first = walk.opening.unwrap_or_default().saturating_add(walk.free);
        is_plain(team).then_some(Self { case: walk.case, first })
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
            let history = self.first.saturating_add(whole.growth.saturating_mul(done - 1));
            let context = history.saturating_add(whole.base);
            let mut all = speakers.clone().map(|speaker| speaker.call_before_compaction(self.case, context));
            // Where a history may have been compacted, the largest call is all that is known.
            let call = all.try_fold(Amount::default(), |most, call| Some(most.max(call?)));
            total = total.plus(call.map_or(sum.largest, |call| call.min(sum.largest)).times(count));
        }
        sum.within(calls).min(Amount { calls, ..total })
    }
}

/// Whether all calls of the team are turns of one chat, without agents that repeat what others say.
fn is_plain(team: &Team) -> bool {
    use crate::pattern::Pattern;
    let is_plain = |agent: &Agent| {
        let keys = agent.model();
        agent.nested_chats.is_empty()
            && agent.runs_output_blocks.is_none()
            && agent.memory().is_none()
            && keys.is_none_or(|keys| keys.agent_tools.is_empty() && keys.reasoning.is_none())
    };
    let is_turns = matches!(
        team.chat.pattern,
        Pattern::RoundRobin
            | Pattern::Sequential
            | Pattern::Parallel
            | Pattern::Group(_)
            | Pattern::StateMachine(_)
            | Pattern::Handoffs(_)
            | Pattern::Graph(_)
            | Pattern::Dag(_)
    );
    is_turns && team.chats.is_empty() && team.teams.is_empty() && team.agents.iter().all(is_plain)
}
