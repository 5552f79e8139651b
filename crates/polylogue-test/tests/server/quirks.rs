//! Each deviation, byte by byte.

use std::time::{Duration, Instant};

use polylogue_test::server::{Answer, Field, Playbook, Quirk};
use serde_json::{Value, json};

use crate::client::{Client, Ended, Response, hello, once, quirky, serve, streamed};

const TEXT: &str = "one two three";

fn with_usage() -> Value {
    let mut body = streamed();
    body["stream_options"] = json!({"include_usage": true});
    body
}

fn two_calls() -> Answer {
    Answer::tool("t", json!({"a": 12_345_678})).call_as("given", "u", json!({}))
}

/// The fragments of calls in a regular stream.
fn fragments(quirk: Quirk) -> Vec<Value> {
    let deltas = once(two_calls().with(quirk), &streamed()).deltas();
    deltas.iter().filter_map(|delta| delta.get("tool_calls")).map(|calls| calls[0].clone()).collect()
}

#[test]
fn usage_is_never_shown() {
    let events = once(Answer::text(TEXT).with(Quirk::NoUsage), &with_usage()).events();
    assert!(events.iter().all(|event| event.get("usage").is_none() && event["choices"] != json!([])));
    assert_eq!(once(Answer::text(TEXT).with(Quirk::NoUsage), &hello()).json().get("usage"), None);
}

#[test]
fn usage_comes_unasked_with_the_finish_or_everywhere() {
    let last = quirky(Quirk::UsageUnasked).events().pop().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].is_u64());

    let last = once(Answer::text(TEXT).usage(3, 4).with(Quirk::UsageWithFinish), &with_usage())
        .events()
        .pop()
        .unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["usage"]["total_tokens"], 7);

    let events = once(Answer::text(TEXT).usage(3, 4).with(Quirk::UsageEverywhere), &streamed()).events();
    let counts: Vec<_> =
        events.iter().map(|event| event["usage"]["completion_tokens"].as_u64().unwrap()).collect();
    assert_eq!(counts, [0, 1, 2, 3, 4]);
}

#[test]
fn a_chunk_has_no_choices_or_no_delta() {
    let events = quirky(Quirk::EmptyChoices).events();
    assert_eq!(events[0]["choices"], json!([]));
    assert_eq!(events[0].get("usage"), None);
    assert_eq!(once(Answer::text(TEXT).with(Quirk::EmptyChoices), &hello()).json()["choices"], json!([]));
    let response = quirky(Quirk::NullDelta);
    assert_eq!(response.deltas().iter().filter(|delta| delta.is_null()).count(), 2);
    assert_eq!(response.streamed_text(), TEXT);
}

#[test]
fn fields_are_null() {
    let response = quirky(Quirk::NullFields);
    let deltas = response.deltas();
    assert_eq!(deltas[0]["content"], Value::Null);
    assert_eq!(deltas[1], json!({"role": null, "content": "one ", "tool_calls": null, "refusal": null}));
    let thought = once(Answer::text("x").think("hm").with(Quirk::NullFields), &streamed()).deltas().remove(1);
    assert_eq!((&thought["content"], &thought["reasoning_content"]), (&Value::Null, &json!("hm")));
    let later = &fragments(Quirk::NullFields)[1];
    assert_eq!((&later["id"], &later["function"]["name"]), (&Value::Null, &Value::Null));
    let message =
        once(Answer::text("x").with(Quirk::NullFields), &hello()).json()["choices"][0]["message"].clone();
    assert_eq!(message.as_object().unwrap().get("tool_calls"), Some(&Value::Null));
}

