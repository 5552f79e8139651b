//! Builds a graph, and checks it.

use polylogue_core::{Name, PatternError, Result, UnknownName};

use super::checked::{AfterLeaving, Graph, Join, roots};
use super::edge::{Edge, EdgeCondition, Link};

/// Builds a [`Graph`]; see the [module](super) for an example.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct GraphBuilder {
    nodes: Vec<String>,
    starts: Vec<String>,
    edges: Vec<Edge>,
    joins: Vec<(String, Join)>,
}

impl Graph {
    /// Returns a builder of a graph of these participants. Nodes that are ready together run in this order.
    pub fn builder<N: Into<String>>(nodes: impl IntoIterator<Item = N>) -> GraphBuilder {
        GraphBuilder { nodes: nodes.into_iter().map(Into::into).collect(), ..GraphBuilder::default() }
    }
}

impl GraphBuilder {
    /// Adds an edge: a pair of names, or an [`Edge`] with a condition.
    pub fn edge(mut self, edge: impl Into<Edge>) -> Self {
        self.edges.push(edge.into());
        self
    }

    /// Adds a start node. Default: the nodes without incoming edges.
    pub fn starts_with(mut self, node: impl Into<String>) -> Self {
        self.starts.push(node.into());
        self
    }

    /// Sets when `node` runs if it has several incoming edges.
    pub fn join(mut self, node: impl Into<String>, join: Join) -> Self {
        self.joins.push((node.into(), join));
        self
    }

    /// Checks the graph and returns it as a policy.
    ///
    /// # Errors
    /// When it has no start or no end, when a node is unknown, listed twice or unreachable, when a loop is endless, or
    /// when a node has edges both with and without a condition.
    pub fn build(self) -> Result<Graph> {
        checked(self)
    }
}

/// The graph, if it is valid.
fn checked(graph: GraphBuilder) -> Result<Graph> {
    let nodes = named(&graph.nodes)?;
    let mut links = linked(&graph.edges, &nodes)?;
    let mut joins = vec![Join::default(); nodes.len()];
    for (node, join) in &graph.joins {
        if let Some(slot) = joins.get_mut(number(node, &nodes)?) {
            *slot = *join;
        }
    }
    let starts = starts(&graph.starts, &nodes, &links)?;
    if !nodes.is_empty() && (0..nodes.len()).all(|node| links.iter().any(|link| link.from == node)) {
        return Err(PatternError::NoEnd.into());
    }
    for (node, name) in nodes.iter().enumerate() {
        check_conditions(node, name, &links)?;
    }
    let reached = reachable(&starts, &links);
    if let Some((_, node)) = nodes.iter().enumerate().find(|(node, _)| !reached.contains(node)) {
        return Err(PatternError::Unreachable { node: node.clone() }.into());
    }
    let sure = |node: usize| {
        links.iter().filter(move |link| link.from == node && link.is_sure()).map(|link| link.to)
    };
    if let Some(endless) = cycle(nodes.len(), sure) {
        let nodes = endless.into_iter().filter_map(|node| nodes.get(node)).cloned().collect();
        return Err(PatternError::EndlessLoop { nodes }.into());
    }
    let forward = mark_back(&reached, &mut links);
    let leads = (0..nodes.len()).map(|node| leads(node, nodes.len(), &forward)).collect();
    Ok(Graph { nodes, starts, links, joins, leads, after_leaving: AfterLeaving::Close })
}

fn named(nodes: &[String]) -> Result<Vec<Name>> {
    let mut names: Vec<Name> = Vec::new();
    for node in nodes {
        let name = Name::new(node)?;
        if names.contains(&name) {
            return Err(PatternError::ListedTwice { kind: "node", name: node.clone() }.into());
        }
        names.push(name);
    }
    Ok(names)
}

fn number(node: &str, nodes: &[Name]) -> Result<usize> {
    let found = nodes.iter().position(|name| name.as_str() == node);
    found.ok_or_else(|| UnknownName::new("node", node).within("in the graph").known(nodes).into())
}

fn linked(edges: &[Edge], nodes: &[Name]) -> Result<Vec<Link>> {
    let mut links: Vec<Link> = Vec::new();
    for Edge { from, to, when, max_times } in edges {
        let (start, end) = (number(from, nodes)?, number(to, nodes)?);
        if links.iter().any(|link| link.from == start && link.to == end) {
            let name = format!("{from} -> {to}");
            return Err(PatternError::ListedTwice { kind: "edge", name }.into());
        }
        links.push(Link { from: start, to: end, when: when.clone(), max_times: *max_times, back: false });
    }
    Ok(links)
}

