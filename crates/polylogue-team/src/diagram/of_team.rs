//! The nodes and edges of a team.

use std::collections::HashMap;

use polylogue_core::Name;

use super::graph::{Edge, EdgeKind, Group, Node, NodeKind};
use super::stops;
use super::text::shortened;
use crate::agent::Agent;
use crate::chat::Chat;
use crate::flow::{ChatFlow, Point};
use crate::outline::{Outline, Participant};
use crate::team::Team;
use crate::tooling::ToolEntry;

/// How deep chats within chats are drawn.
const DEEPEST: usize = 6;
/// The most chats within chats that are drawn with their contents.
const MOST_GROUPS: usize = 300;
/// The most steps that are drawn one by one.
const MOST_STEPS: usize = 90;
/// The longest text of a node or an edge, in characters.
const LONGEST: usize = 38;

/// The outermost chat of a team.
pub(super) fn outermost(team: &Team) -> Group {
    let outline = team.outline();
    let mut scope =
        Scope { team, outline: &outline, around: Vec::new(), owners: Vec::new(), left: MOST_GROUPS };
    scope.group(&team.name, &team.chat)
}

/// The chats around the one that is being drawn.
struct Scope<'t> {
    team: &'t Team,
    outline: &'t Outline<'t>,
    around: Vec<&'t Name>,
    /// The agents in whose nested chats this is: they are without nested chats there.
    owners: Vec<&'t Name>,
    /// How many more chats are drawn with their contents.
    left: usize,
}

/// A group that is being drawn.
#[derive(Default)]
struct Draft<'t> {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    index: HashMap<&'t Name, usize>,
}

impl<'t> Scope<'t> {
    fn group(&mut self, name: &'t Name, chat: &'t Chat) -> Group {
        self.around.push(name);
        let flow = chat.pattern.part().flow(&chat.frame(name), self.outline);
        let mut draft = Draft::default();
        let start = draft.node(NodeKind::Start, "start");
        for who in chat.everyone() {
            self.participant(&who.value, &mut draft);
        }
        let participants = draft.nodes.len() - 1;
        for join in chat.late_joiners.iter() {
            draft.detail(&join.who, "joins later");
        }
        for who in chat.other_agents() {
            if !draft.index.contains_key(who) {
                self.participant(who, &mut draft);
                draft.detail(who, "asked by the chat");
            }
        }
        match &flow.selected {
            None if flow.steps.len() <= MOST_STEPS => draft.steps(start, &flow),
            None => draft.selected(start, "by transitions", chat, &flow),
            Some(how) => draft.selected(start, how, chat, &flow),
        }
        self.used(&mut draft);
        self.around.pop();
        let pattern = chat.pattern.part().describe(&chat.frame(name));
        let ends = stops::of_chat(chat, &flow);
        let Draft { nodes, edges, .. } = draft;
        Group { name: name.to_string(), pattern, nodes, participants, edges, ends }
    }

    /// Adds the agent, chat or team `who`.
    fn participant(&mut self, who: &'t Name, draft: &mut Draft<'t>) {
        if draft.index.contains_key(who) {
            return;
        }
        let Some(participant) = self.outline.participant(who) else { return };
        let node = match participant {
            Participant::Agent(agent) => self.agent(agent),
            Participant::Chat(_) | Participant::Team(_) => {
                let group = self.inner(who).map(Box::new);
                Node { group, ..Node::new(NodeKind::Chat, who.as_str()) }
            }
        };
        draft.index.insert(who, draft.nodes.len());
        draft.nodes.push(node);
    }

