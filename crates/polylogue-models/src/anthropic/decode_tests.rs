use polylogue_core::{Part, Reply, Seal, Usage, Verbatim};
use proptest::prelude::*;

use super::*;
use crate::wire::decode::Decoder;
use crate::wire::decode_support::{Read, read_stream, read_whole};
use crate::wire::draft::{DecodeError, Decoded};

fn in_pieces(pieces: &[&[u8]]) -> Read {
    read_stream::<Messages>("Jo-1", &[], pieces)
}

fn stream(events: &[Value]) -> Read {
    in_pieces(&[body(events).as_bytes()])
}

fn whole(message: &Value) -> Read {
    read_whole::<Messages>("Jo-1", &[], message.to_string().as_bytes())
}

fn body(events: &[Value]) -> String {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

fn start() -> Value {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7, "output_tokens": 1});
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage}})
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> [Value; 2] {
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 34}});
    [stop, json!({"type": "message_stop"})]
}

/// Events of one text, and these.
fn text_and(events: Vec<Value>) -> Vec<Value> {
    let text = [
        start(),
        json!({"type": "ping"}),
        begin(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "Hello"})),
        end(0),
    ];
    text.into_iter().chain(events).collect()
}

/// A reply of every kind of block.
fn all_kinds() -> Vec<Value> {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]});
    let mut events = vec![
        start(),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "so."})),
        delta(0, json!({"type": "signature_delta", "signature": "si"})),
        delta(0, json!({"type": "signature_delta", "signature": "g1"})),
        end(0),
        begin(1, json!({"type": "redacted_thinking", "data": "secret"})),
        end(1),
        begin(2, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(2, json!({"type": "signature_delta", "signature": "sig2"})),
        end(2),
        json!({"type": "ping"}),
        begin(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "text_delta", "text": "I look \u{2600}"})),
        delta(3, json!({"type": "citations_delta", "citation": {"cited_text": "c"}})),
        end(3),
        begin(4, search),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{\"query\":"})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "\"x\"}"})),
        end(4),
        begin(5, found),
        end(5),
        begin(6, json!({"type": "tool_use", "id": "toolu_0001", "name": "look", "input": {}})),
        delta(6, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(6, json!({"type": "input_json_delta", "partial_json": "{\"b\": 1.0,"})),
        delta(6, json!({"type": "input_json_delta", "partial_json": " \"a\": 2}"})),
        end(6),
        begin(7, json!({"type": "tool_use", "id": "toolu_0002", "name": "now", "input": {}})),
        end(7),
        begin(8, json!({"type": "tool_use", "id": "toolu_0003", "name": "go", "input": {"to": "x"}})),
        end(8),
        begin(9, json!({"type": "text", "text": "Then."})),
        end(9),
    ];
    events.extend(stop("tool_use"));
    events
}

fn seals(reply: &Decoded) -> Vec<(usize, Value)> {
    reply.seals.iter().map(|seal| (seal.part, seal.data.clone())).collect()
}

// P19, P36, P37, P38, P39, P40.
#[test]
fn blocks_keep_their_order_and_their_seals() {
    let (reply, received) = stream(&all_kinds());
    let reply = reply.unwrap();
    let calls: Vec<_> =
        reply.reply.calls().into_iter().map(|call| (call.id, call.tool, call.args.to_string())).collect();
    let parts = &reply.reply.parts;
    assert_eq!(parts[0], Part::Thought("Hm so.".into()));
    assert_eq!((&parts[1], &parts[2]), (&Part::Thought("".into()), &Part::Thought("".into())));
    assert_eq!(parts[3], Part::text("I look \u{2600}"));
    assert_eq!((&parts[4], &parts[5], &parts[9]), (&Part::text(""), &Part::text(""), &Part::text("Then.")));
    let call = |id: &str, tool: &str, args: &str| (id.into(), tool.into(), args.into());
    assert_eq!(
        calls,
        [
            call("toolu_0001", "look", "{\"b\":1.0,\"a\":2}"),
            call("toolu_0002", "now", "{}"),
            call("toolu_0003", "go", "{\"to\":\"x\"}")
        ]
    );
    let raw = &reply.reply.verbatim.as_ref().unwrap().arguments[0];
    assert_eq!((raw.part, &*raw.text), (6, "{\"b\": 1.0, \"a\": 2}"));
    let search =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]});
    assert_eq!(
        seals(&reply),
        [
            (0, json!({"signature": "sig1"})),
            (1, json!({"redacted": "secret"})),
            (2, json!({"signature": "sig2"})),
            (3, json!({"citations": [{"cited_text": "c"}]})),
            (4, json!({"block": search})),
            (5, json!({"block": found})),
        ]
    );
    assert_eq!(reply.reply.finish, FinishReason::Calls);
    let usage =
        Usage { input: Some(117), output: Some(34), cached: Some(100), written: Some(7), ..Usage::default() };
    assert_eq!(reply.reply.usage, usage);
    assert_eq!(
        received,
        "(Hm )(so.)[I look \u{2600}]<0 look ><0 - {\"b\": 1.0,><0 -  \"a\": 2}><1 now ><2 go ><2 - {\"to\":\"x\"}>[Then.]"
    );
}

