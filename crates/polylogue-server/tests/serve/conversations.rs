//! Conversations: S8, S17, S18, S24, S25, S33, S34.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue_core::{AnyStore, Body, Event, LogId, Meta, Path, StopReason, Store as _, Timestamp};
use polylogue_server::Scope;
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::isolation::token_of;
use crate::mcp_client::call;
use crate::openai::{COMPLETIONS, assistant, complete, content, conversation, user};
use crate::world::{Gate, World, generous};

pub(crate) const PATH: &str = "/api/v1/conversations";

/// Begins a conversation and returns its id.
pub(crate) async fn begin(world: &World, body: &Value) -> String {
    let response = world.post(PATH, body).await;
    assert_eq!(response.status, 201, "{}", response.body);
    response.json()["id"].as_str().unwrap().to_owned()
}

/// The conversation, once it is in this state.
pub(crate) async fn until(world: &World, id: &str, state: &str) -> Value {
    let mut tail = world.tail(id, 0).await;
    while let Some(frame) = tail.frame().await {
        if frame.event == "state" && frame.json()["state"] == state {
            return world.get(&format!("{PATH}/{id}")).await.json();
        }
    }
    panic!("`{id}` is not {state}: {}", world.get(&format!("{PATH}/{id}")).await.body);
}

/// Begins a conversation of `team`, and returns its id once it is in this state.
pub(crate) async fn begin_until(world: &World, team: &str, state: &str) -> String {
    let id = begin(world, &json!({"team": team})).await;
    until(world, &id, state).await;
    id
}

/// The stored events.
pub(crate) async fn events(world: &World, id: &str) -> Vec<Value> {
    let page = world.get(&format!("{PATH}/{id}/events")).await.json();
    assert_eq!(page["next"], Value::Null);
    page["events"].as_array().unwrap().clone()
}

/// Where the message with this text is.
pub(crate) fn position(events: &[Value], text: &str) -> usize {
    let is = |event: &Value| event["type"] == "message" && event["parts"][0]["text"] == text;
    events.iter().position(is).unwrap()
}

/// The texts of all messages.
pub(crate) fn said(events: &[Value]) -> Vec<String> {
    let messages = events
        .iter()
        .filter(|event| ["message", "sent", "reopened"].contains(&event["type"].as_str().unwrap()));
    let text = |event: &Value| {
        let parts = event["parts"].as_array().or(event["message"]["parts"].as_array());
        parts.and_then(|parts| parts[0]["text"].as_str()).unwrap_or_default().to_owned()
    };
    messages.map(text).filter(|text| !text.is_empty()).collect()
}

#[tokio::test]
async fn s17_a_conversation_is_begun_and_runs_to_its_end() {
    let world = World::new().await;
    let response =
        world.post(PATH, &json!({"team": "talk", "message": "Count to four.", "title": "my title"})).await;
    let begun = response.json();
    let id = begun["id"].as_str().unwrap();
    assert_eq!((response.status, response.header("location")), (201, Some(format!("{PATH}/{id}").as_str())));
    assert_eq!(
        (&begun["task"], &begun["team"], &begun["title"]),
        (&json!("Count to four."), &json!("talk"), &json!("my title"))
    );
    // It may be fast.
    assert!(["running", "closed"].contains(&begun["state"].as_str().unwrap()), "{begun}");
    assert!(begun["seq"].as_u64() > Some(0) && begun["started_ms"].as_u64() > Some(0), "{begun}");
    let closed = until(&world, id, "closed").await;
    assert_eq!((&closed["turns"], &closed["ended"]["word"]), (&json!(4), &json!("done")), "{closed}");
    let events = events(&world, id).await;
    assert!(events.iter().enumerate().all(|(at, event)| event["seq"] == at), "{events:?}");
    assert_eq!(closed["seq"], events.len());
    let usage = &closed["usage"];
    assert_eq!((&usage["calls"], &usage["unmetered"], usage.get("input")), (&json!(4), &json!(4), None));
    assert_eq!(events[0]["task"], "Count to four.");
    assert_eq!(said(&events), ["one", "two", "three", "four"]);
    let removed = world.send(world.request("DELETE", &format!("{PATH}/{id}"))).await;
    assert_eq!(removed.status, 200);
    assert_eq!(world.get(&format!("{PATH}/{id}")).await.status, 404);
}

