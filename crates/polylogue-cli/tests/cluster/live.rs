//! W39 with real processes: a client of `polylogue serve` follows what `polylogue worker` runs, over a drain and a kill. And what monitoring
//! reads of both.

use std::fs;
use std::io::{BufRead as _, BufReader, read_to_string};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use polylogue_test::http::send;
use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};
use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, WorkerProcess, expire, of_type, until};

const TURNS: usize = 24;

const SERVE: [&str; 6] = ["serve", "team.yaml", "--model", "openai:test", "--listen", "127.0.0.1:0"];

fn talk() -> String {
    format!(
        "
name: talk
task: Talk.
agents: [{{name: Ann, system: You are Ann.}}, {{name: Bob, system: You are Bob.}}]
chat: {{participants: [Ann, Bob], stop: {{max_turns: {TURNS}}}, loop_detection: off}}
"
    )
}

/// A machine with the database, the model and a team.
fn machine(database: &PostgresServer, model: &Server, team: &str) -> Place {
    Place::new(&database.url()).with_model(model).with_team(team)
}

/// Each turn has a text of its own, which comes in pieces.
fn model() -> Server {
    let book = Playbook::new(|received, _| {
        let turn = received.body.to_string().len();
        let text: Vec<String> = (0..20).map(|piece| format!("{turn}.{piece}")).collect();
        Answer::text(text.join(" ")).pieces(20).with(Quirk::Pace(Duration::from_millis(20)))
    });
    let behavior = Behavior::from(book).latency(Duration::from_millis(300));
    Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), behavior).unwrap()
}

/// A new token with these options.
fn token(place: &Place, options: &[&str]) -> String {
    place.run(&[&["token", "new", "client"], options].concat(), 0).out.trim().to_owned()
}

/// A client of a server.
pub(crate) struct Client {
    address: String,
    token: String,
}

impl Client {
    /// Starts the server of `team.yaml`. The client's token has these options.
    pub(crate) fn of_server(place: &Place, options: &[&str]) -> (WorkerProcess, Self) {
        let token = token(place, options);
        (place.begin(&SERVE, "served"), Self::of(place, token, "served"))
    }

    /// Of a server that is starting.
    pub(crate) fn of(place: &Place, token: String, output: &str) -> Self {
        let mut address = String::new();
        until("the server listens", || {
            let text = fs::read_to_string(place.path(output)).unwrap_or_default();
            let line = text.split_once('\n').map(|(line, _)| line.to_owned()).unwrap_or_default();
            address = line.trim_start_matches("http://").to_owned();
            !address.is_empty()
        });
        Self { address, token }
    }

    /// Of the metrics of a worker.
    pub(crate) fn of_metrics(worker: &WorkerProcess) -> Self {
        let mut address = String::new();
        until("the worker serves metrics", || {
            let log = worker.log();
            let line = log.split("metrics at http://").nth(1).and_then(|rest| rest.split_once('\n'));
            address = line.map(|(line, _)| line.trim_end_matches("/metrics").to_owned()).unwrap_or_default();
            !address.is_empty()
        });
        Self { address, token: String::new() }
    }

    fn get(&self, path: &str, head: &str) -> BufReader<TcpStream> {
        send(&self.address, &self.token, ("GET", path), head, "").unwrap()
    }

    pub(crate) fn text(&self, path: &str) -> String {
        read_to_string(self.get(path, "")).unwrap()
    }

