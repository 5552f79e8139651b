//! Error statuses and the bodies that OpenAI sends with them.

use serde_json::{Map, Value, json};

use super::answer::Refusal;

/// The error object of a refusal.
pub(super) fn error_body(refusal: &Refusal) -> Value {
    let (kind, code, message) = usual(refusal.status);
    let code = refusal.code.as_deref().or(code);
    let kind = refusal.code.as_deref().unwrap_or(kind);
    let mut error = Map::from_iter([
        ("message".to_owned(), refusal.message.as_deref().unwrap_or(message).into()),
        ("type".to_owned(), kind.into()),
        ("param".to_owned(), Value::Null),
        ("code".to_owned(), code.into()),
    ]);
    error.extend(refusal.generation.as_deref().map(|wrote| ("failed_generation".to_owned(), wrote.into())));
    json!({ "error": error })
}

/// Type, code and message that OpenAI's server gives with a status (its list of error codes, and what it sends).
const fn usual(status: u16) -> (&'static str, Option<&'static str>, &'static str) {
    const INVALID: &str = "invalid_request_error";
    match status {
        401 => (INVALID, Some("invalid_api_key"), "Incorrect API key provided."),
        403 => (
            "request_forbidden",
            Some("unsupported_country_region_territory"),
            "Country, region, or territory not supported",
        ),
        404 => {
            (INVALID, Some("model_not_found"), "The model does not exist or you do not have access to it.")
        }
        408 => ("timeout", None, "The request timed out."),
        409 => ("conflict", None, "The resource was changed by another request."),
        429 => ("requests", Some("rate_limit_exceeded"), "Rate limit reached for requests."),
        400..500 => (INVALID, None, "The request is invalid."),
        503 => ("service_unavailable", None, "The engine is currently overloaded, please try again later."),
        _ => {
            ("server_error", None, "The server had an error while processing your request. Sorry about that!")
        }
    }
}

/// The words of the status line.
pub(super) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Error",
    }
}
