//! Diagrams in the language of Graphviz.

use std::fmt::Write as _;

use super::graph::{Edge, EdgeKind, Group, Node, NodeKind};
use super::text::shortened;

/// The longest list of what ends a chat, in characters.
const LONGEST: usize = 160;

pub(super) fn document(outermost: &Group) -> String {
    let mut text = format!("digraph {} {{\n", quoted(&[&outermost.name]));
    text.push_str("  compound=true\n  node [fontname=\"Helvetica\" fontsize=11 shape=box style=rounded]\n");
    text.push_str("  edge [fontname=\"Helvetica\" fontsize=10]\n  fontname=\"Helvetica\"\n");
    group(outermost, "g", 1, &mut text);
    text.push_str("}\n");
    text
}

fn group(group: &Group, id: &str, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let ends = shortened(&format!("ends: {}", group.ends.join(" · ")), LONGEST);
    let mut title: Vec<&str> = vec![&group.name, &group.pattern];
    title.extend((!group.ends.is_empty()).then_some(ends.as_str()));
    let _ = writeln!(text, "{indent}subgraph \"cluster_{id}\" {{\n{indent}  label={}", quoted(&title));
    for (at, node) in group.nodes.iter().enumerate() {
        self::node(node, &format!("{id}_{at}"), depth + 1, text);
    }
    for edge in &group.edges {
        self::edge(group, edge, id, &indent, text);
    }
    let _ = writeln!(text, "{indent}}}");
}

fn node(node: &Node, id: &str, depth: usize, text: &mut String) {
    if let Some(inner) = &node.group {
        return group(inner, id, depth, text);
    }
    let lines: Vec<&str> =
        std::iter::once(node.name.as_str()).chain(node.details.iter().map(String::as_str)).collect();
    let shape = match node.kind {
        NodeKind::Start => " shape=circle",
        NodeKind::End => " shape=doublecircle",
        NodeKind::Selector => " shape=hexagon style=solid",
        NodeKind::Person => " shape=ellipse style=solid",
        NodeKind::Program => " shape=component style=solid",
        NodeKind::Model | NodeKind::Chat => "",
    };
    let _ = writeln!(text, "{}{id} [label={}{shape}]", "  ".repeat(depth), quoted(&lines));
}

/// An edge. Those of a chat are drawn to its border; Graphviz needs nodes within it.
fn edge(group: &Group, Edge { from, to, label, kind, .. }: &Edge, id: &str, indent: &str, text: &mut String) {
    let mut attributes = Vec::new();
    attributes.extend((!label.is_empty()).then(|| format!("label={}", quoted(&[label]))));
    match kind {
        EdgeKind::Next => {}
        EdgeKind::Both => attributes.push("dir=both".to_owned()),
        EdgeKind::Uses => attributes.push("style=dashed".to_owned()),
    }
    let mut ends = Vec::new();
    for (at, attribute) in [(from, "ltail"), (to, "lhead")] {
        let mut name = format!("{id}_{at}");
        let mut inner = group.nodes.get(*at).and_then(|node| node.group.as_ref());
        if inner.is_some() {
            attributes.push(format!("{attribute}=\"cluster_{name}\""));
        }
        // The first node of a group is its start.
        while let Some(first) = inner {
            name.push_str("_0");
            inner = first.nodes.first().and_then(|node| node.group.as_ref());
        }
        ends.push(name);
    }
    let attributes =
        if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(" ")) };
    let _ = writeln!(text, "{indent}  {}{attributes}", ends.join(" -> "));
}

/// Lines as a quoted string.
fn quoted(lines: &[&str]) -> String {
    let line = |line: &&str| {
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        line.replace('\\', "\\\\").replace('"', "\\\"")
    };
    format!("\"{}\"", lines.iter().map(line).collect::<Vec<_>>().join("\\n"))
}
