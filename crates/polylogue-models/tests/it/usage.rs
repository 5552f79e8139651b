//! What providers count, and what it costs: `data/usage.jsonl` has usage objects of every API, with the tokens and the cost that
//! follow from the provider's published definitions, calculated apart from this code. Its first line has the prices, in
//! dollars per million tokens. A count that is missing there is unknown.

use crate::common;

use std::collections::BTreeMap;

use crate::common::reply;
use polylogue_core::{Price, PromptCache, Usage};
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Behavior, Server};
use serde::Deserialize;
use serde_json::{Value, json};

const DATA: &str = include_str!("../data/usage.jsonl");

/// The prices, by name.
#[derive(Deserialize)]
struct Prices {
    prices: BTreeMap<String, Price>,
}

/// A usage object, and what follows from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    wire: String,
    usage: Value,
    counts: Usage,
    price: String,
    picodollars: u64,
}

fn rows() -> impl Iterator<Item = Row> {
    DATA.lines().skip(1).map(|line| serde_json::from_str(line).unwrap())
}

fn api(wire: &str) -> Api {
    match wire {
        "anthropic" => Api::Messages,
        "responses" => Api::Responses,
        "chat" => Api::ChatCompletions,
        "gemini" => Api::Gemini,
        "bedrock" => Api::Converse,
        "ollama" => Api::Ollama,
        other => panic!("no API is called {other}"),
    }
}

