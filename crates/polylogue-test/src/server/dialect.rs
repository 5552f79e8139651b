//! The APIs that the server speaks, by the path of a request.

/// An API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// `POST /v1/chat/completions`, as OpenAI and compatible servers.
    ChatCompletions,
    /// `POST /v1/responses`, as OpenAI.
    Responses,
    /// `POST /v1/messages`, as Anthropic, and `.../models/MODEL:rawPredict` and `:streamRawPredict`, as Google for Claude.
    Messages,
    /// `POST .../models/MODEL:generateContent` and `:streamGenerateContent`, as Google.
    GenerateContent,
    /// `POST /model/MODEL/converse` and `/converse-stream`, as Amazon.
    Converse,
    /// `POST /api/chat`, as Ollama.
    Ollama,
}

/// How the pieces of a streamed reply are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events; `named` after the type of each, and ended by `[DONE]` or by an event of their own.
    Events { named: bool, done: bool },
    /// JSON objects, one a line.
    Lines,
    /// Binary frames.
    Frames,
}

impl Dialect {
    /// Returns the API of a request with this path, if it asks for a reply.
    pub fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        // Azure has the same APIs below another path.
        let path = path.strip_prefix("/openai").unwrap_or(path);
        Some(match path {
            "/v1/chat/completions" => Self::ChatCompletions,
            "/v1/responses" | "/responses" => Self::Responses,
            _ if path.starts_with("/deployments/") && path.ends_with("/chat/completions") => {
                Self::ChatCompletions
            }
            "/v1/messages" | "/anthropic/v1/messages" => Self::Messages,
            "/api/chat" => Self::Ollama,
            // Claude at Vertex AI.
            _ if path.ends_with(":rawPredict") || path.ends_with(":streamRawPredict") => Self::Messages,
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Self::GenerateContent
            }
            _ if path.starts_with("/model/")
                && (path.ends_with("/converse") || path.ends_with("/converse-stream")) =>
            {
                Self::Converse
            }
            _ => return None,
        })
    }

    pub(super) const fn framing(self) -> Framing {
        match self {
            Self::ChatCompletions => Framing::Events { named: false, done: true },
            Self::GenerateContent => Framing::Events { named: false, done: false },
            Self::Messages | Self::Responses => Framing::Events { named: true, done: false },
            Self::Ollama => Framing::Lines,
            Self::Converse => Framing::Frames,
        }
    }
}
