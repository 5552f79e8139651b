//! A server that loses connections, repeats events, leaves some out, or is none of Polylogue.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_client::wire::conversation::{Fork, Import, NewConversation, Resume, When};
use polylogue_client::{Client, ClientError, TailItem};
use polylogue_core::{LogId, TotalUsage};
use polylogue_http::{Key, Proxies};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const TOKEN: &str = "ply_0123456789abcdef";

/// What a server does with one connection.
enum Turn {
    /// It reads the request, writes this and closes the connection.
    Respond(String),
    /// It closes the connection before it has read anything.
    Close,
}

/// Serves one connection after the other; returns the requests.
async fn serve(turns: Vec<Turn>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = tokio::spawn(async move {
        let mut requests = Vec::new();
        for turn in turns {
            let (mut socket, _) = listener.accept().await.unwrap();
            let Turn::Respond(response) = turn else { continue };
            requests.push(read_request(&mut socket).await);
            socket.write_all(response.as_bytes()).await.unwrap();
        }
        requests
    });
    (client(&url), requests)
}

fn client(url: &str) -> Client {
    Client::new(url, &Key::new(TOKEN).unwrap(), &Proxies::none()).unwrap()
}

async fn read_request(socket: &mut TcpStream) -> String {
    let (mut text, mut byte) = (Vec::new(), [0; 1]);
    while !text.ends_with(b"\r\n\r\n") {
        assert_eq!(socket.read(&mut byte).await.unwrap(), 1);
        text.push(byte[0]);
    }
    let text = String::from_utf8(text).unwrap();
    let length =
        text.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    socket.read_exact(&mut body).await.unwrap();
    text + std::str::from_utf8(&body).unwrap()
}

fn respond(status: &str, media: &str, body: &str) -> Turn {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {media}\r\nConnection: close\r\n");
    Turn::Respond(format!("{head}Content-Length: {length}\r\n\r\n{body}"))
}

/// An event stream that ends where `frames` end, in the middle of its body.
fn stream(frames: &str) -> Turn {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    Turn::Respond(format!("{head}{:x}\r\nretry: 1\n\n{frames}\r\n", frames.len() + "retry: 1\n\n".len()))
}

fn entry(seq: u64) -> String {
    let event = json!({"seq": seq, "time_ms": 1, "type": "input_required", "who": "Pat", "text": "?"});
    format!("event: entry\nid: {seq}\ndata: {event}\n\n")
}

fn end() -> String {
    let ended = json!({"word": "done", "detail": "the chat is complete"});
    let status = json!({"state": "closed", "ended": ended, "questions": []});
    format!("event: end\ndata: {status}\n\n")
}

fn id() -> LogId {
    LogId::new("abc").unwrap()
}

