//! Ollama's own API, byte by byte.

use polylogue_test::server::{Answer, Behavior, Field, Quirk, Server};
use serde_json::{Value, json};

use crate::client::{Client, Ended, Response, serve};

fn asked() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]})
}

fn whole() -> Value {
    let mut body = asked();
    body["stream"] = json!(false);
    body
}

fn ask(server: &Server, body: &Value) -> Response {
    let mut client = Client::of(server);
    client.post_to("/api/chat", body, "");
    client.response()
}

fn lines(response: &Response) -> Vec<Value> {
    assert_eq!(response.ended, Ended::Whole, "{response:?}");
    assert_eq!(response.header("content-type"), Some("application/x-ndjson"));
    response.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn weather() -> Answer {
    Answer::text("Sunny \u{2600} day").think("Where?").call("weather", json!({"city": "Oslo"})).usage(12, 34)
}

#[test]
fn a_reply_is_one_object_a_line_unless_it_is_not_to_be_streamed() {
    let server = serve(weather());
    let lines = lines(&ask(&server, &asked()));
    let messages: Vec<&Value> = lines.iter().map(|line| &line["message"]).collect();
    assert_eq!(messages[0], &json!({"role": "assistant", "content": "", "thinking": "Where?"}));
    assert_eq!(messages[1], &json!({"role": "assistant", "content": "Sunny "}));
    let function = &messages[4]["tool_calls"][0]["function"];
    assert_eq!(function, &json!({"index": 0, "name": "weather", "arguments": {"city": "Oslo"}}));
    let done: Vec<bool> = lines.iter().map(|line| line["done"].as_bool().unwrap()).collect();
    assert_eq!(done, [false, false, false, false, false, true]);
    let last = &lines[5];
    assert_eq!((&last["done_reason"], &last["prompt_eval_count"]), (&json!("stop"), &json!(12)));
    assert_eq!((&last["eval_count"], &last["model"]), (&json!(34), &json!("m")));

    let whole = ask(&server, &whole()).json();
    assert_eq!(whole["message"]["content"], "Sunny \u{2600} day");
    assert_eq!(whole["message"]["thinking"], "Where?");
    assert_eq!(whole["message"]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!((&whole["done"], &whole["eval_count"]), (&json!(true), &json!(34)));
    assert_eq!((server.violations(), server.count(), server.replies()), (Vec::new(), 2, 2));
}

#[test]
fn deviations_are_those_of_the_other_api_where_it_can_have_them() {
    let texts = |quirk: Quirk| ask(&serve(weather().with(quirk)), &asked()).text().to_owned();
    assert!(texts(Quirk::Crlf).ends_with("}\r\n"));
    assert!(texts(Quirk::NoFinalNewline).ends_with('}'));
    assert!(texts(Quirk::ByteOrderMark).starts_with('\u{feff}'));
    assert!(!texts(Quirk::NoUsage).contains("_count"));
    assert!(!texts(Quirk::NoCallId).contains("\"id\""));
    assert!(!texts(Quirk::Missing(Field::FinishReason)).contains("done_reason"));
    assert!(texts(Quirk::ThinkTags).contains("<think>"));
    let broken = texts(Quirk::ErrorInStream(2));
    let last: Value = serde_json::from_str(broken.lines().last().unwrap()).unwrap();
    assert_eq!((broken.lines().count(), last["error"].is_string()), (3, true));
    let cut = ask(&serve(weather().with(Quirk::Truncated)), &asked());
    assert_eq!(cut.ended, Ended::Closed);
    let split = ask(&serve(weather().with(Quirk::SplitEvery(1))), &asked());
    assert!(split.chunks.iter().all(|size| *size == 1));
}

#[test]
fn refusals_are_a_text_and_models_and_version_are_listed() {
    let server = serve(Answer::status(404));
    let refused = ask(&server, &asked());
    assert_eq!((refused.status(), refused.json()), (404, json!({"error": "model 'm' not found"})));
    let busy = ask(&serve(Answer::status(503)), &asked());
    assert!(busy.json()["error"].as_str().unwrap().starts_with("server busy"));

    let server = Server::bind(
        ([127, 0, 0, 1], 0).into(),
        Behavior::from("x").models(["llama3.2:latest", "qwen3:8b"]).text_only(),
    );
    let server = server.unwrap();
    let mut client = Client::of(&server);
    let tags = client.get("/api/tags").json();
    assert_eq!(tags["models"][1]["name"], "qwen3:8b");
    assert!(tags["models"][0]["size"].is_u64());
    assert!(client.get("/api/version").json()["version"].is_string());
    let mut body = asked();
    let parameters = json!({"type": "object", "properties": {}});
    body["tools"] = json!([{"type": "function", "function": {"name": "t", "parameters": parameters}}]);
    let refused = ask(&server, &body);
    assert_eq!(refused.status(), 400);
    assert!(refused.json()["error"].as_str().unwrap().contains("does not support tools"));
}

#[test]
fn requests_are_judged_more_strictly_than_ollama_does() {
    let call = json!({"role": "assistant", "content": "", "tool_calls":
        [{"id": "c1", "function": {"name": "t", "arguments": {"a": 1}}}]});
    let result = json!({"role": "tool", "content": "ok", "tool_name": "t", "tool_call_id": "c1"});
    let user = json!({"role": "user", "content": "hello"});
    let with = |field: &str, value: Value| {
        let mut body = asked();
        body[field] = value;
        body
    };
    let picture = json!([{"role": "user", "content": "", "images": ["QUJD"]}]);
    for valid in [
        with("messages", json!([user, call, result])),
        with("messages", picture),
        with("format", json!("json")),
        with("format", json!({"type": "object"})),
        with("options", json!({"num_ctx": 8192, "stop": ["x"], "use_mmap": true})),
        with("think", json!("high")),
        with("keep_alive", json!(-1)),
    ] {
        let server = serve("fine");
        assert_eq!((ask(&server, &valid).status(), server.violations()), (200, Vec::new()), "{valid}");
    }
    let mut text_args = call.clone();
    text_args["tool_calls"][0]["function"]["arguments"] = json!("{}");
    let mut nameless = result.clone();
    nameless.as_object_mut().unwrap().shift_remove("tool_name");
    for (bad, says) in [
        (with("model", json!("")), "`model`"),
        (with("temperature", json!(1)), "`temperature` is not a field"),
        (with("options", json!({"num_context": 1})), "`num_context` is not an option"),
        (with("options", json!({"num_ctx": "8192"})), "wrong type"),
        (with("format", json!("xml")), "`format`"),
        (with("think", json!("hard")), "`think`"),
        (with("keep_alive", json!(true)), "`keep_alive`"),
        (with("stream", json!("no")), "`stream`"),
        (with("messages", json!([])), "empty"),
        (with("messages", json!([{"role": "user", "content": [{"type": "text", "text": "x"}]}])), "not text"),
        (with("messages", json!([{"role": "user", "content": "x", "images": ["data:x"]}])), "not base64"),
        (with("messages", json!([{"role": "user", "content": " "}])), "empty text"),
        (with("messages", json!([user, user])), "alternate"),
        (with("messages", json!([user, call])), "not answered"),
        (with("messages", json!([user, text_args, result])), "arguments"),
        (with("messages", json!([user, call, nameless])), "`tool_name`"),
    ] {
        let server = serve("fine");
        assert_eq!(ask(&server, &bad).status(), 400, "{bad}");
        let violations = server.violations();
        assert!(violations[0].contains(says), "{bad}: {violations:?}");
    }
}
