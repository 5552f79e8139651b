//! A server that is killed, at random moments under load and at given ones, and one that is asked to end: S25, S38, S39, S57, S60 and S78. What it has acknowledged is kept and done, answers and messages
//! exactly once, what clients follow has no gap, and no finished model call is made again. `POLYLOGUE_KILLS` sets how often it is killed (default: 16); 200 take minutes, more than
//! the tests of nextest may: `POLYLOGUE_KILLS=200 cargo test -p polylogue-cli --test kill s25 -- --nocapture`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};
use std::{io, sync::Arc};

use polylogue_core::{Body, ListQuery, LogId, Part, Store as _};
use polylogue_runtime::StoreLocation;
use polylogue_test::http::send;
use polylogue_test::server::{Answer, Behavior, PieceGate, Playbook, Quirk, Received};
use serde_json::{Value, json};

use crate::desk::{DESK, Told, check_stored};
use crate::place::{Kind, PATIENCE, Place, Process};
use crate::random::{Moment, Random};
use crate::replies::words;

const TEAM: &str = "
name: pair
agents: [{name: Ann, system: You are Ann.}, {name: Bob, system: You are Bob.}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 6}}
";

/// How many turns each conversation has.
const TURNS: usize = 6;

/// How many of the first conversations are followed.
const FOLLOWED: usize = 4;

pub(crate) const PATH: &str = "/api/v1/conversations";

#[test]
fn s25_s39_a_server_that_is_killed_keeps_what_it_has_acknowledged() {
    let kills = std::env::var("POLYLOGUE_KILLS").map_or(16, |kills| kills.parse().unwrap());
    kill_under_load(kills);
}

