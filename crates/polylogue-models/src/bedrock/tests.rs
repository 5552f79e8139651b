//! Items P84 to P96 of the published rules: streams and whole replies.

use polylogue_core::{FinishReason, Part, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::fuzzing::frames::frame;
use crate::wire::decode_support::{Read, read_stream, read_whole};
use crate::wire::draft::{DecodeError, Decoded};

fn stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    read_stream::<Converse>("Jo", &[], pieces)
}

fn event(name: &str, payload: &Value) -> Vec<u8> {
    frame(&[(":message-type", "event"), (":event-type", name)], payload.to_string().as_bytes())
}

fn delta(index: u64, delta: &Value) -> Vec<u8> {
    event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta, "p": "abc"}))
}

/// The frames of a reply with every kind of block; the last two are its stop and its usage.
fn frames() -> Vec<Vec<u8>> {
    let start = |index: u64, id: &str| {
        let start = json!({"toolUse": {"toolUseId": id, "name": "look"}});
        event("contentBlockStart", &json!({"contentBlockIndex": index, "start": start}))
    };
    let stop = |index: u64| event("contentBlockStop", &json!({"contentBlockIndex": index}));
    vec![
        event("messageStart", &json!({"role": "assistant"})),
        delta(0, &json!({"reasoningContent": {"text": "Where"}})),
        delta(0, &json!({"reasoningContent": {"text": "?"}})),
        delta(0, &json!({"reasoningContent": {"signature": "sig"}})),
        stop(0),
        delta(1, &json!({"reasoningContent": {"redactedContent": "cmVk"}})),
        stop(1),
        event("somethingNew", &json!({"x": 1})),
        delta(2, &json!({"text": "I look"})),
        delta(2, &json!({"text": ". \u{2600}"})),
        stop(2),
        start(3, "tooluse_one1"),
        delta(3, &json!({"toolUse": {"input": "{\"b\": 1,"}})),
        delta(3, &json!({"toolUse": {"input": " \"a\": 2.0}"}})),
        stop(3),
        start(4, "tooluse_two2"),
        stop(4),
        event("messageStop", &json!({"stopReason": "tool_use"})),
        event(
            "metadata",
            &json!({"metrics": {"latencyMs": 1}, "usage": {
                "inputTokens": 3, "outputTokens": 5, "totalTokens": 19, "cacheReadInputTokens": 4,
                "cacheWriteInputTokens": 7, "cacheDetails": [{"ttl": "1h", "inputTokens": 2}, {"ttl": "5m", "inputTokens": 5}],
            }}),
        ),
    ]
}

fn all() -> Vec<u8> {
    frames().concat()
}

