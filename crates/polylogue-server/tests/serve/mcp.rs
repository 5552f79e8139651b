//! MCP without sessions, since 2026-07-28: S73 to S76, S79, S80.

use std::sync::Arc;
use std::time::Duration;

use polylogue_server::{NewToken, Scope, ServerLimits};
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{events, said};
use crate::mcp_client::{
    SESSIONS, STATELESS, Session, call, called, elicitation, failure, message, messages, request, request_at,
    result, tasks,
};
use crate::openai::stopped_before_its_last_turn;
use crate::world::{Gate, World, generous};

const PATH: &str = "/api/v1/conversations";

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

async fn count(world: &World) -> usize {
    world.get(PATH).await.json()["conversations"].as_array().unwrap().len()
}

#[tokio::test]
async fn s74_teams_are_tools_in_the_same_order_in_both_protocols() {
    let world = World::new().await;
    let listed = result(&world.send(request(&world, "tools/list", json!({}), &json!({}))).await);
    assert_eq!(names(&listed), ["ask", "short", "talk", "whisper"]);
    assert_eq!((&listed["cacheScope"], listed["ttlMs"].is_u64()), (&json!("private"), true), "{listed}");
    let talk = &listed["tools"][2];
    let properties = talk["inputSchema"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["message", "conversation", "tone"]);
    assert_eq!(talk["outputSchema"]["required"], json!(["conversation", "state", "result", "usage"]));
    let session = Session::open(&world, SESSIONS, json!({})).await;
    let other = result(&world.send(session.request(1, "tools/list", &json!({}))).await);
    assert_eq!(other["tools"], listed["tools"]);
    assert_eq!(other.get("resultType"), None, "the older protocol has no such field");
    // One team by its path, and a token that sees one team.
    let of_path = request_at(&world, "/mcp/talk", "tools/list", &mut json!({}), &json!({}));
    assert_eq!(names(&result(&world.send(of_path).await)), ["talk"]);
    let new = NewToken { teams: Some(vec!["talk".into()]), ..NewToken::local("one team") };
    let (_, text) = world.tokens().create(new).unwrap();
    let list = request(&world, "tools/list", json!({}), &json!({})).token(text.reveal());
    assert_eq!(names(&result(&world.send(list).await)), ["talk"]);
    let short =
        request_at(&world, "/mcp/short", "tools/list", &mut json!({}), &json!({})).token(text.reveal());
    let short = world.send(short).await;
    assert_eq!(failure(&short), (404, -32000));
    assert!(short.body.contains("(hint: `tools/list` of `/mcp` lists the teams)"), "{}", short.body);
    let foreign = call(&world, "short", json!({}), &json!({})).token(text.reveal());
    assert_eq!(failure(&world.send(foreign).await), (200, -32602));
}

