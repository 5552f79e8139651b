//! Conversations on a server that is asked to stop, or fails, at a moment when that is easily lost.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use polylogue_core::TotalUsage;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{Home, PROGRAM, wait};

/// How often an event stream without an order to stop is opened before the conversation ends by itself.
const MAX_STREAMS: usize = 200;

/// Reads a request. Returns its method and its path; nothing of a connection that its client gave up.
fn request(socket: &TcpStream) -> Option<(String, String)> {
    let (mut reader, mut line, mut length) = (BufReader::new(socket), String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let request = (words.next()?, words.next()?);
    let mut header = String::new();
    while reader.read_line(&mut header).unwrap() > 2 {
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        header.clear();
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    Some(request)
}

/// The requests to a server, each with its connection: clients also make connections that they then do not need.
fn requests(listener: TcpListener) -> Receiver<(TcpStream, String, String)> {
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for socket in listener.incoming().map(Result::unwrap) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let (method, path) = request(&socket)?;
                sender.send((socket, method, path)).ok()
            });
        }
    });
    received
}

/// Responds to a request.
fn respond(mut socket: &TcpStream, status: &str, body: &str) {
    let length = body.len();
    // Documents are read whatever their type is.
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/event-stream\r\n");
    let head = format!("{head}Content-Length: {length}\r\n\r\n");
    socket.write_all((head + body).as_bytes()).unwrap();
}

/// The team `t`.
fn team() -> Value {
    json!({
        "id": "t", "name": "t", "description": "", "task": null, "participants": [], "edges": [], "selected_by": null, "inputs": [],
        "models": [], "scripted": true, "limits": {}, "changed": null,
    })
}

/// Its conversation `abc`, also after a request to stop it.
fn conversation() -> Value {
    json!({
        "id": "abc", "team": "t", "team_name": "t", "title": null, "task": "", "state": "running", "created_ms": 1, "started_ms": 1,
        "updated_ms": 1, "seq": 1, "turns": 0, "usage": TotalUsage::default(), "questions": [], "stopped": true,
    })
}

/// Its events, as a stream that ends with its end.
fn events() -> String {
    let closed =
        json!({"seq": 0, "time_ms": 1, "type": "closed", "reason": "finished", "summary": "the result"});
    let status = json!({"state": "closed", "ended": {"word": "done", "detail": "done"}, "questions": []});
    format!("event: entry\ndata: {closed}\n\nevent: end\ndata: {status}\n\n")
}

/// Serves the conversation: says when it is to begin, and waits until it may. Returns how often it was to stop, once the client has seen it
/// end.
fn serve(listener: TcpListener, begins: Sender<()>, may_begin: Receiver<()>) -> JoinHandle<usize> {
    std::thread::spawn(move || {
        let (mut stops, mut streams, mut is_over) = (0, 0, false);
        let requests = requests(listener);
        while !is_over {
            let (socket, method, path) = requests.recv().unwrap();
            let body = match (method.as_str(), path.strip_prefix("/api/v1/").unwrap()) {
                ("GET", "teams/t") => team().to_string(),
                ("POST", "conversations") => {
                    begins.send(()).unwrap();
                    may_begin.recv().unwrap();
                    conversation().to_string()
                }
                ("POST", "conversations/abc/stop") => {
                    stops += 1;
                    conversation().to_string()
                }
                ("GET", "conversations/abc/events") if stops == 0 && streams < MAX_STREAMS => {
                    streams += 1;
                    "retry: 1\n\n".to_owned()
                }
                ("GET", "conversations/abc/events") => {
                    streams = usize::MAX;
                    events()
                }
                ("GET", "conversations/abc") => {
                    // The last request of a row is for what its events do not have.
                    is_over = streams == usize::MAX;
                    conversation().to_string()
                }
                other => panic!("{other:?}"),
            };
            respond(&socket, "200 OK", &body);
        }
        stops
    })
}

#[test]
fn an_order_to_stop_while_a_row_begins_stops_it() {
    let home = Home::new().var("POLYLOGUE_TOKEN", "ply_0123456789abcdef");
    home.file("rows.jsonl", &json!({"task": "Talk."}).to_string());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let ((begins, begun), (answer, may_begin)) = (channel(), channel());
    let serving = serve(listener, begins, may_begin);
    let args = ["batch", "t", "--over", "rows.jsonl", "--output", "out.jsonl", "--server", server.as_str()];
    let mut command = home.command(PROGRAM, &args);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    begun.recv().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(notes.any(|note| note.contains("the server finishes the steps that have begun")));
    answer.send(()).unwrap();
    let notes: Vec<String> = notes.collect();
    assert!(notes.iter().all(|note| !note.contains("error")), "{notes:#?}");
    wait(&mut child);
    assert_eq!(serving.join().unwrap(), 1);
    let records = std::fs::read_to_string(home.path("out.jsonl")).unwrap();
    let record: Value = serde_json::from_str(&records).unwrap();
    assert_eq!(record["state"], "done");
}

#[test]
fn a_result_is_printed_also_if_the_server_fails_after_it() {
    let home = Home::new().var("POLYLOGUE_TOKEN", "ply_0123456789abcdef");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (socket, method, path) in requests(listener) {
            match (method.as_str(), path.strip_prefix("/api/v1/").unwrap()) {
                ("GET", "teams/t") => respond(&socket, "200 OK", &team().to_string()),
                ("POST", "conversations") => respond(&socket, "201 Created", &conversation().to_string()),
                ("GET", "conversations/abc/events") => respond(&socket, "200 OK", &events()),
                _ => respond(&socket, "500 Internal Server Error", "{}"),
            }
        }
    });
    let ran = home.run(&["run", "t", "--quiet", "--server", &server]).ok();
    assert_eq!(ran.out, "the result\n");
}