fn starts(named: &[String], nodes: &[Name], links: &[Link]) -> Result<Vec<usize>> {
    let mut starts: Vec<usize> = named.iter().map(|node| number(node, nodes)).collect::<Result<_>>()?;
    if starts.is_empty() {
        starts = roots(nodes.len(), links);
    }
    // Nodes that are ready together run in the order of the nodes, once.
    starts.sort_unstable();
    starts.dedup();
    if starts.is_empty() {
        return Err(PatternError::NoStart.into());
    }
    Ok(starts)
}

/// Whether the edges of a node fit together.
fn check_conditions(node: usize, name: &Name, links: &[Link]) -> Result<()> {
    let of = |is: fn(&Link) -> bool| links.iter().any(|link| link.from == node && is(link));
    let always = of(Link::is_sure);
    let holds = of(|link| !link.is_sure() && !matches!(link.when, EdgeCondition::Otherwise));
    let otherwise = of(|link| matches!(link.when, EdgeCondition::Otherwise));
    let (has, but, hint) = match (always, holds, otherwise) {
        (true, true, _) | (true, _, true) => (
            "has edges with a condition",
            "also edges without one",
            "give each a condition, or use `otherwise`",
        ),
        (_, false, true) => {
            ("has an edge for otherwise", "none with a condition", "give another edge of it a condition")
        }
        _ => return Ok(()),
    };
    let of = format!("`{name}`").into();
    Err(PatternError::Conflict { of, has: has.into(), but: but.into(), hint: Some(hint) }.into())
}

/// All nodes reachable from `starts`, nearest first.
fn reachable(starts: &[usize], links: &[Link]) -> Vec<usize> {
    let mut reached = starts.to_vec();
    let mut at = 0;
    while let Some(node) = reached.get(at).copied() {
        for link in links.iter().filter(|link| link.from == node) {
            if !reached.contains(&link.to) {
                reached.push(link.to);
            }
        }
        at += 1;
    }
    reached
}

/// Marks the back edges: those that close a loop when edges are added to an empty graph one by one, first the
/// unconditional ones, which close none, then those with a condition or a bound, nearest to the start first.
///
/// Returns the others.
fn mark_back(reached: &[usize], links: &mut [Link]) -> Vec<Link> {
    let mut order: Vec<usize> = (0..links.len()).collect();
    order.sort_by_key(|index| {
        let link = links.get(*index);
        let distance = link.and_then(|link| reached.iter().position(|node| *node == link.from));
        (!link.is_some_and(Link::is_sure), distance)
    });
    let mut forward: Vec<Link> = Vec::new();
    for index in order {
        let Some(link) = links.get_mut(index) else { continue };
        link.back = reachable(&[link.to], &forward).contains(&link.from);
        if !link.back {
            forward.push(link.clone());
        }
    }
    forward
}

/// The nodes reachable from `node`, itself included.
fn leads(node: usize, nodes: usize, links: &[Link]) -> Vec<bool> {
    let reached = reachable(&[node], links);
    (0..nodes).map(|node| reached.contains(&node)).collect()
}

/// A cycle among `nodes`, if there is any, whose first node is repeated at its end; `next` returns the targets of a
/// node's edges.
pub(crate) fn cycle<I: Iterator<Item = usize>>(
    nodes: usize,
    next: impl Fn(usize) -> I,
) -> Option<Vec<usize>> {
    // What remains after removing nodes without edges to others that remain, until nothing changes.
    let mut left: Vec<usize> = (0..nodes).collect();
    let onward = |node: usize, left: &[usize]| next(node).find(|to| left.binary_search(to).is_ok());
    loop {
        let kept: Vec<usize> = left.iter().copied().filter(|node| onward(*node, &left).is_some()).collect();
        if kept.len() == left.len() {
            break;
        }
        left = kept;
    }
    let mut path = vec![*left.first()?];
    while let Some(next) = onward(*path.last()?, &left) {
        let seen = path.iter().position(|node| *node == next);
        path.push(next);
        if let Some(start) = seen {
            return Some(path.split_off(start));
        }
    }
    None
}