#[test]
fn a_whole_message_is_the_same_reply() {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use", "stop_sequence": null,
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_0001", "name": "look", "input": {"b": 1.0, "a": [2]}},
            {"type": "tool_use", "id": "toolu_0002", "name": "now", "input": {}},
        ],
        "usage": {"input_tokens": 12, "output_tokens": 34},
    });
    let mut events = vec![start()];
    for (index, block) in (0..).zip(message["content"].as_array().unwrap()) {
        events.extend([begin(index, block.clone()), end(index)]);
    }
    events.extend(stop("tool_use"));
    events[0]["message"]["usage"] = message["usage"].clone();
    let (one, other) = (whole(&message), stream(&events));
    assert_eq!(one, other);
    let (reply, received) = (one.0.unwrap(), one.1);
    assert_eq!((reply.reply.parts.len(), &reply.reply.finish), (4, &FinishReason::Calls));
    assert_eq!((reply.reply.usage.input, reply.reply.usage.output), (Some(12), Some(34)));
    assert_eq!(received, "(Hm.)[I look.]<0 look ><0 - {\"b\":1.0,\"a\":[2]}><1 now >");
    let in_lines = in_pieces(&[message.to_string().as_bytes()]);
    assert_eq!(in_lines.0.unwrap(), reply, "it was asked for a stream");
}

