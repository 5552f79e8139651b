//! Errors by status, by type, and inside of streams.

use polylogue_core::ModelErrorKind as Kind;
use polylogue_models::{Config, Endpoint};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::json;

use super::{claude, config};
use crate::common::{Asked, KEY, ask, quick};

/// The error after all attempts, and how many there were.
async fn refused(answer: Answer) -> (polylogue_core::ModelError, usize) {
    let server = Server::start(answer).await;
    let config = Config { retries: quick(2), ..config(&server) };
    let error = ask(&Endpoint::new(config).unwrap().model("claude-sonnet-5"), &Asked::default()).await.0;
    (error.unwrap_err(), server.count())
}

/// P9, P14: no error shows the key, and only what may pass is tried again.
#[tokio::test]
async fn every_status_has_its_kind_and_says_what_to_do() {
    let long = Kind::TooLong { tokens: Some(208_310), limit: Some(200_000) };
    let over = Kind::TooLong { tokens: None, limit: None };
    for (status, message, kind, hint) in [
        (400, "messages: text content blocks must be non-empty", Kind::Config, ""),
        (400, "prompt is too long: 208310 tokens > 200000 maximum", long, "trim it"),
        (400, "input length and `max_tokens` exceed context limit: 150000 + 64000 > 200000", over, "trim it"),
        (
            400,
            "Your credit balance is too low to access the Anthropic API.",
            Kind::QuotaExceeded,
            "billing page",
        ),
        (401, "invalid x-api-key", Kind::Config, "ANTHROPIC_API_KEY"),
        (402, "Your credit balance is too low.", Kind::QuotaExceeded, "billing page"),
        (403, "Your API key does not have permission", Kind::Config, "ANTHROPIC_API_KEY"),
        (404, "model: claude-sonnet-5", Kind::Config, "the model's name"),
        (413, "Request exceeds the maximum allowed number of bytes.", Kind::Config, "fewer"),
        (429, "Number of request tokens has exceeded your rate limit.", Kind::Unavailable, "per_minute"),
        (500, "Internal server error", Kind::Unavailable, "later"),
        (529, "Overloaded", Kind::Unavailable, "later"),
    ] {
        let (error, attempts) = refused(Answer::error(status, message)).await;
        let may_pass = [429, 500, 529].contains(&status);
        assert_eq!((error.kind, error.status), (kind, Some(status)), "{error}");
        assert_eq!(attempts, if may_pass { 2 } else { 1 }, "{error}");
        let said = error.hint.clone().unwrap_or_default();
        assert!(said.contains(hint), "{status}: {said}");
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    }
}

// P8.
#[tokio::test]
async fn the_provider_says_whether_to_ask_again() {
    let says = |status: u16, again: &str| Answer::error(status, "Wait.").header("x-should-retry", again);
    for (first, asked) in
        [(says(500, "false"), 1), (says(500, "true"), 2), (says(400, "true"), 2), (says(400, "false"), 1)]
    {
        let server = Server::start(Playbook::list([first, Answer::text("Hello.")])).await;
        let config = Config { retries: quick(2), ..config(&server) };
        let reply = ask(&Endpoint::new(config).unwrap().model("claude-sonnet-5"), &Asked::default()).await.0;
        assert_eq!((server.requests().len(), reply.is_ok()), (asked, asked == 2));
    }
}

#[tokio::test]
async fn a_missing_key_is_named_before_anything_is_sent() {
    let server = Server::start(Behavior::from(Answer::text("Hello.")).key(KEY)).await;
    let keyless = Config { key: None, needs_key: true, ..config(&server) };
    let error = ask(&Endpoint::new(keyless).unwrap().model("claude-sonnet-5"), &Asked::default())
        .await
        .0
        .unwrap_err();
    assert!(error.hint.unwrap().contains("ANTHROPIC_API_KEY") && server.requests().is_empty());
}

// P43: an error under status 200 has the status that its type stands for.
#[tokio::test]
async fn an_error_inside_of_a_reply_has_the_status_of_its_type() {
    for (kind, status) in [
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("timeout_error", 504),
        ("api_error", 500),
        ("permission_error", 403),
        ("billing_error", 402),
        ("request_too_large", 413),
        ("invalid_request_error", 400),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": "No."}});
        let event = format!("event: error\ndata: {error}\n\n");
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            event.len()
        );
        let server = Server::start(Behavior::raw(format!("{head}{event}"))).await;
        let error = ask(&claude(&server, "claude-sonnet-5"), &Asked::default()).await.0.unwrap_err();
        assert_eq!(error.status, Some(status), "{kind}: {error}");
    }
}
