use polylogue_core::{Entry, Part, Reply, Usage};
use serde_json::json;

use super::*;
use crate::wire::decode_support::{Read, read_stream, read_whole};
use crate::wire::draft::Decoded;

fn stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    read_stream::<Responses>("Jo-1", &[Entry::user("Hi.")], pieces)
}

fn whole(body: &Value) -> Result<Decoded, DecodeError> {
    read_whole::<Responses>("Jo-1", &[Entry::user("Hi.")], body.to_string().as_bytes()).0
}

/// A stream of these events, whose types are their first fields.
fn events(events: &[Value]) -> String {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Where?"},
           {"type": "summary_text", "text": "In Oslo."}], "encrypted_content": "secret"})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "phase": "commentary",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn function_call(args: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "status": "completed", "call_id": "call_12345678",
           "name": "look", "arguments": args})
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({"object": "response", "status": status, "output": output, "error": null, "incomplete_details": null,
           "text": {"format": {"type": "text"}}, "usage": {"input_tokens": 90, "output_tokens": 30,
           "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 20,
           "cache_write_tokens_details": {"ttl_30m_tokens": 5, "ttl_12h_tokens": 15}},
           "output_tokens_details": {"reasoning_tokens": 10}}})
}

const ARGS: &str = r#"{"b": 1.0, "a":"é"}"#;

fn output() -> [Value; 3] {
    [reasoning(), message("I look. ☀"), function_call(ARGS)]
}

