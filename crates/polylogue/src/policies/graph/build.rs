//! Builds a graph, and checks it.

use polylogue_core::{Error, Name, Result};

use super::checked::{AfterLeaving, CheckedGraph, Join, roots};
use super::edge::{Edge, EdgeCondition, Link};

/// A graph under construction; see the [module](super).
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<String>,
    starts: Vec<String>,
    edges: Vec<Edge>,
    joins: Vec<(String, Join)>,
}

impl Graph {
    /// A graph of these participants. Nodes that are ready together run in this order.
    #[must_use]
    pub fn of<N: Into<String>>(nodes: impl IntoIterator<Item = N>) -> Self {
        Self { nodes: nodes.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds an edge: a pair of names, or an [`Edge`] with a condition.
    #[must_use]
    pub fn edge(mut self, edge: impl Into<Edge>) -> Self {
        self.edges.push(edge.into());
        self
    }

    /// Adds a start node. Default: the nodes without incoming edges.
    #[must_use]
    pub fn starts_with(mut self, node: impl Into<String>) -> Self {
        self.starts.push(node.into());
        self
    }

    /// Sets when `node` runs if it has several incoming edges.
    #[must_use]
    pub fn join(mut self, node: impl Into<String>, join: Join) -> Self {
        self.joins.push((node.into(), join));
        self
    }

    /// Checks the graph and returns it as a policy.
    ///
    /// # Errors
    /// When it has no start or no end, when a node is unknown, listed twice or unreachable, when a loop is endless, or
    /// when a node has edges both with and without a condition.
    pub fn build(self) -> Result<CheckedGraph> {
        checked(self)
    }
}

/// The graph, if it is valid.
fn checked(graph: Graph) -> Result<CheckedGraph> {
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
        return wrong("the graph has no end: edges lead on from every node");
    }
    let name = |node: usize| nodes.get(node).map(ToString::to_string).unwrap_or_default();
    for node in 0..nodes.len() {
        check_conditions(node, &name(node), &links)?;
    }
    let reached = reachable(&starts, &links);
    if let Some(node) = (0..nodes.len()).find(|node| !reached.contains(node)) {
        return wrong(format!("no way leads to `{}` from the beginning of the graph", name(node)));
    }
    let sure = |node: usize| {
        links.iter().filter(move |link| link.from == node && link.is_sure()).map(|link| link.to)
    };
    if let Some(endless) = cycle(nodes.len(), sure) {
        let nodes: Vec<String> = endless.into_iter().map(name).collect();
        return wrong(format!(
            "the loop {} never ends; give an edge of it a condition or a bound",
            nodes.join(" -> ")
        ));
    }
    let forward = mark_back(&reached, &mut links);
    let leads = (0..nodes.len()).map(|node| leads(node, nodes.len(), &forward)).collect();
    Ok(CheckedGraph { nodes, starts, links, joins, leads, after_leaving: AfterLeaving::Close })
}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::config(what.into()))
}

fn named(nodes: &[String]) -> Result<Vec<Name>> {
    let mut names: Vec<Name> = Vec::new();
    for node in nodes {
        let name = Name::new(node)?;
        if names.contains(&name) {
            return wrong(format!("the graph has the node `{node}` twice"));
        }
        names.push(name);
    }
    Ok(names)
}

fn number(node: &str, nodes: &[Name]) -> Result<usize> {
    let found = nodes.iter().position(|name| name.as_str() == node);
    found.map_or_else(|| wrong(format!("the graph has no node `{node}`; name it in `Graph::of`")), Ok)
}

fn linked(edges: &[Edge], nodes: &[Name]) -> Result<Vec<Link>> {
    let mut links: Vec<Link> = Vec::new();
    for Edge { from, to, when, at_most } in edges {
        let (start, end) = (number(from, nodes)?, number(to, nodes)?);
        if links.iter().any(|link| link.from == start && link.to == end) {
            return wrong(format!("the graph has two edges from `{from}` to `{to}`"));
        }
        links.push(Link { from: start, to: end, when: when.clone(), at_most: *at_most, back: false });
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
        return wrong(
            "the graph has no start: edges lead to every node; name the nodes with which it starts",
        );
    }
    Ok(starts)
}

/// Whether the edges of a node fit together.
fn check_conditions(node: usize, name: &str, links: &[Link]) -> Result<()> {
    let of = |is: fn(&Link) -> bool| links.iter().any(|link| link.from == node && is(link));
    let always = of(Link::is_sure);
    let holds = of(|link| !link.is_sure() && !matches!(link.when, EdgeCondition::Otherwise));
    let otherwise = of(|link| matches!(link.when, EdgeCondition::Otherwise));
    match (always, holds, otherwise) {
        (true, true, _) | (true, _, true) => wrong(format!(
            "`{name}` has edges with and without a condition; give each a condition, or use `otherwise`"
        )),
        (_, false, true) => wrong(format!("`{name}` has an edge for otherwise, and none with a condition")),
        _ => Ok(()),
    }
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