/// The events of a tail in words.
async fn followed(client: &Client) -> Result<Vec<String>, ClientError> {
    let id = id();
    let (mut tail, mut items) = (client.tail(&id, 0), Vec::new());
    while let Some(item) = tail.next().await? {
        items.push(match item {
            TailItem::Event(event) => event.seq.to_string(),
            TailItem::Lost(_) => "lost".into(),
            TailItem::Connected => "connected".into(),
            TailItem::Missed => "missed".into(),
            TailItem::End(status) => format!("{:?}", status.ended.unwrap().word),
            TailItem::Delta { delta, .. } => format!("{delta:?}"),
            TailItem::Status(status) => format!("{:?}", status.state),
        });
    }
    assert_eq!(tail.next().await?, None);
    Ok(items)
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_has_each_event_once_and_in_order() {
    let whole = format!("{}{}:\n\n{}{}", entry(0), entry(1), entry(2), end());
    for cut in 0..whole.len() {
        // The next stream begins after the last whole event, as the server reads it in the header.
        let begun = whole[..cut].matches("\n\n").count();
        let done = [0, 1, 2, 2, 3][begun];
        let rest: String = (done..3).map(entry).collect::<String>() + &end();
        let (client, requests) = serve(vec![stream(&whole[..cut]), stream(&rest)]).await;
        let items = followed(&client).await.unwrap();
        assert_eq!(items.iter().filter(|item| item.len() == 1).cloned().collect::<String>(), "012", "{cut}");
        assert_eq!(items.iter().filter(|item| *item == "lost").count(), 1, "{cut}: {items:?}");
        assert_eq!(items.last().unwrap(), "Done");
        let requests = requests.await.unwrap();
        let last = requests[1].lines().find_map(|line| line.strip_prefix("last-event-id: "));
        assert_eq!(last.map(str::to_owned), (done.checked_sub(1)).map(|last: u64| last.to_string()), "{cut}");
    }
}

#[tokio::test]
async fn a_repeated_event_comes_once_and_a_gap_is_asked_for_again() {
    let first = format!("{}{}{}{}", entry(0), entry(0), entry(2), entry(3));
    let (client, requests) = serve(vec![stream(&first), stream(&(entry(1) + &entry(2) + &end()))]).await;
    assert_eq!(followed(&client).await.unwrap(), ["0", "lost", "connected", "missed", "1", "2", "Done"]);
    assert!(requests.await.unwrap()[1].contains("\r\nlast-event-id: 0\r\n"));
    // A server that never has the event is none that can be followed.
    let (client, _requests) = serve((0..9).map(|_| stream(&entry(5))).collect()).await;
    let error = followed(&client).await.unwrap_err();
    assert!(error.to_string().contains("event 5 comes where event 0 is next"), "{error}");
}

#[tokio::test]
async fn a_tail_waits_for_a_server_that_is_away_and_gives_up_in_time() {
    let busy =
        || respond("503 Service Unavailable", "application/problem+json", &problem(503, "is stopping"));
    let turns = vec![stream(&entry(0)), Turn::Close, busy(), stream(&(entry(1) + &end()))];
    let (client, _requests) = serve(turns).await;
    let items = followed(&client).await.unwrap();
    assert_eq!(items, ["0", "lost", "connected", "missed", "1", "Done"]);
    let (client, _requests) = serve(vec![stream(&entry(0))]).await;
    let error = followed(&client.with_patience(Duration::from_millis(20))).await.unwrap_err();
    assert!(error.is_unreachable() && error.hint().unwrap().contains("polylogue serve"), "{error}");
    let turns = vec![stream(&entry(0)), respond("401 Unauthorized", "x", &problem(401, "revoked"))];
    let (client, _requests) = serve(turns).await;
    // However patient, it does not repeat what is refused.
    let error = followed(&client.with_patience(Duration::MAX)).await.unwrap_err();
    assert_eq!((error.to_string(), error.is_usage()), ("revoked".into(), true));
}

/// `response` with another header.
fn with(header: &str, response: Turn) -> Turn {
    match response {
        Turn::Respond(text) => Turn::Respond(text.replacen("\r\n", &format!("\r\n{header}\r\n"), 1)),
        Turn::Close => Turn::Close,
    }
}

#[tokio::test]
async fn a_server_in_front_that_cannot_reach_it_is_tried_again_and_any_wait_is_bounded() {
    let away = || respond("502 Bad Gateway", "text/html", "<html>");
    let gone = || respond("404 Not Found", "application/problem+json", &problem(404, "no"));
    let (client, requests) = serve(vec![away(), gone()]).await;
    assert_eq!(client.conversation(&id()).await.unwrap_err().to_string(), "no");
    assert_eq!(requests.await.unwrap().len(), 2);
    let (client, _requests) = serve(vec![stream(&entry(0)), away(), stream(&(entry(1) + &end()))]).await;
    assert_eq!(followed(&client).await.unwrap(), ["0", "lost", "connected", "missed", "1", "Done"]);
    let busy = respond("503 Service Unavailable", "application/problem+json", &problem(503, "later"));
    let (client, _requests) = serve(vec![with(&format!("Retry-After: {}", u64::MAX), busy)]).await;
    assert_eq!(client.conversation(&id()).await.unwrap_err().to_string(), "later");
}

#[tokio::test]
async fn what_is_sent_again_is_reported_once_until_a_request_succeeds() {
    let away = || respond("502 Bad Gateway", "text/html", "<html>");
    let found = || respond("200 OK", "application/octet-stream", "text");
    let gone = respond("404 Not Found", "application/problem+json", &problem(404, "no"));
    let (client, _requests) = serve(vec![away(), away(), found(), found(), away(), found(), gone]).await;
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = Arc::clone(&reports);
    let client = client.with_retry_handler(move |error, at_most| {
        reported.lock().unwrap().push((error.to_string(), at_most));
    });
    let mut counts = Vec::new();
    for _ in 0..3 {
        client.file(&id(), "notes.txt").await.unwrap();
        counts.push(reports.lock().unwrap().len());
    }
    // What is not repeated is an error alone.
    client.file(&id(), "notes.txt").await.unwrap_err();
    counts.push(reports.lock().unwrap().len());
    assert_eq!(counts, [1, 1, 2, 2]);
    let (error, at_most) = reports.lock().unwrap().swap_remove(0);
    assert!(error.contains("cannot be reached: status 502"), "{error}");
    assert_eq!(at_most, Duration::from_secs(30));
}

#[tokio::test]
async fn a_tail_that_is_dropped_while_it_connects_continues_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()));
    let id = id();
    let mut tail = client.tail(&id, 0);
    // Until the request is there, `next` is dropped repeatedly.
    let mut socket = loop {
        tokio::select! {
            biased;
            accepted = listener.accept() => break accepted.unwrap().0,
            _ = tail.next() => panic!("nothing has come"),
            () = tokio::task::yield_now() => {}
        }
    };
    let reading = tokio::spawn(async move {
        read_request(&mut socket).await;
        socket
    });
    while !reading.is_finished() {
        tokio::select! {
            biased;
            _ = tail.next() => panic!("nothing has come"),
            () = tokio::task::yield_now() => {}
        }
    }
    let mut socket = reading.await.unwrap();
    let Turn::Respond(response) = stream(&(entry(0) + &end())) else { panic!("it is a response") };
    socket.write_all(response.as_bytes()).await.unwrap();
    assert!(matches!(tail.next().await.unwrap(), Some(TailItem::Event(event)) if event.seq == 0));
}

