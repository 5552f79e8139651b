//! What holds of streams by every API: cut or split at every byte, with unknown events and fields, and an unknown stop reason.

use std::collections::BTreeSet;

use polylogue_core::{DeltaRef, DeltaSink, FinishReason, Part, Reply};
use serde_json::{Value, json};

use super::decode::Decoder;
use super::draft::{DecodeError, Decoded};
use crate::api::Api;
use crate::fuzzing::frames::frame;
use crate::fuzzing::{APIS, with_request};
use crate::protocols::with_protocol;

/// What was shown: the text and the arguments of calls.
#[derive(Default, Debug, PartialEq, Clone)]
struct Shown(String, String);

impl DeltaSink for Shown {
    fn push(&mut self, delta: DeltaRef<'_>) {
        match delta {
            DeltaRef::Text(text) => self.0.push_str(text),
            DeltaRef::Call { args, .. } => self.1.push_str(args),
            _ => {}
        }
    }
}

/// A thought, a text, and a call, if it `calls`; its events, named as the API names them.
fn events(api: Api, calls: bool) -> Vec<(&'static str, Value)> {
    let named = |event: Value| ("", event);
    let typed = |event: Value| ("typed", event);
    let mut events = match api {
        Api::ChatCompletions => {
            let chunk = |delta: Value| named(json!({"choices": [{"index": 0, "delta": delta}]}));
            let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{\"a\":"}}]});
            let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"é\"}"}}]});
            vec![
                chunk(json!({"role": "assistant", "reasoning_content": "Hm – "})),
                chunk(json!({"content": "Sun"})),
                chunk(json!({"content": "ny ☀"})),
                chunk(call),
                chunk(rest),
            ]
        }
        Api::Responses => {
            let message = json!({"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [
                {"type": "output_text", "text": "Sunny ☀", "annotations": []}]});
            let call = json!({"type": "function_call", "id": "f", "status": "completed", "call_id": "c1", "name": "look",
                "arguments": "{\"a\":\"é\"}"});
            let (mut begun, mut called) = (message.clone(), call.clone());
            (begun["content"], called["arguments"]) = (json!([]), json!(""));
            let item = |kind: &str, index: u64, item: &Value| {
                typed(
                    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item}),
                )
            };
            let delta = |kind: &str, index: u64, delta: &str| {
                typed(
                    json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "delta": delta}),
                )
            };
            vec![
                typed(json!({"type": "response.created", "response": {"status": "in_progress"}})),
                item("added", 0, &begun),
                delta("output_text", 0, "Sun"),
                delta("output_text", 0, "ny ☀"),
                item("done", 0, &message),
                item("added", 1, &called),
                delta("function_call_arguments", 1, "{\"a\":"),
                delta("function_call_arguments", 1, "\"é\"}"),
                item("done", 1, &call),
            ]
        }
        Api::Messages => {
            let start = |index: u64, block: Value| {
                typed(json!({"type": "content_block_start", "index": index, "content_block": block}))
            };
            let delta = |index: u64, delta: Value| {
                typed(json!({"type": "content_block_delta", "index": index, "delta": delta}))
            };
            let stop = |index: u64| typed(json!({"type": "content_block_stop", "index": index}));
            vec![
                typed(
                    json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"input_tokens": 9}}}),
                ),
                start(0, json!({"type": "thinking", "thinking": ""})),
                delta(0, json!({"type": "thinking_delta", "thinking": "Hm – "})),
                delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
                stop(0),
                start(1, json!({"type": "text", "text": ""})),
                delta(1, json!({"type": "text_delta", "text": "Sun"})),
                delta(1, json!({"type": "text_delta", "text": "ny ☀"})),
                stop(1),
                start(2, json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}})),
                delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\":"})),
                delta(2, json!({"type": "input_json_delta", "partial_json": "\"é\"}"})),
                stop(2),
            ]
        }
        Api::Gemini => {
            let part =
                |part: Value| named(json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
            vec![
                part(json!({"text": "Hm – ", "thought": true})),
                part(json!({"text": "Sun"})),
                part(json!({"text": "ny ☀"})),
                part(
                    json!({"functionCall": {"name": "look", "args": {"a": "é"}}, "thoughtSignature": "c2ln"}),
                ),
            ]
        }
        Api::Converse => {
            let delta = |index: u64, delta: Value| {
                ("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}))
            };
            let stop = |index: u64| ("contentBlockStop", json!({"contentBlockIndex": index}));
            let call = json!({"toolUse": {"toolUseId": "c1", "name": "look"}});
            vec![
                ("messageStart", json!({"role": "assistant"})),
                delta(0, json!({"reasoningContent": {"text": "Hm – "}})),
                delta(0, json!({"reasoningContent": {"signature": "c2ln"}})),
                stop(0),
                delta(1, json!({"text": "Sun"})),
                delta(1, json!({"text": "ny ☀"})),
                stop(1),
                ("contentBlockStart", json!({"contentBlockIndex": 2, "start": call})),
                delta(2, json!({"toolUse": {"input": "{\"a\":"}})),
                delta(2, json!({"toolUse": {"input": "\"é\"}"}})),
                stop(2),
            ]
        }
        Api::Ollama => {
            let message = |message: Value| named(json!({"message": message, "done": false}));
            vec![
                message(json!({"role": "assistant", "content": "", "thinking": "Hm – "})),
                message(json!({"role": "assistant", "content": "Sun"})),
                message(json!({"role": "assistant", "content": "ny ☀"})),
                message(json!({"role": "assistant", "content": "", "tool_calls": [
                    {"function": {"name": "look", "arguments": {"a": "é"}}}]})),
            ]
        }
    };
    if !calls {
        let has_call =
            |event: &Value| ["look", "\"é", "{\\\"a"].iter().any(|word| event.to_string().contains(word));
        let of_call = |event: &Value| {
            event["index"] == 2 || event["output_index"] == 1 || event["contentBlockIndex"] == 2
        };
        events.retain(|(_, event)| !has_call(event) && !of_call(event));
    }
    events
}