/// A whole reply with this usage.
fn whole(api: Api, usage: &Value) -> Value {
    match api {
        Api::Messages => json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Sunny."}], "usage": usage}),
        Api::Responses => json!({"object": "response", "status": "completed", "usage": usage, "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]}]}),
        Api::ChatCompletions => json!({"object": "chat.completion", "usage": usage, "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Sunny."}}]}),
        Api::Gemini => json!({"usageMetadata": usage, "candidates": [
            {"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "Sunny."}]}}]}),
        Api::Converse => json!({"stopReason": "end_turn", "usage": usage,
            "output": {"message": {"role": "assistant", "content": [{"text": "Sunny."}]}}}),
        Api::Ollama => {
            let mut reply = json!({"message": {"role": "assistant", "content": "Sunny."}, "done": true, "done_reason": "stop"});
            reply.as_object_mut().unwrap().extend(usage.as_object().unwrap().clone());
            reply
        }
        other => panic!("no reply of {other:?}"),
    }
}

/// The events of a streamed reply with this usage.
fn events(api: Api, usage: &Value) -> Vec<Value> {
    let mut reply = whole(api, usage);
    match api {
        Api::Messages => {
            // The beginning counts the input and one token of output; the end counts all.
            let mut begun = usage.clone();
            begun.as_object_mut().unwrap().shift_remove("output_tokens_details");
            begun["output_tokens"] = json!(1);
            vec![
                json!({"type": "message_start", "message": {"type": "message", "content": [], "usage": begun}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Sunny."}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
                json!({"type": "message_stop"}),
            ]
        }
        Api::Responses => vec![
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Sunny."}),
            json!({"type": "response.completed", "response": reply}),
        ],
        Api::ChatCompletions => {
            let choice = reply["choices"][0].as_object_mut().unwrap();
            let message = choice.shift_remove("message").unwrap();
            choice.insert("delta".to_owned(), message);
            let usage = reply["usage"].take();
            vec![reply, json!({"choices": [], "usage": usage})]
        }
        Api::Converse => vec![
            json!({"type": "messageStart", "role": "assistant"}),
            json!({"type": "contentBlockDelta", "contentBlockIndex": 0, "delta": {"text": "Sunny."}}),
            json!({"type": "contentBlockStop", "contentBlockIndex": 0}),
            json!({"type": "messageStop", "stopReason": "end_turn"}),
            json!({"type": "metadata", "usage": usage, "metrics": {"latencyMs": 1}}),
        ],
        _ => vec![reply],
    }
}

/// An event as the API writes it.
fn written(api: Api, event: &Value) -> Vec<u8> {
    let text = match (api, event["type"].as_str()) {
        (Api::Converse, kind) => return frame(kind.unwrap(), &event.to_string()),
        (Api::Ollama, _) => format!("{event}\n"),
        (_, Some(kind)) => format!("event: {kind}\ndata: {event}\n\n"),
        (_, None) => format!("data: {event}\n\n"),
    };
    text.into_bytes()
}

/// A frame of Amazon's event stream: lengths and their checksum, headers, payload, checksum of all.
fn frame(kind: &str, payload: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [(":message-type", "event"), (":event-type", kind)] {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut bytes = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(&headers);
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn http(kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// The usage of a reply with these bytes.
async fn decoded(api: Api, stream: bool, response: Vec<u8>) -> Usage {
    let server = Server::start(Behavior::raw(response)).await;
    let url = match api {
        Api::ChatCompletions | Api::Responses => server.base_url(),
        _ => server.root_url(),
    };
    let config = Config { stream, ..Config::of(api, &url) };
    let reply = reply(&Endpoint::new(config).unwrap().model("m")).await.unwrap();
    assert_eq!(common::text(&reply), "Sunny.");
    reply.usage
}

async fn unstreamed(api: Api, usage: &Value) -> Usage {
    decoded(api, false, http("application/json", whole(api, usage).to_string().as_bytes())).await
}

async fn streamed(api: Api, usage: &Value) -> Usage {
    let mut body: Vec<u8> = events(api, usage).iter().flat_map(|event| written(api, event)).collect();
    if api == Api::ChatCompletions {
        body.extend_from_slice(b"data: [DONE]\n\n");
    }
    let kind = match api {
        Api::Ollama => "application/x-ndjson",
        Api::Converse => "application/vnd.amazon.eventstream",
        _ => "text/event-stream",
    };
    decoded(api, true, http(kind, &body)).await
}

/// P21, P22, P40: tokens are counted once, whole and streamed, and their cost is exact.
#[tokio::test]
async fn usage_and_cost_are_those_of_the_providers_definitions() {
    let prices: Prices = serde_json::from_str(DATA.lines().next().unwrap()).unwrap();
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows() {
        let api = api(&row.wire);
        let both = [unstreamed(api, &row.usage).await, streamed(api, &row.usage).await];
        let costs = both.map(|usage| prices.prices[&row.price].of(&usage).map(|cost| cost.picodollars));
        if both != [row.counts; 2] || costs != [Some(row.picodollars); 2] {
            wrong.push(format!("{row:?}\n  whole and streamed: {both:?}\n  cost: {costs:?}"));
        }
        *checked.entry(row.wire).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    let expected = ["anthropic", "bedrock", "chat", "gemini", "ollama", "responses"];
    assert_eq!(checked.keys().collect::<Vec<_>>(), expected);
    assert!(checked.values().all(|rows| *rows >= 50), "{checked:?}");
}

/// P110: what a cache saves is what the same tokens cost without it, minus what they cost with it; writing costs more first.
#[test]
fn savings_of_prompt_caches_are_those_calculated_by_hand() {
    let price = Price {
        cached: Some(0.3),
        write: Some(3.75),
        write_long: Some(6.0),
        input: 3.0,
        output: 15.0,
        ..Price::FREE
    };
    let usage = |cached, written, written_long| Usage {
        input: Some(10_000),
        cached: Some(cached),
        written: Some(written),
        written_long: Some(written_long),
        audio: None,
        output: Some(100),
        reasoning: None,
    };
    let mut cache = PromptCache::default();
    // In microdollars: 10,000 fresh tokens and the reply cost 31,500.
    for (usage, cost, saved) in [
        // 2,000 x 3 + 8,000 x 3.75 + 100 x 15: 6,000 more.
        (usage(0, 8_000, 0), 37_500, -6_000),
        // 2,000 x 3 + 8,000 x 6 + 100 x 15: 24,000 more; both together are 30,000 more.
        (usage(0, 8_000, 8_000), 55_500, -30_000),
        // 1,000 x 3 + 8,000 x 0.3 + 1,000 x 3.75 + 100 x 15: 20,850 less.
        (usage(8_000, 1_000, 0), 10_650, -9_150),
        (usage(8_000, 1_000, 0), 10_650, 11_700),
    ] {
        let (with, without) = (price.of(&usage).unwrap(), price.of(&usage.without_prompt_cache()).unwrap());
        assert_eq!((with.picodollars, without.picodollars), (cost * 1_000_000, 31_500 * 1_000_000));
        cache.cost += with;
        cache.uncached += without;
        assert_eq!(cache.saved_picodollars(), saved * 1_000_000);
    }
}