/// The conversation once it is closed, without an event stream.
async fn seen_closed(world: &World, id: &str) -> Value {
    loop {
        let now = world.get(&format!("{PATH}/{id}")).await.json();
        match now["state"].as_str().unwrap() {
            "running" => {}
            "closed" => return now,
            state => panic!("{state}: {now}"),
        }
    }
}

#[tokio::test]
async fn s17_a_conversation_is_closed_once_its_run_has_stored_its_last_event() {
    let world = World::new().await;
    for _ in 0..5 {
        let id = begin(&world, &json!({"team": "short", "limits": {"reply_tokens": 50}})).await;
        let path = format!("{PATH}/{id}");
        let closed = seen_closed(&world, &id).await;
        let events = events(&world, &id).await;
        // The limit on replies was for the run that has ended.
        assert_eq!(events.last().unwrap()["type"], "limits_changed");
        assert_eq!(closed["seq"], events.len());
        assert_eq!(world.send(world.request("DELETE", &path)).await.status, 200);
    }
}

#[tokio::test]
async fn a_team_takes_its_inputs_and_refuses_others() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk", "inputs": {"tone": "loud"}})).await;
    until(&world, &id, "closed").await;
    let wrong = [
        (json!({"team": "talk", "inputs": {"tune": "x"}}), 400),
        (json!({"team": "nothing"}), 404),
        (json!({"team": "ask", "message": " "}), 400),
        (json!({"team": 3}), 400),
        (json!({"message": "x"}), 400),
    ];
    for (body, status) in wrong {
        let response = world.post(PATH, &body).await;
        assert_eq!(response.status, status, "{body}: {}", response.body);
        response.problem();
    }
    assert_eq!(world.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn s34_limits_lower_those_of_the_team_and_raise_none() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "short", "limits": {"turns": 2}})).await;
    let closed = until(&world, &id, "closed").await;
    assert_eq!((&closed["turns"], &closed["ended"]["word"]), (&json!(2), &json!("limit")), "{closed}");
    let above = world.post(PATH, &json!({"team": "short", "limits": {"calls": 9}})).await;
    assert_eq!((above.status, &above.problem()["errors"][0]["pointer"]), (400, &json!("/limits/calls")));
}

#[tokio::test]
async fn s8_another_tenant_sees_what_there_is_not() {
    let world = World::new().await;
    let id = begin_until(&world, "talk", "closed").await;
    let (_, other) = world.new_token("other", &Scope::ALL);
    for (method, path, scope, takes_body) in world.routes().await {
        if scope.is_none() || !path.starts_with(&format!("{PATH}/")) {
            continue;
        }
        let send = |id: &str| {
            let body = json!({"text": "x", "question": 1});
            let body = if path.ends_with("answers") { body } else { json!({"text": "x"}) };
            let body = if path.ends_with("stop") || path.ends_with("resume") { json!({}) } else { body };
            let body = if path.ends_with("pause") { json!({}) } else { body };
            let body = if path.ends_with("next") { json!({"who": "Ann"}) } else { body };
            let body = if path.ends_with("raise") { json!({"limits": {"turns": 1}}) } else { body };
            let body = if method == "PATCH" { json!({"title": "x"}) } else { body };
            let request = Request::new(&method, &path.replace("x1", id)).token(&other);
            let request = request.header("x-request-id", "same");
            if takes_body { request.json(&body) } else { request }
        };
        let foreign = send(&id).send(world.address).await;
        let unknown = send("zzzzzz").send(world.address).await;
        assert_eq!((foreign.status, &foreign.body), (404, &unknown.body), "{method} {path}");
    }
    let listed = Request::new("GET", PATH).token(&other).send(world.address).await.json();
    assert_eq!(listed["conversations"], json!([]));
    assert_eq!(events(&world, &id).await.len(), until(&world, &id, "closed").await["seq"]);
}

