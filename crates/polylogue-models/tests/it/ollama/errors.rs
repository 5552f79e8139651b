//! What goes wrong with Ollama, and what to do about it.

use std::time::Duration;

use polylogue_core::{Capability, Fault, ModelErrorKind as Kind};
use polylogue_models::{Config, Retries};
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};

use crate::common::{Asked, ask, model, quick, reply, text, weather};
use crate::ollama::config;

/// Asks a server that always answers so, three times if that may help: the error, and how often was asked.
async fn failed(answer: Answer) -> (polylogue_core::ModelError, usize) {
    let server = Server::start(Behavior::from(answer)).await;
    let error = reply(&model(Config { retries: quick(3), ..config(&server) })).await.unwrap_err();
    (error, server.count())
}

#[tokio::test]
async fn every_error_says_what_to_do_and_only_what_may_pass_is_tried_again() {
    let nested = r#"{"error":{"code":400,"message":"request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":8889,"n_ctx":4096}}"#;
    for (answer, kind, says, hint, asked) in [
        (Answer::status(404), Kind::Config, "model 'm' not found", "`ollama pull m`", 1),
        (
            Answer::error(400, "the input length exceeds the context length"),
            Kind::TooLong { tokens: None, limit: None },
            "exceeds the context length",
            "`num_ctx`",
            1,
        ),
        (
            Answer::error(400, nested),
            Kind::TooLong { tokens: Some(8889), limit: Some(4096) },
            "request (8889 tokens) exceeds",
            "`num_ctx`",
            1,
        ),
        (
            Answer::error(400, "registry.ollama.ai/library/m does not support tools"),
            Kind::Config,
            "does not support tools",
            "no tools",
            1,
        ),
        (
            Answer::error(500, "model requires more system memory (22.7 GiB) than is available (6.0 GiB)"),
            Kind::Unavailable,
            "more system memory",
            "smaller model",
            1,
        ),
        (Answer::status(503), Kind::Unavailable, "maximum pending requests", "`OLLAMA_MAX_QUEUE`", 3),
        (Answer::status(500), Kind::Unavailable, "llama runner process", "try again later", 3),
        (Answer::text("x").with(Quirk::HangUp), Kind::Connection, "broke", "", 3),
        (Answer::text("x y z").with(Quirk::Truncated), Kind::Connection, "broke", "", 3),
        (
            Answer::text("x y z").with(Quirk::ErrorInStream(2)),
            Kind::Unavailable,
            "an error was encountered",
            "",
            1,
        ),
    ] {
        let (error, count) = failed(answer).await;
        assert_eq!((error.kind, count), (kind, asked), "{error:?}");
        assert!(error.message.contains(says), "{error:?}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error:?}");
    }
}

#[tokio::test]
async fn a_model_without_tools_is_asked_with_tools_once() {
    let server = Server::start(Behavior::from("x").text_only()).await;
    let model = model(config(&server));
    let asked = Asked { tools: vec![weather()], ..Asked::default() };
    for _ in 0..2 {
        let error = ask(&model, &asked).await.0.unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported(Capability::Tools), "{error:?}");
        assert!(error.hint.unwrap().contains("no tools"));
    }
    assert_eq!(server.count(), 1, "it is remembered");
    assert!(reply(&model).await.is_ok(), "without tools it answers");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_to_be_started() {
    let server = Server::start(Behavior::from("x")).await;
    let config = config(&server);
    drop(server);
    let error = reply(&model(config)).await.unwrap_err();
    assert_eq!((error.kind, error.fault()), (Kind::Connection, Fault::Provider));
    let hint = error.hint.unwrap();
    assert!(hint.contains("`ollama serve`") && hint.contains("`OLLAMA_HOST`"), "{hint}");
}

#[tokio::test]
async fn the_hint_for_a_server_that_is_not_ollama_names_the_address() {
    let server = Server::start(Behavior::from("x")).await;
    let elsewhere = Config::ollama(&format!("{}/elsewhere", server.ollama_url()));
    let error = reply(&model(Config { retries: Retries::none(), ..elsewhere })).await.unwrap_err();
    assert_eq!(error.status, Some(404));
    assert!(error.hint.unwrap().contains("is that the address of Ollama?"));
}

#[tokio::test]
async fn a_retry_retracts_the_streamed_deltas_and_waits_as_long_as_requested() {
    let server = Server::start(Playbook::list([
        Answer::text("It is rai").with(Quirk::Truncated),
        Answer::status(503).retry_after_secs(1),
        Answer::text("It is sunny."),
    ]))
    .await;
    let begun = std::time::Instant::now();
    let (reply, received) =
        ask(&model(Config { retries: quick(3), ..config(&server) }), &Asked::default()).await;
    assert_eq!(text(&reply.unwrap()), "It is sunny.");
    let (before, after) = received.split_once('|').unwrap();
    assert!("It is rai".starts_with(before) && after == "It is sunny.", "{received}");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.unused(), 0);
}
