//! The Messages API: what Anthropic asks of requests, and how it replies.

mod headers;
mod reply;
mod validate;

use serde_json::{Value, json};

use super::answer::Refusal;

pub(super) use reply::{body, chunks, one_more};
pub(super) use validate::validate;

/// The error object of a refusal.
pub(super) fn error_body(refusal: &Refusal) -> Value {
    let (kind, usual) = match refusal.status {
        401 => ("authentication_error", "invalid x-api-key"),
        402 => ("billing_error", "Your credit balance is too low to access the API."),
        403 => ("permission_error", "Your API key does not have permission to use the specified resource."),
        404 => ("not_found_error", "The requested resource could not be found."),
        413 => ("request_too_large", "Request exceeds the maximum allowed number of bytes."),
        429 => ("rate_limit_error", "Number of request tokens has exceeded your rate limit."),
        529 => ("overloaded_error", "Overloaded"),
        400..500 => ("invalid_request_error", "The request is invalid."),
        504 => ("timeout_error", "The request timed out."),
        _ => ("api_error", "Internal server error"),
    };
    let kind = refusal.code.as_deref().unwrap_or(kind);
    let message = refusal.message.as_deref().unwrap_or(usual);
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_0"})
}