/// The requests that name a conversation elsewhere than in their path.
fn naming(world: &World, id: &str) -> [Request; 5] {
    let chat = |metadata: Value| {
        let body = json!({"model": "talk", "messages": [user("More.")], "metadata": metadata});
        Request::new("POST", COMPLETIONS).json(&body)
    };
    [
        Request::new("GET", &format!("/api/v1/compare?a={id}&b={id}")),
        Request::new("GET", &format!("/api/v1/feed?follow={id}")),
        chat(json!({})).header("X-Polylogue-Conversation", id),
        chat(json!({"conversation": id})),
        call(world, "talk", json!({"conversation": id, "message": "More."}), &json!({})),
    ]
}

#[tokio::test]
async fn s8_another_tenant_neither_finds_nor_continues_a_conversation() {
    let world = World::new().await;
    let first = complete(&world, "talk", json!([user("Count.")])).await;
    let id = conversation(&first);
    assert_eq!(world.post(&format!("{PATH}/{id}/fork"), &json!({"seq": 2})).await.status, 201);
    let renamed = world.request("PATCH", &format!("{PATH}/{id}")).json(&json!({"title": "Counting"}));
    assert_eq!(world.send(renamed).await.status, 200);
    let (key, _) = world.new_token("local", &[Scope::Read]);
    let (_, other) = world.new_token("other", &Scope::ALL);
    let foreign = async |request: Request| {
        request.token(&other).header("x-request-id", "same").send(world.address).await
    };
    for (named, unknown) in naming(&world, id).into_iter().zip(naming(&world, "zzzzzz")) {
        let path = named.path.clone();
        let (named, unknown) = (foreign(named).await, foreign(unknown).await);
        assert_eq!((named.status, &named.body), (unknown.status, &unknown.body), "{path}");
        assert!(named.body.contains("there is no such conversation"), "{path}: {}", named.body);
    }
    for query in ["q=counting", &format!("id={id}"), &format!("parent={id}")] {
        let found = |response: Response| response.json()["conversations"].as_array().unwrap().len();
        let path = format!("{PATH}?{query}");
        let (own, others) = (world.get(&path).await, foreign(Request::new("GET", &path)).await);
        assert_eq!((found(own), found(others)), (1, 0), "{query}");
    }
    let revoke = |key: &str| Request::new("DELETE", &format!("/api/v1/tokens/{key}"));
    let (revoked, unknown) = (foreign(revoke(&key.id)).await, foreign(revoke("tok-00000000")).await);
    assert_eq!((revoked.status, &revoked.body), (404, &unknown.body));
    // The same history begins a conversation there, and continues the first one here.
    let history = json!([user("Count."), assistant(content(&first)), user("More.")]);
    let body = json!({"model": "talk", "messages": history});
    let begun = foreign(Request::new("POST", COMPLETIONS).json(&body)).await.json();
    let about = foreign(Request::new("GET", &format!("{PATH}/{}", conversation(&begun)))).await.json();
    assert_eq!(about.get("parent"), None, "{about}");
    assert!(about["task"].as_str().unwrap().ends_with("More."), "{about}");
    assert_eq!(conversation(&complete(&world, "talk", history).await), id);
}

#[tokio::test]
async fn a_token_of_one_team_sees_its_conversations_only() {
    let world = World::new().await;
    let talk = begin(&world, &json!({"team": "talk"})).await;
    let short = begin(&world, &json!({"team": "short"})).await;
    let new = json!({"name": "n", "scopes": ["read", "run"], "teams": ["talk"]});
    let made = world.post("/api/v1/tokens", &new).await.json();
    let token = made["token"].as_str().unwrap();
    let get = |path: String| Request::new("GET", &path).token(token);
    assert_eq!(get(format!("{PATH}/{talk}")).send(world.address).await.status, 200);
    assert_eq!(get(format!("{PATH}/{short}")).send(world.address).await.status, 404);
    let listed = get(PATH.into()).send(world.address).await.json();
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1);
    let post = Request::new("POST", PATH).token(token).json(&json!({"team": "short"}));
    assert_eq!(post.send(world.address).await.status, 404);
}

