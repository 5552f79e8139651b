//! What the strictest servers ask of a request.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::rules::{ensure, not_blank, refuse_if, role};
use super::{media, parameters};

/// How strictly histories are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// As the strictest servers do: one system message at most, at the beginning; then the user and the assistant in
    /// turns, the user first. What the chat templates of Mistral and Gemma ask. A user may speak after the result of a tool:
    /// [`Behavior::no_user_after_tool`](super::Behavior::no_user_after_tool) refuses that.
    #[default]
    Strict,
    /// As OpenAI does: any order of roles, several messages of one role in a row. Calls must still be answered, no
    /// content may be empty, and the last message must not be the assistant's.
    Loose,
    /// Not at all.
    Any,
}

/// Checks a chat-completions request as the strictest servers do, so that a request that passes is refused by none.
///
/// Of the history: there are messages, roles are known, system message only at the beginning, `user` and
/// `assistant` in turns with the user first, no message without content, no blank text, every call answered once
/// right after the message that makes it, no answer to anything else, no id used twice, the last message not the assistant's. Of the rest: a model, tools and response format well formed,
/// names legal, parameters of the right type and in their range.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub fn validate(body: &Value) -> Result<(), String> {
    validate_as(body, History::Strict)
}

/// As [`validate`], with histories judged as `history` says.
///
/// # Errors
/// Names the first place that breaks a rule, and the rule.
pub fn validate_as(body: &Value, history: History) -> Result<(), String> {
    if history == History::Any {
        return Ok(());
    }
    let body = body.as_object().ok_or("the body is not a JSON object")?;
    parameters::check(body)?;
    let messages = body.get("messages").ok_or("`messages` is missing")?;
    let messages = messages.as_array().ok_or("`messages` is not a list")?;
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    for message in messages {
        let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
        let mut parts = parts.filter_map(Value::as_object);
        parts.try_for_each(|part| parameters::check_cache_mark(model, role(message), part, &["30m"]))?;
    }
    check_history(messages, history)
}

pub(super) fn check_history(messages: &[Value], history: History) -> Result<(), String> {
    let mut reader = Reader { history, ..Reader::default() };
    for (index, message) in messages.iter().enumerate() {
        let read = message.as_object().ok_or_else(|| "is not an object".to_owned());
        read.and_then(|fields| reader.read(role(message), fields))
            .map_err(|flaw| format!("messages[{index}] {flaw}"))?;
    }
    if let Some(id) = reader.awaited.first() {
        return Err(format!("the call `{id}` is not answered"));
    }
    match reader.last {
        "" => Err("`messages` is empty".into()),
        "assistant" => Err("the last message is the assistant's".into()),
        "system" if messages.iter().all(|message| matches!(role(message), "system" | "developer")) => {
            Err("there is nothing but a system message".into())
        }
        _ => Ok(()),
    }
}

/// What was read so far.
#[derive(Default)]
struct Reader<'a> {
    history: History,
    last: &'a str,
    /// The ids of calls that are not answered yet.
    awaited: Vec<&'a str>,
    ids: HashSet<&'a str>,
}

impl<'a> Reader<'a> {
    fn read(&mut self, role: &'a str, message: &'a Map<String, Value>) -> Result<(), String> {
        if role != "tool"
            && let Some(id) = self.awaited.first()
        {
            return Err(format!("stands before the answer to the call `{id}`"));
        }
        self.check_order(role)?;
        match role {
            "system" | "developer" | "user" => check_content(message, false)?,
            "assistant" => self.read_assistant(message)?,
            "tool" => self.read_tool(message)?,
            "" => return Err("has no role".into()),
            _ => return Err(format!("has the unknown role `{role}`")),
        }
        self.last = if role == "developer" { "system" } else { role };
        Ok(())
    }

