//! What the body of an error says, in the forms of all providers.

use std::time::Duration;

use serde_json::Value;

use crate::too_long::too_long;

/// How much of a provider's message is quoted.
pub(crate) const MESSAGE_KEPT: usize = 500;

/// How much of a provider's time is quoted: a date and a time have fewer characters.
const TIME_KEPT: usize = 40;

/// The hint for a request that is too long.
pub(crate) const LONG: &str =
    "the conversation is longer than the model can read: trim it, or take another model";

/// The hint for a request of too many bytes.
pub(crate) const LARGE: &str =
    "the request has too many bytes: send fewer or smaller pictures and documents, or trim the conversation";

/// The content of an error's body.
#[derive(Debug, Default)]
pub(crate) struct ErrorBody {
    /// All that it says, with secrets that it quotes: these are removed before it is [shortened](shorten).
    pub(crate) message: Option<String>,
    /// Codes and types, in lower case.
    pub(crate) codes: Vec<String>,
    /// A code that is an HTTP status.
    pub(crate) number: Option<u16>,
    /// The wait that Google asks for here and not in a header.
    pub(crate) wait: Option<Duration>,
    /// What the model wrote that Groq could not parse.
    pub(crate) generation: Option<String>,
    /// When a budget begins again, as OpenRouter says it.
    pub(crate) resets_at: Option<String>,
    /// Whether it is a web page, which no provider answers with: something else is at the address, or before it.
    pub(crate) is_page: bool,
    /// The tokens of the request and the context window, as llama.cpp names them.
    pub(crate) tokens: Option<u32>,
    pub(crate) limit: Option<u32>,
}

/// Codes of providers whose filter refused a request: Azure's, OpenAI's, and Qwen's.
const FILTERED: [&str; 4] =
    ["content_filter", "responsibleaipolicyviolation", "content_policy_violation", "data_inspection_failed"];

/// The statuses of errors inside a reply, by what their codes contain; the first match counts.
const STATUSES: &[(&str, u16)] = &[
    ("context_length_exceeded", 400),
    ("invalid_encrypted_content", 400),
    ("invalid_prompt", 400),
    ("content_filter", 400),
    ("content_policy_violation", 400),
    ("data_inspection_failed", 400),
    ("overloaded_error", 529),
    ("timeout_error", 504),
    ("permission_error", 403),
    ("billing_error", 402),
    ("request_too_large", 413),
    ("insufficient_system_resource", 503),
    ("tool_use_failed", 400),
    ("json_validate_failed", 400),
    ("rate_limit", 429),
    ("insufficient_quota", 429),
    ("resource_exhausted", 429),
    ("overloaded", 503),
    ("unavailable", 503),
    ("server_error", 500),
    ("internal_error", 500),
    ("api_error", 500),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("not_found", 404),
    ("invalid_request", 400),
    ("badrequest", 400),
    ("throttling", 429),
    ("modelnotready", 429),
    ("modelstreamerror", 424),
    ("modelerror", 424),
    ("modeltimeout", 408),
    ("internalserver", 500),
    ("accessdenied", 403),
    ("validationexception", 400),
];

