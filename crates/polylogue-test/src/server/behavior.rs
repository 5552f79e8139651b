//! What kind of server it is, whatever it answers.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{Answer, Dialect, History, Playbook, Quirk, Received, Vendor, bedrock, ollama};

/// The behavior of a server: what it answers, how fast, and what it refuses.
///
/// ```
/// use std::time::Duration;
/// use polylogue_test::server::{Behavior, History, Playbook, Quirk};
///
/// let slow = Behavior::from(Playbook::echo()).latency(Duration::from_millis(50));
/// let old = Behavior::from("I can only talk.").text_only().history(History::Loose).with(Quirk::NoUsage);
/// # let _ = (slow, old);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Behavior {
    pub(super) play: Play,
    pub(super) latency: Duration,
    pub(super) models: Vec<String>,
    pub(super) models_per_page: Option<usize>,
    pub(super) endless_models: bool,
    pub(super) window: Option<u64>,
    pub(super) history: History,
    pub(super) vendor: Option<Vendor>,
    pub(super) text_only: bool,
    pub(super) plain_template: bool,
    pub(super) no_user_after_tool: bool,
    pub(super) no_parameters: Vec<String>,
    pub(super) key: Option<String>,
    pub(super) secret: Option<String>,
    pub(super) seconds_ahead: i64,
    pub(super) quirks: Vec<Quirk>,
    pub(super) records: bool,
}

/// How answers come about.
#[derive(Debug, Clone)]
pub(super) enum Play {
    /// Requests are read, checked and answered by the playbook.
    Book(Playbook),
    /// Every request gets these bytes.
    Raw(Vec<u8>),
}

