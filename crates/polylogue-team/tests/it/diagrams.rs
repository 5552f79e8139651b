//! Diagrams of teams. `POLYLOGUE_DIAGRAMS=FOLDER` writes those of all shipped teams there.

use std::fs;
use std::path::Path;

use expect_test::expect;
use polylogue_team::{Diagram, DiagramEdge, Overrides, load, parse};
use roxmltree::{Document, Node};

use crate::corpus::{files, folder};

fn diagram(text: &str) -> Diagram {
    parse(text, "team.yaml", &Overrides::default()).unwrap().team.diagram()
}

/// The diagrams of all shipped teams and of the good files of the corpus, by name.
fn all() -> Vec<(String, Diagram)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.join("../../teams"), root.join("../polylogue-cli/templates"), folder("good")];
    let paths = folders.iter().flat_map(|folder| files(folder));
    let all = paths.map(|path| {
        let team = load(&path, &Overrides::default()).unwrap().team;
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), team.diagram())
    });
    all.collect()
}

fn number(of: &Node<'_, '_>, attribute: &str) -> f64 {
    of.attribute(attribute).unwrap().parse().unwrap()
}

/// The boxes directly in a group, each from its upper left to its lower right corner: nodes, labels and inner groups.
fn boxes(group: &Node<'_, '_>) -> Vec<[f64; 4]> {
    let corners = |rect: &Node<'_, '_>, (dx, dy): (f64, f64)| {
        let at = |name: &str| rect.attribute(name).map_or(0.0, |text| text.parse().unwrap());
        let (x, y) = (at("x") + dx, at("y") + dy);
        [x, y, x + number(rect, "width"), y + number(rect, "height")]
    };
    let own =
        group.children().filter(|child| child.has_tag_name("rect") && child.attribute("class") != Some("g"));
    let inner = group.children().filter(|child| child.has_tag_name("g")).filter_map(|child| {
        let moved = child.attribute("transform")?.strip_prefix("translate(")?.strip_suffix(')')?;
        let (x, y) = moved.split_once(' ')?;
        let rect = child.children().find(|one| one.attribute("class") == Some("g"))?;
        Some(corners(&rect, (x.parse().unwrap(), y.parse().unwrap())))
    });
    own.map(|rect| corners(&rect, (0.0, 0.0))).chain(inner).collect()
}

fn overlap(one: &[f64; 4], other: &[f64; 4]) -> bool {
    const ROUNDED: f64 = 0.3;
    one[0] + ROUNDED < other[2]
        && other[0] + ROUNDED < one[2]
        && one[1] + ROUNDED < other[3]
        && other[1] + ROUNDED < one[3]
}

#[test]
fn every_team_is_a_self_contained_picture_without_overlaps() {
    let target = std::env::var_os("POLYLOGUE_DIAGRAMS");
    for (name, diagram) in all() {
        let svg = diagram.to_svg();
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}\n{svg}"));
        for word in ["<script", "href", "@import", "<image", "foreignObject"] {
            assert!(!svg.contains(word), "{name}: `{word}`");
        }
        for group in document.descendants().filter(|node| node.has_tag_name("g")) {
            let boxes = boxes(&group);
            for (at, one) in boxes.iter().enumerate() {
                let over = boxes[at + 1..].iter().find(|other| overlap(one, other));
                assert!(over.is_none(), "{name}: {one:?} and {over:?} overlap\n{svg}");
            }
        }
        if let Some(target) = &target {
            let write = |ending: &str, text: &str| {
                fs::write(Path::new(target).join(format!("{name}.{ending}")), text).unwrap();
            };
            write("svg", &svg);
            write("dot", &diagram.to_dot());
            write("mmd", &diagram.to_mermaid());
        }
    }
}