#[tokio::test]
async fn s73_a_call_has_its_result_as_text_and_as_a_value() {
    let world = World::new().await;
    let discovered = result(&world.send(request(&world, "server/discover", json!({}), &json!({}))).await);
    assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!(STATELESS)), "{discovered}");
    assert!(discovered["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object());
    let done = called(&world, "talk", json!({"message": "Count on.", "tone": "loud"}), &json!({})).await;
    assert_eq!(done["content"], json!([{"type": "text", "text": "four"}]));
    assert_eq!((&done["isError"], &done["resultType"]), (&json!(false), &json!("complete")));
    let value = &done["structuredContent"];
    assert_eq!(
        (&value["state"], &value["result"], &value["usage"]["calls"]),
        (&json!("done"), &json!("four"), &json!(4))
    );
    assert_eq!(value["usage"].get("input"), None, "scripted models have no tokens");
    let id = value["conversation"].as_str().unwrap();
    assert_eq!(events(&world, id).await[0]["task"], "Count on.");
    // A later call continues it.
    let more = called(&world, "talk", json!({"message": "On.", "conversation": id}), &json!({})).await;
    assert_eq!(
        (&more["structuredContent"]["conversation"], &more["structuredContent"]["result"]),
        (&json!(id), &json!("eight"))
    );
    assert_eq!(said(&events(&world, id).await).len(), 9);
    // A limit of the run is an error with what there is.
    let limited = called(&world, "short", json!({}), &json!({})).await;
    assert_eq!(
        (&limited["isError"], &limited["structuredContent"]["state"]),
        (&json!(true), &json!("limit"))
    );
    assert!(limited["content"][0]["text"].as_str().unwrap().starts_with("three\n"), "{limited}");
    // What is wrong is for the model to read, and begins nothing.
    let before = count(&world).await;
    for (tool, arguments, expected) in [
        ("talk", json!({"mesage": "x"}), "`mesage` (hint: did you mean `message`?)"),
        ("talk", json!({"message": 5}), "`message` must be a string"),
        ("talk", json!({"mesage": 5}), "there is no argument `mesage`"),
        ("talk", json!({"conversation": id}), "`message` is required"),
        ("talk", json!({"conversation": "none", "message": "x"}), "(hint: use an id that an earlier"),
        ("short", json!({"conversation": id, "message": "x"}), "there is no such conversation"),
        ("talk", json!({"conversation": id, "message": "x", "tone": "low"}), "keeps its variables"),
    ] {
        let refused = called(&world, tool, arguments, &json!({})).await;
        assert!(
            refused["isError"] == true && refused["content"][0]["text"].as_str().unwrap().contains(expected),
            "{refused}"
        );
        // Such a client does not use the native API.
        assert!(!refused.to_string().contains("/api/v1"), "{refused}");
    }
    assert_eq!(count(&world).await, before);
}

#[tokio::test]
async fn s75_progress_rises_and_ends_before_the_result() {
    let world = World::new().await;
    let with_token =
        |token: Value| json!({"name": "talk", "arguments": {}, "_meta": {"progressToken": token}});
    let all = messages(&world.send(request(&world, "tools/call", with_token(json!("p1")), &json!({}))).await);
    let (last, progress) = all.split_last().unwrap();
    assert!(last["result"].is_object());
    let values: Vec<f64> = progress.iter().map(|one| one["params"]["progress"].as_f64().unwrap()).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    assert!(
        progress
            .iter()
            .all(|one| one["method"] == "notifications/progress" && one["params"]["progressToken"] == "p1")
    );
    assert_eq!(progress[1]["params"]["message"], "Bob: two");
    let without = messages(&world.send(call(&world, "talk", json!({}), &json!({}))).await);
    assert_eq!(without.len(), 1, "{without:?}");
    // Messages that not all participants receive are not sent.
    let params = json!({"name": "whisper", "arguments": {}, "_meta": {"progressToken": 7}});
    let whispered = messages(&world.send(request(&world, "tools/call", params, &json!({}))).await);
    let secret = whispered
        .iter()
        .any(|one| one["params"]["message"].as_str().is_some_and(|text| text.contains("It is 2")));
    assert!(whispered.len() > 1 && !secret, "{whispered:?}");
}

/// The call of `ask` with the answers to what it returned.
fn answered(world: &World, asked: &Value, content: Value) -> Request {
    let keys = asked["inputRequests"].as_object().unwrap().keys();
    let responses = keys.map(|key| (key.clone(), content.clone())).collect::<serde_json::Map<_, _>>();
    let params = json!({"name": "ask", "arguments": {}, "inputResponses": responses, "requestState": asked["requestState"]});
    request(world, "tools/call", params, &elicitation())
}

fn accepted(text: &str) -> Value {
    json!({"action": "accept", "content": {"answer": text}})
}

#[tokio::test]
async fn s76_a_question_is_a_result_and_the_repeated_call_has_the_answer() {
    let world = World::new().await;
    let asked = called(&world, "ask", json!({}), &elicitation()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (_, form) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!((&form["method"], &form["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    assert!(form["params"]["message"].as_str().unwrap().starts_with("Pat is asked: "), "{form}");
    // The same data as in the native API.
    let conversation = world.get(PATH).await.json()["conversations"][0].clone();
    let question = &form["params"]["_meta"]["polylogue/question"];
    assert_eq!((question, &question["kind"]), (&conversation["questions"][0], &json!("turn")));
    // Without an answer it is asked again, in the same conversation.
    let params = json!({"name": "ask", "arguments": {}, "inputResponses": {"other": accepted("x")}, "requestState": asked["requestState"]});
    let again = result(&world.send(request(&world, "tools/call", params, &elicitation())).await);
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    // So it is with an answer that does not fit the form.
    for content in [json!({"reply": "x"}), json!({"answer": 7}), json!("x")] {
        let unfit = json!({"action": "accept", "content": content});
        let again = result(&world.send(answered(&world, &again, unfit)).await);
        assert_eq!(again["inputRequests"], asked["inputRequests"], "{content}");
    }
    let done = result(&world.send(answered(&world, &again, accepted("I am stuck."))).await);
    let value = &done["structuredContent"];
    assert_eq!((&value["state"], &value["result"]), (&json!("done"), &json!("Thanks.")), "{done}");
    // A repeated answer has no second effect.
    let id = value["conversation"].as_str().unwrap().to_owned();
    let before = events(&world, &id).await;
    let repeated = result(&world.send(answered(&world, &again, accepted("Else."))).await);
    assert_eq!(repeated["structuredContent"], *value);
    assert_eq!((events(&world, &id).await, count(&world).await), (before, 1));
    // A user who declines leaves it waiting.
    let declined = called(&world, "ask", json!({}), &elicitation()).await;
    let declined = result(&world.send(answered(&world, &declined, json!({"action": "decline"}))).await);
    assert_eq!(declined["structuredContent"]["state"], "waiting", "{declined}");
}

#[tokio::test]
async fn parameters_that_do_not_fit_their_method_are_invalid_and_another_method_does_not_exist() {
    let world = World::new().await;
    let session = Session::open(&world, SESSIONS, json!({})).await;
    for (method, params, code) in [
        ("tools/call", json!({"name": "talk", "arguments": "x"}), -32602),
        ("tasks/update", json!({"taskId": "x"}), -32602),
        ("tools/cook", json!({}), -32601),
    ] {
        let refused = world.send(request(&world, method, params.clone(), &tasks())).await;
        assert_eq!(failure(&refused).1, code, "{method} {params}");
        let refused = world.send(session.request(1, method, &params)).await;
        assert_eq!(failure(&refused).1, code, "{method} {params}");
    }
    assert_eq!(count(&world).await, 0);
}

#[tokio::test]
async fn s76_a_changed_or_foreign_state_is_refused_and_one_survives_a_restart() {
    let world = World::new().await;
    let asked = called(&world, "ask", json!({}), &elicitation()).await;
    let mut changed = asked.clone();
    let state = asked["requestState"].as_str().unwrap();
    changed["requestState"] = json!(state.replacen(".0.", ".1.", 1));
    assert_ne!(changed["requestState"], asked["requestState"]);
    assert_eq!(failure(&world.send(answered(&world, &changed, accepted("x"))).await), (200, -32602));
    // Of another token of the same tenant, of another tenant, and for other arguments.
    for tenant in ["local", "other"] {
        let (_, text) = world.new_token(tenant, &Scope::ALL);
        let foreign = answered(&world, &asked, accepted("x")).token(&text);
        assert_eq!(failure(&world.send(foreign).await), (200, -32602), "{tenant}");
    }
    let params = json!({"name": "ask", "arguments": {"message": "Else."}, "inputResponses": {}, "requestState": state});
    assert_eq!(
        failure(&world.send(request(&world, "tools/call", params, &elicitation())).await),
        (200, -32602)
    );
    let id = world.get(PATH).await.json()["conversations"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.get(&format!("{PATH}/{id}")).await.json()["state"], "waiting", "nothing was answered");
    let world = world.restart().await;
    let done = result(&world.send(answered(&world, &asked, accepted("I am stuck."))).await);
    assert_eq!(done["structuredContent"]["conversation"], json!(id), "{done}");
    assert_eq!(done["structuredContent"]["state"], "done", "{done}");
}

#[tokio::test]
async fn s77_without_elicitation_a_question_waits_for_a_later_call() {
    let world = World::new().await;
    let waiting = called(&world, "ask", json!({}), &json!({})).await;
    let value = &waiting["structuredContent"];
    assert_eq!((&value["state"], &waiting["isError"]), (&json!("waiting"), &json!(false)), "{waiting}");
    assert_eq!(value["questions"][0]["who"], "Pat");
    let id = value["conversation"].as_str().unwrap();
    assert_eq!(value["questions"], world.get(&format!("{PATH}/{id}")).await.json()["questions"]);
    let tools = result(&world.send(request(&world, "tools/list", json!({}), &json!({}))).await);
    let named = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "ask").unwrap();
    let declared = &named["outputSchema"]["properties"]["questions"]["items"]["properties"];
    for name in value["questions"][0].as_object().unwrap().keys() {
        assert!(declared.get(name).is_some(), "`{name}` is not in {declared}");
    }
    let arguments = json!({"conversation": value["conversation"], "message": "I am stuck."});
    // Who may not answer cannot do so by a call.
    let (_, text) = world.new_token("local", &[Scope::Run]);
    let refused =
        result(&world.send(call(&world, "ask", arguments.clone(), &elicitation()).token(&text)).await);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("scope `answer`"), "{refused}");
    let done = called(&world, "ask", arguments, &json!({})).await;
    assert_eq!(
        (&done["structuredContent"]["state"], &done["content"][0]["text"]),
        (&json!("done"), &json!("Thanks."))
    );
    // Nor is its user asked.
    let waiting = result(&world.send(call(&world, "ask", json!({}), &elicitation()).token(&text)).await);
    assert_eq!(waiting["structuredContent"]["state"], "waiting", "{waiting}");
}

#[tokio::test]
async fn s77_a_later_call_gives_an_empty_answer_where_that_is_a_choice() {
    let world = World::new().await;
    let waiting = called(&world, "ask", json!({}), &json!({})).await;
    let value = &waiting["structuredContent"];
    assert_eq!(value["questions"][0]["choices"][0], json!({"answer": "", "effect": "pass"}), "{value}");
    let arguments = json!({"conversation": value["conversation"], "message": ""});
    let done = called(&world, "ask", arguments.clone(), &json!({})).await;
    assert_eq!(
        (&done["structuredContent"]["state"], &done["content"][0]["text"]),
        (&json!("done"), &json!("Thanks."))
    );
    // A message is never empty.
    let refused = called(&world, "ask", arguments, &json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("`message` is required"), "{refused}");
}

#[tokio::test]
async fn s79_what_does_not_fit_has_its_code() {
    let world = World::new().await;
    let list = || request(&world, "tools/list", json!({}), &json!({}));
    let ask = async |request: Request| failure(&world.send(request).await);
    assert_eq!(ask(list().header("MCP-Protocol-Version", SESSIONS)).await, (400, -32020));
    assert_eq!(ask(list().header("Mcp-Method", "tools/call")).await, (400, -32020));
    let calling = || call(&world, "talk", json!({}), &json!({}));
    assert_eq!(ask(calling().header("Mcp-Name", "short")).await, (400, -32020));
    assert_eq!(
        ask(request(&world, "tools/list", json!({"_meta": {"version": "2031-01-01"}}), &json!({}))).await,
        (400, -32022)
    );
    assert_eq!(ask(request(&world, "no/such", json!({}), &json!({}))).await, (404, -32601));
    assert_eq!(ask(request(&world, "tasks/get", json!({"taskId": "x.0"}), &json!({}))).await, (400, -32021));
    assert_eq!(ask(call(&world, "none", json!({}), &json!({}))).await, (200, -32602));
    assert_eq!(ask(list().header("Accept", "application/json")).await, (406, -32000));
    assert_eq!(ask(Request { body: b"{".to_vec(), ..list() }).await, (400, -32700));
    assert_eq!(ask(list().json(&json!({"jsonrpc": "2.0"}))).await, (400, -32600));
    assert_eq!(ask(Request { body: b"[]".to_vec(), ..list() }).await, (400, -32600));
    for method in ["GET", "DELETE"] {
        let accept = "application/json, text/event-stream";
        let other =
            world.request(method, "/mcp").header("MCP-Protocol-Version", STATELESS).header("Accept", accept);
        let refused = world.send(other).await;
        assert_eq!(
            (refused.status, refused.header("allow").is_some()),
            (405, true),
            "{method} {}",
            refused.body
        );
        let id = refused.header("x-request-id");
        assert_eq!(refused.json()["error"]["data"]["request_id"].as_str(), id, "{}", refused.body);
    }
    let notified = list()
        .json(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let accepted = world.send(notified.header("Mcp-Method", "notifications/cancelled")).await;
    assert_eq!((accepted.status, accepted.body.as_str()), (202, ""));
    assert_eq!(count(&world).await, 0);
}

#[tokio::test]
async fn s80_there_is_no_authorization_server() {
    let world = World::new().await;
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp/talk",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration",
    ] {
        let response = world.send(Request::new("GET", path)).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.problem()["hint"].as_str().unwrap().contains("Authorization: Bearer"), "{path}");
    }
    let refused = Request::new("POST", "/mcp").json(&json!({})).send(world.address).await;
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(refused.problem()["type"], "/problems/unauthorized");
}

#[tokio::test]
async fn s24_a_call_that_is_repeated_with_its_key_has_one_effect() {
    let world = World::new().await;
    let keyed =
        |arguments: Value| call(&world, "talk", arguments, &json!({})).header("Idempotency-Key", "k1");
    let first = result(&world.send(keyed(json!({}))).await);
    let second = result(&world.send(keyed(json!({}))).await);
    assert_eq!(first, second);
    let other = result(&world.send(keyed(json!({"message": "Else."}))).await);
    assert!(
        other["isError"] == true
            && other["content"][0]["text"].as_str().unwrap().contains("had another body"),
        "{other}"
    );
    let id = first["structuredContent"]["conversation"].as_str().unwrap();
    let on = |key: &str| {
        let arguments = json!({"conversation": id, "message": "On."});
        call(&world, "talk", arguments, &json!({})).header("Idempotency-Key", key)
    };
    let (one, two) = (result(&world.send(on("k2")).await), result(&world.send(on("k2")).await));
    assert_eq!(one["structuredContent"]["result"], "eight");
    assert_eq!(one["structuredContent"], two["structuredContent"]);
    assert_eq!((count(&world).await, said(&events(&world, id).await).len()), (1, 9));
    // With another conversation, it is another call.
    let another = result(&world.send(call(&world, "talk", json!({}), &json!({}))).await);
    let another = another["structuredContent"]["conversation"].as_str().unwrap();
    let arguments = json!({"conversation": another, "message": "On."});
    let before = events(&world, another).await;
    let refused = call(&world, "talk", arguments, &json!({})).header("Idempotency-Key", "k2");
    let refused = result(&world.send(refused).await);
    assert!(refused.to_string().contains("had another body"), "{refused}");
    assert_eq!(events(&world, another).await, before);
}

#[tokio::test]
async fn s57_a_call_whose_client_is_gone_is_stopped_after_a_time() {
    let gate = Arc::new(Gate::until(1));
    let limits = ServerLimits { abandoned_time: Duration::from_millis(1), ..generous() };
    let world = World::with_gate("more", limits, Arc::clone(&gate)).await;
    let params = json!({"name": "long", "arguments": {}, "_meta": {"progressToken": 1}});
    let mut stream = request(&world, "tools/call", params, &json!({})).open(world.address).await;
    let (_, first) = message(&mut stream).await.unwrap();
    assert_eq!(first["params"]["message"], "Ann: more");
    drop(stream);
    let id = stopped_before_its_last_turn(&world, &gate).await;
    // A later call continues it.
    gate.lift();
    let done = called(&world, "long", json!({"conversation": id, "message": "Go on."}), &json!({})).await;
    assert_eq!(
        (&done["structuredContent"]["conversation"], &done["isError"]),
        (&json!(id), &json!(false)),
        "{done}"
    );
}

#[tokio::test]
async fn s9_the_stream_of_a_revoked_token_ends() {
    let (_gate, world) = World::gated("more", generous(), 0).await;
    let (token, text) = world.new_token("local", &Scope::ALL);
    let mut stream = call(&world, "long", json!({}), &json!({})).token(&text).open(world.address).await;
    assert!(world.tokens().revoke(&token.id, |_| true).unwrap());
    assert!(message(&mut stream).await.is_none_or(|(_, last)| last["result"]["isError"] == true));
    let refused = world.send(request(&world, "tools/list", json!({}), &json!({})).token(&text)).await;
    assert_eq!(refused.status, 401);
}