    /// The chat or team `who`, unless it is one of those around.
    fn inner(&mut self, who: &'t Name) -> Option<Group> {
        if self.around.len() >= DEEPEST || self.left == 0 || self.around.contains(&who) {
            return None;
        }
        self.left -= 1;
        if let Some(inner) = self.team.chats.iter().find(|chat| chat.name == *who) {
            return Some(self.group(&inner.name, &inner.chat));
        }
        let sub = self.team.teams.iter().find(|sub| sub.name == *who)?;
        let outline = sub.team.outline();
        // Its names are others: only the depth counts.
        let around = self.around.iter().map(|_| &self.team.name).collect();
        let mut scope =
            Scope { team: &sub.team, outline: &outline, around, owners: Vec::new(), left: self.left };
        let mut group = scope.group(&sub.name, &sub.team.chat);
        self.left = scope.left;
        group.name = who.to_string();
        Some(group)
    }

    fn agent(&self, agent: &Agent) -> Node {
        let kind = match (agent.is_human(), agent.model()) {
            (true, _) => NodeKind::Person,
            (_, Some(_)) => NodeKind::Model,
            (_, None) => NodeKind::Program,
        };
        let (mut model, mut details) = (None, Vec::new());
        if let Some(keys) = agent.model() {
            model = keys.model.as_ref().or(self.team.model.as_ref()).map(|model| model.replace(',', ", "));
            details.extend(model.clone());
            let tools = keys.tools.iter().map(|tool| match &tool.value {
                ToolEntry::Own(own) => own.tool.to_string(),
                ToolEntry::Mcp(server) => format!("mcp: {}", *server.mcp),
            });
            details.extend(listed("tools", tools.collect()));
            let suggested = keys.suggests_tools.iter().map(|tool| tool.value.clone());
            details.extend(listed("suggests", suggested.collect()));
        }
        let run = agent.executes_tools.iter().map(|run| run.tool.value.clone());
        details.extend(listed("executes", run.collect()));
        details.extend(agent.code_execution.on().map(|_| "executes code".to_owned()));
        if agent.asks_person() && !agent.is_human() {
            details.push("asks a person".to_owned());
        }
        let shown: Vec<String> = details.iter().map(|text| shortened(text, LONGEST)).collect();
        let whole = (shown != details).then(|| details.join("\n"));
        Node { model, details: shown, whole, ..Node::new(kind, agent.name.as_str()) }
    }

    /// Adds what the agents of a group use: nested chats, and others that they call as tools. These can use others in turn.
    fn used(&mut self, draft: &mut Draft<'t>) {
        let mut from = 0;
        while let Some((at, agent)) = self.next_agent(draft, from) {
            from = at + 1;
            self.used_by(agent, draft);
        }
    }

    /// The first agent among the nodes of a group from the node `from` on.
    fn next_agent(&self, draft: &Draft<'t>, from: usize) -> Option<(usize, &'t Agent)> {
        let nodes = draft.index.iter().filter(|(_, at)| **at >= from);
        let agents = nodes.filter_map(|(who, at)| Some((*at, self.outline.participant(who)?.agent()?)));
        agents.min_by_key(|(at, _)| *at)
    }

    fn used_by(&mut self, agent: &'t Agent, draft: &mut Draft<'t>) {
        let nested = agent.nested_chats.iter().map(|nested| (&nested.chat.value, "nested chat"));
        let tools = agent.model().into_iter().flat_map(|keys| keys.agent_tools.iter());
        let label = |background| if background { "calls in the background" } else { "calls" };
        let is_within = self.owners.contains(&&agent.name.value);
        self.owners.push(&agent.name);
        for (who, label) in
            nested.chain(tools.map(|tool| (&tool.who.value, label(tool.background)))).filter(|_| !is_within)
        {
            self.participant(who, draft);
            draft.uses(&agent.name, who, label);
        }
        self.owners.pop();
        let suggested = agent.model().into_iter().flat_map(|keys| keys.suggests_tools.iter());
        let suggested: Vec<&str> = suggested.map(|tool| tool.as_str()).collect();
        let runs =
            |other: &&Agent| other.executes_tools.iter().any(|run| suggested.contains(&run.tool.as_str()));
        for executor in self.outline.agents().filter(runs) {
            draft.uses(&agent.name, &executor.name, "tool calls");
        }
    }
}

