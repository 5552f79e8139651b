//! Tasks of MCP: S78.

use std::sync::Arc;
use std::time::Duration;

use polylogue_server::{Scope, ServerLimits};
use serde_json::{Value, json};

use crate::conversations::{events, until};
use crate::mcp_client::{called, failure, request, request_at, result, tasks};
use crate::world::{Gate, World, generous};

async fn get(world: &World, id: &Value) -> Value {
    result(&world.send(request(world, "tasks/get", json!({"taskId": id}), &tasks())).await)
}

/// The task, once it has another state than `state`.
async fn after(world: &World, id: &Value, state: &str) -> Value {
    loop {
        let task = get(world, id).await;
        if task["status"] != state {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn s78_a_task_is_stored_before_the_reply_and_has_the_result_later() {
    let (gate, world) = World::gated("more", generous(), 0).await;
    let task = called(&world, "long", json!({}), &tasks()).await;
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert!(
        task["createdAt"].is_string() && task["lastUpdatedAt"].is_string() && task["pollIntervalMs"].is_u64()
    );
    let id = &task["taskId"];
    let conversation = id.as_str().unwrap().rsplit_once('.').unwrap().0.to_owned();
    assert_eq!(world.get(&format!("/api/v1/conversations/{conversation}")).await.status, 200);
    assert_eq!(get(&world, id).await["status"], "working");
    gate.lift();
    let done = after(&world, id, "working").await;
    assert_eq!((&done["status"], &done["resultType"]), (&json!("completed"), &json!("complete")), "{done}");
    let answer = &done["result"];
    assert_eq!((&answer["content"][0]["text"], &answer["isError"]), (&json!("more"), &json!(false)));
    assert_eq!(answer["structuredContent"]["conversation"], json!(conversation));
    // What follows in the conversation is another task; the first has its result still.
    let next =
        called(&world, "long", json!({"conversation": conversation, "message": "Again."}), &tasks()).await;
    assert_ne!(next["taskId"], *id);
    after(&world, &next["taskId"], "working").await;
    assert_eq!(get(&world, id).await, done);
    // Also after a restart.
    let world = world.restart().await;
    assert_eq!(get(&world, id).await, done);
}

#[tokio::test]
async fn s78_a_task_survives_a_restart_while_it_runs() {
    let limits = ServerLimits { stop_time: Duration::from_millis(1), ..generous() };
    let world = World::with_gate("more", limits, Arc::new(Gate::until(3))).await;
    let task = called(&world, "long", json!({}), &tasks()).await;
    while world.model_requests().len() < 4 {
        tokio::task::yield_now().await;
    }
    let world = world.restart().await;
    let done = after(&world, &task["taskId"], "working").await;
    assert_eq!((&done["status"], &done["result"]["isError"]), (&json!("completed"), &json!(false)), "{done}");
    let log = events(&world, task["taskId"].as_str().unwrap().rsplit_once('.').unwrap().0).await;
    let replies = log.iter().filter(|event| event["type"] == "model_replied").count();
    assert_eq!(done["result"]["structuredContent"]["usage"]["calls"], json!(replies));
    assert!(replies > 3, "{log:?}");
}

#[tokio::test]
async fn s78_a_task_asks_and_takes_the_answer() {
    let world = World::new().await;
    let task = called(&world, "ask", json!({}), &tasks()).await;
    let id = &task["taskId"];
    let asking = after(&world, id, "working").await;
    assert_eq!(asking["status"], "input_required", "{asking}");
    let (key, form) = asking["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(form["method"], "elicitation/create");
    assert_eq!(form["params"]["_meta"]["polylogue/question"]["kind"], "turn", "{form}");
    let update = |responses: Value| {
        request(&world, "tasks/update", json!({"taskId": id, "inputResponses": responses}), &tasks())
    };
    // What was not asked has no effect.
    let other = json!({"q999": {"action": "accept", "content": {"answer": "x"}}});
    assert_eq!(result(&world.send(update(other)).await)["resultType"], "complete");
    assert_eq!(get(&world, id).await["status"], "input_required");
    let answers = json!({key.as_str(): {"action": "accept", "content": {"answer": "I am stuck."}}});
    result(&world.send(update(answers)).await);
    let mut done = get(&world, id).await;
    while done["status"] == "working" {
        done = after(&world, id, "working").await;
    }
    assert_eq!(done["result"]["structuredContent"]["result"], "Thanks.", "{done}");
    // A client that cannot ask gets the question as the result.
    let silent = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let task = called(&world, "ask", json!({}), &silent).await;
    let get = || request(&world, "tasks/get", json!({"taskId": task["taskId"]}), &silent);
    let waiting = loop {
        let task = result(&world.send(get()).await);
        if task["status"] != "working" {
            break task;
        }
    };
    let value = &waiting["result"]["structuredContent"];
    assert_eq!(
        (&waiting["status"], &value["state"], &value["questions"][0]["who"]),
        (&json!("completed"), &json!("waiting"), &json!("Pat"))
    );
    // It has ended, so that cancelling it changes nothing.
    result(&world.send(request(&world, "tasks/cancel", json!({"taskId": task["taskId"]}), &silent)).await);
    assert_eq!(result(&world.send(get()).await), waiting);
    let conversation = task["taskId"].as_str().unwrap().rsplit_once('.').unwrap().0;
    let asked = until(&world, conversation, "waiting").await["questions"].clone();
    assert_eq!(value["questions"], asked);
    // Nor does an answer change it.
    let answer = json!({"question": asked[0]["question"], "text": "I am stuck."});
    let path = format!("/api/v1/conversations/{conversation}/answers");
    assert_eq!(world.post(&path, &answer).await.status, 202);
    until(&world, conversation, "closed").await;
    assert_eq!(result(&world.send(get()).await)["result"]["structuredContent"]["questions"], asked);
}

#[tokio::test]
async fn s78_cancel_stops_the_run_and_stays_cancelled() {
    let (gate, world) = World::gated("more", generous(), 1).await;
    let task = called(&world, "long", json!({}), &tasks()).await;
    let id = &task["taskId"];
    while get(&world, id).await["statusMessage"] != "Ann: more" {
        tokio::task::yield_now().await;
    }
    let cancel = || request(&world, "tasks/cancel", json!({"taskId": id}), &tasks());
    assert_eq!(result(&world.send(cancel()).await)["resultType"], "complete");
    let cancelled = after(&world, id, "working").await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let conversation = id.as_str().unwrap().rsplit_once('.').unwrap().0.to_owned();
    until(&world, &conversation, "halted").await;
    assert!(events(&world, &conversation).await.len() > 3);
    result(&world.send(cancel()).await);
    // Its conversation can be continued by another call; the task stays what it is.
    gate.lift();
    let next =
        called(&world, "long", json!({"conversation": conversation, "message": "Go on."}), &json!({})).await;
    assert_eq!(
        (&next["structuredContent"]["conversation"], &next["isError"]),
        (&json!(conversation), &json!(false)),
        "{next}"
    );
    assert_eq!(get(&world, id).await["status"], "cancelled");
    // One that waits for an answer is cancelled, too.
    let asking = called(&world, "ask", json!({}), &tasks()).await;
    after(&world, &asking["taskId"], "working").await;
    let cancel = request(&world, "tasks/cancel", json!({"taskId": asking["taskId"]}), &tasks());
    result(&world.send(cancel).await);
    assert_eq!(after(&world, &asking["taskId"], "input_required").await["status"], "cancelled");
}

#[tokio::test]
async fn s85_a_foreign_task_is_as_unknown_as_none() {
    let world = World::new().await;
    let task = called(&world, "ask", json!({}), &tasks()).await;
    let id = task["taskId"].as_str().unwrap().to_owned();
    let (_, text) = world.new_token("other", &Scope::ALL);
    let asked = |method: &str, id: &str| {
        let mut params = json!({"taskId": id});
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        request(&world, method, params, &tasks())
    };
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let foreign = world.send(asked(method, &id).token(&text)).await;
        assert_eq!(failure(&foreign), (200, -32602), "{method}");
        for unknown in [
            "none.0",
            "x",
            "",
            ".",
            "../x.0",
            &format!("{id}9"),
            &id.replace(".0", ".99"),
            &id.replace(".0", ".-1"),
        ] {
            let response = world.send(asked(method, unknown)).await;
            assert_eq!(failure(&response), (200, -32602), "{method} {unknown}");
        }
        let body = |id: &str, response: &str| response.replace(id, "ID");
        let unknown = world.send(asked(method, "none.0").token(&text)).await;
        assert_eq!(body(&id, &foreign.body), body("none.0", &unknown.body), "{method}");
    }
    let elsewhere = request_at(&world, "/mcp/talk", "tasks/get", &mut json!({"taskId": id}), &tasks());
    assert_eq!(failure(&world.send(elsewhere).await), (200, -32602));
    assert_ne!(get(&world, &json!(id)).await["status"], "cancelled");
}