/// How a stream ends, with a `reason` or with that of a reply with or without calls.
fn end(api: Api, calls: bool, reason: Option<&str>) -> Vec<(&'static str, Value)> {
    let usual = |with: &'static str, without: &'static str| {
        reason.unwrap_or(if calls { with } else { without }).to_owned()
    };
    match api {
        Api::ChatCompletions => vec![
            (
                "",
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": usual("tool_calls", "stop")}]}),
            ),
            ("", json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})),
        ],
        Api::Responses => {
            let (status, details) = match reason {
                Some(reason) => ("incomplete", json!({"reason": reason})),
                None => ("completed", Value::Null),
            };
            let usage = json!({"input_tokens": 9, "output_tokens": 4});
            let response = json!({"status": status, "incomplete_details": details, "usage": usage});
            vec![("typed", json!({"type": format!("response.{status}"), "response": response}))]
        }
        Api::Messages => vec![
            (
                "typed",
                json!({"type": "message_delta", "delta": {"stop_reason": usual("tool_use", "end_turn")}, "usage": {"output_tokens": 4}}),
            ),
            ("typed", json!({"type": "message_stop"})),
        ],
        Api::Gemini => {
            let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 4});
            let end =
                json!({"finishReason": usual("STOP", "STOP"), "content": {"role": "model", "parts": []}});
            vec![("", json!({"candidates": [end], "usageMetadata": usage}))]
        }
        Api::Converse => vec![
            ("messageStop", json!({"stopReason": usual("tool_use", "end_turn")})),
            ("metadata", json!({"usage": {"inputTokens": 9, "outputTokens": 4}})),
        ],
        Api::Ollama => vec![(
            "",
            json!({"message": {"role": "assistant", "content": ""}, "done": true,
            "done_reason": usual("stop", "stop"), "prompt_eval_count": 9, "eval_count": 4}),
        )],
    }
}

/// The bytes of an event.
fn bytes(api: Api, (name, event): &(&str, Value)) -> Vec<u8> {
    match api {
        Api::Converse => {
            frame(&[(":message-type", "event"), (":event-type", name)], event.to_string().as_bytes())
        }
        Api::Ollama => format!("{event}\n").into_bytes(),
        _ if *name == "typed" => {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).into_bytes()
        }
        _ => format!("data: {event}\n\n").into_bytes(),
    }
}

