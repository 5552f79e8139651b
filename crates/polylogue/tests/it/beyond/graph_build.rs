//! Graphs that are refused.

use polylogue::policies::graph::{Edge, Graph, GraphBuilder, Join};

/// The error, with its hint if there is one.
fn refused(graph: GraphBuilder) -> String {
    let error = graph.build().unwrap_err();
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

fn when(from: &str, to: &str) -> Edge {
    Edge::from((from, to)).says("x")
}

#[test]
fn a_graph_without_start_or_end_is_refused() {
    assert_eq!(
        refused(GraphBuilder::default()),
        "the graph has no start: edges lead to every node; name the nodes with which it starts"
    );
    let round = Graph::builder(["A", "B"]).edge(when("A", "B")).edge(when("B", "A"));
    assert_eq!(
        refused(round.clone()),
        "the graph has no start: edges lead to every node; name the nodes with which it starts"
    );
    assert_eq!(
        refused(round.starts_with("A")),
        "the graph has no end: edges lead on from every node; leave a node without edges to others"
    );
}

#[test]
fn with_unknown_or_repeated_names() {
    let unknown = "unknown node `C` in the graph; use one of `A`, `B`";
    assert_eq!(refused(Graph::builder(["A", "B"]).edge(("A", "C"))), unknown);
    assert_eq!(refused(Graph::builder(["A", "B"]).edge(("C", "B"))), unknown);
    assert_eq!(refused(Graph::builder(["A", "B"]).starts_with("C")), unknown);
    assert_eq!(refused(Graph::builder(["A", "B"]).join("C", Join::Any)), unknown);
    assert_eq!(refused(Graph::builder(["A", "A"])), "the node `A` is listed twice");
    let twice = Graph::builder(["A", "B"]).edge(("A", "B")).edge(when("A", "B"));
    assert_eq!(refused(twice), "the edge `A -> B` is listed twice");
    assert!(refused(Graph::builder(["no/name"])).contains("`no/name`"));
}

#[test]
fn a_graph_with_unreachable_nodes_is_refused() {
    let apart = Graph::builder(["A", "B", "C", "End"]).edge(("A", "End"));
    let apart = apart.edge(when("B", "C")).edge(when("C", "B"));
    assert_eq!(
        refused(apart),
        "no path leads from the start of the graph to `B`; add an edge to it, or start with it"
    );
    let start = Graph::builder(["A", "B"]).starts_with("B").edge(("A", "B"));
    assert_eq!(
        refused(start),
        "no path leads from the start of the graph to `A`; add an edge to it, or start with it"
    );
}

// Trap T41: a check for loops that did not find all of them.
#[test]
fn with_a_loop_that_never_ends() {
    let graph = Graph::builder(["In", "A", "B", "C", "Out"]).edge(("In", "A")).edge(("A", "B"));
    let graph = graph.edge(("B", "C")).edge(("C", "A")).edge(("C", "Out"));
    let why = "the loop A -> B -> C -> A never ends; give an edge of it a condition or a bound";
    assert_eq!(refused(graph), why);
    // One edge with a condition in one loop does not end the other.
    let graph = Graph::builder(["A", "B", "C", "D"]).starts_with("A").edge(when("A", "B"));
    let graph = graph.edge(Edge::from(("A", "D")).otherwise()).edge(("B", "C"));
    let graph = graph.edge(("C", "A")).edge(("C", "C"));
    assert_eq!(refused(graph), "the loop C -> C never ends; give an edge of it a condition or a bound");
}

#[test]
fn with_edges_of_a_node_that_do_not_belong_together() {
    let graph = || Graph::builder(["A", "B", "C"]).edge(("A", "B"));
    assert_eq!(
        refused(graph().edge(when("A", "C"))),
        "`A` has edges with a condition, but also edges without one; give each a condition, or use `otherwise`"
    );
    let otherwise = graph().edge(Edge::from(("A", "C")).otherwise());
    assert_eq!(
        refused(otherwise),
        "`A` has edges with a condition, but also edges without one; give each a condition, or use `otherwise`"
    );
    let alone = Graph::builder(["A", "B"]).edge(Edge::from(("A", "B")).otherwise());
    assert_eq!(
        refused(alone),
        "`A` has an edge for otherwise, but none with a condition; give another edge of it a condition"
    );
}
