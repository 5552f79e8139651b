//! Replies, as Ollama and what stands before it write them.

use std::time::Duration;

use polylogue_core::{FinishReason, ModelErrorKind as Kind, Usage};
use polylogue_models::{Config, Timeouts};
use polylogue_test::server::{Answer, Behavior, Field, Quirk, Server};

use crate::common::weather::{is_weather, weather};
use crate::common::{Asked, ask, model, reply, text};
use crate::ollama::config;

#[tokio::test]
async fn every_tolerable_deviation_gives_the_same_reply_streamed_and_not() {
    use Quirk::{
        ByteOrderMark, Crlf, EmptyCallId, Merged, NoCallId, NoCallIndex, NoFinalNewline, NoLength, NoUsage,
        NullFields, SameCallId, SplitEvery, StreamedUnasked, ThinkTags, Unstreamed,
    };
    let missing = [Field::Model, Field::Created, Field::Role, Field::FinishReason].map(Quirk::Missing);
    let others = [
        ByteOrderMark,
        Crlf,
        EmptyCallId,
        Merged,
        NoCallId,
        NoCallIndex,
        NoFinalNewline,
        NoLength,
        NoUsage,
        NullFields,
        SameCallId,
        SplitEvery(1),
        SplitEvery(7),
        StreamedUnasked,
        ThinkTags,
        Unstreamed,
        Quirk::Cr,
    ];
    let together = [Crlf, NoCallId, NullFields, NoFinalNewline, ThinkTags, SplitEvery(1)];
    let cases = missing.into_iter().chain(others).map(|quirk| vec![quirk]);
    for quirks in cases.chain([Vec::new(), together.to_vec()]) {
        for stream in [true, false] {
            let case = format!("{quirks:?}, stream {stream}");
            let answer = quirks.iter().cloned().fold(weather(), Answer::with);
            let server = Server::start(Behavior::from(answer)).await;
            let (reply, received) =
                ask(&model(Config { stream, ..config(&server) }), &Asked::default()).await;
            let reply = reply.unwrap_or_else(|error| panic!("{case}: {error:?}"));
            is_weather(&reply, &case);
            let known = Usage { input: Some(12), output: Some(34), ..Usage::default() };
            let usage = if quirks.contains(&NoUsage) { Usage::default() } else { known };
            assert_eq!(reply.usage, usage, "{case}");
            let received = received.replace(")(", "");
            assert!(received.starts_with("(Where? In Oslo.)It is sunny"), "{case}: {received}");
            assert!(received.ends_with(r#"<weather>{"city":"Rome","days":[1,2]}"#), "{case}: {received}");
            assert_eq!(server.violations(), [""; 0], "{case}");
        }
    }
}

#[tokio::test]
async fn why_a_reply_ended_and_what_was_counted_are_as_ollama_says() {
    for (answer, finish, usage) in [
        (Answer::text("x").usage(7, 1), FinishReason::Stop, (Some(7), Some(1), None)),
        (Answer::text("x").usage(7, 1).finish("length"), FinishReason::Length, (Some(7), Some(1), None)),
        (Answer::text("x").usage(7, 1).finish("load"), FinishReason::Unknown, (Some(7), Some(1), None)),
        // Ollama leaves out a count of nothing: whether it is one cannot be known.
        (Answer::text("x").usage(0, 0), FinishReason::Stop, (None, None, None)),
        (Answer::text("x").usage(7, 1).usage_details(5, 0), FinishReason::Stop, (Some(7), Some(1), Some(5))),
        (Answer::text("x").usage(7, 1).usage_details(9, 0), FinishReason::Stop, (Some(7), Some(1), None)),
    ] {
        let server = Server::start(Behavior::from(answer.clone())).await;
        let reply = reply(&model(config(&server))).await.unwrap();
        let counted = (reply.usage.input, reply.usage.output, reply.usage.cached);
        assert_eq!((reply.finish, counted), (finish, usage), "{answer:?}");
    }
}

#[tokio::test]
async fn every_malformed_reply_is_an_error_that_says_what_happened_within_the_time_limit() {
    let short = Timeouts {
        first_token: Duration::from_millis(300),
        idle: Duration::from_millis(300),
        total: Duration::from_millis(1500),
        ..Timeouts::default()
    };
    let far = Duration::from_secs(60);
    for (quirk, kind, says) in [
        (Quirk::Html, Kind::InvalidReply, "cannot be read"),
        (Quirk::EmptyBody, Kind::InvalidReply, "the reply is empty"),
        (Quirk::ErrorInStream(2), Kind::Unavailable, "the provider broke off: an error was encountered"),
        (Quirk::EndlessLine, Kind::InvalidReply, "does not end"),
        (Quirk::InvalidJson, Kind::Connection, "broke"),
        (Quirk::HangUp, Kind::Connection, "broke"),
        (Quirk::Truncated, Kind::Connection, "broke"),
        (Quirk::Reset, Kind::Connection, "broke"),
        (Quirk::SlowHeaders(far), Kind::Timeout, "within"),
        (Quirk::PauseBeforeFirst(far), Kind::Timeout, "within"),
        (Quirk::Silent, Kind::Timeout, "within"),
        (Quirk::Redirect("http://127.0.0.2:9".into()), Kind::Config, "redirects"),
        (Quirk::Status(500), Kind::Unavailable, "status 500"),
    ] {
        for stream in [true, false] {
            let server = Server::start(Behavior::from(weather().with(quirk.clone()))).await;
            let timeouts = if kind == Kind::Timeout { short } else { Timeouts::default() };
            let error = reply(&model(Config { stream, timeouts, ..config(&server) })).await;
            let error = error.expect_err(&format!("{quirk:?} {stream}"));
            let case = format!("{quirk:?}, stream {stream}: {error:?}");
            assert_eq!(error.kind, kind, "{case}");
            assert!(error.message.contains(says), "{case}");
            assert_eq!(error.model, "ollama:m", "{case}");
        }
    }
}

#[tokio::test]
async fn a_model_that_is_loaded_slowly_has_until_the_first_token() {
    let loading = Duration::from_millis(600);
    // Nothing comes while a model is loaded, not even a header.
    let server = Server::start(Behavior::from("Here I am.").latency(loading)).await;
    let timeouts = Timeouts { idle: Duration::from_millis(200), ..Timeouts::default() };
    let patient = model(Config { timeouts, ..config(&server) });
    assert_eq!(text(&reply(&patient).await.unwrap()), "Here I am.");
    let timeouts = Timeouts { first_token: Duration::from_millis(100), ..Timeouts::default() };
    let error = reply(&model(Config { timeouts, ..config(&server) })).await.unwrap_err();
    assert_eq!(error.message, "no first piece of a reply within 100ms");
    assert!(error.hint.unwrap().contains("`first_token`"));
}
