//! Checks a graph.

use polylogue_core::Name;

use super::edge::{Link, When};
use super::{CheckedGraph, Edge, Graph, GraphError, Join};

/// The graph, if it is valid.
pub(super) fn checked(flow: Graph) -> Result<CheckedGraph, GraphError> {
    let nodes = named(&flow.nodes)?;
    let mut links = linked(&flow.edges, &nodes)?;
    let mut joins = vec![Join::default(); nodes.len()];
    for (node, join) in &flow.joins {
        if let Some(slot) = joins.get_mut(number(node, &nodes)?) {
            *slot = *join;
        }
    }
    let starts = starts(&flow.starts, &nodes, &links)?;
    if !nodes.is_empty() && (0..nodes.len()).all(|node| links.iter().any(|link| link.from == node)) {
        return Err(GraphError::NoLeaf);
    }
    let told = |node: usize| nodes.get(node).map(ToString::to_string).unwrap_or_default();
    for node in 0..nodes.len() {
        check_conditions(node, &links).map_err(|error| error(told(node)))?;
    }
    let met = met(&starts, &links);
    if let Some(node) = (0..nodes.len()).find(|node| !met.contains(node)) {
        return Err(GraphError::Unreachable(told(node)));
    }
    if let Some(endless) = endless(nodes.len(), &links) {
        return Err(GraphError::EndlessLoop(endless.into_iter().map(told).collect()));
    }
    let forward = mark_back(&met, &mut links);
    let leads = (0..nodes.len()).map(|node| leads(node, nodes.len(), &forward)).collect();
    Ok(CheckedGraph { nodes, starts, links, joins, leads })
}

fn named(nodes: &[String]) -> Result<Vec<Name>, GraphError> {
    let mut names: Vec<Name> = Vec::new();
    for node in nodes {
        let name = Name::new(node)?;
        if names.contains(&name) {
            return Err(GraphError::SameNode(node.clone()));
        }
        names.push(name);
    }
    Ok(names)
}

fn number(node: &str, nodes: &[Name]) -> Result<usize, GraphError> {
    let found = nodes.iter().position(|name| name.as_str() == node);
    found.ok_or_else(|| GraphError::UnknownNode(node.to_owned()))
}

fn linked(edges: &[Edge], nodes: &[Name]) -> Result<Vec<Link>, GraphError> {
    let mut links: Vec<Link> = Vec::new();
    for Edge { from, to, when, at_most } in edges {
        let (start, end) = (number(from, nodes)?, number(to, nodes)?);
        if links.iter().any(|link| link.from == start && link.to == end) {
            return Err(GraphError::SameEdge { from: from.clone(), to: to.clone() });
        }
        links.push(Link { from: start, to: end, when: when.clone(), at_most: *at_most, back: false });
    }
    Ok(links)
}

fn starts(named: &[String], nodes: &[Name], links: &[Link]) -> Result<Vec<usize>, GraphError> {
    let mut starts: Vec<usize> =
        named.iter().map(|node| number(node, nodes)).collect::<Result<_, GraphError>>()?;
    if starts.is_empty() {
        starts = (0..nodes.len()).filter(|node| links.iter().all(|link| link.to != *node)).collect();
    }
    // Nodes that are ready together run in the order of the nodes, once.
    starts.sort_unstable();
    starts.dedup();
    if starts.is_empty() { Err(GraphError::NoStart) } else { Ok(starts) }
}

/// Whether the edges of a node fit together.
fn check_conditions(node: usize, links: &[Link]) -> Result<(), fn(String) -> GraphError> {
    let of = |is: fn(&Link) -> bool| links.iter().any(|link| link.from == node && is(link));
    let always = of(Link::is_sure);
    let holds = of(|link| !link.is_sure() && !matches!(link.when, When::Otherwise));
    let otherwise = of(|link| matches!(link.when, When::Otherwise));
    match (always, holds, otherwise) {
        (true, true, _) | (true, _, true) => Err(GraphError::Mixed),
        (_, false, true) => Err(GraphError::NoCondition),
        _ => Ok(()),
    }
}

/// All nodes reachable from `starts`, nearest first.
fn met(starts: &[usize], links: &[Link]) -> Vec<usize> {
    let mut met = starts.to_vec();
    let mut at = 0;
    while let Some(node) = met.get(at).copied() {
        for link in links.iter().filter(|link| link.from == node) {
            if !met.contains(&link.to) {
                met.push(link.to);
            }
        }
        at += 1;
    }
    met
}

/// Marks the back edges: those that close a loop when edges are added to an empty graph one by one, first the
/// unconditional ones, which close none, then those with a condition or a bound, nearest to the start first.
///
/// Returns the others.
fn mark_back(met: &[usize], links: &mut [Link]) -> Vec<Link> {
    let mut order: Vec<usize> = (0..links.len()).collect();
    order.sort_by_key(|index| {
        let link = links.get(*index);
        let distance = link.and_then(|link| met.iter().position(|node| *node == link.from));
        (!link.is_some_and(Link::is_sure), distance)
    });
    let mut forward: Vec<Link> = Vec::new();
    for index in order {
        let Some(link) = links.get_mut(index) else { continue };
        link.back = self::met(&[link.to], &forward).contains(&link.from);
        if !link.back {
            forward.push(link.clone());
        }
    }
    forward
}

/// The nodes reachable from `node`, itself included.
fn leads(node: usize, nodes: usize, links: &[Link]) -> Vec<bool> {
    let met = met(&[node], links);
    (0..nodes).map(|node| met.contains(&node)).collect()
}

/// A loop of unconditional edges, if there is any: what remains after removing nodes without such edges until nothing
/// changes.
fn endless(nodes: usize, links: &[Link]) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = (0..nodes).collect();
    let onward = |node: usize, left: &[usize]| {
        links
            .iter()
            .find(|link| link.from == node && link.is_sure() && left.contains(&link.to))
            .map(|link| link.to)
    };
    loop {
        let kept: Vec<usize> = left.iter().copied().filter(|node| onward(*node, &left).is_some()).collect();
        if kept.len() == left.len() {
            break;
        }
        left = kept;
    }
    let mut way = vec![*left.first()?];
    while let Some(next) = onward(*way.last()?, &left) {
        if let Some(at) = way.iter().position(|node| *node == next) {
            way.push(next);
            return Some(way.split_off(at));
        }
        way.push(next);
    }
    None
}