    /// The JSON at this path.
    pub(crate) fn document(&self, path: &str) -> Value {
        let answer = self.text(path);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// Sends JSON. Returns the status and what is answered.
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = send(&self.address, &self.token, ("POST", path), "", &body.to_string());
        let answer = read_to_string(response.unwrap()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Begins a conversation, and returns its id.
    fn begin(&self) -> String {
        let (status, begun) = self.post("/api/v1/conversations", &serde_json::json!({"team": "team"}));
        assert_eq!(status, 201, "{begun}");
        begun["id"].as_str().unwrap().to_owned()
    }

    /// Follows a conversation to its end: its events, and how many replies came live and whole.
    pub(crate) fn follow(&self, id: &str, pieces: Arc<AtomicUsize>) -> JoinHandle<(Vec<Value>, usize)> {
        let head = "Accept: text/event-stream\r\n";
        let socket = self.get(&format!("/api/v1/conversations/{id}/events"), head);
        std::thread::spawn(move || {
            let (mut kind, mut events, mut whole) = (String::new(), Vec::new(), 0);
            let mut replies = std::collections::BTreeMap::<String, String>::new();
            for line in socket.lines() {
                let line = line.unwrap();
                if let Some(event) = line.strip_prefix("event: ") {
                    event.clone_into(&mut kind);
                }
                let Some(data) = line.strip_prefix("data: ") else { continue };
                let data: Value = serde_json::from_str(data).unwrap();
                let who = data["who"].as_str().unwrap_or_default().to_owned();
                match (kind.as_str(), data["type"].as_str().unwrap_or_default()) {
                    ("delta", "text") => {
                        replies.entry(who).or_default().push_str(data["text"].as_str().unwrap());
                        pieces.fetch_add(1, Ordering::Relaxed);
                    }
                    ("delta", "restart") => drop(replies.remove(&who)),
                    ("entry", kind) => {
                        if let Some(live) = replies.remove(&who).filter(|_| kind == "model_replied") {
                            // A stored reply may overtake its last pieces.
                            let mut parts = data["parts"].as_array().unwrap().iter();
                            let text = parts.find_map(|part| part["text"].as_str()).unwrap_or_default();
                            assert!(text.starts_with(&live), "{live}: {text}");
                            whole += usize::from(live == text);
                        }
                        events.push(data);
                    }
                    ("end", _) => return (events, whole),
                    _ => {}
                }
            }
            panic!("the stream ended without `end`");
        })
    }
}

/// W39: the worker is drained in mid-message, the next one killed; the client has one stream.
#[test]
fn a_client_follows_a_worker_over_a_drain_and_a_kill() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    let place = Place::new(&database.url()).with_model(&model).with_team(&talk());
    let (_server, client) = Client::of_server(&place, &["--scope", "read,metrics"]);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let pieces = Arc::new(AtomicUsize::new(0));
    let following = client.follow(&id, Arc::clone(&pieces));
    let more = |what: &str| {
        let before = pieces.load(Ordering::Relaxed);
        until(what, || pieces.load(Ordering::Relaxed) > before || following.is_finished());
    };
    let mut first = place.worker(&[]);
    more("live text of the first worker comes");
    let second = place.worker(&["--metrics", "127.0.0.1:0"]);
    first.signal(Signal::TERM);
    assert_eq!(first.end(), 0, "{}", first.log());
    more("live text of the second worker comes");
    let metrics = client.text("/metrics");
    assert!(metrics.contains("polylogue_cluster_conversations{state=\"held\"} 1"), "{metrics}");
    assert!(metrics.contains("polylogue_followed_live 1"), "{metrics}");
    let of_worker = Client::of_metrics(&second);
    let metrics = of_worker.text("/metrics");
    for line in [
        "cluster_conversations{state=\"held\"} 1",
        "worker_events_total{event=\"claimed\"} 1",
        "worker_running 1",
        "claims_total 1",
        "claims_taken_over_total 0",
        "claims_lost_total 0",
        "appends_refused_total 0",
        "claim_wait_seconds_count 1",
    ] {
        assert!(metrics.contains(&format!("polylogue_{line}")), "{metrics}");
    }
    for sample in [
        "store_seconds_count{op=\"append\"}",
        "lease_slack_seconds_count{at=\"call\"}",
        "database_bytes{table=\"blobs\"}",
    ] {
        assert!(metrics.contains(&format!("polylogue_{sample}")), "{metrics}");
    }
    until("its model calls are counted", || {
        let calls =
            "polylogue_model_calls_total{team=\"talk\",provider=\"openai\",model=\"test\",outcome=\"stop\"}";
        of_worker.text("/metrics").contains(calls)
    });
    let killed = second.kill();
    let third = place.worker(&[]);
    expire(&database, killed);
    more("live text of the third worker comes");
    let (events, whole) = following.join().unwrap();
    assert_eq!(events, place.events(&id), "{}", third.log());
    assert!(whole > 0, "no reply came live");
    println!("{} events, {whole} of {TURNS} replies whole live", events.len());
    drop(client);
}

/// W41: a server that cannot reach a worker says so, once for all of its tries.
#[test]
fn a_server_that_cannot_reach_a_worker_says_so_once() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    let turns = format!("max_turns: {TURNS}");
    let place = machine(&database, &model, &talk().replace(&turns, "max_turns: 10"));
    let (server, client) = Client::of_server(&place, &[]);
    let id = place.detach(&["team.yaml", "--model", "openai:test"]);
    let pieces = Arc::new(AtomicUsize::new(0));
    let following = client.follow(&id, Arc::clone(&pieces));
    let worker = place.worker(&["--internal-listen", "127.0.0.1:0", "--advertise", "127.0.0.1:1"]);
    let (events, _) = following.join().unwrap();
    assert_eq!(events, place.events(&id), "{}", worker.log());
    assert_eq!(pieces.load(Ordering::Relaxed), 0, "live text");
    let log = server.log();
    let said = log.lines().filter(|line| line.contains("a process cannot be reached"));
    let said: Vec<&str> = said.collect();
    assert!(said.len() == 1 && said[0].contains("127.0.0.1:1\""), "{log}");
}

