//! The APIs of providers, by dialect: what each asks of requests, and how it replies and refuses.

#![expect(clippy::indexing_slicing, reason = "objects that are made here have the fields that are named")]

use serde_json::{Value, json};

use super::answer::Refusal;
use super::chunks::{self, Chunks};
use super::completion::Completion;
use super::dialect::Dialect;
use super::validate::validate_as;
use super::vendor::{Vendor, without_thinking};
use super::{Behavior, Received, anthropic, bedrock, gemini, limits, ollama, refusal, responses};

impl Dialect {
    /// Checks a request as the provider does.
    pub(super) fn validate(self, behavior: &Behavior, received: &Received) -> Result<(), String> {
        match self {
            Self::ChatCompletions => chat_completions(behavior, &received.body),
            Self::Ollama => ollama::validate(&received.body, behavior.history),
            Self::Messages => anthropic::validate(received),
            Self::Responses => responses::validate(&received.body),
            Self::GenerateContent => gemini::check(received),
            Self::Converse => bedrock::validate(received.model(), &received.body),
        }?;
        limits::check(self, behavior.vendor, received)
    }

    /// The body of a reply that is not streamed.
    pub(super) fn body(self, completion: &Completion<'_>) -> Value {
        match self {
            Self::ChatCompletions => completion.body(),
            Self::Ollama => ollama::body(completion),
            Self::Messages => anthropic::body(completion),
            Self::Responses => responses::body(completion),
            Self::GenerateContent => gemini::body(completion),
            Self::Converse => bedrock::body(completion),
        }
    }

    /// The pieces of a streamed reply.
    pub(super) fn chunks(self, completion: &Completion<'_>) -> Chunks {
        match self {
            Self::ChatCompletions => chunks::chunks(completion),
            Self::Ollama => ollama::chunks(completion),
            Self::Messages => anthropic::chunks(completion),
            Self::Responses => responses::chunks(completion),
            Self::GenerateContent => gemini::chunks(completion),
            Self::Converse => bedrock::chunks(completion),
        }
    }

    /// One more piece with text, for streams that never end.
    pub(super) fn one_more(self, completion: &Completion<'_>, text: &str) -> String {
        match self {
            Self::ChatCompletions => chunks::one_more(completion, text),
            Self::Ollama => ollama::one_more(completion, text),
            Self::Messages => anthropic::one_more(completion, text),
            Self::Responses => responses::one_more(completion, text),
            Self::GenerateContent => gemini::one_more(completion, text),
            Self::Converse => bedrock::one_more(completion, text),
        }
    }

    /// The error object of a refusal.
    pub(super) fn error_body(self, refusal: &Refusal, received: &Received) -> Value {
        match self {
            Self::ChatCompletions | Self::Responses => refusal::error_body(refusal),
            Self::Ollama => ollama::error_body(refusal, received.model()),
            Self::Messages => anthropic::error_body(refusal),
            Self::GenerateContent => gemini::error_body(refusal),
            Self::Converse => bedrock::error_body(refusal),
        }
    }

    /// The error that comes in the middle of a stream when something breaks half-way.
    pub(super) fn error_in_stream(self) -> Value {
        let refusal = Refusal { status: 500, ..Refusal::default() };
        match self {
            Self::Ollama => ollama::error_object(),
            Self::Messages => anthropic::error_body(&Refusal { status: 529, ..refusal }),
            Self::Responses => {
                let body = refusal::error_body(&refusal);
                json!({"type": "error", "code": "server_error", "message": body["error"]["message"], "param": null})
            }
            Self::GenerateContent => gemini::error_body(&refusal),
            Self::ChatCompletions => refusal::error_body(&refusal),
            Self::Converse => json!({"modelStreamErrorException": "The model had an error."}),
        }
    }
}

/// Checks a request for chat completions as all servers do, and as its provider does.
fn chat_completions(behavior: &Behavior, body: &Value) -> Result<(), String> {
    let Some(vendor) = behavior.vendor else { return validate_as(body, behavior.history) };
    match vendor {
        Vendor::Mistral => validate_as(&without_thinking(body), behavior.history)?,
        _ => validate_as(body, behavior.history)?,
    }
    vendor.check(body)
}
