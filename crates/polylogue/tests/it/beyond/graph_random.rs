//! Graphs made by chance.

use polylogue::policies::graph::{Edge, Graph, GraphBuilder, Join};
use polylogue::{Act, Chat, Function};

use crate::beyond::stage::play;

const NAMES: [&str; 6] = ["A", "B", "C", "D", "E", "F"];

/// Numbers of a linear congruential generator (Knuth's MMIX), the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A graph in which every member but the last has an edge to the next, and at most one more: to a later one, or, under
/// a condition, to anyone.
fn graph(chance: &mut Chance) -> GraphBuilder {
    let nodes = &NAMES[..2 + chance.below(5)];
    let mut flow = Graph::builder(nodes.iter().copied()).starts_with("A");
    for (nth, pair) in nodes.windows(2).enumerate() {
        let (from, next) = (pair[0], Edge::from((pair[0], pair[1])));
        let (any, later) = (nodes[chance.below(nodes.len())], nodes.get(nth + 2 + chance.below(3)));
        flow = match (chance.below(2), later) {
            (0, _) if any != pair[1] => {
                flow.edge(next.otherwise()).edge(Edge::from((from, any)).says("again"))
            }
            (1, Some(later)) => flow.edge(next).edge((from, *later)),
            _ => flow.edge(next),
        };
        if chance.below(4) == 0 {
            flow = flow.join(from, Join::Any);
        }
    }
    flow
}

/// Every participant says one of two words, by the number of messages before.
fn graph_chat(graph: &Graph, salt: usize) -> Chat {
    let say = |nth: usize, who: &polylogue::Name| {
        Function::new(who.as_str(), move |turn| {
            let again = (turn.transcript().all_messages().len() * 7 + nth * 3 + salt).is_multiple_of(3);
            Ok(Act::say(if again { "again" } else { "on" }))
        })
        .unwrap()
    };
    let builder = Chat::builder("group").max_turns(12);
    let builder = graph
        .nodes()
        .iter()
        .enumerate()
        .fold(builder, |builder, (nth, who)| builder.participant(say(nth, who)));
    builder.policy(graph.clone()).build().unwrap()
}

// Trap T41: graphs that stalled. With an `otherwise` edge no participant waits in vain, whatever the graph and wherever its log
// is cut.
#[tokio::test]
async fn random_graphs_end_or_reach_their_limit() {
    let mut chance = Chance(41);
    let (mut played, mut finished) = (0, 0);
    for salt in 0..150 {
        let graph = graph(&mut chance).build().unwrap();
        let said = play("[]", |_| graph_chat(&graph, salt)).await;
        let end = said.lines().last().unwrap();
        played += 1;
        finished += usize::from(end.contains("the graph is complete"));
        assert!(
            end.contains("the graph is complete") || end.contains("limit of 12 turns"),
            "{graph:?}\n{said}"
        );
    }
    assert!(finished > 75 && finished < played, "{finished} of {played}");
}
