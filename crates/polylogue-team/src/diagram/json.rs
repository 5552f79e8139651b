//! Diagrams as JSON, with the places that the SVG has.

use serde_json::{Value, json};

use super::graph::{EdgeKind, Group, Node};
use super::layout::Route;
use super::svg::{Drawn, drawn, size};

/// The outermost chat.
pub(super) fn document(outermost: &Group) -> Value {
    group(outermost, &drawn(outermost))
}

fn group(group: &Group, drawn: &Drawn) -> Value {
    let (left, top) = drawn.origin();
    let nodes = group.nodes.iter().zip(&drawn.inner).zip(&drawn.layout.nodes);
    let nodes = nodes.map(|((of, inner), (x, y))| node(of, inner.as_ref(), (left + x, top + y)));
    let edges = group.edges.iter().zip(&drawn.layout.edges).map(|(edge, Route { points, label })| {
        let points = points.iter().map(|(x, y)| place((left + x, top + y)));
        json!({
            "from": edge.from,
            "to": edge.to,
            "kind": match edge.kind {
                EdgeKind::Next => "next",
                EdgeKind::Both => "both",
                EdgeKind::Uses => "uses",
            },
            "label": edge.label,
            "when": edge.when,
            "label_at": place((left + label.0, top + label.1)),
            "points": points.collect::<Vec<_>>(),
        })
    });
    json!({
        "name": group.name,
        "pattern": drawn.pattern,
        "width": pixels(drawn.width),
        "height": pixels(drawn.height),
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "ends": drawn.ends,
    })
}

fn node(of: &Node, inner: Option<&Drawn>, at: (f64, f64)) -> Value {
    let (width, height) = inner.map_or_else(|| size(of), |inner| (inner.width, inner.height));
    json!({
        "kind": of.kind.word(),
        "name": of.name,
        "details": of.details,
        "whole": of.whole,
        "x": pixels(at.0),
        "y": pixels(at.1),
        "width": pixels(width),
        "height": pixels(height),
        "chat": of.group.as_deref().zip(inner).map(|(of, inner)| group(of, inner)),
    })
}

fn place((x, y): (f64, f64)) -> [f64; 2] {
    [pixels(x), pixels(y)]
}

/// Tenths of pixels are enough.
fn pixels(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Overrides, parse};

    #[test]
    fn a_diagram_has_each_participant_at_its_place_and_who_follows_whom() {
        let text = "
name: t
agents: [{name: Ann}, {name: Bob, human: true}]
chats: [{name: inner, participants: [Ann], pattern: sequential}]
chat: {participants: [Ann, Bob, inner], pattern: sequential, stop: {max_turns: 4}}
";
        let graph = parse(text, "t.yaml", &Overrides::default()).unwrap().team.diagram().to_json();
        let nodes = graph["nodes"].as_array().unwrap();
        let at = |name: &str| nodes.iter().position(|node| node["name"] == name).unwrap();
        let (ann, bob, inner) = (at("Ann"), at("Bob"), at("inner"));
        assert_eq!((&nodes[ann]["kind"], &nodes[bob]["kind"]), (&json!("model"), &json!("person")));
        assert_eq!(nodes[inner]["chat"]["nodes"][at_of(&nodes[inner]["chat"], "Ann")]["kind"], "model");
        let follows = |from: usize, to: usize| {
            graph["edges"].as_array().unwrap().iter().any(|edge| edge["from"] == from && edge["to"] == to)
        };
        assert!(follows(ann, bob) && follows(bob, inner) && !follows(bob, ann), "{graph:#}");
        // Everything is within the chat.
        for node in nodes {
            let right = node["x"].as_f64().unwrap() + node["width"].as_f64().unwrap();
            let bottom = node["y"].as_f64().unwrap() + node["height"].as_f64().unwrap();
            assert!(right <= graph["width"].as_f64().unwrap() && bottom <= graph["height"].as_f64().unwrap());
        }
    }

    #[test]
    fn who_selects_speakers_is_whole_and_what_is_drawn_shortened_is_there_in_full() {
        let tools = "[get_history, list_files, read_file, write_file, edit_file]";
        let when = "last.text.startsWith('A long beginning of a reply') || turns > 3";
        let text = format!(
            "
name: t
agents: [{{name: Ann, tools: {tools}}}, {{name: Bob}}, {{name: The_Head_of_the_Department_of_Long_Names, human: true}}]
chats:
  - name: states
    participants: [Ann, Bob]
    pattern: {{state_machine: {{start: Ann, after: {{Ann: [{{when: \"{when}\", then: Bob}}, {{then: end}}], Bob: Ann}}}}}}
    stop: {{max_turns: 4}}
chat:
  participants: [Ann, Bob, states]
  pattern: {{group: {{select: {{human: The_Head_of_the_Department_of_Long_Names}}}}}}
  stop: {{max_turns: 4}}
"
        );
        let diagram = parse(&text, "t.yaml", &Overrides::default()).unwrap().team.diagram();
        let graph = diagram.to_json();
        let nodes = graph["nodes"].as_array().unwrap();
        let name = "selected by The_Head_of_the_Department_of_Long_Names";
        assert!(nodes.iter().any(|node| node["kind"] == "selector" && node["name"] == name), "{graph:#}");
        assert_eq!(diagram.selected_by(), Some(name));
        let node = |name: &str| nodes.iter().find(|node| node["name"] == name).unwrap();
        let shown = node("Ann")["details"].as_array().unwrap().last().unwrap().as_str().unwrap();
        let whole = node("Ann")["whole"].as_str().unwrap();
        assert!(shown.ends_with('…') && whole.ends_with("write_file, edit_file"), "{shown} {whole}");
        assert_eq!(node("Bob")["whole"], json!(null), "nothing of it is shortened");
        let edges = node("states")["chat"]["edges"].as_array().unwrap();
        let edge = edges.iter().find(|edge| edge["when"] == when).unwrap();
        assert!(edge["label"].as_str().unwrap().ends_with('…'), "{edge}");
    }

    fn at_of(chat: &serde_json::Value, name: &str) -> usize {
        chat["nodes"].as_array().unwrap().iter().position(|node| node["name"] == name).unwrap()
    }
}