/// No call is in flight when it ends, so that none is made again.
#[test]
fn s38_a_server_that_is_terminated_ends_its_steps_and_the_next_one_its_conversations() {
    const COUNT: usize = 4;
    // As many replies come at once as there are conversations, and the others later.
    let later = PieceGate::new();
    let model = Playbook::new({
        let later = later.clone();
        move |received, number| {
            let answer = Answer::text(text_of(received));
            if number < COUNT { answer } else { answer.gated(&later) }
        }
    });
    let place = Place::of(Kind::Sqlite, TEAM, Behavior::from(model));
    let client = Client::new(new_token(&place));
    let mut process = serve(&place, &client);
    let begin = |number: usize| {
        let body = json!({"team": "team", "message": format!("Talk about the number {number}.")});
        client.ask("POST", PATH, "", &body.to_string())["id"].as_str().unwrap().to_owned()
    };
    let ids: Vec<String> = (0..COUNT).map(begin).collect();
    let mut tails: Vec<_> = ids.iter().map(|id| client.open_tail(id, None).unwrap()).collect();
    for tail in &mut tails {
        let mut head = String::new();
        tail.read_line(&mut head).unwrap();
        assert_eq!(status(&head), Some(200), "{head}");
    }
    until("each conversation waits for a reply", || place.server.count() == 2 * COUNT);
    process.terminate();
    until("it says that it ends", || client.status_of("/readyz") == Some(503));
    later.lift();
    assert_eq!(process.end().code(), Some(0), "{}", process.errors());
    assert_eq!(place.server.count(), 2 * COUNT, "it begins no further call");
    let seen = tails.into_iter().map(|tail| {
        let mut events = Vec::new();
        assert!(!read_tail(tail, &mut events).unwrap(), "it ends without the end of its conversation");
        events
    });
    let seen: Vec<Vec<Value>> = seen.collect();
    client.forget_address();
    let _process = serve(&place, &client);
    client.until_all_closed();
    for (id, mut seen) in ids.iter().zip(seen) {
        assert!(client.follow_once(id, &mut seen).unwrap());
        assert_eq!(seen, client.events(id), "the tail of `{id}` has a gap or a repetition");
    }
    check_conversations(&(0..).zip(ids.iter().cloned()).collect(), &client.conversations());
    assert_eq!(place.server.count(), COUNT * TURNS, "each call was made once");
    let undisturbed = begin(0);
    client.until_all_closed();
    let messages = |id: &str| {
        let events = client.events(id).into_iter().filter(|event| event["type"] == "message");
        events.map(|event| event["parts"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(messages(&ids[0]), messages(&undisturbed));
    assert_eq!(place.server.violations(), [""; 0]);
}

#[test]
fn s78_a_task_outlives_a_server_that_is_killed_right_after_its_reply() {
    let model = Playbook::new(|received, _| Answer::text(text_of(received)));
    let place = Place::of(Kind::Sqlite, TEAM, Behavior::from(model).latency(Duration::from_millis(100)));
    let client = Client::new(new_token(&place));
    let mut process = serve(&place, &client);
    let call = json!({"name": "team", "arguments": {"message": "Talk."}});
    let task = client.ask_mcp("tools/call", "team", call);
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert_eq!(process.kill(Moment::Start(Duration::ZERO)), None, "it ended: {}", process.errors());
    let id = task["taskId"].as_str().unwrap();
    let _process = serve(&place, &client);
    let begun = Instant::now();
    let done = loop {
        let task = client.ask_mcp("tasks/get", id, json!({"taskId": id}));
        if task["status"] != "working" {
            break task;
        }
        assert!(begun.elapsed() < PATIENCE, "it is not continued: {task}");
        sleep(Duration::from_millis(50));
    };
    let value = &done["result"]["structuredContent"];
    assert_eq!((&done["status"], &value["state"]), (&json!("completed"), &json!("done")), "{done}");
    assert_eq!(place.server.violations(), [""; 0]);
}

#[test]
fn s60_a_picture_outlives_a_server_that_is_killed_before_its_conversation_runs() {
    const DOT: &str = "data:image/gif;base64,R0lGODlhAgADAAAA";
    // No reply comes before the server was killed: the first conversation keeps its place, and the second one waits for it.
    let (killed, gate) = (Arc::new((Mutex::new(false), Condvar::new())), Duration::from_millis(1));
    let model = Playbook::new({
        let killed = Arc::clone(&killed);
        move |received, _| {
            drop(killed.1.wait_while(killed.0.lock().unwrap(), |killed| !*killed).unwrap());
            Answer::text(text_of(received))
        }
    });
    let place = Place::of(Kind::Sqlite, TEAM, Behavior::from(model).latency(gate));
    let client = Client::new(new_token(&place));
    let mut process = serve_with(&place, &client, &["--limit", "running_per_token=1"]);
    client.ask("POST", PATH, "", &json!({"team": "team", "message": "Talk."}).to_string());
    let picture = json!({"type": "image_url", "image_url": {"url": DOT}});
    let content = json!([{"type": "text", "text": "What is this?"}, picture]);
    let body = json!({"model": "team", "stream": true, "messages": [{"role": "user", "content": content}]});
    let (id, _) = client.completion("", &body);
    assert_eq!(process.kill(Moment::Start(Duration::ZERO)), None, "it ended: {}", process.errors());
    *killed.0.lock().unwrap() = true;
    killed.1.notify_all();
    assert_eq!(stored_events(&place, &id), ["opened"], "it waited to run");
    let _process = serve(&place, &client);
    client.until_all_closed();
    let events = client.events(&id);
    assert_eq!(events[0]["messages"][0]["parts"][1]["media"]["url"], DOT, "{}", events[0]);
    let with_picture = |request: &Arc<Received>| request.body.to_string().contains(DOT);
    let requests = place.server.requests();
    assert_eq!(requests.iter().filter(|request| with_picture(request)).count(), TURNS);
    assert_eq!(place.server.violations(), [""; 0]);
}

/// All clients have lost their connections with the process: one of them comes back, and what no client waits for runs to its end.
#[test]
fn s57_a_response_whose_client_does_not_come_back_after_a_kill_is_stopped() {
    const KEY: &str = "Idempotency-Key: back\r\n";
    let later = PieceGate::new();
    let model = Playbook::new({
        let later = later.clone();
        move |received, _| Answer::text(text_of(received)).gated(&later)
    });
    let place = Place::of(Kind::Sqlite, TEAM, Behavior::from(model));
    let client = Client::new(new_token(&place));
    let options = ["--limit", "abandoned_time=5"];
    let mut process = serve_with(&place, &client, &options);
    let begun = client.ask("POST", PATH, "", &json!({"team": "team", "message": "Talk."}).to_string());
    let body = |text: &str| json!({"model": "team", "stream": true, "messages": [{"role": "user", "content": text}]});
    let (lost, _lost) = client.completion("", &body("Talk about ships."));
    let (joined, _cut) = client.completion(KEY, &body("Talk about birds."));
    until("each waits for a reply", || place.server.count() == 3);
    assert_eq!(process.kill(Moment::Start(Duration::ZERO)), None, "it ended: {}", process.errors());
    client.forget_address();
    let _process = serve_with(&place, &client, &options);
    let (again, mut response) = client.completion(KEY, &body("Talk about birds."));
    assert_eq!(again, joined);
    let is_stopped = || client.events(&lost).iter().any(|event| event["type"] == "cancelled");
    until("the response is stopped", is_stopped);
    later.lift();
    let conversation = |id: &str| client.ask("GET", &format!("{PATH}/{id}"), "", "");
    until("its step is over", || conversation(&lost)["state"] == "halted");
    assert_eq!(conversation(&lost)["turns"], 1);
    let mut rest = String::new();
    response.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("data: [DONE]"), "{rest}");
    client.ask("POST", &format!("{PATH}/{lost}/resume"), "", "{}");
    for id in [begun["id"].as_str().unwrap(), joined.as_str(), lost.as_str()] {
        until("it ends", || conversation(id)["state"] == "closed");
        assert_eq!(conversation(id)["turns"], json!(TURNS));
    }
    assert_eq!(place.server.count(), 3 * (TURNS + 1), "only the calls that were in flight come again");
    assert_eq!(place.server.violations(), [""; 0]);
}

/// The types of the events that are stored of a conversation.
fn stored_events(place: &Place, id: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = StoreLocation::new(place.store()).open().unwrap();
        let events = store.read(&LogId::new(id).unwrap(), 0).await.unwrap();
        events.iter().map(|event| json!(event)["type"].as_str().unwrap().to_owned()).collect()
    })
}

