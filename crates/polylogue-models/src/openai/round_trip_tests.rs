//! Reasoning in the forms of aggregators and of Mistral, from the reply to the next request.

use polylogue_core::{EncodeCache, Entry, Name, Origin, Params, Part, Path, Seals, Usage, Verbatim};
use serde_json::{Value, json};

use super::*;
use crate::deviations::Deviations;
use crate::wire::decode::Decoder;
use crate::wire::draft::Decoded;

const STYLE: Style = Style {
    accepts: crate::accepts::Accepts::UNKNOWN,
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
    let Decoded { reply, seals: parts, .. } = decoded;
    let before = with_request(|request| request.seals_sent("chat:m").before(request.entries));
    let seals = Seals { by: "chat:m".into(), before, key: None, parts };
    let verbatim = Verbatim { seals: Some(seals), ..Verbatim::default() };
    let mut out = BytesMut::new();
    message::assistant(&mut out, &Own::new(&reply.parts, Some(&verbatim), true, None), &STYLE);
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
