//! How models write tool calls.

use serde_json::{Value, json};

/// How a model writes tool calls in its text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallFormat {
    /// The text before a call; where it is empty, a reply that begins with `{` is a call.
    pub(crate) open: &'static str,
    /// The text after a call.
    pub(crate) close: &'static str,
    /// What is between `open` and the JSON, and between the JSON and `close`.
    pub(crate) space: &'static str,
    /// The key of the arguments.
    arguments: &'static str,
    /// Whether the JSON is a list of calls.
    pub(crate) is_list: bool,
}

/// Qwen, Hermes and many others.
const TAGGED: CallFormat = CallFormat {
    open: "<tool_call>",
    close: "</tool_call>",
    space: "\n",
    arguments: "arguments",
    is_list: false,
};

const MISTRAL: CallFormat =
    CallFormat { open: "[TOOL_CALLS]", close: "", space: "", arguments: "arguments", is_list: true };

const LLAMA: CallFormat =
    CallFormat { open: "", close: "", space: "", arguments: "parameters", is_list: false };

impl CallFormat {
    /// The format that a chat template describes to its model; `None` if it describes none of them.
    pub(crate) fn of(template: &str) -> Option<&'static Self> {
        let has = |text: &str| template.contains(text);
        if !has("tools") {
            return None;
        }
        if has(TAGGED.open) && !has("<function=") {
            Some(&TAGGED)
        } else if has(MISTRAL.open) {
            Some(&MISTRAL)
        } else if has("<|python_tag|>") || has("\"parameters\": dictionary of argument name") {
            Some(&LLAMA)
        } else {
            None
        }
    }

    /// The JSON Schema of one call, where `arguments` are those of the tool `name`.
    pub(crate) fn schema(&self, name: &str, arguments: &Value) -> Value {
        json!({
            "type": "object",
            "properties": { "name": { "const": name }, self.arguments: arguments },
            "required": ["name", self.arguments],
            "additionalProperties": false,
        })
    }

    /// The calls in the text between `open` and `close`: names and arguments. `None` if it is something else.
    pub(crate) fn read(&self, text: &str) -> Option<Vec<(String, Value)>> {
        let mut calls = Vec::new();
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            match value.ok()? {
                Value::Array(all) if self.is_list => {
                    calls.extend(all.into_iter().map(|call| self.call(call)).collect::<Option<Vec<_>>>()?);
                }
                call => calls.push(self.call(call)?),
            }
        }
        (!calls.is_empty()).then_some(calls)
    }

    fn call(&self, value: Value) -> Option<(String, Value)> {
        let Value::Object(mut call) = value else { return None };
        let arguments = call.shift_remove(self.arguments).unwrap_or_else(|| json!({}));
        match call.shift_remove("name") {
            Some(Value::String(name)) => Some((name, arguments)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_that_of_the_template() {
        assert_eq!(CallFormat::of("{% if tools %}... <tool_call>"), Some(&TAGGED));
        assert_eq!(CallFormat::of("{% if tools %} [TOOL_CALLS]"), Some(&MISTRAL));
        assert_eq!(CallFormat::of("{% if tools is defined %} <|python_tag|>"), Some(&LLAMA));
        assert_eq!(CallFormat::of("{% if tools %} <tool_call> <function=name>"), None);
        assert_eq!(CallFormat::of("{{ messages }}"), None);
    }

    #[test]
    fn calls_are_read_and_nothing_else_is() {
        let call = ("f".to_owned(), json!({"a": 1}));
        let tagged = "\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n";
        assert_eq!(TAGGED.read(tagged), Some(vec![call.clone()]));
        assert_eq!(MISTRAL.read(&format!(" [{tagged}, {tagged}]")), Some(vec![call.clone(), call.clone()]));
        assert_eq!(LLAMA.read("{\"name\": \"f\", \"parameters\": {\"a\": 1}}"), Some(vec![call]));
        for text in ["", "text", "{\"name\": 1}", "{\"name\": \"f\"", "[]", "{\"name\": \"f\"} and"] {
            assert_eq!(TAGGED.read(text), None, "{text}");
        }
    }
}