fn kill_under_load(kills: usize) {
    let mut random = Random::of_environment();
    let model = Playbook::new(|received, _| {
        Answer::text(text_of(received)).pieces(4).with(Quirk::Pace(Duration::from_millis(1)))
    });
    let place = Place::of(Kind::Sqlite, TEAM, Behavior::from(model).latency(Duration::from_millis(10)));
    place.file("desk.yaml", DESK);
    let client = Arc::new(Client::new(new_token(&place)));
    let mut process = serve(&place, &client);
    let posting = spawn({
        let client = Arc::clone(&client);
        move || client.post_until_told()
    });
    let completing = spawn({
        let client = Arc::clone(&client);
        move || client.complete_until_told()
    });
    let telling = spawn({
        let client = Arc::clone(&client);
        move || client.tell_until_told()
    });
    let mut looks = Vec::new();
    for nth in 1..=kills {
        // Right after an acknowledgement, too: a server that is killed at one of its first calls may have given none.
        let moment = match nth % 4 {
            0 => client.when_more_is_acknowledged(),
            _ => Moment::draw(&mut random),
        };
        assert_eq!(process.kill(moment), None, "it ended: {}", process.errors());
        client.forget_address();
        // Counted after the store was read: what comes later was not in flight then.
        let finished = look(&place, &client.told().clone());
        looks.push((finished, place.server.count()));
        process = serve(&place, &client);
    }
    client.is_enough.store(true, Ordering::SeqCst);
    let (mut acknowledged, followed) = posting.join().unwrap();
    let completed = completing.join().unwrap();
    assert!(!completed.is_empty());
    acknowledged.extend(completed);
    telling.join().unwrap();
    client.check_told();
    client.until_all_closed();
    let conversations = client.conversations();
    check_conversations(&acknowledged, &conversations);
    for (id, events) in followed.into_iter().map(|tail| tail.join().unwrap()) {
        assert_eq!(events, client.events(&id), "the tail of `{id}` has a gap or a repetition");
    }
    assert_eq!(place.server.violations(), [""; 0]);
    let received = place.server.requests();
    let requests: Vec<String> = received.iter().map(|request| text_of(request)).collect();
    for (finished, asked) in looks {
        let again = requests.iter().skip(asked).find(|text| finished.contains(*text));
        assert_eq!(again, None, "a finished call was asked for again");
    }
    // A message that reaches the desk while a call is in flight changes the request that comes again.
    let of_talks =
        received.iter().zip(&requests).filter(|(of, _)| !of.body.to_string().contains("at the desk"));
    let of_talks: Vec<&String> = of_talks.map(|(_, text)| text).collect();
    let calls: BTreeSet<&&String> = of_talks.iter().collect();
    let again = of_talks.len() - calls.len();
    println!("{kills} kills, {} conversations, {again} calls in flight came again", conversations.len());
    assert!(again > 0, "no kill met a call in flight");
    assert_eq!(calls.len(), conversations.len() * TURNS, "a call is always asked for with the same request");
}

