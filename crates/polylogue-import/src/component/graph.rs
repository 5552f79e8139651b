//! GraphFlow.

use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::Result;
use crate::yaml::{Entries, Yaml};

/// The pattern of a graph; `sequential` for one without edges.
pub(super) fn pattern(config: &mut Fields<'_>, draft: &mut Draft) -> Result<Yaml> {
    let mut graph = config.need("graph")?.fields()?;
    let start = graph.take("default_start_node");
    let mut edges: Entries = Vec::new();
    let mut joins: Entries = Vec::new();
    for (name, at) in graph.need("nodes")?.entries()? {
        let mut node = at.fields()?;
        node.unusual("name", name, "left out: a node has the name of its participant", draft);
        let Some(from) = draft.known(name).map(str::to_owned) else {
            draft.note(&at.path, "left out: there is no such participant");
            continue;
        };
        if is_any(&mut node, "activation")? {
            join_any(&from, &mut joins);
        }
        let mut ways = Vec::new();
        for edge in node.take("edges").map(|at| at.items()).transpose()?.unwrap_or_default() {
            ways.extend(way(&edge, &mut joins, draft)?);
        }
        match ways.as_slice() {
            [] => {}
            [Yaml::Text(to)] => edges.push((from, Yaml::text(to))),
            _ => edges.push((from, Yaml::List(ways))),
        }
        node.rest(draft);
    }
    graph.rest(draft);
    if edges.is_empty() {
        if let Some(at) = start {
            draft.note(&at.path, "left out: without edges, participants speak in their order");
        }
        return Ok(Yaml::text("sequential"));
    }
    let mut graph: Entries = Vec::new();
    if let Some(at) = start {
        let names = draft.all_known(&[at.text()?], &at.path);
        graph.extend(names.first().map(|name| ("start".to_owned(), Yaml::text(name))));
    }
    graph.push(("edges".into(), Yaml::Map(edges)));
    if !joins.is_empty() {
        graph.push(("join".into(), Yaml::Map(joins)));
    }
    Ok(Yaml::one("graph", Yaml::Map(graph)))
}

/// Whether a node is reached by any of the edges to it, and not by all.
fn is_any(fields: &mut Fields<'_>, key: &str) -> Result<bool> {
    let Some(at) = fields.take(key) else { return Ok(false) };
    match at.text()? {
        "any" => Ok(true),
        "all" => Ok(false),
        _ => at.wrong("must be `all` or `any`"),
    }
}

fn join_any(name: &str, joins: &mut Entries) {
    if !joins.iter().any(|(known, _)| known == name) {
        joins.push((name.to_owned(), Yaml::text("any")));
    }
}

/// An edge: a name, or a name with the text that a message must contain.
fn way(at: &At<'_>, joins: &mut Entries, draft: &mut Draft) -> Result<Option<Yaml>> {
    let mut edge = at.fields()?;
    let target = edge.need("target")?;
    let wanted = target.text()?;
    let Some(to) = draft.known(wanted).map(str::to_owned) else {
        draft.note(&target.path, "left out: there is no such participant");
        return Ok(None);
    };
    if is_any(&mut edge, "activation_condition")? {
        join_any(&to, joins);
    }
    if let Some(group) = edge.take("activation_group") {
        let name = group.text()?;
        if !name.is_empty() && name != wanted {
            draft.note(&group.path, "left out: all edges to a participant are of one group here, see `join`");
        }
    }
    let says = edge.text("condition")?;
    edge.rest(draft);
    let to = Yaml::text(to);
    Ok(Some(match says {
        None => to,
        Some(says) => Yaml::Map(vec![("to".into(), to), ("says".into(), Yaml::text(says))]),
    }))
}
