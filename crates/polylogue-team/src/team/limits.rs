//! Limits of a team and of its agents.

use polylogue::Limits as RunLimits;
use polylogue_core::{Allowance, Money, Name, RaiseTerms};

use super::Team;
use crate::limits::{Limits, OnLimit, UsageLimits, milliseconds};

impl Team {
    /// Returns the limits of the whole run: those the team sets, over the defaults.
    #[must_use]
    pub fn limits(&self) -> RunLimits {
        let (Limits { usage, depth, .. }, default) = (&self.limits, RunLimits::default());
        let on_limit = match self.limits.on_limit {
            OnLimit::Stop => polylogue_core::OnLimit::Stop,
            OnLimit::Ask => polylogue_core::OnLimit::Ask,
        };
        RunLimits {
            turns: None,
            calls: usage.calls,
            calls_each: default.calls_each,
            tokens: usage.tokens,
            cost: usage.cost.map(Money::dollars),
            reply_tokens: None,
            time_ms: usage.time_ms(),
            unknown_price: false,
            depth: depth.and_then(|depth| depth.try_into().ok()).unwrap_or(default.depth),
            background: self.limits.background_tasks.unwrap_or(default.background),
            on_limit,
            raise: RaiseTerms {
                ceiling: self.limits.ceiling.allowance().unwrap_or_default(),
                timeout_ms: self.limits.answer_timeout.map(milliseconds),
            },
            chat: self.chat.own_limits(),
        }
    }

    /// Returns the limits of its agents, for [`Log::agent_limits`](polylogue_core::Log::agent_limits). Agents of the same name,
    /// in teams within this one, have the smaller limit of them together.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann, limits: {calls: 3}}, {name: Bob}], chat: {participants: [Ann, Bob], stop: {max_turns: 4}}}";
    /// let limits = parse(text, "t.yaml", &Overrides::default())?.team.agent_limits();
    /// assert_eq!((limits[0].0.as_str(), limits[0].1.calls, limits.len()), ("Ann", Some(3), 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn agent_limits(&self) -> Vec<(Name, Allowance)> {
        let mut all: Vec<(Name, UsageLimits)> = Vec::new();
        self.collect_agent_limits(&mut all);
        all.into_iter().filter_map(|(name, limits)| Some((name, limits.allowance()?))).collect()
    }

    /// Returns whether the run, an agent, a chat or a team within it has a limit on cost.
    #[must_use]
    pub fn limits_cost(&self) -> bool {
        self.limits.usage.cost.is_some()
            || self.agents.iter().any(|agent| agent.limits.cost.is_some())
            || self.all_chats().any(|(_, chat)| chat.limits.cost.is_some())
            || self.teams.iter().any(|sub| sub.team.limits_cost())
    }

    fn collect_agent_limits(&self, all: &mut Vec<(Name, UsageLimits)>) {
        for agent in &self.agents {
            let limits = *agent.limits;
            match all.iter_mut().find(|(name, _)| *name == *agent.name) {
                Some((_, known)) => *known = known.and(limits),
                None => all.push((agent.name.value.clone(), limits)),
            }
        }
        self.teams.iter().for_each(|sub| sub.team.collect_agent_limits(all));
    }
}