/// A server that dies or stops leaves what it runs to workers. It has a data folder of its own, as in a container; a client of another server
/// has one stream.
#[test]
fn a_worker_continues_what_a_server_began() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    let machine = || machine(&database, &model, &talk());
    let other = machine();
    let (_second, follower) = Client::of_server(&other, &[]);
    let worker = other.worker(&[]);
    for is_killed in [true, false] {
        let place = machine();
        let (mut first, client) = Client::of_server(&place, &[]);
        let id = client.begin();
        let pieces = Arc::new(AtomicUsize::new(0));
        let following = follower.follow(&id, Arc::clone(&pieces));
        until("the first server runs it", || pieces.load(Ordering::Relaxed) > 0);
        let (_, logs) = other.cluster();
        assert!(logs[0]["holder"].as_str().unwrap().contains(&first.id().to_string()), "{logs:?}");
        assert_eq!(
            logs[0]["needs"],
            serde_json::json!(["key:openai"]),
            "a worker without the key leaves it alone"
        );
        if is_killed {
            expire(&database, first.kill());
        } else {
            first.signal(Signal::TERM);
            assert_eq!(first.end(), 0, "{}", first.log());
        }
        let (events, _) = following.join().unwrap();
        assert_eq!(events, place.events(&id), "{}", worker.log());
        assert_eq!(of_type(&events, "message").len(), TURNS);
        let takeovers = database.sql(&format!("SELECT takeovers FROM polylogue.logs WHERE id = '{id}'"));
        assert_eq!(takeovers, if is_killed { "1" } else { "0" });
        until("it is at rest", || other.cluster().1.is_empty());
    }
}

