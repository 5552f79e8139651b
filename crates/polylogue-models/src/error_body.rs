//! What the body of an error says, in the forms of all providers.

use std::time::Duration;

use serde_json::Value;

use crate::too_long::too_long;

/// How much of a provider's message is quoted.
const MESSAGE_KEPT: usize = 500;

/// The hint for a request that is too long.
pub(crate) const LONG: &str =
    "the conversation is longer than the model can read: trim it, or take another model";

/// The content of an error's body.
#[derive(Debug, Default)]
pub(crate) struct ErrorBody {
    pub(crate) message: Option<String>,
    /// Codes and types, in lower case.
    pub(crate) codes: Vec<String>,
    /// A code that is an HTTP status.
    pub(crate) number: Option<u16>,
    /// The wait that Google asks for here and not in a header.
    pub(crate) wait: Option<Duration>,
    /// The tokens of the request and the context window, as llama.cpp names them.
    pub(crate) tokens: Option<u32>,
    pub(crate) limit: Option<u32>,
}

impl ErrorBody {
    pub(crate) fn of(body: &str) -> Self {
        let Ok(json) = serde_json::from_str::<Value>(body) else {
            let line = body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('<'));
            return Self { message: line.map(shorten), ..Self::default() };
        };
        // Some wrap the object in a list.
        let json = json.get(0).unwrap_or(&json);
        let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(json);
        // Ollama forwards errors of the program behind it: JSON in the text of an error.
        if let Some(inner) = error.as_str().filter(|text| text.starts_with('{') && text.len() < body.len()) {
            return Self::of(inner);
        }
        let texts = [error.as_str(), text(error, "message"), text(json, "message"), text(json, "detail")];
        let detail = json.get("detail").filter(|detail| detail.is_array()).map(Value::to_string);
        let message = texts.into_iter().flatten().next().map(str::to_owned).or(detail);
        let fields = ["code", "type", "status"].map(|name| error.get(name));
        let number =
            fields.iter().flatten().find_map(|value| value.as_u64()).and_then(|n| u16::try_from(n).ok());
        let codes =
            fields.into_iter().flatten().filter_map(Value::as_str).map(str::to_ascii_lowercase).collect();
        let count =
            |name: &str| error.get(name).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
        let (tokens, limit) = (count("n_prompt_tokens"), count("n_ctx"));
        let message = message.as_deref().map(shorten);
        Self { message, codes, number, wait: retry_delay(error), tokens, limit }
    }

    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        words.iter().any(|word| message.contains(word) || self.codes.iter().any(|code| code.contains(word)))
    }

    pub(crate) fn is_quota(&self) -> bool {
        // Google uses the same for its limits per minute.
        let per_minute = self.codes.iter().any(|code| code == "resource_exhausted");
        let words = ["insufficient_quota", "exceeded your current quota", "billing", "insufficient balance"];
        !per_minute && self.mentions(&words)
    }

    /// The tokens of the request and the limit, if the error is that the request is too long.
    pub(crate) fn too_long(&self) -> Option<(Option<u32>, Option<u32>)> {
        let (tokens, limit) = too_long(self.message.as_deref().unwrap_or_default(), &self.codes)?;
        Some((self.tokens.or(tokens), self.limit.or(limit)))
    }

    /// Whether the error is that seals of earlier replies are no longer accepted.
    pub(crate) fn is_stale(&self) -> bool {
        self.mentions(&[
            "invalid_encrypted_content",
            "invalid `signature` in `thinking` block",
            "bound to a different conversation",
            "missing_thought_signature",
            "thought_signature is not valid",
        ])
    }

    /// The status that an error inside a stream stands for.
    pub(crate) fn status(&self) -> Option<u16> {
        let code = self.codes.iter().find_map(|code| code.parse().ok());
        self.number.or(code).filter(|status| (400..600).contains(status)).or_else(|| {
            let like =
                |words: &[&str]| self.codes.iter().any(|code| words.iter().any(|word| code.contains(word)));
            match () {
                () if like(&["rate_limit", "insufficient_quota"]) => Some(429),
                () if like(&["overloaded", "unavailable"]) => Some(503),
                () if like(&["server_error", "internal_error", "api_error"]) => Some(500),
                () if like(&["authentication", "invalid_api_key"]) => Some(401),
                () if like(&["not_found"]) => Some(404),
                () if like(&["invalid_request", "badrequest"]) => Some(400),
                () => None,
            }
        })
    }

    pub(crate) fn hint(&self) -> Option<String> {
        let hint = if self.too_long().is_some() {
            LONG
        } else if self.mentions(&["response_format", "json_schema"]) {
            "the model or the server may know no JSON schemas: ask for the form in words"
        } else if self.mentions(&["tool"]) {
            "the model or the server may know no tools"
        } else if self.mentions(&["alternat", "roles must"]) {
            "the model wants the roles to alternate: leave `merge` on"
        } else {
            return None;
        };
        Some(hint.to_owned())
    }
}

/// Parses `{"details": [{"retryDelay": "17s"}]}`, Google's format.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

fn shorten(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    match text.char_indices().nth(MESSAGE_KEPT) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
