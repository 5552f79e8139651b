//! The APIs of Anthropic, Google, Amazon and OpenAI's responses: a reply is accepted when it is sent back as it came.

use polylogue_test::server::{Answer, Behavior, Dialect, Playbook, Quirk, Server};
use serde_json::{Value, json};

use crate::client::{Client, Ended, Response, serve};

/// An API, as tests ask for it.
struct Api {
    path: &'static str,
    streamed: &'static str,
    headers: &'static str,
    /// A request with one text, for a streamed reply or not.
    request: fn(bool) -> Value,
    /// Adds a reply to the request, and the result of its call.
    extend: fn(&mut Value, Value),
}

const GEMINI: &str = "/v1beta/models/gemini-3-pro";

const APIS: [Api; 4] = [
    Api {
        path: "/v1/messages",
        streamed: "/v1/messages",
        headers: "anthropic-version: 2026-10-21\r\n",
        request: |streamed| {
            json!({
                "model": "claude-sonnet-5", "max_tokens": 100, "stream": streamed,
                "messages": [{"role": "user", "content": "Where?"}],
                "tools": [{"name": "look", "input_schema": {"type": "object"}}],
            })
        },
        extend: |request, reply| {
            let id = reply["content"].as_array().unwrap().iter().find_map(|block| block["id"].as_str());
            let result = json!([{"type": "tool_result", "tool_use_id": id.unwrap(), "content": "There."}]);
            let messages = request["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": reply["content"]}));
            messages.push(json!({"role": "user", "content": result}));
        },
    },
    Api {
        path: "/v1/responses",
        streamed: "/v1/responses",
        headers: "",
        request: |streamed| {
            json!({
                "model": "gpt-5", "store": false, "stream": streamed,
                "input": [{"role": "user", "content": "Where?"}],
                "tools": [{"type": "function", "name": "look", "strict": false,
                    "parameters": {"type": "object", "properties": {}}}],
            })
        },
        extend: |request, reply| {
            let output = reply["output"].as_array().unwrap();
            let id = output.iter().find_map(|item| item["call_id"].as_str()).unwrap();
            let result = json!({"type": "function_call_output", "call_id": id, "output": "There."});
            let input = request["input"].as_array_mut().unwrap();
            input.extend(output.iter().cloned().chain([result]));
        },
    },
    Api {
        path: "/v1beta/models/gemini-3-pro:generateContent",
        streamed: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        headers: "",
        request: |_| {
            json!({
                "contents": [{"role": "user", "parts": [{"text": "Where?"}]}],
                "tools": [{"functionDeclarations": [{"name": "look"}]}],
            })
        },
        extend: |request, reply| {
            let content = &reply["candidates"][0]["content"];
            let call = content["parts"].as_array().unwrap().iter().find_map(|part| part.get("functionCall"));
            let response =
                json!({"id": call.unwrap()["id"], "name": "look", "response": {"output": "There."}});
            let contents = request["contents"].as_array_mut().unwrap();
            contents.push(content.clone());
            contents.push(json!({"role": "user", "parts": [{"functionResponse": response}]}));
        },
    },
    Api {
        path: "/model/anthropic.claude-sonnet-5-v1%3A0/converse",
        streamed: "/model/anthropic.claude-sonnet-5-v1%3A0/converse-stream",
        headers: "",
        request: |_| {
            json!({
                "messages": [{"role": "user", "content": [{"text": "Where?"}]}],
                "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]},
            })
        },
        extend: |request, reply| {
            let message = &reply["output"]["message"];
            let id = message["content"]
                .as_array()
                .unwrap()
                .iter()
                .find_map(|block| block["toolUse"]["toolUseId"].as_str());
            let result = json!({"toolResult": {"toolUseId": id.unwrap(), "content": [{"text": "There."}]}});
            let messages = request["messages"].as_array_mut().unwrap();
            messages.push(message.clone());
            messages.push(json!({"role": "user", "content": [result]}));
        },
    },
];

fn look() -> Answer {
    Answer::text("I look. \u{2600}").think("Where?").call("look", json!({"b": 1, "a": [2]})).usage(12, 34)
}

fn ask(server: &Server, api: &Api, streamed: bool, body: &Value) -> Response {
    let mut client = Client::of(server);
    client.post_to(if streamed { api.streamed } else { api.path }, body, api.headers);
    client.response()
}

