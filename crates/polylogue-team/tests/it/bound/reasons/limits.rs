//! Limits on what a chat or the run can use.

use std::time::Duration;

use polylogue::stop::Counted;
use polylogue_core::{AllowanceOwner, Body, ChargeReason, Event, StopReason};
use polylogue_team::{Pattern, Stop};

use super::{Case, Check, ensure};

impl Case<'_> {
    /// A limit on turns, whose next step would have been one too many, or several.
    pub(super) fn turns(&self, limit: u64, next: Option<u64>) -> Check {
        let of_chat = self.spec.map(|chat| *chat.max_turns);
        let of_pattern = self.spec.and_then(|chat| match &chat.pattern {
            Pattern::Orchestrator(keys) => Some(keys.max_turns),
            _ => None,
        });
        let is_known = [of_chat, of_pattern].contains(&Some(limit));
        ensure(is_known || self.spec.is_none(), "no such limit on turns is set")?;
        let turns = self.talk.public().count() as u64;
        ensure(turns + next.unwrap_or(1) > limit, format!("there are only {turns} turns"))?;
        ensure(turns <= limit, format!("there are {turns} turns"))
    }

    /// The replies and the charges of the whole run are as many as the limit, which the log does not have.
    pub(super) fn calls(&self, limit: u64) -> Check {
        ensure(self.talk.at.is_root(), "it is no limit of an inner chat")?;
        let count = calls_in(self.events.iter().map(|event| &**event));
        ensure(count == limit, format!("there are {count} calls"))
    }

    /// What was used is checked against the usage of the log, and here only that there is such a limit.
    pub(super) fn has_limit_on_usage(&self, reason: &StopReason) -> Check {
        let of_run = self.team.limits.usage;
        let is_set = match reason {
            StopReason::Tokens { limit, .. } => {
                of_run.tokens == Some(*limit) || self.has_stop(&|stop| stop.max_tokens == Some(*limit))
            }
            _ => of_run.cost.is_some() || self.has_stop(&|stop| stop.max_cost.is_some()),
        };
        ensure(is_set, "no such limit is set")
    }

    pub(super) fn time(&self, limit_ms: u64, used_ms: u64) -> Check {
        ensure(self.team.limits.usage.time.is_some(), "no limit on time is set")?;
        ensure(used_ms >= limit_ms, "there was time left")
    }

    /// The time of a chat is not longer than that of its events; that in which people were waited for counts in these.
    pub(super) fn time_of_chat(&self, limit_ms: u64) -> Check {
        let is_set = self.has_stop(&|stop| {
            stop.max_time.is_some_and(|time| Duration::from(time) == Duration::from_millis(limit_ms))
        });
        ensure(is_set, "no such limit is set")?;
        ensure(self.talk.ran_ms >= limit_ms, "there was time left")
    }

    /// A limit on calls of an agent or of a chat. Other limits are in no team that the sweep plays.
    pub(super) fn allowance(&self, of: &AllowanceOwner, limit: &StopReason) -> Check {
        let StopReason::Calls { limit } = limit else { return Err("no team has such a limit".into()) };
        let (set, used) = match of {
            AllowanceOwner::Agent(name) => {
                let agent = self.team.agents.iter().find(|agent| agent.name.value == *name);
                let is_within = |event: &Event| event.chat.to_string().contains(&format!("/{name}."));
                let own = self.events.iter().filter(|event| match &event.body {
                    Body::ModelReplied(reply) => reply.who == *name || is_within(event),
                    Body::Charged(charge) => charge.who == *name || is_within(event),
                    _ => false,
                });
                (agent.and_then(|agent| agent.limits.calls), calls_in(own.map(|event| &**event)))
            }
            AllowanceOwner::Chat { path: at, .. } => {
                let own = self.events.iter().filter(|event| event.chat == *at || event.chat.is_within(at));
                (self.spec.and_then(|chat| chat.limits.calls), calls_in(own.map(|event| &**event)))
            }
            AllowanceOwner::Shared(_) => return Err("it shares no budget".into()),
        };
        ensure(set == Some(*limit), "no such limit is set")?;
        ensure(used >= *limit, format!("there are only {used} calls"))
    }

    pub(super) fn depth(&self, limit: usize) -> Check {
        let deepest = self.events.iter().map(|event| event.chat.depth()).max().unwrap_or_default();
        ensure(deepest == limit, format!("the deepest chat is at {deepest}"))
    }

    /// An expected number of turns or messages, which the step before the last one did not reach.
    pub(super) fn count_reached(&self, count: u64, of: Counted) -> Check {
        let talk = &self.talk;
        let (is_set, now, before) = match of {
            Counted::Turns => {
                let last = talk.public().last().map_or(0, |turn| turn.begin);
                let before = talk.public().filter(|turn| turn.begin < last).count() as u64;
                (self.has_stop(&|stop| stop.max_turns == Some(count)), talk.public().count() as u64, before)
            }
            Counted::Messages => {
                let before = talk.steps.checked_sub(1).map_or(0, |step| talk.count_before(step));
                let is_set = self.has_stop(&|stop| stop.max_messages == Some(count));
                (is_set, talk.count_before(talk.steps), before)
            }
            Counted::Iterations => return self.iterations(count),
            _ => return Err("no check is known for it".into()),
        };
        ensure(is_set, "the team file has no such count")?;
        ensure(now >= count, format!("there are only {now}"))?;
        ensure(before < count, format!("there were {before} before the last step"))
    }

    /// Whether one of the chat's conditions, also one within others, is as wanted.
    pub(super) fn has_stop(&self, is_wanted: &impl Fn(&Stop) -> bool) -> bool {
        fn any(stop: &Stop, is_wanted: &impl Fn(&Stop) -> bool) -> bool {
            let mut within = stop.all.iter().chain(&stop.any);
            is_wanted(stop) || within.any(|stop| any(stop, is_wanted))
        }
        let Some(chat) = self.spec else { return false };
        chat.stop.as_ref().is_some_and(|stop| any(stop, is_wanted))
    }
}

/// Model calls, those included that count at their upper bound.
fn calls_in<'e>(events: impl Iterator<Item = &'e Event>) -> u64 {
    let calls = |event: &Event| match &event.body {
        Body::ModelReplied(reply) => u64::from(!reply.cached),
        Body::Charged(charge) => match charge.why {
            ChargeReason::Repeated | ChargeReason::Reserved => 0,
            _ => charge.calls,
        },
        _ => 0,
    };
    events.map(calls).sum()
}
