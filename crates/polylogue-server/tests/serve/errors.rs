//! Errors: S16, S35. Wrong fields of bodies.

use polylogue_core::{LimitOverrides, Money, OnLimit};
use polylogue_server::Scope;
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{PATH, begin, begin_until, until};
use crate::openai::{COMPLETIONS, user};
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
async fn a_conversation_can_run_again_after_a_panic() {
    let world = World::new().await;
    let id = begin_until(&world, "talk", "closed").await;
    let continuation = async || world.get(&format!("{PATH}/{id}/continuation")).await.json();
    let message = async || world.post(&format!("{PATH}/{id}/messages"), &json!({"text": "More."})).await;
    // It waits for the run to leave the conversation.
    continuation().await;
    world.have_stored_teams_panic(true);
    assert_eq!(message().await.status, 500);
    world.have_stored_teams_panic(false);
    let unknown = json!({"resumes": false, "limits": null, "message": null});
    assert_ne!(continuation().await, unknown, "nothing has the conversation");
    let response = message().await;
    assert!(response.status < 300, "{}", response.body);
    until(&world, &id, "closed").await;
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
    assert_eq!(query.problem()["hint"], "this route has no parameters");
    let misspelled = world.get("/api/v1/conversations?limt=3").await;
    assert_eq!(misspelled.problem()["hint"], "did you mean `limit`?");
    let team = world.get("/api/v1/teams/tolk").await;
    assert_eq!((team.status, &team.problem()["detail"]), (404, &json!("there is no team `tolk`")));
    let own = world.request("GET", "/api/v1/teams/tolk").header("x-request-id", "mine-1");
    assert_eq!(world.send(own).await.problem()["request_id"], "mine-1");
    let odd = world.request("GET", "/api/v1/teams/tolk").header("x-request-id", "a b");
    assert_ne!(world.send(odd).await.problem()["request_id"], "a b");
}

#[tokio::test]
async fn a_wrong_field_is_named_by_a_pointer_in_plain_words_and_changes_nothing() {
    let world = World::new().await;
    let count = "must be a whole number of at least 1";
    for (body, pointer, words) in [
        (json!({}), "/team", "the body has no field `team`".to_owned()),
        (json!({"team": 3}), "/team", "`team` must be text".to_owned()),
        (json!({"team": "talk", "limits": 5}), "/limits", "`limits` must be an object".to_owned()),
        (
            json!({"team": "talk", "limits": {"call": 1}}),
            "/limits/call",
            "`limits` has an unknown field `call`".to_owned(),
        ),
        (json!({"team": "talk", "limits": {"calls": 0}}), "/limits/calls", format!("`limits.calls` {count}")),
        (
            json!({"team": "talk", "limits": {"time_ms": 0}}),
            "/limits/time_ms",
            format!("`limits.time_ms` {count}"),
        ),
        (
            json!({"team": "talk", "limits": {"reply_tokens": "9"}}),
            "/limits/reply_tokens",
            format!("`limits.reply_tokens` {count}"),
        ),
        (
            json!({"team": "talk", "limits": {"on_limit": "wait"}}),
            "/limits/on_limit",
            "`limits.on_limit` must be one of `stop`, `ask`".to_owned(),
        ),
        (
            json!({"team": "talk", "inputs": {"tone": 3}}),
            "/inputs/tone",
            "`inputs.tone` must be text".to_owned(),
        ),
        (json!({"team": "talk", "message": ""}), "/message", "the message is empty".to_owned()),
    ] {
        let refused = world.post(PATH, &body).await;
        let problem = refused.problem();
        assert_eq!((refused.status, &problem["errors"][0]["pointer"]), (400, &json!(pointer)), "{problem}");
        assert_eq!(problem["detail"], words, "{body}");
    }
    assert_eq!(world.get(PATH).await.json()["conversations"], json!([]), "none was begun");
    for (body, param) in [
        (json!({"model": "talk", "messages": "x"}), "messages"),
        (json!({"model": "talk", "messages": [user("x"), 1]}), "messages.1"),
        (json!({"model": "talk", "messages": [{"role": "x", "content": "x"}]}), "messages.0.role"),
    ] {
        let refused = world.post(COMPLETIONS, &body).await;
        let problem = refused.problem();
        let error = &problem["error"];
        assert_eq!((refused.status, &error["param"]), (400, &json!(param)), "{error}");
        assert!(error["message"].as_str().unwrap().contains(" must be "), "{error}");
    }
}

#[tokio::test]
async fn unknown_limits_are_refused_wherever_limits_are_set() {
    let world = World::new().await;
    let short = json!({"team": "short", "limits": {"reply_tokens": 50}});
    let id = begin(&world, &short).await;
    let closed = until(&world, &id, "closed").await;
    for what in ["resume", "raise"] {
        let path = format!("{PATH}/{id}/{what}");
        for (limits, pointer) in
            [(json!({"call": 1}), "/limits/call"), (json!({"turns": 0}), "/limits/turns")]
        {
            let refused = world.post(&path, &json!({"limits": limits})).await;
            let problem = refused.problem();
            assert_eq!(
                (refused.status, &problem["errors"][0]["pointer"]),
                (400, &json!(pointer)),
                "{what}: {problem}"
            );
        }
    }
    assert_eq!(world.get(&format!("{PATH}/{id}")).await.json()["seq"], closed["seq"], "nothing was stored");
    // Every limit that is read is in the schema.
    let document = world.get("/openapi.json").await.json();
    let body = &document["paths"]["/api/v1/conversations"]["post"]["requestBody"];
    let known = &body["content"]["application/json"]["schema"]["properties"]["limits"]["properties"];
    let all = LimitOverrides {
        turns: Some(1),
        calls: Some(1),
        tokens: Some(1),
        cost: Some(Money::default()),
        time_ms: Some(1),
        reply_tokens: Some(1),
        on_limit: Some(OnLimit::Stop),
    };
    let names = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let (mut read, mut documented) = (names(&json!(all)), names(known));
    read.sort();
    documented.sort();
    assert_eq!(read, documented);
}
