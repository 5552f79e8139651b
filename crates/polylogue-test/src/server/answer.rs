//! What the server answers.

use std::time::{Duration, SystemTime};

use polylogue_core::Usage;
use serde_json::Value;

use super::{PieceGate, Quirk};

/// The answer of the server to one request.
///
/// ```
/// use polylogue_test::server::{Answer, Quirk};
/// use serde_json::json;
///
/// let plain = Answer::text("It is sunny.").usage(12, 4);
/// let tool = Answer::text("I look.").think("where?").call("weather", json!({"city": "Oslo"}));
/// let busy = Answer::status(429).retry_after_secs(2);
/// let torn = Answer::text("It is").with(Quirk::Reset);
/// # let _ = (plain, tool, busy, torn);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use]
pub struct Answer {
    /// What it reasons and says before its last reasoning and text.
    pub(super) earlier: Vec<(String, String)>,
    pub(super) text: String,
    pub(super) thought: String,
    pub(super) calls: Vec<ScriptedCall>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<String>,
    pub(super) pieces: Option<usize>,
    pub(super) refusal: Option<Refusal>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) quirks: Vec<Quirk>,
    pub(super) gate: Option<PieceGate>,
    /// What the request broke: goes into the server's violations.
    pub(super) violation: Option<String>,
}

/// A tool call in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedCall {
    /// Made from the request when it is `None`.
    pub(super) id: Option<String>,
    pub(super) tool: String,
    /// The arguments' JSON, or whatever text is in its place.
    pub(super) args: String,
}

/// An answer that is not a reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: Option<String>,
    pub(super) code: Option<String>,
    /// What the model wrote that Groq cannot parse.
    pub(super) generation: Option<String>,
}

impl Answer {
    /// Creates a reply of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates a reply without text that calls one tool; [`call`](Self::call) adds more.
    pub fn tool(tool: impl Into<String>, args: Value) -> Self {
        Self::default().call(tool, args)
    }

    /// Creates an error status with the body that OpenAI sends with it.
    pub fn status(status: u16) -> Self {
        let refusal = Refusal { status, ..Refusal::default() };
        Self { refusal: Some(refusal), ..Self::default() }
    }

    /// Creates an error status with an OpenAI error body that says `message`.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        let refusal = Refusal { status, message: Some(message.into()), ..Refusal::default() };
        Self { refusal: Some(refusal), ..Self::default() }
    }

    /// Sets the code of this error.
    pub fn code(mut self, code: impl Into<String>) -> Self {
        if let Some(refusal) = &mut self.refusal {
            refusal.code = Some(code.into());
        }
        self
    }

    /// Creates a 400 because the server cannot parse the tool call in what the model `wrote`, as Groq does.
    pub fn unparsed(wrote: impl Into<String>) -> Self {
        let message =
            "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.";
        let mut answer = Self::error(400, message).code("tool_use_failed");
        if let Some(refusal) = &mut answer.refusal {
            refusal.generation = Some(wrote.into());
        }
        answer
    }

    /// Creates a 429 because the account has no money left: waiting does not help.
    pub fn quota() -> Self {
        let message = "You exceeded your current quota, please check your plan and billing details.";
        Self::error(429, message).code("insufficient_quota")
    }

    /// Creates a 400 to a request that should not have come; it is listed in [`Server::violations`](super::Server::violations).
    pub fn unexpected(what: impl Into<String>) -> Self {
        let what = what.into();
        Self { violation: Some(what.clone()), ..Self::error(400, what) }
    }

    /// Begins the reply with this reasoning.
    pub fn think(self, thought: impl Into<String>) -> Self {
        Self { thought: thought.into(), ..self }
    }

    /// Puts before the reply this reasoning and this text. By chat completions alone.
    pub fn after(mut self, thought: impl Into<String>, text: impl Into<String>) -> Self {
        self.earlier.push((thought.into(), text.into()));
        self
    }

    /// Adds a tool call. The call's id is made from the request, so that the same request gets the same id and no other request
    /// does.
    pub fn call(self, tool: impl Into<String>, args: Value) -> Self {
        self.push(None, tool.into(), args.to_string())
    }

    /// Adds several tool calls at once.
    pub fn calls<T: Into<String>>(self, calls: impl IntoIterator<Item = (T, Value)>) -> Self {
        calls.into_iter().fold(self, |answer, (tool, args)| answer.call(tool, args))
    }

    /// Adds a tool call under an id of the caller's choice.
    pub fn call_as(self, id: impl Into<String>, tool: impl Into<String>, args: Value) -> Self {
        self.push(Some(id.into()), tool.into(), args.to_string())
    }

    /// Adds a tool call with arguments that need not be JSON.
    pub fn call_raw(self, tool: impl Into<String>, args: impl Into<String>) -> Self {
        self.push(None, tool.into(), args.into())
    }

    fn push(mut self, id: Option<String>, tool: String, args: String) -> Self {
        self.calls.push(ScriptedCall { id, tool, args });
        self
    }

    /// Sets the tokens read and written. Default: the server counts a token for every four bytes of the request's and of the
    /// reply's text.
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        let usage = self.usage.get_or_insert_default();
        (usage.input, usage.output) = (Some(input), Some(output));
        self
    }

    /// Sets the details of usage: of the tokens read, those from the prompt cache; of those written, those of reasoning.
    pub fn usage_details(mut self, cached: u64, reasoning: u64) -> Self {
        let usage = self.usage.get_or_insert_default();
        (usage.cached, usage.reasoning) = (Some(cached), Some(reasoning));
        self
    }

    /// Sets the finish reason, instead of `stop` or `tool_calls`.
    pub fn finish(self, reason: impl Into<String>) -> Self {
        Self { finish: Some(reason.into()), ..self }
    }

    /// Streams the text in `pieces` pieces of nearly equal length, or one a character when it has fewer characters.
    /// Left out, the text is streamed word by word.
    pub fn pieces(self, pieces: usize) -> Self {
        Self { pieces: Some(pieces.max(1)), ..self }
    }

    /// Streams each chunk when the gate lets it through.
    pub fn gated(self, gate: &PieceGate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds `Retry-After` in seconds.
    pub fn retry_after_secs(self, secs: u64) -> Self {
        self.header("retry-after", secs.to_string())
    }

    /// Adds `Retry-After` as a date, `delay` after the `Date` of the answer, however late it is sent. Both dates
    /// have whole seconds.
    pub fn retry_after_date(self, delay: Duration) -> Self {
        let now = SystemTime::now();
        let date = |at| httpdate::fmt_http_date(at);
        self.header("date", date(now)).header("retry-after", date(now + delay))
    }

    /// Adds a deviation. Several can be combined.
    pub fn with(mut self, quirk: Quirk) -> Self {
        self.quirks.push(quirk);
        self
    }

    pub(super) fn has(&self, quirk: &Quirk) -> bool {
        self.quirks.contains(quirk)
    }

    /// Whether a client that reads all of it has a complete reply.
    pub(super) fn is_whole(&self) -> bool {
        self.refusal.is_none() && !self.quirks.iter().any(Quirk::breaks_reply)
    }

    /// The finish reason that is sent.
    pub(super) fn finish_reason(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.calls.is_empty() || self.has(&Quirk::CallsEndWithStop) => "stop",
            None => "tool_calls",
        }
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}
