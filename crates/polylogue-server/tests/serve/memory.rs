//! What agents remember, over HTTP.

use polylogue_server::{NewToken, Scope};
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::begin_until;
use crate::world::World;

const PATH: &str = "/api/v1/memory";

const HOST: &str = "
name: host
task: Note it.
agents: [{name: Ann, memory: true}]
chat: {participants: [Ann], pattern: sequential}
script:
  - Ann: {calls: [{tool: remember, args: {text: Green tea is in the blue tin.}}]}
  - Ann: Noted.
";

async fn texts(world: &World, query: &str) -> Vec<Value> {
    let found = world.get(&format!("{PATH}{query}")).await;
    assert_eq!(found.status, 200, "{}", found.body);
    found.json()["facts"].as_array().unwrap().iter().map(|fact| fact["text"].clone()).collect()
}

#[tokio::test]
async fn facts_are_listed_found_and_forgotten_by_those_who_see_all_teams() {
    let world = World::with_team("host", HOST).await;
    assert_eq!(texts(&world, "").await, [] as [Value; 0]);
    let id = begin_until(&world, "host", "closed").await;
    let fact = world.get(PATH).await.json()["facts"][0].clone();
    assert_eq!(
        (&fact["by"], &fact["conversation"], &fact["scope"]),
        (&json!("Ann"), &json!(id), &json!("host"))
    );
    for (query, count) in
        [("?q=tea", 1), ("?q=coffee", 0), ("?scope=host", 1), ("?scope=other", 0), ("?limit=1", 1)]
    {
        assert_eq!(texts(&world, query).await.len(), count, "{query}");
    }
    let wrong = world.get(&format!("{PATH}?limit=x")).await;
    assert_eq!(wrong.status, 400);
    // Another tenant has a memory of its own, and a token of some teams sees none.
    let (_, foreign) = world.new_token("other", &Scope::ALL);
    let theirs = Request::new("GET", PATH).token(&foreign).send(world.address).await;
    assert_eq!(theirs.json()["facts"], json!([]));
    let new = NewToken { teams: Some(vec!["talk".into()]), ..NewToken::local("one team") };
    let (_, limited) = world.tokens().create(new).unwrap();
    let refused = Request::new("GET", PATH).token(limited.reveal()).send(world.address).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    refused.problem();
    // To forget takes the scope `edit`.
    let one = format!("{PATH}/{}", fact["id"]);
    let (_, reads) = world.new_token("local", &[Scope::Read]);
    assert_eq!(Request::new("DELETE", &one).token(&reads).send(world.address).await.status, 403);
    assert_eq!(world.send(world.request("DELETE", &one)).await.json(), json!({"forgotten": true}));
    assert_eq!(texts(&world, "").await, [] as [Value; 0]);
    let gone = world.send(world.request("DELETE", &one)).await;
    assert_eq!(gone.status, 404, "{}", gone.body);
}
