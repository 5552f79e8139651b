//! What agents and slow readers cannot do to the server: S15, S22. Which teams a token sees.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_core::{LogId, Meta, Store as _};
use polylogue_server::{NewToken, ServerLimits};
use polylogue_test::server::{Answer, Playbook};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpSocket;

use crate::client::{Request, Response, Stream};
use crate::conversations::{begin, begin_until, events, until};
use crate::openai::{complete, content, conversation, user};
use crate::world::{World, generous};

const PATH: &str = "/api/v1/conversations";

/// Reads from anywhere on this machine, because its user says so.
const WEB: &str = "
name: web
task: Look.
web: {fetch: {private: [127.0.0.0/8, '::/0', 'localhost:1'], ignore_robots: true}}
agents: [{name: Ann, model: 'openai:gpt-4o-mini', tools: [web_fetch]}]
chat: {participants: [Ann], pattern: sequential}
";

/// Fields by which clients of other servers said what these start, load or connect to.
const POWERS: [&str; 28] = [
    "api_key", "args", "argv", "base_url", "callback", "cmd", "command", "commands", "cwd", "dir",
    "endpoint", "endpoints", "env", "file", "files", "folder", "host", "mcp", "mcp_servers", "module",
    "openapi", "plugin", "program", "sandbox", "server", "servers", "url", "webhook",
];

/// Adds the names of all properties of a schema in the document.
fn add_names(document: &Value, schema: &Value, seen: &mut BTreeSet<String>, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keys) => {
            if let Some(Value::Object(properties)) = keys.get("properties") {
                names.extend(properties.keys().cloned());
            }
            if let Some(Value::String(place)) = keys.get("$ref")
                && seen.insert(place.clone())
            {
                add_names(document, document.pointer(place.trim_start_matches('#')).unwrap(), seen, names);
            }
            for value in keys.values() {
                add_names(document, value, seen, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                add_names(document, item, seen, names);
            }
        }
        _ => {}
    }
}

// Row "AutoJack" of section 13: an agent's browser, on the page's own machine, had a command in its request.
#[tokio::test]
async fn no_route_takes_what_a_server_would_start_or_connect_to() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    let (mut seen, mut names) = (BTreeSet::new(), BTreeSet::new());
    let paths = document["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|path| path.as_object().unwrap().values()) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        names.extend(parameters.map(|parameter| parameter["name"].as_str().unwrap().to_owned()));
        add_names(&document, &operation["requestBody"], &mut seen, &mut names);
    }
    assert!(
        ["team", "text", "limits", "calls", "jsonrpc"].iter().all(|name| names.contains(*name)),
        "{names:?}"
    );
    let taken: Vec<&&str> = POWERS.iter().filter(|name| names.contains(**name)).collect();
    assert!(taken.is_empty(), "{taken:?}");
    for name in POWERS {
        let refused = world.post(PATH, &json!({"team": "talk", name: "touch started"})).await;
        let problem = refused.problem();
        assert!(problem["detail"].as_str().unwrap().contains(name), "{problem}");
        assert_eq!(refused.status, 400, "{problem}");
    }
    assert_eq!(world.get(PATH).await.json()["conversations"], json!([]));
}

/// Another server of this machine: `/page` is a page, and everything else leads to `to`.
fn other_server(to: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { continue };
            let mut head = [0; 2048];
            let read = socket.read(&mut head).unwrap_or(0);
            let is_page = String::from_utf8_lossy(&head[..read]).contains(" /page ");
            let (status, header, body) = match is_page {
                true => ("200 OK", "Content-Type: text/plain".to_owned(), "an ordinary page"),
                false => ("302 Found", format!("Location: {to}"), ""),
            };
            let head = format!("HTTP/1.1 {status}\r\n{header}\r\nContent-Length: {}\r\n", body.len());
            let _ = write!(socket, "{head}Connection: close\r\n\r\n{body}");
        }
    });
    address
}

