//! The APIs of endpoints.

use polylogue_http::HeaderName;

use crate::auth::{Auth, GOOGLE_KEY};

/// The API of an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI's chat completions, which most servers support.
    #[default]
    ChatCompletions,
    /// OpenAI's Responses, which Azure and a few other servers support: the only API that returns the reasoning of
    /// OpenAI's models between calls of tools.
    Responses,
    /// Gemini's own API, of Google's Gemini API and of Vertex AI: `generateContent`.
    Gemini,
    /// Ollama's own API: it alone accepts `num_ctx`, `keep_alive` and `think`, and reports when a conversation does
    /// not fit.
    Ollama,
    /// Anthropic's Messages API: the native API of Claude models.
    Messages,
    /// Amazon Bedrock's Converse API, for all its models.
    Converse,
}

/// The API of an endpoint's embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EmbeddingApi {
    /// OpenAI's `/embeddings`, which most servers support.
    OpenAi,
    /// Mistral's `/embeddings`.
    Mistral,
    /// Cohere's `/v2/embed`.
    Cohere,
    /// Ollama's `/api/embed`.
    Ollama,
    /// Gemini's `batchEmbedContents`.
    Gemini,
    /// Vertex AI's `predict`, or `embedContent` for newer models.
    Vertex,
    /// Amazon Bedrock's `invoke`, for Titan's and Cohere's models.
    Bedrock,
}

/// The header of Anthropic's API that lists what a request uses besides the version.
pub(crate) const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// How an API uses HTTP.
pub(crate) struct Http {
    /// The path of requests to models below the base URL, unless it depends on the model.
    pub(crate) chat: &'static str,
    /// The path of the list of models, empty if the API has none, and the field of each with its name.
    pub(crate) models: (&'static str, &'static str),
    /// The API of embeddings of servers with this API, if they have any.
    pub(crate) embeddings: Option<EmbeddingApi>,
    /// The `Accept` header.
    pub(crate) accept: &'static str,
    /// How requests are authorized, unless the configuration says otherwise.
    pub(crate) auth: Auth,
}

impl Api {
    pub(crate) fn http(self) -> Http {
        match self {
            Self::ChatCompletions => Http {
                chat: "/chat/completions",
                models: ("/models", "id"),
                embeddings: Some(EmbeddingApi::OpenAi),
                accept: "text/event-stream, application/json",
                auth: Auth::Bearer,
            },
            Self::Responses => Http { chat: "/responses", ..Self::ChatCompletions.http() },
            Self::Gemini => Http {
                chat: "",
                models: ("/models?pageSize=1000", "name"),
                embeddings: Some(EmbeddingApi::Gemini),
                accept: "text/event-stream, application/json",
                auth: Auth::Header(GOOGLE_KEY),
            },
            Self::Ollama => Http {
                chat: "/api/chat",
                models: ("/api/tags", "name"),
                embeddings: Some(EmbeddingApi::Ollama),
                accept: "application/x-ndjson, application/json",
                auth: Auth::Bearer,
            },
            Self::Messages => Http {
                chat: "/v1/messages",
                models: ("/v1/models?limit=1000", "id"),
                embeddings: None,
                accept: "text/event-stream, application/json",
                auth: Auth::Header(HeaderName::from_static("x-api-key")),
            },
            Self::Converse => Http {
                chat: "",
                // Another host has it, in two lists.
                models: ("", ""),
                embeddings: Some(EmbeddingApi::Bedrock),
                accept: "application/vnd.amazon.eventstream, application/json",
                auth: Auth::Bearer,
            },
        }
    }

    /// The headers that every request has, unless it has others of the same name: the version of the API.
    pub(crate) const fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Messages => &[("anthropic-version", "2026-10-21")],
            _ => &[],
        }
    }

    /// `base` without the paths that are often given with it.
    pub(crate) fn root(self, base: &str) -> &str {
        let base = base.trim_end_matches('/');
        let base = base.strip_suffix(self.http().chat).unwrap_or(base);
        match self {
            // The address of its OpenAI-compatible API is accepted, too.
            Self::Ollama => base.strip_suffix("/v1").or_else(|| base.strip_suffix("/api")).unwrap_or(base),
            // The address with the version is accepted, too.
            Self::Messages => base.strip_suffix("/v1").unwrap_or(base),
            // A host alone is that of the current version.
            Self::Gemini if base.is_empty() => "/v1beta",
            _ => base,
        }
    }
}
