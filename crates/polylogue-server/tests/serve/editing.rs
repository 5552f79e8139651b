//! Checking team files, and comparing conversations: S14.

use std::net::TcpListener;

use polylogue_server::Scope;
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{begin, events, position, until};
use crate::world::World;

const CHECK: &str = "/api/v1/teams/check";
const PATH: &str = "/api/v1/conversations";

async fn check(world: &World, body: Value) -> Value {
    let response = world.post(CHECK, &body).await;
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()
}

#[tokio::test]
async fn s14_checking_starts_no_process_opens_no_socket_and_reads_nothing_outside() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mark = world.dir.path().join("started");
    let touch = format!("touch, '{}'", mark.display());
    let text = format!(
        "
name: hostile
endpoints: {{own: {{api: chat_completions, base_url: '{url}/v1'}}}}
mcp: {{local: {{command: touch, args: ['{}']}}, remote: {{url: '{url}/mcp'}}}}
commands: [{{name: mark, description: Marks., command: [{touch}]}}]
agents:
  - {{name: Ann, model: 'own:x', tools: [mark, {{mcp: local}}, {{mcp: remote}}]}}
chat: {{participants: [Ann], pattern: sequential}}
task: Go.
",
        mark.display()
    );
    let checked = check(&world, json!({"text": text, "team": "talk"})).await;
    assert_eq!((&checked["ok"], &checked["team"]["name"]), (&json!(true), &json!("hostile")), "{checked}");
    assert!(!mark.exists());
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);

    // Files are read next to the team only, whatever leads elsewhere, and a client cannot tell which there are.
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.yaml");
    std::fs::write(&secret, "name: secret-words").unwrap();
    std::os::unix::fs::symlink(&secret, world.dir.path().join("link.yaml")).unwrap();
    std::os::unix::fs::symlink(outside.path(), world.dir.path().join("folder")).unwrap();
    let missing = outside.path().join("missing.yaml");
    let named = [
        "link.yaml".to_owned(),
        "folder/secret.yaml".into(),
        secret.display().to_string(),
        missing.display().to_string(),
        format!("../{}/secret.yaml", outside.path().file_name().unwrap().to_str().unwrap()),
    ];
    for file in named {
        let text = format!(
            "name: a\ntask: x\nteams: [{{name: Sub, file: '{file}'}}]\nchat: {{participants: [Sub]}}\n"
        );
        let checked = check(&world, json!({"text": text, "team": "talk"})).await.to_string();
        assert!(checked.contains("\"ok\":false") && !checked.contains("secret-words"), "{checked}");
        assert!(!checked.contains("does not exist"), "{checked}");
    }
    let text = "name: a\ntask: x\nteams: [{name: Sub, file: short.yaml}]\nchat: {participants: [Sub], pattern: sequential}\n";
    let next_to_it = check(&world, json!({"text": text, "team": "talk"})).await;
    assert_eq!(next_to_it["ok"], true, "{next_to_it}");
    assert_eq!(check(&world, json!({"text": text})).await["ok"], false, "of no file, it can name none");
}

#[tokio::test]
async fn mistakes_in_a_text_are_shown_at_their_places() {
    let world = World::new().await;
    let text = "name: a\ntask: x\nagents: [{name: Ann, sytem: x}]\nchat: {participants: [Ann]}\n";
    let checked = check(&world, json!({"text": text, "team": "talk"})).await;
    let problem = &checked["problems"][0];
    assert_eq!((&checked["ok"], &problem["severity"]), (&json!(false), &json!("error")), "{checked}");
    assert_eq!((&problem["file"], &problem["place"]["line"]), (&json!("talk.yaml"), &json!(3)), "{checked}");
    assert_eq!(problem["hint"], "did you mean `system`?");
    assert_eq!(world.post(CHECK, &json!({"text": text, "team": "none"})).await.status, 404);
    assert_eq!(world.post(CHECK, &json!({})).await.status, 400);
    let schema = world.get("/api/v1/schema").await.json();
    assert!(schema["properties"]["agents"].is_object(), "{schema}");
    let (_, token) = world.new_token("local", &[Scope::Read, Scope::Run]);
    let request = Request::new("POST", CHECK).token(&token).json(&json!({"text": text}));
    assert_eq!(request.send(world.address).await.status, 403);
}

#[tokio::test]
async fn two_conversations_are_compared_from_where_they_differ() {
    let world = World::new().await;
    let a = begin(&world, &json!({"team": "talk"})).await;
    until(&world, &a, "closed").await;
    let source = events(&world, &a).await;
    let second = position(&source, "two");
    let body = json!({"seq": second, "text": "deux", "run": true});
    let b = world.post(&format!("{PATH}/{a}/fork"), &body).await.json()["id"].as_str().unwrap().to_owned();
    until(&world, &b, "closed").await;
    let compared = world.get(&format!("/api/v1/compare?a={a}&b={b}")).await.json();
    assert_eq!((&compared["common"], &compared["has_more"]), (&json!(second), &json!(false)), "{compared}");
    assert_eq!((&compared["a"]["id"], &compared["b"]["id"]), (&json!(a), &json!(b)));
    let first = &compared["messages"][0];
    assert_eq!((&first["a"]["text"], &first["b"]["text"]), (&json!("two"), &json!("deux")), "{compared}");
    assert_eq!(first["a"]["who"], "Bob");
    assert_eq!(compared["difference"]["turns"], 0, "{compared}");
    let same = world.get(&format!("/api/v1/compare?a={a}&b={a}")).await.json();
    assert_eq!((&same["common"], &same["messages"]), (&json!(source.len()), &json!([])));
    for (query, status) in [("a=x1", 404), ("", 400)] {
        assert_eq!(world.get(&format!("/api/v1/compare?{query}")).await.status, status, "{query}");
    }
}
