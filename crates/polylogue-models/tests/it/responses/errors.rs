//! Errors by status, by code and inside of streams.

use polylogue_core::ModelErrorKind as Kind;
use polylogue_models::Config;
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Server};

use super::{config, reasoning};
use crate::common::{Asked, KEY, ask, quick, reply, text, weather as look};

/// P14, P71: what the codes of errors mean.
#[tokio::test]
async fn codes_say_what_happened() {
    for (status, code, message, expected) in [
        (
            400,
            "context_length_exceeded",
            "Your input exceeds the context window of this model.",
            Kind::TooLong { tokens: None, limit: None },
        ),
        (
            400,
            "invalid_encrypted_content",
            "The encrypted content could not be verified.",
            Kind::SealsRefused,
        ),
        (400, "", "The encrypted content for item rs_1 could not be verified.", Kind::SealsRefused),
        (400, "unsupported_parameter", "Unsupported parameter: 'top_k'.", Kind::Config),
        (401, "invalid_api_key", "Incorrect API key provided.", Kind::Config),
        (404, "model_not_found", "The model does not exist.", Kind::Config),
        (429, "insufficient_quota", "You exceeded your current quota.", Kind::QuotaExceeded),
        (500, "server_error", "The server had an error.", Kind::Unavailable),
    ] {
        let server = Server::start(Behavior::from(Answer::error(status, message).code(code))).await;
        let error = reply(&reasoning(config(&server))).await.unwrap_err();
        assert_eq!((error.kind, error.status), (expected, Some(status)), "{error:?}");
        assert!(!format!("{error:?}").contains(KEY));
    }
}

/// P6: an error after the first pieces is followed by the whole reply of the next attempt.
#[tokio::test]
async fn an_error_inside_of_a_stream_is_followed_by_a_whole_reply() {
    let answers = [Answer::text("It is wet.").with(Quirk::ErrorInStream(5)), Answer::text("It is dry.")];
    let server = Server::start(Playbook::list(answers)).await;
    let model = reasoning(Config { retries: quick(2), ..config(&server) });
    let (reply, received) = ask(&model, &Asked::default()).await;
    assert_eq!(text(&reply.unwrap()), "It is dry.");
    assert!(received.ends_with("|It is dry."), "{received}");
}

/// P3: a stream without its end mark is a broken connection.
#[tokio::test]
async fn a_stream_without_its_end_is_broken() {
    for quirk in [Quirk::Truncated, Quirk::HangUp, Quirk::Reset] {
        let server = Server::start(Behavior::from(Answer::text("It is").with(quirk))).await;
        assert_eq!(reply(&reasoning(config(&server))).await.unwrap_err().kind, Kind::Connection);
    }
}

/// A model whose reasoning cannot be encrypted is named, with what to do.
#[tokio::test]
async fn a_model_without_encrypted_reasoning_is_an_error_with_a_way_out() {
    let message = "Encrypted content is not supported with this model.";
    let server = Server::start(Behavior::from(Answer::error(400, message))).await;
    let asked = Asked { tools: vec![look()], ..Asked::default() };
    let error = ask(&reasoning(config(&server)), &asked).await.0.unwrap_err();
    assert_eq!(error.kind, Kind::Config);
    assert!(error.hint.as_ref().unwrap().contains("chat completions"), "{error:?}");
}