/// P87, P91, P95, P96.
#[test]
fn a_stream_is_a_reply_with_parts_in_order_seals_and_summed_usage() {
    let (decoded, received) = stream([&all()[..]]);
    let Decoded { reply, seals, .. } = decoded.unwrap();
    let call = |part: &Part| match part {
        Part::ToolCall(call) => (call.id.clone(), call.args.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        reply.parts[..3],
        [Part::Thought("Where?".into()), Part::Thought("".into()), Part::text("I look. \u{2600}")]
    );
    assert_eq!(call(&reply.parts[3]), ("tooluse_one1".into(), json!({"a": 2.0, "b": 1})));
    assert_eq!(call(&reply.parts[4]), ("tooluse_two2".into(), json!({})));
    let sealed: Vec<_> = seals.iter().map(|seal| (seal.part, seal.data.clone())).collect();
    assert_eq!(sealed, [(0, json!({"signature": "sig"})), (1, json!({"redacted": "cmVk"}))]);
    assert_eq!(reply.verbatim.unwrap().arguments[0].text.as_ref(), r#"{"b": 1, "a": 2.0}"#);
    assert_eq!(reply.finish, FinishReason::Calls);
    let usage = Usage {
        input: Some(14),
        output: Some(5),
        cached: Some(4),
        written: Some(7),
        written_long: Some(2),
        audio: None,
        reasoning: None,
    };
    assert_eq!(reply.usage, usage);
    assert_eq!(received, r#"(Where)(?)[I look][. ☀]<0 look ><0 - {"b": 1,><0 -  "a": 2.0}><1 look >"#);
}

/// P87: frames in any cut, and R9: a reply is complete with its stop.
#[test]
fn a_stream_cut_anywhere_is_the_same_reply_or_none() {
    let bytes = all();
    let (expected, received) = stream([&bytes[..]]);
    let expected = expected.unwrap();
    let usage = frames().last().unwrap().len();
    for at in 0..=bytes.len() {
        let (before, after) = bytes.split_at(at);
        let (reply, pieces) = stream([before, after]);
        assert_eq!((reply.as_ref(), &pieces), (Ok(&expected), &received), "split at {at}");
        let (reply, pieces) = stream([before]);
        assert!(received.starts_with(&pieces), "cut at {at}");
        match reply {
            Ok(reply) => {
                assert!(at >= bytes.len() - usage && reply.reply.parts == expected.reply.parts, "cut at {at}")
            }
            Err(error) => {
                let nothing = if at == 0 { DecodeError::Empty } else { DecodeError::Cut };
                assert_eq!(error, nothing, "cut at {at}");
                assert!(at < bytes.len() - usage, "cut at {at}");
            }
        }
    }
    let (reply, _) = stream(bytes.chunks(1));
    assert_eq!(reply, Ok(expected));
}

/// P88: the type of an exception is that of a status, by which it is tried again or not.
#[test]
fn an_exception_is_an_error_with_its_type() {
    let exception = |kind: &str| {
        let headers = [(":message-type", "exception"), (":exception-type", kind)];
        frame(&headers, br#"{"message":"Too many requests","originalStatusCode":424}"#)
    };
    let error = frame(
        &[(":message-type", "error"), (":error-code", "InternalError"), (":error-message", "Oh.")],
        b"",
    );
    let kinds = [
        ("internalServerException", 500),
        ("modelStreamErrorException", 424),
        ("throttlingException", 429),
        ("validationException", 400),
        ("serviceUnavailableException", 503),
        ("modelTimeoutException", 408),
    ];
    let exceptions = kinds.map(|(kind, status)| (exception(kind), kind, "Too many requests", Some(status)));
    for (frame, kind, message, status) in
        exceptions.into_iter().chain([(error, "InternalError", "Oh.", None)])
    {
        let begun = frames()[..3].concat();
        let Err(DecodeError::BrokenOff(broken)) = stream([&begun[..], &frame]).0 else { panic!("{kind}") };
        let Err(DecodeError::Error(json)) = stream([&frame[..]]).0 else { panic!("{kind}") };
        assert_eq!(broken, json);
        assert_eq!(crate::error_body::ErrorBody::of(&json).status(), status, "{kind}");
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json, json!({"__type": kind, "message": message}));
    }
}

/// P5: errors with a success status, as a body instead of frames.
#[test]
fn an_error_is_one_in_every_form_whatever_its_status_is() {
    for (body, says) in [
        (json!({"message": "The security token is expired"}), "The security token is expired"),
        (json!({"Message": "Not allowed", "output": null}), "Not allowed"),
        (json!({"error": {"message": "Try later", "code": 503}}), "Try later"),
        (json!({"__type": "ThrottlingException", "message": "Slow down"}), "Slow down"),
    ] {
        let body = body.to_string();
        for reply in [stream([body.as_bytes()]).0, read_whole::<Converse>("Jo", &[], body.as_bytes()).0] {
            let Err(DecodeError::Error(json)) = reply else { panic!("{body}: {reply:?}") };
            assert_eq!(crate::error_body::ErrorBody::of(&json).message.as_deref(), Some(says), "{body}");
        }
    }
    let reply = json!({"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": "end_turn", "message": "m"});
    assert!(read_whole::<Converse>("Jo", &[], reply.to_string().as_bytes()).0.is_ok());
}

/// P87: bytes that are not frames.
#[test]
fn damaged_frames_and_pages_are_no_replies() {
    let bytes = all();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let (reply, _) = stream([&damaged[..]]);
        assert!(reply.is_err(), "at {at}: {reply:?}");
    }
    let (reply, _) = stream([&b"<html>Welcome</html>"[..]]);
    assert!(
        matches!(&reply, Err(DecodeError::Unreadable { excerpt, .. }) if excerpt.starts_with('<')),
        "{reply:?}"
    );
}

#[test]
fn reasons_to_stop_are_named_and_unknown_ones_are_unknown() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("guardrail_intervened", FinishReason::Filter),
        ("content_filtered", FinishReason::Filter),
        ("malformed_tool_use", FinishReason::Malformed),
        ("malformed_model_output", FinishReason::Malformed),
        ("model_context_window_exceeded", FinishReason::ContextFull),
        ("refusal", FinishReason::REFUSED),
        ("something_new", FinishReason::Unknown),
    ] {
        let (reply, _) = stream([
            &delta(0, &json!({"text": "x"}))[..],
            &event("messageStop", &json!({"stopReason": reason})),
        ]);
        assert_eq!(reply.unwrap().reply.finish, expected, "{reason}");
        let body =
            json!({"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": reason}).to_string();
        let reply = read_whole::<Converse>("Jo", &[], body.as_bytes()).0;
        assert_eq!(reply.unwrap().reply.finish, expected, "{reason}");
    }
}

/// P86.
#[test]
fn a_model_is_one_segment_of_the_path() {
    for (model, expected) in [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.a-v1:0",
            "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.a-v1%3A0",
        ),
        ("a b?c#d%", "a%20b%3Fc%23d%25"),
    ] {
        assert_eq!(Converse::target(model, false), Some(format!("/model/{expected}/converse")));
        assert_eq!(Converse::target(model, true), Some(format!("/model/{expected}/converse-stream")));
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), payload in "\\PC{0,40}") {
        let _ = stream([&bytes[..]]);
        let odd = frame(&[(":message-type", "event"), (":event-type", &payload)], payload.as_bytes());
        let _ = stream([&odd[..], &all()]);
        let _ = read_whole::<Converse>("Jo", &[], &bytes);
    }
}
