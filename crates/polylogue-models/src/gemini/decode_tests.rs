use polylogue_core::{Part, Reply, Seal, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wire::decode_support::{Read, read_stream, read_whole};
use crate::wire::draft::Decoded;

fn fed(pieces: &[&[u8]]) -> Read {
    read_stream::<Gemini>("Jo-1", &[], pieces)
}

fn stream(body: &str) -> Result<Decoded, DecodeError> {
    fed(&[body.as_bytes()]).0
}

fn whole(body: &str) -> Result<Decoded, DecodeError> {
    read_whole::<Gemini>("Jo-1", &[], body.as_bytes()).0
}

/// A stream with these parts, each in a piece of its own, the last of which ends with `STOP`.
fn of_parts(parts: &[&str]) -> String {
    let event = |part: &&str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}},\"index\":0}}]}}\n\n"
        )
    };
    parts.iter().map(event).collect::<String>()
        + "data: {\"candidates\":[{\"finishReason\":\"STOP\",\"index\":0}]}\n\n"
}

const USUAL: &str = concat!(
    r#"data: {"candidates":[{"content":{"parts":[{"text":"Where?","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"m","responseId":"x"}"#,
    "\n\n",
    r#"data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"serverEvent":{"new":[1]}}"#,
    "\n\n",
    r#"data: {"candidates":[{"content":{"parts":[{"text":"lo\n"},{"videoMetadata":{"fps":1}}],"role":"model"},"index":0}]}"#,
    "\n\n",
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"b":1,"a":[2]}},"thoughtSignature":"c2ln"}]},"index":0}]}"#,
    "\n\n",
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"abcdefghi","name":"weather","args":{}}}]},"index":0}]}"#,
    "\n\n",
    r#"data: {"candidates":[{"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":14}}"#,
    "\n\n",
);

fn call(id: &str, tool: &str, args: Value) -> Part {
    Part::ToolCall(polylogue_core::ToolCall { id: id.into(), tool: tool.into(), args })
}

fn usual() -> Decoded {
    let parts = vec![
        Part::Thought("Where?".into()),
        Part::text("Hello\n"),
        call("call_Jo1_3_0", "look", json!({"b": 1, "a": [2]})),
        call("abcdefghi", "weather", json!({})),
    ];
    let usage = Usage { input: Some(9), output: Some(5), reasoning: Some(2), ..Usage::default() };
    let seals = vec![Seal::new(2, &parts[2], json!("c2ln"))];
    Decoded {
        reply: Reply {
            parts,
            finish: FinishReason::Calls,
            usage,
            cached: false,
            verbatim: None,
            answered_by: None,
        },
        seals,
        continuation: None,
        model: None,
    }
}

#[test]
fn the_usual_stream_has_its_parts_in_order_with_usage_ids_and_seals() {
    let (decoded, received) = fed(&[USUAL.as_bytes()]);
    assert_eq!(decoded, Ok(usual()));
    assert_eq!(received, "(Where?)[Hel][lo\n]<0 look {\"b\":1,\"a\":[2]}><1 weather {}>");
}

#[test]
fn a_whole_reply_is_the_same() {
    let body = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Where?","thought":true},{"text":"Hello\n"},
        {"functionCall":{"name":"look","args":{"b":1,"a":[2]}},"thoughtSignature":"c2ln"},
        {"functionCall":{"id":"abcdefghi","name":"weather"}}]},"finishReason":"STOP","index":0}],
        "usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":14}}"#;
    assert_eq!(whole(body), Ok(usual()));
}

/// A piece of a stream that ends anywhere is a broken connection, never a shorter reply.
#[test]
fn a_stream_that_is_cut_anywhere_before_its_finish_reason_is_broken() {
    let end = USUAL.find("\"usageMetadata\":{\"promptTokenCount\":9,\"candidates").unwrap();
    for length in 0..end {
        let cut = stream(&USUAL[..length]);
        assert!(
            matches!(cut, Err(DecodeError::Cut))
                || length == 0 && cut == Err(DecodeError::Empty)
                || USUAL[..length].trim_ascii_end().len() < 8,
            "{length}: {cut:?}"
        );
    }
}

#[test]
fn a_stream_that_is_split_anywhere_is_the_same() {
    for at in 0..USUAL.len() {
        let (before, after) = USUAL.as_bytes().split_at(at);
        assert_eq!(fed(&[before, after]).0, Ok(usual()), "{at}");
    }
    let bytes: Vec<&[u8]> = USUAL.as_bytes().chunks(1).collect();
    assert_eq!(fed(&bytes).0, Ok(usual()));
}

