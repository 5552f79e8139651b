//! A request as the server got it.

use std::borrow::Cow;
use std::time::Instant;

use serde_json::Value;

use super::dialect::Dialect;
use super::rules::role;

/// A request as the server got it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Received {
    /// Which request of the server it is, whatever its path, counted from 0.
    pub nth: usize,
    /// The HTTP method, such as `POST`.
    pub method: String,
    /// The path, such as `/v1/chat/completions`.
    pub path: String,
    /// Names in lower case, and values, in the order they were sent.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; `Null` when it is none.
    pub body: Value,
    /// The body byte for byte.
    pub bytes: Vec<u8>,
    /// When its last byte was read.
    pub at: Instant,
}

impl Received {
    /// A request with this body that no client sent.
    pub(super) fn of_body(body: Value) -> Self {
        Self {
            nth: 0,
            method: "POST".into(),
            path: "/v1/chat/completions".into(),
            headers: Vec::new(),
            bytes: body.to_string().into_bytes(),
            body,
            at: Instant::now(),
        }
    }

    /// Returns the value of the first header of this name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the API that is asked.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::of(&self.path)
    }

    /// Returns the messages, in the form of the API; none when the body has no such list.
    pub fn messages(&self) -> &[Value] {
        let name = match self.dialect() {
            Some(Dialect::GenerateContent) => "contents",
            Some(Dialect::Responses) => "input",
            _ => "messages",
        };
        self.field(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns the system text.
    pub fn system(&self) -> Option<Cow<'_, str>> {
        let apart = match self.dialect() {
            Some(Dialect::Messages | Dialect::Converse) => self.field("system"),
            Some(Dialect::GenerateContent) => self.field("systemInstruction"),
            Some(Dialect::Responses) => self.field("instructions"),
            _ => None,
        };
        if let Some(apart) = apart {
            return Some(text(apart));
        }
        let first = self.messages().first()?;
        matches!(role(first), "system" | "developer").then(|| text(first))
    }

    /// Returns the text of the last message; empty when there is none.
    pub fn last_text(&self) -> Cow<'_, str> {
        self.messages().last().map_or(Cow::Borrowed(""), text)
    }

    /// Returns how many replies of the assistant are among the messages: which model call of its conversation this is, counted
    /// from 0.
    ///
    /// An answer chosen by this number is the same for the same request, whenever and in whatever process it is
    /// asked again.
    pub fn turn(&self) -> usize {
        let is_own = |message: &Value| match message.get("type").and_then(Value::as_str) {
            Some("reasoning" | "function_call") => true,
            _ => matches!(role(message), "assistant" | "model"),
        };
        let own: Vec<bool> = self.messages().iter().map(is_own).collect();
        match self.dialect() {
            // A reply is several items.
            Some(Dialect::Responses) => {
                own.chunk_by(|one, other| one == other).filter(|run| run.first() == Some(&true)).count()
            }
            _ => own.into_iter().filter(|own| *own).count(),
        }
    }

    /// Returns the names of the tools that the model may call, in the order of the request.
    pub fn tools(&self) -> Vec<&str> {
        let tools = all(self.field("tools")).iter();
        match self.dialect() {
            Some(Dialect::Messages | Dialect::Responses) => tools.filter_map(name).collect(),
            Some(Dialect::GenerateContent) => {
                let lists = tools.map(|tool| all(tool.get("functionDeclarations")));
                lists.flatten().filter_map(name).collect()
            }
            Some(Dialect::Converse) => {
                let tools = all(self.field("toolConfig").and_then(|config| config.get("tools"))).iter();
                tools.filter_map(|tool| name(tool.get("toolSpec")?)).collect()
            }
            _ => tools.filter_map(|tool| name(tool.get("function")?)).collect(),
        }
    }

    /// Returns whether a streamed reply is asked for. Ollama streams by default; Google and Amazon have paths of their own for
    /// it.
    pub fn streams(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        match self.dialect() {
            Some(Dialect::GenerateContent) => path.ends_with(":streamGenerateContent"),
            Some(Dialect::Converse) => path.ends_with("-stream"),
            _ => match self.field("stream") {
                None => self.is_ollama(),
                stream => stream == Some(&Value::Bool(true)),
            },
        }
    }

    /// Returns whether it is a request in Ollama's own form.
    pub fn is_ollama(&self) -> bool {
        self.dialect() == Some(Dialect::Ollama)
    }

    /// Returns the model that is asked for; empty when none is named.
    pub fn model(&self) -> &str {
        let named = self.field("model").and_then(Value::as_str);
        let of_path = |begin: &str, end: char| {
            let rest = self.path.split_once(begin)?.1;
            rest.split(end).next()
        };
        let model = match self.dialect() {
            Some(Dialect::GenerateContent) => of_path("/models/", ':'),
            Some(Dialect::Converse) => of_path("/model/", '/'),
            Some(Dialect::Messages) => named.or_else(|| of_path("/models/", ':')),
            _ => named,
        };
        model.unwrap_or_default()
    }

    /// Whether a streamed reply is to end with a chunk that tells the usage.
    pub(super) fn wants_usage(&self) -> bool {
        let options = self.field("stream_options");
        options.and_then(|options| options.get("include_usage")) == Some(&Value::Bool(true))
    }

    /// Identifies the body: FNV-1a, 64 bits. The same for the same bytes on every machine.
    pub(super) fn fingerprint(&self) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        self.bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.body.get(name)
    }
}

/// The text of a message, whatever its form: all of its texts, thoughts left out.
fn text(message: &Value) -> Cow<'_, str> {
    let direct = match message {
        Value::String(_) => Some(message),
        _ => message.get("content"),
    };
    match direct {
        Some(Value::String(text)) => Cow::Borrowed(text),
        _ => Cow::Owned(texts(message)),
    }
}

fn texts(value: &Value) -> String {
    const TEXTS: [&str; 9] = [
        "text", "content", "parts", "output", "error", "response", "functionResponse", "toolResult", "result",
    ];
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(texts).collect(),
        Value::Object(fields) if fields.get("thought") == Some(&Value::Bool(true)) => String::new(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| TEXTS.contains(&name.as_str()))
            .map(|(_, value)| texts(value))
            .collect(),
        _ => String::new(),
    }
}

fn all(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(tool: &Value) -> Option<&str> {
    tool.get("name")?.as_str()
}