    fn check_order(&self, role: &str) -> Result<(), String> {
        let last = self.last;
        let legal = match (role, self.history) {
            (_, History::Loose | History::Any) => true,
            ("system" | "developer", _) => last.is_empty(),
            ("user", _) => matches!(last, "" | "system" | "assistant" | "tool"),
            ("assistant", _) => matches!(last, "user" | "tool"),
            _ => true,
        };
        match (legal, last) {
            (true, _) => Ok(()),
            (false, "") => Err(format!("is a `{role}` at the beginning")),
            (false, _) => Err(format!("is a `{role}` after a `{last}`: roles have to alternate")),
        }
    }

    fn read_assistant(&mut self, message: &'a Map<String, Value>) -> Result<(), String> {
        let calls = match message.get("tool_calls") {
            None => return check_content(message, false),
            Some(calls) => calls.as_array().filter(|calls| !calls.is_empty()),
        };
        check_content(message, true)?;
        for call in calls.ok_or("has `tool_calls` that are no list of calls")? {
            let id = check_call(call)?;
            ensure!(self.ids.insert(id), "uses the id `{id}` again");
            self.awaited.push(id);
        }
        Ok(())
    }

    fn read_tool(&mut self, message: &'a Map<String, Value>) -> Result<(), String> {
        let id = message.get("tool_call_id").and_then(Value::as_str).ok_or("has no `tool_call_id`")?;
        let Some(place) = self.awaited.iter().position(|awaited| *awaited == id) else {
            return Err(format!("answers `{id}`, which is not awaited"));
        };
        self.awaited.remove(place);
        check_content(message, false)
    }
}

/// The id of a well-formed call.
fn check_call(call: &Value) -> Result<&str, String> {
    let id =
        call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).ok_or("has a call without id")?;
    if call.get("type") != Some(&Value::String("function".into())) {
        return Err(format!("has the call `{id}`, whose type is not `function`"));
    }
    let function = call.get("function").ok_or_else(|| format!("has the call `{id}` without `function`"))?;
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    if !parameters::is_legal_name(name) {
        return Err(format!("has the call `{id}` of a tool with the illegal name `{name}`"));
    }
    let args = function.get("arguments").and_then(Value::as_str);
    let args = args.ok_or_else(|| format!("has the call `{id}`, whose arguments are no text"))?;
    match serde_json::from_str(args) {
        Ok(Value::Object(_)) => Ok(id),
        _ => Err(format!("has the call `{id}`, whose arguments are no JSON object")),
    }
}

/// Checks that there is something in a message. Content may be left out, or null, next to calls.
fn check_content(message: &Map<String, Value>, calls: bool) -> Result<(), String> {
    let of = message.get("role").and_then(Value::as_str).unwrap_or_default();
    match message.get("content") {
        None | Some(Value::Null) if calls => Ok(()),
        None | Some(Value::Null) => Err("has no content".into()),
        Some(Value::String(text)) => not_blank(text),
        Some(Value::Array(parts)) if parts.is_empty() => Err("has an empty list for content".into()),
        Some(Value::Array(parts)) => parts.iter().try_for_each(|part| check_part(of, part)),
        Some(_) => Err("has a content that is neither text nor a list of parts".into()),
    }
}

/// The kinds of parts that OpenAI's reference names for requests.
fn check_part(role: &str, part: &Value) -> Result<(), String> {
    let kind = part.get("type").and_then(Value::as_str).ok_or("has a part without type")?;
    refuse_if!(kind != "text" && role != "user", "is a `{role}` message with a part of the type `{kind}`");
    match kind {
        "text" => not_blank(part.get("text").and_then(Value::as_str).ok_or("has a text part without text")?),
        "image_url" => match part.as_object().and_then(|part| media::within(part, kind, "url")) {
            Some(url) => media::address(url, &media::PICTURES),
            _ => Err("has an image part without an address".into()),
        },
        "input_audio" | "file" => match part.get(kind).and_then(Value::as_object) {
            Some(sound) if kind == "input_audio" => media::sound(sound),
            Some(file) => media::document(file, &["file_id"]),
            None => Err(format!("has a part of type `{kind}` without `{kind}`")),
        },
        _ => Err(format!("has a part of the unknown type `{kind}`")),
    }
}
