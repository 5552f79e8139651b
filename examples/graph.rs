//! A graph: two parallel critics, an editor who waits for both, and an edge back.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::graph::Edge;
use polylogue::{Assistant, Chat, Graph};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Writer": "Rain fell."}, {"Grammar": "Correct."}, {"Style": "Dull."}, {"Editor": "Once again."},
            {"Writer": "Rain drummed."}, {"Grammar": "Correct."}, {"Style": "Better."}, {"Editor": "Print it."},
            {"Printer": "Printed."}]"#,
    )?;
    let graph = Graph::builder(["Writer", "Grammar", "Style", "Editor", "Printer"])
        .starts_with("Writer")
        .edge(("Writer", "Grammar"))
        .edge(("Writer", "Style"))
        .edge(("Grammar", "Editor"))
        .edge(("Style", "Editor"))
        .edge(Edge::from(("Editor", "Writer")).says("again").max_times(3))
        .edge(Edge::from(("Editor", "Printer")).otherwise())
        .build()?;
    let mut desk = Chat::builder("desk");
    for who in graph.nodes() {
        desk = desk.participant(Assistant::new(who.as_str(), &model)?);
    }
    println!("{}", desk.policy(graph).build()?.run("A sentence about rain").await?);
    Ok(())
}
