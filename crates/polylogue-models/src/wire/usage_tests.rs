//! Usage in forms that no API has: it is unknown, and the reply is kept, by every API, streamed and whole.

use polylogue_core::{Reply, Usage};
use serde_json::{Value, json};

use super::decode::Decoder;
use super::streams_tests::{reply, usual};
use crate::api::Api;
use crate::fuzzing::{APIS, with_request};
use crate::protocols::with_protocol;

/// The fields with usage, by all APIs.
const USAGE: [&str; 4] = ["usage", "usageMetadata", "prompt_eval_count", "eval_count"];

/// The fields of usage that are objects or lists, by all APIs.
const DETAILS: [&str; 9] = [
    "prompt_tokens_details",
    "prompt_token_details",
    "completion_tokens_details",
    "input_tokens_details",
    "output_tokens_details",
    "cache_creation",
    "promptTokensDetails",
    "cacheDetails",
    "candidatesTokensDetails",
];

/// A list could be taken for the fields of an object in their order.
fn odd() -> [Value; 6] {
    [json!("9 and 4"), json!(-1.5), json!(true), json!([9, 4]), json!([{"input_tokens": 9}]), json!(13)]
}

/// Replaces usage in `value`, wherever it is, by what `change` makes of it.
fn change_usage(value: &mut Value, change: &impl Fn(&mut Value)) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| change_usage(value, change)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if USAGE.contains(&name.as_str()) {
                    change(value);
                } else {
                    change_usage(value, change);
                }
            }
        }
        _ => {}
    }
}

/// The text `Sunny` as a whole reply, with its usage.
fn body(api: Api) -> Value {
    match api {
        Api::ChatCompletions => {
            let choice = json!({"index": 0, "message": {"role": "assistant", "content": "Sunny"}, "finish_reason": "stop"});
            json!({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
        }
        Api::Responses => {
            let message = json!({"type": "message", "id": "m", "role": "assistant", "content": [
                {"type": "output_text", "text": "Sunny", "annotations": []}]});
            let usage = json!({"input_tokens": 9, "output_tokens": 4});
            json!({"object": "response", "status": "completed", "output": [message], "usage": usage})
        }
        Api::Messages => {
            let usage = json!({"input_tokens": 9, "output_tokens": 4});
            let content = json!([{"type": "text", "text": "Sunny"}]);
            json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn", "usage": usage})
        }
        Api::Gemini => {
            let content = json!({"role": "model", "parts": [{"text": "Sunny"}]});
            let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 4});
            json!({"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage})
        }
        Api::Converse => {
            let message = json!({"role": "assistant", "content": [{"text": "Sunny"}]});
            let usage = json!({"inputTokens": 9, "outputTokens": 4});
            json!({"output": {"message": message}, "stopReason": "end_turn", "usage": usage})
        }
        Api::Ollama => {
            let message = json!({"role": "assistant", "content": "Sunny"});
            json!({"message": message, "done": true, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 4})
        }
    }
}

fn whole(api: Api, body: &Value) -> Reply {
    let body = body.to_string();
    let decoded = with_request(
        |request| with_protocol!(api, P => Decoder::<P>::default().whole(body.as_bytes(), request, &mut ())),
    );
    decoded.unwrap_or_else(|error| panic!("{api:?}: {error:?}: {body}")).reply
}

/// The replies by `api`, streamed and whole, with changed usage.
fn replies(api: Api, change: impl Fn(&mut Value)) -> [Reply; 2] {
    let (mut events, mut body) = (usual(api), body(api));
    events.iter_mut().for_each(|(_, event)| change_usage(event, &change));
    change_usage(&mut body, &change);
    [reply(api, &events), whole(api, &body)]
}

#[test]
fn usage_that_is_no_object_costs_no_reply_and_is_unknown() {
    for api in APIS {
        let expected = replies(api, |_| {});
        for odd in odd() {
            // There it is a count.
            if api == Api::Ollama && odd.is_u64() {
                continue;
            }
            for (read, expected) in replies(api, |usage| *usage = odd.clone()).iter().zip(&expected) {
                assert_eq!(
                    (&read.parts, &read.finish, read.usage),
                    (&expected.parts, &expected.finish, Usage::default()),
                    "{api:?}: {odd}"
                );
                assert_eq!((expected.usage.input, expected.usage.output), (Some(9), Some(4)), "{api:?}");
            }
        }
    }
}

#[test]
fn details_of_usage_that_are_no_objects_cost_no_reply_and_no_count() {
    for api in APIS {
        let expected = replies(api, |_| {});
        for odd in odd() {
            let add = |usage: &mut Value| {
                let fields = usage.as_object_mut().into_iter();
                fields.for_each(|fields| fields.extend(DETAILS.map(|name| (name.to_owned(), odd.clone()))));
            };
            for (read, expected) in replies(api, add).iter().zip(&expected) {
                assert_eq!((&read.parts, read.usage), (&expected.parts, expected.usage), "{api:?}: {odd}");
            }
        }
    }
}
