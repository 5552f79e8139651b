//! The stream of a tab of a browser.

use polylogue_server::Scope;
use serde_json::{Value, json};

use crate::client::{Frame, Stream};
use crate::conversations::{begin, begin_until, events};
use crate::world::World;

const PATH: &str = "/api/v1/conversations";

async fn feed(world: &World, query: &str) -> Stream {
    world.request("GET", &format!("/api/v1/feed?{query}")).open(world.address).await
}

/// The next frame with this event for which `is` holds.
async fn next(stream: &mut Stream, event: &str, is: impl Fn(&Value) -> bool) -> Frame {
    while let Some(frame) = stream.frame().await {
        if frame.event == event && is(&frame.json()) {
            return frame;
        }
    }
    panic!("the stream ended without `{event}`");
}

#[tokio::test]
async fn a_feed_has_the_list_its_changes_and_the_followed_conversation() {
    let world = World::new().await;
    let first = begin_until(&world, "ask", "waiting").await;
    let before = events(&world, &first).await;
    let mut stream = feed(&world, &format!("follow={first}&from=1")).await;
    let mut entries = Vec::new();
    while entries.len() + 1 < before.len() {
        entries.push(next(&mut stream, "entry", |_| true).await.json());
    }
    assert_eq!(entries, before[1..]);

    let mut list = feed(&world, "").await;
    let waits = next(&mut list, "conversation", |one| one["id"] == first.as_str()).await.json();
    assert_eq!(waits["state"], "waiting", "{waits}");
    let second = begin(&world, &json!({"team": "talk"})).await;
    let is_closed = |one: &Value| one["id"] == second.as_str() && one["state"] == "closed";
    next(&mut list, "conversation", is_closed).await;
    world.send(world.request("DELETE", &format!("{PATH}/{second}"))).await;
    next(&mut list, "removed", |one| one["id"] == second.as_str()).await;

    // The followed conversation is closed, and the stream stays: it is reopened.
    let path = format!("{PATH}/{first}/answers");
    world.post(&path, &json!({"question": waits["questions"][0]["question"], "text": "Hm."})).await;
    next(&mut stream, "state", |state| state["state"] == "closed").await;
    world.post(&format!("{PATH}/{first}/messages"), &json!({"text": "And now?"})).await;
    next(&mut stream, "entry", |event| event["type"] == "reopened").await;
}

#[tokio::test]
async fn a_feed_shows_no_foreign_conversation_and_ends_with_its_token() {
    let world = World::new().await;
    let id = begin_until(&world, "talk", "closed").await;
    let (_, foreign) = world.new_token("other", &Scope::ALL);
    let request = world.request("GET", &format!("/api/v1/feed?follow={id}")).token(&foreign);
    assert_eq!(request.send(world.address).await.status, 404);
    let (token, text) = world.new_token("other", &[Scope::Read]);
    let mut stream = world.request("GET", "/api/v1/feed").token(&text).open(world.address).await;
    world.tokens().revoke(&token.id, |_| true).unwrap();
    while let Some(frame) = stream.frame().await {
        assert_ne!(frame.event, "conversation");
    }
}
