//! How a server is started that answers chat completions in another way: S53, S59, and what is shown.

use polylogue_server::{ChatOptions, ChatShow, Scope, ServerError, ServerOptions};
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::conversations::{events, said, until};
use crate::mcp_client::called;
use crate::openai::{COMPLETIONS, complete, content, conversation, user};
use crate::world::{World, generous, loopback, place};

const CHAT: &str = "X-OpenWebUI-Chat-Id";

const COUNT: &str = "
name: count
task: Count.
agents: [{name: Ann}]
chat: {participants: [Ann], pattern: sequential}
script: [{Ann: one}, {Ann: two}, {Ann: three}, {Ann: four}]
";

async fn world_with(chat: ChatOptions) -> World {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("count.yaml"), COUNT).unwrap();
    let options =
        ServerOptions { chat, limits: generous(), ..ServerOptions::new(loopback(), place(dir.path())) };
    World::start(dir, options).await
}

fn with_header() -> ChatOptions {
    ChatOptions { conversation_headers: vec!["X-Other".into(), CHAT.into()], ..ChatOptions::default() }
}

fn of_chat(world: &World, model: &str, text: &str, chat: &str) -> Request {
    let body = json!({"model": model, "messages": [user(text)]});
    world.request("POST", COMPLETIONS).json(&body).header(CHAT, chat)
}

fn id(response: &Response) -> String {
    assert_eq!(response.status, 200, "{}", response.body);
    conversation(&response.json()).to_owned()
}

#[tokio::test]
async fn s53_each_chat_of_a_client_has_one_conversation_with_a_team() {
    let world = world_with(with_header()).await;
    // Both at once: the second one continues what the first one has begun.
    let [one, two] = ["One.", "Two."].map(|text| of_chat(&world, "count", text, "a chat/1"));
    let (one, two) = tokio::join!(one.send(world.address), two.send(world.address));
    assert_eq!(id(&one), id(&two));
    let third = world.send(of_chat(&world, "count", "Three.", "a chat/1")).await;
    assert_eq!(id(&third), id(&one), "whatever the history says");
    let log = events(&world, &id(&one)).await;
    let of_user = |event: &&Value| event["type"] == "sent" || event["type"] == "reopened";
    assert_eq!(log.iter().filter(of_user).count(), 2, "{log:?}");
    assert_eq!(said(&log), ["one", "Two.", "two", "Three.", "three"]);
    // Another chat, and another team, are other conversations.
    let other = world.send(of_chat(&world, "count", "One.", "a chat/2")).await;
    let team = world.send(of_chat(&world, "short", "One.", "a chat/1")).await;
    assert!(id(&other) != id(&one) && id(&team) != id(&one) && id(&team) != id(&other));
    // So is the same chat of another tenant, and without a value there is none.
    let (_, foreign) = world.new_token("other", &Scope::ALL);
    let of_other = of_chat(&world, "count", "One.", "a chat/1").token(&foreign).send(world.address).await;
    assert_ne!(id(&of_other), id(&one));
    assert!(!id(&world.send(of_chat(&world, "count", "One.", "")).await).starts_with("chat-"));
    // A conversation that is named by its id goes first, and must exist.
    let named = of_chat(&world, "count", "Four.", "a chat/2").header("X-Polylogue-Conversation", &id(&one));
    assert_eq!(id(&world.send(named).await), id(&one));
    let unknown = of_chat(&world, "count", "Four.", "a chat/2").header("X-Polylogue-Conversation", "none");
    assert_eq!(world.send(unknown).await.status, 404);
    let long = world.send(of_chat(&world, "count", "One.", &"x".repeat(256))).await;
    assert_eq!(long.status, 400, "{}", long.body);
    let message = long.problem()["error"]["message"].to_string();
    assert!(message.contains(CHAT) && message.contains("255"), "{message}");
}

