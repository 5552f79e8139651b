//! Flows along a graph.

use std::collections::{BTreeMap, BTreeSet};

use super::Result;
use super::cursor::Fields;
use super::draft::Draft;
use super::yaml::{Entries, Yaml};

/// An edge of a graph.
struct Edge<'a> {
    to: String,
    /// The text that the last message has to hold.
    says: Option<&'a str>,
}

/// The pattern of a graph: states where one speaks after the other, a flow where several speak at the same time.
pub(super) fn pattern(config: &mut Fields<'_>, names: &[String], draft: &mut Draft) -> Result<Yaml> {
    let mut graph = config.need("graph")?.fields()?;
    let start = graph.text("default_start_node")?;
    let nodes = graph.need("nodes")?;
    let mut edges: BTreeMap<String, Vec<Edge<'_>>> = BTreeMap::new();
    let mut joins = Vec::new();
    for (name, node) in nodes.entries()? {
        let mut node = node.fields()?;
        let Some(from) = draft.known(name).map(str::to_owned) else {
            draft.note(&node.at.path, "left out: there is no such participant");
            continue;
        };
        if node.text("activation")? == Some("any") {
            joins.push(from.clone());
        }
        let mut out = Vec::new();
        for at in node.take("edges").map(|at| at.items()).transpose()?.unwrap_or_default() {
            let mut edge = at.fields()?;
            let target = edge.need("target")?;
            match draft.known(target.text()?) {
                Some(to) => out.push(Edge { to: to.to_owned(), says: edge.text("condition")? }),
                None => draft.note(&target.path, "left out: there is no such participant"),
            }
        }
        edges.insert(from, out);
    }
    let start = start.and_then(|start| draft.known(start)).map(str::to_owned);
    let entered: BTreeSet<&str> = edges.values().flatten().map(|edge| edge.to.as_str()).collect();
    let starts: Vec<&str> = names.iter().map(String::as_str).filter(|name| !entered.contains(name)).collect();
    let forks = |out: &Vec<Edge<'_>>| out.iter().filter(|edge| edge.says.is_none()).count() > 1;
    let has_forks = edges.values().any(forks) || start.is_none() && starts.len() > 1;
    let is_free = edges.values().flatten().all(|edge| edge.says.is_none());
    if has_forks && is_free {
        joins.iter().for_each(|name| {
            draft.note(&nodes.path, format!("`{name}` waits for all before it here, not for any of them"));
        });
        return Ok(after(&edges));
    }
    if has_forks {
        let what = "where several are next at the same time, only the first of them is next here";
        draft.note(&nodes.path, what);
    }
    let first = start.or_else(|| starts.first().map(|name| (*name).to_owned()));
    Ok(states(first.as_deref(), &edges))
}

/// Everybody after those before them, several at the same time.
fn after(edges: &BTreeMap<String, Vec<Edge<'_>>>) -> Yaml {
    let mut before: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, out) in edges {
        out.iter().for_each(|edge| before.entry(&edge.to).or_default().push(from));
    }
    let before = before.into_iter().map(|(name, before)| (name.to_owned(), Yaml::texts(before)));
    Yaml::one("after", Yaml::Map(before.collect()))
}

/// A speaker after the other, by what the last message holds.
fn states(start: Option<&str>, edges: &BTreeMap<String, Vec<Edge<'_>>>) -> Yaml {
    let mut states: Entries = Vec::new();
    states.extend(start.map(|start| ("start".to_owned(), Yaml::text(start))));
    let after = edges.iter().map(|(from, out)| (from.clone(), exits(out))).collect();
    states.push(("after".into(), Yaml::Map(after)));
    Yaml::one("states", Yaml::Map(states))
}

fn exits(out: &[Edge<'_>]) -> Yaml {
    match out {
        [] => Yaml::text("end"),
        [Edge { to, says: None }] => Yaml::text(to),
        edges => {
            let (free, bound): (Vec<_>, Vec<_>) = edges.iter().partition(|edge| edge.says.is_none());
            let ways = bound.into_iter().chain(free.into_iter().take(1));
            Yaml::List(ways.map(|edge| Yaml::Map(exit(edge))).collect())
        }
    }
}

fn exit(edge: &Edge<'_>) -> Entries {
    let when = edge.says.map(|text| ("when".to_owned(), Yaml::text(holds(text))));
    when.into_iter().chain([("then".to_owned(), Yaml::text(&edge.to))]).collect()
}

/// Whether the last message holds a text, in CEL, whose texts are written as those of JSON.
fn holds(text: &str) -> String {
    format!("last.text.contains({})", serde_json::Value::from(text))
}
