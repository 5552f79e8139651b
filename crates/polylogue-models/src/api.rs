//! The APIs of endpoints.

/// The API of an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI's chat completions, which most servers support.
    #[default]
    ChatCompletions,
    /// Ollama's own API: it alone accepts `num_ctx`, `keep_alive` and `think`, and reports when a conversation does
    /// not fit.
    Ollama,
}

impl Api {
    /// The path of chat requests.
    pub(crate) const fn chat(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/chat/completions",
            Self::Ollama => "/api/chat",
        }
    }

    /// `base` without the paths that are often given with it.
    pub(crate) fn root(self, base: &str) -> &str {
        let base = base.trim_end_matches('/');
        let base = base.strip_suffix(self.chat()).unwrap_or(base);
        match self {
            Self::ChatCompletions => base,
            // The address of its OpenAI-compatible API is accepted, too.
            Self::Ollama => base.strip_suffix("/v1").or_else(|| base.strip_suffix("/api")).unwrap_or(base),
        }
    }
}
