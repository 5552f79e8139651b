//! Checks that the schema cannot express: names exist, are unique and are reachable.
//!
//! The checks read the tree of nodes and not the finished team, so that they find their mistakes in the same run in
//! which the reader finds its own.

mod agents;
mod approval;
mod calls;
mod chats;
mod endpoints;
mod form;
pub(crate) use form::check_schema;
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

use polylogue_core::Name;

use crate::build;
use crate::diagnostic::Report;
use crate::pattern::Pattern;
use crate::private_agents::PrivateRole;
use crate::source::Span;
use crate::team::Team;
use crate::yaml::Node;

/// The parts of a team file that have names.
struct Outline<'n> {
    root: &'n Node,
    /// The team's name, which the outermost chat has too.
    team: &'n str,
    participants: Vec<Participant<'n>>,
    /// Index of the first participant of a name.
    index: HashMap<&'n str, usize>,
}

/// An agent, chat or team that can take part in a chat.
struct Participant<'n> {
    name: &'n str,
    kind: Kind,
    node: &'n Node,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Agent,
    /// An agent without a model.
    Proxy,
    Person,
    Chat,
    Team,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Agent | Self::Proxy => "agent",
            Self::Person => "person",
            Self::Chat => "chat",
            Self::Team => "team",
        })
    }
}

impl<'n> Outline<'n> {
    fn of(root: &'n Node) -> Self {
        let agent = |node: &'n Node| {
            let human = matches!(node.get("human").data, crate::yaml::Data::Bool(true));
            let mute = node.get("model").text() == Some("none");
            let kind = if human {
                Kind::Person
            } else if mute {
                Kind::Proxy
            } else {
                Kind::Agent
            };
            (kind, node)
        };
        let agents = root.get("agents").items().iter().map(agent);
        let chats = root.get("chats").items().iter().map(|node| (Kind::Chat, node));
        let teams = root.get("teams").items().iter().map(|node| (Kind::Team, node));
        let named =
            |(kind, node): (Kind, &'n Node)| Some(Participant { name: name(node.get("name"))?, kind, node });
        let participants: Vec<Participant<'n>> = agents.chain(chats).chain(teams).filter_map(named).collect();
        let mut index = HashMap::new();
        for (at, participant) in participants.iter().enumerate() {
            index.entry(participant.name).or_insert(at);
        }
        Self { root, team: name(root.get("name")).unwrap_or_default(), participants, index }
    }

    fn participant(&self, name: &str) -> Option<&Participant<'n>> {
        self.participants.get(*self.index.get(name)?)
    }

    /// All chats with their names, the outermost first.
    fn chats(&self) -> impl Iterator<Item = (&'n str, &'n Node)> {
        let inner = self.participants.iter().filter(|participant| participant.kind == Kind::Chat);
        std::iter::once((self.team, self.root.get("chat")))
            .chain(inner.map(|participant| (participant.name, participant.node)))
    }
}

/// The text of a node that must be a name, if it is a legal one; the reader reports illegal ones.
fn name(node: &Node) -> Option<&str> {
    node.text().filter(|text| Name::new(text).is_ok_and(|name| name == **text))
}

/// The private agents of a chat, and where the file declares them.
fn private_agents(chat: &Node) -> impl Iterator<Item = (PrivateRole, Span)> {
    let reflects = chat.get("summary").entry("reflect").filter(|reflect| reflect.value.get("by").is_null());
    let summary = reflects.map(|entry| (PrivateRole::Summary, entry.key_span.clone()));
    let pick = chat.get("pattern").get("group").get("select");
    let selector = match pick.text() {
        Some("model") => Some(pick.span.clone()),
        _ => pick.entry("model").map(|entry| entry.key_span.clone()),
    };
    summary.into_iter().chain(selector.map(|at| (PrivateRole::Selector, at)))
}

/// Reports mistakes in a file that involve several keys. `voices` are the speakers of the teams that it includes, if
/// known.
pub(crate) fn check(root: &Node, voices: Option<&[Name]>, report: &mut Report<'_>) {
    let outline = Outline::of(root);
    names::check(&outline, report);
    agents::check(&outline, report);
    reasoning::check(&outline, report);
    approval::check(&outline, report);
    working::check(&outline, report);
    chats::check(&outline, report);
    script::check(&outline, voices, report);
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
    memory::check_built(root, team, report);
    let chats = std::iter::once(&team.chat).chain(team.chats.iter().map(|inner| &inner.chat));
    let nodes = std::iter::once(root.get("chat")).chain(root.get("chats").items());
    for (chat, node) in chats.zip(nodes) {
        let Pattern::Graph(graph) = &chat.pattern else { continue };
        if let (Err(error), Some(entry)) = (build::graph(graph, chat), node.get("pattern").entry("graph")) {
            report.error(&entry.key_span, error.to_string());
        }
    }
}
