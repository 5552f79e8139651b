//! Which answer a request gets, and what the server remembers.

use std::time::{Duration, Instant};

use crate::client::{Client, Ended, hello, serve, streamed};
use polylogue_test::server::{Answer, Behavior, History, Playbook, Quirk, Server};
use serde_json::{Value, json};

fn text(client: &mut Client, body: &Value) -> String {
    let reply = client.ask(body).json();
    let content = &reply["choices"][0]["message"]["content"];
    content.as_str().or_else(|| reply["error"]["message"].as_str()).unwrap().to_owned()
}

fn chat(system: &str, said: &[&str]) -> Value {
    let roles = ["user", "assistant"].iter().cycle();
    let mut messages = vec![json!({"role": "system", "content": system})];
    messages.extend(said.iter().zip(roles).map(|(text, role)| json!({"role": role, "content": text})));
    json!({"model": "m", "messages": messages})
}

#[test]
fn a_list_is_played_in_order_and_a_request_too_many_is_a_violation() {
    let server = serve(Playbook::list(["one", "two"]));
    let mut client = Client::of(&server);
    assert_eq!(server.unused(), 2);
    assert_eq!(text(&mut client, &hello()), "one");
    assert_eq!(server.unused(), 1);
    assert_eq!(text(&mut client, &hello()), "two");
    assert_eq!(client.ask(&hello()).status(), 400);
    assert_eq!(server.unused(), 0);
    assert_eq!(server.violations(), ["request 2: the script has 2 answers, and this is request 3"]);
}

#[test]
fn agents_are_distinguished_by_their_system_messages_and_turns_by_their_own_words() {
    let server = serve(Playbook::by_agent([("critic", vec!["C1", "C2"]), ("", vec!["A1"])]));
    let mut client = Client::of(&server);
    let second = chat("You are the critic.", &["x", "C1", "y"]);
    assert_eq!(text(&mut client, &second), "C2");
    assert_eq!(text(&mut client, &chat("You are the critic.", &["x"])), "C1");
    assert_eq!(text(&mut client, &second), "C2");
    assert_eq!(text(&mut client, &hello()), "A1");
    let late = text(&mut client, &chat("You are the critic.", &["x", "C1", "y", "C2", "z"]));
    assert_eq!(late, "the script has 2 answers of `critic`, and this is its turn 3");
    let server = serve(Playbook::by_agent([("critic", vec!["C1"])]));
    assert!(text(&mut Client::of(&server), &chat("poet", &["x"])).contains("no agent"));
    assert_eq!(server.violations().len(), 1);
}

#[test]
fn a_function_sees_the_request_and_its_number() {
    let server = serve(Playbook::new(|received, nth| {
        let system = received.system().map_or("none".into(), |system| system.into_owned());
        Answer::text(format!(
            "{nth} {} {system} {} {}",
            received.model(),
            received.turn(),
            received.last_text()
        ))
    }));
    let mut client = Client::of(&server);
    let parts = json!([{"type": "text", "text": "he"}, {"type": "text", "text": "llo"}]);
    client.get("/v1/models");
    assert_eq!(text(&mut client, &hello()), "0 m none 0 hello");
    let mut body = chat("S", &["a", "b", "c"]);
    body["messages"][3]["content"] = parts;
    assert_eq!(text(&mut client, &body), "1 m S 1 hello");
}

#[test]
fn a_playbook_that_panics_costs_a_connection_only() {
    let server = serve(Playbook::new(|_, nth| if nth == 0 { panic!("on purpose") } else { "ok".into() }));
    assert_ne!(Client::of(&server).ask(&hello()).ended, Ended::Whole);
    assert_eq!(Client::of(&server).ask(&hello()).status(), 200);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn malformed_requests_get_400_and_are_listed() {
    let server = serve("ok");
    let mut client = Client::of(&server);
    let mut body = hello();
    body["messages"][0]["content"] = " ".into();
    let response = client.ask(&body);
    assert_eq!(response.status(), 400);
    assert_eq!(response.json()["error"]["type"], "invalid_request_error");
    let twice = r#"{"model":"m","model":"n","messages":[{"role":"user","content":"x"}]}"#;
    let length = twice.len();
    let json = "content-type: application/json\r\n";
    for (kind, body) in [(json, twice), (json, "{"), ("", &*hello().to_string())] {
        let length = if body == twice { length } else { body.len() };
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\n{kind}content-length: {length}\r\n\r\n");
        client.write(format!("{head}{body}").as_bytes());
        assert_eq!(client.response().status(), 400);
    }
    let violations = server.violations();
    assert_eq!(violations[0], "request 0: messages[0] has an empty text");
    assert!(violations[1].contains("the key `model` comes twice"), "{violations:?}");
    assert!(violations[2].contains("not proper JSON"));
    assert!(violations[3].contains("`content-type`"));
    assert_eq!(server.replies(), 0);
}

#[test]
fn how_strictly_histories_are_judged_can_be_chosen() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]});
    for (history, status) in [(History::Strict, 400), (History::Loose, 200), (History::Any, 200)] {
        let server = serve(Behavior::from("ok").history(history));
        assert_eq!(Client::of(&server).ask(&body).status(), status, "{history:?}");
    }
}