/// A server that dies leaves the conversations of each tenant to workers of that tenant, and to no others.
#[test]
fn a_worker_of_a_tenant_continues_what_a_server_began_for_it_and_no_other_does() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    let place = Place::new(&database.url()).with_model(&model).with_team(&talk());
    let (server, client) = Client::of_server(&place, &["--tenant", "acme"]);
    let id = &*client.begin();
    let of_log = |what: &str| database.sql(&format!("SELECT {what} FROM polylogue.logs WHERE id = '{id}'"));
    until("the server runs it", || of_log("events > 3") == "t");
    // Another machine, whose worker is for the command line.
    let elsewhere = Place::new(&database.url()).with_model(&model);
    let local = elsewhere.worker(&[]);
    until("the worker is seen", || elsewhere.cluster().0.len() == 1);
    expire(&database, server.kill());
    elsewhere.file("other.yaml", &talk().replace("24", "1"));
    let other = elsewhere.detach(&["other.yaml", "--model", "openai:test"]);
    until("it works", || of_type(&elsewhere.events(&other), "closed").len() == 1);
    assert_eq!(of_log("due <= now() AND takeovers = 0"), "t", "{}", local.log());
    elsewhere.run(&["show", id], 2);
    let of_tenant = |field: &str| {
        let rows = elsewhere.run(&["cluster", "--tenant", "acme", "--json"], 0).lines();
        rows.into_iter().filter_map(|row| row.get(field).cloned()).collect::<Vec<_>>()
    };
    assert_eq!((of_tenant("state"), of_tenant("worker")), (vec!["lost".into()], Vec::new()));
    let of_acme = |args: &[&str]| elsewhere.run(&[args, &["--tenant", "acme"]].concat(), 0);
    assert_eq!(of_acme(&["runs", "--json"]).lines()[0]["id"], id);
    let hint = of_acme(&["cluster"]).err;
    assert!(hint.contains("start one with `polylogue worker --tenant acme`"), "{hint}");
    let own = elsewhere.worker(&["--tenant", "acme"]);
    until("it is at rest", || of_log("due IS NULL AND holder IS NULL") == "t");
    let said = || {
        database.sql(&format!(
            "SELECT count(*) FROM polylogue.events JOIN polylogue.logs ON log = nr WHERE id = '{id}' AND json LIKE '%\"type\":\"message\"%'"
        ))
    };
    assert_eq!(said(), TURNS.to_string(), "{}", own.log());
    // The command line continues, shows, archives and removes them as its own.
    of_acme(&["resume", id, "--max-turns", "1", "--detach"]);
    until("it has one turn more", || said() == (TURNS + 1).to_string());
    until("it is at rest", || of_log("due IS NULL AND holder IS NULL") == "t");
    assert!(of_acme(&["show", id]).out.contains("done: "));
    of_acme(&["archive", id]);
    of_acme(&["rm", id]);
    assert_eq!(database.sql("SELECT count(*) FROM polylogue.logs WHERE tenant = 'acme'"), "0");
    assert_eq!((of_tenant("state").len(), of_tenant("worker").len()), (0, 1));
    assert_eq!(elsewhere.cluster().0.len(), 1, "that of the command line");
    let wrong = elsewhere.run(&["worker", "--tenant", "../local"], 2).err;
    assert!(wrong.contains("a tenant has up to 64 letters"), "{wrong}");
}

/// A server that is a worker runs what others leave, of all tenants that have a token there, or of those that are named.
#[test]
fn a_server_that_is_a_worker_continues_the_conversations_of_its_tenants() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    let machine = || machine(&database, &model, &talk().replace("24", "8"));
    let (place, elsewhere) = (machine(), machine());
    let of_acme = ["--tenant", "acme", "--scope", "read,run,metrics"];
    let (server, client) = Client::of_server(&place, &of_acme);
    let id = client.begin();
    let of_log = |what: &str| database.sql(&format!("SELECT {what} FROM polylogue.logs WHERE id = '{id}'"));
    until("the server runs it", || of_log("events > 3") == "t");
    let token = token(&elsewhere, &of_acme);
    expire(&database, server.kill());
    let mut named = elsewhere.begin(&[&SERVE[..], &["--worker", "--tenant", "local"]].concat(), "named");
    let local = elsewhere.detach(&["team.yaml", "--model", "openai:test"]);
    until("it works", || !of_type(&elsewhere.events(&local), "message").is_empty());
    assert_eq!(of_log("due <= now() AND takeovers = 0"), "t", "{}", named.log());
    named.signal(Signal::TERM);
    assert_eq!(named.end(), 0, "{}", named.log());
    let all = elsewhere.begin(&[&SERVE[..], &["--worker", "--at-once", "1"]].concat(), "all");
    until("both have ended", || {
        let is_closed = of_type(&elsewhere.events(&local), "closed").len() == 1;
        is_closed && of_log("due IS NULL AND holder IS NULL") == "t"
    });
    assert_eq!((of_log("state"), of_log("takeovers > 0")), ("done".into(), "t".into()), "{}", all.log());
    let metrics = Client::of(&elsewhere, token, "all").text("/metrics");
    let calls =
        "polylogue_model_calls_total{team=\"team\",provider=\"openai\",model=\"test\",outcome=\"stop\"}";
    assert!(metrics.contains(calls), "{metrics}");
    let refused = elsewhere.run(&[&SERVE[..], &["--tenant", "acme"]].concat(), 2).err;
    assert!(refused.contains("`--tenant` is about the conversations of workers"), "{refused}");
}

