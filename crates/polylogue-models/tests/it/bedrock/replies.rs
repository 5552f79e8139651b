//! Replies of Bedrock, whole and streamed, and its errors.

use std::time::Duration;

use polylogue_core::{FinishReason, ModelErrorKind as Kind, Usage};
use polylogue_models::Config;
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};

use crate::bedrock::config;
use crate::common::weather::{is_weather, weather};
use crate::common::{Asked, ask, model, quick, reply, text};

#[tokio::test]
async fn a_reply_is_the_same_streamed_whole_and_however_it_is_cut() {
    // With pauses, the usage comes a while after the stop.
    let pace = Quirk::Pace(Duration::from_millis(20));
    let quirks = [Quirk::NoUsage, pace, Quirk::SplitEvery(1), Quirk::SplitEvery(7), Quirk::Unstreamed];
    for quirk in quirks.into_iter().map(Some).chain([None]) {
        for stream in [true, false] {
            let case = format!("{quirk:?}, stream {stream}");
            let answer = quirk.iter().cloned().fold(weather(), Answer::with);
            let server = Server::start(Behavior::from(answer)).await;
            let (reply, pieces) = ask(&model(Config { stream, ..config(&server) }), &Asked::default()).await;
            let reply = reply.unwrap_or_else(|error| panic!("{case}: {error:?}"));
            is_weather(&reply, &case);
            let usage = match quirk {
                Some(Quirk::NoUsage) => (None, None),
                _ => (Some(12), Some(34)),
            };
            assert_eq!((reply.usage.input, reply.usage.output), usage, "{case}");
            assert!(pieces.replace(")(", "").starts_with("(Where? In Oslo.)It is sunny"), "{case}: {pieces}");
            assert_eq!(server.violations(), [""; 0], "{case}");
        }
    }
}

/// P96.
#[tokio::test]
async fn usage_counts_what_was_read_from_a_cache() {
    let answer = Answer::text("x").usage(100, 5).usage_details(60, 0);
    let server = Server::start(Behavior::from(answer)).await;
    let reply = reply(&model(config(&server))).await.unwrap();
    let known =
        Usage { input: Some(100), output: Some(5), cached: Some(60), written: Some(0), ..Usage::default() };
    assert_eq!(reply.usage, known);
}

#[tokio::test]
async fn reasons_to_stop_come_through() {
    for (reason, expected) in [
        ("length", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::ContextFull),
        ("malformed_tool_use", FinishReason::Malformed),
        ("something_new", FinishReason::Unknown),
    ] {
        let server = Server::start(Behavior::from(Answer::text("x").finish(reason))).await;
        assert_eq!(reply(&model(config(&server))).await.unwrap().finish, expected, "{reason}");
    }
}

#[tokio::test]
async fn errors_have_a_kind_by_their_status_and_a_hint() {
    for (answer, kind, hint) in [
        (Answer::error(400, "The provided model identifier is invalid."), Kind::Config, "inference profile"),
        (
            Answer::error(400, "Invocation of model ID a with on-demand throughput isn't supported."),
            Kind::Config,
            "inference profile",
        ),
        (
            Answer::error(400, "Input is too long for requested model."),
            Kind::TooLong { tokens: None, limit: None },
            "trim",
        ),
        (Answer::status(403), Kind::Config, ""),
        (Answer::status(404), Kind::Config, "base URL"),
        (Answer::status(429), Kind::Unavailable, "per_minute"),
        (Answer::status(424), Kind::Unavailable, ""),
        (Answer::status(500), Kind::Unavailable, "later"),
    ] {
        let case = format!("{answer:?}");
        let server = Server::start(Behavior::from(answer)).await;
        let error = reply(&model(config(&server))).await.unwrap_err();
        assert_eq!(error.kind, kind, "{case}");
        assert!(error.hint.unwrap_or_default().contains(hint), "{case}");
    }
}

/// P88: an exception within a stream is tried again.
#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for answer in [
        Answer::status(429),
        Answer::status(424),
        Answer::status(503),
        Answer::text("Half of it.").pieces(2).with(Quirk::ErrorInStream(3)),
    ] {
        let case = format!("{answer:?}");
        let server = Server::start(Behavior::from(Playbook::list([answer, Answer::text("Sunny.")]))).await;
        let (reply, _) =
            ask(&model(Config { retries: quick(3), ..config(&server) }), &Asked::default()).await;
        assert_eq!((text(&reply.unwrap()), server.requests().len()), ("Sunny.".to_owned(), 2), "{case}");
    }
}