#[test]
fn a_reply_is_accepted_when_it_comes_back() {
    for api in APIS {
        let server = serve(Playbook::list([look(), Answer::text("There it is.")]));
        let mut request = (api.request)(false);
        let reply = ask(&server, &api, false, &request).json();
        (api.extend)(&mut request, reply);
        let second = ask(&server, &api, false, &request);
        assert_eq!((server.violations(), second.status()), (Vec::new(), 200), "{}", api.path);
        let last = &server.requests()[1];
        assert_eq!((last.turn(), &*last.last_text()), (1, "There."), "{}", api.path);
    }
}

#[test]
fn a_reply_that_was_changed_is_refused() {
    for api in APIS {
        let server = serve(Playbook::list([look(), Answer::text("There it is.")]));
        let mut request = (api.request)(false);
        let reply = ask(&server, &api, false, &request).json();
        let text = reply
            .to_string()
            .replace("Where?", "Why?")
            .replace("\"b\":1", "\"b\":2")
            .replace("\"rs_", "\"rx_");
        (api.extend)(&mut request, serde_json::from_str(&text).unwrap());
        let refused = ask(&server, &api, false, &request);
        assert_eq!(
            (server.violations().len(), refused.status()),
            (1, 400),
            "{}: {}",
            api.path,
            refused.text()
        );
    }
}

/// The texts of a streamed reply, thoughts included, in order.
fn streamed(response: &Response) -> String {
    assert_eq!(response.ended, Ended::Whole, "{response:?}");
    String::from_utf8_lossy(&response.body).into_owned()
}

#[test]
fn a_streamed_reply_comes_in_pieces_and_ends_by_its_mark() {
    let ends = ["event: message_stop", "event: response.completed", "\"finishReason\":\"STOP\"", "metadata"];
    for (api, end) in APIS.iter().zip(ends) {
        let server = serve(look());
        let response = ask(&server, api, true, &(api.request)(true));
        let text = streamed(&response);
        assert!(text.contains("\"I \"") && text.contains("\"look. \""), "{text}");
        assert!(text.contains(end) && !text.contains("[DONE]"), "{text}");
        assert!(server.violations().is_empty());
        let kind = response.header("content-type").unwrap();
        assert_eq!(kind == "application/vnd.amazon.eventstream", end == "metadata");
    }
}

#[test]
fn refusals_have_the_form_of_the_provider() {
    let kinds = ["/error/type", "/error/code", "/error/status", "/message"];
    let expected = [
        "rate_limit_error",
        "rate_limit_exceeded",
        "RESOURCE_EXHAUSTED",
        "Too many requests, please wait before trying again.",
    ];
    for ((api, pointer), expected) in APIS.iter().zip(kinds).zip(expected) {
        let refused = ask(&serve(Answer::status(429)), api, false, &(api.request)(false));
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.json().pointer(pointer), Some(&json!(expected)));
        let broken =
            streamed(&ask(&serve(look().with(Quirk::ErrorInStream(2))), api, true, &(api.request)(true)));
        assert!(broken.contains("rror") || broken.contains("xception"), "{broken}");
    }
}

#[test]
fn keys_are_in_the_headers_of_each_provider() {
    for (api, header) in APIS.iter().zip([
        "x-api-key: k",
        "authorization: Bearer k",
        "x-goog-api-key: k",
        "authorization: Bearer k",
    ]) {
        let server = serve(Behavior::from(look()).key("k"));
        let with = |headers: &str| {
            let mut client = Client::of(&server);
            client.post_to(api.path, &(api.request)(false), &format!("{}{headers}\r\n", api.headers));
            client.response().status()
        };
        assert_eq!((with(header), with("x-other: k")), (200, 401), "{}", api.path);
    }
}

#[test]
fn the_path_names_the_api_and_the_model() {
    let server = serve(Playbook::new(|received, _| Answer::text(received.model())));
    let reply = ask(&server, &APIS[2], false, &(APIS[2].request)(false)).json();
    assert_eq!(reply["candidates"][0]["content"]["parts"][0]["text"], "gemini-3-pro");
    let reply = ask(&server, &APIS[3], false, &(APIS[3].request)(false)).json();
    assert_eq!(reply["output"]["message"]["content"][0]["text"], "anthropic.claude-sonnet-5-v1%3A0");
    assert_eq!(Dialect::of(&format!("{GEMINI}:countTokens")), None);
    assert_eq!(Dialect::of("/v1/chat/completions?x=1"), Some(Dialect::ChatCompletions));
}
