//! Diagrams as flowcharts in the language of Mermaid.

use std::fmt::Write as _;

use super::graph::{Edge, EdgeKind, Group, Node, NodeKind};
use super::text::shortened;

/// The longest list of what ends a chat, in characters.
const LONGEST: usize = 160;

pub(super) fn document(outermost: &Group) -> String {
    let mut text = String::from("flowchart TB\n");
    group(outermost, "g", 1, &mut text);
    text
}

/// A group and what is in it. The identifiers of its nodes begin with its own.
fn group(group: &Group, id: &str, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let title = match group.ends.as_slice() {
        [] => format!("{}<br/>{}", quoted(&group.name), quoted(&group.pattern)),
        ends => {
            let ends = shortened(&ends.join(" · "), LONGEST);
            format!("{}<br/>{}<br/>ends: {}", quoted(&group.name), quoted(&group.pattern), quoted(&ends))
        }
    };
    let _ = writeln!(text, "{indent}subgraph {id} [\"{title}\"]");
    for (at, node) in group.nodes.iter().enumerate() {
        self::node(node, &format!("{id}_{at}"), depth + 1, text);
    }
    for Edge { from, to, label, kind, .. } in &group.edges {
        let arrow = match kind {
            EdgeKind::Next => "-->",
            EdgeKind::Both => "<-->",
            EdgeKind::Uses => "-.->",
        };
        let label = if label.is_empty() { String::new() } else { format!("|\"{}\"|", quoted(label)) };
        let _ = writeln!(text, "{indent}  {id}_{from} {arrow}{label} {id}_{to}");
    }
    let _ = writeln!(text, "{indent}end");
}

fn node(node: &Node, id: &str, depth: usize, text: &mut String) {
    if let Some(inner) = &node.group {
        return group(inner, id, depth, text);
    }
    let lines = std::iter::once(node.name.as_str()).chain(node.details.iter().map(String::as_str));
    let label = lines.map(quoted).collect::<Vec<_>>().join("<br/>");
    let (open, close) = match node.kind {
        NodeKind::Start | NodeKind::End | NodeKind::Person => ("([", "])"),
        NodeKind::Selector => ("{{", "}}"),
        NodeKind::Program => ("[[", "]]"),
        NodeKind::Model | NodeKind::Chat => ("[", "]"),
    };
    let _ = writeln!(text, "{}{id}{open}\"{label}\"{close}", "  ".repeat(depth));
}

/// A text within quotation marks: whatever means something in Mermaid, HTML or Markdown is written as an entity.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '*' | '_' | '\\' | ';' | '{' | '}' | '|' => {
                let _ = write!(quoted, "#{};", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted
}