#[test]
fn fields_are_missing() {
    let has = |event: &Value, field| match field {
        Field::Id => event.get("id").is_some(),
        Field::Object => event.get("object").is_some(),
        Field::Created => event.get("created").is_some(),
        Field::Model => event.get("model").is_some(),
        Field::Index => event["choices"][0].get("index").is_some(),
        Field::Role => event.to_string().contains("\"role\""),
        Field::FinishReason => event["choices"][0].get("finish_reason").is_some(),
        Field::CallType => event.to_string().contains("\"type\""),
        _ => unreachable!("{field:?}"),
    };
    let fields = Quirk::CATALOG.iter().filter_map(|entry| match entry.quirk {
        Quirk::Missing(field) => Some(field),
        _ => None,
    });
    let fields: Vec<_> = fields.collect();
    assert_eq!(fields.len(), 8);
    for field in fields {
        for body in [hello(), streamed()] {
            let events = |answer| match once(answer, &body) {
                response if body == hello() => vec![response.json()],
                response => response.events(),
            };
            assert!(events(two_calls()).iter().any(|event| has(event, field)), "{field:?}");
            let answer = two_calls().with(Quirk::Missing(field));
            assert!(events(answer).iter().all(|event| !has(event, field)), "{field:?}");
        }
    }
    let all = Quirk::CATALOG.iter().filter(|entry| matches!(entry.quirk, Quirk::Missing(_)));
    let bare = all.fold(Answer::text("x"), |answer, entry| answer.with(entry.quirk.clone()));
    assert_eq!(once(bare, &streamed()).events()[1], json!({"choices": [{"delta": {"content": "x"}}]}));
}

#[test]
fn content_and_reasoning_come_in_other_places() {
    let parts = json!([{"type": "text", "text": "one "}]);
    assert_eq!(quirky(Quirk::ContentParts).deltas()[1]["content"], parts);
    let message = |quirk| {
        let reply = once(Answer::text("x").think("hm").with(quirk), &hello()).json();
        reply["choices"][0]["message"].clone()
    };
    assert_eq!(message(Quirk::ContentParts)["content"][0]["text"], "x");
    let reasoning = message(Quirk::ReasoningField);
    assert_eq!((&reasoning["reasoning"], reasoning.get("reasoning_content")), (&json!("hm"), None));
    let tagged = once(Answer::text("x").think("hm").with(Quirk::ThinkTags), &streamed());
    assert_eq!(tagged.streamed_text(), "<think>\nhm\n</think>\n\nx");
    assert!(!tagged.text().contains("reasoning"));
}

