//! What goes wrong with Gemini, and what to do about it.

use polylogue_core::ModelErrorKind as Kind;
use polylogue_models::{Config, Retries};
use polylogue_test::server::{Answer, Behavior, Server};
use serde_json::{Value, json};

use crate::common::{Asked, ask, quick};
use crate::gemini::{NEW, config, model};

/// An error as Google writes it.
fn error(status: u16, code: &str, message: &str, details: Value) -> Behavior {
    let body = json!({"error": {"code": status, "message": message, "status": code, "details": details}})
        .to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    Behavior::raw(head + &body)
}

async fn failed(behavior: Behavior, retries: Retries) -> (polylogue_core::ModelError, usize) {
    let server = Server::start(behavior).await;
    let (reply, _) = ask(&model(Config { retries, ..config(&server) }, NEW), &Asked::default()).await;
    (reply.unwrap_err(), server.count())
}

fn info(reason: &str) -> Value {
    json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}])
}

fn quota(id: &str) -> Value {
    json!([
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.001s"},
    ])
}

#[tokio::test]
async fn every_error_has_its_kind_and_says_what_to_do() {
    let long = "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).";
    let unsigned = "Function call is missing a thought_signature in functionCall parts.";
    for (behavior, kind, says, hint, asked) in [
        (
            error(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                info("API_KEY_INVALID"),
            ),
            Kind::Config,
            "API key not valid",
            "check the key",
            1,
        ),
        (error(403, "PERMISSION_DENIED", "No.", json!([])), Kind::Config, "No", "check the key", 1),
        (
            error(404, "NOT_FOUND", "No such model.", json!([])),
            Kind::Config,
            "No such model",
            "the model's name",
            1,
        ),
        (
            error(400, "INVALID_ARGUMENT", long, json!([])),
            Kind::TooLong { tokens: Some(1_048_600), limit: Some(1_048_576) },
            "input token count",
            "trim it",
            1,
        ),
        (error(400, "INVALID_ARGUMENT", unsigned, json!([])), Kind::SealsRefused, "thought_signature", "", 1),
        (
            error(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", quota("GenerateRequestsPerMinutePerProject")),
            Kind::Unavailable,
            "Quota exceeded",
            "per_minute",
            3,
        ),
        (
            error(
                429,
                "RESOURCE_EXHAUSTED",
                "Quota exceeded.",
                quota("GenerateRequestsPerDayPerProjectPerModel"),
            ),
            Kind::QuotaExceeded,
            "Quota exceeded",
            "quota",
            1,
        ),
        (
            error(503, "UNAVAILABLE", "The model is overloaded.", json!([])),
            Kind::Unavailable,
            "overloaded",
            "later",
            3,
        ),
        (error(500, "INTERNAL", "An internal error.", json!([])), Kind::Unavailable, "internal", "later", 3),
    ] {
        let (error, count) = failed(behavior, quick(3)).await;
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(error.message.contains(says), "{error:?}");
        assert!(error.hint.clone().unwrap_or_default().contains(hint), "{error:?}");
        assert_eq!(count, asked, "{error:?}");
        assert!(!format!("{error:?}").contains("no-one-may-see"));
    }
}

#[tokio::test]
async fn a_key_that_is_refused_is_never_shown() {
    let server = Server::start(Behavior::from(Answer::text("x")).key("another-key")).await;
    let (reply, _) = ask(&model(config(&server), NEW), &Asked::default()).await;
    let error = reply.unwrap_err();
    assert_eq!((&error.kind, error.status), (&Kind::Config, Some(401)));
    assert!(!format!("{error:?}").contains("no-one-may-see"));
}
