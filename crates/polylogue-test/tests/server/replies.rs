//! What a server that behaves well answers.

use std::time::{Duration, Instant};

use crate::client::{Client, Ended, hello, once, serve, streamed};
use polylogue_test::server::{Answer, Behavior, Playbook, Server, rendered};
use serde_json::{Value, json};

#[test]
fn a_reply_has_the_fields_that_openai_documents() {
    let answer = Answer::text("I look")
        .think("hm")
        .call_as("c1", "look", json!({"at": 1}))
        .usage(7, 3)
        .usage_details(5, 1);
    let mut reply = once(answer, &hello()).json();
    assert!(reply["id"].as_str().unwrap().starts_with("chatcmpl-"));
    reply["id"] = Value::Null;
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}});
    let message =
        json!({"role": "assistant", "content": "I look", "reasoning_content": "hm", "tool_calls": [call]});
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 1}});
    let expected = json!({"id": null, "object": "chat.completion", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": usage});
    assert_eq!(reply, expected);
}

#[test]
fn a_stream_has_the_chunks_that_openai_sends() {
    let mut body = streamed();
    body["stream_options"] = json!({"include_usage": true});
    let response = once(Answer::text("a b").think("hm").call_as("c", "t", json!({})).usage(7, 3), &body);
    let events = response.events();
    let first = &events[0];
    assert_eq!(first["object"], "chat.completion.chunk");
    assert_eq!(first["choices"][0]["index"], 0);
    assert_eq!(first["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(first["usage"], Value::Null);
    assert!(first.as_object().unwrap().contains_key("usage"));
    let call = json!({"index": 0, "id": "c", "type": "function", "function": {"name": "t", "arguments": ""}});
    let expected = [
        json!({"role": "assistant", "content": ""}),
        json!({"reasoning_content": "hm"}),
        json!({"content": "a "}),
        json!({"content": "b"}),
        json!({"tool_calls": [call]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
        json!({}),
        Value::Null,
    ];
    assert_eq!(response.deltas(), expected);
    assert_eq!(events[6]["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(events[7]["choices"], json!([]));
    assert_eq!(events[7]["usage"]["total_tokens"], 10);
}

#[test]
fn without_stream_options_a_stream_tells_no_usage() {
    let events = once(Answer::text("x"), &streamed()).events();
    assert!(events.iter().all(|event| event.get("usage").is_none()));
}

#[test]
fn two_thousand_pieces_come_in_one_response() {
    let text = "word ".repeat(1000);
    let response = once(Answer::text(&text).pieces(2000), &streamed());
    assert_eq!(response.events().len(), 2002);
    assert_eq!(response.streamed_text(), text);
}

#[test]
fn the_finish_reason_can_be_any() {
    let reply = once(Answer::text("x").finish("length"), &hello()).json();
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
}

#[test]
fn call_ids_are_the_same_for_the_same_request_and_differ_between_requests() {
    let server = serve(Playbook::always(Answer::tool("t", json!({})).call("t", json!({}))));
    let mut client = Client::of(&server);
    let mut ids = |text: &str| -> Vec<String> {
        let reply =
            client.ask(&json!({"model": "m", "messages": [{"role": "user", "content": text}]})).json();
        let calls = reply["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone();
        calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect()
    };
    let (first, second) = (ids("a"), ids("b"));
    assert_ne!(first[0], first[1]);
    assert_ne!(first[0], second[0]);
    assert_eq!(ids("a"), first);
}

#[test]
fn a_connection_takes_request_after_request_also_pipelined_and_in_chunks() {
    let server = serve(Playbook::echo());
    let mut client = Client::of(&server);
    client.post(&hello());
    client.post(&streamed());
    assert_eq!(client.response().json()["choices"][0]["message"]["content"], "hello");
    assert_eq!(client.response().streamed_text(), "hello");
    let body = hello().to_string();
    let (left, right) = body.split_at(9);
    client.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\n");
    client.write(b"Transfer-Encoding: chunked\r\n\r\n");
    client.write(format!("{:x};x=1\r\n{left}\r\n", left.len()).as_bytes());
    client.write(format!("{:X}\r\n{right}\r\n0\r\ntrailer: x\r\n\r\n", right.len()).as_bytes());
    assert_eq!(client.response().status(), 200);
    assert_eq!(client.get("/v1/models").status(), 200);
    assert_eq!((server.count(), server.requests().len()), (3, 4));
    assert_eq!((server.connections(), server.most_at_once()), (1, 1));
    assert_eq!(server.requests()[2].bytes, body.as_bytes());
}

#[test]
fn a_client_that_sends_expect_receives_100_continue() {
    let server = serve("ok");
    let mut client = Client::of(&server);
    let body = hello().to_string();
    let length = body.len();
    let head =
        format!("content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n");
    client.write(format!("POST /v1/chat/completions HTTP/1.1\r\n{head}").as_bytes());
    while !client.read_so_far().ends_with(b"\r\n\r\n") {
        client.more().unwrap();
    }
    assert_eq!(client.read_so_far(), b"HTTP/1.1 100 Continue\r\n\r\n");
    client.forget();
    client.write(body.as_bytes());
    assert_eq!(client.response().status(), 200);
}

#[test]
fn a_client_that_asks_for_it_gets_its_connection_closed() {
    let server = serve("ok");
    let mut client = Client::of(&server);
    client.post_with(&hello(), "connection: close\r\n");
    assert_eq!(client.response().status(), 200);
    assert_eq!(client.more(), Err(Ended::Closed));
}

#[test]
fn an_invalid_request_is_refused() {
    let server = serve("ok");
    let cases = [
        ("\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfew\r\n", 400),
        ("POST /chat/completions HTTP/1.1\r\ncontent-length: 0\r\n\r\n", 404),
        ("GET /v1/chat/completions HTTP/1.1\r\n\r\n", 405),
    ];
    for (request, status) in cases {
        let mut client = Client::of(&server);
        client.write(request.as_bytes());
        assert_eq!(client.response().status(), status, "{request:?}");
    }
    let mut client = Client::of(&server);
    client.write(&[b'x'; 70_000]);
    assert_eq!(client.response().status(), 400);
}

#[test]
fn models_are_listed() {
    let server = serve(Behavior::from("ok").models(["a", "b"]));
    let list = Client::of(&server).get("/v1/models").json();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(server.count(), 0);
}

#[test]
fn latency_is_waited_for() {
    let server = serve(Behavior::from("ok").latency(Duration::from_millis(80)));
    let start = Instant::now();
    assert_eq!(Client::of(&server).ask(&hello()).status(), 200);
    assert!(start.elapsed() >= Duration::from_millis(80));
}

#[test]
fn requests_at_once_are_counted() {
    let server = serve(Behavior::from("ok").latency(Duration::from_millis(200)));
    let mut clients: Vec<_> = (0..5).map(|_| Client::of(&server)).collect();
    clients.iter_mut().for_each(|client| client.post(&hello()));
    assert!(clients.iter_mut().all(|client| client.response().status() == 200));
    assert!((2..=5).contains(&server.most_at_once()), "{}", server.most_at_once());
}

#[test]
fn a_key_can_be_asked_for() {
    let server = serve(Behavior::from("ok").key("sk-right"));
    let mut client = Client::of(&server);
    for (headers, status) in
        [("", 401), ("authorization: Bearer sk-wrong\r\n", 401), ("Authorization: Bearer sk-right\r\n", 200)]
    {
        client.post_with(&hello(), headers);
        let response = client.response();
        assert_eq!(response.status(), status);
        assert!(!response.text().contains("sk-wrong"));
    }
    assert_eq!(server.violations(), [""; 0]);
    assert_eq!(server.requests()[2].header("AUTHORIZATION"), Some("Bearer sk-right"));
}

#[test]
fn a_server_of_text_only_refuses_tools_and_formats() {
    let server = serve(Behavior::from("ok").text_only());
    let mut client = Client::of(&server);
    let tools = json!([{"type": "function", "function": {"name": "t"}}]);
    for (field, value) in [("tools", tools), ("response_format", json!({"type": "json_object"}))] {
        let mut body = hello();
        body[field] = value;
        let response = client.ask(&body);
        assert_eq!(response.status(), 400);
        assert!(response.json()["error"]["message"].as_str().unwrap().contains(field));
    }
    assert_eq!(client.ask(&hello()).status(), 200);
    assert_eq!(server.violations(), [""; 0]);
}

#[test]
fn raw_bytes_are_sent_whatever_the_request_is() {
    let answer = Answer::text("a b c");
    let server = serve(Behavior::raw(rendered(&answer, "m", true)));
    let mut client = Client::of(&server);
    client.write(b"POST /anything HTTP/1.1\r\ncontent-length: 4\r\n\r\n\xff\xfe\x00x");
    assert_eq!(client.response().streamed_text(), "a b c");
    assert_eq!(client.get("/").streamed_text(), "a b c");
    assert_eq!((server.count(), server.requests().len()), (2, 0));
    let server = serve(Behavior::raw(rendered(&answer, "m", false)));
    let reply = Client::of(&server).ask(&hello()).json();
    assert_eq!(reply["choices"][0]["message"]["content"], "a b c");
}

#[tokio::test(start_paused = true)]
async fn a_server_needs_no_running_clock_and_ends_when_it_is_dropped() {
    let server = Server::start("ok").await;
    assert_eq!(server.base_url(), format!("http://{}/v1", server.address()));
    let mut client = Client::of(&server);
    assert_eq!(client.ask(&hello()).status(), 200);
    let address = server.address();
    drop(server);
    assert_ne!(client.response().ended, Ended::Whole);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let server = serve("ok");
    assert!(Server::bind(server.address(), "ok").is_err());
}