fn problem(status: u16, detail: &str) -> String {
    let problem = json!({
        "type": "/problems/x", "title": "X", "status": status, "detail": detail, "hint": "do y", "request_id": "r",
    });
    problem.to_string()
}

/// The conversation `id`, also after a request to stop it.
fn document(id: &str) -> Value {
    json!({
        "id": id, "team": "t", "team_name": "t", "title": null, "task": "", "state": "running", "created_ms": 1, "started_ms": 1,
        "updated_ms": 1, "seq": 0, "turns": 0, "usage": TotalUsage::default(), "questions": [], "stopped": true, "new_field": 1,
    })
}

#[tokio::test]
async fn a_whole_id_names_its_conversation_among_newer_ones_that_begin_so() {
    let found = |body: &Value| respond("200 OK", "application/json", &body.to_string());
    let page = json!({"conversations": [document("abc1"), document("abc2")], "next_cursor": null});
    let gone = respond("404 Not Found", "application/problem+json", &problem(404, "no"));
    let (client, _requests) = serve(vec![found(&page), found(&document("abc")), found(&page), gone]).await;
    assert_eq!(client.find("abc").await.unwrap().id, id());
    let error = client.find("abc").await.unwrap_err();
    assert!(error.to_string().ends_with("begin with `abc`: abc1, abc2"), "{error}");
}