impl ErrorBody {
    pub(crate) fn of(body: &str) -> Self {
        let Ok(json) = serde_json::from_str::<Value>(body) else {
            let is_page = body.trim_start().starts_with('<');
            let line = body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('<'));
            return Self { message: line.map(str::to_owned), is_page, ..Self::default() };
        };
        // Some wrap the object in a list.
        let json = json.get(0).unwrap_or(&json);
        let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(json);
        // Ollama forwards errors of the program behind it: JSON in the text of an error.
        if let Some(inner) = error.as_str().filter(|text| text.starts_with('{') && text.len() < body.len()) {
            return Self::of(inner);
        }
        let described = text(json, "error_description");
        // Amazon writes it with a capital letter where the key has no access.
        let own = ["message", "Message", "detail"].map(|name| text(json, name));
        let texts = [described, error.as_str(), text(error, "message")].into_iter().chain(own);
        let detail = json.get("detail").filter(|detail| detail.is_array()).map(Value::to_string);
        let message = texts.flatten().next().map(str::to_owned).or(detail);
        // OpenRouter quotes the provider behind it.
        let raw = error.pointer("/metadata/raw").filter(|raw| !raw.is_null());
        let message = message.map(|message| match raw {
            Some(Value::String(quoted)) => format!("{message}: {quoted}"),
            Some(quoted) => format!("{message}: {quoted}"),
            None => message,
        });
        let fields = ["code", "type", "status", "__type"].map(|name| error.get(name));
        let number =
            fields.iter().flatten().find_map(|value| value.as_u64()).and_then(|n| u16::try_from(n).ok());
        // Anthropic's type is that of the status; the code says more.
        let detail = error.get("details").and_then(|details| details.get("error_code"));
        // OpenRouter says here which of its limits is reached.
        let limits = ["/metadata/limit_source", "/metadata/reason"].map(|place| error.pointer(place));
        let codes = fields.into_iter().chain([detail]).chain(limits).flatten().filter_map(Value::as_str);
        let codes = codes.chain(reasons(error)).map(code).collect();
        let count =
            |name: &str| error.get(name).and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok());
        let (tokens, limit) = (count("n_prompt_tokens"), count("n_ctx"));
        let generation = text(error, "failed_generation").map(str::to_owned);
        let resets_at = error.pointer("/metadata/resets_at").and_then(Value::as_str);
        let resets_at = resets_at.map(|time| time.chars().take(TIME_KEPT).collect());
        let (wait, is_page) = (retry_delay(error), false);
        Self { message, codes, number, wait, generation, resets_at, is_page, tokens, limit }
    }

    /// Adds the type of Amazon's errors, which is in a header.
    pub(crate) fn with_header(mut self, header: Option<&str>) -> Self {
        self.codes.extend(header.map(code));
        self
    }

    /// The beginning of the message, by which errors are distinguished. Messages can quote all of a prompt.
    fn beginning(&self) -> &str {
        self.message.as_deref().map_or("", beginning)
    }

    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        let message = self.beginning().to_ascii_lowercase();
        words.iter().any(|word| message.contains(word) || self.codes.iter().any(|code| code.contains(word)))
    }

    /// Whether Google's limit of a day is reached, so that no wait that it asks for helps.
    pub(crate) fn is_quota_of_day(&self) -> bool {
        self.codes.iter().any(|code| code.contains("perday"))
    }

    /// Whether no credit is left. A code counts before the words: OpenAI's limits per minute advise to add a payment method under
    /// `/billing`, and Google's have the words of a quota.
    pub(crate) fn is_quota(&self) -> bool {
        let has = |part: &str| self.codes.iter().any(|code| code.contains(part));
        let per_minute = has("resource_exhausted") || has("rate_limit");
        let words = ["insufficient_quota", "exceeded your current quota", "billing", "insufficient balance"];
        has("insufficient_quota") || !per_minute && self.mentions(&words)
    }

    /// The tokens of the request and the limit, if the error is that the request is too long.
    pub(crate) fn too_long(&self) -> Option<(Option<u32>, Option<u32>)> {
        let (tokens, limit) = too_long(self.beginning(), &self.codes)?;
        Some((self.tokens.or(tokens), self.limit.or(limit)))
    }

    /// What the model wrote, if the error is that its provider cannot parse the call, or the JSON, in it. Empty if it does not say.
    pub(crate) fn unparsed(&self) -> Option<&str> {
        let is_unparsed = |code: &String| code == "tool_use_failed" || code == "json_validate_failed";
        self.codes.iter().any(is_unparsed).then(|| self.generation.as_deref().unwrap_or_default())
    }

    /// Whether the error is that a filter of the provider refused the request.
    pub(crate) fn is_filtered(&self) -> bool {
        let has = |words: &[&str]| words.iter().any(|word| self.codes.iter().any(|code| code.contains(word)));
        // Prompts can be invalid for other reasons, too.
        let is_prompt = has(&["invalid_prompt"]) && self.mentions(&["flagged", "usage polic", "safety"]);
        is_prompt || has(&FILTERED) || self.mentions(&["datainspectionfailed", "input was flagged"])
    }

    /// Whether the error is that seals of earlier replies are no longer accepted.
    pub(crate) fn refuses_seals(&self) -> bool {
        self.mentions(&[
            "invalid_encrypted_content",
            "encrypted content for item",
            "invalid `signature` in `thinking` block",
            "invalid `data` in `redacted_thinking` block",
            "bound to a different conversation",
            "missing_thought_signature",
            "thought_signature is not valid",
            "missing a thought_signature",
            "missing a `thought_signature`",
            "thought signature is not valid",
            "corrupted thought signature",
        ])
    }

    /// The status that an error inside a stream stands for.
    pub(crate) fn status(&self) -> Option<u16> {
        let code = self.codes.iter().find_map(|code| code.parse().ok());
        self.number.or(code).filter(|status| (400..600).contains(status)).or_else(|| {
            let has = |part: &str| self.codes.iter().any(|code| code.contains(part));
            STATUSES.iter().find(|(part, _)| has(part)).map(|(_, status)| *status)
        })
    }

    pub(crate) fn hint(&self) -> Option<String> {
        let hint = if self.too_long().is_some() {
            LONG
        } else if self.mentions(&["encrypted content is not supported"]) {
            "the model does not return its reasoning: call it by chat completions, such as with `openai-chat:`"
        } else if self.codes.iter().any(|code| code == "request_too_large") {
            LARGE
        } else if self.mentions(&["must be verified to stream"]) {
            "the provider streams this model only to verified organizations: verify yours in its settings, or use `--no-stream`"
        } else if self.mentions(&["must be verified to generate reasoning"]) {
            "the provider summarizes reasoning only for verified organizations: verify yours in its settings, or leave out `thinking: summary`"
        } else if self.mentions(&["invalid schema for response_format"]) {
            "the provider does not take the JSON Schema of the reply: simplify it, or set `capabilities: {schema: false}` of the endpoint, so that it is asked for in words"
        } else if self.mentions(&["invalid schema", "invalid_function_parameters", "input_schema"]) {
            "the provider does not take the JSON Schema that the message names: simplify it, leave the tool out, or set `tool_calling: text`, which sends no schemas"
        } else if self.mentions(&["model identifier is invalid", "on-demand throughput"]) {
            "check the model's id and the region: many models are called by an inference profile, such as `us.` and the id"
        } else if self.mentions(&["must alternate", "roles must"]) {
            "the model wants the roles to alternate: leave `merge` on"
        } else {
            return None;
        };
        Some(hint.to_owned())
    }
}

/// The reasons of `{"details": [{"reason": "API_KEY_INVALID"}, {"violations": [{"quotaId": "...PerDay..."}]}]}`, Google's
/// format.
fn reasons(error: &Value) -> impl Iterator<Item = &str> {
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    details.flat_map(|detail| {
        let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
        let quotas = violations.filter_map(|violation| violation.get("quotaId"));
        detail.get("reason").into_iter().chain(quotas).filter_map(Value::as_str)
    })
}

/// Parses `{"details": [{"retryDelay": "17s"}]}`, Google's format.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// A code in lower case. Amazon's have a namespace before a `#`, and an address after a `:`.
fn code(text: &str) -> String {
    let text = text.rsplit_once('#').map_or(text, |(_, name)| name);
    text.split_once(":http").map_or(text, |(name, _)| name).to_ascii_lowercase()
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

fn beginning(text: &str) -> &str {
    let text = text.trim().trim_end_matches('.');
    let end = text.char_indices().nth(MESSAGE_KEPT).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}
