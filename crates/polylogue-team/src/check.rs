//! Checks that need several parts of a team: what takes part where, is reachable, fits together and is used.
//!
//! They run on the typed values as far as these could be read, so that they find their mistakes in the same run in which
//! the reader finds its own. A value that could not be read is skipped.

mod agents;
mod approval;
mod calls;
mod chats;
mod endpoints;
mod form;
mod mcp;
mod memory;
mod names;
mod patterns;
mod reach;
mod reasoning;
mod role_play;
mod script;
mod tasks;
mod web;
mod working;

use std::collections::HashMap;

use polylogue_config::At;
use polylogue_core::Name;

use crate::agent::Agent;
use crate::chat::{Chat, InnerChat, Summary};
use crate::diagnostic::Report;
use crate::pattern::{Group, Pattern, SelectSpeaker};
use crate::private_agents::PrivateRole;
use crate::source::Span;
use crate::team::{SubTeam, Team};
use crate::yaml::Node;
pub(crate) use form::check_schema;

/// The parts of a team that have names.
struct Outline<'t> {
    team: &'t Team,
    participants: Vec<Participant<'t>>,
    /// Index of the first participant of a name.
    index: HashMap<&'t Name, usize>,
}

/// An agent, chat or team that can take part in a chat.
#[derive(Clone, Copy)]
enum Participant<'t> {
    Agent(&'t Agent),
    Chat(&'t InnerChat),
    Team(&'t SubTeam),
}

impl<'t> Participant<'t> {
    const fn name(self) -> &'t At<Name> {
        match self {
            Self::Agent(agent) => &agent.name,
            Self::Chat(chat) => &chat.name,
            Self::Team(team) => &team.name,
        }
    }

    const fn agent(self) -> Option<&'t Agent> {
        if let Self::Agent(agent) = self { Some(agent) } else { None }
    }

    const fn chat(self) -> Option<&'t InnerChat> {
        if let Self::Chat(chat) = self { Some(chat) } else { None }
    }

    /// What messages call it.
    const fn noun(self) -> &'static str {
        match self {
            Self::Agent(agent) if agent.is_human() => "person",
            Self::Agent(_) => "agent",
            Self::Chat(_) => "chat",
            Self::Team(_) => "team",
        }
    }

    /// Why it cannot do what needs a reply by a model alone.
    fn why_not_plain(self) -> Option<String> {
        match self {
            Self::Agent(agent) => agent.why_not_plain(),
            Self::Chat(_) | Self::Team(_) => Some(format!("it is a {}", self.noun())),
        }
    }
}

impl<'t> Outline<'t> {
    fn of(team: &'t Team) -> Self {
        let agents = team.agents.iter().map(Participant::Agent);
        let chats = team.chats.iter().map(Participant::Chat);
        let teams = team.teams.iter().map(Participant::Team);
        let all = agents.chain(chats).chain(teams);
        let participants: Vec<_> = all.filter(|participant| participant.name().ok).collect();
        let mut index = HashMap::new();
        for (at, participant) in participants.iter().enumerate() {
            index.entry(&participant.name().value).or_insert(at);
        }
        Self { team, participants, index }
    }

    fn participant(&self, name: &Name) -> Option<Participant<'t>> {
        self.participants.get(*self.index.get(name)?).copied()
    }

    fn agents(&self) -> impl Iterator<Item = &'t Agent> {
        self.participants.iter().filter_map(|participant| participant.agent())
    }

    /// All chats with their names, the outermost first.
    fn chats(&self) -> impl Iterator<Item = (&'t Name, &'t Chat)> {
        let inner = self.participants.iter().filter_map(|participant| participant.chat());
        std::iter::once((&self.team.name, &self.team.chat))
            .chain(inner.map(|inner| (&*inner.name, &inner.chat)))
    }
}

/// The private agents of a chat, and where the file declares them.
fn private_agents(chat: &Chat) -> impl Iterator<Item = (PrivateRole, &Span)> {
    let summary = match &chat.summary {
        Summary::Reflect(reflect) if reflect.by.is_none() => Some((PrivateRole::Summary, reflect.key())),
        _ => None,
    };
    let selector = match &chat.pattern {
        Pattern::Group(Group { select: SelectSpeaker::Model(selector), .. }) => {
            Some((PrivateRole::Selector, selector.key()))
        }
        _ => None,
    };
    summary.into_iter().chain(selector)
}

/// Reports mistakes in a file that involve several parts. `voices` are the speakers of the teams that it includes, if
/// known.
pub(crate) fn check(root: &Node, team: &Team, voices: Option<&[Name]>, report: &mut Report<'_>) {
    let outline = Outline::of(team);
    names::check(&outline, report);
    agents::check(&outline, report);
    reasoning::check(&outline, report);
    approval::check(&outline, report);
    working::check(&outline, root, report);
    chats::check(&outline, report);
    script::check(&outline, root, voices, report);
    endpoints::check(root, report);
}

/// Reports conflicts among the teams that a file includes. A team with mistakes is `None`.
pub(crate) fn check_teams(root: &Node, teams: &[Option<Team>], report: &mut Report<'_>) {
    endpoints::check_teams(root, teams, report);
    mcp::check_teams(root, teams, report);
}

/// Hides the secrets of the file in diagnostics.
pub(crate) fn hide_secrets(root: &Node, report: &mut Report<'_>) {
    endpoints::hide_secrets(root, report);
    mcp::hide_secrets(root, report);
    calls::hide_secrets(root, report);
}

/// Reports graphs and commands that cannot be built.
pub(crate) fn check_built(root: &Node, team: &Team, report: &mut Report<'_>) {
    working::check_declared(root, team, report);
    mcp::check_built(root, team, report);
    web::check_built(root, team, report);
    calls::check_built(root, team, report);
    memory::check_built(team, report);
    patterns::check_built(team, report);
}