fn usual_events() -> Vec<Value> {
    let [reasoning, message, call] = output();
    let mut begun = reasoning.clone();
    begun["summary"] = json!([]);
    begun["encrypted_content"] = json!("incomplete");
    let summary = |nth: u64, delta: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": nth, "delta": delta});
    vec![
        json!({"type": "response.created", "response": response("in_progress", &[])}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
        summary(0, "Whe"),
        summary(0, "re?"),
        summary(1, "In Oslo."),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": super::tests::message("")}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "I look. "}),
        json!({"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "☀"}),
        json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "I look. ☀"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": function_call("")}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": r#"{"b": 1.0,"#}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": r#" "a":"é"}"#}),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": ARGS}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
        json!({"type": "response.completed", "response": response("completed", &output())}),
    ]
}

fn assert_usual(decoded: &Decoded, case: &str) {
    let Decoded { reply: Reply { parts, finish, usage, verbatim, .. }, seals, .. } = decoded;
    let [Part::Thought(thought), Part::Text(text), Part::ToolCall(call)] = &parts[..] else {
        panic!("{case}: {parts:?}")
    };
    assert_eq!((&**thought, &**text), ("Where?\n\nIn Oslo.", "I look. ☀"), "{case}");
    assert_eq!((&*call.id, &*call.tool, &call.args), ("call_12345678", "look", &json!({"b": 1.0, "a": "é"})));
    assert_eq!(&*verbatim.as_ref().unwrap().arguments[0].text, ARGS, "{case}");
    assert_eq!(*finish, FinishReason::Calls, "{case}");
    let (long, written) = (Some(15), Some(20));
    let expected = Usage {
        input: Some(90),
        output: Some(30),
        cached: Some(40),
        written,
        written_long: long,
        audio: None,
        reasoning: Some(10),
    };
    assert_eq!(*usage, expected, "{case}");
    let data: Vec<&Value> = seals.iter().map(|seal| &seal.data).collect();
    let ids = [&reasoning(), &json!({"id": "msg_1", "phase": "commentary"}), &json!({"id": "fc_1"})];
    assert_eq!(data, ids, "{case}");
}

/// P19, P70, P72, P83: parts in order, seals of the final items, usage.
#[test]
fn a_stream_is_read_with_its_parts_in_order_and_their_seals() {
    let (decoded, deltas) = stream([events(&usual_events()).as_bytes()]);
    assert_usual(&decoded.unwrap(), "streamed");
    let expected = "(Whe)(re?)(\n\n)(In Oslo.)[I look. ][☀]<0 look ><0 - {\"b\": 1.0,><0 -  \"a\":\"é\"}>";
    assert_eq!(deltas, expected);
    assert_usual(&whole(&response("completed", &output())).unwrap(), "whole");
}

/// P72: the id of an item goes back where the API asks for it, after reasoning; a phase always goes back.
#[test]
fn without_reasoning_only_a_phase_seals() {
    let [_, mut message, call] = output();
    let seals = |output: &[Value]| whole(&response("completed", output)).unwrap().seals;
    assert_eq!(seals(&[message.clone(), call.clone()]).len(), 1);
    message["phase"] = Value::Null;
    assert_eq!(seals(&[message.clone(), call.clone()]), []);
    assert_eq!(seals(&[reasoning(), message, call]).len(), 3);
}

/// P2: delivered in two pieces at every position.
#[test]
fn a_stream_split_at_every_byte_is_the_same_reply() {
    let body = events(&usual_events());
    for at in 0..body.len() {
        let (first, rest) = body.as_bytes().split_at(at);
        assert_usual(&stream([first, rest]).0.unwrap(), &format!("split at {at}"));
    }
}

/// P3: a stream that ends before its end mark is a broken connection at every byte.
#[test]
fn a_stream_cut_at_every_byte_is_no_reply() {
    let body = events(&usual_events());
    let end = body.trim_end().len();
    for at in 0..end {
        let (decoded, _) = stream([body.as_bytes().get(..at).unwrap()]);
        let cut = matches!(decoded, Err(DecodeError::Cut | DecodeError::Empty));
        assert!(cut, "cut at {at}: {decoded:?}");
    }
    assert_usual(&stream([body.trim_end().as_bytes()]).0.unwrap(), "without line ends");
}

/// P4: unknown events, items and fields change nothing.
#[test]
fn what_is_unknown_is_skipped() {
    let mut all = usual_events();
    for at in (0..=all.len() - 1).rev() {
        all.insert(
            at,
            json!({"type": "response.news", "item": {"type": "news"}, "delta": "x", "output_index": 9}),
        );
    }
    assert_usual(&stream([events(&all).as_bytes()]).0.unwrap(), "unknown events");
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let [reasoning, message, call] = output();
    let decoded = whole(&response("completed", &[search, reasoning, message, call])).unwrap();
    assert_usual(&decoded, "unknown item");
}

/// P75: servers that send pieces, only whole texts and arguments, only whole items, or all at the end.
#[test]
fn every_way_to_send_the_items_gives_the_same_reply() {
    for left_out in
        [&[".delta"][..], &[".delta", "_text.done", "arguments.done"], &["output_item", "delta", "done"]]
    {
        let is_kept =
            |event: &Value| !left_out.iter().any(|name| event["type"].as_str().unwrap().contains(name));
        let kept: Vec<Value> = usual_events().into_iter().filter(is_kept).collect();
        assert_usual(&stream([events(&kept).as_bytes()]).0.unwrap(), &format!("{left_out:?}"));
    }
}

/// P2, P75: pieces of several items that alternate go to their own items, and what was shown in the end is the reply.
#[test]
fn items_whose_pieces_alternate_are_as_if_they_came_in_order() {
    let usual = usual_events();
    // All items begin; then come their pieces, and then the whole items, of which the last two change places.
    let order = [0, 1, 6, 11, 7, 2, 12, 3, 8, 13, 4, 9, 14, 5, 15, 10, 16];
    let mixed: Vec<Value> = order.into_iter().map(|at: usize| usual[at].clone()).collect();
    assert_eq!(mixed.len(), usual.len());
    let (decoded, deltas) = stream([events(&mixed).as_bytes()]);
    assert_usual(&decoded.unwrap(), "alternating");
    let shown = format!("Restart(Where?\n\nIn Oslo.)[I look. ☀]<0 look {ARGS}>");
    assert!(deltas.ends_with(&shown), "{deltas}");
}

/// P75.
#[test]
fn calls_whose_arguments_alternate_keep_their_own() {
    let call = |nth: usize, args: &str| {
        let mut call = function_call(args);
        (call["id"], call["call_id"]) = (json!(format!("fc_{nth}")), json!(format!("call_1234567{nth}")));
        call
    };
    let item = |kind: &str, nth: usize, args: &str| json!({"type": format!("response.output_item.{kind}"), "output_index": nth, "item": call(nth, args)});
    let piece = |nth: usize, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": nth, "delta": delta});
    let all = [
        item("added", 0, ""),
        piece(0, r#"{"at":"#),
        item("added", 1, ""),
        piece(1, r#"{"at":"#),
        piece(0, "0}"),
        piece(1, "1}"),
        item("done", 1, r#"{"at":1}"#),
        item("done", 0, r#"{"at":0}"#),
        json!({"type": "response.completed", "response": response("completed", &[])}),
    ];
    let (decoded, _) = stream([events(&all).as_bytes()]);
    let calls = decoded.unwrap().reply.calls();
    let found: Vec<(&str, &Value)> = calls.iter().map(|call| (&*call.id, &call.args)).collect();
    let (first, second) = (json!({"at": 0}), json!({"at": 1}));
    assert_eq!(found, [("call_12345670", &first), ("call_12345671", &second)]);
}

/// P76: why a response is incomplete.
#[test]
fn an_incomplete_response_tells_why() {
    for (reason, expected) in [
        (json!("max_output_tokens"), FinishReason::Length),
        (json!("content_filter"), FinishReason::Filter),
        (json!("a reason of tomorrow"), FinishReason::Unknown),
        (json!(null), FinishReason::Unknown),
    ] {
        let mut body = response("incomplete", &[message("I ")]);
        body["incomplete_details"] = json!({"reason": reason});
        assert_eq!(whole(&body).unwrap().reply.finish, expected);
        let event = json!({"type": "response.incomplete", "response": body});
        assert_eq!(stream([events(&[event]).as_bytes()]).0.unwrap().reply.finish, expected);
    }
}

/// P77: a refusal, and a refusal with calls, which counts as calls.
#[test]
fn a_refusal_is_one_unless_there_are_calls() {
    let mut refusal = message("");
    refusal["content"] = json!([{"type": "refusal", "refusal": "No."}]);
    let decoded = whole(&response("completed", std::slice::from_ref(&refusal))).unwrap();
    assert_eq!((decoded.reply.finish, decoded.reply.parts), (FinishReason::REFUSED, vec![Part::text("No.")]));
    let reply = whole(&response("completed", &[refusal, function_call("{}")])).unwrap().reply;
    assert_eq!((reply.calls().len(), reply.finish), (1, FinishReason::Calls));
}

/// P5, P78: errors, flat and nested, as events and in the end of a stream.
#[test]
fn errors_are_found_wherever_they_are() {
    let error = json!({"code": "rate_limit_exceeded", "message": "Slow down."});
    let failed = json!({"status": "failed", "output": [], "error": error});
    let flat =
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": null});
    for event in [
        flat,
        json!({"type": "error", "error": error}),
        json!({"type": "response.failed", "response": failed}),
    ] {
        let (decoded, _) = stream([events(&[event]).as_bytes()]);
        let Err(DecodeError::Error(json)) = decoded else { panic!("{decoded:?}") };
        assert_eq!(crate::error_body::ErrorBody::of(&json).status(), Some(429), "{json}");
    }
    for body in [
        json!({"error": error}),
        json!({"object": "response", "status": "failed", "output": [], "error": error}),
    ] {
        assert!(matches!(whole(&body), Err(DecodeError::Error(_))), "{body}");
    }
    assert!(matches!(whole(&response("in_progress", &[])), Err(DecodeError::Cut)));
}

/// P82: a call that stands for several.
#[test]
fn a_wrapper_of_parallel_calls_is_unpacked() {
    let uses = r#"{"tool_uses": [{"recipient_name": "functions.look", "parameters": {"at": "a"}},
                                 {"recipient_name": "functions.move", "parameters": {}}]}"#;
    let wrapper = |name: &str, args: &str| {
        let mut call = function_call(args);
        call["name"] = json!(name);
        whole(&response("completed", &[call])).unwrap().reply
    };
    for name in WRAPPERS {
        let reply = wrapper(name, uses);
        let calls: Vec<(String, String)> =
            reply.calls().iter().map(|call| (call.tool.clone(), call.args.to_string())).collect();
        let expected = [("look", r#"{"at":"a"}"#), ("move", "{}")].map(|(t, a)| (t.to_owned(), a.to_owned()));
        assert_eq!((calls, reply.finish), (expected.to_vec(), FinishReason::Calls));
    }
    // A tool may have that name.
    let own = wrapper("parallel", r#"{"lines": 2}"#);
    assert_eq!(
        (own.calls()[0].tool.as_str(), own.calls()[0].args.to_string()),
        ("parallel", r#"{"lines":2}"#.into())
    );
}

/// Without encrypted content, reasoning cannot be sent back, and neither can the ids of the items that need it.
#[test]
fn reasoning_that_cannot_come_back_seals_nothing() {
    let [mut reasoning, message, call] = output();
    reasoning["encrypted_content"] = json!(null);
    let decoded = whole(&response("completed", &[reasoning, message, call])).unwrap();
    assert_eq!((decoded.seals, decoded.reply.parts.len()), (Vec::new(), 3));
}

/// Reasoning without a summary is nothing to read, and has to come back all the same.
#[test]
fn reasoning_without_a_summary_keeps_its_place() {
    let mut hidden = reasoning();
    hidden["summary"] = json!([]);
    let decoded = whole(&response("completed", &[hidden.clone(), message("Yes.")])).unwrap();
    assert_eq!(decoded.reply.parts, [Part::Thought("".into()), Part::text("Yes.")]);
    assert_eq!(decoded.seals[0].data, hidden);
}

#[test]
fn no_more_of_the_input_is_from_a_cache_than_there_is() {
    let mut body = response("completed", &[message("Yes.")]);
    body["usage"]["input_tokens_details"] = json!({"cached_tokens": 500, "cache_write_tokens": 20});
    let usage = whole(&body).unwrap().reply.usage;
    assert_eq!((usage.input, usage.cached, usage.written), (Some(90), Some(90), Some(0)));
}