#[tokio::test]
async fn s15_the_own_address_is_refused_to_tools_by_every_name() {
    let urls = Arc::new(Mutex::new(Vec::<String>::new()));
    let asked = Arc::clone(&urls);
    let playbook = Playbook::new(move |_, number| {
        let calls =
            asked.lock().unwrap().iter().map(|url| ("web_fetch", json!({"url": url}))).collect::<Vec<_>>();
        if number == 0 { Answer::text("").calls(calls) } else { Answer::text("I have looked.") }
    });
    let world = World::with_playbook("web", WEB, playbook).await;
    let port = world.address.port();
    let other = other_server(format!("http://127.0.0.1:{port}/healthz"));
    let own = [
        format!("http://127.0.0.1:{port}/healthz"),
        format!("http://127.1:{port}/healthz"),
        format!("http://0.0.0.0:{port}/healthz"),
        format!("http://[::1]:{port}/healthz"),
        format!("http://[::ffff:127.0.0.1]:{port}/healthz"),
        format!("http://localhost:{port}/healthz"),
        format!("http://{other}/leads-to-it"),
    ];
    urls.lock().unwrap().extend(own.iter().cloned().chain([format!("http://{other}/page")]));
    let id = begin_until(&world, "web", "closed").await;
    let events = events(&world, &id).await;
    let results: Vec<String> = events
        .iter()
        .filter(|event| event["type"] == "tool_returned")
        .map(|event| event["result"].to_string())
        .collect();
    // In the order in which they came.
    let (pages, refused): (Vec<&String>, Vec<&String>) =
        results.iter().partition(|result| result.contains("an ordinary page"));
    assert_eq!(pages.len(), 1, "what its user allows is reached: {results:?}");
    assert!(
        refused.iter().all(|result| result.contains("the server that runs this conversation")),
        "{refused:?}"
    );
    assert_eq!(refused.len(), own.len());
}