/// What another thread of the server does comes soon, not at once.
fn eventually(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(30), "it did not come about");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn only_complete_replies_count_as_answered_twice() {
    let server = serve(Playbook::list([
        Answer::status(500),
        Answer::text("x").with(Quirk::Truncated),
        Answer::text("x"),
        Answer::text("x"),
        Answer::text("x"),
    ]));
    for _ in 0..3 {
        Client::of(&server).ask(&hello());
    }
    Client::of(&server).ask(&streamed());
    assert_eq!((server.replies(), server.duplicates().len()), (2, 0));
    Client::of(&server).ask(&hello());
    assert_eq!(server.duplicates(), [hello()]);
}

/// Asks for a reply, does what `first` says, and goes without a word, as a killed process does.
fn killed(behavior: Behavior, first: impl Fn(&mut Client)) -> Server {
    let server = serve(behavior);
    let mut client = Client::of(&server);
    client.post(&hello());
    eventually(|| server.count() == 1);
    first(&mut client);
    drop(client);
    eventually(|| server.connections() == 0);
    server
}

#[test]
fn a_reply_does_not_count_when_the_client_goes_before_it_has_read_it() {
    let pause = Duration::from_millis(100);
    for (behavior, arrived) in [
        (Behavior::from("ok"), true),
        (Behavior::from("ok"), false),
        (Behavior::from("ok").with(Quirk::NoLength), true),
        (Behavior::from("ok").with(Quirk::NoLength), false),
        (Behavior::from("ok").latency(pause), false),
        (Behavior::from("ok").with(Quirk::PauseBeforeFirst(pause)), false),
    ] {
        let server = killed(behavior, |client| {
            if arrived {
                client.peek()
            }
        });
        assert_eq!(server.replies(), 0);
        Client::of(&server).ask(&hello());
        assert_eq!(server.replies(), 1);
        assert_eq!(server.duplicates(), [""; 0]);
    }
}

#[test]
fn a_reply_counts_when_the_client_goes_after_it_has_read_it() {
    for behavior in [Behavior::from("ok"), Behavior::from("ok").with(Quirk::NoLength)] {
        let server = killed(behavior, |client| assert_eq!(client.response().status(), 200));
        assert_eq!(server.replies(), 1);
    }
}

#[test]
fn a_reply_of_which_not_all_bytes_went_out_does_not_count() {
    // More than the buffers of both sides hold.
    let server = serve(Playbook::always("x".repeat(64 * 1024 * 1024).as_str()));
    let mut client = Client::of(&server);
    client.post(&hello());
    client.more().unwrap();
    drop(client);
    eventually(|| server.connections() == 0);
    assert_eq!(server.replies(), 0);
}

#[test]
fn a_forgetful_server_keeps_only_counts() {
    let server = serve(Behavior::from("ok").forgetful());
    Client::of(&server).ask(&hello());
    assert_eq!((server.count(), server.requests().len(), server.replies()), (1, 0, 0));
}

#[test]
fn scripts_are_read_from_json() {
    let script = r#"{"agents": [{"system": "critic", "answers": [
        "fine", {"text": "I grade", "think": "hm", "calls": [{"tool": "grade", "args": {"n": 1}, "id": "c"}],
                 "usage": {"input": 3, "output": 4}, "finish": "stop", "pieces": 2, "misbehave": ["missing-id"]}]},
        {"system": "", "answers": [{"status": 429, "retry_after_secs": 3, "message": "slow down"}, {"status": 403}]}]}"#;
    let server = serve(Playbook::from_script(script).unwrap());
    let mut client = Client::of(&server);
    assert_eq!(text(&mut client, &chat("critic", &["x"])), "fine");
    let reply = client.ask(&chat("critic", &["x", "fine", "y"])).json();
    assert_eq!(reply.get("id"), None);
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    assert_eq!(reply["choices"][0]["message"]["tool_calls"][0]["id"], "c");
    assert_eq!(reply["usage"]["total_tokens"], 7);
    let refusal = client.ask(&hello());
    assert_eq!((refusal.status(), refusal.header("retry-after")), (429, Some("3")));
    assert_eq!(refusal.json()["error"]["message"], "slow down");
    for bad in ["", "{}", "[1]", r#"[{"misbehave": ["oddly"]}]"#, r#"[{"message": "x"}]"#, r#"[{"txt": ""}]"#]
    {
        assert!(Playbook::from_script(bad).is_err(), "{bad}");
    }
}
