//! Replies, as Google writes them.

use polylogue_core::{Entry, FinishReason, ModelErrorKind as Kind, ToolResult, Usage};
use polylogue_models::Config;
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};

use crate::common::weather::{is_weather, weather};
use crate::common::{self, Asked, ask, quick, text};
use crate::gemini::{NEW, config, model};

#[tokio::test]
async fn every_tolerable_deviation_gives_the_same_reply_streamed_and_not() {
    use Quirk::{
        ByteOrderMark, Crlf, EmptyCallId, NoCallId, NoFinalNewline, NoLength, NoUsage, SameCallId, SplitEvery,
    };
    let quirks = [
        ByteOrderMark,
        Crlf,
        EmptyCallId,
        NoCallId,
        NoFinalNewline,
        NoLength,
        NoUsage,
        SameCallId,
        SplitEvery(1),
        SplitEvery(7),
        Quirk::Cr,
    ];
    for quirks in quirks.into_iter().map(|quirk| vec![quirk]).chain([Vec::new()]) {
        for stream in [true, false] {
            let case = format!("{quirks:?}, stream {stream}");
            let answer = quirks.iter().cloned().fold(weather(), Answer::with);
            let server = Server::start(Behavior::from(answer)).await;
            let (reply, received) =
                ask(&model(Config { stream, ..config(&server) }, NEW), &Asked::default()).await;
            let reply = reply.unwrap_or_else(|error| panic!("{case}: {error:?}"));
            is_weather(&reply, &case);
            let known = Usage { input: Some(12), output: Some(34), ..Usage::default() };
            let usage = if quirks.contains(&NoUsage) { Usage::default() } else { known };
            assert_eq!(reply.usage, usage, "{case}");
            let received = received.replace(")(", "");
            assert!(received.starts_with("(Where? In Oslo.)It is sunny"), "{case}: {received}");
            assert_eq!(server.violations(), [""; 0], "{case}");
        }
    }
}

#[tokio::test]
async fn why_a_reply_ended_and_what_was_counted_are_as_google_says() {
    let used = |input, output, cached, reasoning| Usage {
        input: Some(input),
        output: Some(output),
        cached,
        reasoning,
        ..Usage::default()
    };
    for (answer, finish, usage) in [
        (Answer::text("x").usage(7, 1), FinishReason::Stop, used(7, 1, None, None)),
        (Answer::text("x").usage(7, 1).finish("length"), FinishReason::Length, used(7, 1, None, None)),
        (Answer::text("x").usage(7, 1).finish("SAFETY"), FinishReason::Filter, used(7, 1, None, None)),
        (Answer::text("x").usage(7, 1).finish("A_NEW_REASON"), FinishReason::Unknown, used(7, 1, None, None)),
        (Answer::text("x").usage(7, 9).usage_details(5, 4), FinishReason::Stop, used(7, 9, Some(5), Some(4))),
        (
            Answer::text("").usage(7, 0).finish("PROHIBITED_CONTENT"),
            FinishReason::Refused { category: Some("prohibited_content".into()), explanation: None },
            used(7, 0, None, None),
        ),
    ] {
        for stream in [true, false] {
            let server = Server::start(Behavior::from(answer.clone())).await;
            let (reply, _) = ask(&model(Config { stream, ..config(&server) }, NEW), &Asked::default()).await;
            let reply = reply.unwrap();
            assert_eq!((&reply.finish, &reply.usage), (&finish, &usage), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn every_malformed_reply_is_an_error_that_says_what_happened() {
    for (quirk, kind, says) in [
        (Quirk::Html, Kind::InvalidReply, "cannot be read"),
        (Quirk::EmptyBody, Kind::InvalidReply, "the reply is empty"),
        (Quirk::ErrorInStream(2), Kind::Unavailable, "status 500"),
        (Quirk::InvalidJson, Kind::Connection, "broke"),
        (Quirk::HangUp, Kind::Connection, "broke"),
        (Quirk::Truncated, Kind::Connection, "broke"),
        (Quirk::Reset, Kind::Connection, "broke"),
        (Quirk::Status(500), Kind::Unavailable, "status 500"),
    ] {
        for stream in [true, false] {
            let server = Server::start(Behavior::from(weather().with(quirk.clone()))).await;
            let (error, _) = ask(&model(Config { stream, ..config(&server) }, NEW), &Asked::default()).await;
            let error = error.expect_err(&format!("{quirk:?} {stream}"));
            let case = format!("{quirk:?}, stream {stream}: {error:?}");
            assert_eq!((&error.kind, &*error.model), (&kind, "gemini:gemini-3-pro"), "{case}");
            assert!(error.message.contains(says), "{case}");
        }
    }
}

/// P66: the same request is sent with the token, and the reply is one, with what was signed and counted of all.
#[tokio::test]
async fn a_long_reply_is_continued_where_it_stopped() {
    for stream in [true, false] {
        let part = |text: &str| Answer::text(text).think("Hm.").finish("CONTINUATION").usage(10, 5);
        let broken = Answer::text("Lost.").with(Quirk::Reset);
        let end = Answer::text("ree.").call("weather", serde_json::json!({})).usage(10, 5);
        let next = Answer::text("Done.");
        let server = Server::start(Playbook::list([part("One, tw"), part("o, th"), broken, end, next])).await;
        let model = model(Config { stream, retries: quick(2), ..config(&server) }, NEW);
        let mut asked = Asked { tools: vec![common::weather()], ..Asked::default() };
        let (reply, received) = ask(&model, &asked).await;
        let reply = reply.unwrap();
        let said = ["One, tw", "o, three."];
        assert_eq!((text(&reply), &reply.finish), (said.join("\n\n"), &FinishReason::Calls));
        assert_eq!((reply.usage.input, reply.usage.output), (Some(30), Some(15)));
        let last = received.rsplit('|').next().unwrap();
        assert_eq!(last.replace(")(", ""), "(Hm.)One, tw(Hm.)o, three.<weather>{}");
        let requests = server.requests();
        let token = |nth: usize| requests[nth].body.get("continuationToken").is_some();
        assert_eq!([0, 1, 2, 3].map(token), [false, true, true, true]);
        assert_eq!(requests[0].body["contents"], requests[3].body["contents"]);
        asked.entries.push(common::entry(&reply));
        let call = reply.calls().remove(0);
        asked.entries.push(Entry::Tool { id: call.id, tool: call.tool, result: ToolResult::done("Sunny.") });
        assert_eq!(text(&ask(&model, &asked).await.0.unwrap()), "Done.");
        assert_eq!(server.violations(), [""; 0]);
        assert!(server.requests()[4].body.get("continuationToken").is_none());
    }
}

#[tokio::test]
async fn a_reply_is_continued_within_a_word_and_stays_paused_when_that_fails() {
    let part = |text: &str| Answer::text(text).finish("CONTINUATION").usage(10, 5);
    let server = Server::start(Playbook::list([part("Mag"), part("nifi"), Answer::text("cent.")])).await;
    let (reply, received) = ask(&model(config(&server), NEW), &Asked::default()).await;
    assert_eq!((text(&reply.unwrap()), &*received), ("Magnificent.".into(), "Magnificent."));
    let server = Server::start(Playbook::list([part("Mag"), Answer::text("Lost.").with(Quirk::Reset)])).await;
    let (reply, received) = ask(&model(config(&server), NEW), &Asked::default()).await;
    let reply = reply.unwrap();
    assert_eq!(
        (text(&reply), reply.finish, reply.usage.input),
        ("Mag".into(), FinishReason::Paused, Some(10))
    );
    assert_eq!(received.rsplit('|').next().unwrap(), "Mag");
}
