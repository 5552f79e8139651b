//! Graphs that are refused.

use polylogue::policies::graph::{Edge, Graph, GraphError, Join};

fn refused(flow: Graph) -> String {
    flow.build().unwrap_err().to_string()
}

fn when(from: &str, to: &str) -> Edge {
    Edge::from((from, to)).says("x")
}

#[test]
fn without_beginning_or_end() {
    assert_eq!(Graph::default().build().unwrap_err(), GraphError::NoStart);
    let round = Graph::of(["A", "B"]).edge(when("A", "B")).edge(when("B", "A"));
    assert_eq!(round.clone().build().unwrap_err(), GraphError::NoStart);
    assert_eq!(round.starts_with("A").build().unwrap_err(), GraphError::NoLeaf);
}

#[test]
fn with_names_that_are_not_there_or_there_twice() {
    let unknown = "the graph has no node `C`; name it in `Graph::of`";
    assert_eq!(refused(Graph::of(["A", "B"]).edge(("A", "C"))), unknown);
    assert_eq!(refused(Graph::of(["A", "B"]).edge(("C", "B"))), unknown);
    assert_eq!(refused(Graph::of(["A", "B"]).starts_with("C")), unknown);
    assert_eq!(refused(Graph::of(["A", "B"]).join("C", Join::Any)), unknown);
    assert_eq!(refused(Graph::of(["A", "A"])), "the graph has the node `A` twice");
    let twice = Graph::of(["A", "B"]).edge(("A", "B")).edge(when("A", "B"));
    assert_eq!(refused(twice), "the graph has two edges from `A` to `B`");
    assert!(matches!(Graph::of(["no/name"]).build().unwrap_err(), GraphError::Name(_)));
}

#[test]
fn with_nodes_that_nothing_leads_to() {
    let apart = Graph::of(["A", "B", "C", "End"]).edge(("A", "End"));
    let apart = apart.edge(when("B", "C")).edge(when("C", "B"));
    assert_eq!(apart.build().unwrap_err(), GraphError::Unreachable("B".into()));
    let start = Graph::of(["A", "B"]).starts_with("B").edge(("A", "B"));
    assert_eq!(start.build().unwrap_err(), GraphError::Unreachable("A".into()));
}

// Trap T41: a check for loops that did not find all of them.
#[test]
fn with_a_loop_that_never_ends() {
    let graph = Graph::of(["In", "A", "B", "C", "Out"]).edge(("In", "A")).edge(("A", "B"));
    let graph = graph.edge(("B", "C")).edge(("C", "A")).edge(("C", "Out"));
    let why = "the loop A -> B -> C -> A never ends; give an edge of it a condition or a bound";
    assert_eq!(refused(graph), why);
    // One edge with a condition in one loop does not end the other.
    let graph = Graph::of(["A", "B", "C", "D"]).starts_with("A").edge(when("A", "B"));
    let graph = graph.edge(Edge::from(("A", "D")).otherwise()).edge(("B", "C"));
    let graph = graph.edge(("C", "A")).edge(("C", "C"));
    assert_eq!(graph.build().unwrap_err(), GraphError::EndlessLoop(vec!["C".into(), "C".into()]));
}

#[test]
fn with_edges_of_a_node_that_do_not_belong_together() {
    let graph = || Graph::of(["A", "B", "C"]).edge(("A", "B"));
    assert_eq!(graph().edge(when("A", "C")).build().unwrap_err(), GraphError::Mixed("A".into()));
    let otherwise = graph().edge(Edge::from(("A", "C")).otherwise());
    assert_eq!(otherwise.build().unwrap_err(), GraphError::Mixed("A".into()));
    let alone = Graph::of(["A", "B"]).edge(Edge::from(("A", "B")).otherwise());
    assert_eq!(alone.build().unwrap_err(), GraphError::NoCondition("A".into()));
}
