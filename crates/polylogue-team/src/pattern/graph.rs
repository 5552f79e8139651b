//! Graphs of who speaks after whom.

use std::collections::{BTreeMap, BTreeSet};

use polylogue::Result;
use polylogue::policies::graph::{self as library, Join};
use polylogue_config::{At, ByName, Config, OneOrMany, Same};
use polylogue_core::{ConfigError, Error, Name, PatternError};

use super::part::{Agents, Built, ChatFrame, Part, listed};
use crate::condition::Condition;
use crate::diagnostic::Report;
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::outline::Outline;
use crate::set::Set as _;
use crate::text::{ConditionText, Member, MemberRef};

/// Graph of who speaks after whom. Branches run concurrently.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Graph")]
pub struct Graph {
    /// First speakers.
    #[key(as = OneOrMany<MemberRef>, none = "participants without an incoming edge")]
    pub start: Vec<Name>,
    /// Edges by source participant: a name, or a list of names and of edges with conditions. All targets of the edges
    /// that are taken speak concurrently.
    #[key(as = ByName<Member, OneOrMany<Same<Edge>>>, required, nonempty)]
    pub edges: BTreeMap<At<Name>, Vec<Edge>>,
    /// Participants with several incoming edges: when each of them speaks. Default: when at least one of its edges was
    /// taken, and none of the others can still be taken.
    #[key(as = ByName<Member, JoinKey>)]
    pub join: BTreeMap<At<Name>, Join>,
}

/// When a participant with several incoming edges speaks.
#[derive(Config)]
#[config(name = "GraphJoin", for = Join)]
enum JoinKey {
    /// After all incoming edges were taken. If one of them never is, the chat ends.
    All,
    /// Each time an incoming edge is taken.
    Any,
}

/// An edge of a graph: its target, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Edge", shorthand = "to")]
pub struct Edge {
    /// Target of the edge: the next speaker.
    #[key(as = MemberRef)]
    pub to: Name,
    /// Text that the last message must contain, in upper or lower case.
    #[key(none = "always", nonempty)]
    pub says: Option<At<String>>,
    /// Condition of the edge, in CEL.
    #[key(as = Option<At<ConditionText>>, none = "always", nonempty)]
    pub when: Option<At<String>>,
    /// Takes the edge only if no other edge of the same source is taken.
    #[key(default = false)]
    pub otherwise: At<bool>,
    /// Maximum number of times that the edge is taken.
    #[key(none = "any number of times", range = 1..=1_000_000)]
    pub max_uses: Option<u64>,
}

impl Part for At<Graph> {
    /// Edges have one condition. The rest, such as a loop without an end, is seen when the graph is built.
    fn check(&self, _: &ChatFrame<'_>, _: &Outline<'_>, report: &mut Report<'_>) {
        for Edge { says, when, otherwise, .. } in self.edges.values().flatten() {
            let otherwise = otherwise.given().filter(|_| **otherwise);
            let says = ("says", says.as_ref().map(At::key));
            let all = [says, ("when", when.as_ref().map(At::key)), ("otherwise", otherwise)];
            let mut given = all.into_iter().filter_map(|(key, at)| Some((key, at?)));
            if let (Some((first, _)), Some((second, at))) = (given.next(), given.next()) {
                report.error(at, format!("`{first}` and `{second}` cannot both be given"));
            }
        }
    }

    fn has_background_turns(&self) -> bool {
        true
    }

    fn check_built(&self, chat: &ChatFrame<'_>, report: &mut Report<'_>) {
        let Err(error) = self.checked(chat) else { return };
        let participant = match &error {
            Error::Config(ConfigError::Pattern(PatternError::Unreachable { node })) => {
                chat.everyone().find(|who| *who == node)
            }
            _ => None,
        };
        let at = participant.map_or(self.key(), |who| &who.span);
        match error.hint() {
            Some(hint) => report.error_with_hint(at, error.to_string(), hint),
            None => report.error(at, error.to_string()),
        }
    }

    fn describe(&self, _: &ChatFrame<'_>) -> String {
        match self.start.as_slice() {
            [] => "along a graph".to_owned(),
            start => format!("along a graph from {} on", listed(start.iter().map(Name::as_str))),
        }
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        let edges = || self.edges.iter().flat_map(|(from, edges)| edges.iter().map(move |edge| (from, edge)));
        let targets: BTreeSet<&Name> = edges().map(|(_, edge)| &edge.to).collect();
        let starts: BTreeSet<&Name> = self.start.iter().collect();
        let mut steps = Vec::new();
        for who in chat.everyone() {
            if starts.contains(&who.value) || starts.is_empty() && !targets.contains(&who.value) {
                steps.push(FlowStep::new(Point::Start, Point::Speaker(who)));
            }
            let own = self.edges.get(who).map(Vec::as_slice).unwrap_or_default();
            if !own.iter().any(Edge::is_always_taken) {
                let when = (!own.is_empty()).then_some("no edge is taken");
                steps.push(FlowStep::new(Point::Speaker(who), Point::End).when(when));
            }
        }
        let step = |(from, edge): (&'c At<Name>, &'c Edge)| {
            FlowStep::new(Point::Speaker(from), Point::Speaker(&edge.to)).when(edge.label()).at(&from.span)
        };
        steps.extend(edges().map(step));
        ChatFlow::of(steps)
    }

    fn build(&self, chat: &ChatFrame<'_>, _: &dyn Agents) -> Result<Built> {
        Built::policy(self.checked(chat)?)
    }
}

impl Graph {
    fn checked(&self, chat: &ChatFrame<'_>) -> Result<library::Graph> {
        let mut graph = library::Graph::builder(chat.participants.iter().map(ToString::to_string));
        for start in &self.start {
            graph = graph.starts_with(start.as_str());
        }
        for (from, edges) in &self.edges {
            for edge in edges {
                graph = graph.edge(edge.build(from)?);
            }
        }
        for (name, join) in &self.join {
            graph = graph.join(name.as_str(), *join);
        }
        graph.build()
    }
}

impl Edge {
    /// Whether it is taken every time, or else another edge of its source is.
    fn is_always_taken(&self) -> bool {
        self.max_uses.is_none() && (*self.otherwise || self.says.is_none() && self.when.is_none())
    }

    /// When it is taken, in words.
    fn label(&self) -> Option<String> {
        let when = match (&self.says, &self.when) {
            _ if *self.otherwise => Some("otherwise".to_owned()),
            (Some(says), _) => Some(format!("says \"{}\"", says.value)),
            (None, when) => when.as_ref().map(|when| when.value.clone()),
        };
        let limit = self.max_uses.map(|most| format!("at most {most} times"));
        when.into_iter().chain(limit).reduce(|when, limit| format!("{when}, {limit}"))
    }

    fn build(&self, from: &Name) -> Result<library::Edge> {
        let edge = library::Edge::from((from.as_str(), self.to.as_str()));
        let edge = match (&self.says, &self.when) {
            _ if *self.otherwise => edge.otherwise(),
            (Some(text), _) => edge.says(text.as_str()),
            (None, Some(text)) => {
                let condition = Condition::compile(text)?;
                edge.when(move |chat| condition.holds_or_records_error(chat))
            }
            (None, None) => edge,
        };
        Ok(edge.set(self.max_uses, library::Edge::max_times))
    }
}
