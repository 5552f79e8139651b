//! Reasoning in the forms of aggregators and of Mistral, from the reply to the next request.

use polylogue_core::{EncodeCache, Entry, Name, Origin, Params, Part, Path, Request, Seals, Usage, Verbatim};
use serde_json::{Value, json};

use super::*;
use crate::deviations::{Deviations, SendReasoning};
use crate::wire::decode::Decoder;
use crate::wire::draft::{DecodeError, Decoded};
use crate::wire::protocol::{Own, WriteMessages};

const STYLE: Style = Style {
    accepts: crate::accepts::Accepts::UNKNOWN,
    media: &crate::media_limits::MediaLimits::NONE,
    merge: true,
    stream: true,
    stream_usage: true,
    max_tokens: "max_tokens",
    vision: false,
    fold: false,
    omit: false,
    bridge: false,
    reasoning: SendReasoning::Always,
    call_id_length: None,
    deviations: Deviations::NONE,
    marks: false,
    long_marks: false,
    marks_system: false,
    names_prefix: false,
    vertex: false,
    lacks_reasoning: false,
};

fn with_request<T>(run: impl FnOnce(&Request<'_>) -> T) -> T {
    let (at, who, entries) = (Path::root(), Name::new("A").unwrap(), [Entry::user("Hi.")]);
    let (params, encoded) = (Params::default(), EncodeCache::default());
    let origin = Origin::new(&at, &who, 0);
    let (system, tools, reserved) = (None, &[][..], None);
    run(&Request { origin, system, entries: &entries, tools, params: &params, encoded: &encoded, reserved })
}

/// The reply of these deltas, and of the same as a whole.
fn stream(deltas: &[Value]) -> Result<Decoded, DecodeError> {
    let event = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let body = deltas.iter().map(event).collect::<String>() + end;
    let mut decoder = Decoder::<ChatCompletions>::default();
    let fed = decoder.feed(body.as_bytes(), &mut ());
    with_request(|request| fed.and_then(|()| decoder.finish(request, &mut ())))
}

fn whole(choice: Value) -> Result<Decoded, DecodeError> {
    let body = json!({ "choices": [choice] }).to_string();
    with_request(|request| Decoder::<ChatCompletions>::default().whole(body.as_bytes(), request, &mut ()))
}

/// The reply in the form in which it is sent back.
fn returned(decoded: Decoded) -> Value {
    returned_as(decoded, SendReasoning::Always)
}

fn returned_as(decoded: Decoded, reasoning: SendReasoning) -> Value {
    let Decoded { reply, seals: parts, .. } = decoded;
    let before = with_request(|request| request.seals_sent("chat:m").before(request.entries));
    let seals = Seals { by: "chat:m".into(), before, key: None, parts };
    let verbatim = Verbatim { seals: Some(seals), ..Verbatim::default() };
    let mut out = BytesMut::new();
    ChatCompletions::assistant(
        &mut out,
        &Own::new(&reply.parts, Some(&verbatim), true, None),
        &Style { reasoning, ..STYLE },
    );
    serde_json::from_slice(&out).unwrap()
}

/// P103: pieces of details are joined by their index, and go back unchanged; also where there is nothing to read.
#[test]
fn details_of_reasoning_go_back_unchanged() {
    let text = |text: &str, signature: Value| json!({"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "text": text, "signature": signature});
    let secret = json!({"type": "reasoning.encrypted", "index": 1, "id": "rs_1", "data": "AAAA"});
    let decoded = stream(&[
        json!({"reasoning": "Whe", "reasoning_details": [text("Whe", Value::Null)]}),
        json!({"reasoning": "re?", "reasoning_details": [text("re?", Value::Null)]}),
        json!({"reasoning_details": [text("", json!("sig"))]}),
        json!({"reasoning_details": [secret]}),
        json!({"content": "There."}),
    ]);
    let decoded = decoded.unwrap();
    assert_eq!(decoded.reply.parts, [Part::Thought("Where?".into()), Part::text("There.")]);
    let details = json!([text("Where?", json!("sig")), secret]);
    let expected = json!({"role": "assistant", "content": "There.", "reasoning_details": details});
    assert_eq!(returned(decoded), expected);
    // OpenRouter's own calls come whole or in pieces, and some at the same place.
    let call = |id: &str, arguments: &str, result: &str| json!({"type": "reasoning.server_tool_call", "index": 2, "tool_call_id": id, "tool_name": "openrouter:fusion", "arguments": arguments, "result": result});
    let decoded = stream(&[
        json!({"reasoning_details": [call("a", "{\"x\":", "")]}),
        json!({"reasoning_details": [call("a", "1}", "ok"), call("b", "{}", "no")]}),
        json!({"content": "There."}),
    ]);
    let details = json!([call("a", "{\"x\":1}", "ok"), call("b", "{}", "no")]);
    let expected = json!({"role": "assistant", "content": "There.", "reasoning_details": details});
    assert_eq!(returned(decoded.unwrap()), expected);
    let message = json!({"content": "There.", "reasoning_details": [secret]});
    let decoded = whole(json!({"message": message, "finish_reason": "stop"})).unwrap();
    let expected = json!({"role": "assistant", "content": "There.", "reasoning_details": [secret]});
    assert_eq!(returned(decoded), expected);
}

/// P100: Mistral's reasoning is a part of the content, in the reply and in the next request.
#[test]
fn thinking_within_the_content_goes_back_there() {
    let thinking = |text: &str| json!([{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]);
    let content = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let decoded = stream(&[
        json!({"content": thinking("Whe")}),
        json!({"content": thinking("re?")}),
        content("The"),
        json!({"content": "re."}),
    ]);
    let decoded = decoded.unwrap();
    assert_eq!(decoded.reply.parts, [Part::Thought("Where?".into()), Part::text("There.")]);
    let expected = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Where?"}], "closed": true},
        {"type": "text", "text": "There."},
    ]});
    assert_eq!(returned(decoded), expected);
}

/// A call in the form in which it is sent in a piece, and back.
fn look() -> Value {
    json!({"id": "c12345678", "type": "function", "function": {"name": "look", "arguments": "{}"}})
}

/// P19, P100: reasoning between texts stays in its place, with its signature and all of its white space.
#[test]
fn reasoning_between_texts_goes_back_in_its_place() {
    let chunk = |thinking: Value, signature: Option<&str>| match signature {
        Some(signature) => json!({"type": "thinking", "thinking": thinking, "signature": signature}),
        None => json!({"type": "thinking", "thinking": thinking}),
    };
    let thinking = |text: &str, signature| chunk(json!([{"type": "text", "text": text}]), signature);
    let (text, pieces) = (json!({"type": "text", "text": "t1"}), |parts: Value| json!({"content": parts}));
    let mut call = look();
    call["index"] = json!(0);
    let streamed = stream(&[
        pieces(json!([thinking("m1", None)])),
        pieces(json!([text])),
        pieces(json!([thinking("\nm", None)])),
        pieces(json!([thinking("2 ", Some("S2")), chunk(json!([]), Some("S3"))])),
        pieces(json!("t2")),
        json!({"tool_calls": [call]}),
    ]);
    let list = json!([
        thinking("m1", None),
        text,
        thinking("\nm2 ", Some("S2")),
        chunk(json!([]), Some("S3")),
        "t2",
    ]);
    let message = json!({"content": list, "tool_calls": [look()]});
    let closed = |mut chunk: Value| {
        chunk["closed"] = json!(true);
        chunk
    };
    let expected = json!({"role": "assistant", "tool_calls": [look()], "content": [
        closed(thinking("m1", None)),
        text,
        closed(thinking("\nm2 ", Some("S2"))),
        closed(chunk(json!([]), Some("S3"))),
        {"type": "text", "text": "t2"},
    ]});
    for decoded in [streamed, whole(json!({"message": message, "finish_reason": "tool_calls"}))] {
        let decoded = decoded.unwrap();
        let thoughts = decoded.reply.parts.iter().filter_map(|part| match part {
            Part::Thought(text) => Some(text.to_string()),
            _ => None,
        });
        assert_eq!(thoughts.collect::<Vec<_>>(), ["m1", "\nm2 ", ""]);
        assert_eq!(returned(decoded), expected);
    }
}

/// P19: a field for reasoning has all of it, whatever was said between pieces of it, and so has the field for text.
#[test]
fn reasoning_between_texts_goes_back_in_its_field() {
    for name in ["reasoning_content", "reasoning"] {
        let decoded = stream(&[
            json!({name: "\nOne. "}),
            json!({"content": "a"}),
            json!({name: "\n"}),
            json!({"content": "b"}),
            json!({name: "Two.\n"}),
            json!({"content": "c"}),
        ]);
        let decoded = decoded.unwrap();
        let thought = |text: &str| Part::Thought(text.into());
        assert_eq!(decoded.reply.parts, [thought("One. \n"), Part::text("abc"), thought("Two.")]);
        let expected = json!({"role": "assistant", "content": "abc", name: "One. \nTwo."});
        assert_eq!(returned(decoded), expected);
    }
}

/// What a provider that knows only the text expects of reasoning whose details go back, too; and where there is none.
#[test]
fn a_filler_goes_where_there_is_no_reasoning() {
    let detail = json!({"type": "reasoning.text", "index": 0, "text": "Where?", "signature": "sig"});
    let secret = json!({"type": "reasoning.encrypted", "index": 0, "data": "AAAA"});
    let said = |more: Value| {
        let mut message = json!({"content": "There."});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    };
    for (message, send, expected) in [
        (said(json!({})), SendReasoning::AlwaysOrBlank, json!({"reasoning_content": " "})),
        (said(json!({"reasoning": "Hm."})), SendReasoning::AlwaysOrBlank, json!({"reasoning": "Hm."})),
        (
            said(json!({"reasoning": "Where?", "reasoning_details": [detail]})),
            SendReasoning::AlwaysOrBlank,
            json!({"reasoning_details": [detail], "reasoning_content": "Where?"}),
        ),
        (
            said(json!({"reasoning_details": [secret]})),
            SendReasoning::AlwaysOrBlank,
            json!({"reasoning_details": [secret], "reasoning_content": " "}),
        ),
    ] {
        let decoded = whole(json!({"message": message, "finish_reason": "stop"})).unwrap();
        let mut expected = said(expected);
        expected["role"] = json!("assistant");
        assert_eq!(returned_as(decoded, send), expected, "{message}");
    }
}

/// P5: an aggregator's error is in the choice, or only in the finish reason.
#[test]
fn an_error_in_a_choice_is_an_error() {
    for (choice, status) in [
        (
            json!({"error": {"code": 502, "message": "Upstream."}, "finish_reason": "error", "message": {"content": ""}}),
            Some(502),
        ),
        (json!({"finish_reason": "insufficient_system_resource", "message": {"content": "a"}}), Some(503)),
        (json!({"finish_reason": "error", "message": {"content": "a"}}), None),
    ] {
        let Err(DecodeError::Error(json)) = whole(choice) else { panic!("{status:?}") };
        assert_eq!(crate::error_body::ErrorBody::of(&json).status(), status, "{json}");
    }
}

/// P104, of cached tokens: by Mistral's names, and next to the prompt instead of in it.
#[test]
fn cached_tokens_are_counted_by_every_name() {
    for (usage, input, cached) in [
        (json!({"prompt_tokens": 9, "completion_tokens": 1, "num_cached_tokens": 4}), 9, 4),
        (
            json!({"prompt_tokens": 9, "completion_tokens": 1, "prompt_token_details": {"cached_tokens": 4}}),
            9,
            4,
        ),
        // Mistral documents all of its names for the same object.
        (
            json!({"prompt_tokens": 9, "completion_tokens": 1, "num_cached_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 4}, "prompt_token_details": {"cached_tokens": 4}}),
            9,
            4,
        ),
        (
            json!({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 20}}),
            29,
            20,
        ),
    ] {
        let body =
            json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage})
                .to_string();
        let decoder = Decoder::<ChatCompletions>::default();
        let decoded = with_request(|request| decoder.whole(body.as_bytes(), request, &mut ())).unwrap();
        let expected =
            Usage { input: Some(input), output: Some(1), cached: Some(cached), ..Usage::default() };
        assert_eq!(decoded.reply.usage, expected, "{usage}");
    }
}