/// `what: a, b`, unless there is none.
fn listed(what: &str, names: Vec<String>) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
}

impl<'t> Draft<'t> {
    fn node(&mut self, kind: NodeKind, name: &str) -> usize {
        self.nodes.push(Node::new(kind, name));
        self.nodes.len() - 1
    }

    fn detail(&mut self, who: &Name, detail: &str) {
        let node = self.index.get(who).and_then(|at| self.nodes.get_mut(*at));
        if let Some(node) = node {
            node.details.push(detail.to_owned());
        }
    }

    fn steps(&mut self, start: usize, flow: &ChatFlow<'_>) {
        let ends = flow.steps.iter().any(|step| step.to == Point::End);
        let end = if ends { self.node(NodeKind::End, "end") } else { start };
        for step in &flow.steps {
            let at = |point: &Point<'_>| match point {
                Point::Start => Some(start),
                Point::End => Some(end),
                Point::Speaker(who) => self.index.get(who).copied(),
            };
            if let (Some(from), Some(to)) = (at(&step.from), at(&step.to)) {
                self.step(from, to, step.when.as_deref().unwrap_or_default());
            }
        }
        self.join_pairs();
    }

    /// Adds a step under the condition `when`; one that there is gets another condition.
    fn step(&mut self, from: usize, to: usize, when: &str) {
        let (label, kind) = (shortened(when, LONGEST), EdgeKind::Next);
        match self.edges.iter_mut().find(|edge| (edge.from, edge.to) == (from, to)) {
            Some(edge) if edge.when.is_empty() || when.is_empty() => {
                edge.label.clear();
                edge.when.clear();
            }
            Some(edge) if edge.when.split(" or ").any(|one| one == when) => {}
            Some(edge) => {
                edge.label = shortened(&format!("{} or {label}", edge.label), 2 * LONGEST);
                edge.when = format!("{} or {when}", edge.when);
            }
            None => self.edges.push(Edge { from, to, label, when: when.to_owned(), kind }),
        }
    }

    /// Draws two steps without a condition in both directions as one line.
    fn join_pairs(&mut self) {
        let mut joined: Vec<Edge> = Vec::with_capacity(self.edges.len());
        for edge in self.edges.drain(..) {
            let is_back = |other: &&mut Edge| {
                (other.from, other.to) == (edge.to, edge.from)
                    && edge.from != edge.to
                    && other.when == edge.when
            };
            match joined.iter_mut().find(is_back) {
                Some(other) => other.kind = EdgeKind::Both,
                None => joined.push(edge),
            }
        }
        self.edges = joined;
    }

    /// Every participant can follow every other: they are around what selects them.
    fn selected(&mut self, start: usize, how: &str, chat: &Chat, flow: &ChatFlow<'_>) {
        let hub = self.node(NodeKind::Selector, how);
        let edge = |from: usize, to: usize, label: &str, kind: EdgeKind| Edge {
            from,
            to,
            label: label.to_owned(),
            when: String::new(),
            kind,
        };
        self.edges.push(edge(start, hub, "", EdgeKind::Next));
        for at in chat.everyone().filter_map(|who| self.index.get(&who.value)) {
            self.edges.push(edge(hub, *at, "", EdgeKind::Both));
        }
        if let Some(end) = flow.end {
            let at = self.node(NodeKind::End, "end");
            self.edges.push(edge(hub, at, end, EdgeKind::Next));
        }
    }

    fn uses(&mut self, from: &Name, to: &Name, label: &str) {
        if let (Some(from), Some(to)) = (self.index.get(from).copied(), self.index.get(to).copied()) {
            let (label, when) = (label.to_owned(), String::new());
            let edge = Edge { from, to, label, when, kind: EdgeKind::Uses };
            if !self.edges.contains(&edge) {
                self.edges.push(edge);
            }
        }
    }
}