impl Behavior {
    /// Sends `response_bytes`, a whole HTTP response with a `Content-Length` or chunks, to every request, and looks
    /// at nothing of the request but where it ends. Nothing is recorded but the count: the cheapest server there can
    /// be, for benchmarks. [`rendered`] makes the bytes of an answer.
    pub fn raw(response_bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Play::Raw(response_bytes.into()))
    }

    fn new(play: Play) -> Self {
        Self {
            play,
            latency: Duration::ZERO,
            models: vec!["scripted".into()],
            models_per_page: None,
            endless_models: false,
            window: None,
            history: History::Strict,
            vendor: None,
            text_only: false,
            plain_template: false,
            no_user_after_tool: false,
            no_parameters: Vec::new(),
            key: None,
            secret: None,
            seconds_ahead: 0,
            quirks: Vec::new(),
            records: true,
        }
    }

    /// Sets the time between the last byte of a request and the first of its response.
    pub fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Sets what the lists of models have; any model is answered all the same. One with `embed` in its name makes vectors, one with
    /// `image` pictures, where a list tells that.
    pub fn models<M: Into<String>>(self, models: impl IntoIterator<Item = M>) -> Self {
        Self { models: models.into_iter().map(Into::into).collect(), ..self }
    }

    /// Lists at most so many models a page, in the way of each API that has pages.
    pub fn models_per_page(self, most: usize) -> Self {
        Self { models_per_page: Some(most), ..self }
    }

    /// Says after each page of a list of models that there is another one, which is always the first.
    pub fn endless_models(self) -> Self {
        Self { endless_models: true, ..self }
    }

    /// Sets the context window, in tokens, that `/v1/models` tells of each model, as vLLM does.
    pub fn window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    /// Sets how strictly requests are judged. Default: [`History::Strict`].
    pub fn history(self, history: History) -> Self {
        Self { history, ..self }
    }

    /// Refuses what `vendor` refuses of chat completions, and replies in its form.
    pub fn vendor(mut self, vendor: Vendor) -> Self {
        self.quirks.extend(vendor.quirks().iter().cloned());
        Self { vendor: Some(vendor), ..self }
    }

    /// Refuses `tools` and `response_format` with 400, as small servers do; of Ollama's own API, `tools`. That is not a violation: a client may try.
    pub fn text_only(self) -> Self {
        Self { text_only: true, ..self }
    }

    /// Refuses a system role and `null` as a content, with 400 and in the words of the chat template of Gemma and its like. That
    /// is not a violation: a client may try.
    pub fn plain_template(self) -> Self {
        Self { plain_template: true, ..self }
    }

    /// Refuses a user message right after the result of a tool, with 400 and in the words of Mistral. That is not a violation: a
    /// client may try.
    pub fn no_user_after_tool(self) -> Self {
        Self { no_user_after_tool: true, ..self }
    }

    /// Refuses this field of a request, such as `seed`, with 400 and in the words of OpenAI, if its value is not `null`. That is not a
    /// violation: a client may try.
    pub fn no_parameter(mut self, field: impl Into<String>) -> Self {
        self.no_parameters.push(field.into());
        self
    }

    /// Answers 401 to requests without this key.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Answers 403 to requests that are not signed with this secret, as Amazon does (Signature Version 4).
    pub fn signed_with(self, secret: impl Into<String>) -> Self {
        Self { secret: Some(secret.into()), ..self }
    }

    /// Sets by how many seconds the server's clock is ahead of that of this machine. Signatures are checked by it.
    pub fn seconds_ahead(self, seconds: i64) -> Self {
        Self { seconds_ahead: seconds, ..self }
    }

    /// Adds a deviation to every answer.
    pub fn with(mut self, quirk: Quirk) -> Self {
        self.quirks.push(quirk);
        self
    }

    /// Keeps no requests: [`Server::requests`](super::Server::requests) stays empty. For long runs, whose requests
    /// together would take too much memory.
    pub fn forgetful(self) -> Self {
        Self { records: false, ..self }
    }

    /// The refusal of a server that asks for a key, in the header that its provider reads.
    pub(super) fn check_key(&self, received: &Received) -> Option<Answer> {
        if let Some(secret) = &self.secret {
            return bedrock::check_signature(received, secret, self.now());
        }
        let key = self.key.as_ref()?;
        let own = match received.dialect() {
            Some(Dialect::Messages) => received.header("x-api-key"),
            Some(Dialect::GenerateContent) => received.header("x-goog-api-key"),
            _ => received.header("api-key"),
        };
        let bearer = || {
            received.header("authorization").map(|given| given.strip_prefix("Bearer ").unwrap_or_default())
        };
        match own.or_else(bearer) {
            Some(given) if given == key => None,
            Some(_) => Some(Answer::status(401)),
            None => Some(Answer::error(401, "You didn't provide an API key.")),
        }
    }

    fn now(&self) -> SystemTime {
        let (now, by) = (SystemTime::now(), Duration::from_secs(self.seconds_ahead.unsigned_abs()));
        if self.seconds_ahead < 0 { now - by } else { now + by }
    }

    /// The refusal of a server whose template knows no system role, and adds texts to contents.
    pub(super) fn check_template(&self, received: &Received) -> Option<Answer> {
        let messages = received.body.get("messages")?.as_array().filter(|_| self.plain_template)?;
        let role = |message: &Value| message.get("role").and_then(Value::as_str) == Some("system");
        if messages.iter().any(role) {
            return Some(Answer::error(400, "System role not supported"));
        }
        let null = messages.iter().any(|message| message.get("content").is_some_and(Value::is_null));
        null.then(|| Answer::error(400, "can only concatenate str (not \"NoneType\") to str"))
    }

    /// The refusal of a server that takes only the assistant's words after the results of tools.
    pub(super) fn check_results(&self, received: &Received) -> Option<Answer> {
        let messages = received.body.get("messages")?.as_array().filter(|_| self.no_user_after_tool)?;
        let role = |message: &Value, role: &str| message.get("role").and_then(Value::as_str) == Some(role);
        let mut pairs = messages.iter().zip(messages.iter().skip(1));
        let refused = pairs.any(|(before, next)| role(before, "tool") && role(next, "user"));
        refused.then(|| Answer::error(400, "Unexpected role 'user' after role 'tool'"))
    }

    /// The refusal of a server whose models take fewer parameters than others.
    pub(super) fn check_parameters(&self, received: &Received) -> Option<Answer> {
        let is_sent =
            |field: &&String| received.body.get(field.as_str()).is_some_and(|value| !value.is_null());
        let field = self.no_parameters.iter().find(is_sent)?;
        let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
        Some(Answer::error(400, message).code("unsupported_parameter"))
    }

    /// The refusal of a server that can only do text.
    pub(super) fn check_abilities(&self, received: &Received) -> Option<Answer> {
        if self.text_only && received.is_ollama() && received.body.get("tools").is_some() {
            return Some(Answer::error(400, ollama::no_tools(received.model())));
        }
        let asked = ["tools", "response_format"].into_iter().find(|field| received.body.get(field).is_some());
        let field = asked.filter(|_| self.text_only)?;
        Some(Answer::error(
            400,
            format!("Unsupported parameter: '{field}' is not supported with this model."),
        ))
    }
}

impl<P: Into<Playbook>> From<P> for Behavior {
    fn from(playbook: P) -> Self {
        Self::new(Play::Book(playbook.into()))
    }
}

/// Returns the bytes of the response to a request for `model` that is streamed or not: for [`Behavior::raw`].
///
/// ```
/// use polylogue_test::server::{Answer, Behavior, rendered};
///
/// let reply = Answer::text("x".repeat(2000)).pieces(2000).usage(10, 2000);
/// let cheap = Behavior::raw(rendered(&reply, "gpt-4o", true));
/// # let _ = cheap;
/// ```
pub fn rendered(answer: &Answer, model: &str, streamed: bool) -> Vec<u8> {
    let body = serde_json::json!({
        "model": model, "stream": streamed, "stream_options": {"include_usage": true}
    });
    super::response::bytes(answer, &Received::of_body(body))
}