/// A tail whose reader has a small buffer, and takes nothing until it is read.
async fn lazy_tail(world: &World, id: &str) -> BufReader<tokio::net::TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut socket = BufReader::with_capacity(1024, socket.connect(world.address).await.unwrap());
    let request = format!(
        "GET {PATH}/{id}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        world.token
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

/// Many pieces: more than the server keeps for a reader, and more than a socket takes.
fn talkative() -> Playbook {
    let text = "0123456789 ".repeat(40_000);
    Playbook::new(move |_, _| Answer::text(text.clone()).pieces(2000))
}

/// Waits without a tail until the conversation is closed.
async fn closed(world: &World, id: &str) -> Value {
    loop {
        let about = world.get(&format!("{PATH}/{id}")).await.json();
        if about["state"] == "closed" {
            return about;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn s22_a_reader_that_stops_gets_missed_and_every_event_and_holds_nothing_up() {
    let world = World::with_playbook("long", crate::world::LONG, talkative()).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    let tail = lazy_tail(&world, &id).await;
    // The run ends although its reader takes nothing.
    let turns = closed(&world, &id).await["turns"].as_u64().unwrap();
    assert!(turns > 5, "{turns}");
    let mut tail = Stream::read_head(tail).await;
    let (mut entries, mut missed, mut pieces) = (Vec::new(), 0, 0);
    while let Some(frame) = tail.frame().await {
        match frame.event.as_str() {
            "entry" => entries.push(frame.json()),
            "missed" => missed += 1,
            "delta" => pieces += 1,
            _ => {}
        }
    }
    assert!(missed > 0, "pieces were left out");
    assert!(pieces < turns * 2000, "so the server did not keep them all: {pieces}");
    assert_eq!(entries, events(&world, &id).await, "stored events are never left out");
    let (_, token) = world.new_token("local", &[polylogue_server::Scope::Metrics]);
    let metrics = crate::client::Request::new("GET", "/metrics").token(&token).send(world.address).await;
    let counted = metrics.body.lines().find_map(|line| line.strip_prefix("polylogue_streams_missed_total "));
    assert_eq!(counted, Some(missed.to_string().as_str()), "{}", metrics.body);
}

#[tokio::test]
async fn s22_a_reader_that_takes_nothing_for_long_is_cut() {
    let limits = ServerLimits { write_time: Duration::from_millis(100), ..generous() };
    let world = World::with_playbook_and("long", crate::world::LONG, talkative(), limits).await;
    let id = begin(&world, &json!({"team": "long"})).await;
    let mut tail = lazy_tail(&world, &id).await;
    closed(&world, &id).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut rest = Vec::new();
    // It is reset, or ends in the middle.
    let _ = tail.read_to_end(&mut rest).await;
    assert!(!String::from_utf8_lossy(&rest).contains("event: end"), "the stream went on to its end");
    // One that reads gets all of it.
    let mut tail = world.tail(&id, 0).await;
    while tail.frame().await.unwrap().event != "end" {}
}

/// A team with a name that is not its id.
pub(crate) fn named(name: &str) -> String {
    let script = "[{Ann: one}, {Ann: two}, {Ann: three}, {Ann: four}]";
    let chat = "{participants: [Ann], pattern: sequential}";
    format!("name: {name}\ntask: Count.\nagents: [{{name: Ann}}]\nchat: {chat}\nscript: {script}\n")
}

/// The text of a token that sees one team.
pub(crate) fn token_of(world: &World, team: &str) -> String {
    let new = NewToken { teams: Some(vec![team.to_owned()]), ..NewToken::local(team) };
    world.tokens().create(new).unwrap().1.reveal().to_owned()
}

#[tokio::test]
async fn a_token_of_a_team_sees_no_conversation_of_another_one_with_its_name() {
    let teams = [("one", "dup"), ("two", "dup"), ("three", "'dup b'")];
    let world = World::with_teams(&teams.map(|(id, name)| (id.to_owned(), named(name)))).await;
    let mut ids = Vec::new();
    for (team, _) in teams {
        let id = begin(&world, &json!({"team": team, "title": "b plans"})).await;
        assert_eq!(until(&world, &id, "closed").await["team"], team);
        ids.push(id);
    }
    // By another program: it can be of either.
    let (store, elsewhere) = (world.store().await, LogId::new("elsewhere").unwrap());
    let meta = Meta { title: "dup".into(), ..Meta::default() };
    store.release(store.create(&elsewhere, &meta).await.unwrap()).await.unwrap();
    let get = async |world: &World, token: &str, path: &str| -> Response {
        Request::new("GET", path).token(token).send(world.address).await
    };
    let tokens = teams.map(|(team, _)| token_of(&world, team));
    let world = world.restart().await;
    for (token, own) in tokens.iter().zip(&ids) {
        for id in ids.iter().map(String::as_str).chain(["elsewhere"]) {
            let status = get(&world, token, &format!("{PATH}/{id}")).await.status;
            assert_eq!(status, if id == own { 200 } else { 404 }, "{id} of {own}");
        }
        let listed = get(&world, token, PATH).await.json();
        let listed: Vec<&Value> =
            listed["conversations"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(listed, [own]);
    }
    assert_eq!(world.get(&format!("{PATH}/elsewhere")).await.status, 200);
    let of_two = world.get(&format!("{PATH}?team=two")).await.json();
    assert_eq!(
        (of_two["conversations"].as_array().unwrap().len(), &of_two["conversations"][0]["id"]),
        (1, &json!(ids[1]))
    );
    // A fork is of the same team, and a history continues none of another one.
    let fork = world.post(&format!("{PATH}/{}/fork", ids[1]), &json!({})).await.json();
    assert_eq!(fork["team"], "two", "{fork}");
    let first = complete(&world, "two", json!([user("Sing.")])).await;
    let history = json!([user("Sing."), {"role": "assistant", "content": content(&first)}, user("More.")]);
    assert_ne!(conversation(&complete(&world, "one", history.clone()).await), conversation(&first));
    assert_eq!(conversation(&complete(&world, "two", history).await), conversation(&first));
}