#[test]
fn signatures_stay_on_their_pieces() {
    for (parts, expected, seals) in [
        // At the end, on nothing.
        (
            &[r#"{"text":"Hi"}"#, r#"{"text":"","thoughtSignature":"e"}"#][..],
            vec![Part::text("Hi")],
            vec![json!([[2, 2, "e"]])],
        ),
        (
            &[
                r#"{"text":"A","thoughtSignature":"1"}"#,
                r#"{"text":"é"}"#,
                r#"{"text":"C","thoughtSignature":"3"}"#,
            ],
            vec![Part::text("AéC")],
            vec![json!([[0, 1, "1"], [3, 4, "3"]])],
        ),
        (
            &[r#"{"text":"T","thought":true,"thoughtSignature":"t"}"#, r#"{"text":"A"}"#],
            vec![Part::Thought("T".into()), Part::text("A")],
            vec![json!([[0, 1, "t"]])],
        ),
        // Nothing but a signature after a call: kept in its place.
        (
            &[r#"{"functionCall":{"name":"look","args":{}}}"#, r#"{"text":"","thoughtSignature":"e"}"#],
            vec![call("call_Jo1_3_0", "look", json!({})), Part::text("")],
            vec![json!([[0, 0, "e"]])],
        ),
    ] {
        let decoded = stream(&of_parts(parts)).unwrap();
        assert_eq!(decoded.reply.parts, expected, "{parts:?}");
        let found: Vec<Value> = decoded.seals.into_iter().map(|seal| seal.data).collect();
        assert_eq!(found, seals, "{parts:?}");
    }
}

#[test]
fn a_request_that_was_blocked_is_refused_with_its_category() {
    let body = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"no"},
        "usageMetadata":{"promptTokenCount":4,"totalTokenCount":4}}"#;
    let expected =
        FinishReason::Refused { category: Some("prohibited_content".into()), explanation: Some("no".into()) };
    for decoded in [whole(body), stream(&format!("data: {}\n\n", body.replace('\n', "")))] {
        let reply = decoded.unwrap().reply;
        assert_eq!((reply.finish, reply.parts), (expected.clone(), Vec::new()));
        assert_eq!((reply.usage.input, reply.usage.output), (Some(4), Some(0)));
    }
}

#[test]
fn a_call_that_cannot_be_parsed_is_malformed() {
    let reply = r#"{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print("}"#;
    let decoded = whole(&format!("{{\"candidates\":[{reply}]}}")).unwrap();
    let unparsed = vec![Part::unparsed("print(")];
    assert_eq!((decoded.reply.finish, decoded.reply.parts), (FinishReason::Malformed, unparsed));
    let silent = whole(r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#).unwrap();
    assert_eq!((silent.reply.finish, silent.reply.parts), (FinishReason::Malformed, Vec::new()));
}

#[test]
fn errors_within_a_stream_are_errors() {
    let error = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
    let begun = of_parts(&[r#"{"text":"a"}"#]).replace("STOP", "FINISH_REASON_UNSPECIFIED");
    assert_eq!(stream(&format!("data: {error}\n\n")), Err(DecodeError::Error(error.into())));
    assert_eq!(stream(&format!("{begun}data: {error}\n\n")), Err(DecodeError::BrokenOff(error.into())));
    assert_eq!(stream(&begun), Err(DecodeError::Cut));
    let unsigned = r#"{"candidates":[{"finishReason":"MISSING_THOUGHT_SIGNATURE"}]}"#;
    let Err(DecodeError::Error(error)) = whole(unsigned) else { panic!() };
    assert!(error.contains("MISSING_THOUGHT_SIGNATURE"));
}

#[test]
fn only_one_candidate_is_decoded() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","index":1},
        {"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#;
    assert_eq!(whole(body).unwrap().reply.text(), "a");
}

proptest! {
    /// No reply makes the decoder panic, and none is invented.
    #[test]
    fn any_json_is_decoded_or_refused(
        parts in proptest::collection::vec(prop_oneof![
            Just(r#"{"text":"a"}"#), Just(r#"{"text":"","thoughtSignature":"s"}"#), Just("{}"), Just("null"),
            Just(r#"{"functionCall":{"name":"t","args":{"x":1}}}"#), Just(r#"{"functionCall":null}"#),
            Just(r#"{"text":7,"thought":true}"#), Just(r#"{"functionCall":{"args":"x"}}"#),
            Just(r#"{"executableCode":{"code":"1"}}"#),
        ], 0..8),
        cut in 0..2_000usize,
    ) {
        let body = of_parts(&parts);
        let cut = body.floor_char_boundary(cut.min(body.len()));
        if let Ok(decoded) = stream(&body[..cut]) {
            for part in decoded.reply.parts {
                let Part::Text(text) = part else { continue };
                prop_assert!(text.chars().all(|c| c == 'a'));
            }
        }
    }
}
