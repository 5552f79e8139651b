//! Messages of a request in the form of chat templates.

use polylogue_core::{Effort, Entry, ModelError, ModelErrorKind, Part, Request, ToolCall, ToolChoice};
use serde_json::{Map, Value, json};

use crate::template::{Settings, Template, one_line};
use crate::tokenizer::Tokenizer;

/// The content of a message that would otherwise be empty.
const NOTHING: &str = "(no content)";

/// The field of requests whose content is passed on to the template.
pub(crate) const TEMPLATE_FIELD: &str = "chat_template_kwargs";

/// The prompt of `request` to the model `name`.
///
/// Templates differ in the orders of roles that they accept. One that refuses the messages receives them with the
/// system message in the first one, and with neighbors of one role as one message.
pub(crate) fn prompt(
    request: &Request<'_>,
    template: &Template,
    tokenizer: &Tokenizer,
    with_tools: bool,
    name: &str,
) -> Result<String, ModelError> {
    let defused = |text: &str| tokenizer.defused(text);
    let messages = messages(request, &defused);
    let settings = settings(request, with_tools, &defused);
    let refused = match template.render(&messages, &settings) {
        Ok(prompt) => return Ok(prompt),
        Err(error) => error,
    };
    template.render(&alternating(messages), &settings).map_err(|_| {
        let what = format!("its chat template refuses the conversation: {}", one_line(&refused));
        ModelError::new(ModelErrorKind::Config, name, what)
            .hint("use a model whose template takes this order of messages")
    })
}

fn messages(request: &Request<'_>, defused: &impl Fn(&str) -> String) -> Vec<Value> {
    let system = request.system.map(|text| json!({ "role": "system", "content": defused(text) }));
    system.into_iter().chain(request.entries.iter().map(|entry| message(entry, defused))).collect()
}

fn message(entry: &Entry, defused: &impl Fn(&str) -> String) -> Value {
    let content = defused(&words(entry.parts()));
    match entry {
        Entry::System { .. } => json!({ "role": "system", "content": or_nothing(content) }),
        Entry::User { .. } => json!({ "role": "user", "content": or_nothing(content) }),
        Entry::Tool { id, tool, .. } => {
            // A model of another provider, or another agent, can have written any name, and any id.
            let (name, id) = (defused(tool), defused(id));
            json!({ "role": "tool", "name": name, "tool_call_id": id, "content": or_nothing(content) })
        }
        Entry::Assistant { parts, .. } => {
            let calls: Vec<Value> = parts.iter().filter_map(|part| call(part, defused)).collect();
            if calls.is_empty() {
                return json!({ "role": "assistant", "content": or_nothing(content) });
            }
            json!({ "role": "assistant", "content": content, "tool_calls": calls })
        }
    }
}

fn call(part: &Part, defused: &impl Fn(&str) -> String) -> Option<Value> {
    let Part::ToolCall(ToolCall { id, tool, args }) = part else { return None };
    let arguments = match args {
        Value::Object(_) => args.clone(),
        other => json!({ "unparsed": other }),
    };
    let function = json!({ "name": defused(tool), "arguments": in_all_texts(&arguments, defused) });
    Some(json!({ "type": "function", "id": defused(id), "function": function }))
}

fn or_nothing(content: String) -> String {
    if content.is_empty() { NOTHING.to_owned() } else { content }
}

/// The parts of a message as one text.
fn words(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        part if part.is_blank() => None,
        Part::Text(text) => Some(text.to_string()),
        Part::Data(value) => Some(value.to_string()),
        Part::Media(media) if media.url.starts_with("data:") => Some(format!("[{}]", media.media_type)),
        Part::Media(media) => Some(format!("[{}: {}]", media.media_type, media.url)),
        _ => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n\n")
}

fn settings(request: &Request<'_>, with_tools: bool, defused: &impl Fn(&str) -> String) -> Settings {
    let is_offered = with_tools && request.params.tool_choice != Some(ToolChoice::None);
    let tool = |tool: &polylogue_core::ToolSpec| {
        let function =
            json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
        in_all_texts(&json!({ "type": "function", "function": function }), defused)
    };
    let more = match request.params.extra.get(TEMPLATE_FIELD) {
        Some(Value::Object(more)) => more.clone(),
        _ => Map::new(),
    };
    Settings {
        tools: if is_offered { request.tools.iter().map(tool).collect() } else { Vec::new() },
        thinking: request.params.effort.map(|effort| effort != Effort::None),
        more,
    }
}

/// `value` with all texts changed, keys included.
fn in_all_texts(value: &Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(all) => all.iter().map(|value| in_all_texts(value, change)).collect(),
        Value::Object(all) => {
            all.iter().map(|(key, value)| (change(key), in_all_texts(value, change))).collect()
        }
        other => other.clone(),
    }
}

/// The messages with roles that alternate, beginning with the user's: system messages and results of tools are the
/// user's, and neighbors of one role are one message.
fn alternating(messages: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<(bool, String)> = Vec::new();
    for message in &messages {
        let is_own = message.get("role").and_then(Value::as_str) == Some("assistant");
        let mut content = message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(calls) = message.get("tool_calls") {
            content = format!("{content}\n\n{calls}").trim_start().to_owned();
        }
        match merged.last_mut() {
            Some((was_own, before)) if *was_own == is_own => *before = format!("{before}\n\n{content}"),
            None if is_own => merged.extend([(false, NOTHING.to_owned()), (true, content)]),
            _ => merged.push((is_own, content)),
        }
    }
    let role = |is_own| if is_own { "assistant" } else { "user" };
    merged.into_iter().map(|(is_own, content)| json!({ "role": role(is_own), "content": content })).collect()
}

#[cfg(test)]
mod tests {
    use polylogue_core::ToolResult;

    use super::*;

    /// Templates write names and ids, too, and tokens of the structure in them would begin another turn.
    #[test]
    fn no_text_of_calls_and_results_is_left_as_it_came() {
        let upper = |text: &str| text.to_uppercase();
        let call = ToolCall { id: "i".into(), tool: "t".into(), args: json!({ "k": "v" }) };
        let function = json!({ "name": "T", "arguments": { "K": "V" } });
        assert_eq!(
            message(&Entry::own(vec![Part::ToolCall(call.clone())]), &upper)["tool_calls"],
            json!([{ "type": "function", "id": "I", "function": function }])
        );
        let result = Entry::Tool { id: call.id, tool: call.tool, result: ToolResult::done("r") };
        assert_eq!(
            message(&result, &upper),
            json!({ "role": "tool", "name": "T", "tool_call_id": "I", "content": "R" })
        );
    }

    #[test]
    fn roles_alternate_where_a_template_needs_it() {
        let message = |role: &str, content: &str| json!({ "role": role, "content": content });
        let merged = alternating(vec![
            message("system", "s"),
            message("user", "a"),
            message("assistant", "b"),
            message("tool", "c"),
            message("user", "d"),
        ]);
        assert_eq!(merged, [message("user", "s\n\na"), message("assistant", "b"), message("user", "c\n\nd")]);
        let own_first = alternating(vec![message("assistant", "b")]);
        assert_eq!(own_first, [message("user", NOTHING), message("assistant", "b")]);
    }

    #[test]
    fn texts_are_changed_wherever_they_stand() {
        let upper = |text: &str| text.to_uppercase();
        assert_eq!(
            in_all_texts(&json!({ "a": ["b", 1, { "c": null }] }), &upper),
            json!({ "A": ["B", 1, { "C": null }] })
        );
    }
}