#[tokio::test]
async fn what_may_have_had_an_effect_is_not_repeated_without_a_key() {
    let conversation = || respond("201 Created", "application/json", &document("abc").to_string());
    let cut = || Turn::Respond("HTTP/1.1 201 Cre".into());
    let new = NewConversation { team: "t".into(), ..NewConversation::default() };
    let (client, requests) = serve(vec![cut()]).await;
    let error = client.begin(&new).await.unwrap_err();
    assert!(error.may_have_effect() && error.is_unreachable(), "{error:?}");
    assert!(!requests.await.unwrap()[0].contains("idempotency-key"));
    let (client, requests) = serve(vec![cut(), conversation()]).await;
    assert_eq!(client.begin_once(&new, "k1").await.unwrap().id, id());
    let requests = requests.await.unwrap();
    assert_eq!(requests[0], requests[1]);
    assert!(requests[0].contains("\r\nidempotency-key: k1\r\n"), "{}", requests[0]);
    assert!(requests[0].ends_with(r#"{"team":"t"}"#), "{}", requests[0]);
    // A message has a key of its own; to stop twice is to stop.
    let accepted = respond("202 Accepted", "application/json", r#"{"seq": 4}"#);
    let (client, requests) = serve(vec![cut(), accepted, cut(), conversation()]).await;
    assert_eq!(client.send(&id(), "hi").await.unwrap().seq, Some(4));
    assert!(client.stop(&id(), When::Now).await.unwrap().stopped);
    let requests = requests.await.unwrap();
    assert_eq!(requests[0], requests[1]);
    assert!(requests[3].ends_with(r#"{"when":"now"}"#), "{}", requests[3]);
}

#[tokio::test]
async fn a_resumption_a_fork_and_an_import_are_repeated_with_one_key_each() {
    let conversation = || respond("201 Created", "application/json", &document("abc").to_string());
    let cut = || Turn::Respond("HTTP/1.1 201 Cre".into());
    let turns = (0..3).flat_map(|_| [cut(), conversation()]).collect();
    let (client, requests) = serve(turns).await;
    assert_eq!(client.resume(&id(), &Resume::default()).await.unwrap().id, id());
    assert_eq!(client.fork(&id(), &Fork::default()).await.unwrap().id, id());
    assert_eq!(client.import(&Import { log: String::new(), team: None }).await.unwrap().id, id());
    let requests = requests.await.unwrap();
    let mut keys = Vec::new();
    let paths = ["conversations/abc/resume", "conversations/abc/fork", "imports"];
    for (pair, path) in requests.chunks(2).zip(paths) {
        assert_eq!(pair[0], pair[1]);
        assert!(pair[0].starts_with(&format!("POST /api/v1/{path} ")), "{}", pair[0]);
        keys.push(pair[0].lines().find(|line| line.starts_with("idempotency-key: ")).unwrap());
    }
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2], "{keys:?}");
}

#[tokio::test]
async fn a_key_that_no_header_can_have_is_an_error_and_nothing_is_sent() {
    let (client, requests) = serve(Vec::new()).await;
    let (client, long) = (client.with_patience(Duration::ZERO), "k".repeat(256));
    let new = NewConversation { team: "t".into(), ..NewConversation::default() };
    for key in ["", "a\nb", "a\tb", "ä", long.as_str()] {
        let error = client.begin_once(&new, key).await.unwrap_err();
        assert!(error.is_usage() && error.hint().unwrap().contains("255"), "{key}: {error}");
    }
    assert!(requests.await.unwrap().is_empty());
}

#[tokio::test]
async fn a_removal_whose_answer_was_lost_has_happened() {
    let cut = || Turn::Respond("HTTP/1.1 200 O".into());
    let gone = || respond("404 Not Found", "application/problem+json", &problem(404, "no"));
    let page = respond("200 OK", "text/html", "<html>Log in</html>");
    let (client, requests) = serve(vec![cut(), gone(), cut(), gone(), cut(), gone(), gone(), page]).await;
    assert!(client.remove(&id()).await.unwrap().removed);
    assert!(client.forget(7).await.unwrap().forgotten);
    assert!(client.revoke_token("t1").await.unwrap().revoked);
    // What did not exist before is an error, and so is a page in front of the server.
    let error = client.remove(&id()).await.unwrap_err();
    assert_eq!((error.to_string(), error.is_usage()), ("no".into(), true));
    assert!(client.remove(&id()).await.unwrap_err().to_string().contains("does not respond as a server"));
    assert!(requests.await.unwrap().iter().all(|request| request.starts_with("DELETE /api/v1/")));
}

/// A server that is away at so many requests, and then permanently.
fn away(times: usize) -> Vec<Turn> {
    let busy = || respond("503 Service Unavailable", "application/problem+json", &problem(503, "later"));
    (0..times).map(|_| with("Retry-After: 0", busy())).collect()
}

#[tokio::test]
async fn a_server_that_asks_for_no_pause_is_not_asked_without_pauses() {
    // Without pauses, all turns of the server would be over at once, and nothing would listen: another error.
    let patience = Duration::from_millis(350);
    let (client, _requests) = serve(away(20)).await;
    let error = client.with_patience(patience).conversation(&id()).await.unwrap_err();
    assert_eq!(error.to_string(), "later");
    let turns = std::iter::once(stream(&entry(0))).chain(away(20)).collect();
    let (client, _requests) = serve(turns).await;
    let error = followed(&client.with_patience(patience)).await.unwrap_err();
    assert_eq!(error.to_string(), "later");
}

#[tokio::test]
async fn pages_of_events_have_each_once_and_in_order() {
    let event =
        |seq: u64| json!({"seq": seq, "time_ms": 1, "type": "closed", "reason": "finished", "summary": ""});
    let page = |seqs: &[u64], next: Option<u64>| {
        let events: Vec<Value> = seqs.iter().copied().map(event).collect();
        respond("200 OK", "application/json", &json!({"events": events, "next": next}).to_string())
    };
    let (client, _requests) = serve(vec![page(&[0, 1], Some(2)), page(&[2], None)]).await;
    let seqs: Vec<u64> = client.all_events(&id(), 0).await.unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [0, 1, 2]);
    for (pages, wrong) in [
        (vec![page(&[0, 2], None)], "event 2 comes where event 1 is next"),
        (vec![page(&[0, 1], Some(2)), page(&[1], None)], "event 1 comes where event 2 is next"),
        (vec![page(&[0, u64::MAX], None)], "event 18446744073709551615 comes where event 1 is next"),
        (vec![page(&[0], Some(0))], "a page of events does not end"),
    ] {
        let (client, _requests) = serve(pages).await;
        let error = client.all_events(&id(), 0).await.unwrap_err();
        assert!(error.to_string().ends_with(wrong), "{error}");
    }
}

#[tokio::test]
async fn a_page_is_no_event_stream() {
    // If it were read as a stream that ends, it would be asked for again each time, and then nothing would listen: another error.
    let page = || respond("200 OK", "text/html; charset=utf-8", "retry: 1\n\nLog in");
    let (client, _requests) = serve((0..20).map(|_| page()).collect()).await;
    let error = followed(&client.with_patience(Duration::ZERO)).await.unwrap_err();
    assert!(error.to_string().ends_with(": its response is no event stream"), "{error}");
}

#[tokio::test]
async fn a_tail_does_not_wait_for_the_rest_of_a_permanent_refusal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&format!("http://{}", listener.local_addr().unwrap()));
    let id = id();
    let mut tail = client.tail(&id, 0);
    let refused = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 503 Away\r\nContent-Length: 9\r\n\r\n{").await.unwrap();
        // From now on, time passes whenever all wait for it.
        tokio::time::pause();
        tokio::time::sleep(Duration::from_hours(1)).await;
        drop(socket);
    };
    tokio::select! {
        item = tail.next() => assert!(matches!(item, Ok(Some(TailItem::Lost(_)))), "{item:?}"),
        () = refused => panic!("it waits for an hour"),
    }
}

