//! The participants of a team by name, for checks of what names them.

use std::collections::HashMap;

use polylogue_config::At;
use polylogue_core::Name;

use crate::agent::Agent;

/// The participants of a team by name.
pub(crate) struct Outline<'t> {
    participants: Vec<Participant<'t>>,
    /// Index of the first participant of a name.
    index: HashMap<&'t Name, usize>,
}

/// An agent, chat or team that can take part in a chat.
#[derive(Clone, Copy)]
pub(crate) enum Participant<'t> {
    Agent(&'t Agent),
    Chat(&'t At<Name>),
    Team(&'t At<Name>),
}

impl<'t> Outline<'t> {
    /// The participants whose names could be read.
    pub(crate) fn of(
        agents: &'t [Agent],
        chats: impl Iterator<Item = &'t At<Name>>,
        teams: impl Iterator<Item = &'t At<Name>>,
    ) -> Self {
        let agents = agents.iter().map(Participant::Agent);
        let all = agents.chain(chats.map(Participant::Chat)).chain(teams.map(Participant::Team));
        let participants: Vec<_> = all.filter(|participant| participant.name().ok).collect();
        let mut index = HashMap::new();
        for (at, participant) in participants.iter().enumerate() {
            index.entry(&participant.name().value).or_insert(at);
        }
        Self { participants, index }
    }

    /// All participants, in the order of the file: agents, chats, teams.
    pub(crate) fn participants(&self) -> &[Participant<'t>] {
        &self.participants
    }

    /// The participant called `name`.
    pub(crate) fn participant(&self, name: &Name) -> Option<Participant<'t>> {
        self.participants.get(*self.index.get(name)?).copied()
    }

    /// The agents.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &'t Agent> {
        self.participants.iter().filter_map(|participant| participant.agent())
    }
}

impl<'t> Participant<'t> {
    pub(crate) const fn name(self) -> &'t At<Name> {
        match self {
            Self::Agent(agent) => &agent.name,
            Self::Chat(name) | Self::Team(name) => name,
        }
    }

    pub(crate) const fn agent(self) -> Option<&'t Agent> {
        if let Self::Agent(agent) = self { Some(agent) } else { None }
    }

    pub(crate) fn is_human(self) -> bool {
        self.agent().is_some_and(Agent::is_human)
    }

    /// What messages call it.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Agent(agent) if agent.is_human() => "person",
            Self::Agent(_) => "agent",
            Self::Chat(_) => "chat",
            Self::Team(_) => "team",
        }
    }

    /// Why it cannot do what needs a reply by a model alone.
    pub(crate) fn why_not_plain(self) -> Option<String> {
        match self {
            Self::Agent(agent) => agent.why_not_plain(),
            Self::Chat(_) | Self::Team(_) => Some(format!("it is a {}", self.noun())),
        }
    }
}
