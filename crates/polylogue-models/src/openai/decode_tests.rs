use polylogue_core::{Entry, FinishReason, Part, Reply, ToolCall, ToolResult, Usage};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::decode_support::{read_stream, read_whole};

fn stream_after(entries: &[Entry], pieces: &[&[u8]]) -> (Result<Reply, DecodeError>, String) {
    let (decoded, heard) = read_stream::<ChatCompletions>("Jo-1", entries, pieces);
    (decoded.map(|decoded| decoded.reply), heard)
}

fn stream(body: &str) -> (Result<Reply, DecodeError>, String) {
    stream_after(&[], &[body.as_bytes()])
}

fn whole(body: &str) -> (Result<Reply, DecodeError>, String) {
    let (decoded, heard) = read_whole::<ChatCompletions>("Jo-1", &[], body.as_bytes());
    (decoded.map(|decoded| decoded.reply), heard)
}

/// A stream of these choices' deltas.
fn deltas(deltas: &[&str]) -> String {
    let event = |delta: &&str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    deltas.iter().map(event).collect::<String>() + "data: [DONE]\n\n"
}

fn text(text: &str) -> Vec<Part> {
    vec![Part::text(text)]
}

fn calls(reply: &Reply) -> Vec<(String, String, String)> {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some((call.id.clone(), call.tool.clone(), call.args.to_string())),
        _ => None,
    };
    reply.parts.iter().filter_map(call).collect()
}

const USUAL: &str = concat!(
    r#"data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"lo\n"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#,
    "\n\ndata: [DONE]\n\n",
);

fn usual() -> Reply {
    let usage = Usage { input: Some(9), output: Some(3), ..Usage::default() };
    Reply {
        parts: text("Hello\n"),
        finish: FinishReason::Stop,
        usage,
        cached: false,
        verbatim: None,
        answered_by: None,
    }
}

#[test]
fn the_usual_stream_is_read_with_its_usage() {
    assert_eq!(stream(USUAL), (Ok(usual()), "[Hel][lo\n]".to_owned()));
}

#[test]
fn every_deviation_of_the_stream_gives_the_same_reply() {
    let bare = USUAL.replace("data: {", "{").replace("data: [DONE]\n\n", "").replace("\n\n", "\n");
    for (deviation, body) in [
        ("CRLF", USUAL.replace('\n', "\r\n")),
        ("CR", USUAL.replace('\n', "\r")),
        ("no space", USUAL.replace("data: ", "data:")),
        ("comments", format!(": hi\n\n{}", USUAL.replace("\n\n", "\n\n: ping\n\n"))),
        ("other fields", USUAL.replace("data: {", "event: message\nid: 1\nretry: 5\ndata: {")),
        ("no blank lines", USUAL.replace("\n\n", "\n")),
        ("no end mark", USUAL.replace("data: [DONE]\n\n", "")),
        ("no line end at the end", USUAL.trim_end().to_owned()),
        ("no end mark and no line end", USUAL.replace("data: [DONE]\n\n", "").trim_end().to_owned()),
        ("bare lines of JSON", bare),
        ("events of several lines", USUAL.replace(",\"delta\"", ",\ndata: \"delta\"")),
        ("merged objects", USUAL.replace("}]}\n\ndata: {\"choices\":[{", "}]}{\"choices\":[{")),
        ("empty events", USUAL.replace("data: {", "data:\n\ndata: {")),
        ("byte order mark", format!("\u{feff}{USUAL}")),
        ("no indices", USUAL.replace("\"index\":0,", "")),
        ("nulls", USUAL.replace("\"delta\":{},", "\"delta\":null,\"logprobs\":null,\"message\":null,")),
        ("null texts", USUAL.replace("\"content\":\"\"", "\"content\":null,\"tool_calls\":null,\"refusal\":null")),
        ("lists of parts", USUAL.replace("\"Hel\"", "[{\"type\":\"text\",\"text\":\"Hel\"}]")),
        ("other choices", USUAL.replace("\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo",
            "\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"index\":0,\"delta\":{\"content\":\"lo")),
        ("empty choices", USUAL.replace("data: {\"choices\":[{", "data: {\"choices\":[]}\n\ndata: {\"choices\":[{")),
        ("Groq's usage", USUAL.replace("\"usage\":{", "\"x_groq\":{\"usage\":{").replace("12}}", "12}}}")),
    ] {
        assert_ne!(body, USUAL, "{deviation}");
        assert_eq!(stream(&body).0, Ok(usual()), "{deviation}: {body}");
    }
}

