use polylogue_core::{FinishReason, Part, Reply, Usage};
use proptest::prelude::*;

use super::*;
use crate::wire::decode::Decoder;
use crate::wire::decode_support::{read_stream, read_whole};
use crate::wire::draft::DecodeError;

fn stream(pieces: &[&[u8]]) -> (Result<Reply, DecodeError>, String) {
    let (decoded, heard) = read_stream::<Ollama>("Jo", &[], pieces);
    (decoded.map(|decoded| decoded.reply), heard)
}

fn whole(body: &[u8]) -> Result<Reply, DecodeError> {
    read_whole::<Ollama>("Jo", &[], body).0.map(|decoded| decoded.reply)
}

const END: &str = r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#;

#[test]
fn calls_are_whole_have_objects_for_arguments_and_get_ids_of_their_own() {
    let lines = [
        r#"{"message":{"content":"","tool_calls":[{"function":{"name":"a","arguments":{"x":1}}},{"id":"0","function":{"name":"a","arguments":{"x":1}}}]},"done":false}"#,
        r#"{"message":{"content":"","tool_calls":[{"function":{"index":0,"name":"b","arguments":"{\"y\":2}"}}]},"done":false}"#,
        r#"{"message":{"content":"","tool_calls":[{"function":{"name":"c"}},{"id":"call_abcd1234","function":{"name":"d","arguments":null}},{}]},"done":false}"#,
        END,
    ];
    let (reply, received) = stream(&[lines.join("\n").as_bytes()]);
    assert_eq!(received, r#"<0 a {"x":1}><1 a {"x":1}><2 b {"y":2}><3 c ><4 d >"#);
    let calls = reply.unwrap().calls();
    let made: Vec<_> =
        calls.iter().map(|call| (call.id.as_str(), call.tool.as_str(), call.args.to_string())).collect();
    let expected = [
        ("call_Jo_3_0", "a", r#"{"x":1}"#),
        ("call_Jo_3_1", "a", r#"{"x":1}"#),
        ("call_Jo_3_2", "b", r#"{"y":2}"#),
        ("call_Jo_3_3", "c", "{}"),
        ("call_abcd1234", "d", "{}"),
    ];
    assert_eq!(made, expected.map(|(id, tool, args)| (id, tool, args.to_owned())));
}

#[test]
fn what_is_missing_null_or_odd_is_tolerated() {
    for body in [
        r#"{"message":{"content":"a"},"done":true}"#,
        r#"{"message":{"content":"a"}}"#,
        r#"{"message":{"role":null,"content":"a","thinking":null,"tool_calls":null,"images":null},"done":true,"done_reason":null,"eval_count":null,"error":null}"#,
        r#"{"message":{"content":"a"},"done":true,"eval_count":"many","prompt_eval_count":-1,"new":{"x":[]}}"#,
        "\u{feff}{\"message\":{\"content\":\"a\"},\"done\":false}\r\n\r\n{\"done\":true}",
        "data: {\"message\":{\"content\":\"a\"},\"done\":true}\n\n",
    ] {
        let reply = whole(body.as_bytes()).unwrap();
        assert_eq!(
            (&*reply.text(), reply.finish.clone(), reply.usage),
            ("a", FinishReason::Unknown, Usage::default()),
            "{body}"
        );
    }
    assert_eq!(stream(&[END.as_bytes()]).0.unwrap().parts, []);
}

#[test]
fn what_is_no_reply_is_recognized() {
    let flaw = |body: &str| match whole(body.as_bytes()) {
        Ok(reply) => panic!("{reply:?}"),
        Err(DecodeError::Error(json)) => json,
        Err(DecodeError::BrokenOff(json)) => format!("after a piece: {json}"),
        Err(DecodeError::Unreadable { why, .. }) => why,
        Err(flaw) => format!("{flaw:?}"),
    };
    let error = r#"{"error":"model 'm' not found"}"#;
    assert_eq!(flaw(error), error);
    assert_eq!(flaw(r#"{"message":{"content":"a"},"done":false}"#), "Cut");
    assert_eq!(flaw(r#"{"message":{"content":"a"},"done":fal"#), "Cut");
    assert_eq!(flaw(r#"{"done":true}"#), "it has no `message`");
    assert_eq!(flaw("[DONE]"), "it has no `message`");
    assert_eq!(flaw(""), "Empty");
    assert!(flaw("<html>").contains("valid JSON for a reply of Ollama"));
    let broken = format!("{}\n{error}\n", r#"{"message":{"content":"a"},"done":false}"#);
    assert_eq!(flaw(&broken), format!("after a piece: {error}"));
}

// By its field, or by tags cut anywhere; one that never ends is a thought to its end.
#[test]
fn thoughts_are_separated_from_text_in_a_stream() {
    let line =
        |field: &str, text: &str| format!("{{\"message\":{{\"{field}\":\"{text}\"}},\"done\":false}}\n");
    let field = [line("thinking", "h"), line("thinking", "m"), line("content", "yes")];
    let tags = [line("content", "<thi"), line("content", "nk>hm</"), line("content", "think>\\n\\nyes")];
    for lines in [field, tags] {
        let pieces: Vec<&[u8]> = lines.iter().map(String::as_bytes).chain([END.as_bytes()]).collect();
        assert_eq!(
            stream(&pieces).0.unwrap().parts,
            [Part::Thought("hm".into()), Part::text("yes")],
            "{lines:?}"
        );
    }
    let unclosed = [line("content", "<think>h"), line("content", "m, {}"), END.to_owned()];
    let pieces: Vec<&[u8]> = unclosed.iter().map(String::as_bytes).collect();
    assert_eq!(stream(&pieces).0.unwrap().parts, [Part::Thought("hm, {}".into())]);
}

#[test]
fn nothing_that_comes_after_the_end_counts() {
    let mut decoder = Decoder::<Ollama>::default();
    decoder.feed(format!("{END}\n").as_bytes(), &mut ()).unwrap();
    assert!(decoder.finished() && decoder.ended() && decoder.began());
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(END.as_bytes().to_vec()),
        Just(br#"{"message":{"content":"<think>hm</think> yes"},"done":false}"#.to_vec()),
        Just(br#"{"message":{"thinking":"hm"}}"#.to_vec()),
        Just(br#"{"message":{"tool_calls":[{"function":{"name":"t","arguments":{"a":[1]}}}]}}"#.to_vec()),
        Just(br#"{"error":"no"}"#.to_vec()),
        Just(br#"{"message":{"content":[{"text":"#.to_vec()),
        Just(b"{}".to_vec()),
        Just(b"\xff\xfe".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_a_reply_or_a_flaw_however_they_are_cut(
        lines in proptest::collection::vec((line(), prop_oneof![Just("\n"), Just("\r\n"), Just("")]), 0..12),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let body: Vec<u8> = lines.iter().flat_map(|(line, end)| [line, end.as_bytes()].concat()).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
        prop_assert_eq!(stream(&pieces), stream(&[&body]));
        let _ = whole(&body);
    }

    #[test]
    fn any_bytes_at_all_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = (stream(&[&body]), whole(&body));
    }
}