#[test]
fn texts_of_a_team_cannot_leave_their_places() {
    let text = r#"
name: t
vars: {marker: "<svg onload='x'>\"]} & \\ `end` #1; |x|"}
agents:
  - {name: Ann, model: "openai:<b>&\"m"}
  - {name: Bob}
chat:
  participants: [Ann, Bob]
  pattern: {graph: {edges: {Ann: [{to: Bob, says: "{{marker}}"}]}}}
  stop: {says: "{{marker}}", max_turns: 4}
"#;
    let diagram = diagram(text);
    let svg = diagram.to_svg();
    let document = Document::parse(&svg).unwrap();
    assert!(document.descendants().all(|node| node.attribute("onload").is_none()));
    let mut shown = document.descendants().filter_map(|node| node.text());
    assert!(shown.any(|text| text.contains("<svg onload='x'>\"]} & \\ `end`")), "{svg}");
    for line in diagram.to_mermaid().lines().filter(|line| line.contains("onload")) {
        assert_eq!(line.matches('"').count(), 2, "{line}");
        assert!(!line.contains("<svg"), "{line}");
    }
    assert!(diagram.to_dot().contains(r#"<svg onload='x'>\"]} & \\ `end`"#), "{}", diagram.to_dot());
}

const DESK: &str = "
name: desk
model: openai:gpt-4o
agents:
  - {name: Front, system: You answer., tools: [calculator], handoffs: [Expert]}
  - {name: Expert, system: You know., agent_tools: [Archive]}
  - {name: Pat, human: true}
  - {name: Clerk, model: none, default_reply: OK}
chat:
  participants: [Front, Expert, Pat]
  pattern: {handoffs: {then: Pat}}
  stop: {says: BYE, max_turns: 20}
chats:
  - {name: Archive, participants: [Clerk], stop: {max_turns: 1}}
";

#[test]
fn a_transition_without_a_condition_is_for_otherwise_after_those_with_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams/support-states.yaml");
    let flowchart = load(path, &Overrides::default()).unwrap().team.diagram().to_mermaid();
    // Triage, Technical and Reviewer: the last two follow each other, under different conditions.
    for line in [r#"g_1 -->|"otherwise"| g_3"#, "g_3 --> g_4", r#"g_4 -->|"otherwise"| g_3"#] {
        assert!(flowchart.lines().any(|found| found.trim() == line), "no `{line}` in {flowchart}");
    }
}

#[test]
fn a_flowchart_has_participants_steps_nested_chats_and_ends() {
    expect![[r#"
        flowchart TB
          subgraph g ["desk<br/>handoffs, starting with Front#59; without a handoff Pat is next<br/>ends: “BYE” · 20 turns"]
            g_0(["start"])
            g_1["Front<br/>openai:gpt-4o<br/>tools: calculator"]
            g_2["Expert<br/>openai:gpt-4o"]
            g_3(["Pat"])
            subgraph g_4 ["Archive<br/>in turn<br/>ends: 1 turn"]
              g_4_0(["start"])
              g_4_1[["Clerk"]]
              g_4_0 --> g_4_1
              g_4_1 --> g_4_1
            end
            g_0 --> g_1
            g_1 -->|"hands over"| g_2
            g_1 -->|"no handoff"| g_3
            g_2 -->|"no handoff"| g_3
            g_3 -->|"no handoff"| g_3
            g_2 -.->|"calls"| g_4
          end
    "#]].assert_eq(&diagram(DESK).to_mermaid());
}

#[test]
fn what_an_agent_that_is_called_as_a_tool_uses_is_drawn_too() {
    let text = "
name: t
agents:
  - {name: Ann, agent_tools: [Zed]}
  - {name: Zed, nested_chats: [{chat: inner}], agent_tools: [Deep, Ann]}
  - {name: Deep, tools: [calculator]}
  - {name: Cy}
chats: [{name: inner, participants: [Cy], pattern: sequential}]
chat: {participants: [Ann], stop: {max_turns: 2}}
";
    let flowchart = diagram(text).to_mermaid();
    let line = |text: &str| flowchart.lines().any(|line| line.trim() == text);
    for drawn in [
        r#"g_1 -.->|"calls"| g_2"#,
        r#"g_2 -.->|"nested chat"| g_3"#,
        r#"g_4["Deep<br/>tools: calculator"]"#,
        r#"g_2 -.->|"calls"| g_4"#,
        r#"g_2 -.->|"calls"| g_1"#,
    ] {
        assert!(line(drawn), "no `{drawn}` in {flowchart}");
    }
}

#[test]
fn a_list_has_the_participants_of_the_outermost_chat_and_who_follows_whom() {
    let desk = diagram(DESK);
    let participants: Vec<_> = desk.participants().map(|one| (one.name, one.kind, one.model)).collect();
    let model = Some("openai:gpt-4o");
    assert_eq!(
        participants,
        [("Front", "model", model), ("Expert", "model", model), ("Pat", "person", None)]
    );
    let edge = |from, to, when| DiagramEdge { from, to: Some(to), when };
    let without = Some("no handoff");
    assert_eq!(
        desk.edges(),
        [
            edge(None, "Front", None),
            edge(Some("Front"), "Expert", Some("hands over")),
            edge(Some("Front"), "Pat", without),
            edge(Some("Expert"), "Pat", without),
            edge(Some("Pat"), "Pat", without),
        ]
    );
    assert_eq!(desk.selected_by(), None);
    let agents = "agents: [{name: Ann}, {name: Bob}]";
    // Drawn as one line in both directions.
    let turns = "{participants: [Ann, Bob], stop: {max_turns: 4}}";
    let in_turn = diagram(&format!("{{name: t, {agents}, chat: {turns}}}"));
    let pairs: Vec<_> = in_turn.edges().iter().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(pairs, [(None, Some("Ann")), (Some("Ann"), Some("Bob")), (Some("Bob"), Some("Ann"))]);
    let once = "{participants: [Ann, Bob], pattern: sequential}";
    let ends = DiagramEdge { from: Some("Bob"), to: None, when: None };
    assert!(diagram(&format!("{{name: t, {agents}, chat: {once}}}")).edges().contains(&ends));
    // A condition is whole here, and shortened where it is drawn.
    let when = "last.text.startsWith('A long beginning of a reply') || turns > 3";
    let after = format!("{{Ann: [{{when: \"{when}\", then: Bob}}, {{then: end}}], Bob: Ann}}");
    let pattern = format!("{{state_machine: {{start: Ann, after: {after}}}}}");
    let states = format!("{{participants: [Ann, Bob], pattern: {pattern}, stop: {{max_turns: 4}}}}");
    let conditional = diagram(&format!("{{name: t, {agents}, chat: {states}}}"));
    let step = DiagramEdge { from: Some("Ann"), to: Some("Bob"), when: Some(when) };
    assert!(conditional.edges().contains(&step) && !conditional.to_mermaid().contains("turns > 3"));
    let group = "{participants: [Ann, Bob], pattern: {group: {select: random}}, stop: {max_turns: 4}}";
    let selected = diagram(&format!("{{name: t, {agents}, chat: {group}}}"));
    assert_eq!((selected.selected_by(), selected.edges()), (Some("selected at random"), Vec::new()));
}

#[test]
fn a_graph_has_participants_steps_nested_chats_and_ends() {
    expect![[r#"
        digraph "desk" {
          compound=true
          node [fontname="Helvetica" fontsize=11 shape=box style=rounded]
          edge [fontname="Helvetica" fontsize=10]
          fontname="Helvetica"
          subgraph "cluster_g" {
            label="desk\nhandoffs, starting with Front; without a handoff Pat is next\nends: “BYE” · 20 turns"
            g_0 [label="start" shape=circle]
            g_1 [label="Front\nopenai:gpt-4o\ntools: calculator"]
            g_2 [label="Expert\nopenai:gpt-4o"]
            g_3 [label="Pat" shape=ellipse style=solid]
            subgraph "cluster_g_4" {
              label="Archive\nin turn\nends: 1 turn"
              g_4_0 [label="start" shape=circle]
              g_4_1 [label="Clerk" shape=component style=solid]
              g_4_0 -> g_4_1
              g_4_1 -> g_4_1
            }
            g_0 -> g_1
            g_1 -> g_2 [label="hands over"]
            g_1 -> g_3 [label="no handoff"]
            g_2 -> g_3 [label="no handoff"]
            g_3 -> g_3 [label="no handoff"]
            g_2 -> g_4_0 [label="calls" style=dashed lhead="cluster_g_4"]
          }
        }
    "#]]
    .assert_eq(&diagram(DESK).to_dot());
}