#[test]
fn calls_lack_indices_or_ids() {
    assert!(fragments(Quirk::NoCallIndex).iter().all(|fragment| fragment.get("index").is_none()));
    assert!(fragments(Quirk::NoCallId).iter().all(|fragment| fragment.get("id").is_none()));
    let ids = |quirk| -> Vec<String> {
        let fragments = fragments(quirk);
        fragments.iter().filter_map(|fragment| Some(fragment["id"].as_str()?.to_owned())).collect()
    };
    assert_eq!(ids(Quirk::EmptyCallId), ["", ""]);
    let call = || Answer::tool("t", json!({})).call("t", json!({}));
    let reply = once(call().with(Quirk::SameCallId), &hello()).json();
    let calls = &reply["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls[0]["id"], calls[1]["id"]);
}

#[test]
fn calls_have_gaps_between_their_indices_or_alternate() {
    let indices = |quirk| -> Vec<u64> {
        fragments(quirk).iter().map(|fragment| fragment["index"].as_u64().unwrap()).collect()
    };
    assert_eq!(indices(Quirk::NoUsage), [0, 0, 0, 1, 1]);
    assert_eq!(indices(Quirk::CallGaps), [1, 1, 1, 4, 4]);
    assert_eq!(indices(Quirk::CallsInterleaved), [0, 1, 0, 1, 0]);
    assert_eq!(indices(Quirk::CallWhole), [0, 1]);
}

#[test]
fn arguments_come_whole_in_fragments_or_as_an_object() {
    let joined = |quirk| -> String {
        let fragments = fragments(quirk);
        let first = fragments.iter().filter(|fragment| fragment["index"] == 0);
        first.filter_map(|fragment| fragment["function"]["arguments"].as_str()).collect()
    };
    for quirk in [Quirk::NoUsage, Quirk::CallWhole, Quirk::ArgumentFragments, Quirk::CallsInterleaved] {
        assert_eq!(joined(quirk), r#"{"a":12345678}"#);
    }
    assert_eq!(fragments(Quirk::ArgumentFragments).len(), 1 + 14 + 1 + 2);
    assert_eq!(fragments(Quirk::ArgumentObject)[0]["function"]["arguments"], json!({"a": 12_345_678}));
    let reply = once(two_calls().with(Quirk::ArgumentObject), &hello()).json();
    let call = &reply["choices"][0]["message"]["tool_calls"][1];
    assert_eq!((&call["function"]["arguments"], &call["id"]), (&json!({}), &json!("given")));
    let raw = once(Answer::default().call_raw("t", "{oops"), &hello()).json();
    assert_eq!(raw["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{oops");
    let stop = once(two_calls().with(Quirk::CallsEndWithStop), &hello()).json();
    assert_eq!(stop["choices"][0]["finish_reason"], "stop");
}

/// The text of a stream that was brought back to its regular form.
fn regular(response: &Response, fix: impl Fn(&str) -> String) -> String {
    assert_eq!(response.ended, Ended::Whole);
    let fixed = Response {
        head: response.head.clone(),
        body: fix(response.text()).into_bytes(),
        chunks: Vec::new(),
        ended: Ended::Whole,
    };
    fixed.streamed_text()
}

#[test]
fn lines_are_written_in_other_ways() {
    let crlf = quirky(Quirk::Crlf);
    assert_eq!(crlf.text().matches("\r\n").count(), crlf.text().matches('\n').count());
    assert_eq!(regular(&crlf, |text| text.replace("\r\n", "\n")), TEXT);
    let cr = quirky(Quirk::Cr);
    assert!(!cr.text().contains('\n'));
    assert_eq!(regular(&cr, |text| text.replace('\r', "\n")), TEXT);
    assert_eq!(regular(&quirky(Quirk::Comments), |text| text.replace(": ping\n\n", "")), TEXT);
    let tight = quirky(Quirk::NoSpace);
    assert!(tight.text().starts_with("data:{"));
    assert_eq!(regular(&tight, |text| text.replace("data:", "data: ")), TEXT);
    let named = quirky(Quirk::EventNames);
    assert!(named.text().starts_with("event: message\nid: 0\ndata: "));
    let spread = quirky(Quirk::MultiLineData);
    assert!(spread.text().starts_with("data: {\ndata: \""));
    assert_eq!(regular(&spread, |text| text.replace("{\ndata: ", "{")), TEXT);
    let marked = quirky(Quirk::ByteOrderMark);
    assert_eq!(regular(&marked, |text| text.strip_prefix('\u{feff}').unwrap().to_owned()), TEXT);
    let open = quirky(Quirk::NoDone);
    assert_eq!(regular(&open, |text| format!("{text}data: [DONE]\n\n")), TEXT);
}

#[test]
fn lines_are_bare_json() {
    let response = quirky(Quirk::Ndjson);
    assert_eq!(response.header("content-type"), Some("application/x-ndjson"));
    let events: Vec<Value> =
        response.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 5);
}

#[test]
fn bytes_come_apart_or_together() {
    let text = "Grüße 翻译";
    let answer = || Answer::text(text).pieces(3);
    let usual = once(answer(), &streamed());
    assert_eq!(usual.chunks.len(), 1 + 3 + 1 + 1);
    let apart = once(answer().with(Quirk::SplitEvery(1)), &streamed());
    assert_eq!(apart.chunks.len(), apart.body.len());
    let sevens = once(answer().with(Quirk::SplitEvery(7)), &streamed());
    assert!(sevens.chunks.iter().all(|size| *size <= 7) && sevens.chunks.contains(&7));
    let merged = once(answer().with(Quirk::Merged), &streamed());
    assert_eq!(merged.chunks.len(), 1);
    for response in [usual, apart, sevens, merged] {
        assert_eq!(response.streamed_text(), text);
    }
}

#[test]
fn streams_come_unasked_or_not_at_all() {
    assert_eq!(quirky(Quirk::Unstreamed).json()["choices"][0]["message"]["content"], TEXT);
    assert_eq!(once(Answer::text(TEXT).with(Quirk::StreamedUnasked), &hello()).streamed_text(), TEXT);
}

#[test]
fn bodies_that_are_not_the_reply() {
    for body in [hello(), streamed()] {
        let answer = |quirk| once(Answer::text(TEXT).with(quirk), &body);
        let html = answer(Quirk::Html);
        assert_eq!((html.status(), html.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(html.text().starts_with("<!DOCTYPE html>"));
        let empty = answer(Quirk::EmptyBody);
        assert_eq!((empty.status(), empty.body.len(), empty.ended), (200, 0, Ended::Whole));
        let invalid = answer(Quirk::InvalidJson);
        assert_eq!((invalid.status(), invalid.ended), (200, Ended::Whole));
        let last = invalid.text().trim_end_matches("\n\ndata: [DONE]\n\n").rsplit("data: ").next().unwrap();
        assert!(serde_json::from_str::<Value>(last).unwrap_err().is_eof(), "{last}");
    }
}

#[test]
fn an_error_comes_under_status_200() {
    let stream = quirky(Quirk::ErrorInStream(2));
    assert_eq!(stream.status(), 200);
    let events: Vec<&str> = stream.text().split_terminator("\n\n").collect();
    assert_eq!(events.len(), 3);
    assert!(events[1].contains("one ") && events[2].starts_with(r#"data: {"error":{"#));
    let whole = once(Answer::text(TEXT).with(Quirk::ErrorInStream(0)), &hello());
    assert_eq!(whole.json()["error"]["type"], "server_error");
}

/// Reads until there is more than a megabyte.
fn reads_on_and_on(quirk: Quirk, body: &Value) -> Vec<u8> {
    let server = serve(Playbook::always(Answer::text(TEXT).with(quirk)));
    let mut client = Client::of(&server);
    client.post(body);
    while client.read_so_far().len() < 1 << 20 {
        client.more().unwrap();
    }
    client.read_so_far().to_vec()
}

#[test]
fn streams_and_lines_do_not_end() {
    let text = String::from_utf8(reads_on_and_on(Quirk::EndlessStream, &streamed())).unwrap();
    assert!(text.matches("and again ").count() > 1000);
    let text = String::from_utf8(reads_on_and_on(Quirk::EndlessLine, &streamed())).unwrap();
    let (_, line) = text.rsplit_once("data: ").unwrap();
    // Without what frames HTTP's own chunks, there is nothing but the line.
    let line = line.replace("\r\n1000\r\n", "");
    assert!(line.len() > 1 << 19 && line.starts_with(r#"{"id":"xxxx"#));
    assert!(!line.trim_end_matches(['\r', '\n', '0', '1']).contains('\n'));
    for quirk in [Quirk::EndlessStream, Quirk::EndlessLine] {
        reads_on_and_on(quirk, &hello());
    }
}

#[test]
fn comments_do_not_end() {
    for (body, ping) in [(streamed(), ": ping\n\n"), (hello(), "\n")] {
        let quirk = Quirk::EndlessComments(Duration::from_millis(1));
        let server = serve(Playbook::always(Answer::text(TEXT).with(quirk)));
        let mut client = Client::of(&server);
        client.post(&body);
        let pings = format!("{:x}\r\n{ping}\r\n", ping.len()).repeat(5);
        while !String::from_utf8_lossy(client.read_so_far()).contains(&pings) {
            client.more().unwrap();
        }
    }
}

#[test]
fn the_connection_ends_too_early() {
    for body in [hello(), streamed()] {
        let whole = once(Answer::text(TEXT), &body);
        let answer = |quirk| once(Answer::text(TEXT).with(quirk), &body);
        let silent = answer(Quirk::HangUp);
        assert_eq!((silent.ended, silent.head.len()), (Ended::Closed, 0));
        for (quirk, ended) in [(Quirk::Truncated, Ended::Closed), (Quirk::Reset, Ended::Reset)] {
            let torn = answer(quirk);
            assert_eq!((torn.status(), torn.ended), (200, ended));
            assert!(whole.body.starts_with(&torn.body));
            assert!(torn.body.len() < whole.body.len());
        }
        let long = answer(Quirk::LengthTooLong);
        assert_eq!((long.ended, &long.body), (Ended::Closed, &whole.body));
        let short = answer(Quirk::LengthTooShort);
        assert_eq!((short.ended, &short.body[..]), (Ended::Whole, &whole.body[..whole.body.len() / 2]));
        let open = answer(Quirk::NoLength);
        assert_eq!((open.header("content-length"), open.header("transfer-encoding")), (None, None));
        assert_eq!(
            (open.ended, open.header("connection"), &open.body),
            (Ended::Closed, Some("close"), &whole.body)
        );
        let bad = answer(Quirk::BadChunk);
        assert_eq!((bad.ended, &bad.body), (Ended::Garbled, &whole.body));
    }
}

#[test]
fn pauses_come_where_they_are_asked_for() {
    let pause = Duration::from_millis(60);
    for body in [hello(), streamed()] {
        for quirk in [
            Quirk::SlowHeaders(pause),
            Quirk::PauseBeforeFirst(pause),
            Quirk::Stall(pause),
            Quirk::Pace(pause / 4),
        ] {
            let start = Instant::now();
            let response = once(Answer::text(TEXT).with(quirk.clone()), &body);
            assert_eq!((response.status(), response.ended), (200, Ended::Whole));
            let least = if matches!(quirk, Quirk::Pace(_)) { pause / 4 } else { pause };
            assert!(start.elapsed() >= least, "{quirk}");
        }
    }
}

/// What a client has read when nothing more comes for a while.
fn before_the_pause(quirk: Quirk, body: &Value) -> String {
    let server = serve(Playbook::always(Answer::text(TEXT).with(quirk)));
    let mut client = Client::of(&server).patience(Duration::from_millis(700));
    client.post(body);
    let ended = loop {
        if let Err(ended) = client.more() {
            break ended;
        }
    };
    assert_eq!(ended, Ended::Never);
    String::from_utf8(client.read_so_far().to_vec()).unwrap()
}

#[test]
fn nothing_comes_during_a_pause() {
    let long = Duration::from_secs(3600);
    let header = before_the_pause(Quirk::SlowHeaders(long), &streamed());
    assert!(header.starts_with("HTTP/1.1 200 OK") && !header.contains("\r\n\r\n"));
    let header = before_the_pause(Quirk::PauseBeforeFirst(long), &streamed());
    assert!(header.ends_with("\r\n\r\n"));
    let stalled = before_the_pause(Quirk::Stall(long), &streamed());
    assert!(stalled.contains("two ") && !stalled.contains("three"));
    assert_eq!(before_the_pause(Quirk::Silent, &streamed()), "");
}

#[test]
fn a_client_that_goes_during_a_pause_is_noticed() {
    for quirk in [Quirk::Silent, Quirk::PauseBeforeFirst(Duration::from_secs(3600))] {
        let server = serve(Playbook::always(Answer::text(TEXT).with(quirk)));
        let mut client = Client::of(&server);
        client.post(&streamed());
        while server.count() == 0 {
            std::thread::yield_now();
        }
        drop(client);
        let start = Instant::now();
        while server.connections() > 0 {
            assert!(start.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
