//! Forks of conversations in the middle of turns.

use std::sync::Arc;

use polylogue_core::{Body, Event, Status};
use polylogue_runtime::fork::ForkPoint;
use polylogue_runtime::{Error, OpenOptions};

use crate::conversations::{messages, world};

const SUM: &str = "
name: sum
task: Add.
agents: [{name: Ann, tools: [calculator]}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: sequential}
limits: {calls: 3}
script:
  - Ann: {calls: [{tool: calculator, args: {expression: 1+1}}]}
  - Ann: Two.
  - Bob: Good.
";

#[tokio::test]
async fn no_call_was_in_flight_where_a_fork_begins() {
    let world = world(SUM).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    conversation.run().await.unwrap();
    let whole = conversation.events().await;
    let mut in_turns = 0;
    for (nth, next) in whole.iter().enumerate().skip(1) {
        let point = ForkPoint { event: Some(next.seq), ..ForkPoint::default() };
        let fork = match world.runtime.fork(conversation.id(), &point).await {
            // Between the call of a tool and its result.
            Err(Error::BadFork { .. }) => continue,
            fork => fork.unwrap().id,
        };
        in_turns += usize::from(matches!(next.body, Body::ModelReplied(_)));
        let fork = world.runtime.open(&fork, &world.team, OpenOptions::default()).await.unwrap();
        let status = fork.run().await.unwrap();
        assert!(matches!(status, Status::Closed { .. }), "before event {nth}: {status:?}");
        let events = fork.events().await;
        let counts = |event: &Arc<Event>| matches!(&event.body, Body::Charged(charge) if charge.counts());
        assert!(!events.iter().any(counts), "before event {nth}: {events:?}");
        assert_eq!(messages(&events), ["Two.", "Good."], "before event {nth}");
    }
    assert_eq!(in_turns, 3);
}
