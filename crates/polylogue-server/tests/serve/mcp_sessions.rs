//! MCP with sessions, up to 2025-11-25: S74, S77, S79.

use std::sync::Arc;

use polylogue_server::{Scope, ServerLimits};
use serde_json::{Value, json};

use crate::conversations::{events, until};
use crate::mcp_client::{SESSIONS, STATELESS, Session, elicitation, failure, message, messages, result};
use crate::world::{Gate, World, generous};

const PATH: &str = "/api/v1/conversations";

#[tokio::test]
async fn s74_all_older_versions_call_a_team() {
    let world = World::new().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", SESSIONS] {
        let session = Session::open(&world, version, json!({})).await;
        let all = messages(&world.send(session.call(5, "talk", json!({}))).await);
        let (last, progress) = all.split_last().unwrap();
        assert_eq!(
            (&last["id"], &last["result"]["content"][0]["text"]),
            (&json!(5), &json!("four")),
            "{version}"
        );
        let values: Vec<f64> =
            progress.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0], "{version}");
        assert_eq!(last["result"].get("resultType"), None, "{version}");
    }
}

#[tokio::test]
async fn s77_a_question_is_a_request_of_the_server() {
    let world = World::new().await;
    let session = Session::open(&world, SESSIONS, elicitation()).await;
    let mut stream = session.call(1, "ask", json!({})).open(world.address).await;
    let asked = loop {
        let (_, message) = message(&mut stream).await.unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert!(asked["params"]["message"].as_str().unwrap().starts_with("Pat is asked: "), "{asked}");
    assert_eq!(asked["params"]["_meta"]["polylogue/question"]["choices"][1]["effect"], "leave", "{asked}");
    // What does not fit the form is no answer: it is sent again.
    session.respond(&asked["id"], json!({"action": "accept", "content": {"reply": "I am stuck."}})).await;
    let again = loop {
        let (_, message) = message(&mut stream).await.unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_eq!(again["params"]["message"], asked["params"]["message"]);
    session.respond(&again["id"], json!({"action": "accept", "content": {"answer": "I am stuck."}})).await;
    let done = loop {
        let (_, message) = message(&mut stream).await.unwrap();
        if message["id"] == 1 {
            break message["result"].clone();
        }
    };
    assert_eq!(
        (&done["structuredContent"]["state"], &done["structuredContent"]["result"]),
        (&json!("done"), &json!("Thanks."))
    );
    // Declined, and without elicitation: it waits, and a later call answers.
    let mut stream = session.call(2, "ask", json!({})).open(world.address).await;
    let waiting = loop {
        let (_, message) = message(&mut stream).await.unwrap();
        match message["method"].as_str() {
            Some("elicitation/create") => session.respond(&message["id"], json!({"action": "decline"})).await,
            Some(_) => {}
            None => break message["result"].clone(),
        }
    };
    assert_eq!(waiting["structuredContent"]["state"], "waiting", "{waiting}");
    let plain = Session::open(&world, SESSIONS, json!({})).await;
    let waiting = result(&world.send(plain.call(1, "ask", json!({}))).await);
    let arguments = json!({"conversation": waiting["structuredContent"]["conversation"], "message": "Hm."});
    let done = result(&world.send(plain.call(2, "ask", arguments)).await);
    assert_eq!(done["structuredContent"]["state"], "done", "{done}");
}

#[tokio::test]
async fn s79_a_session_is_needed_and_serves_its_owner_only() {
    let world = World::new().await;
    let session = Session::open(&world, SESSIONS, json!({})).await;
    let list = || session.request(1, "tools/list", &json!({}));
    assert_eq!(world.send(list()).await.status, 200);
    let mut without = list();
    without.headers.retain(|(name, _)| name != "Mcp-Session-Id");
    assert_eq!(failure(&world.send(without).await), (400, -32600));
    assert_eq!(failure(&world.send(list().header("Mcp-Session-Id", "none")).await), (404, -32000));
    // Of another token, of another tenant, and at another path.
    for tenant in ["local", "other"] {
        let (_, text) = world.new_token(tenant, &Scope::ALL);
        assert_eq!(failure(&world.send(list().token(&text)).await), (404, -32000), "{tenant}");
    }
    let mut elsewhere = list();
    elsewhere.path = "/mcp/talk".into();
    assert_eq!(failure(&world.send(elsewhere).await), (404, -32000));
    // It ends by request, and with the server.
    let end = session.headed(world.request("DELETE", "/mcp"));
    assert_eq!(world.send(end).await.status, 204);
    assert_eq!(failure(&world.send(list()).await), (404, -32000));
    let id = Session::open(&world, SESSIONS, json!({})).await.id;
    let world = world.restart().await;
    let gone = Session { world: &world, id, ..Session::open(&world, SESSIONS, json!({})).await };
    assert_eq!(failure(&world.send(gone.request(1, "tools/list", &json!({}))).await), (404, -32000));
}

#[tokio::test]
async fn s79_a_token_has_so_many_sessions() {
    let world = World::with(ServerLimits { mcp_sessions_per_token: 2, ..generous() }).await;
    let first = Session::open(&world, SESSIONS, json!({})).await;
    let _second = Session::open(&world, SESSIONS, json!({})).await;
    let params = json!({"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let mut third = first.request(0, "initialize", &params);
    third.headers.retain(|(name, _)| name != "Mcp-Session-Id");
    let refused = world.send(third.clone()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.body);
    // Also if it names a version that has no sessions.
    let newest = json!({"protocolVersion": STATELESS, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let mut fourth = first.request(0, "initialize", &newest);
    fourth.headers.retain(|(name, _)| name != "Mcp-Session-Id" && name != "MCP-Protocol-Version");
    assert_eq!(world.send(fourth.header("MCP-Protocol-Version", STATELESS)).await.status, 429);
    assert_eq!(world.send(first.headed(world.request("DELETE", "/mcp"))).await.status, 204);
    assert_eq!(world.send(third).await.status, 200);
}

#[tokio::test]
async fn s57_a_lost_connection_cancels_nothing_and_the_stream_is_resumed() {
    let gate = Arc::new(Gate::until(1));
    let limits = ServerLimits { abandoned_time: std::time::Duration::from_millis(1), ..generous() };
    let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
    let session = Session::open(&world, SESSIONS, json!({})).await;
    let mut stream = session.call(3, "long", json!({})).open(world.address).await;
    let (frame, first) = message(&mut stream).await.unwrap();
    assert_eq!(first["params"]["message"], "Ann: more");
    drop(stream);
    gate.lift();
    let resumed = world.request("GET", "/mcp").header("Accept", "text/event-stream");
    let resumed = session.headed(resumed).header("Last-Event-ID", &frame.id.unwrap());
    let mut stream = resumed.open(world.address).await;
    let mut progress = 1;
    let last = loop {
        let (_, message) = message(&mut stream).await.unwrap();
        match message["params"]["progress"].as_f64() {
            Some(value) => {
                progress += 1;
                assert_eq!(value, f64::from(progress), "nothing is missing, nothing repeated");
            }
            None => break message,
        }
    };
    let value = &last["result"]["structuredContent"];
    assert!(last["id"] == 3 && last["result"]["isError"] == false, "{last}");
    assert_eq!(value["usage"]["calls"], json!(progress), "each message was sent once");
    assert!(progress > 3);
}

#[tokio::test]
async fn s28_a_cancelled_call_stops_its_run() {
    let (_gate, world) = World::gated("more", generous(), 1).await;
    let session = Session::open(&world, SESSIONS, json!({})).await;
    let mut stream = session.call(4, "long", json!({})).open(world.address).await;
    message(&mut stream).await.unwrap();
    let params = json!({"requestId": 4, "reason": "enough"});
    assert_eq!(session.notify("notifications/cancelled", params).await.status, 202);
    let id = world.get(PATH).await.json()["conversations"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(until(&world, &id, "halted").await["halted"], "cancelled");
    let log = events(&world, &id).await;
    assert!(log.iter().any(|event| event["type"] == "cancelled"), "{log:?}");
    let is_result = |message: &Value| message["id"] == 4;
    while let Some((_, message)) = message(&mut stream).await {
        assert!(!is_result(&message), "a cancelled call has no result: {message}");
    }
}