#[tokio::test]
async fn s24_one_key_makes_one_conversation() {
    let world = World::new().await;
    let post = |body: Value, key: &'static str| {
        let request = world.request("POST", PATH).json(&body).header("Idempotency-Key", key);
        async move { request.send(world.address).await }
    };
    let body = json!({"team": "talk", "message": "Count."});
    let (one, two, three) =
        tokio::join!(post(body.clone(), "a"), post(body.clone(), "a"), post(body.clone(), "a"));
    let all = [one, two, three];
    let id = all[0].json()["id"].clone();
    assert!(all.iter().all(|response| response.status == 201 && response.json()["id"] == id));
    let first = |response: &&Response| response.header("idempotent-replayed").is_none();
    assert_eq!(all.iter().filter(first).count(), 1);
    until(&world, id.as_str().unwrap(), "closed").await;
    let later = post(body.clone(), "a").await;
    let described = later.json();
    assert_eq!((later.header("idempotent-replayed"), &described["id"]), (Some("true"), &id));
    assert_eq!(described["state"], "closed", "its present state is described");
    let other = post(json!({"team": "talk", "message": "Sing."}), "a").await;
    assert_eq!((other.status, &other.problem()["type"]), (422, &json!("/problems/idempotency-mismatch")));
    let long = world.request("POST", PATH).json(&body).header("Idempotency-Key", &"k".repeat(256));
    assert_eq!(world.send(long).await.status, 400);
    // Another token has keys of its own.
    let (_, other) = world.new_token("local", &Scope::ALL);
    let request = world.request("POST", PATH).token(&other).json(&body).header("Idempotency-Key", "a");
    assert_eq!(world.send(request).await.header("idempotent-replayed"), None);
    assert_eq!(world.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn s25_a_key_is_known_after_a_restart() {
    let world = World::new().await;
    let post = |world: &World| {
        let request = world.request("POST", PATH).json(&json!({"team": "talk"}));
        request.header("Idempotency-Key", "once")
    };
    let first = world.send(post(&world)).await;
    let world = world.restart().await;
    let again = world.send(post(&world)).await;
    assert_eq!(
        (again.header("idempotent-replayed"), &again.json()["id"]),
        (Some("true"), &first.json()["id"])
    );
    assert_eq!(world.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 1);
}

/// Stores a conversation of a team that has ended, the `n`th by its time.
async fn create(store: &AnyStore, team: &str, n: u64) {
    let meta = Meta { title: format!("{team} number {n}"), created: Timestamp(n), ..Meta::default() };
    let claim = store.create(&LogId::new(&format!("log{n}")).unwrap(), &meta).await.unwrap();
    let body = Body::Closed { reason: StopReason::Finished, summary: "".into() };
    let (at, time) = (Path::root(), Timestamp(n));
    let closed = Event { seq: 0, chat: at, time, ran_ms: 0, inbox: None, body };
    store.append(&claim, &[Arc::new(closed)]).await.unwrap();
    store.release(claim).await.unwrap();
}

#[tokio::test]
async fn s33_pages_have_each_conversation_once_while_others_begin() {
    const LOGS: u64 = 1000;
    let world = World::new().await;
    let store = world.store().await;
    let create = |n: u64| create(&store, if n.is_multiple_of(4) { "short" } else { "talk" }, n);
    // At once, so that they share their commits.
    futures_util::future::join_all((0..LOGS).map(create)).await;
    let mut listed = Vec::new();
    let mut path = format!("{PATH}?limit=150");
    for between in LOGS.. {
        let page = world.get(&path).await.json();
        let ids = page["conversations"].as_array().unwrap().iter();
        listed.extend(ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        create(between).await;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{PATH}?limit=150&cursor={cursor}");
    }
    assert_eq!(listed.len() as u64, LOGS, "none twice");
    let all: BTreeSet<String> = (0..LOGS).map(|n| format!("log{n}")).collect();
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), all, "none missed");
}