#[tokio::test]
async fn errors_say_what_the_server_said_and_show_no_token() {
    let echo = problem(404, &format!("there is no `{TOKEN}`"));
    let (client, requests) = serve(vec![
        respond("404 Not Found", "application/problem+json", &echo),
        respond("200 OK", "text/html", &format!("<html>{TOKEN}")),
        respond("500 Internal Server Error", "text/html", "<html>"),
    ])
    .await;
    let error = client.conversation(&id()).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no `[key]`");
    assert_eq!((error.hint().as_deref(), error.problem().unwrap().word()), (Some("do y"), "x"));
    assert!(!format!("{error:?}").contains(TOKEN));
    for _ in 0..2 {
        let error = client.conversation(&id()).await.unwrap_err();
        assert!(error.to_string().contains("does not respond as a server of Polylogue"), "{error}");
        assert!(!format!("{error:?}").contains(TOKEN) && !error.is_usage());
    }
    assert!(requests.await.unwrap()[0].contains(&format!("\r\nauthorization: Bearer {TOKEN}\r\n")));
    assert!(!format!("{client:?}").contains(TOKEN));
    let token = Key::new(TOKEN).unwrap();
    for wrong in ["", "localhost:1", "ftp://x", "http://user:secret@x", "http://x?y", "http://x#y"] {
        let error = Client::new(wrong, &token, &Proxies::none()).unwrap_err();
        assert!(error.is_usage() && !error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_breaks_off_is_read_again_from_its_beginning() {
    let cut = Turn::Respond("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwho".into());
    let (client, requests) = serve(vec![cut, respond("200 OK", "application/octet-stream", "whole\0")]).await;
    assert_eq!(client.file(&id(), "notes/ä&b.txt").await.unwrap(), "whole\0");
    let requests = requests.await.unwrap();
    let first = "GET /api/v1/conversations/abc/files/content?path=notes%2F%C3%A4%26b.txt HTTP/1.1\r\n";
    assert!(requests[0].starts_with(first), "{}", requests[0]);
    assert_eq!(requests[0], requests[1]);
}

#[tokio::test]
async fn ids_of_any_text_stay_one_part_of_the_path() {
    let found = respond("404 Not Found", "application/problem+json", &problem(404, "no"));
    let (client, requests) = serve(vec![found]).await;
    drop(client.team("../tokens?x=1#y").await);
    assert!(requests.await.unwrap()[0].starts_with("GET /api/v1/teams/..%2Ftokens%3Fx=1%23y HTTP/1.1\r\n"));
}