/// What the model says to a request: another text to each, so that it names the call.
fn text_of(received: &Received) -> String {
    format!("I say {}.", words(received))
}

/// Starts a server, and tells the client where it is.
fn serve<'p>(place: &'p Place, client: &Client) -> Process<'p> {
    serve_with(place, client, &[])
}

/// The same with further options.
fn serve_with<'p>(place: &'p Place, client: &Client, options: &[&str]) -> Process<'p> {
    let mut args = vec!["serve", "team.yaml"];
    args.extend(options);
    args.extend(place.has("desk.yaml").then_some("desk.yaml"));
    args.extend(["--model", "openai:test", "--listen", "127.0.0.1:0"]);
    let process = place.begin(&args);
    let printed = process.first_line();
    let address = printed.strip_prefix("http://").unwrap_or_else(|| panic!("no URL: {printed}"));
    *client.address() = Some(address.to_owned());
    process
}

/// A token for a client, made before the server starts.
fn new_token(place: &Place) -> String {
    let mut process = place.begin(&["token", "new", "client", "--scope", "read,run,answer"]);
    assert!(process.end().success(), "{}", process.errors());
    process.first_line()
}

/// Looks into the store while no program runs: whether it has what was `told`, and which replies it has.
fn look(place: &Place, told: &Told) -> BTreeSet<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = StoreLocation::new(place.store()).open().unwrap();
        check_stored(&store, told).await;
        let mut finished = BTreeSet::new();
        let all = ListQuery { limit: Some(usize::MAX), ..ListQuery::default() };
        for listing in store.list(&all).await.unwrap().logs {
            for event in store.read(&listing.id, 0).await.unwrap() {
                if let Body::ModelReplied(reply) = event.body {
                    let texts = reply.parts.iter().map(|part| match part {
                        Part::Text(text) => text.to_string(),
                        part => panic!("the model wrote no such part: {part:?}"),
                    });
                    finished.extend(texts);
                }
            }
        }
        finished
    })
}

/// Each acknowledged request has one conversation, there are no others, and each is whole.
fn check_conversations(acknowledged: &BTreeMap<usize, String>, conversations: &[Value]) {
    let ids: BTreeSet<&str> = conversations.iter().map(|one| one["id"].as_str().unwrap()).collect();
    let begun: BTreeSet<&str> = acknowledged.values().map(String::as_str).collect();
    assert_eq!(begun.len(), acknowledged.len(), "two requests have one conversation");
    let odd: Vec<_> = ids.symmetric_difference(&begun).collect();
    assert!(odd.is_empty(), "lost, or begun twice: {odd:?}");
    for one in conversations {
        assert_eq!((&one["turns"], &one["ended"]["word"]), (&json!(TURNS), &json!("done")), "{one}");
    }
}

/// A client that tries again until it is answered.
pub(crate) struct Client {
    token: String,
    /// Where the server is, while it runs.
    address: Mutex<Option<String>>,
    /// What the desk was told.
    pub(crate) told: Mutex<Told>,
    /// Whether no further conversation is to begin.
    pub(crate) is_enough: AtomicBool,
    /// Whether all conversations are closed.
    is_over: AtomicBool,
}

