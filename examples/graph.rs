//! A graph: two parallel critics, an editor who waits for both, and an edge back.

use polylogue::policies::graph::Edge;
use polylogue::{Assistant, Chat, Graph};
use polylogue_examples::{Result, play};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = polylogue::models::scripted(
        r#"[{"Writer": "Rain fell."}, {"Grammar": "Correct."}, {"Style": "Dull."}, {"Editor": "Once again."},
            {"Writer": "Rain drummed."}, {"Grammar": "Correct."}, {"Style": "Better."}, {"Editor": "Print it."},
            {"Printer": "Printed."}]"#,
    )?;
    let graph = Graph::of(["Writer", "Grammar", "Style", "Editor", "Printer"])
        .starts_with("Writer")
        .edge(("Writer", "Grammar"))
        .edge(("Writer", "Style"))
        .edge(("Grammar", "Editor"))
        .edge(("Style", "Editor"))
        .edge(Edge::from(("Editor", "Writer")).says("again").at_most(3))
        .edge(Edge::from(("Editor", "Printer")).otherwise())
        .build()?;
    let member = |desk: polylogue::kernel::chat::ChatBuilder, who: &polylogue::Name| {
        Result::Ok(desk.participant(Assistant::new(who.as_str(), model.clone())?))
    };
    let desk = graph.nodes().iter().try_fold(Chat::named("desk"), member)?;
    play(&desk.policy(graph).build()?, "A sentence about rain", &[]).await
}