#[test]
fn what_is_unknown_stays_unknown() {
    let (reply, _) = stream(&deltas(&[r#"{"content":"a"}"#]));
    let reply = reply.unwrap();
    assert_eq!((reply.finish, reply.usage), (FinishReason::Unknown, Usage::default()));
    let cumulative =
        USUAL.replace("\"finish_reason\":null}]", "\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":0}");
    assert_eq!(stream(&cumulative.replace(",\"usage\":null", "")).0, Ok(usual()));
}

#[test]
fn a_whole_body_is_read_in_one_line_or_many_and_streamed_too() {
    let body = json!({
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Hi", "reasoning_content": "hm",
            "tool_calls": [
                {"id": "call_abcdef", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "", "function": {"name": "f", "arguments": {"b": 2}}},
                {"function": {"name": "f", "arguments": ""}},
            ]}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    });
    for text in [body.to_string(), serde_json::to_string_pretty(&body).unwrap()] {
        for (reply, received) in [whole(&text), stream(&text)] {
            let reply = reply.unwrap();
            assert_eq!(received, "(hm)[Hi]<0 f {\"a\":1}><1 f {\"b\":2}><2 f >");
            assert_eq!(reply.parts[..2], [Part::Thought("hm".into()), Part::text("Hi")]);
            let expected =
                [("call_abcdef", "{\"a\":1}"), ("call_Jo1_3_1", "{\"b\":2}"), ("call_Jo1_3_2", "{}")];
            let made = calls(&reply);
            assert_eq!(made.iter().map(|(id, _, args)| (&**id, &**args)).collect::<Vec<_>>(), expected);
            assert_eq!((reply.finish, reply.usage.cached), (FinishReason::Calls, Some(1)));
        }
    }
    assert_eq!(whole(USUAL), (Ok(usual()), "[Hel][lo\n]".to_owned()), "a stream that was not asked for");
}

#[test]
fn parallel_calls_are_put_together_whatever_is_missing() {
    let usual = [
        r#"{"tool_calls":[{"index":0,"id":"call_aaaaa","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"call_bbbbb","function":{"name":"f","arguments":"{\"b\":2}"}}]}"#,
    ];
    let (with_ids, own) = (["call_aaaaa", "call_bbbbb"], ["call_Jo1_3_0", "call_Jo1_3_1"]);
    let change = |from: &str, to: &str| usual.map(|delta| delta.replace(from, to));
    let strip_ids = |deltas: [String; 4]| {
        deltas.map(|delta| delta.replace("\"id\":\"call_aaaaa\",", "").replace("\"id\":\"call_bbbbb\",", ""))
    };
    let no_index = usual.map(|delta| delta.replace("\"index\":0,", "").replace("\"index\":1,", ""));
    let interleaved = [usual[0], usual[3], usual[1], usual[2]].map(str::to_owned);
    for (deviation, deltas_sent, ids) in [
        ("nothing", usual.map(str::to_owned), with_ids),
        ("interleaved", interleaved, with_ids),
        ("gaps", change("\"index\":1", "\"index\":7"), with_ids),
        ("indices as texts", change("\"index\":1", "\"index\":\"1\""), with_ids),
        ("no indices", no_index.clone(), with_ids),
        ("all the same index", change("\"index\":1", "\"index\":0"), with_ids),
        ("no ids", strip_ids(usual.map(str::to_owned)), own),
        ("empty ids", change("call_aaaaa", "").map(|delta| delta.replace("call_bbbbb", "")), own),
        ("the same id twice", change("bbbbb", "aaaaa"), ["call_aaaaa", own[1]]),
        ("neither index nor id", strip_ids(no_index), own),
        ("same index and no id", strip_ids(change("\"index\":1", "\"index\":0")), own),
        ("numbers as ids", change("call_aaaaa", "0").map(|delta| delta.replace("call_bbbbb", "1")), own),
        ("names repeated", change("{\"arguments\":", "{\"name\":\"f\",\"arguments\":"), with_ids),
        (
            "ids repeated",
            usual.map(|delta| delta.replace("0,\"func", "0,\"id\":\"call_aaaaa\",\"func")),
            with_ids,
        ),
    ] {
        let pieces: Vec<&str> = deltas_sent.iter().map(String::as_str).collect();
        let reply = stream(&deltas(&pieces)).0.unwrap();
        let call = |id: &str, args: &str| (id.to_owned(), "f".to_owned(), args.to_owned());
        assert_eq!(calls(&reply), [call(ids[0], "{\"a\":1}"), call(ids[1], "{\"b\":2}")], "{deviation}");
        assert_eq!(reply.finish, FinishReason::Calls, "{deviation}");
    }
    let (_, received) = stream(&deltas(&usual));
    assert_eq!(received, "<0 f ><0 - {\"a\"><0 - :1}><1 f {\"b\":2}>");
}

/// Each is a call: neither their id nor an index tells them apart, but they are whole.
#[test]
fn whole_calls_with_one_id_and_no_index_are_several() {
    let piece = |tool: &str, args: &str| {
        let function = json!({"name": tool, "arguments": args});
        json!({"tool_calls": [{"id": "call_aaaaa", "function": function}]}).to_string()
    };
    let first = piece("f", r#"{"a":1}"#);
    for (tool, sent, args) in [
        ("f", r#"{"b":2}"#, r#"{"b":2}"#),
        ("f", r#"{"a":1}"#, r#"{"a":1}"#),
        ("g", "{}", "{}"),
        ("g", "", "{}"),
    ] {
        let (reply, received) = stream(&deltas(&[&first, &piece(tool, sent)]));
        let call = |id: &str, tool: &str, args: &str| (id.to_owned(), tool.to_owned(), args.to_owned());
        let expected = [call("call_aaaaa", "f", r#"{"a":1}"#), call("call_Jo1_3_1", tool, args)];
        assert_eq!(calls(&reply.unwrap()), expected, "{tool} {sent}");
        assert_eq!(received, format!(r#"<0 f {{"a":1}}><1 {tool} {sent}>"#));
    }
    // A call whose id and name are repeated is one.
    for rest in [&[piece("f", "")][..], &[piece("f", ""), piece("f", "")]] {
        let pieces: Vec<&str> = [first.as_str()].into_iter().chain(rest.iter().map(String::as_str)).collect();
        assert_eq!(calls(&stream(&deltas(&pieces)).0.unwrap()).len(), 1, "{rest:?}");
    }
    let thirds = [r#"{"a":"#, r#"{"b":"#, "{}}}"].map(|args| piece("f", args));
    let reply = stream(&deltas(&thirds.each_ref().map(String::as_str))).0.unwrap();
    assert_eq!(calls(&reply)[0].2, r#"{"a":{"b":{}}}"#);
}

#[test]
fn ids_that_were_used_before_are_replaced() {
    let call = |id: &str| Part::ToolCall(ToolCall { id: id.into(), tool: "f".into(), args: json!({}) });
    let answer = |id: &str| Entry::Tool { id: id.into(), tool: "f".into(), result: ToolResult::done("x") };
    let (given, own) = ("call_given_before", "call_Jo1_3_0");
    let entries = [Entry::own(vec![call(given), call(own)]), answer(given), answer(own)];
    let body = deltas(&[r#"{"tool_calls":[{"index":0,"id":"call_given_before","function":{"name":"f"}}]}"#]);
    let reply = stream_after(&entries, &[body.as_bytes()]).0.unwrap();
    assert_eq!(calls(&reply)[0].0, "call_Jo1_3_0_2");
}

#[test]
fn arguments_that_are_no_object_are_kept_as_text() {
    for (sent, kept) in [
        ("", json!({})),
        ("{\"a\":", json!("{\"a\":")),
        ("[1]", json!("[1]")),
        ("hi", json!("hi")),
        ("{}]", json!("{}]")),
    ] {
        let function = json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": sent}}]});
        let reply = stream(&deltas(&[&function.to_string()])).0.unwrap();
        assert_eq!(calls(&reply)[0].2, kept.to_string());
    }
    let nameless = r#"{"tool_calls":[{"index":0},{"index":1,"function":{"arguments":"{}"}}]}"#;
    let reply = stream(&deltas(&[nameless])).0.unwrap();
    assert_eq!((calls(&reply).len(), reply.finish), (1, FinishReason::Calls), "a call without a name is one");
    let old = [
        r#"{"function_call":{"name":"f","arguments":"{\"a\""}}"#,
        r#"{"function_call":{"arguments":":1}"}}"#,
    ];
    assert_eq!(calls(&stream(&deltas(&old)).0.unwrap())[0].2, "{\"a\":1}");
}

/// What can be parsed before the end need not be the whole: gateways begin with the empty object of Anthropic's first event.
#[test]
fn an_empty_object_before_the_pieces_of_another_is_no_part_of_it() {
    let read = |args: &[&str], repeats: bool| {
        let piece = |(nth, args): (usize, &&str)| {
            let call = match nth == 0 || repeats {
                true => json!({"index": 0, "id": "call_aaaaa", "function": {"name": "f", "arguments": args}}),
                false => json!({"index": 0, "function": {"arguments": args}}),
            };
            json!({"tool_calls": [call]}).to_string()
        };
        let all: Vec<String> = args.iter().enumerate().map(piece).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        calls(&stream(&deltas(&all)).0.unwrap()).into_iter().map(|(_, _, args)| args).collect::<Vec<_>>()
    };
    for args in [&["{}", "{\"a\":", "1}"][..], &["{}", " {\"a\":1}"], &["{\"a\":1}"]] {
        assert_eq!([false, true].map(|repeats| read(args, repeats)), [["{\"a\":1}"]; 2], "{args:?}");
    }
    assert_eq!(read(&["{}"], false), ["{}"]);
}

#[test]
fn reasoning_comes_by_any_name_and_inside_tags() {
    for pieces in [
        [
            r#"{"reasoning_content":"h"}"#,
            r#"{"reasoning_content":"m","content":null}"#,
            r#"{"content":"yes"}"#,
        ],
        [
            r#"{"reasoning":"h","content":""}"#,
            r#"{"reasoning":"m"}"#,
            r#"{"content":"yes","reasoning":null}"#,
        ],
        [r#"{"reasoning":"h","reasoning_content":"h"}"#, r#"{"reasoning":"m"}"#, r#"{"content":"yes"}"#],
        [r#"{"content":"<think>h"}"#, r#"{"content":"m</think>\n\n"}"#, r#"{"content":"yes"}"#],
        [r#"{"content":"\n<thi"}"#, r#"{"content":"nk>hm</thin"}"#, r#"{"content":"k>\nyes"}"#],
    ] {
        let (reply, received) = stream(&deltas(&pieces));
        assert_eq!(reply.unwrap().parts, [Part::Thought("hm".into()), Part::text("yes")], "{pieces:?}");
        assert!(received.ends_with("[yes]") && received.starts_with('('), "{received}");
    }
}

/// P19.
#[test]
fn texts_and_thoughts_around_calls_keep_their_order() {
    let call = r#"{"tool_calls":[{"index":0,"id":"call_abcde","function":{"name":"f","arguments":"{}"}}]}"#;
    let think = r#"{"reasoning_content":"a"}"#;
    let (again, say, end) = (r#"{"reasoning":"c"}"#, r#"{"content":"b"}"#, r#"{"content":"d"}"#);
    // Empty pieces and white space begin no part.
    let (empty, blank) = (r#"{"content":"","reasoning_content":""}"#, r#"{"content":"\n"}"#);
    for pieces in [
        &[think, say, call, again, end][..],
        &[empty, think, empty, say, empty, call, empty, again, empty, end],
    ] {
        let (reply, received) = stream(&deltas(pieces));
        let reply = reply.unwrap();
        assert_eq!(calls(&reply).len(), 1);
        let [first, text, Part::ToolCall(_), second, last] = &reply.parts[..] else { panic!("{reply:?}") };
        assert_eq!([first, second], [&Part::Thought("a".into()), &Part::Thought("c".into())]);
        assert_eq!([text, last], [&Part::text("b"), &Part::text("d")]);
        assert_eq!(received.replace("[]", "").replace("()", ""), "(a)[b]<0 f {}>(c)[d]");
    }
    let thought = |text: &str| Part::Thought(text.into());
    for (pieces, parts) in [
        // Text is one up to a call, as in a whole reply.
        (&[think, say, again, blank, end][..], vec![thought("a"), Part::text("b\nd"), thought("c")]),
        (&[think, say, again, end][..], vec![thought("a"), Part::text("bd"), thought("c")]),
        // White space before reasoning is no text.
        (&[blank, think, say][..], vec![thought("a"), Part::text("b")]),
    ] {
        assert_eq!(stream(&deltas(pieces)).0.unwrap().parts, parts);
    }
}

// The reply was cut off in the middle of a thought: no word of it is an answer.
#[test]
fn a_thought_that_never_ends_is_a_thought_to_its_end() {
    let (reply, received) =
        stream(&deltas(&[r#"{"content":"<thi"}"#, r#"{"content":"nk>hm, {}"}"#, r#"{"content":"</thi"}"#]));
    assert_eq!(reply.unwrap().parts, [Part::Thought("hm, {}</thi".into())]);
    assert_eq!(received, "(hm, {})(</thi)");
}

#[test]
fn reasoning_that_was_streamed_as_text_is_retracted() {
    let (reply, received) = stream(&deltas(&[r#"{"content":"hm</thi"}"#, r#"{"content":"nk>\n\nyes"}"#]));
    assert_eq!(reply.unwrap().parts, [Part::Thought("hm".into()), Part::text("yes")]);
    assert_eq!(received, "[hm</thi][nk>\n\nyes]Restart(hm)[yes]");
    let call = r#"{"content":null,"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}"#;
    let (reply, received) = stream(&deltas(&[r#"{"content":"hm</think>"}"#, call]));
    assert_eq!((reply.unwrap().parts.len(), &*received), (2, "[hm</think>]<0 f {}>Restart(hm)<0 f {}>"));
}

#[test]
fn finish_reasons_are_understood_and_unknown_ones_are_unknown() {
    for (reason, expected) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("tool_calls", FinishReason::Calls),
        ("function_call", FinishReason::Calls),
        ("content_filter", FinishReason::Filter),
        ("weird", FinishReason::Unknown),
    ] {
        let body = USUAL.replace("\"stop\"", &format!("\"{reason}\""));
        assert_eq!(stream(&body).0.unwrap().finish, expected, "{reason}");
    }
    let (reply, received) = stream(&deltas(&[r#"{"refusal":"I can"}"#, r#"{"refusal":"not"}"#]));
    let reply = reply.unwrap();
    assert_eq!(
        (reply.parts, reply.finish, &*received),
        (text("I cannot"), FinishReason::REFUSED, "[I can][not]")
    );
}

/// P77, as by Responses.
#[test]
fn a_refusal_is_one_unless_there_are_calls() {
    let call = r#"{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}"#;
    let reply = stream(&deltas(&[r#"{"refusal":"I cannot."}"#, call])).0.unwrap();
    assert_eq!((reply.parts.len(), reply.finish), (2, FinishReason::Calls));
    let message = r#"{"message":{"refusal":"I cannot.","tool_calls":null},"finish_reason":"stop"}"#;
    let reply = whole(&format!(r#"{{"choices":[{message}]}}"#)).0.unwrap();
    assert_eq!((reply.parts, reply.finish), (text("I cannot."), FinishReason::REFUSED));
}

#[test]
fn an_empty_reply_is_a_reply() {
    let reply = stream(&deltas(&[r#"{"content":" \n"}"#])).0.unwrap();
    assert_eq!(reply.parts, []);
    assert_eq!(whole(r#"{"choices":[{"message":{"content":null}}]}"#).0.unwrap().parts, []);
}

#[test]
fn errors_inside_are_errors() {
    let inside = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
    for body in [
        format!("data: {inside}\n\n"),
        inside.to_owned(),
        r#"{"error":"overloaded"}"#.to_owned(),
        r#"{"object":"error","message":"overloaded"}"#.to_owned(),
        r#"{"detail":"overloaded"}"#.to_owned(),
    ] {
        for reply in [stream(&body).0, whole(&body).0] {
            assert!(
                matches!(&reply, Err(DecodeError::Error(json)) if json.contains("overloaded")),
                "{body}: {reply:?}"
            );
        }
    }
    let begun = USUAL.split("data: {\"choices\":[{\"index\":0,\"delta\":{}").next().unwrap();
    let body = format!("{begun}event: error\ndata: {inside}\n\n");
    for reply in [stream(&body).0, whole(&body).0] {
        assert!(
            matches!(&reply, Err(DecodeError::BrokenOff(json)) if json.contains("overloaded")),
            "{reply:?}"
        );
    }
}

#[test]
fn what_is_no_reply_differs_from_one_that_broke_off() {
    let first = &deltas(&[r#"{"content":"a"}"#]).replace("data: [DONE]\n\n", "");
    for (body, expected) in [
        ("", "empty"),
        ("\n\n", "empty"),
        // As OpenRouter keeps a connection alive until the provider behind it replies.
        (": ping\n\n", "cut"),
        (first.as_str(), "cut"),
        (&first[..first.len() - 9], "cut"),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"a", "cut"),
        ("data: {\"choices\":[]}\n\n", "cut"),
        ("data: [DONE]\n\n", "no choices"),
        ("<html>no</html>", "no json"),
        ("data: pong\n\n", "no json"),
        ("data: {\"choices\":7}\n\n", "no json"),
    ] {
        let seen = match stream(body).0 {
            Err(DecodeError::Empty) => "empty",
            Err(DecodeError::Cut) => "cut",
            Err(DecodeError::Unreadable { why, .. }) if why.contains("`choices`") => "no choices",
            Err(DecodeError::Unreadable { why, .. }) if why.contains("not valid JSON") => "no json",
            other => panic!("{body:?}: {other:?}"),
        };
        assert_eq!(seen, expected, "{body:?}");
    }
    assert!(matches!(whole(r#"{"choices":[]}"#).0, Err(DecodeError::Unreadable { .. })));
    assert!(matches!(whole(r#"{"choices":[{"message":{"content":"a"}"#).0, Err(DecodeError::Cut)));
}

#[test]
fn a_stream_that_ends_within_a_line_or_a_letter_was_cut_wherever_it_ends() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"für \"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{\"content\":\"dich ü\"}}]}\n\n\
                data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let whole = body.find("stop\"}]}").unwrap() + "stop\"}]}".len();
    for end in "data: {".len()..body.len() {
        let reply = stream_after(&[], &[body.as_bytes().get(..end).unwrap()]).0;
        match end < whole {
            true => assert_eq!(reply, Err(DecodeError::Cut), "cut after {end} bytes"),
            false => assert_eq!(reply.unwrap().parts, text("für dich ü"), "cut after {end} bytes"),
        }
    }
}

#[test]
fn a_reply_without_an_end_is_refused() {
    let piece = json!({"choices": [{"delta": {"content": "x".repeat(1 << 20)}}]});
    let event = format!("data: {piece}\n\n");
    let pieces: Vec<&[u8]> = (0..40).map(|_| event.as_bytes()).collect();
    assert!(matches!(stream_after(&[], &pieces).0, Err(DecodeError::TooLong(_))));
    let line = format!("data: {}", "1,".repeat(1 << 19));
    let lines = format!("data: {{\"choices\":[\n{}", format!("{line}\n").repeat(40));
    assert!(matches!(stream(&lines).0, Err(DecodeError::TooLong(_))));
    let call =
        |n: usize| json!({"choices": [{"delta": {"tool_calls": [{"index": n, "function": {"name": "f"}}]}}]});
    let many: String = (0..2000).map(|n| format!("data: {}\n\n", call(n))).collect();
    assert!(matches!(stream(&many).0, Err(DecodeError::TooLong(_))));
}

#[test]
fn letters_that_were_cut_by_the_server_do_not_stop_the_reply() {
    let mut body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xc3\"}}]}\n\n".to_vec();
    body.extend_from_slice(b"data: [DONE]\n\n");
    assert_eq!(stream_after(&[], &[&body]).0.unwrap().parts, text("a\u{fffd}"));
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_reply(cuts in proptest::collection::vec(0..USUAL.len(), 0..20)) {
        let mut cuts = cuts;
        cuts.extend([0, USUAL.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &USUAL.as_bytes()[cut[0]..cut[1]]).collect();
        prop_assert_eq!(stream_after(&[], &pieces), stream(USUAL));
    }

    #[test]
    fn any_bytes_are_a_reply_or_an_error(
        pieces in proptest::collection::vec(prop_oneof![
            Just(b"data: ".to_vec()), Just(b"\n".to_vec()), Just(b"{\"choices\":[{\"delta\":{\"content\":".to_vec()),
            Just(b"\"x\"".to_vec()), Just(b"null".to_vec()), Just(b"{}".to_vec()), Just(b"[".to_vec()), Just(b"}}]}".to_vec()),
            Just(b"{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":".to_vec()), Just(b"-1".to_vec()), Just(b"1e999".to_vec()),
            Just(b"{\"usage\":{\"prompt_tokens\":".to_vec()), Just(b"}}".to_vec()), proptest::collection::vec(any::<u8>(), 0..6),
        ], 0..12)) {
        let body = pieces.concat();
        let _ = stream_after(&[], &[&body]);
        let _ = read_whole::<ChatCompletions>("Jo-1", &[], &body);
    }
}