/// What it does not see is passed over, up to a bound.
#[tokio::test]
async fn s33_pages_of_a_token_of_some_teams_are_full() {
    const OWN: u64 = 10;
    // All others are newer. For the last number, one page reads up to its bound.
    for (others, empty) in [(0, 0), (300, 0), (1100, 1)] {
        let world = World::new().await;
        let (store, token) = (world.store().await, token_of(&world, "short"));
        let create = |n: u64| create(&store, if n < OWN { "short" } else { "talk" }, n);
        futures_util::future::join_all((0..OWN + others).map(create)).await;
        let (mut sizes, mut listed) = (Vec::new(), Vec::new());
        let mut path = format!("{PATH}?limit=4");
        loop {
            let page = Request::new("GET", &path).token(&token).send(world.address).await.json();
            let ids = page["conversations"].as_array().unwrap().iter();
            let before = listed.len();
            listed.extend(ids.map(|one| one["id"].as_str().unwrap().to_owned()));
            sizes.push(listed.len() - before);
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("{PATH}?limit=4&cursor={cursor}");
        }
        assert_eq!(sizes, [vec![0; empty], vec![4, 4, 2]].concat(), "after {others} others");
        assert_eq!(listed, (0..OWN).rev().map(|n| format!("log{n}")).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn s33_filters_of_the_list_combine() {
    let world = World::new().await;
    let mut last = String::new();
    for n in 0..4 {
        let team = if n % 2 == 0 { "short" } else { "talk" };
        last = begin(&world, &json!({"team": team, "message": format!("Task {n}.")})).await;
        until(&world, &last, "closed").await;
    }
    world.post(&format!("{PATH}/{last}/fork"), &json!({"seq": 2})).await;
    let count = async |query: &str| {
        world.get(&format!("{PATH}?{query}")).await.json()["conversations"].as_array().map(Vec::len)
    };
    assert_eq!(count("team=short").await, Some(2));
    assert_eq!(count("q=task%203").await, Some(2), "one and its fork");
    assert_eq!(count("team=short&q=task%203").await, Some(0));
    assert_eq!(count("state=closed").await, Some(4));
    assert_eq!(count(&format!("parent={last}")).await, Some(1));
    assert_eq!(count(&format!("parent={last}&state=closed")).await, Some(0));
    for wrong in ["state=odd", "cursor=x", "limit=many", "parent=.."] {
        assert!(world.get(&format!("{PATH}?{wrong}")).await.status >= 400, "{wrong}");
    }
    let calls = format!("{PATH}/{last}/calls");
    let events = format!("{PATH}/{last}/events");
    for path in [PATH, &calls, &events, "/api/v1/memory", "/api/v1/memory?q=tea"] {
        let separator = if path.contains('?') { '&' } else { '?' };
        for (query, what) in [
            ("limit=0", "`limit` must be at least 1"),
            ("limit=1&limit=2", "the query parameter `limit` is there more than once"),
        ] {
            let refused = world.get(&format!("{path}{separator}{query}")).await;
            let problem = refused.problem();
            assert_eq!((refused.status, &problem["detail"]), (400, &json!(what)), "{path} {query}");
            assert!(problem["hint"].is_string(), "{problem}");
        }
    }
}

#[tokio::test]
async fn s33_what_runs_and_what_was_stopped_are_listed_apart() {
    let world = World::with_gate("more", generous(), Arc::new(Gate::until(0))).await;
    let body = json!({"team": "long"});
    let (running, halted) = (begin(&world, &body).await, begin(&world, &body).await);
    assert_eq!(world.post(&format!("{PATH}/{halted}/stop"), &json!({"when": "now"})).await.status, 202);
    until(&world, &halted, "halted").await;
    let listed = async |states: &str| -> BTreeSet<String> {
        let page = world.get(&format!("{PATH}?state={states}")).await.json();
        let ids = page["conversations"].as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("running").await, BTreeSet::from([running.clone()]));
    assert_eq!(listed("halted").await, BTreeSet::from([halted.clone()]));
    for both in ["unfinished", "running,halted", "running,unfinished"] {
        assert_eq!(listed(both).await, BTreeSet::from([running.clone(), halted.clone()]), "{both}");
    }
}

#[tokio::test]
async fn a_title_is_no_longer_than_the_schema_says() {
    let world = World::new().await;
    let begin =
        async |chars: usize| world.post(PATH, &json!({"team": "talk", "title": "x".repeat(chars)})).await;
    assert_eq!(begin(200).await.status, 201);
    let long = begin(201).await;
    assert_eq!((long.status, &long.problem()["errors"][0]["pointer"]), (400, &json!("/title")));
}

/// One conversation whose head is damaged is shown as that, and the others as they are.
#[tokio::test]
async fn a_damaged_conversation_does_not_hide_the_others_of_the_list() {
    let world = World::new().await;
    let damaged = begin_until(&world, "ask", "waiting").await;
    let intact = begin_until(&world, "ask", "waiting").await;
    world.change_store(&format!("UPDATE logs SET title = title || 'x' WHERE id = '{damaged}'"));
    let list = world.get(PATH).await;
    assert_eq!(list.status, 200, "{}", list.body);
    let list = list.json()["conversations"].as_array().unwrap().clone();
    let of = |id: &str| list.iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(of(&intact)["state"], "waiting");
    assert_eq!(
        (&of(&damaged)["state"], &of(&damaged)["ended"]["word"]),
        (&json!("halted"), &json!("failed"))
    );
    let why = of(&damaged)["ended"]["detail"].as_str().unwrap();
    assert!(why.contains("damaged") && why.contains(&format!("polylogue verify {damaged}")), "{why}");
}

/// Lists leave it out, and where a script speaks, nothing is to be paid.
#[tokio::test]
async fn a_conversation_that_begins_has_what_it_takes_at_most() {
    let world = World::with_model("so it goes", generous()).await;
    let begun = world.post(PATH, &json!({"team": "long"})).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    let begun = begun.json();
    let (id, bound) = (begun["id"].as_str().unwrap(), &begun["bound"]);
    assert!(bound["text"].as_str().unwrap().starts_with("at most "), "{begun}");
    assert!(bound["price_date"].is_string() && bound["team_digest"].is_string(), "{begun}");
    assert_eq!(until(&world, id, "closed").await["bound"], *bound);
    assert_eq!(world.get(PATH).await.json()["conversations"][0].get("bound"), None);
    let scripted = begin(&world, &json!({"team": "talk"})).await;
    assert_eq!(world.get(&format!("{PATH}/{scripted}")).await.json().get("bound"), None);
}

#[tokio::test]
async fn one_conversation_is_shown_without_reading_its_log() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk"})).await;
    assert_eq!(seen_closed(&world, &id).await.get("bound_ended"), None);
    assert_eq!(world.post(&format!("{PATH}/{id}/messages"), &json!({"text": "More."})).await.status, 202);
    seen_closed(&world, &id).await;
    let reads = async || {
        let metrics = world.get("/metrics").await.body;
        let count =
            |line: &str| line.strip_prefix("polylogue_store_seconds_count{op=\"read\"} ").map(str::to_owned);
        metrics.lines().find_map(count).unwrap()
    };
    let before = reads().await;
    let shown = seen_closed(&world, &id).await;
    assert_eq!(shown["bound_ended"], "the conversation continued with a message");
    assert_eq!(reads().await, before);
}
