//! The Gemini API: what Google asks of requests, and how it replies.

mod reply;
mod validate;

use serde_json::{Value, json};

use super::Received;
use super::answer::Refusal;

pub(super) use reply::{body, chunks, one_more};

/// Checks a request as the Gemini API does, or as Vertex AI does, whose address names the publisher of a model.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub(super) fn check(received: &Received) -> Result<(), String> {
    validate::validate(received.model(), &received.body)?;
    if !received.path.contains("/publishers/") {
        return Ok(());
    }
    match received.tools().len() {
        ..=128 => validate::without_ids(&received.body),
        count => Err(format!("At most 128 function declarations can be specified, and there are {count}.")),
    }
}

/// The error object of a refusal.
pub(super) fn error_body(refusal: &Refusal) -> Value {
    let (status, usual) = match refusal.status {
        401 => ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
        403 => ("PERMISSION_DENIED", "The caller does not have permission."),
        404 => (
            "NOT_FOUND",
            "The model is not found for this API version, or is not supported for generateContent.",
        ),
        429 => (
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        400..500 => ("INVALID_ARGUMENT", "Request contains an invalid argument."),
        503 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        504 => ("DEADLINE_EXCEEDED", "The request timed out."),
        _ => ("INTERNAL", "An internal error has occurred."),
    };
    let status = refusal.code.as_deref().unwrap_or(status);
    let message = refusal.message.as_deref().unwrap_or(usual);
    json!({"error": {"code": refusal.status, "message": message, "status": status}})
}