/// It has no token of the tenant, and no request has come: as after a restart.
#[test]
fn a_server_that_is_a_worker_continues_those_of_tenants_that_it_finds_in_the_store() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    let machine = || machine(&database, &model, &talk().replace("24", "8"));
    let place = machine();
    let token = place.run(&["token", "new", "client", "--tenant", "acme"], 0).out.trim().to_owned();
    let server = place.begin(&SERVE, "served");
    let client = Client::of(&place, token, "served");
    let (status, begun) = client.post("/api/v1/conversations", &serde_json::json!({"team": "team"}));
    assert_eq!(status, 201, "{begun}");
    let id = begun["id"].as_str().unwrap();
    let of_log = |what: &str| database.sql(&format!("SELECT {what} FROM polylogue.logs WHERE id = '{id}'"));
    until("the server runs it", || of_log("events > 3") == "t");
    expire(&database, server.kill());
    let elsewhere = machine();
    let worker = elsewhere.begin(&[&SERVE[..], &["--worker"]].concat(), "served");
    until("it has ended", || of_log("due IS NULL AND holder IS NULL") == "t");
    assert_eq!((of_log("state"), of_log("takeovers > 0")), ("done".into(), "t".into()), "{}", worker.log());
}

/// Whether a server on the machine of `place` has noted that it is to run the conversation.
fn is_noted(folder: &std::path::Path, id: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        path.ends_with(format!("local/{id}")) || (path.is_dir() && is_noted(&path, id))
    })
}

/// A server that is started again continues what it ran when it was killed, once the lease has ended. What a worker has taken over meanwhile it
/// leaves to that.
#[test]
fn a_server_that_starts_again_continues_what_no_worker_has() {
    let Some(database) = PostgresServer::start() else { return };
    let model = model();
    for has_worker in [false, true] {
        let place = Place::new(&database.url()).with_model(&model).with_team(&talk());
        let (first, client) = Client::of_server(&place, &[]);
        let id = client.begin();
        until("it runs", || place.events(&id).len() > 3);
        let killed = first.kill();
        let worker = has_worker.then(|| place.worker(&[]));
        if let Some(worker) = &worker {
            expire(&database, killed);
            let holder = format!("process {} ", worker.id());
            until("the worker has it", || {
                place.cluster().1.iter().any(|log| log["holder"].to_string().contains(&holder))
            });
        }
        let again = place.begin(&SERVE, "again");
        let client = Client::of(&place, client.token, "again");
        until("the server has looked", || again.log().contains("when no other process has it"));
        if worker.is_none() {
            expire(&database, killed);
        }
        let state = || client.text(&format!("/api/v1/conversations/{id}"));
        until("it is closed", || state().contains("\"state\":\"closed\""));
        assert_eq!(of_type(&place.events(&id), "message").len(), TURNS);
        until("it need not run any more", || !is_noted(&place.path(""), &id));
        let has_run = again.log().contains("a conversation is continued conversation=");
        assert_eq!(has_run, worker.is_none(), "{}", again.log());
    }
}

/// An address that others cannot know is refused with a hint, and so is one that is none.
#[test]
fn an_internal_stream_that_others_cannot_reach_is_refused() {
    let place = Place::new("postgres://polylogue@127.0.0.1:1/polylogue");
    for (args, hint) in [
        (&["worker", "--internal-listen", "0.0.0.0:0"][..], "--advertise HOST:PORT"),
        (&["worker", "--internal-listen", "127.0.0.1:0", "--advertise", "http://here/"], "10.0.0.7:9100"),
        (&["worker", "--internal-listen", "127.0.0.1:0", "--advertise", "here:0"], "10.0.0.7:9100"),
    ] {
        let ran = place.run(args, 2);
        assert!(ran.err.contains(hint), "{}", ran.err);
    }
}