// P3, P4.
#[test]
fn a_stream_ends_by_its_mark_and_what_is_unknown_changes_nothing() {
    let events = text_and(stop("end_turn").into());
    let (reply, _) = stream(&events);
    let reply = reply.unwrap();
    assert_eq!(
        (reply.reply.parts.clone(), &reply.reply.finish),
        (vec![Part::text("Hello")], &FinishReason::Stop)
    );
    for kept in 1..events.len() {
        assert_eq!(stream(&events[..kept]).0, Err(DecodeError::Cut), "{kept} events");
    }
    let unknown = [
        json!({"type": "content_block_delta", "index": 7, "delta": {"type": "new_delta", "text": "x"}}),
        json!({"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "text": "x"}}),
        json!({"type": "content_block_delta", "index": 0}),
        json!({"type": "content_block_start", "index": 9}),
        json!({"type": "content_block_stop", "index": 9}),
        json!({"type": "new_event", "content_block": 7, "delta": {"type": []}}),
        json!({"type": "message_delta", "delta": {"stop_reason": null}}),
    ];
    for (at, event) in (1..events.len()).flat_map(|at| unknown.iter().map(move |event| (at, event))) {
        let mut with = events.clone();
        with.insert(at, event.clone());
        assert_eq!(stream(&with).0.unwrap(), reply, "{event} at {at}");
    }
}

/// R10: gateways leave out where blocks begin and end. Nothing of them is lost, and the order stays.
#[test]
fn pieces_of_blocks_without_a_beginning_are_kept() {
    let text = |index: u64, text: &str| delta(index, json!({"type": "text_delta", "text": text}));
    let think = |index: u64, text: &str| delta(index, json!({"type": "thinking_delta", "thinking": text}));
    let sign = |index: u64| delta(index, json!({"type": "signature_delta", "signature": "sig"}));
    let no_index = |event: Value| json!({"type": event["type"], "delta": event["delta"]});
    let block = || begin(0, json!({"type": "text", "text": ""}));
    let thought = |text: &str| Part::Thought(text.into());
    for (events, parts, shown) in [
        (vec![text(0, "Hel"), text(0, "lo")], vec![Part::text("Hello")], "[Hel][lo]"),
        (vec![no_index(text(0, "Hel")), no_index(text(0, "lo"))], vec![Part::text("Hello")], "[Hel][lo]"),
        (vec![think(0, "Hm."), end(0), text(1, "Hi")], vec![thought("Hm."), Part::text("Hi")], "(Hm.)[Hi]"),
        (vec![think(0, "Hm."), text(0, "Hi")], vec![thought("Hm."), Part::text("Hi")], "(Hm.)[Hi]"),
        // After the end of its block, and after the beginning of another one.
        (vec![block(), text(0, "a"), end(0), text(0, "b")], vec![Part::text("a"), Part::text("b")], "[a][b]"),
        (
            vec![block(), text(0, "a"), text(1, "b"), text(0, "c")],
            vec![Part::text("a"), Part::text("b"), Part::text("c")],
            "[a][b][c]",
        ),
        // A signature belongs to no other block.
        (vec![text(0, "a"), sign(1)], vec![Part::text("a")], "[a]"),
    ] {
        let all: Vec<Value> = [start()].into_iter().chain(events).chain(stop("end_turn")).collect();
        let (reply, received) = stream(&all);
        let reply = reply.unwrap();
        assert_eq!((reply.reply.parts, &*received), (parts, shown), "{all:?}");
        assert_eq!(reply.seals, [], "{all:?}");
    }
    let signed: Vec<Value> =
        [start(), think(0, "Hm."), sign(0), text(1, "Hi")].into_iter().chain(stop("end_turn")).collect();
    assert_eq!(seals(&stream(&signed).0.unwrap()), [(0, json!({"signature": "sig"}))]);
}

#[test]
fn arguments_belong_to_the_call_of_their_index() {
    let call = |index: u64, tool: &str| {
        begin(
            index,
            json!({"type": "tool_use", "id": format!("toolu_000{index}"), "name": tool, "input": {}}),
        )
    };
    let args =
        |index: u64, args: &str| delta(index, json!({"type": "input_json_delta", "partial_json": args}));
    for (events, expected) in [
        (
            vec![call(0, "f"), call(1, "g"), args(0, "{\"a\":"), args(1, "{\"b\":2}"), args(0, "1}")],
            vec![("f", "{\"a\":1}"), ("g", "{\"b\":2}")],
        ),
        (vec![call(0, "f"), end(0), args(0, "{\"a\":1}")], vec![("f", "{\"a\":1}")]),
        // Its name is lost, and the model is prompted to write it again.
        (vec![args(0, "{\"a\":"), args(0, "1}")], vec![("", "{\"a\":1}")]),
        (vec![args(0, "")], vec![]),
    ] {
        let all: Vec<Value> = [start()].into_iter().chain(events).chain(stop("tool_use")).collect();
        let calls = stream(&all).0.unwrap().reply.calls();
        let made: Vec<_> = calls.iter().map(|call| (&*call.tool, call.args.to_string())).collect();
        let expected: Vec<_> = expected.into_iter().map(|(tool, args)| (tool, args.to_owned())).collect();
        assert_eq!(made, expected, "{all:?}");
    }
}

// P41.
#[test]
fn what_was_written_before_a_refusal_is_no_reply() {
    let mut refusal = stop("refusal");
    refusal[0]["delta"]["stop_details"] =
        json!({"type": "refusal", "category": "cyber", "explanation": "No."});
    let (reply, received) = stream(&text_and(refusal.into()));
    let reply = reply.unwrap().reply;
    let expected = FinishReason::Refused { category: Some("cyber".into()), explanation: Some("No.".into()) };
    assert_eq!((reply.parts, reply.finish, &*received), (vec![], expected, "[Hello]Restart"));
    let bare = json!({"type": "message", "content": [], "stop_reason": "refusal", "stop_details": null});
    assert_eq!(whole(&bare).0.unwrap().reply.finish, FinishReason::REFUSED);
}

#[test]
fn stop_reasons_are_understood_and_unknown_ones_are_unknown() {
    for (reason, finish) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::ContextFull),
        ("pause_turn", FinishReason::Paused),
        ("weird", FinishReason::Unknown),
    ] {
        assert_eq!(stream(&text_and(stop(reason).into())).0.unwrap().reply.finish, finish, "{reason}");
    }
}

