//! Limits of a team and of its agents.

use polylogue::Limits as RunLimits;
use polylogue_core::{Allowance, AllowanceOwner, Money, Name, Opening, Path, RaiseTerms};

use super::Team;
use crate::agent::Agent;
use crate::chat::Chat;
use crate::duration::Time;
use crate::limits::{Limits, OnLimit, UsageLimits};

impl Team {
    /// Returns the limits of the whole run: those the team sets, over the defaults.
    pub fn limits(&self) -> RunLimits {
        let (Limits { usage, depth, .. }, default) = (&self.limits, RunLimits::default());
        let on_limit = match self.limits.on_limit {
            OnLimit::Stop => polylogue_core::OnLimit::Stop,
            OnLimit::Ask => polylogue_core::OnLimit::Ask,
        };
        RunLimits {
            turns: None,
            calls: usage.calls,
            calls_per_run: default.calls_per_run,
            tokens: usage.tokens,
            cost: usage.cost.map(Money::dollars),
            reply_tokens: None,
            time_ms: usage.time_ms(),
            allow_unknown_price: false,
            depth: depth.and_then(|depth| depth.try_into().ok()).unwrap_or(default.depth),
            background: self.limits.background_tasks.unwrap_or(default.background),
            on_limit,
            raise: RaiseTerms {
                ceiling: self.limits.ceiling.allowance().unwrap_or_default(),
                timeout_ms: self.limits.answer_timeout.map(Time::ms),
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
    pub fn agent_limits(&self) -> Vec<(Name, Allowance)> {
        let mut all: Vec<(Name, UsageLimits)> = Vec::new();
        self.collect_agent_limits(&mut all);
        all.into_iter().filter_map(|(name, limits)| Some((name, limits.allowance()?))).collect()
    }

    /// Returns the limits of the chats that a log has, for [`Log::chat_limits`](polylogue_core::Log::chat_limits). `opened` are their
    /// paths, each with how the chat began. Which chat that is follows from who runs it and who takes part; where several could be
    /// meant, none is.
    ///
    /// ```
    /// use polylogue_core::{Name, Opening, Path};
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann}], chat: {participants: [desk], pattern: sequential},
    ///     chats: [{name: desk, participants: [Ann], limits: {calls: 3}, stop: {max_turns: 4}}]}";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// let at = Path::root().child(&Name::new("desk")?, 1);
    /// let opening = Opening { participants: vec![Name::new("Ann")?], ..Opening::default() };
    /// let limits = team.chat_limits([(&at, &opening)]);
    /// assert_eq!((limits.len(), limits[0].1.calls), (1, Some(3)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chat_limits<'e>(
        &self,
        opened: impl IntoIterator<Item = (&'e Path, &'e Opening)>,
    ) -> Vec<(AllowanceOwner, Allowance)> {
        let mut all = Vec::new();
        self.collect_chats(&self.name, None, self.chat.limits, &mut all);
        if all.iter().all(|chat| chat.limits.is_none()) {
            return Vec::new();
        }
        let found = |(at, opening): (&Path, &Opening)| {
            let mut meant = all.iter().filter(|chat| chat.is_at(at, opening));
            let (chat, other) = (meant.next()?, meant.next());
            let limits = chat.limits.filter(|_| other.is_none())?;
            Some((AllowanceOwner::Chat { name: chat.name.clone(), path: at.clone() }, limits))
        };
        opened.into_iter().filter_map(found).collect()
    }

    /// Returns whether the run, an agent, a chat or a team within it has a limit on cost, or a chat ends at a cost.
    pub fn limits_cost(&self) -> bool {
        let ends_at_cost = |chat: &Chat| chat.stop.as_ref().is_some_and(|stop| stop.limits().cost.is_some());
        self.limits.usage.cost.is_some()
            || self.agents.iter().any(|agent| agent.limits.cost.is_some())
            || self.all_chats().any(|(_, chat)| chat.limits.cost.is_some() || ends_at_cost(chat))
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

    /// All chats, where the outermost one is called `name`, is run by `run_by`, and has these `limits`.
    fn collect_chats<'t>(
        &'t self,
        name: &'t Name,
        run_by: Option<&'t Name>,
        limits: UsageLimits,
        all: &mut Vec<LimitedChat<'t>>,
    ) {
        all.push(LimitedChat { name, run_by, chat: &self.chat, limits: limits.allowance() });
        for inner in &self.chats {
            let name = &inner.name.value;
            let nests = |agent: &&Agent| agent.nested_chats.iter().any(|nested| nested.chat == *name);
            let agents = self.agents.iter().filter(nests).map(|agent| &agent.name.value);
            all.extend(std::iter::once(name).chain(agents).map(|run_by| LimitedChat {
                name,
                run_by: Some(run_by),
                chat: &inner.chat,
                limits: inner.chat.limits.allowance(),
            }));
        }
        for sub in &self.teams {
            let limits = sub.team.limits.usage.and(sub.team.chat.limits);
            let name = &sub.name.value;
            sub.team.collect_chats(name, Some(name), limits, all);
        }
    }
}

/// A chat that may have limits.
struct LimitedChat<'t> {
    name: &'t Name,
    /// The chat or agent in whose turns it runs; `None` for the outermost.
    run_by: Option<&'t Name>,
    chat: &'t Chat,
    limits: Option<Allowance>,
}

impl LimitedChat<'_> {
    /// Whether it is the chat at the path `at`, which began with `opening`.
    fn is_at(&self, at: &Path, opening: &Opening) -> bool {
        let last = at.as_str().rsplit('/').next().unwrap_or_default();
        let run_by = last.split('.').next().unwrap_or_default();
        let (own, participants) = (&*self.chat.participants, &opening.participants);
        self.run_by.map_or("", Name::as_str) == run_by
            && own.len() == participants.len()
            && own.iter().all(|who| participants.contains(who))
    }
}
