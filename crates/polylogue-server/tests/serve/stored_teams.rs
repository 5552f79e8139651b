//! Conversations that continue share the team that is stored with them.

use polylogue_server::Scope;
use polylogue_test::server::{Answer, PieceGate, Playbook};
use serde_json::json;

use crate::client::Request;
use crate::conversations::{PATH, begin, until};
use crate::world::World;

/// A person, and an agent whose model is a server.
const ASKS: &str = "
name: asks
task: Help.
agents: [{name: Pat, human: true}, {name: Ann, model: 'openai:gpt-4o-mini'}]
chat: {participants: [Pat, Ann], pattern: sequential}
";

/// Answers the question of a conversation, and waits until so many model calls have begun.
async fn answer(world: &World, token: &str, id: &str, calls: usize) {
    let request = |method: &str, path: &str| Request::new(method, path).token(token);
    let shown = request("GET", &format!("{PATH}/{id}")).send(world.address).await.json();
    let question = &shown["questions"][0]["question"];
    let body = json!({"text": "Please.", "question": question});
    let answered = request("POST", &format!("{PATH}/{id}/answers")).json(&body).send(world.address).await;
    assert!(answered.status < 300, "{}", answered.body);
    while world.model_requests().len() < calls {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn conversations_that_run_share_the_same_stored_team_within_their_tenant() {
    let gate = PieceGate::new();
    let held = gate.clone();
    let playbook = Playbook::new(move |_, _| Answer::text("Thanks.").pieces(3).gated(&held));
    let world = World::with_playbook("asks", ASKS, playbook).await;
    let same = json!({"team": "asks"});
    let ids = [begin(&world, &same).await, begin(&world, &same).await];
    let third = begin(&world, &json!({"team": "asks", "message": "Help me with another thing."})).await;
    let (_, other) = world.new_token("other", &Scope::ALL);
    let theirs = Request::new("POST", PATH).token(&other).json(&same).send(world.address).await;
    let theirs = theirs.json()["id"].as_str().unwrap().to_owned();
    for id in ids.iter().chain([&third]) {
        until(&world, id, "waiting").await;
    }
    let is_waiting = async || {
        let request = Request::new("GET", &format!("{PATH}/{theirs}")).token(&other);
        request.send(world.address).await.json()["state"] == "waiting"
    };
    while !is_waiting().await {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(world.prepared_stored(), 0);
    answer(&world, &world.token, &ids[0], 1).await;
    answer(&world, &world.token, &ids[1], 2).await;
    assert_eq!(world.prepared_stored(), 1, "both have the same team");
    answer(&world, &world.token, &third, 3).await;
    assert_eq!(world.prepared_stored(), 1, "so has one with another task");
    answer(&world, &other, &theirs, 4).await;
    assert_eq!(world.prepared_stored(), 2, "another tenant shares nothing");
    let requests = world.model_requests();
    let has_own_task = |request: &String| request.contains("Help me with another thing.");
    assert_eq!(requests.iter().filter(|request| has_own_task(request)).count(), 1, "{requests:?}");
    gate.lift();
    for id in ids.iter().chain([&third]) {
        let closed = until(&world, id, "closed").await;
        assert_eq!(closed["turns"], 2, "{closed}");
    }
}
