//! Errors: S16, S35.

use polylogue_server::Scope;
use serde_json::json;

use crate::client::Request;
use crate::world::World;

#[tokio::test]
async fn s16_a_panic_ends_one_request() {
    let world = World::new().await;
    // The teams of this tenant panic when they are prepared.
    let (_, token) = world.new_token("panics", &[Scope::Read]);
    for _ in 0..2 {
        let response = Request::new("GET", "/api/v1/teams").token(&token).send(world.address).await;
        assert_eq!((response.status, &response.problem()["type"]), (500, &json!("/problems/internal")));
    }
    assert_eq!(world.get("/api/v1/teams").await.status, 200);
}

#[tokio::test]
async fn s35_errors_say_what_to_do() {
    let world = World::new().await;
    let unknown = world.get("/api/v1/teans").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.problem()["hint"].is_string());
    let method = world.send(world.request("DELETE", "/api/v1/teams")).await;
    assert_eq!((method.status, method.header("allow")), (405, Some("GET,HEAD")));
    method.problem();
    let query = world.get("/api/v1/teams?limt=3").await;
    assert_eq!(query.status, 400);
    assert!(query.problem()["detail"].as_str().unwrap().contains("`limt`"));
    let team = world.get("/api/v1/teams/tolk").await;
    assert_eq!((team.status, &team.problem()["detail"]), (404, &json!("there is no team `tolk`")));
    let own = world.request("GET", "/api/v1/teams/tolk").header("x-request-id", "mine-1");
    assert_eq!(world.send(own).await.problem()["request_id"], "mine-1");
    let odd = world.request("GET", "/api/v1/teams/tolk").header("x-request-id", "a b");
    assert_ne!(world.send(odd).await.problem()["request_id"], "a b");
}