fn all(api: Api, events: &[(&'static str, Value)]) -> Vec<u8> {
    events.iter().flat_map(|event| bytes(api, event)).collect()
}

pub(super) fn usual(api: Api) -> Vec<(&'static str, Value)> {
    [events(api, true), end(api, true, None)].concat()
}

fn read(api: Api, pieces: &[&[u8]]) -> (Result<Decoded, DecodeError>, Shown) {
    let mut shown = Shown::default();
    let read = with_request(|request| {
        with_protocol!(api, P => {
            let mut decoder = Decoder::<P>::default();
            let fed = pieces.iter().try_for_each(|piece| decoder.feed(piece, &mut shown));
            fed.and_then(|()| decoder.finish(request, &mut shown))
        })
    });
    (read, shown)
}

pub(super) fn reply(api: Api, events: &[(&'static str, Value)]) -> Reply {
    let bytes = all(api, events);
    read(api, &[&bytes]).0.unwrap_or_else(|error| panic!("{api:?}: {error:?}")).reply
}

#[test]
fn the_streams_are_the_replies_that_are_meant() {
    for api in APIS {
        let reply = reply(api, &usual(api));
        let text: String = reply
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        assert_eq!((&*text, &reply.finish), ("Sunny ☀", &FinishReason::Calls), "{api:?}");
        let calls: Vec<_> = reply.calls().into_iter().map(|call| (call.tool, call.args)).collect();
        assert_eq!(calls, [("look".to_owned(), json!({"a": "é"}))], "{api:?}");
        assert_eq!((reply.usage.input, reply.usage.output), (Some(9), Some(4)), "{api:?}");
        let thought = reply.parts.iter().any(|part| matches!(part, Part::Thought(_)));
        assert!(thought || api == Api::Responses, "{api:?}");
    }
}

#[test]
fn a_stream_that_is_split_at_any_byte_is_the_same_reply() {
    for api in APIS {
        let bytes = all(api, &usual(api));
        let whole = format!("{:?}", read(api, &[&bytes]));
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(format!("{:?}", read(api, &[first, second])), whole, "{api:?} split at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(format!("{:?}", read(api, &single)), whole, "{api:?} byte by byte");
    }
}

/// R9: before its end mark a stream that ends is a broken connection. What was shown of it is the beginning of the reply.
#[test]
fn a_stream_that_is_cut_at_any_byte_is_the_reply_or_broken() {
    for api in APIS {
        for calls in [true, false] {
            let events = [events(api, calls), end(api, calls, None)].concat();
            let bytes = all(api, &events);
            let (whole, all_shown) = read(api, &[&bytes]);
            let whole = whole.unwrap().reply;
            let mut complete = BTreeSet::new();
            for at in 0..bytes.len() {
                let (read, shown) = read(api, &[&bytes[..at]]);
                assert!(
                    all_shown.0.starts_with(&shown.0) && all_shown.1.starts_with(&shown.1),
                    "{api:?} {at}"
                );
                match read {
                    Ok(Decoded { reply, .. }) => {
                        assert_eq!(
                            (&reply.parts, &reply.finish),
                            (&whole.parts, &whole.finish),
                            "{api:?} cut at {at}"
                        );
                        complete.insert(at);
                    }
                    Err(DecodeError::Cut | DecodeError::Empty) => {}
                    Err(error) => panic!("{api:?} cut at {at}: {error:?}"),
                }
            }
            // Only the tokens, or the last line ends, may be missing.
            let first = complete.first().copied().unwrap_or(bytes.len());
            let marked = events.len() - end(api, calls, None).len();
            assert!(first > all(api, &events[..marked]).len(), "{api:?}: complete after {first} bytes");
        }
    }
}

/// Such as the error page of a gateway. In a read of its own it is not even received.
#[test]
fn what_follows_the_end_mark_in_the_same_read_changes_nothing() {
    for api in [Api::ChatCompletions, Api::Messages, Api::Responses, Api::Gemini] {
        let whole = [&all(api, &usual(api))[..], &b"data: [DONE]\n\n"[..]].concat();
        let expected = read(api, &[&whole]);
        assert!(expected.0.is_ok(), "{api:?}: {:?}", expected.0);
        for more in
            ["<html>502</html>\n", "data: {\"error\":{\"message\":\"no\"}}\n\n", "data: {\"choices\":"]
        {
            let with_more = [&whole[..], more.as_bytes()].concat();
            assert_eq!(read(api, &[&with_more]).0, expected.0, "{api:?}: {more}");
        }
    }
}

#[test]
fn unknown_events_change_nothing() {
    for api in APIS {
        let usual = usual(api);
        let expected = reply(api, &usual);
        let name = match api {
            Api::Converse => "surprise",
            Api::Messages | Api::Responses => "typed",
            _ => "",
        };
        let surprise = json!({"type": "response.surprise", "surprise": {"text": "no"}, "output_index": 7});
        let mut unknown = vec![(name, surprise)];
        if name == "typed" {
            let text = json!([{"type": "text", "text": "no"}]);
            unknown.push((name, json!({"type": "surprise", "index": 0, "content": text})));
            // Fields with the names of others, and with other contents.
            let others = json!({"type": "surprise", "delta": 7, "content": "no", "response": "no", "output": "no", "usage": "no"});
            unknown.push((name, others));
        }
        for (at, unknown) in (0..usual.len()).flat_map(|at| unknown.iter().map(move |event| (at, event))) {
            let mut events = usual.clone();
            events.insert(at, unknown.clone());
            let read = reply(api, &events);
            assert_eq!(
                (&read.parts, &read.finish, read.usage),
                (&expected.parts, &expected.finish, expected.usage),
                "{api:?} before {at}"
            );
        }
    }
}

/// Adds an unknown field to every object but the arguments of a call.
fn surprise(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(surprise),
        Value::Object(fields) => {
            let inner = fields
                .iter_mut()
                .filter(|(name, _)| !["args", "arguments", "input"].contains(&name.as_str()));
            inner.for_each(|(_, value)| surprise(value));
            fields.insert("surprise".into(), json!({"deep": [1, null, {"text": "no"}]}));
        }
        _ => {}
    }
}

#[test]
fn unknown_fields_change_nothing() {
    for api in APIS {
        let (mut events, expected) = (usual(api), reply(api, &usual(api)));
        events.iter_mut().for_each(|(_, event)| surprise(event));
        let read = reply(api, &events);
        assert_eq!(
            (read.parts, read.finish, read.usage),
            (expected.parts, expected.finish, expected.usage),
            "{api:?}"
        );
    }
}

/// R9: a stop reason that is not known ends the reply, with its text.
#[test]
fn an_unknown_stop_reason_is_unknown() {
    for api in APIS {
        let reply = reply(api, &[events(api, false), end(api, false, Some("surprise"))].concat());
        assert_eq!(reply.finish, FinishReason::Unknown, "{api:?}");
        assert!(format!("{:?}", reply.parts).contains("Sunny"), "{api:?}");
    }
}

/// Gateways in JavaScript may cut a character in two; what is not cut stays.
#[test]
fn half_a_character_costs_no_reply() {
    let chunk = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let bytes = [&*chunk(r"a\ud83d"), &*chunk(r"\ude00b \ud83d\ude00"), "data: [DONE]\n\n"].concat();
    let (read, shown) = read(Api::ChatCompletions, &[bytes.as_bytes()]);
    let expected = "a\u{fffd}\u{fffd}b \u{1f600}";
    assert_eq!((read.unwrap().reply.parts, &*shown.0), (vec![Part::text(expected)], expected));
}

/// The error names what is wrong, and no type of this program.
#[test]
fn what_cannot_be_read_is_quoted_in_words_of_json() {
    for api in APIS {
        for (body, flaw) in
            [("hello", "(expected value at line 1 column 1)"), ("7", "(invalid type: integer `7`)")]
        {
            // Frames of Bedrock begin with their length.
            let (read, _) = read(api, &[body.as_bytes()]);
            let Err(DecodeError::Unreadable { why, excerpt }) = read else { panic!("{api:?}: {read:?}") };
            assert!(why.ends_with(flaw) && excerpt == body, "{api:?}: {why}: {excerpt}");
        }
    }
}

/// P68: a list of the objects of a stream, as Gemini sends it without `alt=sse`, to a request for a stream and to one for a whole reply.
#[test]
fn a_list_of_chunks_is_the_same_reply() {
    let events: Vec<Value> = usual(Api::Gemini).into_iter().map(|(_, event)| event).collect();
    let whole = |body: &str| {
        with_request(|request| {
            Decoder::<crate::gemini::Gemini>::default().whole(body.as_bytes(), request, &mut ())
        })
    };
    let in_halves = |body: &str| {
        let (first, second) = body.as_bytes().split_at(body.len() / 2);
        read(Api::Gemini, &[first, second]).0
    };
    for is_stream in [false, true] {
        let decoded = |body: &str| if is_stream { in_halves(body) } else { whole(body) };
        for list in [serde_json::to_string_pretty(&events).unwrap(), serde_json::to_string(&events).unwrap()]
        {
            let expected = reply(Api::Gemini, &usual(Api::Gemini));
            let read = decoded(&list).unwrap().reply;
            assert_eq!(
                (read.parts, read.finish, read.usage),
                (expected.parts, expected.finish, expected.usage)
            );
            for at in 1..list.len() - 1 {
                let Some(cut) = list.get(..at) else { continue };
                assert!(decoded(cut).is_err(), "cut at {at}");
            }
        }
        let begun = serde_json::to_string(&events[..events.len() - 1]).unwrap();
        assert!(matches!(decoded(&begun), Err(DecodeError::Cut)), "without a finish reason");
        assert!(decoded("[]").is_err() && decoded("[1]").is_err());
        let error = json!([{"error": {"code": 503, "message": "No.", "status": "UNAVAILABLE"}}]).to_string();
        assert!(matches!(decoded(&error), Err(DecodeError::Error(_))));
    }
}
