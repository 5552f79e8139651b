//! Ollama's own API: the same answers in its form.
//!
//! As Ollama's `api/types.go` and `server/routes.go` have it: `POST /api/chat` gives one JSON object a line, or a whole
//! one where `stream` is `false`; `GET /api/tags` lists models, `GET /api/version` tells the version.

mod reply;
mod validate;

use serde_json::{Value, json};

use super::answer::Refusal;

pub(super) use reply::{body, chunks, one_more};
pub(super) use validate::validate;

/// The version that it says it is.
const VERSION: &str = "0.13.0";

/// The error that comes in the middle of a stream when something breaks half-way.
pub(super) fn error_object() -> Value {
    json!({"error": "an error was encountered while running the model: unexpected EOF"})
}

/// The error object of a refusal.
pub(super) fn error_body(refusal: &Refusal, model: &str) -> Value {
    let usual = match refusal.status {
        401 => "unauthorized".to_owned(),
        404 => format!("model '{model}' not found"),
        429 => "you have reached your usage limit".to_owned(),
        400..500 => "invalid request".to_owned(),
        503 => "server busy, please try again.  maximum pending requests exceeded".to_owned(),
        _ => "llama runner process has terminated: exit status 2".to_owned(),
    };
    json!({"error": refusal.message.as_ref().unwrap_or(&usual)})
}

/// What a model that cannot call functions answers to tools.
pub(super) fn no_tools(model: &str) -> String {
    format!("registry.ollama.ai/library/{model} does not support tools")
}

/// What `/api/tags` tells.
pub(super) fn tags(names: &[String]) -> Value {
    let model = |name: &String| {
        json!({"name": name, "model": name, "modified_at": reply::CREATED_AT, "size": 2_019_393_189_u64,
               "digest": "a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72",
               "details": {"format": "gguf", "family": "llama", "parameter_size": "3.2B",
                           "quantization_level": "Q4_K_M"}})
    };
    json!({"models": names.iter().map(model).collect::<Value>()})
}

/// What `/api/version` tells.
pub(super) fn version() -> Value {
    json!({"version": VERSION})
}