// P5, P43.
#[test]
fn errors_are_errors_wherever_they_come() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    for events in [vec![error.clone()], vec![start(), error.clone()]] {
        let (reply, _) = stream(&events);
        assert!(matches!(&reply, Err(DecodeError::Error(json)) if json.contains("Overloaded")), "{reply:?}");
    }
    let (reply, _) = stream(&text_and(vec![error.clone()]));
    assert!(matches!(&reply, Err(DecodeError::BrokenOff(json)) if json.contains("Overloaded")), "{reply:?}");
    assert!(matches!(whole(&error).0, Err(DecodeError::Error(_))));
    let web_page = in_pieces(&[b"<html>no</html>"]).0;
    assert!(matches!(web_page, Err(DecodeError::Unreadable { .. })));
    assert!(matches!(
        whole(&json!({"type": "message"})).0,
        Err(DecodeError::Unreadable { .. } | DecodeError::Cut)
    ));
    assert_eq!(in_pieces(&[b""]).0, Err(DecodeError::Empty));
}

/// P44: a ping is no first piece, so it does not end the wait for one. The wait between pieces ends by any bytes.
#[test]
fn a_ping_is_no_first_piece() {
    let mut decoder = Decoder::<Messages>::default();
    let mut began = |event: Value| {
        let event = format!("event: x\ndata: {event}\n\n");
        decoder.feed(event.as_bytes(), &mut ()).unwrap();
        decoder.began()
    };
    assert!(!began(json!({"type": "ping"})));
    assert!(!began(
        json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}})
    ));
    assert!(!began(json!({"type": "ping"})));
    began(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
    let delta = json!({"type": "text_delta", "text": "a"});
    assert!(began(json!({"type": "content_block_delta", "index": 0, "delta": delta})));
    assert!(began(json!({"type": "ping"})));
}

// P17.
#[test]
fn signatures_and_inputs_without_an_end_are_refused() {
    let large = "x".repeat(1 << 20);
    for (block, piece) in [
        (json!({"type": "thinking"}), json!({"type": "signature_delta", "signature": large})),
        (json!({"type": "server_tool_use"}), json!({"type": "input_json_delta", "partial_json": large})),
    ] {
        let events: Vec<Value> =
            [start(), begin(0, block)].into_iter().chain((0..20).map(|_| delta(0, piece.clone()))).collect();
        assert!(matches!(stream(&events).0, Err(DecodeError::TooLong(_))));
    }
}

// P2.
#[test]
fn a_stream_cut_at_any_byte_is_the_same_reply() {
    let bytes = body(&all_kinds()).into_bytes();
    let expected = in_pieces(&[&bytes]);
    // What has only the beginning of a field's name can be anything.
    let begin = body(&all_kinds()[..1]).find("{").unwrap();
    for at in begin..bytes.len() {
        let (one, other) = bytes.split_at(at);
        assert_eq!(in_pieces(&[one, other]), expected, "at {at}");
        let cut = in_pieces(&[one]).0;
        let is_whole = bytes[at..].len() <= "\n\n".len();
        assert!(
            is_whole || matches!(cut, Err(DecodeError::Cut | DecodeError::Empty)),
            "after {at} bytes: {cut:?}"
        );
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(in_pieces(&single), expected);
}

#[test]
fn a_reply_can_be_kept_and_returned() {
    let reply = stream(&all_kinds()).0.unwrap();
    let fits = |seal: &Seal| {
        reply
            .reply
            .parts
            .get(seal.part)
            .is_some_and(|part| Seal::new(seal.part, part, seal.data.clone()) == *seal)
    };
    assert!(reply.seals.iter().all(fits));
    let Reply { verbatim, parts, .. } = reply.reply;
    let verbatim: Verbatim = (*verbatim.unwrap()).clone();
    let Part::ToolCall(call) = &parts[6] else { panic!("{parts:?}") };
    assert_eq!(verbatim.arguments(6, call), Some("{\"b\": 1.0, \"a\": 2}"));
}

proptest! {
    #[test]
    fn any_events_are_a_reply_or_an_error(
        pieces in proptest::collection::vec(prop_oneof![
            (0..all_kinds().len()).prop_map(|at| body(&all_kinds()[at..=at]).into_bytes()),
            Just(b"data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":7}}\n\n".to_vec()),
            Just(b"data: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":-1,\"cache_creation\":7}}\n\n".to_vec()),
            Just(b"data: {\"type\":\"message\",\"content\":[1,{},{\"type\":\"tool_use\"}]}\n\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ], 0..14),
    ) {
        let body = pieces.concat();
        let _ = in_pieces(&[&body]);
        let _ = read_whole::<Messages>("Jo-1", &[], &body);
    }
}