/// A tail that is read in a thread: its conversation, and its events.
type Followed = std::thread::JoinHandle<(String, Vec<Value>)>;

impl Client {
    fn new(token: String) -> Self {
        Self {
            token,
            address: Mutex::default(),
            told: Mutex::default(),
            is_enough: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    fn address(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_address(&self) {
        *self.address() = None;
    }

    /// Begins conversations, each until it is acknowledged: their ids by number, and the first of them followed.
    fn post_until_told(self: &Arc<Self>) -> (BTreeMap<usize, String>, Vec<Followed>) {
        let (mut acknowledged, mut followed) = (BTreeMap::new(), Vec::new());
        while !self.is_enough.load(Ordering::SeqCst) {
            let number = acknowledged.len();
            let body = json!({"team": "team", "message": format!("Talk about the number {number}.")});
            let head = format!("Idempotency-Key: number-{number}\r\n");
            let id = self.ask("POST", PATH, &head, &body.to_string())["id"].as_str().unwrap().to_owned();
            if followed.len() < FOLLOWED {
                let (client, id) = (Arc::clone(self), id.clone());
                followed.push(spawn(move || {
                    let events = client.follow(&id);
                    (id, events)
                }));
            }
            acknowledged.insert(number, id);
        }
        (acknowledged, followed)
    }

    /// Asks for chat completions, each until the whole response is there: their conversations by number, from a million on.
    fn complete_until_told(&self) -> BTreeMap<usize, String> {
        let mut completed = BTreeMap::new();
        while !self.is_enough.load(Ordering::SeqCst) {
            let number = 1_000_000 + completed.len();
            let message = json!({"role": "user", "content": format!("Talk about the number {number}.")});
            let body = json!({"model": "team", "messages": [message]});
            let head = format!("Idempotency-Key: chat-{number}\r\n");
            let completion = self.ask("POST", "/v1/chat/completions", &head, &body.to_string());
            let (state, id) = (&completion["polylogue"]["state"], &completion["polylogue"]["conversation"]);
            assert_eq!(state, "closed", "{completion}");
            completed.insert(number, id.as_str().unwrap().to_owned());
        }
        completed
    }

    /// Those of the team that talks.
    fn conversations(&self) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.ask("GET", &format!("{PATH}?limit=200&team=team{cursor}"), "", "");
            all.extend(page["conversations"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    }

    /// Waits as long as something is continued: a slow machine may need minutes for what has piled up.
    fn until_all_closed(&self) {
        let (mut changed, mut events) = (Instant::now(), 0);
        loop {
            let mut open = self.conversations();
            let now: u64 = open.iter().filter_map(|one| one["seq"].as_u64()).sum();
            open.retain(|one| one["state"] != "closed");
            if open.is_empty() {
                self.is_over.store(true, Ordering::SeqCst);
                return;
            }
            if now > events {
                (changed, events) = (Instant::now(), now);
            }
            let ids: Vec<&Value> = open.iter().map(|one| &one["id"]).collect();
            assert!(changed.elapsed() < PATIENCE, "{} are not continued: {ids:?}", open.len());
            sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn events(&self, id: &str) -> Vec<Value> {
        self.ask("GET", &format!("{PATH}/{id}/events"), "", "")["events"].as_array().unwrap().clone()
    }

    /// The answer to a request, which is sent again until there is one.
    pub(crate) fn ask(&self, method: &str, path: &str, head: &str, body: &str) -> Value {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "no answer to {method} {path}");
            let answer = self.send(method, path, head, body).and_then(|mut socket| {
                let mut answer = String::new();
                socket.read_to_string(&mut answer)?;
                Ok(answer)
            });
            let answer = answer.unwrap_or_default();
            let (status, text) = (status(&answer), answer.split_once("\r\n\r\n").map(|(_, text)| text));
            match (status, text.and_then(|text| serde_json::from_str(text).ok())) {
                (Some(200..=202), Some(answer)) => return answer,
                // It was cut off, or the server asks to come later.
                (None | Some(200..=202 | 429 | 503), _) => sleep(Duration::from_millis(10)),
                (Some(status), _) => panic!("{method} {path} is {status}: {answer}"),
            }
        }
    }

    /// The conversation of a streamed chat completion, which is known once its first chunk has come, and the rest of the stream.
    fn completion(&self, head: &str, body: &Value) -> (String, BufReader<TcpStream>) {
        let mut socket = self.send("POST", "/v1/chat/completions", head, &body.to_string()).unwrap();
        let chunk: Value = loop {
            let mut line = String::new();
            assert!(socket.read_line(&mut line).unwrap() > 0, "it ends without a chunk");
            if let Some(data) = line.strip_prefix("data: ") {
                break serde_json::from_str(data).unwrap();
            }
        };
        (chunk["id"].as_str().unwrap().split('-').nth(1).unwrap().to_owned(), socket)
    }

    /// The result of a request of MCP, by a client that takes tasks.
    fn ask_mcp(&self, method: &str, name: &str, mut params: Value) -> Value {
        const VERSION: &str = "2026-07-28";
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let head = format!(
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n\
             Mcp-Name: {name}\r\n"
        );
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut lines = self.send("POST", "/mcp", &head, &body).unwrap().lines().map(Result::unwrap);
        let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        let message: Value = serde_json::from_str(&data.expect("a message")).unwrap();
        assert!(message["result"].is_object(), "{message}");
        message["result"].clone()
    }

    /// Sends a request to the server that runs now.
    fn send(&self, method: &str, path: &str, head: &str, body: &str) -> io::Result<BufReader<TcpStream>> {
        let address = self.address().clone().ok_or(io::ErrorKind::NotConnected)?;
        send(&address, &self.token, (method, path), head, body)
    }

    /// The events of a conversation to its end, from as many streams as it takes: each continues after the last whole event.
    fn follow(&self, id: &str) -> Vec<Value> {
        let (mut waiting, mut events) = (Instant::now(), Vec::new());
        while !self.follow_once(id, &mut events).unwrap_or_default() {
            // Until all are closed, others may be continued before this one.
            if !self.is_over.load(Ordering::SeqCst) {
                waiting = Instant::now();
            }
            assert!(waiting.elapsed() < PATIENCE, "the tail of `{id}` has no end");
            sleep(Duration::from_millis(10));
        }
        events
    }

    /// The status of the response to `GET path`.
    fn status_of(&self, path: &str) -> Option<u16> {
        let mut answer = String::new();
        self.send("GET", path, "", "").and_then(|mut socket| socket.read_to_string(&mut answer)).ok()?;
        status(&answer)
    }

    /// Whether the stream came to the end of the conversation.
    fn follow_once(&self, id: &str, events: &mut Vec<Value>) -> io::Result<bool> {
        read_tail(self.open_tail(id, events.last())?, events)
    }

    /// The stream of a conversation, after its `last` event.
    fn open_tail(&self, id: &str, last: Option<&Value>) -> io::Result<BufReader<TcpStream>> {
        let last = last.map(|last| format!("Last-Event-ID: {}\r\n", last["seq"]));
        let head = format!("Accept: text/event-stream\r\n{}", last.unwrap_or_default());
        self.send("GET", &format!("{PATH}/{id}/events"), &head, "")
    }
}

/// Adds the events of a stream. Whether it came to the end of the conversation.
fn read_tail(socket: BufReader<TcpStream>, events: &mut Vec<Value>) -> io::Result<bool> {
    let (mut is_event, mut event) = (false, None);
    for line in socket.lines() {
        let line = line?;
        match line.split_once(": ") {
            Some(("event", "end")) => return Ok(true),
            Some(("event", kind)) => is_event = kind == "entry",
            Some(("data", data)) if is_event => event = serde_json::from_str(data).ok(),
            // A frame counts when it is whole.
            _ if line.is_empty() => events.extend(event.take()),
            _ => {}
        }
    }
    Ok(false)
}

/// Waits until `holds`.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not yet: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// The status of a response, if its head has come.
fn status(answer: &str) -> Option<u16> {
    answer.split(' ').nth(1)?.parse().ok()
}