#[tokio::test]
async fn what_is_said_into_a_paused_conversation_is_refused_at_once_and_says_how_to_resume_it() {
    let world = World::new().await;
    let done = complete(&world, "talk", json!([user("Count.")])).await;
    let path = |id: &str, what: &str| format!("/api/v1/conversations/{id}/{what}");
    let fork = world.post(&path(conversation(&done), "fork"), &json!({"seq": 3})).await.json();
    let fork = fork["id"].as_str().unwrap();
    assert_eq!(world.post(&path(fork, "pause"), &json!({})).await.status, 202);
    let before = events(&world, fork).await;
    let body = json!({"model": "talk", "messages": [user("On.")]});
    let request = world.request("POST", COMPLETIONS).json(&body).header("X-Polylogue-Conversation", fork);
    let refused = world.send(request.clone()).await;
    let message = refused.problem()["error"]["message"].to_string();
    assert_eq!(refused.status, 409, "{message}");
    assert!(message.contains("is paused") && message.contains("polylogue resume"), "{message}");
    let said = called(&world, "talk", json!({"message": "On.", "conversation": fork}), &json!({})).await;
    let text = said["content"][0]["text"].as_str().unwrap();
    assert!(said["isError"] == true && text.contains("is paused"), "{said}");
    assert_eq!(events(&world, fork).await, before, "nothing was stored");
    assert_eq!(world.post(&path(fork, "resume"), &json!({})).await.status, 202);
    until(&world, fork, "closed").await;
    assert_eq!(id(&world.send(request).await), fork);
}

#[tokio::test]
async fn a_header_is_used_only_if_the_server_was_told_so_and_must_be_one() {
    let world = World::new().await;
    let [one, two] = ["One.", "Two."].map(|text| of_chat(&world, "talk", text, "a"));
    assert_ne!(id(&world.send(one).await), id(&world.send(two).await));
    let dir = tempfile::tempdir().unwrap();
    let chat = ChatOptions { conversation_headers: vec!["X Chat:".into()], ..ChatOptions::default() };
    let options = ServerOptions { chat, ..ServerOptions::new(loopback(), place(dir.path())) };
    let refused = World::refused(&dir, options).await;
    assert!(matches!(&refused, ServerError::Header(name) if name == "X Chat:"), "{refused}");
    assert!(refused.hint().is_some());
    for reserved in ["Authorization", "Cookie", "X-API-Key", "host", "Accept-Language", "X-Polylogue-Show"] {
        let chat = ChatOptions { conversation_headers: vec![reserved.into()], ..ChatOptions::default() };
        let options = ServerOptions { chat, ..ServerOptions::new(loopback(), place(dir.path())) };
        let refused = World::refused(&dir, options).await;
        assert!(matches!(&refused, ServerError::ReservedHeader(name) if name == reserved), "{refused}");
        assert!(refused.hint().is_some());
    }
}

#[tokio::test]
async fn what_is_shown_is_up_to_the_server_unless_a_request_says_so() {
    let world = world_with(ChatOptions { show: ChatShow::Transcript, ..ChatOptions::default() }).await;
    let shown = complete(&world, "talk", json!([user("Count.")])).await;
    assert!(content(&shown).starts_with("**Ann:** one\n\n**Bob:** two"), "{shown}");
    let body = json!({"model": "talk", "messages": [user("Count.")]});
    let request = world.request("POST", COMPLETIONS).json(&body);
    let result = world.send(request.clone().header("X-Polylogue-Show", "result")).await;
    assert_eq!(content(&result.json()), "four");
    let wrong = world.send(request.header("X-Polylogue-Show", "all")).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("expected one of result, transcript, none"), "{}", wrong.body);
}

#[tokio::test]
async fn s59_a_server_without_chores_gives_the_team_what_user_interfaces_ask() {
    const TITLE: &str = "### Task:\nGenerate a title { \"title\": \"\" }\nUSER: How are you?";
    let world = world_with(ChatOptions { answers_chores: false, ..ChatOptions::default() }).await;
    let completion = complete(&world, "talk", json!([user(TITLE)])).await;
    assert_eq!((content(&completion), &completion["polylogue"]["chore"]), ("four", &Value::Null));
    assert_eq!(events(&world, conversation(&completion)).await[0]["task"], TITLE);
}
